r"""Kullback-Leibler divergences: of tables on the same atoms, and the pairs that torch lacks.

.. math:: \mathrm{KL}(q \,\|\, p) = \sum_k \hat\pi_k (\log \hat\pi_k - \log \pi_k)

with :math:`0 \log 0 = 0`, and :math:`+\infty` where :math:`\pi_k = 0 < \hat\pi_k` (Proposition 5 of
the GenGS paper). It is the divergence of the *discrete* distributions: with relaxed samples, the
"ELBO" that it is part of is not a bound.
"""

__all__ = ["categorical_kl", "divergence", "divergence_by_tables", "log_difference"]

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.distributions.kl import _KL_REGISTRY, kl_divergence, register_kl
from torch.nn.functional import threshold

from ..laws.law import Law, law_of
from ..numerics.tracing import any_of
from .finite import Finite

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
    return categorical_kl(q.logits, p.logits)


@register_kl(Finite, Distribution)
def _finite_any(q: Finite, p: Distribution) -> Tensor:
    """Against a distribution with infinitely many values: only those of ``q`` count."""
    if q.event_dim:
        raise NotImplementedError(
            "kl_divergence of a Finite with vector atoms needs a Finite on the same atoms."
        )
    record = law_of(p)
    record.require_pmf()
    return categorical_kl(q.logits, record.log_pmf(q.atoms))


def divergence_by_tables(q: Distribution, p: Distribution, known: type[Law]) -> Tensor | None:
    """The divergence of two distributions of one family, where a closed form is not theirs.

    Args:
        q: The distribution whose expectation is taken.
        p: The other one.
        known: The record that has the closed form; ``None`` is returned where it is both laws'.
    """
    ours, theirs = law_of(q), law_of(p)
    if type(ours) is known and type(theirs) is known:
        return None
    ours.require_pmf()
    theirs.require_pmf()
    table = ours.table(1e-9)
    return categorical_kl(table.logits, theirs.log_pmf(table.atoms))


def categorical_kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """The divergence of log-PMFs ``(*batch, n)``."""
    q = log_q.exp()
    # impossible atoms of q contribute 0 and send no NaN back; a mask would take four times as long
    ratio = threshold(log_q, _FORBIDDEN, 0.0) - log_p.clamp_min(_FORBIDDEN)
    outside = (q * (log_p == -torch.inf)).sum(-1) > 0
    return (q * ratio).sum(-1).masked_fill(outside, torch.inf)


def log_difference(log_q: Tensor, log_p: Tensor) -> Tensor:
    """``log q - log p`` with ``-inf - (-inf) = 0``: it is multiplied by zero afterwards."""
    return torch.where(log_q > -torch.inf, log_q - log_p, 0.0)


def _require_equal_atoms(q: Finite, p: Finite) -> None:
    if q.has_atoms_of(p):
        return
    if q.num_atoms != p.num_atoms or q.event_shape != p.event_shape:
        raise ValueError(
            "kl_divergence expects two Finite on the same atoms, but got "
            f"{q.num_atoms} atoms of shape {tuple(q.event_shape)} and "
            f"{p.num_atoms} of shape {tuple(p.event_shape)}."
        )
    if not (q._validate_args and p._validate_args):
        return
    if any_of(q.atoms != p.atoms):
        raise ValueError(
            "kl_divergence expects two Finite on the same atoms, but the atoms differ; "
            "truncate both to one window, as in truncate(p, window=q.window)."
        )
