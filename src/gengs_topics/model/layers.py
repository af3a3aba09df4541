r"""Layers of latent counts: Poisson priors, posteriors to choose from, and what links layers.

The prior of each count is Poisson(:math:`\lambda`), truncated to the atoms 0 ... n - 1 with the
tail lumped into the last one. A posterior is made from raw numbers that a network wrote:

==========  ===================================  ==================================================
posterior   raw numbers per latent               law
==========  ===================================  ==================================================
explicit    1: r                                 Poisson(:math:`\lambda_0 e^r`), truncated likewise
implicit    n: one per atom                      :math:`q(k) \propto p(k)\, e^{r_k}`, any PMF
tilted      2: slope a and curvature b           :math:`q(k) \propto p(k)\,
                                                 e^{a d_k - \mathrm{softplus}(b) d_k^2}`
==========  ===================================  ==================================================

with :math:`d_k = (k - \lambda_0) / \sqrt{\lambda_0}` and :math:`\lambda_0` the rate at the start.

The families are those of :mod:`gengs.nn.count_latents`. On a small corpus the tilted one
generalises best, as it can move and narrow the prior, and no more. All of them contain the prior
itself, so a latent that is not needed costs nothing.

A **large rate** makes a Poisson latent expressive: relative to its spread :math:`\sqrt\lambda` the
atoms lie closer, and the same divergence buys more information. As :math:`\lambda \to \infty` the
prior becomes Gaussian.

**From layer to layer**, intensities become rates by a linear map with positive weights,

.. math:: \lambda = \mathrm{softplus}(W)\, z + \mathrm{softplus}(c)

More of a super-topic never means less of a sub-topic, so each weight can be read on its own, and
the rate stays positive whatever :math:`z \ge 0` is, relaxed or discrete, zeros included.

References:
    | Deep Exponential Families (Ranganath et al., 2015), https://arxiv.org/abs/1411.2581
"""

__all__ = ["PoissonLayer", "PositiveLinear", "PosteriorFamily", "check_rate"]

import math
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Poisson
from torch.nn.functional import linear, softplus

from gengs.nn.count_latents import PosteriorFamily, posterior_width
from gengs.tables.finite import Finite
from gengs.tables.truncation import truncate

# exp(-60) is a rate of zero for every purpose, exp(20) more than any count
_LOG_RATES = (-60.0, 20.0)
# a step of the slope moves the posterior by as much as three of the raw number: it learns faster
_SLOPE = 3.0
# from here on a raw number, times what depends on the atom, may overflow float32
_DIVERGED = 1e30


class PoissonLayer(nn.Module):
    """The laws of one layer of D counts, whose prior has this rate: at first, if it is learned.

    A ``level`` truncates all laws to so many atoms; ``None`` leaves them whole (explicit posteriors
    only). To learn a rate of each count's prior is empirical Bayes.
    """

    def __init__(
        self,
        size: int,
        rate: float,
        level: int | None = 15,
        posterior: PosteriorFamily = "explicit",
        learn_rate: bool = False,
    ) -> None:
        super().__init__()
        if posterior not in get_args(PosteriorFamily):
            options = ", ".join(get_args(PosteriorFamily))
            raise ValueError(f"expected `posterior` to be one of {options}, but got {posterior!r}.")
        check_rate(rate, level)
        if level is None and posterior != "explicit":
            raise ValueError(
                f"expected a `level` of atoms for the {posterior} posterior, got none."
            )
        self.size, self.level, self.posterior_family, self.start_rate = size, level, posterior, rate
        self.log_rate = nn.Parameter(torch.full((size,), math.log(rate)), requires_grad=learn_rate)
        self.atoms: Tensor = nn.Buffer(torch.arange(float(level or 0)), persistent=False)
        self._made: tuple[Any, Distribution] | None = None

    @property
    def width(self) -> int:
        """How many raw numbers a posterior needs for each count."""
        return posterior_width(self.posterior_family, self.level or 0)

    def head(self, inputs: int) -> nn.Linear:
        """A layer that writes raw numbers, near zero at first: posteriors near the prior."""
        head = nn.Linear(inputs, self.size * self.width)
        with torch.no_grad():
            head.weight.mul_(0.3)
            head.bias.zero_()
        return head

    def prior(self, rate: Tensor | None = None) -> Distribution:
        """The prior of each count, of its own rates ``(D,)`` or of these ``(*, D)``."""
        if rate is not None:
            return self.poisson(rate)
        if self.log_rate.requires_grad:
            return self.poisson(self.log_rate.exp())
        # the same table in every step: made once for each state of the rate
        state = self.log_rate.device, self.log_rate.dtype, self.log_rate._version
        if self._made is None or self._made[0] != state:
            self._made = state, self.poisson(self.log_rate.exp())
        return self._made[1]

    def posterior(self, raw: Tensor, prior: Distribution) -> Distribution:
        """The posterior ``(*, D)`` of raw numbers ``(*, D * width)``, starting from the prior.

        Raises:
            FloatingPointError: If these are NaN or overflow, as where training has diverged.
        """
        raw = raw.unflatten(-1, (self.size, self.width))
        try:
            return self._posterior(raw, prior)
        except ValueError as error:  # a distribution refuses NaN as a parameter
            if bool((raw.abs() < _DIVERGED).all()):
                raise
            raise FloatingPointError(
                "what the encoder writes is NaN or too large; a smaller `learning_rate` may help."
            ) from error

    def _posterior(self, raw: Tensor, prior: Distribution) -> Distribution:
        if self.posterior_family == "explicit" or not isinstance(prior, Finite):
            log_rate = raw.squeeze(-1) + math.log(self.start_rate)
            return self.poisson(log_rate.clamp(*_LOG_RATES).exp())
        if self.posterior_family == "tilted":
            d = (self.atoms - self.start_rate) / math.sqrt(self.start_rate)  # (n,)
            slope, curvature = raw[..., :1], raw[..., 1:]
            raw = _SLOPE * slope * d - softplus(curvature) * d.square()  # (*, D, n)
        return Finite(prior.atoms, logits=prior.logits + raw)

    def poisson(self, rate: Tensor) -> Distribution:
        """Poisson counts of these rates, truncated like the prior."""
        if self.level is None:
            return Poisson(rate)
        # past the last atom a rate changes nothing but how much mass is lumped there
        return truncate(Poisson(rate.clamp_max(self.level - 1)), self.level)

    def extra_repr(self) -> str:
        rate = "learned" if self.log_rate.requires_grad else self.start_rate
        return f"{self.size}, rate={rate}, level={self.level}, {self.posterior_family}"


def check_rate(rate: float, level: int | None, name: str = "rate") -> None:
    """Raise where a prior of this rate makes no sense on ``level`` atoms (``None`` for all).

    From the last atom on, a rate's own value is lost: more than half of the mass lies there, and
    every such prior is nearly the same one. The setting is called ``name`` where it was given.
    """
    if not 0 < rate < math.inf:
        raise ValueError(f"expected a positive, finite `{name}`, but got {rate}.")
    if level is not None and level < 2:
        raise ValueError(f"expected a `level` of at least 2 atoms, but got {level}.")
    if level is not None and rate >= level - 1:
        raise ValueError(
            f"expected `{name}` below the last atom, `level` - 1 = {level - 1}, but got {rate:g}: "
            "the prior would have more than half of its mass there."
        )


class PositiveLinear(nn.Module):
    """A linear layer whose weights and biases are positive.

    Args:
        inputs: The number of intensities.
        outputs: The number of rates.
        rate: What each rate is to be at the beginning, for inputs around ``typical``.
        typical: The typical size of an input.

    Example:
        >>> layer = PositiveLinear(3, 2)
        >>> bool((layer.weight > 0).all() and (layer(torch.zeros(3)) > 0).all())
        True
    """

    def __init__(self, inputs: int, outputs: int, rate: float = 1.0, typical: float = 1.0) -> None:
        super().__init__()
        if inputs < 1 or outputs < 1:
            raise ValueError(f"expected positive sizes, but got {inputs} and {outputs}.")
        if not (rate > 0 and typical > 0):
            raise ValueError(
                f"expected positive `rate` and `typical`, but got {rate} and {typical}."
            )
        # one half from the weights, one half from the bias; the weights differ, to break ties
        spread = torch.empty(outputs, inputs).exponential_()
        self.raw_weight = nn.Parameter(_inverse(spread * (rate / 2 / typical / inputs)))
        self.raw_bias = nn.Parameter(_inverse(torch.full((outputs,), rate / 2)))

    @property
    def weight(self) -> Tensor:
        """The positive weights, ``(outputs, inputs)``."""
        return softplus(self.raw_weight)

    @property
    def bias(self) -> Tensor:
        """The rates without any input, ``(outputs,)``."""
        return softplus(self.raw_bias)

    def forward(self, z: Tensor) -> Tensor:
        """The rates ``(*, outputs)`` of intensities ``(*, inputs)``."""
        return linear(z, self.weight, self.bias)

    def extra_repr(self) -> str:
        return "{1}, {0}".format(*self.raw_weight.shape)


def _inverse(y: Tensor) -> Tensor:
    """The x with softplus(x) = y, also where y is tiny."""
    y = y.clamp_min(1e-6)
    return y + torch.log(-torch.expm1(-y))
