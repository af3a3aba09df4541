r"""Counts on a line: from every value one edge goes up, and one comes from below.

For a count with the CDF :math:`F`, raising a parameter moves :math:`S_k = -\partial_\theta F(k)` of
mass from :math:`k` to :math:`k + 1`, and exactly
:math:`\partial_\theta E f = \sum_k S_k (f(k + 1) - f(k))`. At the drawn :math:`z` the rates are

.. math::
    \mathrm{up} = \frac{S_z}{p(z)}, \qquad \mathrm{below} = \frac{S_{z-1}}{p(z)},

and a room states both for each parameter. The rest follows:

- **mid**: :math:`dz/d\theta = \tfrac12 (\mathrm{up} + \mathrm{below})`, which is
  :math:`-\partial_\theta F_\mathrm{mid}(z) / p(z)` with the mid-distribution function
  :math:`F_\mathrm{mid}(k) = \tfrac12 (F(k) + F(k - 1))`: implicit reparameterisation with the
  mid-CDF in the place of the CDF. It is the trapezoid rule
  :math:`f(k + 1) - f(k) \approx \tfrac12 (f'(k) + f'(k + 1))` on each edge, so the gradient is
  exact for every cost that is quadratic between neighbours, and off by third derivatives only
  otherwise;
- **differences**: :math:`\mathrm{up} \cdot (f(z + 1) - f(z))`, or, from the other end of the same
  edges, :math:`\mathrm{below} \cdot (f(z) - f(z - 1))`.

**Boundaries.** At p = 0, p = 1, λ = 0 or N = 0 the law is a single value, and one of the two rates
is 0/0: the other half of the slope belongs to draws that no longer happen. There it is taken equal
to the other, so that the draw moves by the whole one-sided slope of the mean (N in p, 1 in λ, p in
N). That is exact for linear costs; the one-sided derivative itself is a difference, such as
N (f(1) - f(0)).

**Second derivatives.** The rates are functions of the draw and the parameters, so they can be
differentiated again (for Poisson and a quadratic cost, even the second derivative is exact). A
table and a draw in stages cannot, and say so.

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572 (for Poisson, binomial, Bernoulli, geometric and ordered
    | categories the slope is their two-sided smoothed stochastic derivative)
    | Implicit Reparameterization Gradients (Figurnov et al., 2018),
    | https://arxiv.org/abs/1805.08498 (the continuous case)
"""

__all__ = ["Line", "Rate", "Rates"]

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from ..numerics.attach import Pull, attach_gradient
from ..numerics.tracing import any_of
from .law import Law

Rate = Callable[..., Tensor]
"""From the draw and all parameters to a rate per unit of one parameter."""
Rates = dict[str, tuple[Rate, Rate]]
"""For each parameter: the rate of going up, and that of being come to from below."""


class Line(Law):
    """The record of a count whose edges have closed forms."""

    @property
    @abstractmethod
    def rates(self) -> Rates:
        """The rates of the edges, for each parameter by its name in the distribution."""

    measured: tuple[str, ...] | None = None
    """The parameters that differences of the cost are taken in; all by default."""

    def down(self) -> Tensor | None:
        """Where differences are taken downwards, as no small number divides there."""
        return None

    @property
    def parameters(self) -> list[Tensor]:
        return [getattr(self.q, name) for name in self.rates]

    def attach(self, z: Tensor) -> Tensor:
        pulls = [_mid(up, below) for up, below in self.rates.values()]
        return attach_gradient(pulls, z, *self.parameters)

    def quantile(self, u: Tensor) -> Tensor:
        """The smallest counts with ``P(X <= k) >= u``, ``(*shape, *batch)``, by bisection."""
        with torch.no_grad():
            target = u.log().unsqueeze(-1)  # (*shape, *batch, 1)
            centre, spread = self.centre_and_spread()
            reach = 10 * spread + 20
            low, high = (centre - reach).expand_as(target), (centre + reach).expand_as(target)
            for _ in range(16):  # far enough for the heaviest tails: without a host sync
                reach = 2 * reach
                low = torch.where(self.log_at_most(low) >= target, low - reach, low)
                high = torch.where(self.log_at_most(high) < target, high + reach, high)
            if self.lower is not None:
                low = low.clamp_min(self.lower - 1.0)
            if self.upper is not None:
                high = high.minimum(self.upper.to(high))
            for _ in range(64):
                middle = ((low + high) / 2).floor()
                enough = self.log_at_most(middle) >= target
                low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
            return high.squeeze(-1).to(self.like.dtype)

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        if validate and any_of(z == z + 1):
            raise ValueError(
                f"{z.dtype} cannot tell a count of {z.max().item():.3g} from the next one; "
                "use float64 parameters."
            )
        fixed, down = [parameter.detach() for parameter in self.parameters], self.down()
        there = z + 1 if down is None else torch.where(down, z - 1, z + 1)
        if self.lower is not None:
            there = there.clamp_min(self.lower)
        if self.upper is not None:
            there = there.minimum(self.upper.squeeze(-1).to(there))
        weight = torch.zeros_like(z)
        for (name, (up, below)), parameter in zip(self.rates.items(), self.parameters, strict=True):
            if self.measured is None or name in self.measured:
                rate = up(z, *fixed)
                if down is not None:
                    rate = torch.where(down, -below(z, *fixed), rate)
                weight = weight + parameter * rate
        return there, weight


def _mid(up: Rate, below: Rate) -> Pull:
    def pull(g: Tensor, z: Tensor, *parameters: Tensor) -> Tensor:
        return g * ((up(z, *parameters) + below(z, *parameters)) / 2)

    return pull
