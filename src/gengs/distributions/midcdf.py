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

A Poisson that is cut to 0 ... a moves like the Poisson below a, and at a, where the tail is lumped,
by half the slope of :math:`\log P(X \ge a)`. Any other law is taken as a table on ordered atoms,
with the same formula (:mod:`midcdf_table`).

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
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor
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

from .given import gave, log_success_and_failure, widen
from .gumbel import log_exponential
from .midcdf_table import VALLEY, NotTwice, midcdf_from_table
from .plainly import plainly
from .poisson_tail import differentiable_cut_tail
from .skellam import Skellam
from .sums import sum_to
from .truncate import as_finite
from .truncated import Truncated
from .validation import ordinary


def midcdf_sample(
    law: Distribution, sample_shape: _size = torch.Size(), *, valley: float | None = None
) -> Tensor:
    """Exact draws from ``law``, of shape ``(*sample, *batch, *event)``, that carry a gradient.

    Args:
        law: Poisson, Binomial, NegativeBinomial, Geometric, Bernoulli, Skellam, a :class:`Finite`
            with scalar atoms, any law that can be truncated to one, or ``Independent`` of these.
        sample_shape: How many draws. Several draws from a table are stratified: each is exact, and
            together they cover the law more evenly than independent ones.
        valley: Atoms of a table below this fraction of the largest on both sides are bridged; 0.01
            by default, 0 for none.

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
    if isinstance(law, Truncated) and law.poisson_cut is not None and shape.numel() == 1:
        rate = cast(Poisson, law.source).rate
        if ordinary(rate):  # one draw: several from the table would be stratified
            rate = widen(rate)
            tail = law.poisson_tail or differentiable_cut_tail(rate.detach(), law.poisson_cut)
            # past a million, of which no cut sees anything, torch's integers overflow one day
            rates = tail.of.clamp_max(1e6).expand(shape + rate.shape)
            z = torch.poisson(rates).clamp_max_(law.poisson_cut)
            return _clipped_poisson(law.poisson_cut)(z, rate, tail.of, tail.growth)
    r_learned = isinstance(law, NegativeBinomial) and law.total_count.requires_grad
    for family, draw in _CLOSED_FORMS.items():
        # a subclass with a PMF of its own may be another law
        if isinstance(law, family) and type(law).log_prob is family.log_prob and not r_learned:
            return draw(law, shape)
    return midcdf_from_table(as_finite(law), shape, VALLEY if valley is None else valley)


# ------------------------------------------------------------------------- the closed forms


def _follows(slope: Callable[..., Tensor], twice: bool = True) -> Callable[..., Tensor]:
    """A function that returns its first argument, a draw, moving with its second by ``slope``.

    The slope is computed from the draw *that was returned*, so that a second derivative sees both
    ways in which the slope depends on the parameter: directly, and through the draw.
    """

    class Follow(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(z: Tensor, parameter: Tensor, *constants: Tensor) -> Tensor:
            return z.clone()  # the caller may change it in place

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.save_for_backward(output if twice else inputs[0], *inputs[1:])

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            z, parameter, *constants = ctx.saved_tensors
            moved = grad * slope(z, parameter, *constants).to(grad.dtype)
            moved = sum_to(moved, parameter.shape).to(parameter.dtype)
            if not twice and torch.is_grad_enabled():
                moved = NotTwice.apply(moved, grad, parameter)
            return None, moved, *[None] * len(constants)

    def follow(z: Tensor, parameter: Tensor, *constants: Tensor) -> Tensor:
        if torch.compiler.is_compiling():  # no second derivatives there, so the plain form will do
            rate = slope(z, parameter.detach(), *constants)
            return z + (rate * (parameter - parameter.detach())).to(z.dtype)
        function = plain if ordinary(z, parameter) else Follow
        return function.apply(z, parameter, *constants)

    plain = plainly(Follow)
    return follow


def _ratio(z: Tensor, x: Tensor) -> Tensor:
    """``z / x`` for a count ``z`` that is 0 wherever ``x`` is: 0/0 is 0, also for its gradient."""
    return z / x.clamp_min(torch.finfo(x.dtype).tiny)


@lru_cache(maxsize=64)
def _clipped_poisson(high: int) -> Callable[..., Tensor]:
    """Inside, the slope of the Poisson; at the end, half the slope of its tail's logarithm."""

    def slope(z: Tensor, _: Tensor, rate: Tensor, growth: Tensor) -> Tensor:
        return torch.where(z < high, 1 + _ratio(z, rate), (-growth).exp()) / 2

    return _follows(slope, twice=False)


_poisson = _follows(lambda z, rate: (1 + _ratio(z, rate)) / 2)
_binomial = _follows(lambda z, p, n: (_ratio(z, p) + _ratio(n - z, 1 - p)) / 2)
_binomial_logits = _follows(
    lambda z, logit, n: (z * torch.sigmoid(-logit) + (n - z) * torch.sigmoid(logit)) / 2
)
_geometric = _follows(lambda z, p: -(_ratio(z, p * (1 - p)) + (1 + z) / p) / 2)
_geometric_logits = _follows(lambda z, logit: -(z + torch.sigmoid(-logit) * (1 + z)) / 2)
_negative = _follows(lambda z, p, r: (_ratio(z, p * (1 - p)) + (r + z) / (1 - p)) / 2)
_negative_logits = _follows(lambda z, logit, r: (z + torch.sigmoid(logit) * (r + z)) / 2)


# ---------------------------------------------------------------------------- exact draws, moving


def _draw(law: Distribution, shape: torch.Size) -> Tensor:
    with torch.no_grad():
        return law.sample(shape)


def _draw_poisson(law: Poisson, shape: torch.Size) -> Tensor:
    return _poisson(_draw(law, shape), law.rate)


def _draw_skellam(law: Skellam, shape: torch.Size) -> Tensor:
    up, down = (Poisson(rate, validate_args=False) for rate in (law.rate_up, law.rate_down))
    return _draw_poisson(up, shape) - _draw_poisson(down, shape)


def _draw_binomial(law: Binomial, shape: torch.Size) -> Tensor:
    if gave(law, "logits"):
        return _binomial_logits(_draw(law, shape), law.logits, law.total_count)
    return _binomial(_draw(law, shape), law.probs, law.total_count)


def _draw_bernoulli(law: Bernoulli, shape: torch.Size) -> Tensor:
    if gave(law, "logits"):
        return _binomial_logits(_draw(law, shape), law.logits, torch.ones_like(law.logits))
    return _binomial(_draw(law, shape), law.probs, torch.ones_like(law.probs))


def _draw_negative_binomial(law: NegativeBinomial, shape: torch.Size) -> Tensor:
    if gave(law, "logits"):
        return _negative_logits(_draw(law, shape), law.logits, law.total_count)
    return _negative(_draw(law, shape), law.probs, law.total_count)


def _draw_geometric(law: Geometric, shape: torch.Size) -> Tensor:
    """The whole part of an exponential variable; torch's own way does not work under ``vmap``."""
    with torch.no_grad():
        log_failure = log_success_and_failure(law)[1].squeeze(-1)
        log_exp = log_exponential(shape + law.batch_shape, log_failure.dtype, log_failure.device)
        z = (log_exp.exp() / -log_failure).floor()
    if gave(law, "logits"):
        return _geometric_logits(z, law.logits)
    return _geometric(z, law.probs)


_CLOSED_FORMS: dict[type[Distribution], Callable[[Any, torch.Size], Tensor]] = {
    Poisson: _draw_poisson,
    Skellam: _draw_skellam,
    Binomial: _draw_binomial,
    Bernoulli: _draw_bernoulli,
    NegativeBinomial: _draw_negative_binomial,
    Geometric: _draw_geometric,
}
