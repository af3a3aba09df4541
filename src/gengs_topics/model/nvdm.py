r"""The neural variational document model: Gaussian topics, the baseline of the count-latent ones.

.. math::
    q(z \mid d) = N(\mu, \sigma^2), \qquad p(z) = N(0, 1), \qquad
    w \sim \mathrm{softmax}(R\, z + b)

It shares encoder, decoder and every question with :class:`gengs_topics.NVPDEF`; a Gaussian draw is
differentiable as it is, so there is no estimator to choose. Its topics can be negative, which makes
them harder to read.

References:
    | Neural Variational Inference for Text Processing (Miao et al., 2016),
    | https://arxiv.org/abs/1511.06038
"""

__all__ = ["NVDM"]

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal, kl_divergence

from gengs.estimators.base import positive_integer
from gengs.estimators.temperature import Schedule

from .bag_encoder import BagEncoder
from .topic_network import Rows, TopicNetwork
from .word_decoder import WordDecoder, WordLaw

_PRIOR = Normal(0.0, 1.0)


class NVDM(TopicNetwork):
    """A topic model with Gaussian latents.

    Args:
        encoder: Counts ``(B, V)`` to features.
        topics: The number of latents.
        samples: The number of draws in the loss.
        words: The law of the words (:mod:`.word_decoder`).
        unigram: The words' probabilities to begin with, ``(V,)``.
        kl_weight: The weight of the divergence while training.
    """

    def __init__(
        self,
        encoder: BagEncoder,
        topics: int = 50,
        samples: int = 1,
        *,
        words: WordLaw = "multinomial",
        unigram: Tensor | None = None,
        kl_weight: float | Schedule = 1.0,
    ) -> None:
        decoder = WordDecoder(topics, encoder.words, unigram, law=words)
        super().__init__(encoder, decoder, kl_weight)
        self.samples = positive_integer("", "samples", samples)
        self.head = nn.Linear(encoder.features, 2 * topics)

    def laws(self, k: int, above: Tensor | None, features: Tensor) -> tuple[Distribution, ...]:
        """The posterior and the standard normal prior; there is one layer."""
        mean, log_variance = self.head(features).chunk(2, -1)
        return Normal(mean, (log_variance / 2).exp()), _PRIOR

    def loss(self, counts: Tensor, kl_weight: float | None = None) -> Tensor:
        """The negative ELBO of reparameterised draws, one number per document."""
        q, p = self.laws(0, None, self.encoder(counts))
        cost = self.decoder.cost(counts, q.rsample(torch.Size([self.samples])))  # (S, B)
        return cost.mean(0) + self._weight(kl_weight) * kl_divergence(q, p).sum(-1)

    @staticmethod
    def common_draws(law: Distribution, samples: int) -> Tensor:
        """Reparameterised draws from noise that all documents share."""
        noise = torch.randn(samples, 1, law.mean.shape[-1], dtype=law.mean.dtype)
        return law.mean + law.stddev * noise.to(law.mean.device)

    def rows_of_means(self) -> list[tuple[nn.Parameter, Rows]]:
        """The first half of the head's outputs."""
        return [(p, lambda tensor: tensor[: len(tensor) // 2]) for p in self.head.parameters()]
