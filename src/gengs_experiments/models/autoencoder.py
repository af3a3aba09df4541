r"""What every variational autoencoder of this library can be asked, the same for all.

A decoder gives :math:`p(x \mid z)`, independent Bernoulli pixels; an encoder gives
:math:`q(z \mid x)`. The bound and the likelihood are those of :mod:`gengs.nn.latent_model`.

References:
    | Auto-Encoding Variational Bayes (Kingma & Welling, 2014), https://arxiv.org/abs/1312.6114
    | Importance Weighted Autoencoders (Burda et al., 2016), https://arxiv.org/abs/1509.00519
    | (active units)
"""

__all__ = ["Autoencoder", "floating"]

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import softplus

from gengs.estimators.temperature import Schedule
from gengs.nn.latent_model import LatentModel, Layers, exact_draws, portions
from gengs.numerics.tracing import any_of, validates
from gengs.tables.kl import divergence


class Autoencoder(LatentModel):
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
        super().__init__(kl_weight)
        self.encoder, self.decoder, self.validate_args = encoder, decoder, validate_args

    @abstractmethod
    def laws(self, x: Tensor) -> tuple[Distribution, Distribution]:
        """The factors' posterior, of batch shape ``(B, D)``, and their prior."""

    @abstractmethod
    def draw_prior(self, n: int) -> Tensor:
        """Draws from the prior, ``(n, D)``."""

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

    def exact(self, x: Tensor, samples: int, refine: int = 0) -> Iterator[tuple[Tensor, Layers]]:
        if refine:
            raise TypeError("the posteriors of a VAE are not refined: leave `refine` out.")
        x = self._pixels(x)
        q, p = self.laws(x)
        for portion in portions(samples, x):
            z = exact_draws(q, portion)
            yield self.reconstruction_cost(x, z), [(q, p, z)]

    @torch.no_grad()
    def active_units(self, x: Tensor, threshold: float = 0.01) -> Tensor:
        """Which latents have a posterior mean that varies over images by more than a threshold."""
        if len(x) < 2:
            raise ValueError(f"active_units expects at least two images, but got {len(x)}.")
        return self.laws(self._pixels(x))[0].mean.var(0) > threshold

    @torch.no_grad()
    def reconstruct(self, x: Tensor) -> Tensor:
        """The pixels' probabilities given one exact draw from each posterior, shaped like ``x``."""
        z = exact_draws(self.laws(self._pixels(x))[0], 1)
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
