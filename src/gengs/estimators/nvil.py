r"""The score-function estimator with learned baselines (NVIL).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math::
    \frac1m \sum_i \big(f(z_i) - C_\psi(x) - c\big) \nabla \log q(z_i)

where the network :math:`C_\psi` predicts the cost from a context :math:`x` by least squares, and
:math:`c` is the running mean of what it leaves over. Both are known before :math:`z_i` is drawn, so
neither biases the gradient; the running moments are used *before* the current cost enters them.

It is unbiased and asks nothing of the cost. Its variance is that of the cost's spread around its
prediction.

The paper also divides by :math:`\max(1, \sigma)`, :math:`\sigma` the running standard deviation of
what is left over (``normalise=True``). That keeps the size of a step steady over the training, but
scales the expected gradient. Where another term is added to the expectation (a KL divergence,
say), the scale shifts the balance between the two.

References:
    | Neural Variational Inference and Learning in Belief Networks (Mnih & Gregor, 2014),
    | https://arxiv.org/abs/1402.0030
"""

__all__ = ["NVIL"]

from math import prod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..numerics.tracing import inside_transform
from .base import Estimator, add_auxiliary_loss
from .checked_cost import CheckedCost
from .factors import Factors
from .surrogate import attach


class NVIL(Estimator):
    r"""The score-function estimator with a running and a learned baseline.

    Args:
        samples: The number of draws.
        baseline: The network :math:`C_\psi`, from contexts ``(*batch, features)`` to ``(*batch,)``
            or ``(*batch, 1)``; ``"mlp"`` (the default) makes a small one that takes its width from
            the first context, to which later ones are cut or filled up with zeros: use one NVIL for
            each latent layer; ``None`` leaves the running mean alone.
        normalise: Whether to divide by :math:`\max(1, \sigma)`: the paper does, which is biased.
        decay: How much of the running moments a call keeps.

    The network sees the ``context`` that :meth:`expect` is given, the data :math:`x` for example,
    or else the distribution's own mean.
    """

    mean: Tensor
    variance: Tensor
    calls: Tensor

    paper_name = "NVIL"
    learns = True
    vmaps = False
    year = 2014
    reference = "Mnih & Gregor, Neural Variational Inference and Learning in Belief Networks"

    def __init__(
        self,
        samples: int = 1,
        baseline: nn.Module | Literal["mlp"] | None = "mlp",
        normalise: bool = False,
        decay: float = 0.9,
    ) -> None:
        super().__init__(samples)
        if isinstance(baseline, str):
            if baseline != "mlp":
                raise ValueError(f"NVIL expects a module, 'mlp' or None, got {baseline!r}.")
            baseline = _Perceptron()
        if not 0 <= decay < 1:
            raise ValueError(f"NVIL expects a `decay` in [0, 1), got {decay!r}.")
        self.baseline, self.normalise, self.decay = baseline, normalise, decay
        self.unbiased = not normalise
        self.register_buffer("mean", torch.zeros(()))  # nn.Buffer is of torch 2.5
        self.register_buffer("variance", torch.zeros(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        if inside_transform():
            raise RuntimeError(
                "NVIL keeps running moments of the cost, which vmap and torch.func cannot; call it "
                "outside of them, or use RLOO."
            )
        z = factors.sample(self.samples)
        f = cost(z)  # (S, *batch)
        rest = f.detach()
        if self.baseline is not None:
            rest = rest - self._predict(self.baseline, factors)
        c, sigma = self.mean.to(f), self.variance.to(f).sqrt()
        signal = rest.detach() - c
        self._remember(rest.detach())
        scale = sigma.clamp(min=1) if self.normalise else 1
        score = signal / scale * factors.log_prob(z)
        result = attach(f.mean(0), score.mean(0))
        if self.baseline is None:
            return result
        return add_auxiliary_loss(result, (rest - c).square().mean(0))

    def _predict(self, baseline: nn.Module, factors: Factors) -> Tensor:
        batch, context = factors.batch, factors.context
        if context is None:
            context = factors.mean.reshape(*batch, prod((*factors.shape, *factors.event)))
        like = next(baseline.parameters(), context)
        predicted: Tensor = baseline(context.detach().to(like.device, like.dtype))
        if predicted.shape == (*batch, 1):
            predicted = predicted.squeeze(-1)
        if predicted.shape != batch:
            raise ValueError(
                f"NVIL: `baseline` must return one number per element of the batch {tuple(batch)} "
                f"for a context of shape {tuple(context.shape)}, "
                f"but returned shape {tuple(predicted.shape)}."
            )
        return predicted

    @torch.no_grad()
    def _remember(self, rest: Tensor) -> None:
        """Fold costs into the running moments: those of an exponentially weighted mixture."""
        if not rest.numel():
            return
        # the first calls weigh alike, so that the moments do not lean on their starting values
        weight = torch.clamp(1 / (self.calls + 1), min=1 - self.decay).to(self.mean)
        shift = rest.mean().to(self.mean) - self.mean
        spread = rest.var(correction=0).to(self.mean)
        # a cost that is NaN is refused later, and must not stay here
        weight = weight * (torch.isfinite(shift) & torch.isfinite(spread))
        shift, spread = shift.nan_to_num(0.0, 0.0, 0.0), spread.nan_to_num(0.0, 0.0, 0.0)
        self.variance += weight * (spread - self.variance + (1 - weight) * shift.square())
        self.mean += weight * shift
        self.calls += 1


class _Perceptron(nn.Module):
    """One hidden layer; lazy, so that an optimiser can have it before the first context is seen.

    All weights are drawn at the first call, so that whoever seeds before it repeats them.
    """

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.first: nn.Linear = nn.LazyLinear(hidden)
        self.last: nn.Linear = nn.LazyLinear(1)

    def forward(self, context: Tensor) -> Tensor:
        if not isinstance(self.first, nn.LazyLinear):
            context = pad(context, (0, self.first.in_features - context.shape[-1]))
        return self.last(self.first(context).tanh())
