"""A colour, a dash and a weight for each estimator, the same in every chart of the page.

Six kinds of estimators have the hues of Okabe and Ito's palette, which people with any kind of
colour vision tell apart; members of a kind differ by dash and by shade. The page has each hue once
for light and once for dark.

References:
    | Color Universal Design (Okabe and Ito, 2008), https://jfly.uni-koeln.de/color/
"""

from __future__ import annotations

__all__ = ["KINDS", "Look", "kind_of", "looks"]

import re
from collections.abc import Iterable
from dataclasses import dataclass

KINDS = {
    "score": "Score functions",
    "sums": "Part of the sum exactly",
    "control": "Relaxed control variates",
    "gengs": "GenGS",
    "relaxation": "Other relaxations",
    "steps": "Steps between atoms",
    "other": "Others",
}
"""The kinds in the order of a legend; the page's style has a colour for each."""

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


@dataclass(frozen=True)
class Look:
    """How an estimator is drawn."""

    kind: str
    dash: str
    shade: float
    """How far the colour is mixed with the page's, from 0 to 1."""
    width: float


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The look of each label, sorted as a legend is.

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
                0.45 * ((number // 2) % 3) / 2,
                2.6 if _BOLD.match(name) else 1.7,
            )
    return found


def kind_of(label: str) -> str:
    """The kind of an estimator, by its name before brackets and commas; then by its first word."""
    head = re.split(r"[(,]", label.lower(), maxsplit=1)[0].strip()
    return _KIND.get(head) or _KIND.get(head.split(" ")[0], "other")
