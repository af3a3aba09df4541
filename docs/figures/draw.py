"""The pictures of the docs, for light and dark pages: ``python docs/figures/draw.py [folder]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.distributions import Poisson

import gengs
from gengs.lab.palette import HUES, full_decades, kind_of

LIGHT = {
    "ink": "#24292f",
    "faint": "#c9ced4",
    "blue": "#2171b5",
    "red": "#d94801",
    "green": "#238b45",
    **{kind: light for kind, (light, _) in HUES.items()},
}
DARK = {
    "ink": "#d7dce2",
    "faint": "#4a5058",
    "blue": "#6baed6",
    "red": "#fd8d3c",
    "green": "#74c476",
    **{kind: dark for kind, (_, dark) in HUES.items()},
}
Palette = dict[str, str]


def truncate_relax_map(c: Palette) -> Figure:
    """A law becomes atoms, the choice of an atom becomes soft, the weights become a number."""
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    law = gengs.truncate(Poisson(torch.tensor(7.0)), 12)
    k = torch.arange(17.0)
    pmf = Poisson(7.0).log_prob(k).exp()
    first.bar(k[12:], pmf[12:], color="none", edgecolor=c["red"], linestyle=":", width=0.7)
    first.bar(law.atoms, law.probs, color=c["blue"], width=0.7)
    first.bar(11, law.probs[-1] - pmf[11], bottom=pmf[11], color=c["red"], width=0.7)
    first.annotate(
        "the tail,\nlumped",
        (11.3, float(law.probs[-1]) + 0.002),
        xytext=(12.6, 0.118),
        color=c["red"],
        arrowprops={"arrowstyle": "->", "color": c["red"]},
        fontsize=9,
    )
    first.set_title("1. truncate: Poisson(7), 12 atoms")
    first.set(xlabel="count", ylabel="probability")

    torch.manual_seed(24)
    perturbed = law.logits - torch.empty(12).exponential_().log()
    values = {}
    for i, tau in enumerate((1.0, 0.5, 0.1)):
        weights = torch.softmax(perturbed / tau, -1)
        values[tau] = float(weights @ law.atoms)
        second.bar(law.atoms, weights * 0.85, bottom=2 - i, color=c["green"], width=0.7)
        second.text(-0.6, 2.9 - i - 0.12, f"τ = {tau:g}", fontsize=9, va="top")
        second.axhline(2 - i, color=c["faint"], lw=0.8, zorder=0)
    second.set_title("2. relax: one draw's weights")
    second.set(xlabel="atom", yticks=[], ylim=(-0.05, 3))

    winner = int(perturbed.argmax())
    for i, value in enumerate(values.values()):
        third.plot([value], [2 - i], "o", color=c["green"], ms=9)
        third.text(value, 2.22 - i, f"z = {value:.2f}", fontsize=9, ha="center")
        third.axhline(2 - i, color=c["faint"], lw=0.8, zorder=0)
    third.axvline(winner, color=c["faint"], lw=0.8, zorder=0)
    third.set_title("3. map: z = Σ weight · atom")
    third.set(xlabel="value", yticks=[], xlim=(-0.6, 11.6), ylim=(-0.5, 2.6))
    third.text(winner, -0.38, f" the atom that won: {winner}", fontsize=9, va="center")
    return figure


def gradients(c: Palette) -> Figure:
    """What single gradients look like, for one small problem."""
    rate = torch.tensor(3.0, requires_grad=True)
    q = gengs.truncate(Poisson(rate), 30)
    many = q.expand(torch.Size([100_000]))
    estimators = {
        "REINFORCE": gengs.REINFORCE(),
        "RLOO(4)": gengs.RLOO(4),
        "GenGS, τ = 1": gengs.GenGS(1.0),
        "GenGS, τ = 0.1": gengs.GenGS(0.1),
        "MidCDF": gengs.MidCDF(),
    }
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = figure.subplots()
    edges = torch.linspace(-16, 22, 96)
    for i, (name, estimator) in enumerate(estimators.items()):
        torch.manual_seed(0)
        single = _single_gradients(estimator, many, rate)
        heights = torch.histogram(single, edges).hist
        low, colour = len(estimators) - 1 - i, c[kind_of(name)]
        axes.stairs(
            low + 0.82 * heights / heights.max(), edges, baseline=low, fill=True, color=colour
        )
        mean = float(single.mean())
        axes.plot([mean, mean], [low, low + 0.5], color=c["ink"], lw=2.2)
        axes.text(22.5, low + 0.33, f"mean {mean:.2f}, s.d. {float(single.std()):.1f}", fontsize=9)
        axes.axhline(low, color=c["faint"], lw=0.8, zorder=0)
    axes.axvline(1.8, color=c["ink"], lw=1, ls="--", zorder=0)
    axes.text(1.8, len(estimators) + 0.02, "exact: 1.80", ha="center", fontsize=9)
    names = list(estimators)[::-1]
    axes.set_yticks([i + 0.33 for i in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="a single gradient", xlim=(-16, 22), ylim=(0, len(names) + 0.25))
    return figure


def _single_gradients(
    estimator: gengs.Estimator, many: gengs.Finite, rate: torch.Tensor
) -> torch.Tensor:
    """The gradient of each element of the batch, by way of a rate for each."""
    rates = rate.detach().expand(many.batch_shape).clone().requires_grad_()
    q = gengs.truncate(Poisson(rates), many.num_atoms)
    estimator.expect(lambda z: (z - 2.6).square(), q).sum().backward()
    return cast(torch.Tensor, rates.grad)


def temperature_trade(c: Palette) -> Figure:
    """Bias against variance as the temperature falls; estimators without one are points."""
    rate = torch.tensor(3.0, requires_grad=True)
    q = gengs.truncate(Poisson(rate), 30)
    taus = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
    others = [gengs.MidCDF(), gengs.REINFORCE(), gengs.RLOO(4), gengs.UnOrd(4)]
    result = gengs.lab.measure(
        lambda z: (z - 2.6).square(),
        q,
        [*(gengs.GenGS(tau) for tau in taus), *others],
        gradients=40_000,
    )
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    relaxed = [row for row in result if row.estimator.startswith("GenGS")]
    line = [(row.variance, row.bias) for row in relaxed]
    bars = [2 * row.bias_error for row in relaxed]
    axes.errorbar(*zip(*line, strict=True), bars, fmt="o-", color=c["gengs"], ms=4, capsize=2)
    for tau, (x, y), bar in zip(taus, line, bars, strict=True):
        if tau in (2.0, 1.0, 0.5, 0.25, 0.1):
            shift = (24, 0) if tau == 2 else (0, -12)  # beside the line, or below the bar
            _label(axes, f"τ = {tau:g}", (x, y - bar), shift, c["gengs"])
    axes.text(line[1][0] * 1.25, line[1][1], "GenGS", color=c["gengs"], va="center")
    above = {"UnOrd": True, "RLOO": False, "MidCDF": True, "REINFORCE": True}
    for row in result:
        name = row.estimator.partition("(")[0]
        if name in above:
            colour, bar = c[kind_of(name)], 2 * row.bias_error
            axes.errorbar(row.variance, row.bias, bar, fmt="o", color=colour, ms=5, capsize=2)
            height = bar * (1 if above[name] else -1)
            shown = f"{name}(4)" if name in ("UnOrd", "RLOO") else name
            aside = {"UnOrd": -12, "MidCDF": 16}.get(name, 0)
            shift = (aside, 4 if above[name] else -12)
            _label(axes, shown, (row.variance, row.bias + height), shift, colour)
    axes.axhline(0, color=c["faint"], lw=0.8, zorder=0)
    axes.set(xscale="log", xlabel="variance of a gradient", ylabel="bias (exact gradient: 1.8)")
    axes.margins(y=0.12)
    full_decades(axes, "x")
    axes.set_title("bars: two standard errors", fontsize=8.5, loc="left", color=c["ink"])
    return figure


def _label(
    axes: Axes, text: str, place: tuple[float, float], shift: tuple[float, float], colour: str
) -> None:
    axes.annotate(
        text,
        place,
        xytext=shift,
        textcoords="offset points",
        fontsize=9,
        ha="center",
        color=colour,
    )


def midcdf(c: Palette) -> Figure:
    """The mid-CDF of a Poisson, and how far each draw moves when the rate does."""
    figure = Figure(figsize=(9, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    k = torch.arange(9.0)
    for rate, style, colour in ((3.0, "-", c["ink"]), (3.6, "--", c["faint"])):
        pmf = Poisson(rate).log_prob(k).exp()
        cdf = pmf.cumsum(0)
        middle = cdf - pmf / 2
        left.step(k, cdf, where="post", color=colour, ls=style, lw=1.2, label=f"CDF, λ = {rate:g}")
        left.plot(k, middle, "o", color=c["steps"] if rate == 3 else c["faint"], ms=5)
        if rate == 3.0:
            before = middle
    for i in range(1, 7):
        left.annotate(
            "",
            (float(k[i]), float(middle[i])),
            xytext=(float(k[i]), float(before[i])),
            arrowprops={"arrowstyle": "->", "color": c["steps"], "lw": 1.4},
        )
    left.plot([], [], "o", color=c["steps"], label="mid-CDF: half-way up each step")
    left.legend(frameon=False, fontsize=9, loc="lower right")
    left.set(xlabel="count", ylabel="probability", xlim=(-0.3, 8.3))
    left.set_title("The middle of each step falls as λ grows …")

    right.bar(
        k.tolist(),
        (0.5 * (1 + k / 3)).tolist(),
        color=c["steps"],
        width=0.6,
        label="mid-CDF: ½ (1 + z/λ)",
    )
    right.axhline(1, color=c["relaxation"], lw=2, label="plain straight-through: 1")
    right.set(xlabel="the draw z", ylabel="dz/dλ")
    right.legend(frameon=False, fontsize=9)
    right.set_title("… so each draw moves up, the larger the more")
    return figure


def relaxed_gap(c: Palette) -> Figure:
    """The value that GenGS trains on, by temperature, beside exact draws and the paper's."""
    results = Path(__file__).parents[2] / "results/vae/relaxed-gap.json"
    found = json.loads(results.read_text())
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    models = {(row["prior"], row["end"]): row for row in found["models"]}
    for axes, prior in zip(panels.flat, dict.fromkeys(prior for prior, _ in models), strict=True):
        for end, colour in ((0.5, c["blue"]), (0.1, c["green"])):
            row = models[prior, end]
            axes.plot(found["temperatures"], row["relaxed"], "o-", color=colour, ms=3)
            axes.axhline(row["exact"], color=colour, ls="--", lw=1.2)
        paper = models[prior, 0.5]["paper"]
        axes.axhline(paper, color=c["ink"], ls=":", lw=1.2)
        axes.text(0.05, paper - 0.6, f"paper: {paper}", ha="right", va="top", fontsize=9)
        axes.set_title(prior)
        axes.set(xscale="log", xlim=(1.08, 0.046), ylim=(84, 139))
        axes.set_xticks([1, 0.5, 0.2, 0.1, 0.05], ["1", ".5", ".2", ".1", ".05"])
        axes.minorticks_off()
    for end, colour in ((0.5, c["blue"]), (0.1, c["green"])):
        panels[0, 0].plot([], [], "o-", color=colour, ms=3, label=f"trained with τ from 1 to {end}")
    panels[0, 0].plot([], [], "--", color=c["ink"], lw=1.2, label="the same, exact draws")
    figure.legend(frameon=False, fontsize=9, loc="outside upper center", ncols=3)
    figure.supxlabel("temperature at which the trained model is read", fontsize=9.5)
    figure.supylabel("negative ELBO on training images, nats", fontsize=9.5)
    return figure


FIGURES: dict[str, Callable[[Palette], Figure]] = {
    "truncate-relax-map": truncate_relax_map,
    "gradients": gradients,
    "temperature-trade": temperature_trade,
    "midcdf": midcdf,
    "relaxed-gap": relaxed_gap,
}


def style(c: Palette) -> dict[str, object]:
    """Transparent, thin, in the colour of the page's text; the same bytes at every run."""
    return {
        "axes.edgecolor": c["ink"],
        "axes.labelcolor": c["ink"],
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "font.size": 9.5,
        "legend.labelcolor": c["ink"],
        "savefig.facecolor": "none",
        "svg.hashsalt": "gengs",
        "text.color": c["ink"],
        "xtick.color": c["ink"],
        "ytick.color": c["ink"],
    }


def main(folder: Path) -> None:
    """Draw every figure twice."""
    for name, draw in FIGURES.items():
        for page, palette in (("light", LIGHT), ("dark", DARK)):
            with mpl.rc_context(style(palette)):
                figure = draw(palette)
                figure.savefig(folder / f"{name}-{page}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
