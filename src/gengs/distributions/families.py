r"""What a truncation asks of a law: its log-PMF on integers and the logarithms of its two tails.

The count families have closed forms (:mod:`count_families`, :mod:`skellam_table`); any other law is
asked for its own ``log_prob``, and its tails are sums of terms (:mod:`summation`).

:func:`family_of` finds the row for a law. All shapes have one trailing dimension for the integers:
parameters are ``(*batch, 1)``, ``k`` is ``(n,)`` or ``(*batch, n)``. Formulas that cancel in
``float32`` (log-gammas of large numbers) run in ``float64`` inside.
"""

from __future__ import annotations

__all__ = ["Family", "family_of", "register_family"]

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property

from .given import widen
from .summation import log_sum_above, log_sum_below
from .validation import ends_of, inspectable, require_finite

Law = TypeVar("Law", bound=Distribution)


class Family:
    """A law on integers. This class asks the law itself; subclasses know closed forms.

    Args:
        law: Any distribution with a ``log_prob`` on integers and a scalar event.
        lower: The smallest possible integer, ``None`` where there is none.
        upper: The largest possible integers, ``(*batch, 1)``, ``None`` where there is none.
    """

    def __init__(self, law: Distribution, lower: int | None = None, upper: Tensor | None = None):
        self.law, self.lower, self.upper = law, lower, upper
        self.batch_shape = torch.Size(law.batch_shape)  # other libraries' laws may have a tuple
        self._ends: dict[int, tuple[Tensor, float, float]] = {}

    @lazy_property
    def like(self) -> Tensor:
        """A tensor with the floating type and the device of the log-probabilities."""
        device = next((tensor.device for _, _, tensor in tensors_of(self.law)), None)
        lowest = float(self.lower or 0)
        at = torch.full(self.batch_shape, lowest, dtype=torch.float32, device=device)
        return widen(self.law.log_prob(at).detach())

    def ends(self, parameter: Tensor) -> tuple[float, float]:
        """The smallest and the largest entry of a parameter when it was first looked at.

        For checks at the law's making, where several ask; later they may have been changed.
        """
        known = self._ends.get(id(parameter))
        if known is None or known[0] is not parameter:
            known = self._ends[id(parameter)] = parameter, *ends_of(parameter)
        return known[1:]

    def log_pmf(self, k: Tensor) -> Tensor:
        """``log P(X = k)``, ``-inf`` outside the support."""
        inside = self._inside(k)
        # in the law's own precision: the log-gamma of a float32 count is a float32 number
        values = k.to(self.like.dtype).where(inside, float(self.lower or 0))
        values = values.expand(*self.batch_shape, k.shape[-1])
        log_pmf = self.law.log_prob(values.movedim(-1, 0)).movedim(0, -1)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        """``log P(X >= a)``."""
        return log_sum_above(self.log_pmf, a, self.lower)

    def log_at_most(self, a: Tensor) -> Tensor:
        """``log P(X <= a)``."""
        return log_sum_below(self.log_pmf, a, self.lower)

    def some_exceed(self, n: int, mass: float) -> bool | None:
        """Whether ``P(X >= n)`` of some element exceeds ``mass``, where that costs next to nothing.

        ``None`` where it is not known. It does not by Markov's bound, :math:`E X / n`, for counts.
        """
        try:
            bounded = self.lower == 0 and n > 0 and self.ends(self.law.mean)[1] / n <= mass
        except NotImplementedError:
            return None
        return False if bounded else None

    def clipped_log_pmf(self, k: Tensor, nothing_below: bool) -> Tensor:
        """The log-PMF of ``clip(X, k[0], k[-1])``: a tail on each end atom, ``(*batch, n)``.

        Args:
            k: At least two consecutive integers, ``(n,)`` or ``(*batch, n)``.
            nothing_below: Whether ``k[0]`` is the law's own smallest value: no tail there.
        """
        parts = [self.log_at_least(k[..., -1:])]
        if k.shape[-1] > 2 or nothing_below:
            parts.insert(0, self.log_pmf(k[..., (0 if nothing_below else 1) : -1]))
        if not nothing_below:
            parts.insert(0, self.log_at_most(k[..., :1]))
        batch = self.batch_shape
        return torch.cat([part.expand(*batch, part.shape[-1]) for part in parts], -1)

    def centre_and_spread(self) -> tuple[Tensor, Tensor]:
        """Where to start to look for the bulk of the mass, and with which step; ``(*batch, 1)``."""
        at = torch.zeros(*self.batch_shape, 1, dtype=torch.float64, device=self.like.device)
        try:
            mean, spread = self.law.mean.unsqueeze(-1) + at, self.law.stddev.unsqueeze(-1) + at
        except NotImplementedError:
            return at + (self.lower or 0), at + 1
        usable = torch.isfinite(mean) & torch.isfinite(spread)
        return mean.detach().where(usable, 0.0).round(), spread.detach().where(usable, 1.0) + 1

    def _inside(self, k: Tensor) -> Tensor:
        inside = k == k.round()
        if self.lower is not None:
            inside = inside & (k >= self.lower)
        return inside if self.upper is None else inside & (k <= self.upper)


_FAMILIES: dict[type[Distribution], Callable[..., Family]] = {}


def register_family(law: type[Distribution], family: Callable[..., Family]) -> None:
    """Let :func:`family_of` know the closed forms of one more law."""
    _FAMILIES[law] = family


def family_of(law: Distribution) -> Family:
    """The family of a law; a law without a row of its own is asked for its ``log_prob``.

    So is a subclass with a ``log_prob`` of its own: it may be another law.
    """
    for known, family in _FAMILIES.items():
        if isinstance(law, known) and type(law).log_prob is known.log_prob:
            return family(law)
    return Family(law, *_integer_support(law))


def twin_of(law: Law) -> Law:
    """A shallow copy; ``copy.copy`` takes ten times as long to find out how."""
    twin: Law = object.__new__(type(law))
    vars(twin).update(vars(law))
    return twin


def detached(part: Any) -> Any:
    """A tensor, or a law with all its tensors, without gradient; itself where there is none."""
    if isinstance(part, Tensor):
        return part.detach() if part.requires_grad else part
    if not any(tensor.requires_grad for _, _, tensor in tensors_of(part)):
        return part
    twin = twin_of(part)
    for name, value in vars(part).items():
        if isinstance(value, Tensor | Distribution):
            vars(twin)[name] = detached(value)
    return twin


def tensors_of(law: Distribution) -> Iterator[tuple[Distribution, str, Tensor]]:
    """The tensors a law holds, with owner and name; also those of the laws it is made of."""
    for name, value in vars(law).items():
        if isinstance(value, Tensor):
            yield law, name, value
        elif isinstance(value, Distribution):
            yield from tensors_of(value)


_INTERVALS: list[tuple[constraints.Constraint, Callable[[float, float], bool]]] = [
    (constraints.nonnegative, lambda low, high: low >= 0 and high < math.inf),
    (constraints.positive, lambda low, high: low > 0 and high < math.inf),
    (constraints.unit_interval, lambda low, high: low >= 0 and high <= 1),
]
"""Whether all is well with numbers between two ends, by a look at the ends."""


def check_parameters(family: Family) -> None:
    """Raise where a parameter is NaN, infinite or against the law's own constraint.

    torch lets ``Poisson(inf)`` through, and everything else while its validation is off.
    """
    if not inspectable():
        return
    for law, name, value in tensors_of(family.law):
        constraint = law.arg_constraints.get(name)
        if constraint is None or constraints.is_dependent(constraint) or not inspectable(value):
            continue
        if value.numel() == 0:  # torch's checks cannot take it
            continue
        if constraint is constraints.simplex and value.dtype.itemsize < 4:
            continue  # half precision sums to 1 up to three digits, torch asks for six
        known = [well for interval, well in _INTERVALS if interval is constraint]
        if known and name != "logits" and known[0](*family.ends(value)):
            continue
        owner = type(law).__name__
        if name != "logits":  # ±inf logits are point masses
            require_finite(name, value, owner)
        good = constraint.check(value)
        if not good.all():
            raise ValueError(
                f"{owner} expects `{name}` (shape {tuple(value.shape)}) to satisfy {constraint}, "
                f"but {int((~good).sum())} of {good.numel()} do not; "
                f"the first is {value[~good][0].tolist()}."
            )


def _integer_support(law: Distribution) -> tuple[int | None, Tensor | None]:
    """The first and the last integer of a law's support; ``TypeError`` where it has no integers."""
    name = type(law).__name__
    if law.event_shape:
        raise TypeError(
            f"truncate expects a law with scalar events, but {name} has event_shape "
            f"{tuple(law.event_shape)}; treat its coordinates one by one, or enumerate its atoms "
            "and build a Finite."
        )
    try:
        support = law.support
    except (NotImplementedError, AttributeError):
        support = None
    if support is None or not getattr(support, "is_discrete", False):
        raise TypeError(
            f"truncate expects a law with a PMF on integers, but {name} has support {support}; "
            "give it `support = torch.distributions.constraints.nonnegative_integer` (or another "
            "integer constraint) and a `log_prob`."
        )
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    lower, upper = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if support is constraints.boolean:
        lower, upper = 0, 1
    if upper is not None:
        upper = torch.as_tensor(upper, dtype=torch.float64).expand(law.batch_shape).unsqueeze(-1)
    return None if lower is None else int(torch.as_tensor(lower).min()), upper
