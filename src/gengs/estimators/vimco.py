r"""The multi-sample bound and its score-function gradient (VIMCO).

The cost is read as a negative log-weight, :math:`f = -l` with
:math:`l(z) = \log p(x, z) - \log q(z)`, and the value is the *multi-sample* (IWAE) bound

.. math::
    -\hat L, \qquad \hat L = \log \frac1m \sum_{j} e^{l(z_j)},

which is tighter than the plain expectation that other estimators report: never compare the two
numbers. :meth:`VIMCO.bound` has its name; ``expect`` is the same, for models that take any
estimator. Its gradient :math:`\nabla E[\hat L]` is approximated with

.. math::
    \sum_i (\hat L - \hat L_{-i}) \nabla \log q(z_i) + \nabla \hat L,

where :math:`\hat L_{-i}` replaces :math:`l_i` by the mean of the others (their weights' geometric
mean), a baseline that does not know :math:`z_i`. The last term differentiates the log-weights
themselves: a decoder's parameters, and the distribution's where the log-weight contains them.

Unbiased for the gradient of that bound; asks nothing of the cost; needs two draws or more. Without
the baseline each draw would carry the whole :math:`\hat L`; with it, only what it contributes.

References:
    | Variational Inference for Monte Carlo Objectives (Mnih & Rezende, 2016),
    | https://arxiv.org/abs/1602.06725
"""

__all__ = ["VIMCO"]

from math import log

import torch
from torch import Tensor
from torch.distributions import Distribution

from .base import Estimator
from .checked_cost import Cost
from .factors import Factors
from .surrogate import attach


class VIMCO(Estimator):
    """The multi-sample bound, each draw with the others as its baseline.

    Args:
        samples: The number of draws in the bound, at least two.
    """

    paper_name = "VIMCO"
    objective = "multi-sample bound"
    year = 2016
    reference = "Mnih & Rezende, Variational Inference for Monte Carlo Objectives"

    def __init__(self, samples: int = 10) -> None:
        super().__init__(samples)
        if samples < 2:
            raise ValueError(
                f"VIMCO expects at least two `samples`, got {samples}: each draw's baseline is "
                "made of the others."
            )

    def bound(self, cost: Cost, q: Distribution, *, context: Tensor | None = None) -> Tensor:
        r"""The negative multi-sample bound of a cost that is a negative log-weight.

        Args:
            cost: From values to :math:`-\log p(x, z) + \log q(z)`, as for :meth:`Estimator.expect`.
            q: The distribution of the latent vector.
            context: Ignored.

        Example:
            >>> from torch.distributions import Poisson
            >>> q, p = Poisson(torch.tensor(2.0, requires_grad=True)), Poisson(3.0)
            >>> bound = VIMCO(10).bound(lambda z: q.log_prob(z) - p.log_prob(z), q)
            >>> bound.backward()
        """
        return super().expect(cost, q, context=context)

    def expect(self, cost: Cost, q: Distribution, *, context: Tensor | None = None) -> Tensor:
        """The multi-sample bound, :meth:`bound`: **not** the expectation of ``cost``.

        Under the name that estimators share, so that VIMCO can take the place of another one in a
        model whose cost is a negative log-weight.
        """
        return self.bound(cost, q, context=context)

    def _evaluate(self, cost: Cost, factors: Factors) -> Tensor:
        return -_log_mean_exp(-cost(factors.sample(self.samples)))

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        z = factors.sample(self.samples)
        log_weights = -cost(z)  # (S, *batch)
        bound = _log_mean_exp(log_weights)
        gain = bound.detach() - _bound_without_each(log_weights.detach())
        score = (gain * factors.log_prob(z)).sum(0)
        return attach(-bound, -score)


def _log_mean_exp(log_weights: Tensor) -> Tensor:
    return log_weights.logsumexp(0) - log(log_weights.shape[0])


def _bound_without_each(log_weights: Tensor) -> Tensor:
    """The bound with each log-weight in turn replaced by the mean of the others."""
    m = log_weights.shape[0]
    mean_of_others = (log_weights.sum(0) - log_weights) / (m - 1)
    # sums from both ends instead of "all but one": a subtraction would cancel when one dominates
    nothing = torch.full_like(log_weights[:1], -torch.inf)
    before = torch.cat([nothing, log_weights.logcumsumexp(0)[:-1]])
    after = torch.cat([log_weights.flip(0).logcumsumexp(0)[:-1].flip(0), nothing])
    others = torch.logaddexp(before, after)
    return torch.logaddexp(others, mean_of_others) - log(m)
