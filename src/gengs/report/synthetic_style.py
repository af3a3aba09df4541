"""Colours and lines of the estimators: a hue for each kind, GenGS and ours in bold."""

from __future__ import annotations

__all__ = ["GROUPS", "Style", "place", "styles"]

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Dash = Literal["solid", "dashed", "dotted", "dashdot"]

GROUPS = {
    "score function": "Score functions",
    "sums": "Part of the sum exactly",
    "relaxed control": "Relaxed control variates",
    "GenGS": "GenGS",
    "relaxation": "Other relaxations",
    "steps": "Steps between atoms",
}
"""The kinds of estimators, in the order of the legend."""


@dataclass(frozen=True)
class Style:
    """How one estimator is drawn."""

    colour: str
    dash: Dash = "solid"
    width: float = 1.3

    @property
    def bold(self) -> bool:
        """Whether it stands out."""
        return self.width > 2


_STYLES = {
    "RF": Style("#9a9a9a"),
    "RF*": Style("#9a9a9a", "dashed"),
    "NVIL": Style("#555555"),
    "MuProp": Style("#555555", "dashed"),
    "VIMCO": Style("#111111", "dotted"),
    "DetRB": Style("#8fce7e"),
    "DetRB*": Style("#8fce7e", "dashed"),
    "StoRB": Style("#3a9d4f"),
    "StoRB*": Style("#3a9d4f", "dashed"),
    "UnOrd": Style("#00522a", width=1.6),
    "REBAR": Style("#a98ad6"),
    "RELAX": Style("#5e3c99"),
    "GenGS": Style("#d7191c", width=2.6),
    "GenGS ST": Style("#ef8a8a", width=2.1),
    "GenGS NP": Style("#7f0000", "dashed", 2.1),
    "IGR": Style("#e0a020"),
    "Gumbel-Rao": Style("#c26a00"),
    "ReinMax": Style("#8c510a", "dashed"),
    "EAT": Style("#c9b400", "dashdot", 1.6),
    "Finite differences": Style("#4aa3df", width=2.1),
    "mid-CDF": Style("#08519c", width=2.6),
}
_HUES = {
    "score function": "#777777",
    "sums": "#3a9d4f",
    "relaxed control": "#7b5cb8",
    "GenGS": "#d7191c",
    "relaxation": "#c26a00",
    "steps": "#08519c",
}


def place(label: str) -> int:
    """Where an estimator stands in a legend."""
    return list(_STYLES).index(label) if label in _STYLES else len(_STYLES)


def styles(estimators: Iterable[tuple[str, str]]) -> dict[str, Style]:
    """The style of each estimator, from its label and group.

    Those with settings of their own take their kind's hue, each a shade lighter than the last.
    """
    found: dict[str, Style] = {}
    custom: dict[str, int] = {}
    for label, group in estimators:
        if label in _STYLES:
            found[label] = _STYLES[label]
            continue
        number = custom[group] = custom.get(group, -1) + 1
        dash: Dash = ("solid", "dashed", "dotted", "dashdot")[number % 4]
        found[label] = Style(_lighter(_HUES[group], number), dash, 1.8)
    return found


def _lighter(colour: str, number: int) -> str:
    """Mixed with white: by a sixth of the way for each number, at most two thirds."""
    share = min(number, 4) / 6
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)
