r"""What every variational autoencoder of this library can be asked, the same for all.

A decoder gives :math:`p(x \mid z)`, independent Bernoulli pixels; an encoder gives
:math:`q(z \mid x)`. The negative evidence lower bound is

.. math::
    -\mathrm{ELBO}(x) = E_{q(z|x)}[-\log p(x \mid z)] + \mathrm{KL}(q(z \mid x) \,\|\, p(z))
    \ge -\log p(x)

and is evaluated with exact draws from :math:`q`, whatever estimator the model was trained with: a
relaxed draw would make it smaller than the bound. The likelihood itself is estimated by importance
sampling,

.. math::
    \log p(x) \approx \log \frac1S \sum_s \frac{p(x \mid z_s)\, p(z_s)}{q(z_s \mid x)},

from below: the more draws, the closer.

References:
    | Auto-Encoding Variational Bayes (Kingma & Welling, 2014), https://arxiv.org/abs/1312.6114
    | Importance Weighted Autoencoders (Burda et al., 2016), https://arxiv.org/abs/1509.00519
    | (importance-sampled likelihood, active units)
"""

__all__ = ["Autoencoder", "draws_of", "floating"]

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import inf, log
from numbers import Real

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import softplus

from ...distributions.kl import divergence
from ...distributions.tracing import any_of, validates
from ...estimators.temperature import Schedule

# images of decoded draws that are held at once: 4 million numbers, 16 MB
_MOST_NUMBERS = 1 << 22


class Autoencoder(nn.Module, ABC):
    """An encoder, a decoder, and the questions one asks them.

    Args:
        encoder: Images ``(B, *pixels)`` to raw parameters.
        decoder: Latents ``(B, D)`` to the logits of Bernoulli pixels ``(B, *pixels)``.
        kl_weight: The weight of the divergence in training: a number, or a schedule that is read at
            each call (step it yourself).
        validate_args: Whether to look at pixels and parameters; on by default.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        kl_weight: float | Schedule = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(kl_weight, Schedule):
            _check_weight(kl_weight)
        self.encoder, self.decoder, self.kl_weight = encoder, decoder, kl_weight
        self.validate_args = validate_args

    @abstractmethod
    def loss(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """What training minimises, one number per example."""

    @abstractmethod
    def laws(self, x: Tensor) -> tuple[Distribution, Distribution]:
        """The factors' posterior, of batch shape ``(B, D)``, and their prior."""

    @abstractmethod
    def draw_prior(self, n: int) -> Tensor:
        """Draws from the prior, ``(n, D)``."""

    def forward(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """The loss, for wrappers (data parallel, compiled)."""
        return self.loss(x, kl_weight)

    def training_value(self, x: Tensor) -> Tensor:
        """The value that training sees, with the full divergence and no gradient."""
        return self.loss(x, kl_weight=1.0).detach()

    def decode(self, z: Tensor) -> Tensor:
        """The pixels' logits, ``(S, B, *pixels)``, of latents ``(S, B, D)``."""
        weight = next(self.decoder.parameters(), z)  # it may be in half precision, z is not
        # one batch dimension, so that any module can be a decoder
        logits: Tensor = self.decoder(z.flatten(0, -2).to(weight.dtype))
        return logits.unflatten(0, z.shape[:-1])

    def reconstruction_cost(self, x: Tensor, z: Tensor) -> Tensor:
        r""":math:`-\log p(x \mid z)` of latents ``(S, B, D)``: ``(S, B)``."""
        x = x.flatten(1)
        logits = self.decode(z).flatten(2)  # (S, B, P)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if logits.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"the decoder returns {logits.shape[-1]} pixels, but the images have {x.shape[-1]}."
            )
        return softplus(logits).sum(-1) - (logits * x).sum(-1)

    def kl(self, x: Tensor) -> Tensor:
        """The divergence of posterior and prior, one number per example."""
        return divergence(*self.laws(self._pixels(x))).sum(-1)

    def _pixels(self, x: Tensor) -> Tensor:
        """Images as floating numbers between 0 and 1; anything else is an error."""
        x = floating(x)
        if any_of(self._outside(x)):
            low, high = x.aminmax()
            are = "some are NaN" if low.isnan() else f"they range from {low:.4g} to {high:.4g}"
            raise ValueError(
                f"expected pixels between 0 and 1 in `x`, but {are}; divide grey values by their "
                "largest possible one."
            )
        return x

    def _outside(self, x: Tensor) -> Tensor:
        """Whether some pixel is not between 0 and 1, as a tensor; False where nobody checks."""
        if not validates(self.validate_args) or not x.numel():
            return torch.zeros((), dtype=torch.bool, device=x.device)
        return ~((x.amin() >= 0) & (x.amax() <= 1))  # NaN is neither

    def _weight(self, kl_weight: float | None) -> float:
        if kl_weight is not None:
            _check_weight(kl_weight)
            return kl_weight
        return self.kl_weight.value if isinstance(self.kl_weight, Schedule) else self.kl_weight

    # ---------------------------------------------------------------- evaluation, by exact draws

    @torch.no_grad()
    def negative_elbo(self, x: Tensor, samples: int = 1) -> Tensor:
        """The negative bound, averaged over exact draws, one number per example."""
        x = self._pixels(x)
        q, p = self.laws(x)
        costs = [self.reconstruction_cost(x, z).sum(0) for z in _draws(q, samples, x)]
        return torch.stack(costs).sum(0) / samples + divergence(q, p).sum(-1)

    @torch.no_grad()
    def log_likelihood(self, x: Tensor, samples: int = 100) -> Tensor:
        """The importance-sampled log-likelihood, one number per example.

        Memory does not grow with the number of draws.
        """
        x = self._pixels(x)
        q, p = self.laws(x)
        total = torch.full(x.shape[:1], -torch.inf, device=x.device)
        for z in _draws(q, samples, x):
            log_weights = (p.log_prob(z) - q.log_prob(z)).sum(-1) - self.reconstruction_cost(x, z)
            total = torch.logaddexp(total.to(log_weights), log_weights.logsumexp(0))
        return total - log(samples)

    @torch.no_grad()
    def active_units(self, x: Tensor, threshold: float = 0.01) -> Tensor:
        """Which latents have a posterior mean that varies over images by more than a threshold."""
        if len(x) < 2:
            raise ValueError(f"active_units expects at least two images, but got {len(x)}.")
        return self.laws(self._pixels(x))[0].mean.var(0) > threshold

    @torch.no_grad()
    def reconstruct(self, x: Tensor) -> Tensor:
        """The pixels' probabilities given one exact draw from each posterior, shaped like ``x``."""
        z = draws_of(self.laws(self._pixels(x))[0], 1)
        return torch.sigmoid(self.decode(z)[0]).reshape(x.shape)

    @torch.no_grad()
    def sample_prior(self, n: int) -> Tensor:
        """The pixels' probabilities given draws from the prior, ``(n, *pixels)``."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ValueError(f"sample_prior expects how many images, but got {n!r}.")
        return torch.sigmoid(self.decode(self.draw_prior(n).unsqueeze(0))[0])


def floating(x: Tensor) -> Tensor:
    """Images as floating numbers."""
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def draws_of(law: Distribution, samples: int) -> Tensor:
    """Exact draws without gradient, as floating numbers: ``(S, *batch)``."""
    with torch.no_grad():
        z = law.sample(torch.Size([samples]))
    return z if z.is_floating_point() else z.to(torch.get_default_dtype())


def _check_weight(kl_weight: object) -> None:
    if not (isinstance(kl_weight, Real) and 0 <= float(kl_weight) < inf):
        raise ValueError(f"expected a finite `kl_weight` of at least 0, but got {kl_weight!r}.")


def _draws(q: Distribution, samples: int, x: Tensor) -> Iterator[Tensor]:
    """Draws in portions ``(S', B, D)`` whose decoded images fit into a little memory."""
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ValueError(f"expected a positive integer `samples`, but got {samples!r}.")
    portion = max(1, _MOST_NUMBERS // max(1, x.numel()))
    for done in range(0, samples, portion):
        yield draws_of(q, min(portion, samples - done))
