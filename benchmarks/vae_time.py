"""Which estimator trains a VAE in the least time? The curves of a study, against processor time.

A study's own clock says what else its machine did. So the steps of one run of each estimator are
timed here, in turns, on one thread; a run's time is their number times that. Evaluations are not
counted. Of several seeds the mean is drawn. At equal time: after as long as the quickest of them
takes for all its steps.

    gengs study results/vae/at-length.toml -o runs/at-length
    GENGS_DATA=... python -m benchmarks.vae_time runs/at-length --row "Pois(2)"
    gengs study results/vae/ablation.toml -o runs/ablation
    GENGS_DATA=... python -m benchmarks.vae_time runs/ablation --to 120 110 105 100 --part train
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

import gengs
from gengs.lab.palette import looks
from gengs_experiments.experiments.vae import build
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.runs.config import from_json

Curve = dict[int, float]


def read_curves(
    folder: Path, row: str | None, data: str, part: str
) -> dict[str, tuple[VaeConfig, list[Curve]]]:
    """The settings and the curves (one for each seed that is done) of each estimator."""
    found: dict[str, tuple[VaeConfig, list[Curve]]] = {}
    for planned in json.loads((folder / "plan.json").read_text())["runs"]:
        run, labels = folder / "runs" / planned["id"], planned["labels"]
        done = (run / "complete.json").exists()
        if done and labels["row"] == (row or labels["row"]) and labels["data"] == data:
            lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
            curve = {r["step"]: r[f"nelbo_{part}"] for r in lines if r["kind"] == "evaluation"}
            config = from_json(VaeConfig, planned["config"])
            name = labels["column"] if row else f"{labels['row']}: {labels['column']}"
            found.setdefault(name, (config, []))[1].append(curve)
    return found


def stepper(config: VaeConfig, images: Any) -> Callable[[], object]:
    """One training step, as ``gengs vae`` takes it."""
    task, _ = build(config, images)
    numbers = count()
    (optimizer,) = task.optimizers

    def step() -> None:
        optimizer.zero_grad()
        loss = task.step(task.data.batch(next(numbers), 0, 1))
        cast(Tensor, loss).backward()
        optimizer.step()

    return step


def milliseconds(steps: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Of one step of each: the median over rounds of the quickest of five, in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(rounds):
        for name, step in steps.items():
            turn = []
            for _ in range(5):
                start = time.process_time()
                step()
                turn.append(time.process_time() - start)
            times[name].append(min(turn))
    return {name: 1e3 * float(np.median(own)) for name, own in times.items()}


def seconds_to(target: float, curve: Curve, per_step: float) -> str:
    """When a curve is at or below a value for the first time, between evaluations on a line."""
    steps, values = np.array(list(curve)), np.array(list(curve.values()))
    below = np.flatnonzero(values <= target)
    if not len(below):
        return ""
    at = below[0]
    if at == 0:
        return f"< {steps[0] * per_step:.1f}"
    share = (values[at - 1] - target) / (values[at - 1] - values[at])
    return f"{(steps[at - 1] + share * (steps[at] - steps[at - 1])) * per_step:.1f}"


def value_at(seconds: float, curve: Curve, per_step: float) -> float:
    """The value at a time, between evaluations on a line."""
    return float(np.interp(seconds / per_step, list(curve), list(curve.values())))


def draw(curves: dict[str, tuple[Curve, float]], part: str, path: Path) -> None:
    """The curves against time, from the first evaluation on."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "gengs", "font.size": 10}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for name, look in looks(curves).items():
        curve, per_step = curves[name]
        seconds = [step * per_step for step in curve]
        axes.plot(seconds, list(curve.values()), label=name, **look.line)
    axes.set(xlabel="seconds of one core", ylabel=f"negative ELBO on {part} images, nats")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--row", help="of this row of the study alone")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--part", choices=["test", "train"], default="test")
    parser.add_argument("--to", type=float, nargs="+", default=[100, 95, 90, 85])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = read_curves(options.folder, options.row, options.data, options.part)
    if not found:
        sys.exit(f"no finished run of {options.row} on {options.data} in {options.folder}")
    images = next(iter(found.values()))[0].load(None)
    per_step = milliseconds({n: stepper(c, images) for n, (c, _) in found.items()}, options.rounds)
    curves = {}
    for name, (_, members) in found.items():
        mean = {step: float(np.mean([one[step] for one in members])) for step in members[0]}
        curves[name] = mean, per_step[name] / 1e3
    print("# How long until a VAE is good\n")
    print(
        f"`GENGS_DATA=... python -m benchmarks.vae_time {shlex.join(sys.argv[1:])}`. Seconds of "
        f"one core until the negative ELBO on {options.part} images (exact draws) is at a value, "
        "evaluations left out; empty: not within this training. A step is timed in turns with "
        "the others, on one thread of a busy machine: good to some 10 %. gengs "
        f"{gengs.__version__}, torch {torch.__version__}, Python {platform.python_version()}.\n"
    )
    if options.picture:
        draw(curves, options.part, options.picture)
        print(f"![curves against time]({options.picture.name})\n")
    equal = min(max(curve) * pace for curve, pace in curves.values())
    heads = ["seeds", "ms a step", *(f"seconds to {target:g}" for target in options.to)]
    heads += [f"at {equal:.0f} s", "seconds in all", "at the end"]
    print(f"| estimator | {' | '.join(heads)} |")
    print("| --- |" + " ---: |" * len(heads))
    for name, (curve, pace) in sorted(curves.items(), key=lambda item: [*item[1][0].values()][-1]):
        last, value = [*curve.items()][-1]
        cells = [str(len(found[name][1])), f"{1e3 * pace:.1f}"]
        cells += [seconds_to(target, curve, pace) for target in options.to]
        cells += [f"{value_at(equal, curve, pace):.2f}", f"{last * pace:.1f}", f"{value:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |".replace("*", r"\*"))


if __name__ == "__main__":
    main()
