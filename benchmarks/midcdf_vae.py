"""The mid-CDF against its rivals in a VAE: discrete negative ELBO after equal budgets.

20,000 MNIST images, dynamic binarisation, 30 epochs of batches of 100, 50 latents, Poisson(2),
networks 784-256-128, Adam 1e-3: explicit and implicit posteriors, three seeds. Runs are folders;
those that are complete are not run again. Prints Markdown.

    GENGS_DATA=... python -m benchmarks.midcdf_vae runs/midcdf > results/midcdf/vae.md
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

import gengs
from benchmarks.spread import spread
from gengs_experiments.experiments.train_command import Vae
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.runs.training import Machine

BASE = VaeConfig(
    data="mnist",
    images=20_000,
    decoder_input="counts",
    epochs=30,
    evaluate_every=10,
    evaluation_images=10_000,
)
SEEDS = (0, 1, 2)
Posterior = Literal["explicit", "implicit"]


def case(label: str, estimator: str, posterior: Posterior, level: int) -> tuple[str, VaeConfig]:
    config = replace(BASE, estimator=estimator, posterior=posterior, level=level)
    return f"{label}, {posterior}", config


CASES = (
    case("mid-CDF", "MidCDF", "implicit", 12),
    case("GenGS (Imp)", "GenGS", "implicit", 12),
    case("ReinMax", "ReinMax", "implicit", 12),
    case("GenGS ST", "GenGS(hard=True)", "implicit", 12),
    case("RLOO(4)", "RLOO(4)", "implicit", 12),
    case("plain ST", "StraightThroughMean", "implicit", 12),
    case("mid-CDF", "MidCDF", "explicit", 12),
    case("GenGS", "GenGS", "explicit", 12),
    case("EAT, cubic", "ArrivalTimes", "explicit", 0),
    case("GenGS ST", "GenGS(hard=True)", "explicit", 12),
    case("RLOO(4)", "RLOO(4)", "explicit", 12),
    case("plain ST", "StraightThroughMean", "explicit", 12),
)


def final(folder: Path) -> dict[str, float] | None:
    """The last evaluation of a complete run."""
    if not (folder / "weights.safetensors").exists():
        return None
    lines = (folder / "records.jsonl").read_text().splitlines()
    evaluations = [r for r in map(json.loads, lines) if r["kind"] == "evaluation"]
    return evaluations[-1] if evaluations else None


def folder_of(root: Path, config: VaeConfig) -> Path:
    name = f"{config.posterior}-{config.estimator}-{config.seed}"
    return root / "".join(c if c.isalnum() or c in "-." else "_" for c in name)


def run_all(root: Path) -> None:
    for seed in SEEDS:
        for _, settings in CASES:
            config = replace(settings, seed=seed)
            folder = folder_of(root, config)
            if final(folder) is None:
                print(folder, file=sys.stderr, flush=True)
                machine = Machine(resume=folder.exists(), progress=False, accelerator="cpu")
                Vae(config, folder, machine=machine).run()


def main() -> None:
    torch.set_num_threads(1)
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/midcdf")
    if "--table" not in sys.argv:
        stdout, sys.stdout = sys.stdout, sys.stderr
        run_all(root)
        sys.stdout = stdout
    print("# Discrete negative ELBO in a VAE, equal budgets\n")
    print("`GENGS_DATA=... python -m benchmarks.midcdf_vae runs/midcdf > results/midcdf/vae.md`\n")
    print(
        "20,000 MNIST images, dynamic binarisation, 30 epochs, batch 100, 50 latents, Poisson(2), "
        "12 atoms, 784-256-128, Adam 1e-3; temperature of GenGS 1 to 0.1. Mean ± standard error "
        f"over seeds; exact draws on 10,000 images. gengs {gengs.__version__}, torch "
        f"{torch.__version__}, Python {platform.python_version()}.\n"
    )
    print("| estimator, posterior | seeds | train | test | as trained (relaxed) |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for label, settings in CASES:
        found = [final(folder_of(root, replace(settings, seed=seed))) for seed in SEEDS]
        done = [record for record in found if record is not None]
        cells = [
            spread([r[k] for r in done]) for k in ("nelbo_train", "nelbo_test", "relaxed_train")
        ]
        print(f"| {label} | {len(done)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
