"""Whose is the lead of two draws: the rule's, or the pair's?

The mid-CDF rule and ReinMax, each with two independent draws and with an antithetic pair, in the
setting of the ablation (10,000 MNIST images cut at one half, 784-256-128, tilted posterior,
Poisson(2), standardised counts, 3,000 steps). Runs that are complete are not run again.

    GENGS_DATA=... python -m benchmarks.antithetic_pair runs/pair > results/vae/antithetic-pair.md
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

import gengs
from benchmarks.spread import spread
from gengs.estimators.factors import Factors
from gengs.estimators.surrogate import attach
from gengs.numerics.inverse_cdf import antithetic_uniforms, inverse_cdf_index
from gengs_experiments.experiments.vae import build
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.runs.machine import without_subnormals
from gengs_experiments.runs.training import Machine, train

BASE = VaeConfig(
    data="mnist",
    images=10_000,
    binarise="threshold",
    posterior="tilted",
    network="256-128",
    epochs=30,
    evaluate_every=10,
    evaluation_images=5000,
    kl_warm_up=0,
)
SEEDS = (0, 1, 2)


class PairedReinMax(gengs.ReinMax):
    """ReinMax at temperature 1 on an antithetic pair of draws."""

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        law = factors.finite
        probs = law.probs.detach()
        uniforms = antithetic_uniforms(shape, law.batch_shape, probs.device)
        index = inverse_cdf_index(probs, shape, uniforms=uniforms)
        z, centre = law.at(index), law.mean
        table = law.logits.expand(*index.shape, law.num_atoms)
        log_drawn = table.gather(-1, index.unsqueeze(-1)).squeeze(-1)
        return attach(z, (z - centre.detach()) * log_drawn / 2 + centre / 2)


CELLS: dict[str, tuple[str, Callable[[], gengs.Estimator]]] = {
    "mid-CDF, a pair": ("midcdf-pair", lambda: gengs.MidCDF(2, antithetic=True)),
    "mid-CDF, two independent": ("midcdf-independent", lambda: gengs.MidCDF(2)),
    "ReinMax, a pair": ("reinmax-pair", lambda: PairedReinMax(samples=2)),
    "ReinMax, two independent": ("reinmax-independent", lambda: gengs.ReinMax(samples=2)),
}


def last_evaluation(folder: Path) -> dict[str, float] | None:
    if not (folder / "weights.safetensors").exists():
        return None
    lines = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    found: dict[str, float] = [line for line in lines if line["kind"] == "evaluation"][-1]
    return found


@without_subnormals()
def train_all(root: Path) -> None:
    for seed in SEEDS:
        for name, make in CELLS.values():
            folder = root / f"{name}-{seed}"
            if last_evaluation(folder) is not None:
                continue
            config = replace(BASE, seed=seed)
            task, training = build(config, config.load(None))
            task.modules["model"].estimator = make()
            machine = Machine(resume=folder.exists(), progress=False, accelerator="cpu")
            train(task, folder, config, training, machine, seed=seed)


def main() -> None:
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    if "--table" not in sys.argv:
        stdout, sys.stdout = sys.stdout, sys.stderr
        train_all(root)
        sys.stdout = stdout
    print("| rule, two draws | seeds | train | test |\n| --- | ---: | ---: | ---: |")
    for label, (name, _) in CELLS.items():
        found = [last_evaluation(root / f"{name}-{seed}") for seed in SEEDS]
        done = [line for line in found if line is not None]
        cells = [spread([x[part] for x in done]) for part in ("nelbo_train", "nelbo_test")]
        print(f"| {label} | {len(done)} | {' | '.join(cells)} |")
    print(
        f"\ngengs {gengs.__version__}, torch {torch.__version__}, Python "
        f"{platform.python_version()}."
    )


if __name__ == "__main__":
    main()
