r"""The neural variational Poisson deep exponential family: a topic model whose topics are counts.

.. math::
    z_1 \sim \mathrm{Poisson}(\lambda_1), \qquad
    z_k \sim \mathrm{Poisson}(\cdot), \qquad
    w \sim \mathrm{softmax}(R\, z_K + b)

A document is words drawn from :math:`z_K`, one count per topic; above them stand super-topics. The
loss of a document is

.. math::
    E_q\Big[-\sum_w n_w \log p(w \mid z_K)
    + \sum_k \mathrm{KL}\big(q(z_k \mid \cdot) \,\|\, p(z_k \mid \cdot)\big)\Big],

every divergence in closed form, the expectations by any estimator, one for each layer, nested: the
cost of a layer's draw is itself the estimate of all that lies below. With K = 1 all readings agree;
with more layers, ``stack`` says what feeds what:

===========  ==================================================  ==================================
stack        posterior of layer k > 1                            prior of layer k > 1
===========  ==================================================  ==================================
chain        made from the *draw* :math:`z_{k-1}` (relaxed or    Poisson(:math:`\lambda_k`)
             discrete): the paper's
mean-field   made from the *mean* of :math:`q(z_{k-1})`          Poisson(:math:`\lambda_k`)
generative   made from the document, starting from the prior     Poisson(softplus(W) z_{k-1} + c)
===========  ==================================================  ==================================

In the first two, an explicit posterior has the rate :math:`\mathrm{softplus}(W) z_{k-1} + c`, and
the upper layers are a bottleneck through which the document has to pass. In the last one they are a
prior that is learned, as in a deep exponential family: they cost what they explain, and a layer
that explains nothing costs nothing.

References:
    | Generalized Gumbel-Softmax Gradient Estimator for Generic Discrete Random Variables
    | (Joo et al., 2020), https://arxiv.org/abs/2003.01847
    | Deep Exponential Families (Ranganath et al., 2015), https://arxiv.org/abs/1411.2581

Example:
    >>> import gengs
    >>> encoder = BagEncoder(words=100, hidden=(32,))
    >>> model = NVPDEF(encoder, gengs.MidCDF(), sizes=(5, 20), posterior="tilted")
    >>> counts = torch.poisson(torch.full((8, 100), 0.5))
    >>> model.loss(counts).mean().backward()
    >>> model.negative_elbo(counts, samples=10).shape, model.intensities(counts).shape
    (torch.Size([8]), torch.Size([8, 20]))
"""

__all__ = ["NVPDEF", "Stack"]

from collections.abc import Sequence
from copy import deepcopy
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, kl_divergence

from gengs.estimators.base import Estimator
from gengs.estimators.temperature import Schedule
from gengs.nn.latent_model import expected_cost

from .bag_encoder import BagEncoder
from .layers import PoissonLayer, PositiveLinear, PosteriorFamily, check_rate
from .topic_network import Rows, TopicNetwork
from .word_decoder import WordDecoder, WordLaw

Stack = Literal["chain", "mean-field", "generative"]
"""What feeds what in two or more layers."""

_AS_WIDE = -8.0  # a curvature by which a tilted posterior is as wide as its prior


class NVPDEF(TopicNetwork):
    """Layers of Poisson topics above words.

    Args:
        encoder: Counts ``(B, V)`` to features.
        estimator: Differentiates the expectations: one for all layers (each gets a copy), or one
            for each. Draws multiply: with S draws in each of K layers there are S to the power K.
        sizes: The number of latents in each layer; the last ones are the topics.
        rates: The prior's rate in each layer, or one for all.
        level: Truncate all laws to this many atoms; ``None`` leaves them whole (explicit only).
        posterior: The family of the posteriors.
        stack: What feeds what.
        words: The law of the words (:mod:`.word_decoder`).
        learn_rates: Learn a prior rate for each latent (empirical Bayes).
        unigram: The words' probabilities to begin with, ``(V,)``.
        kl_weight: The weight of the divergences while training.
    """

    def __init__(
        self,
        encoder: BagEncoder,
        estimator: Estimator | Sequence[Estimator],
        sizes: Sequence[int] = (50,),
        rates: float | Sequence[float] = 0.75,
        level: int | None = 15,
        posterior: PosteriorFamily = "explicit",
        stack: Stack = "chain",
        *,
        words: WordLaw = "multinomial",
        learn_rates: bool = False,
        unigram: Tensor | None = None,
        kl_weight: float | Schedule = 1.0,
    ) -> None:
        sizes = tuple(sizes)
        rates = (rates,) * len(sizes) if isinstance(rates, (int, float)) else tuple(rates)
        if not sizes or min(sizes) < 1:
            raise ValueError(f"expected positive `sizes` of layers, but got {list(sizes)}.")
        if len(rates) != len(sizes):
            raise ValueError(f"expected a rate for each of {len(sizes)} layers, got {len(rates)}.")
        if stack not in get_args(Stack):
            raise ValueError(
                f"expected `stack` to be one of {', '.join(get_args(Stack))}, but got {stack!r}."
            )
        for rate in rates:  # the decoder divides by its root
            check_rate(rate, level, "rates")
        last, rate = sizes[-1], rates[-1]
        decoder = WordDecoder(last, encoder.words, unigram, rate, rate**0.5, words)
        super().__init__(encoder, decoder, kl_weight)
        self.stack, self.depth, self.feeds_means = stack, len(sizes), stack == "mean-field"
        self.layers = nn.ModuleList(
            PoissonLayer(size, rate, level, posterior, learn_rates)
            for size, rate in zip(sizes, rates, strict=True)
        )
        # rates that feed rates leave one expectation, that of the last layer
        self.estimators = nn.ModuleList(_one_each(estimator, 1 if self.feeds_means else len(sizes)))
        self.heads = nn.ModuleList(self._head(k, posterior) for k in range(len(sizes)))
        # the positive maps from layer to layer: of posteriors, or of the generative prior
        maps = (stack == "generative" or posterior == "explicit") and len(sizes) > 1
        self.maps = nn.ModuleList(
            PositiveLinear(sizes[k - 1], sizes[k], rate=rates[k], typical=rates[k - 1])
            for k in range(1, len(sizes) if maps else 1)
        )

    def _layer(self, k: int) -> PoissonLayer:
        return cast(PoissonLayer, self.layers[k])

    def _head(self, k: int, posterior: PosteriorFamily) -> nn.Module:
        """The layer that writes the raw numbers of the posterior of layer k."""
        if k == 0 or self.stack == "generative":
            return self._layer(k).head(self.encoder.features)
        if posterior == "explicit":
            return nn.Identity()  # a positive map makes the rate
        return self._layer(k).head(self._layer(k - 1).size)

    # ------------------------------------------------------------------------------ the two laws

    def laws(self, k: int, above: Tensor | None, features: Tensor) -> tuple[Distribution, ...]:
        """The posterior and the prior of layer k, given what is above it ``(*, B, D)``."""
        layer = self._layer(k)
        if k == 0 or above is None:
            prior = layer.prior()
            return layer.posterior(self.heads[0](features), prior), prior
        if self.stack == "generative":
            prior = layer.prior(self.maps[k - 1](above))
            q = layer.posterior(self.heads[k](features), prior)
            return q.expand(prior.batch_shape), prior
        prior = layer.prior()
        if layer.posterior_family == "explicit":
            return layer.poisson(self.maps[k - 1](above)), prior
        typical = self._layer(k - 1).start_rate
        centred = (above - typical) / typical**0.5
        return layer.posterior(self.heads[k](centred), prior), prior

    # ---------------------------------------------------------------------------------- training

    def loss(self, counts: Tensor, kl_weight: float | None = None) -> Tensor:
        """What training minimises, one number per document, with the estimators' gradient.

        In ``eval()`` mode, and without gradients, the estimators use exact draws.
        """
        return self._descend(0, None, self.encoder(counts), counts, self._weight(kl_weight))

    def _descend(
        self, k: int, above: Tensor | None, features: Tensor, counts: Tensor, weight: float
    ) -> Tensor:
        """The estimated cost of layers k and below, ``(*, B)``."""
        q, p = self.laws(k, above, features)
        last = k == self.depth - 1
        if self.feeds_means and not last:
            below = self._descend(k + 1, q.mean, features, counts, weight)
            return below + weight * kl_divergence(q, p).sum(-1)
        estimator = cast(Estimator, self.estimators[0 if self.feeds_means else k])

        def cost(z: Tensor) -> Tensor:
            if last:
                return self.decoder.cost(counts, z)
            return self._descend(k + 1, z, features, counts, weight)

        # what a learned baseline sees; the draws of the layers above are not for it
        context = torch.log1p(counts) if k == 0 else None
        return expected_cost(estimator, cost, q, p, weight, context)

    def rows_of_means(self) -> list[tuple[nn.Parameter, Rows]] | None:
        """The first raw number of each topic moves its mean: the slope, or the rate's logarithm."""
        head, layer = self.heads[-1], self._layer(-1)
        if layer.posterior_family == "implicit" or not isinstance(head, nn.Linear):
            return None

        def first(tensor: Tensor) -> Tensor:
            return tensor.unflatten(0, (layer.size, layer.width))[:, 0]

        return [(parameter, first) for parameter in head.parameters()]

    @torch.no_grad()
    def switch_off(self, idle: Tensor) -> Tensor:
        """Those of a single layer with tilted posteriors; others stay."""
        head, layer = self.heads[-1], self._layer(-1)
        if self.depth > 1 or layer.posterior_family != "tilted":
            return super().switch_off(idle)
        self.decoder.weight[idle] = 0.0
        for parameter in head.parameters():
            parameter.unflatten(0, (layer.size, 2))[idle] = 0.0
        cast(nn.Linear, head).bias.unflatten(0, (layer.size, 2))[idle, 1] = _AS_WIDE
        return idle

    def hierarchy(self) -> list[Tensor]:
        """The positive weights from each layer to the next, ``(D_next, D)`` each."""
        found = [cast(PositiveLinear, positive).weight.detach() for positive in self.maps]
        return [*found[:-1], *(self.reading.T @ last for last in found[-1:])]


def _one_each(estimator: Estimator | Sequence[Estimator], layers: int) -> list[Estimator]:
    given = [estimator] if isinstance(estimator, Estimator) else list(estimator)
    if not all(isinstance(one, Estimator) for one in given) or len(given) not in (1, layers):
        raise TypeError(
            f"NVPDEF expects a gengs estimator, or one for each of {layers} layers, as "
            f"`estimator`, but got {estimator!r}."
        )
    return given if len(given) == layers else [given[0], *map(deepcopy, given * (layers - 1))]
