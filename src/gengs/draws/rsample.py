r"""Draws that carry a gradient: one function, every law.

A law that is drawn in stages (:mod:`gengs.draws.compounds`) or gives vectors
(:mod:`gengs.draws.vectors`) says so in :data:`STAGES`; a count family has closed forms
(:mod:`gengs.draws.count_slopes`); any other law is taken as a table on ordered atoms
(:mod:`gengs.draws.ordered_table`).
"""

from __future__ import annotations

__all__ = ["STAGES", "Stages", "closed_form", "midcdf_sample", "rsample"]

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Geometric, Independent
from torch.types import _size

from ..distributions.finite import Finite
from ..distributions.gumbel import log_exponential
from ..distributions.tails import log_success_and_failure
from ..distributions.truncation import as_finite
from .count_slopes import FAMILIES
from .ordered_table import VALLEY, midcdf_from_table


def rsample(law: Distribution, sample_shape: _size = torch.Size(), by: Any = None) -> Tensor:
    """Draws from ``law``, of shape ``(*sample, *batch, *event)``, that carry a gradient.

    Args:
        law: Any discrete law: Poisson, Binomial, NegativeBinomial, Geometric, Bernoulli,
            Multinomial, OneHotCategorical, Skellam, a :class:`Finite`, a mixture, Pyro's compound
            laws, any law that can be truncated, or ``Independent`` of these. Every parameter that
            requires a gradient gets one, a binomial's ``total_count`` included. A ``Categorical``
            is an index, a number in an order. A law with an ``rsample`` of its own uses that.
        sample_shape: How many draws. Several draws from a table are stratified: each is exact, and
            together they cover the law more evenly than independent ones.
        by: Whose gradient: :class:`~gengs.MidCDF` unless told otherwise, or any estimator whose
            gradient belongs to the draw, such as ``GenGS(0.5)`` or ``StraightThroughMean()``.

    Example:
        >>> rate = torch.tensor([0.5, 3.0, 1e6], requires_grad=True)
        >>> z = rsample(torch.distributions.Poisson(rate))
        >>> (z.square().sum()).backward()  # in your model: any cost
        >>> bool((z == z.round()).all()), rate.grad.shape
        (True, torch.Size([3]))
    """
    if not isinstance(law, Distribution):
        raise TypeError(f"rsample expects a torch distribution, but got {type(law).__name__}.")
    if by is None:
        own = law.has_rsample
        return law.rsample(sample_shape) if own else midcdf_sample(law, sample_shape)
    if isinstance(by, type):
        raise TypeError(f"rsample expects an estimator, but got a class; pass by={by.__name__}().")
    if not hasattr(by, "draw") and not hasattr(by, "expect"):
        raise TypeError(f"rsample expects an estimator as `by`, but got {by!r}.")
    if not hasattr(by, "draw"):
        name = type(by).__name__
        raise TypeError(
            f"{name} needs the cost of a draw, which rsample does not know: call "
            f"{name}(...).expect(cost, law), or draw by MidCDF, GenGS, ReinMax, GumbelRao, IGR, "
            "StraightThroughMean or ArrivalTimes."
        )
    while isinstance(law, Independent):
        law = law.base_dist
    drawn: Tensor = by.draw(law, torch.Size(sample_shape))
    return drawn


def midcdf_sample(
    law: Distribution, sample_shape: _size = torch.Size(), *, valley: float | None = None
) -> Tensor:
    """:func:`rsample` by the mid-CDF rule, with its one setting.

    Args:
        law: As for :func:`rsample`.
        sample_shape: How many draws.
        valley: Atoms of a table below this fraction of the largest one, times the lesser mass on
            their two sides, are bridged; 0.01 by default. With 0 a draw moves between neighbours
            only: no possible atom is bridged, and no stage of a mixture jumps.
    """
    while isinstance(law, Independent):
        law = law.base_dist
    shape = torch.Size(sample_shape)
    stages = _stages_of(law)
    if stages is not None and not (valley == 0 and stages.jumps):
        return stages.draw(law, shape)
    family = _family_of(law)
    if family is not None:
        return FAMILIES[family](law, _plain_draw(law, shape))
    return midcdf_from_table(as_finite(law), shape, VALLEY if valley is None else valley)


def closed_form(law: Distribution) -> Callable[[Tensor], Tensor] | None:
    """The function that makes a draw of ``law`` move with its parameters; ``None`` without one.

    The draw, of shape ``(*sample, *batch)``, may have been made by whatever means.
    """
    while isinstance(law, Independent):
        law = law.base_dist
    family = None if _stages_of(law) else _family_of(law)
    return partial(FAMILIES[family], law) if family else None


# ------------------------------------------------------------------------------------ the dispatch


class Stages:
    """How a law is drawn by draws of other laws.

    Args:
        draw: From the law and a sample shape to draws that carry a gradient.
        jumps: Whether a stage moves a draw to values that are no neighbours.
        applies: Whether this law needs it; always unless told otherwise.
    """

    def __init__(
        self,
        draw: Callable[[Any, torch.Size], Tensor],
        jumps: bool = False,
        applies: Callable[[Any], bool] = lambda law: True,
    ) -> None:
        self.draw, self.jumps, self.applies = draw, jumps, applies


STAGES: dict[type | str, Stages] = {}
"""By class, or by ``package.Name`` for classes of packages that need not be installed."""


def _stages_of(law: Distribution) -> Stages | None:
    kind = type(law)
    for cls in kind.__mro__:
        stages = STAGES.get(cls) or STAGES.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
        if stages is not None:
            known = cls is Finite or _same_pmf(kind, cls)  # a table is a table
            return stages if known and stages.applies(law) else None
    return None


def _family_of(law: Distribution) -> type[Distribution] | None:
    kind = type(law)
    return next((f for f in FAMILIES if isinstance(law, f) and _same_pmf(kind, f)), None)


def _same_pmf(kind: type, family: type) -> bool:
    """A subclass with a PMF of its own may be another law; Pyro's of the same name is not."""
    if getattr(kind, "log_prob", None) is getattr(family, "log_prob", None):
        return True
    return kind.__module__.startswith("pyro.") and kind.__name__ == family.__name__


def _plain_draw(law: Distribution, shape: torch.Size) -> Tensor:
    with torch.no_grad():
        if not isinstance(law, Geometric):
            return law.sample(shape)
        # the whole part of an exponential variable; torch's own way does not work under vmap
        log_failure = log_success_and_failure(law)[1].squeeze(-1)
        log_exp = log_exponential(shape + law.batch_shape, log_failure.dtype, log_failure.device)
        return (log_exp.exp() / -log_failure).floor()
