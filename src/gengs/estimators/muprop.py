r"""The score-function estimator around a Taylor expansion of the cost (MuProp).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math::
    \frac1m \sum_i \big(f(z_i) - f(\mu) - f'(\mu)^\top (z_i - \mu)\big) \nabla \log q(z_i)
    + f'(\mu)^\top \nabla \mu, \qquad \mu = E_q[z].

The cost's tangent at the mean is taken out of the score term, where it is noise, and put back with
its exact gradient. The estimator is unbiased, and needs a cost that is differentiable and defined
between the atoms (at :math:`\mu`). It removes the variance that a linear cost has; what remains is
that of the cost's curvature, as weighed by the score. One more evaluation of the cost, and one of
its gradient, whatever the number of draws.

References:
    | MuProp: Unbiased Backpropagation for Stochastic Neural Networks (Gu et al., 2016),
    | https://arxiv.org/abs/1511.05176
"""

__all__ = ["MuProp"]

from torch import Tensor

from .base import Estimator
from .checked_cost import CheckedCost
from .factors import Factors
from .surrogate import attach


class MuProp(Estimator):
    """The score-function estimator of what the cost's tangent at the mean leaves over.

    Args:
        samples: The number of draws.
    """

    paper_name = "MuProp"
    needs_cost_gradient = True
    one_sided = True
    needs = "any distribution with log_prob and a mean"
    year = 2016
    reference = "Gu et al., MuProp: Unbiased Backpropagation for Stochastic Neural Networks"

    @property
    def evaluations(self) -> int:
        return self.samples + 1

    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        factors.refuse_learned_atoms()
        z = factors.sample(self.samples)
        f = cost(z)  # (S, *batch)
        mu = factors.mean
        f_mu, slope = (x.detach() for x in cost.gradient(mu.detach().unsqueeze(0)))

        def along_slope(values: Tensor) -> Tensor:  # over factors and the dimensions of an atom
            return (slope * values).unsqueeze(-1).flatten(1 + len(factors.batch)).sum(-1)

        score = (f.detach() - f_mu - along_slope(z - mu.detach())) * factors.log_prob(z)
        return attach(f.mean(0), (score + along_slope(mu)).mean(0))
