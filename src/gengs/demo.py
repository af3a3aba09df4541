"""A short tour on the machine at hand: ``python -m gengs.demo [folder]``."""

from __future__ import annotations

__all__ = ["main"]

import sys
import tempfile
from pathlib import Path

import torch
from torch.distributions import Poisson

from . import RLOO, GenGS, MidCDF, Relaxed, lab, truncate


def main(folder: Path) -> None:
    """Truncate, relax, differentiate, compare, descend; pictures go into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    print("1. A Poisson with rate 7, cut to 12 atoms; the last one carries the tail:")
    rate = torch.tensor(7.0, requires_grad=True)
    q = truncate(Poisson(rate), 12)
    print(f"   {q}\n   {q.certificate}")

    print("\n2. A relaxed draw, differentiable in the rate:")
    z = Relaxed(0.5, q).rsample_value()
    z.backward()
    print(f"   z = {z.item():.3f}, dz/drate = {rate.grad.item():.3f}")  # type: ignore[union-attr]

    print("\n3. Which estimator? Poisson(3), cost (z - 2.6)²:")
    rate = torch.tensor(3.0, requires_grad=True)
    estimators = [RLOO(4), GenGS(0.5), GenGS(0.5, hard=True), MidCDF()]
    result = lab.measure(
        lambda z: (z - 2.6) ** 2, truncate(Poisson(rate), 30), estimators, replicates=50_000
    )
    print("   " + str(result).replace("\n", "\n   "))

    print("\n4. Does it matter? From rate 10 towards target 20, one gradient a step, ten seeds:")
    from .experiments.synthetic import Synthetic

    names = ("RF*", "UnOrd", "GenGS", "mid-CDF")
    run = Path(tempfile.mkdtemp(prefix="synthetic-", dir=folder))
    Synthetic(estimators=names, steps=500, out=run, workers=1).run()

    from .report.truncation_grid import truncation_grid

    picture = folder / "truncation.png"
    truncation_grid().savefig(picture, dpi=150)
    chart = folder / "estimators.png"
    result.plot().savefig(chart, dpi=150)
    pictures = [picture, chart, run / "figure.png", run / "figure.html"]
    print("\n5. Pictures: " + "\n             ".join(str(path.resolve()) for path in pictures))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
