"""A sample site: one draw of a program, and the line that made it."""

__all__ = [
    "CutGradientWarning",
    "Plain",
    "ProgramWarning",
    "Site",
    "asked_by_library",
    "by_line",
    "inside_function",
    "place_of",
    "warn_at",
    "warn_once",
    "where",
    "where_exactly",
]

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from .in_place import snapshot

Plain = Callable[[], Tensor]
"""Makes a draw as it would be made outside the block."""

_OURS = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_TORCH = f"{Path(torch.__file__).resolve().parent}{os.sep}"
_PYRO = f"{os.sep}site-packages{os.sep}pyro{os.sep}"
_LAWS = (f"{_TORCH}distributions", *(f"{_OURS}{folder}" for folder in ("distributions", "laws")))
_FUNCTION = f"{_TORCH}autograd{os.sep}function.py"
_SAID: dict[Any, Any] = {}
"""Where Python keeps what its default filter has shown: each text once for each line."""


class ProgramWarning(UserWarning):
    """The gradient of a program may not be what it seems."""


class CutGradientWarning(ProgramWarning):
    """The gradient of a draw does not reach the loss, or not all of it does."""


@dataclass(eq=False)
class Site:
    """One draw of a program."""

    law: str
    """The law's name."""
    file: str
    line: int
    rule: str
    """Whose gradient: the estimator's name, ``none`` where no parameter requires a gradient."""
    shape: tuple[int, ...] = ()
    """What was drawn."""
    shared: bool = False
    """Whether all replicates share it; known once the loss is."""

    node: Any = field(default=None, repr=False)
    """The draw in autograd's graph, where a gradient comes back to it."""
    drawn_from: Any = field(default=None, repr=False)
    """The distribution, with the parameters it had."""
    value: Tensor | None = field(default=None, repr=False)
    """What was drawn, without a gradient."""
    log_prob: Tensor | None = field(default=None, repr=False)
    """Of what was drawn, in the shape of the draw; made when it is asked for."""
    baseline: bool = field(default=False, repr=False)
    """Whether the other replicates' mean is subtracted from its credit."""
    scored: bool = field(default=False, repr=False)
    """Whether its gradient is that of the score."""
    fitted: Any = field(default=None, repr=False)
    """The rule that fits a control variate to it, if there is one."""
    parameter_nodes: tuple[Any, ...] = field(default=(), repr=False)
    """Where its parameters come from in autograd's graph."""
    is_small: bool = field(default=False, repr=False)
    """Whether it is 0 or 1, or a category: no small step leads to the next value."""
    may_be_sure: bool = field(default=True, repr=False)
    """Whether some parameter may lie on a boundary."""
    held: Tensor | None = field(default=None, repr=False)
    """The share of its counts that stay put because earlier draws ended what they count."""
    instruction: int = field(default=0, repr=False)
    """Which draw of its line it is."""
    epoch: int = field(default=0, repr=False)
    """How many costs had arrived before it."""

    @property
    def place(self) -> str:
        """``file:line``, as editors and terminals understand it."""
        return place_of(self.file, self.line)

    def rescue(self) -> None:
        """The distribution's parameters, or the value, are about to be overwritten."""
        self.drawn_from = snapshot(self.drawn_from)
        self.value = None if self.value is None else self.value.clone()

    def __str__(self) -> str:
        return f"{self.place}: {self.law}, shape {self.shape}, by {self.rule}"


def place_of(file: str, line: int) -> str:
    """``file:line``, the file relative to the working directory if it is below."""
    path, here = Path(file), Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{line}"


def by_line(sites: Iterable[Site], *more: str) -> list[list[Site]]:
    """Draws of the same law at the same line, which are alike in ``more`` attributes, too."""
    key = attrgetter("file", "line", "law", *more)
    groups: dict[Any, list[Site]] = {}
    for site in sites:
        groups.setdefault(key(site), []).append(site)
    return list(groups.values())


def warn_at(site: Site, message: str, category: type[Warning]) -> None:
    """Warn as if the line of the draw did: once for each line, unless a filter says otherwise."""
    warn_once(f"{site.place}: {message}", category, site.file, site.line)


def warn_once(message: str, category: type[Warning], file: str, line: int) -> None:
    """Warn as if this line of a file did."""
    warnings.warn_explicit(message, category, file, line, registry=_SAID)


def where() -> tuple[str, int]:
    """File and line of the user's code that is running: the first frame of no library."""
    frame = _users_frame()
    return frame.f_code.co_filename, frame.f_lineno


def where_exactly() -> tuple[str, int, int]:
    """File, line, and the instruction: a line may draw twice."""
    frame = _users_frame()
    return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti


def _users_frame() -> FrameType:
    for frame in _frames():
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, _TORCH, "<frozen")) and _PYRO not in name:
            break
    return frame


def asked_by_library() -> bool:
    """Whether a law's own code is running: what it compares or casts is not the user's doing."""
    for frame in _frames():
        name = frame.f_code.co_filename
        if name.startswith(_LAWS) or _PYRO in name:
            return True
        if not name.startswith((_OURS, _TORCH)):
            return False
    return False


def inside_function() -> bool:
    """Whether the forward pass of an ``autograd.Function`` is running."""
    return any(frame.f_code.co_filename == _FUNCTION for frame in _frames())


def _frames() -> Iterator[FrameType]:
    """What is running, the innermost frame first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back
