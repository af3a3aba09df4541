"""The paper's Figure 2a: what truncation level and temperature do to a relaxed Poisson."""

__all__ = ["truncation_grid"]

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch.distributions import Poisson

from gengs.tables.relaxed import Relaxed
from gengs.tables.truncation import truncate


def truncation_grid(
    rate: float = 7.0,
    levels: Sequence[int] = (9, 12, 15, 20),
    temperatures: Sequence[float] = (1.0, 0.5, 0.25, 0.1),
    draws: int = 20_000,
    seed: int = 0,
) -> Figure:
    """Histograms of relaxed values over the PMF, for each truncation level and temperature.

    From left to right the level grows, and the stick of lumped mass on the last atom vanishes;
    from top to bottom the temperature falls, and the values gather on the integers.
    """
    figure = Figure(figsize=(2.6 * len(levels), 1.75 * len(temperatures)), layout="constrained")
    grid = figure.subplots(len(temperatures), len(levels), sharex=True, sharey="col", squeeze=False)
    k = torch.arange(max(levels))
    pmf = Poisson(rate).log_prob(k.float()).exp()
    # a quarter wide, centred on the integers: at low temperatures one bin holds an atom
    edges = torch.arange(-0.125, len(k), 0.25)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for column, level in zip(grid.T, levels, strict=True):
            law = truncate(Poisson(torch.tensor(rate)), level, validate_args=False)
            lost = float(law.certificate.lost_mass) if law.certificate else 0.0
            column[0].set_title(f"n = {level}, {lost:.1%} beyond", fontsize=9)
            for axes, temperature in zip(column, temperatures, strict=True):
                values = Relaxed(temperature, law).rsample_value((draws,))
                shares = torch.histogram(values, bins=edges).hist / draws
                axes.vlines(k, 0, pmf, color="0.85", lw=6, zorder=1, label=f"Poisson({rate:g})")
                axes.stairs(shares, edges, fill=True, color="#2171b5", label="relaxed draws")
                axes.plot(law.atoms, law.probs, "_", c="#d94801", ms=7, label="truncated law")
                top = 1.08 * max(float(law.probs.max()), float(pmf.max()))
                axes.set(xlim=(-0.7, len(k) - 0.3), ylim=(0, top))
                axes.tick_params(labelsize=7)
    for axes, temperature in zip(grid[:, 0], temperatures, strict=True):
        axes.set_ylabel(f"τ = {temperature:g}", fontsize=9)
    handles, labels = grid[0][-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(f"Poisson({rate:g}): truncation level × temperature", fontsize=11)
    return figure
