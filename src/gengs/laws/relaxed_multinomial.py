r"""The multinomial relaxed as a chain of conditional binomials, for any number of balls and boxes.

.. math::
    z_j \mid z_{<j} \sim \mathrm{Bin}\Big(r_j, \frac{p_j}{\sum_{i \ge j} p_i}\Big), \qquad
    r_j = N - \sum_{i < j} z_i

Each link is a law on the atoms :math:`\min(k, r_j)`, relaxed as usual. A relaxed link leaves a
remainder :math:`r_j` that is no integer; the binomial coefficient continues there as
:math:`\Gamma(r + 1) / (\Gamma(k + 1) \Gamma(r - k + 1))`, positive for :math:`k < r + 1` and exact
at integers. So the counts always sum to :math:`N` and never fall below zero.
"""

__all__ = ["RelaxedMultinomial", "SameLaw"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Multinomial, constraints
from torch.types import _size

from ..tables.finite import Finite
from ..numerics.gumbel_softmax import Temperature, check_temperature, relaxed_value
from .multinomial import multinomial_probs
from ..numerics.tails import log1mexp, times
from ..numerics.tracing import require_memory, set_shapes, validates


class SameLaw(Distribution):
    """A law that is another one, ``law``, in all but the gradient of its draws."""

    def __init__(self, temperature: Temperature, law: Any, validate_args: bool | None) -> None:
        self.temperature, self.law = temperature, law
        set_shapes(self, law.batch_shape, law.event_shape, validates(validate_args))

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self.law.sample(torch.Size(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self.law.log_prob(value)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Any:
        return type(self)(self.temperature, self.law.expand(batch_shape), self._validate_args)

    @property
    def mean(self) -> Tensor:
        return self.law.mean

    @property
    def variance(self) -> Tensor:
        return self.law.variance

    def __repr__(self) -> str:
        return f"{type(self).__name__}(temperature: {self.temperature}, law: {self.law})"


class RelaxedMultinomial(SameLaw):
    """A multinomial whose ``rsample_value`` relaxes it box by box; cost linear in N and m.

    ``sample`` and ``log_prob`` are those of the multinomial itself.

    Args:
        temperature: Of every link of the chain.
        law: The multinomial.
        validate_args: Whether to check the arguments; on by default.
    """

    arg_constraints = {"temperature": constraints.positive}

    def __init__(
        self, temperature: Temperature, law: Multinomial, validate_args: bool | None = None
    ) -> None:
        if not isinstance(law, Multinomial):
            raise TypeError(f"RelaxedMultinomial expects a Multinomial, but got {law}.")
        check_temperature(temperature)
        if isinstance(temperature, Tensor):
            law = law.expand(torch.broadcast_shapes(law.batch_shape, temperature.shape))
        super().__init__(temperature, law, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Counts with the right sum."""
        return self.law.support

    def rsample_value(
        self,
        sample_shape: _size = torch.Size(),
        *,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Counts that sum to N, ``(*sample, *batch, m)``; integers where ``hard``."""
        total = self.law.total_count
        _, log_p = multinomial_probs(self.law)
        # log of p_j / (p_j + ... + p_m), the chance of box j among those still open; impossible
        # boxes are merely very unlikely in the sum, as -inf would send NaN back
        possible = log_p > -torch.inf
        finite = log_p.where(possible, torch.finfo(log_p.dtype).min / 2)
        open_mass = finite.flip(-1).logcumsumexp(-1).flip(-1)
        chance = (finite - open_mass).clamp_max(0).where(possible, -torch.inf)
        shape = torch.Size(sample_shape) + self.law.batch_shape
        require_memory(shape, total + 1, torch.float64, log_p.device)
        rest = log_p.new_full(shape, float(total))
        counts = []
        for j in range(self.law.event_shape[-1] - 1):
            link = _continued_binomial(rest, total, chance[..., j].expand(shape))
            drawn = relaxed_value(link, self.temperature, hard=hard, generator=generator)
            counts.append(drawn)
            rest = (rest - drawn).clamp_min(0)
        return torch.stack([*counts, rest], -1)


def _continued_binomial(rest: Tensor, total: int, log_p: Tensor) -> Finite:
    """The binomial with a remainder ``rest`` that may be fractional, on the atoms min(k, rest)."""
    k = torch.arange(total + 1, device=rest.device, dtype=torch.float64)
    r = rest.unsqueeze(-1).double()  # log-gammas of large counts cancel in float32
    possible = k < r + 1
    left = (r - k).where(possible, 0.0)
    choose = torch.lgamma(r + 1) - torch.lgamma(k + 1) - torch.lgamma(left + 1)
    log_p = log_p.unsqueeze(-1).double()
    surely = log_p >= 0
    log_1mp = log1mexp(log_p.where(~surely, -1.0)).where(~surely, -torch.inf)
    log_p = log_p.expand_as(choose)
    logits = choose + times(k, log_p) + times(left.clamp_min(0), log_1mp.expand_as(choose))
    logits = logits.where(possible, -torch.inf).to(rest.dtype)
    return Finite(k.minimum(r).to(rest.dtype), logits=logits, validate_args=False)
