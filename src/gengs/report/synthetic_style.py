"""Colours and lines of the estimators: a hue for each kind, GenGS and ours in bold."""

from __future__ import annotations

__all__ = ["GROUPS", "Style", "place", "style"]

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


def style(label: str, group: str) -> Style:
    """The style of an estimator; one with settings of its own is dotted, in its kind's hue."""
    return _STYLES.get(label) or Style(_HUES[group], "dotted", 1.6)
