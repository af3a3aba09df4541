"""A weight of the inflow that follows the data, beside the default: does it train better?

The two halves of the gradient in the logits, a (out of the draw) and b (into it), are mixed as
(1 - w) a + w b, and (a + b) / 2 has the right mean for quadratic costs. With d = b - a the
expected squared distance of the mixture from that mean is smallest at

    w = (|E d|² / 2 - cov(a, d) / n) / (|E d|² + var(d) / n),

where n = 1 counts the noise of one step, and a larger n that of a mean over n steps. The moments
are running means over some hundred steps, of batch sums for each latent ("by latent"), or of
the gradient in the encoder's parameters ("by parameters", which takes a second way back).

    GENGS_DATA=... python -m benchmarks.categories_weights results/categories/data-weights.jsonl \
        --task vae --categories 128 --steps 1000 --batch 64 --rate 0.004
    python -m benchmarks.categories_weights results/categories/data-weights.jsonl --table
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from torch.autograd import grad

import gengs
from benchmarks.categories import evaluate, nats, read
from benchmarks.categories_tasks import TASKS
from gengs.laws.inflow_weight import inflow_weight

KINDS = (
    "default",
    "by latent, n = 1",
    "by latent, n = 100",
    "by parameters, n = 1",
    "by parameters, n = 100",
)
Row = dict[str, Any]
DECAY, FIRST = 0.99, 20  # of the running means; steps with the default before they are asked


class Moments:
    """Running means of a, d = b - a and their squared sizes, and the best weight by them."""

    def __init__(self, n: float) -> None:
        self.n, self.steps, self.norm, self.squares = n, 0, 0.0, 0.0
        self.sums: list[Tensor] = []

    def update(self, a: Tensor, b: Tensor) -> None:
        """Take in one step's halves, ``(*groups, numbers)``."""
        d = b - a
        found = [a, d, (a * d).sum(-1), (d * d).sum(-1)]
        old = self.sums or [torch.zeros_like(x) for x in found]
        self.sums = [DECAY * x + (1 - DECAY) * y for x, y in zip(old, found, strict=True)]
        self.norm = DECAY * self.norm + 1 - DECAY
        self.squares = DECAY**2 * self.squares + (1 - DECAY) ** 2
        self.steps += 1

    def weight(self) -> Tensor:
        """For each group, without the bias that squares of noisy means have."""
        a, d, ad, dd = (x / self.norm for x in self.sums)
        share = self.squares / self.norm**2  # one over the effective number of steps
        signal = (((d * d).sum(-1) - share * dd) / (1 - share)).clamp_min(0)
        cross = ((a * d).sum(-1) - share * ad) / (1 - share)
        best = signal / 2 - (ad - cross) / self.n
        return (best / (signal + (dd - signal) / self.n)).clamp(0, 0.5)


def run(task: str, k: int, kind: str, rate: float, seed: int, steps: int, size: int) -> Row:
    torch.manual_seed(seed)
    model = TASKS[task](k)
    weights: list[float] = []
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    generator, parameters = torch.Generator().manual_seed(seed), list(model.parameters())
    moments = Moments(float(kind.rpartition(" ")[2]) if kind != "default" else 1.0)
    for _ in range(steps):
        batch = model.batch(0, size, generator)
        logits = model.logits(*batch)
        p = logits.detach().softmax(-1)
        z = gengs.OneHot(logits=logits.detach(), validate_args=False).sample().requires_grad_()
        loss, added = model.cost(*batch)(z.unsqueeze(0))[0], model.added(logits)
        cotangent, *rest = grad(loss.mean(), [z, *parameters], allow_unused=True)
        centre = (p * cotangent).sum(-1, keepdim=True)
        out = p * (cotangent - centre)
        into = (z.detach() - p) * ((z.detach() * cotangent).sum(-1, keepdim=True) - centre)
        weight = torch.tensor(inflow_weight(k))
        if kind != "default" and moments.steps >= FIRST:
            weight = moments.weight()
        if kind.startswith("by latent"):
            moments.update(out.sum(0), into.sum(0))  # (L, K)
            weight = weight.unsqueeze(-1)
        elif kind.startswith("by parameters"):
            moments.update(*(flat(logits, parameters, half) for half in (out, into)))
        for parameter, slope in zip(parameters, rest, strict=True):
            parameter.grad = None if slope is None else slope.contiguous()
        mixed = (1 - weight) * out + weight * into
        if added.requires_grad:
            torch.autograd.backward([logits, added.mean()], [mixed, None])
        else:
            logits.backward(mixed)
        optimizer.step()
        weights.append(float(weight.mean()))
    test, used = evaluate(model, 1, 4000)
    tenth = steps // 10
    return {
        "train": evaluate(model, 0, 2000)[0],
        "test": test,
        "used": used,
        "weights": [round(mean(weights[i : i + tenth]), 3) for i in range(0, steps, tenth)],
    }


def flat(logits: Tensor, parameters: Sequence[Tensor], half: Tensor) -> Tensor:
    """The gradient in all parameters that the logits depend on, as one vector."""
    found = grad(logits, parameters, half, retain_graph=True, allow_unused=True)
    return torch.cat([x.reshape(-1) for x in found if x is not None])


def table(lines: list[Row]) -> str:
    """Test losses, and the mean weight in the last tenth, by setting."""
    settings = list(dict.fromkeys((x["task"], x["K"]) for x in lines))
    heads = " | ".join(f"{task}, K = {k:,}" for task, k in settings)
    out = [f"| weight | {heads} |", f"| --- |{' ---: |' * len(settings)}"]
    for kind in KINDS:
        cells = []
        for setting in settings:
            mine = [x for x in lines if (x["task"], x["K"]) == setting and x["kind"] == kind]
            last = f" ({mean(x['weights'][-1] for x in mine):.2f})" if mine else ""
            cells.append(nats([x["test"] for x in mine]) + last if mine else "")
        out.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(out)


def main() -> None:
    torch.set_num_threads(1)
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--table", action="store_true", help="print the table")
    options.add_argument("--task", default="vae", choices=TASKS)
    options.add_argument("--categories", type=int, default=128)
    options.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    options.add_argument("--rate", type=float, default=0.004)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--steps", type=int, default=1000)
    options.add_argument("--batch", type=int, default=64)
    chosen = options.parse_args()
    if chosen.table:
        print(table(read(chosen.file)))
        return
    names = ("task", "K", "kind", "lr", "seed", "steps", "batch")
    for kind in chosen.kinds:
        for seed in chosen.seeds:
            setting = (chosen.task, chosen.categories, kind, chosen.rate, seed)
            key = dict(zip(names, (*setting, chosen.steps, chosen.batch), strict=True))
            if any(key.items() <= line.items() for line in read(chosen.file)):
                continue
            line = key | run(*setting, chosen.steps, chosen.batch)
            with chosen.file.open("a") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
