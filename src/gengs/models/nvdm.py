r"""The neural variational document model: Gaussian topics, the reference line beside the counts.

.. math::
    q(z \mid d) = N(\mu, \sigma^2), \qquad p(z) = N(0, 1), \qquad
    w \sim \mathrm{softmax}(R\, z + b)

It shares encoder, decoder and every question with :class:`gengs.models.NVPDEF`; a Gaussian draw is
differentiable as it is, so there is no estimator to choose. Its topics can be negative, which makes
them harder to read.

References:
    | Neural Variational Inference for Text Processing (Miao et al., 2016),
    | https://arxiv.org/abs/1511.06038
"""

from __future__ import annotations

__all__ = ["NVDM"]

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from ..distributions.temperature import Schedule
from .bag_of_words import BagEncoder, WordDecoder
from .topic_network import Rows, TopicNetwork


class NVDM(TopicNetwork):
    """A topic model with Gaussian latents.

    Args:
        encoder: Counts ``(B, V)`` to features.
        topics: The number of latents.
        samples: The number of draws in the loss.
        unigram: The words' probabilities to begin with, ``(V,)``.
        kl_weight: The weight of the divergence while training.
    """

    def __init__(
        self,
        encoder: BagEncoder,
        topics: int = 50,
        samples: int = 1,
        *,
        unigram: Tensor | None = None,
        kl_weight: float | Schedule = 1.0,
    ) -> None:
        super().__init__(encoder, WordDecoder(topics, encoder.words, unigram), kl_weight)
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
            raise ValueError(f"expected a positive integer `samples`, but got {samples!r}.")
        self.samples = samples
        self.head = nn.Linear(encoder.features, 2 * topics)

    def _posterior(self, features: Tensor) -> Normal:
        mean, log_variance = self.head(features).chunk(2, -1)
        return Normal(mean, (log_variance / 2).exp())

    def loss(self, counts: Tensor, kl_weight: float | None = None) -> Tensor:
        """The negative ELBO of reparameterised draws, one number per document."""
        q = self._posterior(self.encoder(counts))
        shape = (self.samples, *q.loc.shape)
        noise = torch.randn(shape, dtype=q.loc.dtype, device=q.loc.device)
        return self._bound(q, counts, noise, self._weight(kl_weight))

    def bound_of(self, features: Tensor, counts: Tensor) -> Tensor:
        """The negative bound of four draws, differentiable in the features, ``(B,)``.

        All documents share the noise: what is found for one does not depend on those beside it.
        """
        q = self._posterior(features)
        noise = torch.randn(4, 1, q.loc.shape[-1], dtype=q.loc.dtype).to(q.loc.device)
        return self._bound(q, counts, noise, weight=1.0)

    def _bound(self, q: Normal, counts: Tensor, noise: Tensor, weight: float) -> Tensor:
        z = q.loc + q.scale * noise  # (S, B, D)
        return self.decoder.cost(counts, z).mean(0) + weight * _divergence(q)

    def bound_parts(self, features: Tensor, counts: Tensor, samples: int) -> tuple[Tensor, Tensor]:
        """Reconstruction and divergence of draws from the posterior, ``(S, B)`` each."""
        q = self._posterior(features)
        cost = self.decoder.cost(counts, q.sample(torch.Size([samples])))
        return cost, _divergence(q).expand_as(cost)

    def log_weights(self, features: Tensor, counts: Tensor, samples: int) -> Tensor:
        """The log-weights of draws from the posterior, ``(S, B)``."""
        q = self._posterior(features)
        z = q.sample(torch.Size([samples]))
        standard = Normal(torch.zeros_like(z), torch.ones_like(z))
        return (standard.log_prob(z) - q.log_prob(z)).sum(-1) - self.decoder.cost(counts, z)

    def rows_of_means(self) -> list[tuple[nn.Parameter, Rows]]:
        """The first half of the head's outputs."""
        return [(p, lambda tensor: tensor[: len(tensor) // 2]) for p in self.head.parameters()]

    def means(self, features: Tensor, layer: int = -1) -> Tensor:
        """The posterior means, ``(B, D)``; there is one layer."""
        return self._posterior(features).mean


def _divergence(q: Normal) -> Tensor:
    """From the standard normal law, ``(B,)``."""
    variance = q.scale.square()
    return (q.mean.square() + variance - 1 - variance.log()).sum(-1) / 2
