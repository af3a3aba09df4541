"""Draws that carry a gradient: one function, every distribution."""

__all__ = ["refuse_settings_of_expect", "rsample", "weight_for"]

import inspect
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.types import _size

from ..distributions import law_of  # which registers every record
from ..laws.inflow_weight import check_weight
from ..laws.law import Law, base_of


def rsample(
    law: Distribution,
    sample_shape: _size = torch.Size(),
    by: Any = None,
    *,
    antithetic: bool = False,
    weight: float | None = None,
) -> Tensor:
    """Draws from a distribution, of shape ``(*sample, *batch, *event)``, that carry a gradient.

    Args:
        law: Any discrete distribution: Poisson, Binomial, NegativeBinomial, Geometric, Bernoulli,
            Multinomial, OneHotCategorical, Skellam, a :class:`Finite`, a mixture, Pyro's compounds,
            anything that can be truncated, or ``Independent`` of these. Every parameter that
            requires a gradient gets one, a binomial's ``total_count`` included. A ``Categorical``
            is an index, a number in an order. One with an ``rsample`` of its own uses that.
        sample_shape: How many draws; they are independent.
        by: Whose gradient: :class:`~gengs.MidCDF` unless told otherwise, or any estimator whose
            gradient belongs to the draw, such as ``GenGS(0.5)`` or ``StraightThroughMean()``.
        antithetic: Whether several draws come in stratified pairs of uniforms ``(u, 1 - u)``: each
            is exact, and together they cover the distribution more evenly than independent ones.
            One draw has no partner, and of an odd number one draw has none.
        weight: For one-hot vectors and tables of vectors, the weight of the noisy half of the
            gradient, from 0 (plain straight-through) to 0.5 (exact for quadratic costs); beyond,
            up to 1, there is more noise and bias again. By default 0.5 for up to 32 atoms and
            ``144 / (256 + K)`` for more (:mod:`gengs.laws.inflow_weight`).

    Example:
        >>> rate = torch.tensor([0.5, 3.0, 1e6], requires_grad=True)
        >>> z = rsample(torch.distributions.Poisson(rate))
        >>> (z.square().sum()).backward()  # in your model: any cost
        >>> bool((z == z.round()).all()), rate.grad.shape
        (True, torch.Size([3]))
    """
    if not isinstance(law, Distribution):
        raise TypeError(f"rsample expects a torch distribution, but got {type(law).__name__}.")
    if not isinstance(sample_shape, (tuple, list)):
        raise TypeError(
            f"rsample expects a shape, such as (2,), as `sample_shape`, but got {sample_shape!r}."
        )
    if not all(isinstance(n, (Integral, torch.SymInt)) and n >= 0 for n in sample_shape):
        raise ValueError(
            "rsample expects integers of at least 0 in `sample_shape`, but got "
            f"{tuple(sample_shape)}."
        )
    if by is None:
        if law.has_rsample and not antithetic and weight is None:
            return law.rsample(sample_shape)
        record = law_of(law)
        chosen = weight_for("rsample", record, weight)
        z = record.rsample(torch.Size(sample_shape), antithetic=antithetic, **chosen)
        return record.narrowed(z)
    for name, value in (("antithetic", antithetic), ("weight", weight is not None)):
        if value:
            raise TypeError(
                f"rsample takes {name}= for its own rule; with `by`, ask the estimator: "
                f"MidCDF({name}=...)."
            )
    if isinstance(by, type):
        raise TypeError(f"rsample expects an estimator, but got a class; pass by={by.__name__}().")
    if not hasattr(by, "draw") and not hasattr(by, "expect"):
        raise TypeError(f"rsample expects an estimator as `by`, but got {by!r}.")
    if not hasattr(by, "draw"):
        name = type(by).__name__
        raise TypeError(
            f"{name} needs the cost of a draw, which rsample does not know: call "
            f"{name}(...).expect(cost, q), or draw by MidCDF, GenGS, ReinMax, GumbelRao, IGR, "
            "StraightThroughMean or ArrivalTimes."
        )
    refuse_settings_of_expect("rsample", by)
    return law_of(law).narrowed(by.draw(base_of(law), torch.Size(sample_shape)))


def weight_for(owner: str, record: Law, weight: float | None) -> dict[str, Any]:
    """The argument ``weight`` of a record's ``rsample``, where it was given and applies."""
    if weight is None:
        return {}
    check_weight(owner, weight)
    if not record.takes_weight:
        raise TypeError(
            f"{owner} takes `weight` for one-hot vectors and tables of vectors only, but got "
            f"{type(record.q).__name__}; leave it out."
        )
    return {"weight": float(weight)}


def refuse_settings_of_expect(owner: str, by: Any) -> None:
    """Raise a ``TypeError`` for settings that say how often ``expect`` asks its cost.

    Args:
        owner: The function that was called, for the message.
        by: An estimator, the library's or your own, or ``None``.
    """
    if not hasattr(by, "samples"):
        return
    defaults = inspect.signature(type(by)).parameters
    for name in ("samples", "debias"):
        value = getattr(by, name, None)
        if name in defaults and value != defaults[name].default:
            kind = type(by).__name__
            raise TypeError(
                f"{owner} makes one draw and never asks its cost, so it has no use for "
                f"`{name}={value}` of {kind}, which belongs to {kind}(...).expect(cost, q); "
                f"leave it out{', and ask for several draws' if name == 'samples' else ''}."
            )
