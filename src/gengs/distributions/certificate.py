r"""What a truncation costs, known exactly, and a warning when parameters drift past it.

.. math::
    \mathrm{TV}(Z, X) = P(X \notin \mathrm{window}), \qquad
    E|Z - X| = \sum_{j > \mathrm{high}} P(X \ge j) + \sum_{j < \mathrm{low}} P(X \le j)
"""

from __future__ import annotations

__all__ = ["Certificate", "TruncationWarning", "warn_if_drifted"]

import math
import warnings
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .families import Family
from .truncation import Window
from .validation import inspectable

if TYPE_CHECKING:
    from .truncated import Truncated


class TruncationWarning(UserWarning):
    """A window no longer fits the law that is cut to it."""


class Certificate:
    """What a truncation lost. Computed when asked for, for the parameters it was made with.

    Attributes:
        window: The integers that were kept.
    """

    def __init__(self, family: Family, window: Window) -> None:
        self._family, self.window = family, window

    @cached_property
    def lost_mass(self) -> Tensor:
        """The mass outside the window, per element: the total variation distance to the law."""
        low, high = self._ends
        right = self._family.log_at_least(high + 1).detach().double().exp()
        if self._family.lower is not None and bool((low <= self._family.lower).all()):
            return right.squeeze(-1)
        left = self._family.log_at_most(low - 1).detach().double().exp()
        return (left + right).squeeze(-1)

    @cached_property
    def mean_error(self) -> Tensor:
        r""":math:`E|Z - X|`, per element."""
        low, high = self._ends
        right = self._mean_excess(high, 1)
        if self._family.lower is not None and bool((low <= self._family.lower).all()):
            return right
        return right + self._mean_excess(low, -1)

    @property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self.window.ends(self._family.like.device)

    def _mean_excess(self, end: Tensor, direction: int) -> Tensor:
        """``E[(X - end)+]`` to the right, ``E[(end - X)+]`` to the left."""
        family = self._family
        beyond = family.log_at_least(end + 1) if direction > 0 else family.log_at_most(end - 1)
        # a second bump of the PMF far out shows as mass not found yet
        to_find = beyond.detach().double().exp() - 100 * torch.finfo(beyond.dtype).eps
        mass = excess = part = torch.zeros_like(to_find)
        done = 1
        while done < 1 << 20:
            steps = torch.arange(done, 2 * done + 63, device=end.device)
            pmf = family.log_pmf(end + direction * steps).detach().double().exp()
            previous, part = part, (pmf * steps).sum(-1, keepdim=True)
            mass, excess = mass + pmf.sum(-1, keepdim=True), excess + part
            done = 2 * done + 63
            if not ((part > 1e-12 * excess) | (mass < (1 - 1e-4) * to_find)).any():
                return excess.squeeze(-1)
        # Cauchy's condensation test: blocks that double in length and do not fall diverge
        infinite = part > 0.99 * previous
        return excess.masked_fill(infinite, torch.inf).squeeze(-1)

    def __repr__(self) -> str:
        lost, error = self.lost_mass, self.mean_error
        if lost.numel() == 0:
            return "Certificate(empty batch)"
        return f"Certificate(lost_mass <= {lost.max():.3g}, mean_error <= {error.max():.3g})"


def warn_if_drifted(law: Truncated, stacklevel: int) -> None:
    """Warn when more mass lies outside the window than it allows.

    The probabilities of the end atoms bound it; only where one is too large is the lost mass itself
    computed, and only where the mean does not settle the matter is the table asked for them.
    """
    window, family = law.window, law.family
    if not inspectable(family.like) or family.like.numel() == 0:
        return
    counts_up = isinstance(window.low, int) and window.low <= 0
    if counts_up:
        drifted = family.some_exceed(int(window.low) + window.size, window.allowed)
        if drifted is not None:
            if drifted:
                _warn(law, stacklevel + 1)
            return
    step = window.size - 1
    ends = slice(step, None) if window.begins_at(family.lower) else slice(None, None, step)
    log_ends = law.logits.detach()[..., ends]
    enough_to_ask = math.log(window.allowed / log_ends.shape[-1])
    if not (log_ends > enough_to_ask).any():
        return
    if bool((Certificate(family, window).lost_mass > window.allowed).any()):
        _warn(law, stacklevel + 1)


def _warn(law: Truncated, stacklevel: int) -> None:
    # no number that changes from call to call: Python shows the same sentence once only
    warnings.warn(
        f"truncation to {law.window.size} atoms loses more than {law.window.allowed:.3g} of the "
        f"mass of some {type(law.family.law).__name__}: the end atom holds it, and the gradient "
        "there dies. Widen the window (level=, tolerance=) or choose it anew; "
        "certificate.lost_mass has the numbers.",
        TruncationWarning,
        stacklevel=stacklevel,
    )
