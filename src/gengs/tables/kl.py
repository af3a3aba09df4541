r"""Kullback-Leibler divergences: between laws on the same atoms, and the pairs that torch lacks.

.. math:: \mathrm{KL}(q \,\|\, p) = \sum_k \hat\pi_k (\log \hat\pi_k - \log \pi_k)

with :math:`0 \log 0 = 0`, and :math:`+\infty` where :math:`\pi_k = 0 < \hat\pi_k` (Proposition 5 of
the paper). It is the divergence of the *discrete* laws: with relaxed samples, the "ELBO" that it is
part of is not a bound.
"""

__all__ = ["divergence"]

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Multinomial, NegativeBinomial
from torch.distributions.kl import _KL_REGISTRY, kl_divergence, register_kl
from torch.nn.functional import threshold

from ..laws.law import family_of
from .finite import Finite
from ..laws.multinomial import multinomial_probs
from .relaxed import StraightThrough
from ..numerics.tails import log_success_and_failure, times
from ..numerics.tracing import any_of, validates

_FORBIDDEN = -1e30  # below any log-probability but -inf


def divergence(q: Distribution, p: Distribution) -> Tensor:
    """``kl_divergence`` for ``torch.compile``, which cannot follow torch's search for a formula."""
    if torch.compiler.is_compiling():
        if isinstance(q, Finite) and isinstance(p, Finite):
            return _finite_finite(q, p)
        if (type(q), type(p)) in _KL_REGISTRY:
            return _KL_REGISTRY[type(q), type(p)](q, p)
    return kl_divergence(q, p)


@register_kl(Finite, Finite)
def _finite_finite(q: Finite, p: Finite) -> Tensor:
    _require_equal_atoms(q, p)
    return _categorical_kl(q.logits, p.logits)


@register_kl(Finite, Distribution)
def _finite_any(q: Finite, p: Distribution) -> Tensor:
    """Against a law with infinitely many values: only those of ``q`` count."""
    if q.event_dim:
        raise NotImplementedError(
            "kl_divergence of a Finite with vector atoms needs a Finite on the same atoms."
        )
    return _categorical_kl(q.logits, family_of(p).log_pmf(q.atoms))


@register_kl(StraightThrough, StraightThrough)
@register_kl(StraightThrough, Distribution)
@register_kl(Finite, StraightThrough)
def _straight_through(q: Distribution, p: Distribution) -> Tensor:
    q, p = (law.law if isinstance(law, StraightThrough) else law for law in (q, p))
    return kl_divergence(q, p)


@register_kl(NegativeBinomial, NegativeBinomial)
def _negative_binomial(q: NegativeBinomial, p: NegativeBinomial) -> Tensor:
    if validates(vars(q).get("_validate_args")) and any_of(q.total_count != p.total_count):
        raise NotImplementedError(
            "kl_divergence of two NegativeBinomials has a closed form for equal `total_count` only;"
            " truncate both to the same atoms for the others."
        )
    log_p, log_1mp = log_success_and_failure(p)
    log_q, log_1mq = log_success_and_failure(q)
    mean = q.mean.unsqueeze(-1)
    kl = times(mean, _difference(log_q, log_p)) + q.total_count.unsqueeze(-1) * (log_1mq - log_1mp)
    # where nobody looked, unequal numbers of trials are no plausible number
    return kl.squeeze(-1).where(q.total_count == p.total_count, torch.nan)


@register_kl(Multinomial, Multinomial)
def _multinomial(q: Multinomial, p: Multinomial) -> Tensor:
    if q.total_count != p.total_count:
        raise ValueError(
            "kl_divergence of two Multinomials expects equal total_count, but got "
            f"{q.total_count} and {p.total_count}."
        )
    return q.total_count * _categorical_kl(multinomial_probs(q)[1], multinomial_probs(p)[1])


@register_kl(Binomial, Binomial)
def _binomial(q: Binomial, p: Binomial) -> Tensor:
    """Torch has the case of equal counts; this one has all (+inf where ``q`` can exceed ``p``).

    Unequal counts need a table whose size is a number to be read: without validation, and under a
    compiler, they are NaN.
    """
    log_q, log_1mq = log_success_and_failure(q)
    log_p, log_1mp = log_success_and_failure(p)
    n_q, n_p = q.total_count, p.total_count
    mean = q.mean.unsqueeze(-1)
    rest = n_q.unsqueeze(-1) - mean
    same = times(mean, _difference(log_q, log_p)) + times(rest, _difference(log_1mq, log_1mp))
    if not validates(vars(q).get("_validate_args")) or not any_of(n_q != n_p):
        return same.squeeze(-1).where(n_q == n_p, torch.nan)
    last = int(n_q.max()) if n_q.numel() else 0
    k = torch.arange(last + 1, device=n_q.device)
    exact = _categorical_kl(family_of(q).log_pmf(k), family_of(p).log_pmf(k))
    return torch.where(n_q == n_p, same.squeeze(-1), exact)


def _categorical_kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """The divergence of log-PMFs ``(*batch, n)``."""
    q = log_q.exp()
    # impossible atoms of q contribute 0 and send no NaN back; a mask would take four times as long
    ratio = threshold(log_q, _FORBIDDEN, 0.0) - log_p.clamp_min(_FORBIDDEN)
    outside = (q * (log_p == -torch.inf)).sum(-1) > 0
    return (q * ratio).sum(-1).masked_fill(outside, torch.inf)


def _difference(log_q: Tensor, log_p: Tensor) -> Tensor:
    """``log q - log p`` with ``-inf - (-inf) = 0``: it is multiplied by zero afterwards."""
    return torch.where(log_q > -torch.inf, log_q - log_p, 0.0)


def _require_equal_atoms(q: Finite, p: Finite) -> None:
    if q.atoms is p.atoms:
        return
    if q.num_atoms != p.num_atoms or q.event_shape != p.event_shape:
        raise ValueError(
            "kl_divergence expects two Finite laws on the same atoms, but got "
            f"{q.num_atoms} atoms of shape {tuple(q.event_shape)} and "
            f"{p.num_atoms} of shape {tuple(p.event_shape)}."
        )
    if _same_window(q, p) or not (q._validate_args and p._validate_args):
        return
    if any_of(q.atoms != p.atoms):
        raise ValueError(
            "kl_divergence expects two Finite laws on the same atoms, but the atoms differ; "
            "truncate both to one window, as in truncate(p, window=q.certificate.window)."
        )


def _same_window(q: Finite, p: Finite) -> bool:
    """Whether both were cut to the same integers, known without a look at them."""
    if q.certificate is None or p.certificate is None:
        return False
    ours, theirs = q.certificate.window, p.certificate.window
    one_for_all = isinstance(ours.low, int) and isinstance(theirs.low, int)
    return one_for_all and (ours.low, ours.size) == (theirs.low, theirs.size)
