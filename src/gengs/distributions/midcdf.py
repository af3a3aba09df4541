r"""Exact discrete draws that carry a gradient: implicit reparameterisation through the mid-CDF.

For a continuous variable, a draw moves with the parameters by
:math:`dz/d\theta = -\partial_\theta F(z) / p(z)` (implicit reparameterisation). For a discrete one
this takes the *mid-distribution function* in place of :math:`F`,

.. math::
    F_\mathrm{mid}(k) = \tfrac12 (F(k) + F(k - 1)), \qquad
    \frac{dz}{d\theta} = -\frac{\partial_\theta F_\mathrm{mid}(z)}{p(z)}.

Why: with :math:`S_k = -\partial_\theta F(k)`,
:math:`\partial_\theta E f = \sum_k S_k (f(k + 1) - f(k))` is exact; the trapezoid rule
:math:`f(k + 1) - f(k) \approx \tfrac12 (f'(k) + f'(k + 1))` makes it
:math:`E[f'(z)\, dz/d\theta]`. So the gradient is exact for every cost that is quadratic between
neighbours, and off by third derivatives only otherwise. The forward value is an exact draw.

The count families have closed forms, without a table and without truncation:

=================  =====================================  =======================================
law                dz/d(rate or p)                        dz/dlogit
=================  =====================================  =======================================
Poisson(λ)         (1 + z/λ) / 2
Binomial(N, p)     (z/p + (N - z)/(1 - p)) / 2            (z(1 - p) + (N - z)p) / 2
NegativeBinomial   (z/(p(1 - p)) + (r + z)/(1 - p)) / 2   (z + p(r + z)) / 2
Geometric(p)       -(z/(p(1 - p)) + (1 + z)/p) / 2        -(z + (1 - p)(1 + z)) / 2
Skellam            those of its two Poisson counts
=================  =====================================  =======================================

Any other law is taken as a table on ordered atoms :math:`c_0 < \dots < c_{n-1}` with gaps
:math:`\Delta_k = c_{k+1} - c_k`:

.. math::
    \frac{dz}{d\theta} = -\frac{\Delta_z\, \partial F_z + \Delta_{z-1}\, \partial F_{z-1}}{2 \pi_z}

**Valleys.** An interior atom much rarer than atoms on both its sides would get a huge weight,
:math:`1/\pi_z`, once in :math:`1/\pi_z` draws. An atom below 1 % of the largest atom on either side
is therefore bridged: the derivative of the cost is interpolated between its neighbours (linear
finite elements on the atoms that are not bridged), which stays exact for quadratic costs and bounds
the weights by 100 n times the gap. Unimodal laws have no valleys and are not touched.

**Second derivatives.** The closed forms are functions of the draw and the parameters, so they can
be differentiated again (for Poisson and a quadratic cost, even the second derivative is exact). The
table form cannot, and says so.

References:
    | Implicit Reparameterization Gradients (Figurnov et al., 2018),
    | https://arxiv.org/abs/1805.08498 (the continuous case)
"""

from __future__ import annotations

__all__ = ["midcdf_sample"]

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributions import (
    Bernoulli,
    Binomial,
    Distribution,
    Geometric,
    Independent,
    NegativeBinomial,
    Poisson,
)
from torch.types import _size

from .families import _gave
from .finite import Finite
from .inverse import inverse_cdf_index
from .skellam import Skellam
from .stratified import stratified_uniforms
from .truncate import as_finite
from .validation import inspectable

_VALLEY = 0.01
"""An atom below this fraction of the largest atoms on both sides is bridged."""


def midcdf_sample(law: Distribution, sample_shape: _size = torch.Size()) -> Tensor:
    """Exact draws from ``law``, of shape ``(*sample, *batch, *event)``, that carry a gradient.

    Args:
        law: Poisson, Binomial, NegativeBinomial, Geometric, Bernoulli, Skellam, a :class:`Finite`
            with scalar atoms, any law that can be truncated to one, or ``Independent`` of these.
        sample_shape: How many draws. Several draws from a table are stratified: each is exact, and
            together they cover the law more evenly than independent ones.

    Example:
        >>> rate = torch.tensor([0.5, 3.0, 1e6], requires_grad=True)
        >>> z = midcdf_sample(torch.distributions.Poisson(rate))
        >>> (z.square().sum()).backward()  # in your model: any cost
        >>> bool((z == z.round()).all()), rate.grad.shape
        (True, torch.Size([3]))
    """
    while isinstance(law, Independent):
        law = law.base_dist
    shape = torch.Size(sample_shape)
    if isinstance(law, Skellam):
        up = midcdf_sample(Poisson(law.rate_up, validate_args=False), shape)
        return up - midcdf_sample(Poisson(law.rate_down, validate_args=False), shape)
    if isinstance(law, Poisson):
        return _poisson(_draw(law, shape), law.rate)
    if isinstance(law, Binomial | Bernoulli):
        total = law.total_count if isinstance(law, Binomial) else torch.ones_like(law.mean)
        by_logit = _gave(law, "logits")
        follow, parameter = (_binomial_logits, law.logits) if by_logit else (_binomial, law.probs)
        return follow(_draw(law, shape), parameter, total)
    if isinstance(law, Geometric):
        by_logit = _gave(law, "logits")
        follow, parameter = (_geometric_logits, law.logits) if by_logit else (_geometric, law.probs)
        return follow(_draw(law, shape), parameter)
    if isinstance(law, NegativeBinomial) and not law.total_count.requires_grad:
        by_logit = _gave(law, "logits")
        follow, parameter = (_negative_logits, law.logits) if by_logit else (_negative, law.probs)
        return follow(_draw(law, shape), parameter, law.total_count)
    return midcdf_from_table(as_finite(law), shape)


def _draw(law: Distribution, shape: torch.Size) -> Tensor:
    with torch.no_grad():
        return law.sample(shape)


# ------------------------------------------------------------------------- the closed forms


def _follows(slope: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that returns its first argument, a draw, moving with its second by ``slope``.

    The slope is computed from the draw *that was returned*, so that a second derivative sees both
    ways in which the slope depends on the parameter: directly, and through the draw.
    """

    class Follow(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(z: Tensor, parameter: Tensor, *constants: Tensor) -> Tensor:
            return z.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.save_for_backward(output, *inputs[1:])

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            z, parameter, *constants = ctx.saved_tensors
            moved = grad * slope(z, parameter, *constants).to(grad.dtype)
            nothing = [None] * len(constants)
            return None, moved.sum_to_size(parameter.shape).to(parameter.dtype), *nothing

    return Follow.apply


def _ratio(z: Tensor, x: Tensor) -> Tensor:
    """``z / x`` for a count ``z`` that is 0 wherever ``x`` is: 0/0 is 0, also for its gradient."""
    none = (z == 0) & (x == 0)
    return z / x.masked_fill(none, 1.0)


_poisson = _follows(lambda z, rate: (1 + _ratio(z, rate)) / 2)
_binomial = _follows(lambda z, p, n: (_ratio(z, p) + _ratio(n - z, 1 - p)) / 2)
_binomial_logits = _follows(
    lambda z, logit, n: (z * torch.sigmoid(-logit) + (n - z) * torch.sigmoid(logit)) / 2
)
_geometric = _follows(lambda z, p: -(_ratio(z, p * (1 - p)) + (1 + z) / p) / 2)
_geometric_logits = _follows(lambda z, logit: -(z + torch.sigmoid(-logit) * (1 + z)) / 2)
_negative = _follows(lambda z, p, r: (_ratio(z, p * (1 - p)) + (r + z) / (1 - p)) / 2)
_negative_logits = _follows(lambda z, logit, r: (z + torch.sigmoid(logit) * (r + z)) / 2)


# ------------------------------------------------------------------------------- the table form


def midcdf_from_table(law: Finite, shape: torch.Size, valley: float = _VALLEY) -> Tensor:
    """Draws from a law on ordered scalar atoms that carry the mid-CDF gradient.

    Args:
        law: Scalar atoms, in any order, with any gaps.
        shape: The sample shape.
        valley: Atoms below this fraction of the largest on both sides are bridged; 0 for none.
    """
    if law.event_dim:
        raise TypeError(
            "the mid-CDF gradient needs atoms that are ordered numbers, but these are vectors "
            f"(event_dim={law.event_dim}); GenGS, ReinMax and the score-function estimators do "
            "without an order."
        )
    atoms, probs = _sorted(law)
    uniforms = stratified_uniforms(shape, law.batch_shape, probs.device)
    index = inverse_cdf_index(probs.detach(), shape, uniforms=uniforms).unsqueeze(-1)
    z = atoms.expand(*index.shape[:-1], atoms.shape[-1]).gather(-1, index).squeeze(-1)
    if not probs.requires_grad:
        return z
    cdf = probs.cumsum(-1)  # only its derivative is used: that it rounds to 1 does no harm
    kept = _kept(probs.detach(), valley)
    if valley == 0 or (inspectable(kept) and bool(kept.all())):
        follow = _along_neighbours(atoms, cdf, index)
    else:
        follow = _along_kept_atoms(atoms, cdf, kept, z, index)
    rate = probs.detach().expand(*index.shape[:-1], -1).gather(-1, index).squeeze(-1)
    moved = _OnceDifferentiable.apply(-follow / rate.to(follow.dtype))
    return z + (moved - moved.detach()).to(z.dtype)


def _sorted(law: Finite) -> tuple[Tensor, Tensor]:
    atoms, probs = law.atoms, law.probs
    rising = inspectable(atoms) and bool((atoms.diff(dim=-1) > 0).all())
    if rising:
        return atoms, probs
    atoms, order = atoms.expand_as(probs).sort(-1)
    return atoms, probs.gather(-1, order)


def _along_neighbours(atoms: Tensor, cdf: Tensor, index: Tensor) -> Tensor:
    """``(F_z gap_z + F_{z-1} gap_{z-1}) / 2`` at the drawn atoms."""
    gaps = atoms.diff(dim=-1).to(cdf.dtype)
    weighted = cdf[..., :-1] * gaps  # the last atom has F = 1 and no gap
    padded = torch.nn.functional.pad(weighted, (1, 1))  # (*batch, n + 1): 0, ..., 0
    padded = padded.expand(*index.shape[:-1], -1)
    return (padded.gather(-1, index) + padded.gather(-1, index + 1)).squeeze(-1) / 2


def _along_kept_atoms(atoms: Tensor, cdf: Tensor, kept: Tensor, z: Tensor, index: Tensor) -> Tensor:
    """The integral of F against the hat function of each drawn atom, on the grid of kept atoms."""
    at = z.unsqueeze(-1)
    previous = atoms.where(kept & (atoms < at), -torch.inf).amax(-1, keepdim=True)
    following = atoms.where(kept & (atoms > at), torch.inf).amin(-1, keepdim=True)
    middle = (atoms[..., 1:] + atoms[..., :-1]) / 2
    rise = ((middle - previous) / (at - previous)).where(previous > -torch.inf, 0.0)
    fall = ((following - middle) / (following - at)).where(following < torch.inf, 0.0)
    hat = torch.where(middle < at, rise, fall).clamp_min(0.0)
    drawn_is_kept = kept.expand(*index.shape[:-1], -1).gather(-1, index)
    weight = (hat * atoms.diff(dim=-1)).where(drawn_is_kept, 0.0)
    return (cdf[..., :-1] * weight.to(cdf.dtype)).sum(-1)


def _kept(probs: Tensor, valley: float) -> Tensor:
    """Which atoms are not in a valley: not rare beside the largest atoms on both sides."""
    nothing = torch.zeros_like(probs[..., :1])
    left = torch.cat([nothing, probs[..., :-1].cummax(-1).values], -1)
    right = torch.cat([probs[..., 1:].flip(-1).cummax(-1).values.flip(-1), nothing], -1)
    return probs >= valley * torch.minimum(left, right)


class _OnceDifferentiable(torch.autograd.Function):
    """The identity; a second derivative raises, as the drawn atom's index has none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad
