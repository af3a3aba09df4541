r"""Where the score has no derivative: parameters that move the values of a draw.

.. math:: \nabla E f = E[f\, \nabla \log p]

holds where the values that a draw can take stand still. A number of trials, an end of the support
(of a uniform number, of a shifted exponential), a factor on a count and the atoms of a mixture move
them, and :math:`\nabla \log p` does not see it: that part would be missing, without an error.
"""

__all__ = ["missing_score"]

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    Distribution,
    IndependentTransform,
    PowerTransform,
    StackTransform,
    TransformedDistribution,
)

from ..numerics.tracing import carries_gradient, inspectable, parameters_of, tensors_of
from .law import base_of, law_of


def missing_score(q: Any, learned: Callable[[Tensor], bool] = carries_gradient) -> str | None:
    """Why the score lacks the derivative in a parameter with a gradient; ``None`` if it does not.

    Args:
        q: The distribution.
        learned: Whether a tensor carries a gradient that matters.
    """
    q = base_of(q)
    for what, remedy, tensors in _moving_values(q):
        if any(map(learned, tensors)):
            return (
                f"the score of {type(q).__name__} has no derivative in {what} a gradient here: a "
                f"log-probability does not tell how values move; {remedy}."
            )
    return None


def _moving_values(q: Distribution) -> Iterator[tuple[str, str, list[Tensor]]]:
    """What moves the values of a draw: in words, what to do instead, and the tensors."""
    parts = list(_parts(q))
    for part in parts:
        if law_of(part).learned_total:
            totals = [t for _, name, t in tensors_of(part) if name == "total_count"]
            remedy = "make the draws that it comes from by the same rule, or take the path"
            yield "`total_count`, which carries", remedy, totals or list(parameters_of(part))
        if isinstance(part, TransformedDistribution) and not part.has_rsample:
            tensors = [t for transform in part.transforms for t in parameters_of(transform)]
            yield "its transforms, which carry", "apply them to the draw instead", tensors
        if part is not q and isinstance(atoms := vars(part).get("atoms"), Tensor):
            remedy = "draw the parts one after the other"
            yield "the atoms of its parts, which carry", remedy, [atoms]
    ends = [end for part in parts for end in _ends(part)]
    tensors = [end for end in ends if isinstance(end, Tensor) and _may_move(end)]
    yield "the ends of its support, which carry", "draw by rsample(), or by the path", tensors


def _parts(q: Any) -> Iterator[Distribution]:
    """The distribution and those that it is made of."""
    yield q
    for part in vars(q).values():
        if isinstance(part, Distribution):
            yield from _parts(base_of(part))


def _ends(q: Any) -> list[Any]:
    """The ends of the support, numbers or tensors, which carry a gradient if they move."""
    if type(q).support is not TransformedDistribution.support:
        try:
            return _bounds(q.support)
        except (NotImplementedError, AttributeError):
            return []
    ends = _ends(base_of(q.base_dist))
    for transform in q.transforms:
        ends = _through(transform, ends)
    return ends


def _through(transform: Any, ends: list[Any]) -> list[Any]:
    """Where a transform leads the ends."""
    if isinstance(transform, ComposeTransform):
        for part in transform.parts:
            ends = _through(part, ends)
        return ends
    if isinstance(transform, CatTransform | StackTransform):
        return [end for part in transform.transforms for end in _through(part, ends)]
    if isinstance(transform, IndependentTransform):
        return _through(transform.base_transform, ends)
    if isinstance(transform, AffineTransform):  # torch says that it leads to the whole line
        return [transform.loc + _scaled(end, transform.scale) for end in ends]
    if isinstance(back := transform.inv, AffineTransform):
        return [_scaled(end - back.loc, 1 / back.scale) for end in ends]
    if isinstance(transform, PowerTransform):
        return [_raised(end, transform.exponent) for end in ends]
    return _bounds(transform.codomain)


def _bounds(support: Any) -> list[Any]:
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    ends = (getattr(support, name, None) for name in ("lower_bound", "upper_bound"))
    return [end for end in ends if end is not None]


def _scaled(end: Any, scale: Any) -> Any:
    """A scale moves no end that is 0."""
    return end if _is_one_of(end, 0) else end * scale


def _raised(end: Any, power: Any) -> Any:
    """A power moves no end that is 0 or 1."""
    return end if _is_one_of(end, 0, 1) else end**power


def _is_one_of(end: Any, *numbers: float) -> bool:
    if isinstance(end, Tensor) and not inspectable(end):
        return False
    end = torch.as_tensor(end)
    return bool(torch.stack([end == number for number in numbers]).any(0).all())


def _may_move(end: Tensor) -> bool:
    return carries_gradient(end) and (not inspectable(end) or bool(end.isfinite().any()))
