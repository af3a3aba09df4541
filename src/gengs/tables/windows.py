r"""Where to cut a distribution, and what the cut costs.

A window keeps the integers :math:`\mathrm{low}, \dots, \mathrm{low} + n - 1`; what lies outside is
lumped on the end atoms, :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})`. There are four
rules for it:

- a **level** :math:`n`: the integers :math:`0, \dots, n - 1` (the GenGS paper's
  :math:`\mathrm{TD}(\lambda, n)`);
- a **range** ``low ... high``, both kept;
- a **mass** :math:`\eta` (its Algorithm 2, *NP*): atoms 0, 1, ... until their mass reaches
  :math:`\eta`, then one more that carries the rest; the widest batch element sets the level;
- a **tolerance** :math:`\varepsilon`: for each element the smallest window outside of which at most
  :math:`\varepsilon` of the mass lies. Its width grows like :math:`\sqrt\lambda`, not like
  :math:`\lambda`.

A distribution that is truncated on the way, because an estimator needs a table, gets one window for
the whole batch where that is not much wider than the elements' own (:func:`window_for_all`).

What a cut costs is known exactly (:class:`Certificate`):

.. math::
    \mathrm{TV}(Z, X) = P(X \notin \mathrm{window}), \qquad
    E|Z - X| = \sum_{j > \mathrm{high}} P(X \ge j) + \sum_{j < \mathrm{low}} P(X \le j)
"""

__all__ = [
    "DEFAULT_ALLOWED",
    "Certificate",
    "TruncationWarning",
    "Window",
    "window_for_all",
    "window_of_mass",
    "window_of_support",
    "window_of_tolerance",
]

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..laws.pmf import PMF
from ..numerics.tracing import inspectable, require_memory, tensors_of


@dataclass(frozen=True)
class Window:
    """Which integers are kept: ``size`` of them from ``low`` on.

    A window can be used again, for the same distribution with moved parameters:
    ``truncate(law, window=q.certificate.window)``; it warns once what lies outside exceeds
    ``allowed``.
    """

    low: int | Tensor
    """The first integer: one for all, or one for each batch element, ``(*batch,)``."""
    size: int
    """How many integers are kept."""
    allowed: float
    """The mass that may lie outside before a warning is due."""

    def ends(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The first and the last integer, ``(1,)`` or ``(*batch, 1)``."""
        if isinstance(self.low, Tensor):
            low = self.low.to(device).unsqueeze(-1)
        else:
            low = torch.full((1,), self.low, device=device)
        return low, low + self.size - 1


DEFAULT_ALLOWED = 0.5
"""A window that the user chose warns when half the mass of some element lies outside."""


@torch.no_grad()
def window_of_mass(law: PMF, mass: float) -> Window:
    """Algorithm 2 of the paper: atoms from the lower end until ``mass`` is there, and one more."""
    if not 0 < mass < 1:
        raise ValueError(f"truncate expects 0 < mass < 1, but got mass={mass}.")
    if law.lower is None:
        raise TypeError(
            f"truncate(mass=...) counts up from the smallest value, but "
            f"{type(law.q).__name__} has none; use tolerance= or low=, high=."
        )
    _require_values(law, "mass")
    missing = torch.log1p(torch.tensor(-mass, dtype=torch.float64)).item()

    # the smallest k with P(X > k) <= 1 - mass, by doubling and bisection on the largest element
    empty = law.batch_shape.numel() == 0
    last = _first_integer(
        lambda k: empty or _most(law.log_at_least, k + 1, law) <= missing, law.lower
    )
    size = last - law.lower + 2
    if law.upper is not None and law.upper.numel():
        size = min(size, int(law.upper.max()) - law.lower + 1)
    return Window(law.lower, size, allowed=max(2 * (1 - mass), 1e-12))


@torch.no_grad()
def window_of_tolerance(law: PMF, tolerance: float) -> Window:
    """For each element the smallest window whose outside has at most mass ``tolerance``."""
    if not 0 < tolerance < 1:
        raise ValueError(f"truncate expects 0 < tolerance < 1, but got tolerance={tolerance}.")
    _require_values(law, "tolerance")
    batch = law.batch_shape
    if batch.numel() == 0:
        return Window(law.lower or 0, 1, allowed=tolerance)
    low, high = _bracket(law, tolerance)
    widest = int((high - low).max()) + 1
    require_memory(batch, widest, torch.float64, low.device)
    k = low + torch.arange(widest, device=low.device)  # (*batch, m)
    pmf = law.log_pmf(k).detach().double().exp()
    below = law.log_at_most(low - 1).detach().double().exp() + pmf.cumsum(-1)  # P(X <= k)
    above = law.log_at_least(k[..., -1:] + 1).detach().double().exp()
    above = above + pmf.flip(-1).cumsum(-1).flip(-1)  # P(X >= k)
    left_lost = torch.cat([below[..., :1] - pmf[..., :1], below[..., :-1]], -1).clamp_min(0)
    right_lost = torch.cat([above[..., 1:], (above - pmf)[..., -1:]], -1).clamp_min(0)
    # for each start, the first end with right_lost <= tolerance - left_lost; both fall along k
    room = (tolerance - left_lost) * (1 - 1e-9)
    end = torch.searchsorted((-right_lost).contiguous(), (-room).contiguous())
    width = end - torch.arange(k.shape[-1], device=k.device) + 1
    impossible = (room < 0) | (end >= k.shape[-1])
    start = width.masked_fill(impossible, k.shape[-1] + 1).argmin(-1, keepdim=True)
    size = int(width.gather(-1, start).max())
    first = k.gather(-1, start).squeeze(-1)
    if law.upper is not None:  # a narrow element's spare atoms go below it, not past its end
        first = first.minimum((law.upper.squeeze(-1).long() - size + 1).to(first.device))
    if law.lower is not None:
        first = first.clamp_min(law.lower)
    if (first == first.flatten()[0]).all():
        return Window(int(first.flatten()[0]), size, allowed=tolerance)
    return Window(first, size, allowed=tolerance)


@torch.no_grad()
def window_for_all(law: PMF, tolerance: float) -> Window:
    """One window that loses at most ``tolerance`` of every element, where that is not too wide.

    It asks for a few tails of the whole batch instead of a table per element, and atoms that are
    shared make cheaper tables. Where the elements lie far apart they get windows of their own.
    """
    _require_values(law, "tolerance")
    if law.batch_shape.numel() == 0:
        return Window(law.lower or 0, 1, allowed=tolerance)
    centre, spread = law.centre_and_spread()
    own_width = 12 * float(spread.max()) + 32
    half = math.log(tolerance / 2)
    low = law.lower
    if low is None or float(centre.min()) - own_width > low:
        low = -_first_integer(
            lambda k: _most(law.log_at_most, -k - 1, law) <= half, -int(centre.min())
        )
    high = _first_integer(
        lambda k: _most(law.log_at_least, k + 1, law) <= half, max(int(centre.max()), low)
    )
    if high - low + 1 > 2 * own_width:
        return window_of_tolerance(law, tolerance)
    return Window(low, max(high - low + 1, 2), allowed=tolerance)  # one atom has no gradient


def _most(log_tail: Callable[[Tensor], Tensor], k: int, law: PMF) -> float:
    """The largest tail over the batch."""
    return float(log_tail(torch.full((1,), k, device=law.like.device)).detach().max())


def _bracket(law: PMF, tolerance: float) -> tuple[Tensor, Tensor]:
    """Integers outside of which a small part of ``tolerance`` lies, on either side: (*batch, 1)."""
    small = torch.log(torch.tensor(tolerance * 1e-3, dtype=torch.float64)).item()
    centre, step = law.centre_and_spread()
    low = high = centre.long()
    reach = (2 * step).ceil().long()
    for _ in range(64):
        open_left = law.log_at_most(low - 1).detach() > small
        open_right = law.log_at_least(high + 1).detach() > small
        if not (open_left.any() or open_right.any()):
            break
        low, high = low - reach * open_left, high + reach * open_right
        if int((high - low).max()) > 1 << 28:
            raise ValueError(
                f"{type(law.q).__name__} has so heavy a tail that a window of 2**28 integers "
                f"still leaves more than tolerance={tolerance} outside; truncate by level instead."
            )
        reach = reach * 3 // 2 + 1
    if law.lower is not None:
        low, high = low.clamp_min(law.lower), high.clamp_min(law.lower)
    if law.upper is not None:
        last = law.upper.long().to(low.device)
        low, high = low.minimum(last), high.minimum(last)
    return low, high


def _first_integer(holds: Callable[[int], bool], start: int) -> int:
    """The first integer from ``start`` on for which a condition, once true always true, holds."""
    step = 1
    while not holds(start + step - 1):
        step *= 2
        if step > 1 << 40:
            raise ValueError("truncate found no finite level: the tail is too heavy.")
    low, high = start + step // 2 - 1, start + step - 1  # holds(low) is false or low < start
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _require_values(law: PMF, rule: str) -> None:
    if not inspectable(*(tensor for _, _, tensor in tensors_of(law.q))):
        raise ValueError(
            f"truncate({rule}=...) needs to read the parameters to choose a window, which "
            "torch.compile, vmap and the meta device do not allow; give a level, or a window "
            "computed beforehand."
        )


def window_of_support(law: PMF) -> Window:
    """All values of a distribution that has finitely many."""
    if law.lower is None or law.upper is None:
        raise ValueError(
            f"truncate expects a rule (level=, low=/high=, mass= or tolerance=) for "
            f"{type(law.q).__name__}, which has infinitely many values."
        )
    if law.size is not None:
        return Window(law.lower, law.size, allowed=1.0)
    last = int(law.upper.max()) if law.upper.numel() else law.lower
    return Window(law.lower, last - law.lower + 1, allowed=1.0)


# --------------------------------------------------------------------------- what the cut costs


class TruncationWarning(UserWarning):
    """A window no longer fits the distribution that is cut to it."""


@dataclass(eq=False)
class Certificate:
    """What a truncation lost. Computed when asked for, for the parameters it was made with."""

    law: PMF
    """The distribution that was cut."""
    window: Window
    """The integers that were kept."""

    @cached_property
    def lost_mass(self) -> Tensor:
        """The mass outside the window, per element: the total variation distance."""
        low, high = self._ends
        right = self.law.log_at_least(high + 1).detach().double().exp()
        if self.law.lower is not None and bool((low <= self.law.lower).all()):
            return right.squeeze(-1)
        left = self.law.log_at_most(low - 1).detach().double().exp()
        return (left + right).squeeze(-1)

    @cached_property
    def mean_error(self) -> Tensor:
        r""":math:`E|Z - X|`, per element."""
        low, high = self._ends
        right = self._mean_excess(high, 1)
        if self.law.lower is not None and bool((low <= self.law.lower).all()):
            return right
        return right + self._mean_excess(low, -1)

    @property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self.window.ends(self.law.like.device)

    def _mean_excess(self, end: Tensor, direction: int) -> Tensor:
        """``E[(X - end)+]`` to the right, ``E[(end - X)+]`` to the left."""
        law = self.law
        beyond = law.log_at_least(end + 1) if direction > 0 else law.log_at_most(end - 1)
        # a second bump of the PMF far out shows as mass not found yet
        to_find = beyond.detach().double().exp() - 100 * torch.finfo(beyond.dtype).eps
        mass = excess = part = torch.zeros_like(to_find)
        done = 1
        while done < 1 << 20:
            steps = torch.arange(done, 2 * done + 63, device=end.device)
            pmf = law.log_pmf(end + direction * steps).detach().double().exp()
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
