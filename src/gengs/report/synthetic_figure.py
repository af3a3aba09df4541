"""The paper's Figure 3 for one law: loss, variance and both kinds of bias over the descent."""

from __future__ import annotations

__all__ = ["draw_descents"]

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .synthetic_curves import PANELS, Band, Curve
from .synthetic_style import GROUPS, Style, styles

_NOTE = (
    "Moving averages; bands: two standard errors over the seeds. "
    "Third panel: drawn where it is more than four standard errors from zero."
)


def draw_descents(curves: Sequence[Curve], title: str) -> Figure:
    """Four panels on log scales, with bands of two standard errors, and a legend by kind."""
    looks = styles((curve.label, curve.group) for curve in curves)
    figure = Figure(figsize=(12.5, 7.6), layout="constrained")
    grid = figure.subplots(2, 2, sharex=True)
    for axes, (panel, name) in zip(grid.flat, PANELS.items(), strict=True):
        for curve in curves:
            if panel in curve.panels:
                _draw(axes, curve.panels[panel], panel, looks[curve.label])
        _scales(axes, panel, curves)
        axes.set_title(name, fontsize=10, loc="left")
        axes.grid(alpha=0.25, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, which="both")
        axes.margins(x=0.01)
    for axes in grid[-1]:
        axes.set_xlabel("step (square-root scale)", fontsize=9)
    figure.legend(
        handles=_legend(curves, looks),
        loc="outside right upper",
        fontsize=8.5,
        frameon=False,
        handlelength=2.6,
        labelspacing=0.35,
    )
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(_NOTE, fontsize=8, color="0.4", x=0.01, ha="left")
    return figure


def _draw(axes: Any, band: Band, panel: str, look: Style) -> None:
    order = 3 + look.width
    line = {"color": look.colour, "ls": look.dash, "lw": look.width, "zorder": order}
    if panel == "bias":
        axes.plot(band.step, np.where(band.clear, band.mean, np.nan), **line)
        return
    axes.plot(band.step, band.mean, **line)
    shade = 0.14 if look.bold else 0.035
    axes.fill_between(
        band.step, band.low, band.high, color=look.colour, alpha=shade, lw=0, zorder=order - 1
    )


def _scales(axes: Any, panel: str, curves: Sequence[Curve]) -> None:
    """A log scale; along the steps a square root, as most happens early."""
    axes.set_xscale("function", functions=(_root, np.square))
    last = max(curve.panels["excess"].step[-1] for curve in curves)
    ticks = sorted({round(last * share) for share in (0, 0.025, 0.1, 0.25, 0.5, 0.75, 1)})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    bands = [curve.panels[panel] for curve in curves if panel in curve.panels]
    if panel == "bias" and not any(band.clear.any() for band in bands):
        axes.text(0.5, 0.5, "none found", ha="center", transform=axes.transAxes, color="0.5")
        axes.set_yticks([])  # nothing is drawn, so there is no scale either
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 300 * low:  # too few powers of ten to read from
        digits = "125" if high > 40 * low else "1235" if high > 5 * low else "123456789"
        axes.yaxis.set_minor_formatter(partial(_plain, digits))
        axes.yaxis.set_major_formatter(partial(_plain, digits))


def _root(step: Any) -> Any:
    return np.sqrt(np.maximum(step, 0))


def _plain(digits: str, value: float, _: int) -> str:
    """The number, if its first digit is one of these."""
    return f"{value:g}" if f"{value:.0e}"[0] in digits else ""


def _legend(curves: Sequence[Curve], looks: Mapping[str, Style]) -> list[Line2D]:
    handles: list[Line2D] = []
    for group, title in GROUPS.items():
        members = [curve for curve in curves if curve.group == group]
        if not members:
            continue
        handles.append(Line2D([], [], ls="none", label=rf"$\bf{{{title.replace(' ', '~')}}}$"))
        for curve in members:
            look = looks[curve.label]
            label = curve.label + ("" if "bias" in curve.panels else " (another objective)")
            handles.append(
                Line2D([], [], color=look.colour, ls=look.dash, lw=look.width, label=label)
            )
    return handles
