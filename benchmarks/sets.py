"""What subsets and rankings cost, as ratios within one run.

python -m benchmarks.sets
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import gumbel_softmax

import gengs
from benchmarks.timing import machine, medians


def relaxed_top_k(logits: Tensor, k: int, tau: float) -> Tensor:
    """The k largest of perturbed scores, by k softmaxes in a row (Xie & Ermon, 2019)."""
    scores = logits - torch.empty_like(logits).exponential_().log()
    total, mask = torch.zeros_like(scores), torch.zeros_like(scores)
    for _ in range(k):
        scores = scores + torch.log1p(-mask.clamp_max(1 - 1e-6))
        mask = (scores / tau).softmax(-1)
        total = total + mask
    return total


def subset(n: int, k: int, batch: int) -> dict[str, Callable[[], object]]:
    logits = torch.randn(batch, n, requires_grad=True)
    cost = torch.randn(batch, n)

    def law() -> gengs.Subset:
        return gengs.Subset(k, logits=logits, validate_args=False)

    def by(estimator: gengs.Estimator) -> Callable[[], object]:
        return lambda: (gengs.rsample(law(), by=estimator) * cost).sum().backward()

    return {
        "log-partition": lambda: law().log_partition.sum().backward(),
        "swap rule": lambda: (gengs.rsample(law()) * cost).sum().backward(),
        "SIMPLE": by(gengs.StraightThroughMean()),
        "GenGS(0.5)": by(gengs.GenGS(0.5)),
        "relaxed top-k": lambda: (relaxed_top_k(logits, k, 0.5) * cost).sum().backward(),
    }


def ranking(n: int, batch: int = 256) -> dict[str, Callable[[], object]]:
    logits = torch.randn(batch, n, requires_grad=True)
    cost = torch.randn(batch, n)

    def ranks() -> None:
        law = gengs.PlackettLuce(logits, validate_args=False)
        (law.ranks(law.sample_order()) * cost).sum().backward()

    def members() -> None:
        law = gengs.PlackettLuce(logits, 10, validate_args=False)
        (law.members(law.sample_order()) * cost).sum().backward()

    return {
        "gumbel_softmax": lambda: (gumbel_softmax(logits, 0.5) * cost).sum().backward(),
        "argsort": lambda: logits.detach().argsort(-1),
        "ranks": ranks,
        "first 10": members,
    }


def show(title: str, candidates: dict[str, Callable[[], object]], rounds: int) -> None:
    times = medians(candidates, rounds)
    base = next(iter(times.values()))
    cells = "  ".join(f"{name} {ms:.2f} ({ms / base:.2f})" for name, ms in times.items())
    print(f"{title:22s} {cells}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(
        f"{machine()}\nmilliseconds of processor time forward and backward (ratio to the first)\n"
    )
    for n, k, batch in ((100, 10, 256), (784, 50, 64)):
        show(f"subset {k} of {n} × {batch}", subset(n, k, batch), 3)
    for n in (10, 30, 100, 300, 1000):
        show(f"ranking {n} × 256", ranking(n), 20 if n < 1000 else 6)


if __name__ == "__main__":
    main()
