r"""The log-PMF and the tails of the Poisson, each with its derivative in the rate.

.. math::
    \log p(k) = k \log \lambda - \lambda - \ln\Gamma(k + 1), \qquad
    P(X \ge a) = \tilde\gamma(a, \lambda), \qquad
    \lambda \frac{d}{d\lambda} P(X \ge a) = \lambda\, p(a - 1) = a\, p(a)

They run in ``float64``: log-gammas of large counts cancel.
"""

__all__ = ["log_clipped_poisson", "log_poisson_pmf", "log_poisson_tail"]

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from .autograd_function import AutogradFunction
from .tracing import inside_nested_jvp, is_traced

_NEVER = -1e300
_FEW = 65  # below this count a tail is a polynomial of few enough terms

Formula = Callable[..., Tensor]


def log_poisson_pmf(k: Tensor, rate: Tensor) -> Tensor:
    """``k log λ - λ - lnΓ(k + 1)`` in ``float64``, with ``0 log 0 = 0``; ``-inf`` at ``k = -1``."""
    # masks are as large as the rates, not as the table: log 0 is a number which 0 makes 0
    none = rate == 0
    log_rate = rate.masked_fill(none, 1.0).log().masked_fill(none, 2 * _NEVER)
    log_pmf = (k * log_rate).sub_(rate).sub_(torch.lgamma(k + 1))
    return threshold(log_pmf, _NEVER, -torch.inf, inplace=True)


def log_clipped_poisson(k: Tensor, rate: Tensor, last: int) -> Tensor:
    """The log-PMF of ``min(X, last)`` as one node; rates ``(1, *batch)``."""

    def formula(k: Tensor, rate: Tensor) -> Tensor:
        wide = rate.double()
        table = log_poisson_pmf(k, wide)
        few = _log_few(last, rate, table[-1:]) if last < _FEW else None
        table[-1:] = log_poisson_tail(k[-1:], wide, True) if few is None else few
        return table.to(rate.dtype)

    def last_slope(rate: Tensor, table: Tensor) -> Tensor:
        # λ d/dλ P(X >= a) = λ p(a - 1), and p(a - 1) is the table's own last but one
        return _ratio(table[-2:-1] + rate.log(), table[-1:])

    def slope(k: Tensor, rate: Tensor, table: Tensor) -> Tensor:
        held = rate.masked_fill(rate == 0, 1.0)
        each = torch.cat([k[:-1].to(rate.dtype) - held, last_slope(held, table)])
        return each / held.double()  # float32 has no 1/1e-39

    def pull(grad: Tensor, k: Tensor, rate: Tensor, table: Tensor) -> Tensor:
        # Σ g (k - λ) without a table of slopes
        held = rate.masked_fill(rate == 0, 1.0)
        weighted = (grad[:-1] * k[:-1].to(grad.dtype)).sum(0, keepdim=True)
        each = weighted - held * grad[:-1].sum(0, keepdim=True)
        return (each + grad[-1:] * last_slope(held, table)) / held.double()

    return _of_rate(formula, slope, k, rate, pull)


def log_poisson_tail(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    """``log P(X >= a)`` of a Poisson where ``upper``, else ``log P(X < a)``; in ``float64``."""
    a, rate = a.double(), rate.double()
    surely = a <= 0  # every count is at least 0

    def slope(a: Tensor, rate: Tensor, log_tail: Tensor) -> Tensor:
        """``d/dλ P(X >= a) = p(a - 1)``, and the opposite for the rest."""
        return _ratio(log_poisson_pmf(a - 1, rate), log_tail) * (1 if upper else -1)

    log_tail = _of_rate(partial(_log_gammainc, upper), slope, a.masked_fill(surely, 1.0), rate)
    return log_tail.masked_fill(surely, 0.0 if upper else -torch.inf)


def _log_few(a: int, rate: Tensor, log_pmf: Tensor) -> Tensor:
    r"""``log P(X >= a)`` for small ``a`` by two polynomials, a third of ``gammainc``'s time.

    .. math::
        P(X \ge a) = 1 - e^{-\lambda} \sum_{k < a} \frac{\lambda^k}{k!}
        = p(a) \Big(1 + \frac{\lambda}{a + 1} \Big(1 + \frac{\lambda}{a + 2} (1 + \dots)\Big)\Big)

    The first cancels where the tail is small, for ``float32`` 1e-8; there the second is fast.
    """
    small, terms = (1e-8, a // 4 + 8) if rate.dtype == torch.float32 else (1e-4, a * 3 // 5 + 9)
    held = rate.double().clamp_max(600.0)  # from there on P(X < a) is 0, and powers overflow
    below = above = one = held.new_ones(())
    for j in range(a - 1, 0, -1):
        below = torch.addcmul(one, below, held, value=1 / j)
    for j in range(a + terms, a, -1):
        above = torch.addcmul(one, above, held, value=1 / j)
    complement = 1 - below * (-held).exp() if a > 0 else below
    rare = ~(complement > small)
    return torch.where(rare, above, complement).log() + log_pmf.where(rare, 0.0)


def _ratio(log_p: Tensor, log_tail: Tensor) -> Tensor:
    """``p / tail``, 0 where both are 0."""
    never = log_tail == -torch.inf
    return (log_p - log_tail.masked_fill(never, 0.0)).exp().masked_fill(never, 0.0)


def _log_gammainc(upper: bool, a: Tensor, rate: Tensor) -> Tensor:
    """The logarithm of ``gammainc`` or ``gammaincc``, which does not underflow."""
    tail = (torch.special.gammainc if upper else torch.special.gammaincc)(a, rate)
    first, ratio = (a, rate / (a + 1)) if upper else (a - 1, (a - 1) / rate)
    # where even float64 underflows, the first term and its geometric continuation are enough
    rare = tail < 1e-300
    beyond = log_poisson_pmf(first, rate) - (-ratio.clamp_max(1 - 1e-9)).log1p()
    return torch.where(rare, beyond, tail.masked_fill(rare, 1.0).log())


def _of_rate(formula: Formula, slope: Formula, k: Tensor, rate: Tensor, pull: Any = None) -> Tensor:
    """``formula(k, rate)``, whose derivative in the rate is ``slope(k, rate, formula(k, rate))``.

    ``pull`` sums its products with a gradient, where that is not to be done one by one.
    """
    # a compiler cannot follow a jvp, and torch drops the second of two without a word
    if is_traced() or inside_nested_jvp():
        return formula(k, rate)
    value: Tensor = _OfRate.apply(formula, slope, pull, k, rate)
    return value


class _OfRate(AutogradFunction):
    """A formula as one node, with the forward mode that torch's gamma functions do not have."""

    @staticmethod
    def forward(formula: Formula, slope: Any, pull: Any, k: Tensor, rate: Tensor) -> Tensor:
        return formula(k, rate)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.slope, ctx.pull, k, rate = inputs
        ctx.save_for_backward(k, rate, output)
        ctx.save_for_forward(k, rate, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, rate = ctx.saved_tensors, ctx.saved_tensors[1]
        each = ctx.pull(grad, *saved) if ctx.pull else grad * ctx.slope(*saved)
        return None, None, None, None, each.sum_to_size(rate.shape).to(rate.dtype)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        slope: Tensor = tangents[-1] * ctx.slope(*ctx.saved_tensors)
        return slope.to(ctx.saved_tensors[2].dtype)
