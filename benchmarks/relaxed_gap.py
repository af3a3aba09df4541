"""The value that GenGS trains on beside the exact one, by temperature, by prior.

One model per prior (all of MNIST cut at one half, 784-512-256, 50 latents, explicit posterior,
batches of 200, Adam 1e-3, 20 epochs), whose temperature falls from 1 to 0.1 as in the paper, and
one to 0.5, read at temperatures from 1 to 0.05. Models whose numbers are in the file are not
trained again. Prints Markdown, and writes the numbers of the picture beside it.

    GENGS_DATA=... python -m benchmarks.relaxed_gap runs/gap results/vae/relaxed-gap.json \
        > results/vae/relaxed-gap.md
"""

from __future__ import annotations

import json
import math
import platform
import sys
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file

import gengs
from gengs_experiments.experiments.train_command import Vae
from gengs_experiments.experiments.vae import build
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.models import VAE
from gengs_experiments.runs.training import Machine
from gengs_experiments.study.published import TABLE1

PRIORS = {
    "Pois(2)": ("pois2", "poisson(2)"),
    "Pois(3)": ("pois3", "poisson(3)"),
    "Geom(.25)": ("geom.25", "geometric(0.25)"),
    "Geom(.5)": ("geom.5", "geometric(0.5)"),
    "NB(3,.5)": ("nb3.5", "negative-binomial(3, 0.5)"),
    "NB(5,.3)": ("nb5.3", "negative-binomial(5, 0.3)"),
}
WANTED = [(prior, end) for prior in PRIORS for end in (0.5, 0.1)]
"""The models: a prior, and where the temperature stops."""
TEMPERATURES = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05)


def config_of(prior: str, end: float) -> VaeConfig:
    return VaeConfig(
        data="mnist",
        binarise="threshold",
        prior=PRIORS[prior][1],
        posterior="explicit",
        decoder_input="counts",
        estimator="GenGS",
        temperature=(1.0, end),
        network="512-256",
        batch_size=200,
        epochs=20,
        evaluate_every=2,
        evaluation_images=10_000,
        kl_warm_up=0,
    )


def folder_of(root: Path, prior: str, end: float) -> Path:
    return root / f"{PRIORS[prior][0]}-explicit-{end}"


def trained(root: Path, prior: str, end: float) -> VAE:
    """The trained model; trains it first where it is missing."""
    config, folder = config_of(prior, end), folder_of(root, prior, end)
    if not (folder / "weights.safetensors").exists():
        machine = Machine(resume=folder.exists(), progress=False, accelerator="cpu")
        Vae(config, folder, machine=machine).run()
    task, _ = build(config, config.load(None))
    model = task.modules["model"]
    assert isinstance(model, VAE)
    weights = load_file(folder / "weights.safetensors")
    missing, _ = model.load_state_dict(
        {name.removeprefix("model."): value for name, value in weights.items()}, strict=False
    )
    if any(name.startswith(("encoder", "decoder")) for name in missing):
        raise RuntimeError(f"{folder} lacks {missing}.")
    return model


def read(model: VAE, config: VaeConfig) -> dict[str, object]:
    """The exact value on 10,000 training images, and the relaxed one at each temperature."""
    images = config.load(None).take(train=10_000, seed=0).train
    x = (images.flatten(1).float() / 255 >= 0.5).float() if images.max() > 1 else images.flatten(1)
    x = (x >= 0.5).float().view(images.shape)
    torch.manual_seed(0)
    exact = float(model.negative_elbo(x).mean())
    relaxed = []
    for tau in TEMPERATURES:
        torch.manual_seed(0)
        model.estimator.temperature = tau  # type: ignore[assignment]
        relaxed.append(float(model.training_value(x).mean()))
    return {"exact": exact, "relaxed": relaxed}


def while_training(folder: Path, end: float) -> list[tuple[float, float]]:
    """The temperature at the middle of each epoch, and the mean of the epoch's losses."""
    records = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    losses = [(r["step"], r["loss"]) for r in records if r["kind"] == "train"]
    epoch, last = losses[0][0], losses[-1][0]
    return [(end ** ((step - epoch / 2) / last), loss) for step, loss in losses]


def met_at(curve: list[tuple[float, float]], wanted: float) -> float | None:
    """The lowest temperature at which a curve, from high to low, crosses a value."""
    for (t0, y0), (t1, y1) in reversed(list(pairwise(curve))):
        if min(y0, y1) <= wanted <= max(y0, y1) and y0 != y1:
            share = (wanted - y0) / (y1 - y0)
            return math.exp(math.log(t0) + share * (math.log(t1) - math.log(t0)))
    return None


def main() -> None:
    torch.set_num_threads(1)
    root, picture = Path(sys.argv[1]), Path(sys.argv[2])
    known = json.loads(picture.read_text())["models"] if picture.exists() else []
    found = {(row["prior"], row["end"]): row for row in known}
    for prior, end in WANTED:
        if (prior, end) in found:
            continue
        values = read(trained(root, prior, end), config_of(prior, end))
        curve = while_training(folder_of(root, prior, end), end)
        paper = TABLE1["mnist"][prior]["GenGS"]
        found[prior, end] = {"prior": prior, "end": end, "paper": paper, "training": curve} | values
        print(prior, end, values, file=sys.stderr, flush=True)
        found = {key: found[key] for key in WANTED if key in found}
        numbers = {"temperatures": TEMPERATURES, "models": list(found.values())}
        picture.write_text(json.dumps(numbers, indent=1) + "\n")
    long = long_runs(Path("results/vae/at-length"))
    print(f"{HEAD}\n{table(list(found.values()))}\n\n{LONG}\n{long}")


HEAD = """# The value that GenGS trains on, and the exact one

    GENGS_DATA=... python -m benchmarks.relaxed_gap runs/gap results/vae/relaxed-gap.json \\
        > results/vae/relaxed-gap.md

How far the relaxed value lies below the exact one, and where the paper's numbers are met
([a picture, and what it says](../../docs/paper.md)).

All of MNIST cut at one half, 784-512-256, 50 latents, the paper's truncations, explicit posterior,
decoder on counts, batches of 200, Adam 1e-3, 20 epochs (6,000 steps), one draw, one seed. The
temperature falls from 1 to the one under "trained to", by the same factor in each step. Values on
10,000 training images, nats. The divergence is that of the discrete laws throughout; only the draws
of the reconstruction are relaxed.
"""

LONG = """## In training, over 12,000 steps

Of the runs of [Table 1, long runs](at-length.md), whose temperature falls from 1 to 0.1: the lowest
mean of an epoch's losses, where it was, the last values, and the paper's. *GenGS* has an explicit
posterior and one draw, *Imp* an implicit one, *NP* truncates each batch to the window that holds
0.999 of the mass, (10) has ten draws.
"""


def long_runs(study: Path) -> str:
    """The lowest epoch in training of the recorded runs of GenGS."""
    lines = [
        "| data | prior | column | seed | lowest epoch in training | as trained | exact draws "
        "| paper |",
        f"| --- | --- | --- |{' ---: |' * 5}",
    ]
    for planned in json.loads((study / "plan.json").read_text())["runs"]:
        folder, labels = study / "runs" / planned["id"], planned["labels"]
        if not labels["column"].startswith("GenGS") or not (folder / "complete.json").exists():
            continue
        records = list(map(json.loads, (folder / "records.jsonl").read_text().splitlines()))
        last = [r for r in records if r["kind"] == "evaluation"][-1]
        tau, lowest = min(while_training(folder, 0.1), key=lambda point: point[1])
        cells = [labels["data"], labels["row"], labels["column"], str(planned["config"]["seed"])]
        cells += [f"{lowest:.2f} (τ = {tau:.2f})"]
        cells += [f"{last[name]:.2f}" for name in ("relaxed_train", "nelbo_train")]
        cells += [f"{TABLE1[labels['data']][labels['row']][labels['column']]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([lines[0], lines[1], *sorted(lines[2:])])


def table(found: list[dict[str, object]]) -> str:
    heads = [f"τ = {tau:g}" for tau in TEMPERATURES]
    lines = [
        f"| prior | trained to | {' | '.join(heads)} | exact draws |",
        f"| --- | ---: |{' ---: |' * (len(heads) + 1)}",
    ]
    for row in found:
        values = " | ".join(f"{x:.1f}" for x in row["relaxed"])  # type: ignore[attr-defined]
        lines.append(f"| {row['prior']} | {row['end']} | {values} | {row['exact']:.1f} |")
    lines += [
        "",
        "| prior | trained to | paper | met by the trained model, read at "
        "| lowest epoch in training | as trained | exact draws |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in found:
        reading = list(zip(TEMPERATURES, row["relaxed"], strict=True))  # type: ignore[call-overload]
        training: list[tuple[float, float]] = row["training"]  # type: ignore[assignment]
        paper = float(row["paper"])  # type: ignore[arg-type]
        tau, lowest = min(training, key=lambda point: point[1])
        as_trained = dict(reading)[row["end"]]
        cells = [f"{row['end']}", f"{paper:.2f}", at(met_at(reading, paper))]
        cells += [f"{lowest:.1f} (τ = {tau:.2f})", f"{as_trained:.1f}", f"{row['exact']:.1f}"]
        lines.append(f"| {row['prior']} | {' | '.join(cells)} |")
    version = f"gengs {gengs.__version__}, torch {torch.__version__}, "
    return "\n".join([*lines, "", f"{version}Python {platform.python_version()}, seed 0."])


def at(tau: float | None) -> str:
    return "nowhere" if tau is None else f"τ = {tau:.2f}"


if __name__ == "__main__":
    main()
