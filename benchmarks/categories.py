"""Categories by number: small models trained by every estimator, each at its best learning rate.

Of three learning rates the one with the smallest loss on training data (seed 0, exact draws) is
kept, and run with the other seeds. Runs are lines of a file, each with its commit; those that are
there are not run again.

    GENGS_DATA=... OMP_NUM_THREADS=1 python -m benchmarks.categories results/categories/runs.jsonl \
        --task vae --categories 128 --steps 1000 --batch 64 --seeds 0 1 2
    python -m benchmarks.categories results/categories/runs.jsonl --table
    python -m benchmarks.categories results/categories/runs.jsonl --overview

Time and memory of a step are the same for all seeds, so they are measured apart, one setting after
the other (``--prices``: of all settings in the file), and kept in ``prices.jsonl`` beside the runs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gumbel_softmax

import gengs
from benchmarks.categories_tasks import TASKS, Codes, Cost, Recall
from benchmarks.spread import spread
from benchmarks.timing import most_held

Method = Callable[[Cost, Tensor, float], Tensor]
"""From a cost, logits ``(B, L, K)`` and the share of the training that is done to a loss."""
RATES = (2e-3, 4e-3, 8e-3)


def pathwise(draw: Callable[[Tensor, float], Tensor]) -> Method:
    return lambda cost, logits, done: cost(draw(logits, done).unsqueeze(0)).mean(0)


def by(estimator: gengs.Estimator) -> Method:
    def loss(cost: Cost, logits: Tensor, done: float) -> Tensor:
        law = gengs.OneHot(logits=logits, validate_args=False)
        q = torch.distributions.Independent(law, 1, validate_args=False)
        return estimator.expect(cost, q)

    return loss


def falling(done: float) -> float:
    """A temperature from 1 to 0.1."""
    return 10.0**-done


METHODS: dict[str, Callable[[], Method]] = {
    "MidCDF()": lambda: by(gengs.MidCDF()),
    "MidCDF(weight=0.5)": lambda: by(gengs.MidCDF(weight=0.5)),
    "ReinMax(1.3)": lambda: by(gengs.ReinMax(1.3)),
    "straight-through": lambda: by(gengs.StraightThroughMean()),
    "Gumbel, hard, τ = 1": lambda: pathwise(lambda x, done: gumbel_softmax(x, 1.0, hard=True)),
    "Gumbel, hard, τ to 0.1": lambda: pathwise(
        lambda x, done: gumbel_softmax(x, falling(done), hard=True)
    ),
    "Gumbel, soft, τ = 1": lambda: pathwise(lambda x, done: gumbel_softmax(x, 1.0)),
    "Gumbel, soft, τ to 0.1": lambda: pathwise(lambda x, done: gumbel_softmax(x, falling(done))),
    "GumbelRao(0.5)": lambda: by(gengs.GumbelRao(0.5)),
    "IGR(0.1)": lambda: by(gengs.IGR(0.1)),
    "MidCDF(4)": lambda: by(gengs.MidCDF(4)),
    "RLOO(4)": lambda: by(gengs.RLOO(4)),
    "UnOrd(4)": lambda: by(gengs.UnOrd(4)),
    "Exact()": lambda: by(gengs.Exact()),  # of one latent only: it sums over all outcomes
}


@torch.no_grad()
def evaluate(model: Codes | Recall, part: int, size: int) -> tuple[float, int]:
    """The loss with exact draws, and the number of different codes among them."""
    model.eval()
    generator, total, used = torch.Generator().manual_seed(123), 0.0, set()
    with torch.random.fork_rng():
        torch.manual_seed(7)
        for _ in range(size // 250):
            batch = model.batch(part, 250, generator)
            logits = model.logits(*batch)
            z = gengs.OneHot(logits=logits).sample()
            total += float((model.cost(*batch)(z.unsqueeze(0))[0] + model.added(logits)).sum())
            index = z.argmax(-1)
            if isinstance(model, Codes) and len(model.codes) > 1:  # a codebook for each latent
                index = index + torch.arange(model.latents) * model.categories
            used |= set(index.flatten().tolist())
    model.train()
    return total / size, len(used)


def training(
    task: str, k: int, method: str, rate: float, seed: int, size: int
) -> tuple[Codes | Recall, Callable[[float], None]]:
    """A new model, and one step of its training, given the share of the training that is done."""
    torch.manual_seed(seed)
    model, loss_of = TASKS[task](k), METHODS[method]()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    generator = torch.Generator().manual_seed(seed)

    def step(done: float) -> None:
        batch = model.batch(0, size, generator)
        logits = model.logits(*batch)
        loss = loss_of(model.cost(*batch), logits, done) + model.added(logits)
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()

    return model, step


def run(task: str, k: int, method: str, rate: float, seed: int, steps: int, size: int) -> Any:
    model, step = training(task, k, method, rate, seed, size)
    for done in range(steps):
        step(done / steps)
    train, (test, used) = evaluate(model, 0, 2000)[0], evaluate(model, 1, 4000)
    found = {"train": train, "test": test, "used": used}
    return {name: value if math.isfinite(value) else 1e9 for name, value in found.items()}


def price(task: str, k: int, method: str, size: int) -> dict[str, float]:
    """The median of a step's processor time in ms; what it holds at most, in MiB.

    Held is what a step makes beyond what it finds and leaves (weights, gradients).
    """
    step = training(task, k, method, RATES[0], 0, size)[1]
    seconds = []
    for _ in range(5 + 40):
        start = time.process_time()
        step(0.0)
        seconds.append(time.process_time() - start)
    return {"ms": 1e3 * median(seconds[5:]), "MiB": most_held(lambda: step(0.0))}


def main() -> None:
    torch.set_num_threads(1)
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--table", action="store_true", help="print a table for each setting")
    options.add_argument("--overview", action="store_true", help="print all test losses")
    options.add_argument("--prices", action="store_true", help="measure time and memory of a step")
    options.add_argument("--task", nargs="+", default=["vae"], choices=TASKS)
    options.add_argument("--categories", nargs="+", type=int, default=[128])
    options.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options.add_argument("--rates", nargs="+", type=float, default=RATES)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--steps", type=int, default=1000)
    options.add_argument("--batch", type=int, default=64)
    chosen = options.parse_args()
    beside = chosen.file.with_name("prices.jsonl")
    if chosen.table:
        print(tables(read(chosen.file), read(beside)))
        return
    if chosen.prices:
        for line in unmeasured(read(chosen.file), read(beside)):
            write(beside, line | price(*line.values()))
        return
    if chosen.overview:
        print(overview(read(chosen.file)))
        return
    commit = current_commit()

    def one(task: str, k: int, method: str, rate: float, seed: int) -> Any:
        names = ("task", "K", "method", "lr", "seed", "steps", "batch")
        key = dict(
            zip(names, (task, k, method, rate, seed, chosen.steps, chosen.batch), strict=True)
        )
        for line in read(chosen.file):
            if key.items() <= line.items():
                return line
        line = key | run(task, k, method, rate, seed, chosen.steps, chosen.batch)
        line["commit"] = commit
        write(chosen.file, line)
        return line

    for task in chosen.task:
        for k in chosen.categories:
            for method in chosen.methods:
                if method == "Exact()" and TASKS[task](k).latents > 1:
                    continue
                tried = {rate: one(task, k, method, rate, 0)["train"] for rate in chosen.rates}
                best = min(tried, key=lambda rate: tried[rate])
                for seed in chosen.seeds:
                    one(task, k, method, best, seed)


def current_commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def write(file: Path, line: dict[str, Any]) -> None:
    with file.open("a") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(line, flush=True)


def unmeasured(lines: list[dict[str, Any]], measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Task, K, method and batch of the runs whose price is not known yet, each once."""
    settings = [{name: line[name] for name in ("task", "K", "method", "batch")} for line in lines]
    known = [{k: v for k, v in line.items() if k not in ("ms", "MiB")} for line in measured]
    return [x for i, x in enumerate(settings) if x not in known and x not in settings[:i]]


def tables(lines: list[dict[str, Any]], prices: list[dict[str, Any]]) -> str:
    """A table for each task and number of categories, the best on test data first."""
    parts = []
    names = ("task", "K", "steps", "batch")
    found = {tuple(line[name] for name in names) for line in lines}
    for setting in sorted(found, key=lambda x: (list(TASKS).index(x[0]), *x[1:])):
        these = [line for line in lines if tuple(line[name] for name in names) == setting]
        task, k, steps, batch = setting
        paid = {
            x["method"]: [f"{x['ms']:.1f}", f"{x['MiB']:.1f}"]
            for x in prices
            if (x["task"], x["K"], x["batch"]) == (task, k, batch)
        }
        rows = [
            row(method, these, paid.get(method, ["", ""]))
            for method in dict.fromkeys(x["method"] for x in these)
        ]
        head = [
            f"## {task}, K = {k:,}: {steps} steps, batches of {batch}\n",
            "| estimator | learning rate | seeds | test | train | codes in use | ms a step | MiB |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        parts.append("\n".join([*head, *(text for _, text in sorted(rows))]))
    return "\n\n".join(parts)


def overview(lines: list[dict[str, Any]]) -> str:
    """Two tables, of VAEs and of the other tasks: test losses of estimators by settings.

    Of a setting with several lengths of training the one that most estimators have, the longest of
    equals. The smallest mean of a column is in bold.
    """
    lengths: dict[tuple[str, int], dict[int, set[str]]] = {}
    for x in lines:
        methods = lengths.setdefault((x["task"], x["K"]), {}).setdefault(x["steps"], set())
        methods.add(x["method"])
    columns = {}
    for task, k in sorted(lengths, key=lambda key: (list(TASKS).index(key[0]), key[1])):
        steps = max(lengths[task, k], key=lambda n: (len(lengths[task, k][n]), n))
        these = [x for x in lines if (x["task"], x["K"], x["steps"]) == (task, k, steps)]
        found = {method: at_best_rate(method, these) for method in METHODS}
        tests = {name: [x["test"] for x in runs] for name, runs in found.items() if runs}
        best = min(tests, key=lambda name: mean(tests[name]))
        cells = {name: nats(values) for name, values in tests.items()}
        columns[task, k] = cells | {best: f"**{cells[best]}**"}
    vaes = {key: column for key, column in columns.items() if key[0] in ("vae", "omniglot")}
    others = {key: column for key, column in columns.items() if key not in vaes}
    return "\n\n".join(_overview(part) for part in (vaes, others) if part)


def _overview(columns: dict[tuple[str, int], dict[str, str]]) -> str:
    heads = " | ".join(f"{task}, K = {k:,}" for task, k in columns)
    out = [f"| estimator | {heads} |", f"| --- |{' ---: |' * len(columns)}"]
    for name in METHODS:
        cells = [column.get(name, "") for column in columns.values()]
        if any(cells):
            out.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(out)


def at_best_rate(method: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of a method with the learning rate that is best on training data, seed 0."""
    mine = [line for line in lines if line["method"] == method]
    if not mine:
        return []
    rate = min((x for x in mine if x["seed"] == 0), key=lambda x: x["train"])["lr"]
    return [line for line in mine if line["lr"] == rate]


def row(method: str, lines: list[dict[str, Any]], paid: list[str]) -> tuple[float, str]:
    """The mean on test data, and the line of the table."""
    seeds = at_best_rate(method, lines)
    test, train, used = ([x[name] for x in seeds] for name in ("test", "train", "used"))
    cells = [method, f"{seeds[0]['lr']:g}", str(len(seeds)), nats(test), nats(train)]
    cells += [f"{mean(used):.0f}", *paid]
    return mean(test), "| " + " | ".join(cells) + " |"


def nats(values: list[float]) -> str:
    return spread(values, 1 if mean(values) > 10 else 3)


if __name__ == "__main__":
    main()
