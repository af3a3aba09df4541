r"""What every model of this library can be asked: its loss, and its bounds by exact draws.

With latents :math:`z`, a posterior :math:`q` that a network writes and a prior :math:`p`, the
negative evidence lower bound

.. math::
    -\mathrm{ELBO}(x) = E_{q(z|x)}[-\log p(x \mid z)] + \mathrm{KL}(q(z \mid x) \,\|\, p(z))
    \ge -\log p(x)

is evaluated with exact draws from :math:`q`, whatever estimator the model was trained with: a
relaxed draw would make it smaller than the bound. The likelihood itself is estimated by importance
sampling,

.. math::
    \log p(x) \approx \log \frac1S \sum_s \frac{p(x \mid z_s)\, p(z_s)}{q(z_s \mid x)},

from below: the more draws, the closer.

References:
    | Auto-Encoding Variational Bayes (Kingma & Welling, 2014), https://arxiv.org/abs/1312.6114
    | Importance Weighted Autoencoders (Burda et al., 2016), https://arxiv.org/abs/1509.00519
"""

__all__ = ["Draw", "LatentModel", "Layers", "exact_draws", "expected_cost", "portions", "total_kl"]

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import inf, log
from numbers import Real

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent

from ..estimators.base import Cost, Estimator, as_in_training, positive_integer
from ..estimators.temperature import Schedule
from ..tables.kl import divergence

# decoded draws that are held at once: 4 million numbers, 16 MB
_MOST_NUMBERS = 1 << 22

Draw = Callable[[Distribution, int], Tensor]
"""From a distribution ``(*, B, D)`` and a number of draws to these, ``(S, *, B, D)``."""

Layers = list[tuple[Distribution, Distribution, Tensor]]
"""Posterior, prior and draws of each layer of latents, from above."""


class LatentModel(nn.Module, ABC):
    """A loss for training, in which the divergence has a weight, and what one asks afterwards."""

    def __init__(self, kl_weight: float | Schedule = 1.0) -> None:
        super().__init__()
        self.kl_weight = kl_weight
        self._weight()

    @abstractmethod
    def loss(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """What training minimises, one number per example."""

    @abstractmethod
    def exact(self, x: Tensor, samples: int, refine: int = 0) -> Iterator[tuple[Tensor, Layers]]:
        r"""Costs :math:`-\log p(x \mid z)` of exact draws, ``(S', B)`` in each portion of them."""

    def forward(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """The loss, so that wrappers (data parallel, compiled) can be called like the model."""
        return self.loss(x, kl_weight)

    def training_value(self, x: Tensor) -> Tensor:
        """The value of the loss that training sees, with the full divergence and no gradient.

        For a relaxation it is the *relaxed* "negative ELBO", which is no bound, and the number that
        papers print; for VIMCO the multi-sample bound; for the others one more draw of the bound.
        """
        estimators = nn.ModuleList(m for m in self.modules() if isinstance(m, Estimator))
        with as_in_training(estimators):
            return self.loss(x, kl_weight=1.0).detach()

    @torch.no_grad()
    def negative_elbo(self, x: Tensor, samples: int = 1, refine: int = 0) -> Tensor:
        """The negative bound, averaged over exact draws, one number per example.

        Posteriors of documents are refined by ``refine`` steps before.
        """
        return sum(self.averages(x, samples, refine))  # type: ignore[return-value]

    @torch.no_grad()
    def averages(self, x: Tensor, samples: int, refine: int = 0) -> tuple[Tensor, Tensor]:
        """Minus the log-likelihood and the divergence, by exact draws, ``(B,)`` each."""
        costs = divergences = torch.zeros(())
        for cost, layers in self.exact(x, samples, refine):
            kl = total_kl(layers)
            costs = costs + cost.sum(0)
            # without layers below it does not depend on the draws
            divergences = divergences + kl.sum(0) / samples if kl.dim() > 1 else kl
        return costs / samples, divergences

    @torch.no_grad()
    def log_likelihood(self, x: Tensor, samples: int = 100) -> Tensor:
        """The importance-sampled log-likelihood, a bound from below, one number per example.

        Memory does not grow with the number of draws.
        """
        total = torch.full(x.shape[:1], -torch.inf, device=x.device)
        for cost, layers in self.exact(x, samples):
            ratios = sum((p.log_prob(z) - q.log_prob(z)).sum(-1) for q, p, z in layers)
            log_weights = ratios - cost
            total = torch.logaddexp(total.to(log_weights), log_weights.logsumexp(0))
        return total - log(samples)

    def _weight(self, kl_weight: float | None = None) -> float:
        """The divergence's weight now: this one, or the model's own."""
        weight = self.kl_weight if kl_weight is None else kl_weight
        if isinstance(weight, Schedule):
            return weight.value
        if not (isinstance(weight, Real) and 0 <= float(weight) < inf):
            raise ValueError(f"expected a finite `kl_weight` of at least 0, but got {weight!r}.")
        return weight


def expected_cost(
    estimator: Estimator,
    cost: Cost,
    q: Distribution,
    p: Distribution,
    weight: float,
    context: Tensor | None = None,
) -> Tensor:
    """``E_q[cost] + weight * KL(q, p)`` by an estimator, or its multi-sample bound, ``(*, B)``."""
    if estimator.objective != "multi-sample bound":
        expected = estimator.expect(cost, Independent(q, 1), context=context)
        return expected + weight * divergence(q, p).sum(-1)

    def log_weight(z: Tensor) -> Tensor:
        return cost(z) + weight * (q.log_prob(z) - p.log_prob(z)).sum(-1)

    return estimator.expect(log_weight, Independent(q, 1), context=context)


def total_kl(layers: Layers) -> Tensor:
    """Of posteriors and priors, all layers together, ``(B,)`` or ``(S, B)``."""
    return sum(divergence(q, p).sum(-1) for q, p, _ in layers)  # type: ignore[return-value]


def exact_draws(law: Distribution, samples: int) -> Tensor:
    """Draws without gradient, as floating numbers: ``(S, *batch)``."""
    with torch.no_grad():
        z = law.sample(torch.Size([samples]))
    return z if z.is_floating_point() else z.to(torch.get_default_dtype())


def portions(samples: int, x: Tensor) -> Iterator[int]:
    """Numbers of draws, together ``samples``, whose decoded examples fit into a little memory."""
    positive_integer("", "samples", samples)
    portion = max(1, _MOST_NUMBERS // max(1, x.numel()))
    for done in range(0, samples, portion):
        yield min(portion, samples - done)
