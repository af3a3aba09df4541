"""A score that nobody asked for: the block is gone, and its loss was never called.

By the score rules a draw is a plain number: ``cost.mean().backward()`` finds no gradient of it, and
raises nothing if the cost has another way to the parameters. While the program lives, its loss may
still be called; so it is said when the program is discarded, which without a name is at the end of
its block. Of its draws only their lines are kept till then.
"""

from __future__ import annotations

__all__ = ["warn_if_forgotten"]

import weakref
from typing import TYPE_CHECKING, Any

from .sample_site import CutGradientWarning, place_of, warn_once

if TYPE_CHECKING:
    from .program import Program

Line = tuple[str, int, str]
"""File, line and distribution."""


def warn_if_forgotten(program: Program) -> weakref.finalize[Any, Program] | None:
    """Warn when ``program`` is discarded; ``None`` if none of its draws has a score."""
    lines = dict.fromkeys((site.file, site.line, site.law) for site in program.sites if site.scored)
    return weakref.finalize(program, _warn, list(lines)) if lines else None


def _warn(lines: list[Line]) -> None:
    places = [f"{place_of(file, line)} ({law})" for file, line, law in lines]
    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
    file, line, _ = lines[0]
    warn_once(
        f"{', '.join(places[:4])}{more}: drawn by the score rule, but program.loss was never "
        "called: a gradient that was taken without it lacks the part of these draws. Call "
        "program.loss(cost) or program.mean(x), and backward() on that; where no gradient is "
        "needed, run the program under torch.no_grad().",
        CutGradientWarning,
        file,
        line,
    )
