r"""The multinomial relaxed as a chain of conditional binomials, for any number of balls and boxes.

.. math::
    z_j \mid z_{<j} \sim \mathrm{Bin}\Big(r_j, \frac{p_j}{\sum_{i \ge j} p_i}\Big), \qquad
    r_j = N - \sum_{i < j} z_i

Each link is a law on the atoms :math:`\min(k, r_j)`, relaxed as usual. A relaxed link leaves a
remainder :math:`r_j` that is no integer; the binomial coefficient continues there as
:math:`\Gamma(r + 1) / (\Gamma(k + 1) \Gamma(r - k + 1))`, positive for :math:`k < r + 1` and exact
at integers. So the counts always sum to :math:`N` and never fall below zero.
"""

__all__ = ["relax_multinomial"]

import torch
from torch import Tensor

from ..numerics.gumbel_softmax import Temperature, check_temperature, relaxed_value
from ..numerics.tails import log1mexp, times
from ..numerics.tracing import require_memory
from ..tables.finite import Finite


def relax_multinomial(
    log_p: Tensor,
    total: int,
    temperature: Temperature,
    shape: torch.Size,
    hard: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Counts that sum to ``total``, ``(*shape, *batch, m)``; integers where ``hard``.

    Args:
        log_p: Log-probabilities of the boxes, ``(*batch, m)``.
        total: The number of balls.
        temperature: Of every link of the chain; a tensor broadcasts with the batch.
        shape: The sample shape.
        hard: Straight-through: integers, with the gradient of the relaxed counts.
        generator: Where the noise comes from.
    """
    check_temperature(temperature)
    if isinstance(temperature, Tensor):
        batch = torch.broadcast_shapes(log_p.shape[:-1], temperature.shape)
        log_p = log_p.expand(*batch, log_p.shape[-1])
    # log of p_j / (p_j + ... + p_m), the chance of box j among those still open; impossible
    # boxes are merely very unlikely in the sum, as -inf would send NaN back
    possible = log_p > -torch.inf
    finite = log_p.where(possible, torch.finfo(log_p.dtype).min / 2)
    open_mass = finite.flip(-1).logcumsumexp(-1).flip(-1)
    chance = (finite - open_mass).clamp_max(0).where(possible, -torch.inf)
    full = shape + log_p.shape[:-1]
    require_memory(full, total + 1, torch.float64, log_p.device)
    rest = log_p.new_full(full, float(total))
    counts = []
    for j in range(log_p.shape[-1] - 1):
        link = _continued_binomial(rest, total, chance[..., j].expand(full))
        drawn = relaxed_value(link, temperature, hard=hard, generator=generator)
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
