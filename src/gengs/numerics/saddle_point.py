r"""Log-probabilities of large counts to all digits of ``float64``.

.. math:: x \log m - m - \ln\Gamma(x + 1)

is a difference of numbers as large as :math:`x \log x`: at ten million its eighth digit is noise.
With :math:`t = (x - m) / m` it is

.. math::
    -m \big[(1 + t) \log(1 + t) - t\big] - \tfrac12 \log(2 \pi x)
    - \frac1{12 x} + \frac1{360 x^3} - \dots

whose terms are as small as the result. Binomials are made of the same function,

.. math::
    \log \binom{n}{k} p^k (1 - p)^{n - k} = P(k, n p) + P(n - k, n (1 - p)) - P(n, n).

References:
    | Fast and Accurate Computation of Binomial Probabilities (Loader, 2000)
"""

__all__ = ["log_poisson_digits", "log_split_digits"]

import math

import torch
from torch import Tensor

from .poisson_tail import log_poisson_pmf

_LARGE = 64.0
"""From here on four terms of Stirling's series give all digits."""


def log_poisson_digits(x: Tensor, mean: Tensor) -> Tensor:
    """The log-PMF of a Poisson at ``x``, in ``float64``."""
    near = (x >= _LARGE) & ((x - mean).abs() < mean / 2)  # elsewhere nothing cancels
    k, m = x.where(near, _LARGE), mean.where(near, _LARGE)
    t = (k - m) / m
    inverse = 1 / k
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    digits = -m * ((1 + t) * t.log1p() - t) - (2 * math.pi * k).log() / 2 - series
    return torch.where(near, digits, log_poisson_pmf(x, mean))


def log_split_digits(k: Tensor, rest: Tensor, log_p: Tensor, log_1mp: Tensor) -> Tensor:
    """``log C(k + rest, k) p^k (1 - p)^rest`` in ``float64``, for ``0 < p < 1``."""
    n = k + rest
    parts = log_poisson_digits(k, n * log_p.exp()) + log_poisson_digits(rest, n * log_1mp.exp())
    return parts - log_poisson_digits(n, n)
