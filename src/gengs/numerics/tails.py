r"""Tails in log space: what a truncation lumps on its end atoms, never negative and never NaN.

Writing :math:`1 - \sum_k \pi_k` instead cancels (in float32, Poisson(5) past 30 atoms gives -1e-7
where the truth is 3e-14), and its logarithm is NaN.

.. math::
    P(\mathrm{Binomial}(N, p) \ge a) &= I_p(a, N - a + 1) \\
    P(\mathrm{NegativeBinomial}(r, p) \ge a) &= I_p(a, r) \\
    P(X \ge a) &= \textstyle\sum_{j \ge 0} p(a + j) \quad \text{for any other law}

The incomplete beta function :math:`I_x(a, b)` is a continued fraction here (the Poisson's tail has
a file of its own, ``poisson.py``). Other tails are sums of positive terms, which lose no digits;
they end when a block of terms adds less than 1e-12 of the sum, which takes a host sync. A
PMF with a second bump far out (a mixture) would end it too early; so where the other side is a
short finite sum, its complement is taken instead if it is large enough to be accurate, or has mass
that the sum did not find.
"""

__all__ = [
    "RARE",
    "atoms_first",
    "log1mexp",
    "log_beta_tail",
    "log_success_and_failure",
    "log_sum",
    "log_sum_above",
    "log_sum_below",
    "safe_log",
    "safe_log1p",
    "times",
    "was_given",
    "widen",
]

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import logsigmoid

from .tracing import inspectable

LogPMF = Callable[[Tensor], Tensor]


def safe_log(x: Tensor) -> Tensor:
    """``log(x)`` with ``-inf`` at 0, whose gradient there is 0 instead of NaN."""
    zero = x == 0
    return x.masked_fill(zero, 1.0).log().masked_fill(zero, -torch.inf)


def safe_log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` with ``-inf`` at -1, whose gradient there is 0 instead of NaN."""
    edge = x == -1
    return x.masked_fill(edge, 0.0).log1p().masked_fill(edge, -torch.inf)


def log1mexp(log_p: Tensor) -> Tensor:
    """``log(1 - exp(log_p))`` for ``log_p < 0``, accurate at both ends, also in its gradient."""
    small = log_p < -math.log(2)
    # double where: the branch that is not taken must not send inf · 0 back
    far, near = log_p.where(small, -1.0), log_p.where(~small, -0.5)
    return torch.where(small, (-far.exp()).log1p(), (-torch.expm1(near)).log())


# ------------------------------------------------------------------- parameters as they were given


def widen(parameter: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A parameter in ``dtype`` or wider."""
    return parameter.to(torch.promote_types(parameter.dtype, dtype))


def atoms_first(table: Tensor, dims: int) -> Tensor:
    """``(*batch, n)`` as ``(n, ..., *batch)``, the order in memory, beside so many batch dims."""
    table = table.movedim(-1, 0)
    return table.reshape(len(table), *[1] * (dims + 1 - table.dim()), *table.shape[1:])


def times(k: Tensor, log_p: Tensor) -> Tensor:
    """``k · log p`` with ``0 · (-inf) = 0``, and no NaN in the gradient of either."""
    never = log_p == -torch.inf
    return (k * log_p.masked_fill(never, 0.0)).masked_fill(never & (k != 0), -torch.inf)


def was_given(law: Distribution, name: str) -> bool:
    """Whether the user gave ``name``: the other parameter is lazy, and clamped."""
    if hasattr(law, "_param"):
        return vars(law).get(name) is law._param
    # Geometric does not note it, but its attributes are in the order of their making
    return name == next(key for key in vars(law) if key in ("probs", "logits"))


def log_success_and_failure(
    law: Distribution, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 - p)``, ``(*batch, 1)``, without the clamp torch puts on logits."""
    if was_given(law, "logits"):
        logits = widen(law.logits, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
        return logsigmoid(logits), logsigmoid(-logits)
    probs = widen(law.probs, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
    # 1 - p rounds: in float32, log(1 - p) of p = 1e-6 would be off by 1 %
    return safe_log(probs), safe_log1p(-probs)


# ------------------------------------------------------------------------------------------- beta

RARE = 1e-6
"""Below this much mass, a few levels of the continued fraction give all digits."""
_FEW_LEVELS, _TRACED_LEVELS = 8, 64


def log_beta_tail(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor, rare: bool = False) -> Tensor:
    r"""``log I_x(a, b)``, the regularised incomplete beta function, ``y = 1 - x``; in ``float64``.

    ``rare`` takes a few levels of the fraction, right where the tail is below :data:`RARE`; else
    the number of levels depends on the parameters: one host sync.
    """
    a, b, log_x, log_y = torch.broadcast_tensors(*(t.double() for t in (a, b, log_x, log_y)))
    depth = _FEW_LEVELS
    if not rare:
        depth = _TRACED_LEVELS
        if inspectable(a, b) and a.numel():
            depth = 16 + int(torch.maximum(a, b).detach().nan_to_num().max().clamp(0, 1e7) ** 0.5)
    surely = (a <= 0) | ((log_y == -torch.inf) & (b > 0))
    never = ~surely & ((b <= 0) | (log_x == -torch.inf))
    known = surely | never
    a, b = a.masked_fill(known, 1.0), b.masked_fill(known, 1.0)
    log_x, log_y = log_x.masked_fill(known, -0.6931), log_y.masked_fill(known, -0.6931)
    # the fraction converges fast on this side of the mean; else take the other tail's complement
    direct = log_x.exp() < (a + 1) / (a + b + 2)
    first, second = torch.where(direct, a, b), torch.where(direct, b, a)
    log_1, log_2 = torch.where(direct, log_x, log_y), torch.where(direct, log_y, log_x)
    log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    front = first * log_1 + second * log_2 - first.log() - log_beta
    fraction = _beta_fraction(first, second, log_1.exp(), depth)
    log_tail = (front - fraction.log()).clamp_max(-1e-300)
    log_tail = torch.where(direct, log_tail, log1mexp(log_tail))
    return log_tail.masked_fill(never, -torch.inf).masked_fill(surely, 0.0)


def _beta_fraction(a: Tensor, b: Tensor, x: Tensor, depth: int) -> Tensor:
    """The continued fraction of the incomplete beta function, from its deepest level up."""
    value = torch.ones_like(x)
    for m in range(depth, 0, -1):
        even = m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + (2 * m + 1)))
        value = 1 + even / (1 + odd / value)
    return 1 - (a + b) * x / (a + 1) / value


# ----------------------------------------------------------------------------------- sums of terms

_FIRST_BLOCK = 64
_MOST_TERMS = 1 << 17
_TRACED_TERMS = 256  # under compile and vmap their number cannot depend on the data
_SHORT = 1 << 12  # a finite side with at most this many terms is summed whole


def log_sum_above(log_pmf: LogPMF, a: Tensor, lower: int | None) -> Tensor:
    """``log P(X >= a)``, for cuts ``a`` of shape ``(1,)`` or ``(*batch, 1)``."""
    outwards = _log_sum_outwards(log_pmf, a, 1)
    terms = _terms_between(lower, a)
    if terms is None:
        return outwards
    below = log_sum(log_pmf(a - 1 - terms))
    # 1 - (the rest) has an absolute error of some eps: take it where it is large against that
    missing = -torch.expm1(below.detach().clamp_max(0))
    not_found = missing - outwards.detach().exp() > 100 * torch.finfo(below.dtype).eps
    better = ((missing > 1e-2) | not_found) & ~outwards.isnan()
    complement = log1mexp(below.where(better & (below > -torch.inf), -1.0))
    complement = complement.where(below > -torch.inf, 0.0)
    return complement.where(better, outwards)


def log_sum_below(log_pmf: LogPMF, a: Tensor, lower: int | None) -> Tensor:
    """``log P(X <= a)``, for cuts ``a`` of shape ``(1,)`` or ``(*batch, 1)``."""
    terms = _terms_between(lower, a + 1)
    return _log_sum_outwards(log_pmf, a, -1) if terms is None else log_sum(log_pmf(a - terms))


def log_sum(x: Tensor) -> Tensor:
    """``logsumexp`` over the last dimension, kept; a row of ``-inf`` has gradient 0, not NaN."""
    some = (x > -torch.inf).any(-1, keepdim=True) | x.isnan().any(-1, keepdim=True)
    return x.where(some, 0.0).logsumexp(-1, keepdim=True).where(some, -torch.inf)


def _log_sum_outwards(log_pmf: LogPMF, a: Tensor, direction: int) -> Tensor:
    def block(first: int, last: int) -> Tensor:
        return log_sum(log_pmf(a + direction * torch.arange(first, last, device=a.device)))

    total = block(0, _FIRST_BLOCK)
    if not inspectable(total):
        return log_sum(torch.cat([total, block(_FIRST_BLOCK, _TRACED_TERMS)], -1))
    done = _FIRST_BLOCK
    while done < _MOST_TERMS:
        part = block(done, 2 * done)
        total = log_sum(torch.cat([total, part], -1))
        done *= 2
        if not (part.detach() > total.detach() - 27.6).any():  # exp(-27.6) = 1e-12; NaN ends it
            break
    return total


def _terms_between(lower: int | None, a: Tensor) -> Tensor | None:
    """``0, 1, ...``, as many as there are integers in ``[lower, a)``, where those are few."""
    if lower is None or not inspectable(a) or a.numel() == 0:
        return None
    many = int(a.max()) - lower
    return torch.arange(max(many, 1), device=a.device) if many <= _SHORT else None
