r"""The Gaussian variational autoencoder, the baseline of the count-latent ones.

.. math::
    q(z \mid x) = N(\mu, \sigma^2), \qquad p(z) = N(0, 1), \qquad
    \mathrm{KL} = \tfrac12 \sum_d (\mu_d^2 + \sigma_d^2 - 1 - \log \sigma_d^2)

A Gaussian draw :math:`\mu + \sigma \varepsilon` is differentiable as it is: no estimator to
choose. The same loop trains it as :class:`gengs_experiments.models.VAE`, the same questions are
asked.

References:
    | Auto-Encoding Variational Bayes (Kingma & Welling, 2014), https://arxiv.org/abs/1312.6114
"""

__all__ = ["GaussianVAE"]

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal

from gengs.estimators.temperature import Schedule

from .autoencoder import Autoencoder


class GaussianVAE(Autoencoder):
    """A variational autoencoder with Gaussian latents.

    Args:
        encoder: Images ``(B, *pixels)`` to ``(B, 2 * D)``: the means, then the log-variances.
        decoder: Latents ``(B, D)`` to the logits of Bernoulli pixels ``(B, *pixels)``.
        latents: The number D of latents.
        samples: The number of draws in the loss, in antithetic pairs.
        kl_weight: The weight of the divergence while training.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        latents: int,
        samples: int = 1,
        kl_weight: float | Schedule = 1.0,
    ) -> None:
        super().__init__(encoder, decoder, kl_weight)
        self.latents, self.samples = latents, samples

    def laws(self, x: Tensor) -> tuple[Distribution, Distribution]:
        """The factors' posterior ``(B, D)`` and the standard normal prior."""
        mean, log_variance = self._raw(x)
        return Normal(mean, (log_variance / 2).exp()), Normal(mean.new_zeros(()), mean.new_ones(()))

    def loss(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """The negative ELBO of reparameterised draws, one number per example."""
        x = self._pixels(x)
        mean, log_variance = self._raw(x)
        shape = ((self.samples + 1) // 2, *mean.shape)
        noise = torch.randn(shape, dtype=mean.dtype, device=mean.device)
        noise = torch.cat([noise, -noise])[: self.samples]
        z = mean + (log_variance / 2).exp() * noise  # (S, B, D)
        kl = (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2
        return self.reconstruction_cost(x, z).mean(0) + self._weight(kl_weight) * kl

    def draw_prior(self, n: int) -> Tensor:
        """Draws from the standard normal prior, ``(n, D)``."""
        like = next(self.decoder.parameters(), torch.zeros(()))
        return torch.randn(n, self.latents, dtype=like.dtype, device=like.device)

    def _raw(self, x: Tensor) -> tuple[Tensor, Tensor]:
        raw: Tensor = self.encoder(x)
        if raw.shape != (len(x), 2 * self.latents):
            raise ValueError(
                f"a Gaussian posterior of {self.latents} latents expects an encoder with "
                f"{2 * self.latents} outputs, but got shape {tuple(raw.shape)}."
            )
        mean, log_variance = raw.chunk(2, -1)
        return mean, log_variance
