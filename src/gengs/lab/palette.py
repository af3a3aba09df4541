"""Colour and marker of each estimator, the same in every figure and on every page.

Six kinds of estimators have the hues of Okabe and Ito's palette, which people with any kind of
colour vision tell apart; members of a kind differ in shade, and in the dash of a line or the shape
of a point. Each hue is there once for light and once for dark.

References:
    | Color Universal Design (Okabe and Ito, 2008), https://jfly.uni-koeln.de/color/
"""

from __future__ import annotations

__all__ = ["HUES", "KINDS", "Look", "full_decades", "kind_of", "legend_handles", "looks"]

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

KINDS = {
    "score": "Score functions",
    "sums": "Part of the sum exactly",
    "control": "Relaxed control variates",
    "gengs": "GenGS",
    "relaxation": "Other relaxations",
    "steps": "Steps between atoms",
    "other": "Others",
}
"""The kinds in the order of a legend."""

HUES = {
    "score": ("#6b7178", "#a7aeb5"),
    "sums": ("#00795a", "#35c79d"),
    "control": ("#b0508a", "#e59cc6"),
    "gengs": ("#d55e00", "#ff8b42"),
    "relaxation": ("#a57c00", "#efc24a"),
    "steps": ("#0072b2", "#5ab5ef"),
    "other": ("#3c4147", "#d5d9dc"),
}
"""The colour of each kind on a light page and on a dark one."""

_MEMBERS = {
    "score": ("rf", "reinforce", "rf*", "rloo", "nvil", "muprop", "vimco"),
    "sums": ("detrb", "detrb*", "storb", "storb*", "unord", "exact"),
    "control": ("rebar", "relax"),
    "gengs": ("gengs", "gengs st", "gengs np", "gengs imp"),
    "relaxation": (
        *("igr", "gumbel-rao", "gumbelrao", "reinmax", "reinmax imp", "eat", "arrivaltimes"),
        *("plain st", "straightthrough", "straightthroughmean"),
    ),
    "steps": ("finite differences", "finitedifference", "mid-cdf", "midcdf", "midcdf imp"),
}
_KIND = {name: kind for kind, names in _MEMBERS.items() for name in names}
_BOLD = re.compile(r"gengs|mid-?cdf", re.IGNORECASE)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_MATPLOTLIB_DASHES = {"dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (9, 3))}
_MARKERS = "osD^vP*X<>"
_PALEST = 0.5  # any paler is hard to see


@dataclass(frozen=True)
class Look:
    """How an estimator is drawn."""

    kind: str
    dash: str  # as Plotly calls it
    shade: float  # how far the hue is mixed with the page's colour, from 0 to 1
    width: float
    marker: str  # as matplotlib calls it

    @property
    def colour(self) -> str:
        """The mixed colour on white."""
        hue = HUES[self.kind][0]
        parts = [int(hue[i : i + 2], 16) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(part + (255 - part) * self.shade):02x}" for part in parts)

    @property
    def line(self) -> dict[str, Any]:
        """What matplotlib needs to draw a line."""
        dash = _MATPLOTLIB_DASHES.get(self.dash, "-")
        return {"color": self.colour, "ls": dash, "lw": self.width}


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Colour and marker of each label, sorted as a legend is; no two of them are alike.

    Example:
        >>> found = looks(["GenGS(0.5)", "mid-CDF", "GenGS"])
        >>> [(look.kind, look.dash) for look in found.values()]
        [('gengs', 'solid'), ('gengs', 'dash'), ('steps', 'solid')]
    """
    members: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for label in dict.fromkeys(labels):
        members[kind_of(label)].append(label)
    found = {}
    for kind, names in members.items():
        names.sort(key=lambda name: not _BOLD.match(name))
        for number, name in enumerate(names):
            found[name] = Look(
                kind,
                _DASHES[number % len(_DASHES)],
                round(_PALEST * number / max(len(names) - 1, 3), 3),
                2.6 if _BOLD.match(name) else 1.7,
                _MARKERS[number % len(_MARKERS)],
            )
    return found


def kind_of(label: str) -> str:
    """The kind of an estimator, by its name before brackets and commas; then by its first word."""
    head = re.split(r"[(,]", label.lower(), maxsplit=1)[0].strip()
    return _KIND.get(head) or _KIND.get(head.split(" ")[0], "other")


def full_decades(axes: Axes, directions: str = "xy") -> None:
    """Let log axes begin and end at powers of ten, so that any two of them can be compared."""
    for name in directions:
        data, axis = axes.dataLim, getattr(axes, f"{name}axis")
        ends = (data.minposx, data.x1) if name == "x" else (data.minposy, data.y1)
        if 0 < ends[0] <= ends[1] < math.inf:
            low, high = math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1]))
            axis.set_view_interval(10.0**low, 10.0 ** max(high, low + 1), ignore=True)


def legend_handles(
    found: Mapping[str, Look], *, points: bool = False, absent: Sequence[str] = ()
) -> list[Line2D]:
    """A matplotlib legend under the headings of the kinds, of lines or of points.

    ``absent`` are estimators to name although they are not drawn.
    """
    from matplotlib.lines import Line2D

    def text(label: str, **style: Any) -> Line2D:
        return Line2D([], [], label=label.replace("$", r"\$"), **style)

    def heading(title: str) -> Line2D:
        return Line2D([], [], ls="none", label=rf"$\bf{{{title.replace(' ', '~')}}}$")

    handles: list[Line2D] = []
    for kind, title in KINDS.items():
        members = {label: look for label, look in found.items() if look.kind == kind}
        handles += [heading(title)] if members else []
        for label, look in members.items():
            point = {"color": look.colour, "marker": look.marker, "ls": "none"}
            handles.append(text(label, **(point if points else look.line)))
    if absent:
        handles += [heading("Not drawn"), *(text(label, ls="none") for label in absent)]
    return handles
