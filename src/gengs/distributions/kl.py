r"""Kullback-Leibler divergences: between laws on the same atoms, and the pairs that torch lacks.

.. math:: \mathrm{KL}(q \,\|\, p) = \sum_k \hat\pi_k (\log \hat\pi_k - \log \pi_k)

with :math:`0 \log 0 = 0`, and :math:`+\infty` where :math:`\pi_k = 0 < \hat\pi_k` (Proposition 5 of
the paper). It is the divergence of the *discrete* laws: with relaxed samples, the "ELBO" that it is
part of is not a bound.
"""

from __future__ import annotations

__all__ = ["divergence"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Multinomial, NegativeBinomial
from torch.distributions.kl import _KL_REGISTRY, kl_divergence, register_kl

from .families import family_of
from .finite import Finite
from .given import log_success_and_failure, times
from .multinomial import multinomial_log_probs
from .poisson_kl import cut_poisson_kl
from .scored import Scored
from .straight_through import StraightThrough
from .sums import row_sums, sum_to
from .truncated import Truncated
from .validation import all_finite, inspectable, ordinary


def divergence(q: Distribution, p: Distribution) -> Tensor:
    """``kl_divergence`` for ``torch.compile``, which cannot follow torch's search for a formula."""
    if torch.compiler.is_compiling():
        if isinstance(q, Truncated) and isinstance(p, Truncated):
            return _truncated_truncated(q, p)
        if isinstance(q, Finite) and isinstance(p, Finite):
            return _finite_finite(q, p)
        if (type(q), type(p)) in _KL_REGISTRY:
            return _KL_REGISTRY[type(q), type(p)](q, p)
    return kl_divergence(q, p)


@register_kl(Finite, Finite)
def _finite_finite(q: Finite, p: Finite) -> Tensor:
    _require_equal_atoms(q, p)
    if isinstance(q, Scored) and not q.has_table and ordinary(q.source, p.logits):
        kl: Tensor = _OfScores.apply(q.source, p.logits, q.weights, q.total)
        if all_finite(kl):
            return kl
    return _categorical_kl(q.logits, p.logits, q.fixed_probs)


@register_kl(Finite, Distribution)
def _finite_any(q: Finite, p: Distribution) -> Tensor:
    """Against a law with infinitely many values: only those of ``q`` count."""
    if q.event_dim:
        raise NotImplementedError(
            "kl_divergence of a Finite with vector atoms needs a Finite on the same atoms."
        )
    return _categorical_kl(q.logits, family_of(p).log_pmf(q.atoms), q.fixed_probs)


@register_kl(Truncated, Truncated)
def _truncated_truncated(q: Truncated, p: Truncated) -> Tensor:
    closed = cut_poisson_kl(q, p)
    if closed is not None:
        return closed
    if q.window.spans(p.window):  # the same atoms: no need to compare them
        return _categorical_kl(q.logits, p.logits, q.fixed_probs)
    return _finite_finite(q, p)


@register_kl(StraightThrough, StraightThrough)
def _straight_straight(q: StraightThrough, p: StraightThrough) -> Tensor:
    return _finite_finite(q.law, p.law)


@register_kl(StraightThrough, Distribution)
def _straight_any(q: StraightThrough, p: Distribution) -> Tensor:
    return kl_divergence(q.law, p)


@register_kl(Finite, StraightThrough)
def _finite_straight(q: Finite, p: StraightThrough) -> Tensor:
    return _finite_finite(q, p.law)


@register_kl(NegativeBinomial, NegativeBinomial)
def _negative_binomial(q: NegativeBinomial, p: NegativeBinomial) -> Tensor:
    if inspectable(q.total_count, p.total_count) and not torch.equal(
        *torch.broadcast_tensors(q.total_count, p.total_count)
    ):
        raise NotImplementedError(
            "kl_divergence of two NegativeBinomials has a closed form for equal `total_count` only;"
            " truncate both to the same atoms for the others."
        )
    log_p, log_1mp = log_success_and_failure(p)
    log_q, log_1mq = log_success_and_failure(q)
    mean = q.mean.unsqueeze(-1)
    return (
        times(mean, _difference(log_q, log_p)) + q.total_count.unsqueeze(-1) * (log_1mq - log_1mp)
    ).squeeze(-1)


@register_kl(Multinomial, Multinomial)
def _multinomial(q: Multinomial, p: Multinomial) -> Tensor:
    if q.total_count != p.total_count:
        raise ValueError(
            "kl_divergence of two Multinomials expects equal total_count, but got "
            f"{q.total_count} and {p.total_count}."
        )
    return q.total_count * _categorical_kl(multinomial_log_probs(q), multinomial_log_probs(p))


@register_kl(Binomial, Binomial)
def _binomial(q: Binomial, p: Binomial) -> Tensor:
    """Torch has the case of equal counts; this one has all (+inf where ``q`` can exceed ``p``)."""
    log_q, log_1mq = log_success_and_failure(q)
    log_p, log_1mp = log_success_and_failure(p)
    n_q, n_p = q.total_count, p.total_count
    mean = q.mean.unsqueeze(-1)
    rest = n_q.unsqueeze(-1) - mean
    same = times(mean, _difference(log_q, log_p)) + times(rest, _difference(log_1mq, log_1mp))
    if not inspectable(n_q, n_p) or torch.equal(*torch.broadcast_tensors(n_q, n_p)):
        return same.squeeze(-1)
    last = int(n_q.max()) if n_q.numel() else 0
    k = torch.arange(last + 1, device=n_q.device)
    exact = _categorical_kl(family_of(q).log_pmf(k), family_of(p).log_pmf(k))
    return torch.where(n_q == n_p, same.squeeze(-1), exact)


def _categorical_kl(log_q: Tensor, log_p: Tensor, probs: Tensor | None = None) -> Tensor:
    """The divergence of log-PMFs ``(*batch, n)``; ``probs`` are those of ``q``, if at hand."""
    if ordinary(log_q, log_p):
        probs = log_q.detach().exp() if probs is None else probs
        kl = _EverywherePositive.apply(log_q, log_p, probs)
        if all_finite(kl):  # an impossible atom of q would make it NaN, one of p infinite
            return kl
    log_q, log_p = torch.broadcast_tensors(log_q, log_p)
    possible = log_q > -torch.inf
    # double where: impossible atoms of q contribute 0 and send no NaN back
    ratio = log_q.where(possible, 0.0) - log_p.where(possible, 0.0)
    return (log_q.exp() * ratio.where(possible, 0.0)).sum(-1)


class _EverywherePositive(torch.autograd.Function):
    """The divergence of PMFs without zeros, its sums by matrix products and little kept."""

    @staticmethod
    def forward(ctx: Any, log_q: Tensor, log_p: Tensor, q: Tensor) -> Tensor:
        terms = (log_q - log_p).mul_(q)
        ctx.save_for_backward(log_q, log_p, q, terms)
        return row_sums(terms).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        log_q, log_p, q, terms = ctx.saved_tensors
        if torch.is_grad_enabled():  # what was kept are numbers; these are functions
            q = log_q.exp()
            terms = q * (log_q - log_p)
        grad = grad.unsqueeze(-1)
        to_q = to_p = None
        if ctx.needs_input_grad[0]:
            to_q = sum_to((terms + q) * grad, log_q.shape)
        if ctx.needs_input_grad[1]:
            to_p = sum_to(-q * grad, log_p.shape)
        return to_q, to_p, None


class _OfScores(torch.autograd.Function):
    r"""The divergence of a law that is not normalised.

    With :math:`Z = \sum_k e^{x_k}` and :math:`m = \sum_k \pi_k (x_k - \log p_k)` it is
    :math:`m - \log Z`, and its slope :math:`\pi_k (x_k - \log p_k - m)`.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, log_p: Tensor, weights: Tensor, total: Tensor) -> Tensor:
        terms = (scores - log_p).mul_(weights)
        mean = row_sums(terms).div_(total)
        ctx.save_for_backward(scores, log_p, weights, total, terms, mean)
        return (mean - total.log()).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, log_p, weights, total, terms, mean = ctx.saved_tensors
        if torch.is_grad_enabled():  # what was kept are numbers; these are functions
            weights = scores.exp()
            total, terms = weights.sum(-1, keepdim=True), weights * (scores - log_p)
            mean = terms.sum(-1, keepdim=True) / total
        scale = grad.unsqueeze(-1) / total
        to_scores = to_p = None
        if ctx.needs_input_grad[0]:
            to_scores = sum_to(torch.addcmul(terms, weights, mean, value=-1) * scale, scores.shape)
        if ctx.needs_input_grad[1]:
            to_p = sum_to(-weights * scale, log_p.shape)
        return to_scores, to_p, None, None


def _difference(log_q: Tensor, log_p: Tensor) -> Tensor:
    """``log q - log p`` with ``-inf - (-inf) = 0``: it is multiplied by zero afterwards."""
    return torch.where(log_q > -torch.inf, log_q - log_p, 0.0)


def _require_equal_atoms(q: Finite, p: Finite) -> None:
    if q.atoms is p.atoms or not inspectable(q.atoms, p.atoms):
        return
    if q.num_atoms != p.num_atoms or q.event_shape != p.event_shape:
        raise ValueError(
            "kl_divergence expects two Finite laws on the same atoms, but got "
            f"{q.num_atoms} atoms of shape {tuple(q.event_shape)} and "
            f"{p.num_atoms} of shape {tuple(p.event_shape)}."
        )
    if not bool((q.atoms == p.atoms).all()):
        raise ValueError(
            "kl_divergence expects two Finite laws on the same atoms, but the atoms differ; "
            "truncate both to one window, as in truncate(p, window=q.certificate.window)."
        )
