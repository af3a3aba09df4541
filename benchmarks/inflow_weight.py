"""What the weight of the inflow trades: bias and deviation of one gradient, by enumeration.

One categorical latent with logits from a standard normal picks one of K codes of 16 numbers; the
cost is a network of the code (16-32-1, tanh or none: a quadratic). The K draws are enumerated, so
that nothing here is sampled but the problem itself: medians over ten problems.

    python -m benchmarks.inflow_weight > results/categories/weight.md
"""

from __future__ import annotations

import platform
from statistics import median

import torch
from torch import Tensor

import gengs
from gengs.laws.inflow_weight import inflow_weight
from gengs.laws.one_hot_mid import attach_one_hot

WEIGHTS = (0.0, 0.05, 0.1, 0.25, 0.5)
SIZES = (2, 16, 128, 1024)
PROBLEMS = 10


def errors(k: int, smooth: bool, weight: float, seed: int) -> tuple[float, float]:
    """The bias and the standard deviation of a gradient, in units of the exact one's norm."""
    torch.manual_seed(seed)
    logits = torch.randn(k, dtype=torch.float64, requires_grad=True)
    codes = torch.randn(k, 16, dtype=torch.float64)
    first, second = torch.randn(16, 32).double() / 4, torch.randn(32).double()

    def cost(value: Tensor) -> Tensor:
        hidden = value @ first
        return (hidden.tanh() if smooth else hidden.square()) @ second

    p = logits.softmax(-1)
    (exact,) = torch.autograd.grad(p @ cost(codes), logits, retain_graph=True)
    p = p.detach()
    # each of the K draws is an element of a batch with logits of its own
    own = logits.detach().expand(k, k).clone().requires_grad_()
    z = attach_one_hot(torch.arange(k), p.expand(k, k), logits=own, weight=weight)
    (single,) = torch.autograd.grad(cost(z @ codes).sum(), own)
    mean = p @ single
    variance = (p @ (single - mean).square()).sum()
    return float((mean - exact).norm() / exact.norm()), float(variance.sqrt() / exact.norm())


def main() -> None:
    torch.set_num_threads(1)
    print("# The weight of the inflow: bias and deviation\n")
    print("`python -m benchmarks.inflow_weight > results/categories/weight.md`\n")
    print(
        "One categorical latent, logits from a standard normal, picks one of K codes of 16 "
        "numbers; the cost is a function of the code. Bias and standard deviation of one gradient "
        "in the logits, in units of the exact gradient's norm, by enumeration of the K draws; "
        f"medians over {PROBLEMS} problems (seeds 0 to {PROBLEMS - 1}). gengs "
        f"{gengs.__version__}, torch {torch.__version__}, Python {platform.python_version()}.\n"
    )
    for smooth, name in ((False, "A quadratic cost"), (True, "A network: 16-32-1, tanh")):
        print(f"## {name}\n")
        print(f"| weight | {' | '.join(f'K = {k:,}' for k in SIZES)} |")
        print(f"| --- |{' ---: |' * len(SIZES)}")
        for weight in (*WEIGHTS, None):
            cells = []
            for k in SIZES:
                w = inflow_weight(k) if weight is None else weight
                found = [errors(k, smooth, w, seed) for seed in range(PROBLEMS)]
                bias, deviation = (median(values) for values in zip(*found, strict=True))
                cells.append(f"{bias:.2f}, {deviation:.2f}")
            print(f"| {'default' if weight is None else f'{weight:g}'} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
