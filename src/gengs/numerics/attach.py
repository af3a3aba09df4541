r"""How a drawn count moves with its parameters: the mid-CDF rule, and its closed forms.

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
\                  in N: (p + z/N) / 2
NegativeBinomial   (z/(p(1 - p)) + (r + z)/(1 - p)) / 2   (z + p(r + z)) / 2
Geometric(p)       -(z/(p(1 - p)) + (1 + z)/p) / 2        -(z + (1 - p)(1 + z)) / 2
Skellam            those of its two Poisson counts
=================  =====================================  =======================================

Vectors (multinomial, one-hot, tables of vectors) have a form of their own
(:mod:`gengs.laws.vectors`); laws that are drawn in stages, such as mixtures, are in
:mod:`gengs.laws.compounds`; any other law is taken as a table on ordered atoms, with the formula
above (:mod:`gengs.laws.ordered_table`).

**Boundaries.** At p = 0, p = 1, λ = 0 or N = 0 the law is a single value, and the formula sees one
side only: the other half of the slope belongs to draws that no longer happen. There the draw moves
by the whole one-sided slope of the mean (N in p, 1 in λ, p in N). That is exact for linear costs;
the one-sided derivative itself is a difference, such as N (f(1) - f(0)).

**Second derivatives.** The closed forms are functions of the draw and the parameters, so they can
be differentiated again (for Poisson and a quadratic cost, even the second derivative is exact). A
table and a draw in stages cannot, and say so.

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572 (for Poisson, binomial, Bernoulli, geometric and ordered
    | categories the slope is their two-sided smoothed stochastic derivative)
    | Implicit Reparameterization Gradients (Figurnov et al., 2018),
    | https://arxiv.org/abs/1805.08498 (the continuous case)
"""

__all__ = ["FAMILIES", "moved", "nonzero"]

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Binomial,
    Distribution,
    Geometric,
    NegativeBinomial,
    Poisson,
)

from ..numerics.tails import was_given

Pull = Callable[..., Tensor]
"""From the draw's cotangent, the draw and all parameters to one parameter's cotangent."""


def moved(pulls: Sequence[Pull], z: Tensor, *parameters: Tensor) -> Tensor:
    """A draw that moves with its parameters: ``z``, with one way back for each of them.

    The ways back see the draw *that is returned*, so that a second derivative sees both ways in
    which a slope depends on the parameters: directly, and through the draw.
    """
    result: Tensor = _Moved.apply(tuple(pulls), z, *parameters)
    return result


class _Moved(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(pulls: tuple[Pull, ...], z: Tensor, *parameters: Tensor) -> Tensor:
        return z.clone()  # the caller may change it in place

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pulls = inputs[0]
        ctx.save_for_backward(output, *inputs[2:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, *parameters = ctx.saved_tensors
        gradients = [
            pull(grad, z, *parameters).to(parameter.dtype).sum_to_size(parameter.shape)
            if needed
            else None
            for pull, parameter, needed in zip(
                ctx.pulls, parameters, ctx.needs_input_grad[2:], strict=True
            )
        ]
        return None, None, *gradients


def nonzero(x: Tensor) -> Tensor:
    """``x`` with 1 in the place of 0: a divisor where the quotient is not used."""
    return torch.where(x == 0, torch.ones_like(x), x)


def _poisson(g: Tensor, z: Tensor, rate: Tensor) -> Tensor:
    none = (rate == 0).to(rate.dtype)  # there 0/0 is to be 1
    return g * torch.addcdiv(none.new_full((), 0.5), z + none, rate + none, value=0.5)


def _binomial(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    q = 1 - p
    edge = (spread := p * q) == 0  # few passes over the data: simulators draw often
    inside = torch.addcmul(z * q, n - z, p) / spread.masked_fill(edge, 1.0) / 2
    return g * torch.where(edge, n, inside)


def _binomial_count(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    # one trial more adds a success with probability p, one less removes one with probability z/n
    return g * torch.where(n == 0, p, (p + z / nonzero(n)) / 2)


def _binomial_logits(g: Tensor, z: Tensor, logit: Tensor, n: Tensor) -> Tensor:
    return g * (z * torch.sigmoid(-logit) + (n - z) * torch.sigmoid(logit)) / 2


def _geometric(g: Tensor, z: Tensor, p: Tensor) -> Tensor:
    return g * torch.where(p == 1, -1.0, -(z / nonzero(p * (1 - p)) + (1 + z) / p) / 2)


def _geometric_logits(g: Tensor, z: Tensor, logit: Tensor) -> Tensor:
    return -g * (z + torch.sigmoid(-logit) * (1 + z)) / 2


def _move_poisson(law: Poisson, z: Tensor) -> Tensor:
    return moved((_poisson,), z, law.rate)


def _move_binomial(law: Binomial, z: Tensor) -> Tensor:
    if was_given(law, "logits"):
        in_n: Pull = lambda g, z, x, n: _binomial_count(g, z, torch.sigmoid(x), n)  # noqa: E731
        return moved((_binomial_logits, in_n), z, law.logits, law.total_count)
    return moved((_binomial, _binomial_count), z, law.probs, law.total_count)


def _move_bernoulli(law: Bernoulli, z: Tensor) -> Tensor:
    if was_given(law, "logits"):
        return moved((lambda g, z, x: _binomial_logits(g, z, x, z.new_ones(())),), z, law.logits)
    return moved((lambda g, z, p: _binomial(g, z, p, z.new_ones(())),), z, law.probs)


def _move_negative_binomial(law: NegativeBinomial, z: Tensor) -> Tensor:
    r = law.total_count.detach()

    def by_logits(g: Tensor, z: Tensor, logit: Tensor) -> Tensor:
        return g * (z + torch.sigmoid(logit) * (r + z)) / 2

    def by_probs(g: Tensor, z: Tensor, p: Tensor) -> Tensor:
        inside = (z / nonzero(p * (1 - p)) + (r + z) / (1 - p)) / 2
        return g * torch.where(p == 0, r, inside)

    if was_given(law, "logits"):
        return moved((by_logits,), z, law.logits)
    return moved((by_probs,), z, law.probs)


def _move_geometric(law: Geometric, z: Tensor) -> Tensor:
    if was_given(law, "logits"):
        return moved((_geometric_logits,), z, law.logits)
    return moved((_geometric,), z, law.probs)


FAMILIES: dict[type[Distribution], Callable[[Any, Tensor], Tensor]] = {
    Poisson: _move_poisson,
    Binomial: _move_binomial,
    Bernoulli: _move_bernoulli,
    NegativeBinomial: _move_negative_binomial,
    Geometric: _move_geometric,
}
