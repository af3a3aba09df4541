"""A relaxed one-hot vector beside torch's ``gumbel_softmax``, forward and backward, by size.

python -m benchmarks.one_hot
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.distributions import OneHotCategorical
from torch.nn.functional import gumbel_softmax

from benchmarks.timing import machine, medians
from gengs import gumbel_relax

ROWS = 1024


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{machine()}\n{ROWS} rows\n\ncategories  torch ms  gengs ms   ratio   unchecked")
    for size in (10, 64, 512):
        logits = torch.randn(ROWS, size, requires_grad=True)

        def ours(validate: bool, logits: torch.Tensor = logits) -> Callable[[], object]:
            def step() -> None:
                law = OneHotCategorical(logits=logits, validate_args=validate)
                gumbel_relax(law, 0.5).square().sum().backward()

            return step

        def theirs(logits: torch.Tensor = logits) -> None:
            gumbel_softmax(logits, 0.5).square().sum().backward()

        times = medians({"torch": theirs, "ours": ours(True), "unchecked": ours(False)}, rounds=60)
        ratio, unchecked = times["ours"] / times["torch"], times["unchecked"] / times["torch"]
        print(
            f"{size:10d} {times['torch']:9.2f} {times['ours']:9.2f} {ratio:7.2f} {unchecked:11.2f}"
        )


if __name__ == "__main__":
    main()
