r"""What every topic model of this library can be asked, the same for all.

A document is a row of word counts :math:`n_w`; its latent topics are :math:`z`, and

.. math:: -\log p(d \mid z) = -\sum_w n_w \log p(w \mid z) .

The bound and the likelihood are those of :mod:`gengs.nn.latent_model`; perplexities follow from
the bound (:mod:`.topic_perplexity`).
"""

__all__ = ["Rows", "TopicNetwork"]

from abc import abstractmethod
from collections.abc import Callable, Iterator
from math import log

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from gengs.estimators.temperature import Schedule
from gengs.nn.latent_model import Draw, LatentModel, Layers, exact_draws, portions, total_kl

from .bag_encoder import BagEncoder
from .refinement import common_draws, refined
from .word_decoder import WordDecoder

Rows = Callable[[Tensor], Tensor]
"""From a parameter to its part with a row for each topic, a view."""


class TopicNetwork(LatentModel):
    """An encoder, topics, a decoder, and the questions one asks them.

    Args:
        encoder: Counts ``(B, V)`` to features.
        decoder: Topic intensities to words.
        kl_weight: The weight of the divergence in the training loss: a number, or a schedule that
            is read at each call (step it yourself).
    """

    def __init__(
        self, encoder: BagEncoder, decoder: WordDecoder, kl_weight: float | Schedule = 1.0
    ) -> None:
        super().__init__(kl_weight)
        self.encoder, self.decoder = encoder, decoder
        unknown = torch.full(decoder.weight.shape[:1], torch.nan)
        # how documents use the topics, once that was measured (topic_activity)
        self.usual: Tensor = nn.Buffer(torch.full_like(unknown, decoder.centre))
        self.deviation: Tensor = nn.Buffer(torch.full_like(unknown, decoder.scale))
        self.coherence: Tensor = nn.Buffer(unknown)
        self.chance: Tensor = nn.Buffer(unknown.clone())
        self.relevance: Tensor = nn.Buffer(torch.full_like(decoder.weight.detach(), torch.nan))
        # the directions of the latents in which topics are read, orthonormal columns
        self.reading: Tensor = nn.Buffer(torch.eye(len(unknown)))

    depth = 1
    """The number of layers of latents; the last one are the topics."""
    feeds_means = False
    """Whether a layer is given the means of the layer above it, or its draws."""

    @abstractmethod
    def laws(self, k: int, above: Tensor | None, features: Tensor) -> tuple[Distribution, ...]:
        """The posterior and the prior of layer k, given what is above it ``(*, B, D)``.

        Posteriors are made from the encoder's features, which may have been refined on the way.
        """

    def posterior_draws(self, features: Tensor, samples: int, draw: Draw) -> tuple[Tensor, Layers]:
        """Ancestral draws: of the first layer ``samples``, of the others one for each of them.

        They are the topics' intensities ``(S, B, D)``; and for each layer its posterior and its
        prior, given the draws above it, and its own draws.
        """
        above: Tensor | None = None
        layers: Layers = []
        for k in range(self.depth):
            q, p = self.laws(k, above, features)
            first = len(q.batch_shape) == 2
            z = draw(q, samples) if first else draw(q, 1).squeeze(0)  # (S, B, D)
            layers.append((q, p, z))
            above = q.mean if self.feeds_means else z
        return layers[-1][2], layers

    def means(self, features: Tensor, layer: int = -1) -> Tensor:
        """The posterior means of a layer, ``(B, D)``; layers above it are at their means."""
        above: Tensor | None = None
        for k in range(range(self.depth)[layer] + 1):
            above = self.laws(k, above, features)[0].mean
        return above  # type: ignore[return-value]

    def features(self, counts: Tensor, refine: int = 0) -> Tensor:
        """What posteriors are made from, ``(B, H)``: the encoder's output, or better.

        Better by ``refine`` steps of descent on each document's own bound (:mod:`.refinement`).
        """
        features: Tensor = self.encoder(counts)
        if not refine:
            return features
        with torch.inference_mode(False):  # tensors of that mode cannot be differentiated through
            own = counts.clone() if counts.is_inference() else counts
        return refined(lambda moved: self._common_bound(moved, own), features, refine)

    def _common_bound(self, features: Tensor, counts: Tensor) -> Tensor:
        """The negative bound of draws that all documents share, differentiable, ``(B,)``."""
        z, layers = self.posterior_draws(features, 2, self.common_draws)  # of opposite sides
        return (self.decoder.cost(counts, z) + total_kl(layers)).mean(0)

    common_draws: Draw = staticmethod(common_draws)
    """Differentiable draws from random numbers that all documents share."""

    @torch.no_grad()
    def intensities(self, counts: Tensor, layer: int = -1, refine: int = 0) -> Tensor:
        """The posterior means of a layer, ``(B, D)``: how much of each topic."""
        means = self.means(self.features(counts, refine), layer)
        if layer != -1:
            return means
        centre = self.decoder.centre
        return (means - centre) @ self.reading + centre

    def topics(self) -> Tensor:
        """How much each topic raises each word's logit, ``(D, V)``, relative to their mean."""
        weight = self.reading.T @ self.decoder.weight.detach()
        # a constant added to a topic's row changes no probability
        return weight - weight.mean(-1, keepdim=True)

    def gains(self, deviations: float = 4.0) -> Tensor:
        """How much each topic, when strong, adds to each word's probability, ``(D, V)``."""
        bias = self.decoder.bias.detach()
        strong = bias + self.topics() * (deviations * self.decoder.scale)
        return strong.softmax(-1) - bias.softmax(-1)

    def word_scores(self) -> Tensor:
        """What words are ranked by in each topic, ``(D, V)`` (:mod:`.word_ranking`)."""
        measured = self.relevance.isfinite().all()
        return self.relevance if measured else self.gains()

    def hierarchy(self) -> list[Tensor]:
        """The positive weights from each layer to the next, ``(D_next, D)`` each."""
        return []

    def rows_of_means(self) -> list[tuple[nn.Parameter, Rows]] | None:
        """Where the latents' posterior means come from; none where that is not linear.

        Parameters, each with a function from it (or a tensor like it) to its view with one row for
        each latent, ``(D, *)``.
        """
        return None

    @torch.no_grad()
    def reorder(self, order: Tensor) -> None:
        """Let topic k be what topic ``order[k]`` was."""
        self.reading.copy_(self.reading[:, order])
        for buffer in (self.usual, self.deviation, self.coherence, self.chance, self.relevance):
            buffer.copy_(buffer[order])

    def switch_off(self, idle: Tensor) -> Tensor:
        """Let the latents of a mask ``(D,)`` be as the prior has them, and say nothing of words.

        What is returned is the mask of those that are switched off: none by default.
        """
        return torch.zeros_like(idle)

    def penalty(self) -> Tensor:
        """The squared norm of the topics, per typical change of an intensity.

        Times a factor c, it is minus the logarithm of a Gaussian prior with variance 1/(2c) on each
        entry of R: added to the loss of the whole corpus, it makes training a posterior mode.
        """
        return self.decoder.weight.square().sum() * self.decoder.scale**2

    # ---------------------------------------------------------------- evaluation, by exact draws

    def exact(
        self, counts: Tensor, samples: int, refine: int = 0
    ) -> Iterator[tuple[Tensor, Layers]]:
        features = self.features(counts, refine)
        for portion in portions(samples, counts):
            z, layers = self.posterior_draws(features, portion, exact_draws)
            yield self.decoder.cost(counts, z), layers

    @torch.no_grad()
    def predictive(
        self, given: Tensor, rest: Tensor, samples: int = 100, refine: int = 0
    ) -> Tensor:
        r"""The log-probability of the rest of documents, by draws from the posterior of the given.

        .. math:: \log \frac1S \sum_s \frac{p(x_\text{given} + x_\text{rest} \mid z_s)}
            {p(x_\text{given} \mid z_s)}, \qquad z_s \sim q(z \mid x_\text{given})

        Words that an urn has given come again.
        """
        features, found = self.features(given, refine), []
        for portion in portions(samples, given):
            z, _ = self.posterior_draws(features, portion, exact_draws)
            found.append(self.decoder.cost(given, z) - self.decoder.cost(given + rest, z))
        return torch.cat(found).logsumexp(0) - log(samples)
