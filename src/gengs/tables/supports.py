"""Which values a distribution can give.

torch describes a support as a constraint. A :class:`Finite` has its atoms (:class:`OneOf`). A
distribution that is asked for its ``log_prob`` alone has the integers between two ends.
"""

from __future__ import annotations

__all__ = ["OneOf", "integer_support", "refuse_table"]

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from ..numerics.tracing import any_of, require_finite

if TYPE_CHECKING:
    from .finite import Finite

Ends = tuple[int | None, Tensor | None]
"""The smallest integer, and the largest ones ``(*batch, 1)``; ``None`` where there is none."""


def integer_support(law: Distribution) -> Ends:
    """The first and the last integer of a support; ``TypeError`` where it has no integers."""
    name = type(law).__name__
    if law.event_shape:
        raise TypeError(
            f"truncate expects a distribution with scalar events, but {name} has event_shape "
            f"{tuple(law.event_shape)}; treat its coordinates one by one, or enumerate its atoms "
            "and build a Finite."
        )
    try:
        support = law.support
    except (NotImplementedError, AttributeError):
        support = None
    if support is None or not getattr(support, "is_discrete", False):
        raise TypeError(
            f"truncate expects a PMF on integers, but {name} has support {support}; "
            "give it `support = torch.distributions.constraints.nonnegative_integer` (or another "
            "integer constraint) and a `log_prob`."
        )
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if isinstance(support, OneOf):
        atoms = support.law.atoms.detach().double().expand(*law.batch_shape, -1)
        return int(atoms.min()), atoms.amax(-1, keepdim=True)
    lower, upper = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if support is constraints.boolean:
        lower, upper = 0, 1
    least = None if lower is None else int(torch.as_tensor(lower).min())
    if upper is None:
        return least, None
    last = torch.as_tensor(upper, dtype=torch.float64).expand(law.batch_shape)
    return least, last.unsqueeze(-1)


class OneOf(constraints.Constraint):
    """Values that equal one of a distribution's atoms."""

    is_discrete = True

    def __init__(self, law: Finite) -> None:
        self.law = law
        super().__init__()

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.law.event_dim

    def check(self, value: Tensor) -> Tensor:
        return self.law.index_of(value)[1]

    def __repr__(self) -> str:
        return f"OneOf({self.law.num_atoms} atoms)"


def refuse_table(law: Finite, name: str, weights: Tensor, fault: Tensor) -> None:
    """Name what is wrong; two atoms of one value would share a probability.

    The weights ``(*batch, n)`` were given as ``name``, and rows with a ``fault`` have no sum.
    """
    require_finite("atoms", law.atoms, "Finite")
    if name == "probs" and any_of(weights < 0):
        raise ValueError(
            "Finite expects non-negative `probs`, "
            f"but the smallest is {weights.min().item():.4g} (shape {tuple(weights.shape)})."
        )
    if any_of(fault):
        row = tuple(int(i) for i in fault.nonzero()[0])
        raise ValueError(
            f"Finite expects `{name}` without NaN or +inf and with at least one possible atom "
            f"in each row, but row {row} is invalid."
        )
    distinct = len(law.atoms.detach().unique(dim=0))
    if distinct < law.num_atoms:
        raise ValueError(
            f"Finite expects distinct `atoms`, but only {distinct} of the {law.num_atoms} "
            "are; add up the probabilities of those that are equal."
        )
