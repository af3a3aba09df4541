"""Bias and variance of estimators on subsets and rankings.

Variance is that of one gradient over the squared norm of the exact gradient; bias is the distance
of the mean from it, with the standard error of that. The exact gradient is enumerated for n = 10
(8 items in rankings), and otherwise the mean of the swap rule where that is exact (linear and
quadratic costs); elsewhere bias is not known, and the norm is that of the swap rule's mean.

python -m benchmarks.sets_laboratory -o results/sets/laboratory.json
"""

from __future__ import annotations

import argparse
import json
import math
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

import gengs

Cost = Callable[[Tensor], Tensor]
SUBSETS = ((10, 1, 4000), (10, 5, 4000), (100, 10, 1000), (100, 50, 1000), (1000, 100, 100))
RANKINGS = ((8, 4000), (30, 2000), (100, 1000))


def estimators(smooth: bool) -> list[gengs.Estimator]:
    any_cost = [gengs.RLOO(2), gengs.RLOO(8), gengs.FiniteDifference(4)]
    if not smooth:
        return any_cost
    paths = [gengs.MidCDF(), gengs.MidCDF(debias=1), gengs.StraightThroughMean()]
    return [*paths, gengs.GenGS(0.5), gengs.GenGS(0.5, hard=True), *any_cost]


def subset_costs(n: int, seed: int) -> dict[str, tuple[Cost, bool]]:
    """Costs of vectors, and whether they have a slope."""
    generator = torch.Generator().manual_seed(seed)
    a, b, w, v = (torch.randn(s, generator=generator) for s in ((n, n), (n,), (n, 32), (32,)))
    a = a @ a.T / n
    return {
        "linear": (lambda z: z @ b, True),
        "quadratic": (lambda z: ((z @ a) * z).sum(-1) / 2 + z @ b, True),
        "network": (lambda z: gelu(z @ w / math.sqrt(3)) @ v, True),
        "step": (lambda z: (z @ b > 0).float(), False),
    }


def ranking_costs(n: int, seed: int) -> dict[str, tuple[Cost, bool]]:
    """Costs of order matrices: places that count alike, and places that do not."""
    generator = torch.Generator().manual_seed(seed)
    gains = torch.randn(n, generator=generator)
    rough = torch.randn(n, n, generator=generator)
    places = torch.arange(float(n))
    discounts = 1 / torch.log2(2 + places)
    wanted = torch.randperm(n, generator=generator).float()
    return {
        "DCG": (lambda p: ((p @ gains) * discounts).sum(-1), True),
        "rank distance": (lambda p: ((places @ p - wanted) / n).square().sum(-1), True),
        "unrelated places": (lambda p: (p * rough).sum((-1, -2)), True),
        "step": (lambda p: ((p @ gains) * discounts).sum(-1).gt(0).float(), False),
    }


def gradients(
    estimator: gengs.Estimator, cost: Cost, build: Callable[[Tensor], Any], theta: Tensor, rows: int
) -> Tensor:
    found = []
    for start in range(0, rows, 200):
        each = theta.expand(min(200, rows - start), -1).clone().requires_grad_()
        estimator.expect(cost, build(each)).sum().backward()
        found.append(each.grad)
    return torch.cat(found).double()  # type: ignore[arg-type]


def measure(
    title: str, costs: dict[str, tuple[Cost, bool]], build: Any, theta: Tensor, rows: int, few: bool
) -> list[dict[str, Any]]:
    found = []
    for name, (cost, smooth) in costs.items():
        exact = None
        if few:
            leaf = theta.clone().requires_grad_()
            gengs.Exact().expect(cost, build(leaf)).backward()
            exact = leaf.grad.double()  # type: ignore[union-attr]
        elif smooth:
            exact = gradients(gengs.MidCDF(), cost, build, theta, 4 * rows).mean(0)
        for estimator in estimators(smooth):
            torch.manual_seed(0)
            try:
                g = gradients(estimator, cost, build, theta, rows)
            except (TypeError, ValueError):  # it needs a list of all outcomes
                continue
            mean = g.mean(0) if exact is None else exact
            size = mean.square().sum()
            row: dict[str, Any] = {"law": title, "cost": name, "estimator": repr(estimator)}
            row["variance"] = float(g.var(0).sum() / size) if exact is not None else None
            known = few or (
                exact is not None
                and name in ("linear", "quadratic", "DCG", "rank distance", "unrelated places")
            )
            error = float((g.var(0).sum() / len(g) / size).sqrt())
            row["bias"] = float((g.mean(0) - mean).norm() / size.sqrt()) if known else None
            row["error of bias"] = error
            found.append(row)
            show = {k: f"{v:.3g}" for k, v in row.items() if isinstance(v, float)}
            print(f"{title:16s} {name:16s} {estimator!r:36s} {show}", flush=True)
    return found


def membership(n: int, k: int, rows: int, seed: int) -> list[dict[str, Any]]:
    """The first k of an order as a set: given the order, and averaged over its orders."""
    generator = torch.Generator().manual_seed(seed)
    theta, weights = (torch.randn(n, generator=generator) for _ in range(2))
    found: dict[str, list[Tensor]] = {"given the order": [], "averaged over orders": []}
    torch.manual_seed(seed)
    for _ in range(0, rows, 50):
        each = theta.expand(50, n).clone().requires_grad_()
        law = gengs.PlackettLuce(each, k)
        order = law.sample_order()
        faces = law.matrix(order).sum(-2), law.members(order)
        for gradients, face in zip(found.values(), faces, strict=True):
            gradients.append(torch.autograd.grad((face @ weights).sum(), each)[0].double())
    mean = torch.cat(found["averaged over orders"]).mean(0)
    done: list[dict[str, Any]] = []
    for name, gradients in found.items():
        variance = float(torch.cat(gradients).var(0).sum() / mean.square().sum())
        done.append({"law": f"first {k} of {n}", "cost": "linear", "estimator": name})
        done[-1] |= {"variance": variance}
        print(f"first {k} of {n:5d} linear {name:24s} variance {variance:.3g}", flush=True)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=0)
    config = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for n, k in ((10, 3), (100, 10), (784, 50)):
        rows += membership(n, k, 1000, config.seed)
    for n, k, many in SUBSETS:
        theta = torch.randn(n, generator=torch.Generator().manual_seed(config.seed))
        costs = subset_costs(n, config.seed + 1)

        def build(t: Tensor, k: int = k) -> gengs.Subset:
            return gengs.Subset(k, logits=t, validate_args=False)

        rows += measure(f"subset {k} of {n}", costs, build, theta, many, n == 10)
    for n, many in RANKINGS:
        theta = torch.randn(n, generator=torch.Generator().manual_seed(config.seed))
        orders = ranking_costs(n, config.seed + 1)

        def ranked(t: Tensor) -> gengs.PlackettLuce:
            return gengs.PlackettLuce(t, validate_args=False)

        rows += measure(f"ranking of {n}", orders, ranked, theta, many, n == 8)
    if config.out is not None:
        command = f"python -m benchmarks.sets_laboratory --seed {config.seed}"
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        content = {"command": command, "versions": versions, "rows": rows}
        config.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
