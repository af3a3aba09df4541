r"""Draws that carry a gradient: one function, every law.

A law that is drawn in stages (:mod:`gengs.laws.compounds`) or gives vectors
(:mod:`gengs.laws.vectors`) says so in :data:`STAGES`; a count family has closed forms
(:mod:`gengs.numerics.attach`); any other law is taken as a table on ordered atoms
(:mod:`gengs.laws.ordered_table`).
"""

__all__ = [
    "STAGES",
    "Stages",
    "draw_one_by_one",
    "looks_into",
    "midcdf_sample",
    "mover",
    "refuse_settings_of_expect",
    "rsample",
]

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Distribution,
    Geometric,
    Independent,
    Multinomial,
    OneHotCategorical,
)
from torch.types import _size

from ..laws.law import Family, family_of
from ..tables.finite import Finite
from ..numerics.gumbel import log_exponential
from ..numerics.tails import log_success_and_failure
from ..numerics.tracing import any_of
from ..tables.truncation import as_finite
from ..numerics.attach import FAMILIES
from ..laws.ordered_table import VALLEY, midcdf_from_table, move_in_table
from ..laws.own_laws import has_own_pmf, is_the_law


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
    refuse_settings_of_expect("rsample", by)
    while isinstance(law, Independent):
        law = law.base_dist
    drawn: Tensor = by.draw(law, torch.Size(sample_shape))
    return drawn


def refuse_settings_of_expect(owner: str, by: Any) -> None:
    """Raise a ``TypeError`` for settings that say how often ``expect`` asks its cost.

    Args:
        owner: The function that was called, for the message.
        by: An estimator, the library's or somebody's own.
    """
    for name, default in (("samples", 1), ("debias", 0)):
        value = getattr(by, name, default)
        if value != default:
            kind = type(by).__name__
            raise TypeError(
                f"{owner} makes one draw and never asks its cost, so it has no use for "
                f"`{name}={value}` of {kind}, which belongs to {kind}(...).expect(cost, law); "
                f"leave it out{', and ask for several draws' if name == 'samples' else ''}."
            )


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
    return midcdf_from_table(_table_of(law), shape, VALLEY if valley is None else valley)


def mover(law: Distribution) -> Callable[[Tensor], Tensor] | None:
    """The function that makes a draw of ``law`` move with its parameters.

    The draw, of shape ``(*sample, *batch, *event)``, may have been made by whatever means. ``None``
    for a law in stages, whose draw does not tell what its stages drew.
    """
    while isinstance(law, Independent):
        law = law.base_dist
    stages = _stages_of(law)
    if stages is not None:
        return partial(stages.move, law) if stages.move is not None else None
    family = _family_of(law)
    return partial(FAMILIES[family], law) if family else partial(move_in_table, _table_of(law))


def draw_one_by_one(law: Distribution, shape: torch.Size) -> Tensor:
    """:func:`midcdf_sample` whose draws are independent, those from a table included."""
    move = mover(law)
    return midcdf_sample(law, shape) if move is None else move(_plain_draw(law, shape))


def looks_into(law: Distribution) -> bool:
    """Whether a block lets the draws inside ``law.sample()`` carry the gradient.

    So it does where that is all there is to know about a law: no closed form and no ``log_prob``.
    """
    stages = _stages_of(law)
    if stages is not None:
        return stages.inside
    known = isinstance(law, Finite) or law.has_rsample or _family_of(law) is not None
    return not known and not has_own_pmf(law)


# ------------------------------------------------------------------------------------ the dispatch


class Stages:
    """How a law is drawn by draws of other laws.

    Args:
        draw: From the law and a sample shape to draws that carry a gradient.
        move: From the law and a draw to the same draw with a gradient, where that can be done.
        jumps: Whether a stage moves a draw to values that are no neighbours.
        inside: Whether a block looks into the law's own ``sample()`` instead, which draws its
            stages in the open, to make the numbers that it always makes.
        applies: Whether this law needs it; always unless told otherwise.
    """

    def __init__(
        self,
        draw: Callable[[Any, torch.Size], Tensor],
        move: Callable[[Any, Tensor], Tensor] | None = None,
        jumps: bool = False,
        inside: bool = False,
        applies: Callable[[Any], bool] = lambda law: True,
    ) -> None:
        self.draw, self.move, self.applies = draw, move, applies
        self.jumps, self.inside = jumps, inside


STAGES: dict[type | str, Stages] = {}
"""By class, or by ``package.Name`` for classes of packages that need not be installed."""


def _stages_of(law: Distribution) -> Stages | None:
    if isinstance(law, Finite) and not law.event_dim:  # numbers, which have an order
        return None
    for cls in type(law).__mro__:
        stages = STAGES.get(cls) or STAGES.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
        if stages is not None:
            known = cls is Finite or is_the_law(law, cls)  # a table is a table
            return stages if known and stages.applies(law) else None
    return None


def _family_of(law: Distribution) -> type[Distribution] | None:
    return next((family for family in FAMILIES if is_the_law(law, family)), None)


def _table_of(law: Distribution) -> Finite:
    """The table of a law that has no other form, if its ``log_prob`` can be trusted."""
    name = type(law).__name__
    if isinstance(law, Finite):
        return law
    if not has_own_pmf(law):
        raise TypeError(
            f"{name} has a sample() of its own and no log_prob that belongs to it, so nothing is "
            "known of its probabilities; give it one, or draw in a gengs.differentiable() block, "
            "which looks into sample()."
        )
    if not _on_a_lattice(law):
        raise TypeError(
            f"{name} is continuous: the mid-CDF rule needs a law with a PMF. Draw by the law's own "
            "rsample where it has one; RLOO and REINFORCE need its log_prob only."
        )
    if isinstance(law, OneHotCategorical | Multinomial):
        raise TypeError(
            f"{name} draws vectors with a sample() or log_prob of its own, for which no slope is "
            "known; make it a gengs.Finite on its vectors, or use RLOO."
        )
    _refuse_growing(law)
    return as_finite(law)


def _refuse_growing(law: Distribution) -> None:
    """Raise for a ``log_prob`` of somebody's own that gives a few integers more than all the mass.

    The search for a window would not end where probabilities grow from one integer to the next.
    """
    family = family_of(law) if not law.event_shape else None
    if type(family) is not Family:  # closed forms are normalised
        return
    first = family.lower if family.lower is not None else -32
    total = (
        family.log_pmf(first + torch.arange(64, device=family.like.device))
        .detach()
        .logsumexp(-1)
        .exp()
    )
    if any_of(total > 1.001):
        raise ValueError(
            f"{type(law).__name__} has a log_prob that is not normalised: the probabilities of 64 "
            f"integers sum to {total.max().item():.4g}."
        )


def _on_a_lattice(law: Distribution) -> bool:
    """Whether draws are discrete, as far as the law says."""
    try:
        return bool(getattr(law.support, "is_discrete", True))
    except NotImplementedError:
        return True


def _plain_draw(law: Distribution, shape: torch.Size) -> Tensor:
    with torch.no_grad():
        if not isinstance(law, Geometric):
            return law.sample(shape)
        # the whole part of an exponential variable; torch's own way does not work under vmap
        log_failure = log_success_and_failure(law)[1].squeeze(-1)
        log_exp = log_exponential(shape + law.batch_shape, log_failure.dtype, log_failure.device)
        return (log_exp.exp() / -log_failure).floor()
