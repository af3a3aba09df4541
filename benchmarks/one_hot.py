"""One step on one-hot vectors beside ``F.gumbel_softmax(hard=True)``: time and memory, by size.

A step is a draw, a product with a table of codes, a cost, and the way back to the logits.

    python -m benchmarks.one_hot
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import OneHotCategorical
from torch.nn.functional import gumbel_softmax

import gengs
from benchmarks.timing import aim, machine, medians, most_held

ROWS = 2048  # 64 positions of 32 examples
ROUNDS = 8
SIZES = (16, 128, 1024)
TORCH = "F.gumbel_softmax(hard=True)"
DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    TORCH: lambda x: gumbel_softmax(x, 1.0, hard=True),
    "rsample(OneHot)": lambda x: gengs.rsample(gengs.OneHot(logits=x)),
    "rsample(OneHotCategorical)": lambda x: gengs.rsample(OneHotCategorical(logits=x)),
    "gumbel_relax(hard=True)": lambda x: gengs.gumbel_relax(gengs.OneHot(logits=x), 1.0, hard=True),
    "StraightThroughMean": lambda x: gengs.rsample(
        gengs.OneHot(logits=x), by=gengs.StraightThroughMean()
    ),
    "ReinMax": lambda x: gengs.rsample(gengs.OneHot(logits=x), by=gengs.ReinMax()),
    "GumbelRao(0.5)": lambda x: gengs.rsample(gengs.OneHot(logits=x), by=gengs.GumbelRao(0.5)),
    "GumbelRao(0.3)": lambda x: gengs.rsample(gengs.OneHot(logits=x), by=gengs.GumbelRao(0.3)),
}


def step_of(name: str, size: int) -> Callable[[], None]:
    torch.manual_seed(0)
    logits = torch.randn(ROWS, size, requires_grad=True)
    codes = torch.randn(size, 8)

    def step() -> None:
        logits.grad = None
        (DRAWS[name](logits) @ codes).square().sum().backward()

    return step


def main() -> None:
    torch.set_num_threads(1)
    print(f"{machine()}\n{ROWS} rows; milliseconds a step, and in units of torch's\n")
    print(f"| | {' | '.join(f'K = {size:,}' for size in SIZES)} | MiB at K = {SIZES[-1]:,} |")
    print(f"| --- |{' ---: |' * (len(SIZES) + 1)}")
    times = {size: medians({n: step_of(n, size) for n in DRAWS}, rounds=ROUNDS) for size in SIZES}
    memory = {name: most_held(step_of(name, SIZES[-1])) for name in DRAWS}
    for name in DRAWS:
        cells = [
            f"{times[size][name]:.2f} ({times[size][name] / times[size][TORCH]:.2f})"
            for size in SIZES
        ]
        print(f"| `{name}` | {' | '.join(cells)} | {memory[name]:.1f} |")
    ratio = times[SIZES[-1]]["rsample(OneHot)"] / times[SIZES[-1]][TORCH]
    print(f"\ntime of the default, in units of torch's: {ratio:.2f}, {aim(1.1, False)}")
    more = memory["rsample(OneHot)"] / memory[TORCH]
    print(f"its memory, in units of torch's: {more:.2f}, {aim(1.0, False)}")
    rao = times[SIZES[-1]]["GumbelRao(0.5)"] / times[SIZES[-1]][TORCH]
    print(f"Gumbel-Rao, ten draws of noise: {rao:.2f}, {aim(3.0, False)}")


if __name__ == "__main__":
    main()
