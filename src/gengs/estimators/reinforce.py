r"""The score-function estimator (REINFORCE), and its leave-one-out form.

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)] = E_{z \sim q_\theta}[f(z) \nabla \log
q_\theta(z)]` (eq. (1) of the GenGS paper) with

.. math::
    \text{RF:}\quad \frac1m \sum_i f(z_i) \nabla \log q(z_i), \qquad
    \text{RF*:}\quad \frac1m \sum_i \Big(f(z_i) - \frac{1}{m-1} \sum_{j \ne i} f(z_j)\Big)
    \nabla \log q(z_i).

Both are unbiased and ask nothing of the cost. RF's variance grows with the *size* of the cost,
RF*'s only with its spread: the cost of the other draws, independent of :math:`z_i`, is subtracted.

References:
    | Simple Statistical Gradient-Following Algorithms (Williams, 1992)
    | Buy 4 REINFORCE Samples, Get a Baseline for Free! (Kool et al., 2019),
    | https://openreview.net/forum?id=r1lgTGL5DE
"""

__all__ = ["REINFORCE", "RLOO"]

from torch import Tensor

from .base import Estimator, positive_integer
from .checked_cost import Cost
from .factors import Factors
from .surrogate import attach


class REINFORCE(Estimator):
    """The plain score-function estimator.

    Args:
        samples: The number of draws.
    """

    paper_name = "RF"
    year = 1992
    reference = "Williams, Simple Statistical Gradient-Following Algorithms"

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        z = factors.sample(self.samples)
        f = cost(z)  # (S, *batch)
        score = f.detach() * factors.log_prob(z)
        return attach(f.mean(0), score.mean(0))


class RLOO(Estimator):
    """The score-function estimator with the other draws' mean as baseline.

    Args:
        samples: The number of draws, at least two: each has the others as its baseline.
    """

    paper_name = "RF*"
    year = 2019
    reference = "Kool et al., Buy 4 REINFORCE Samples, Get a Baseline for Free!"

    def __init__(self, samples: int = 2) -> None:
        super().__init__(positive_integer("RLOO", "samples", samples, least=2))

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        z = factors.sample(self.samples)
        f = cost(z)
        others = (f.sum(0) - f).detach() / (self.samples - 1)
        score = (f.detach() - others) * factors.log_prob(z)
        return attach(f.mean(0), score.mean(0))
