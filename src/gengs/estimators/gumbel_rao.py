r"""Straight-through Gumbel-softmax with its noise averaged out (Gumbel-Rao).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math::
    f'(z)^\top \frac1K \sum_{j=1}^K \nabla_\theta
    \mathcal{T}\big(\mathrm{softmax}((\log \pi_\theta + g_j) / \tau)\big), \qquad
    g_j \sim p(g \mid \arg\max_k(\log \pi_k + g_k) = z)

where :math:`z` is an exact draw, the only one the cost sees: Gumbel noise is drawn anew
:math:`K` times (``inner``) *given* the atom that won, and held fixed when differentiating. The mean
is that of straight-through Gumbel-softmax (``GenGS(hard=True)``), and so is the bias; the variance
is never larger, for one evaluation of the cost, whatever :math:`K`. That allows lower temperatures,
and so less bias. The cost must be differentiable.

The noise is needed on the way back only, as the cost sees nothing of it. It is drawn there, a few
rows of the table at a time: nothing of the size of K tables is ever kept. (A graph that is gone
back through twice has new noise the second time.) Given the winner,

.. math::
    w_i \propto (1 + r_i)^{-1/\tau}, \qquad r_i = \frac{E_i}{\pi_i E_b}, \qquad r_b = 0,

with :math:`E \sim \mathrm{Exp}(1)`: all weights lie between 0 and 1. The K draws share one random
number per atom, turned by 1/K of a circle from one to the next: each draw is exact, and together
they are stratified. On a CPU random bits are most of the cost.

References:
    | Rao-Blackwellizing the Straight-Through Gumbel-Softmax Gradient Estimator
    | (Paulus et al., 2021), https://arxiv.org/abs/2010.04838
    | REBAR (Tucker et al., 2017), https://arxiv.org/abs/1703.07370, appendix C (conditional noise)
    | Randomization of Number Theoretic Methods for Multiple Integration
    | (Cranley & Patterson, 1976), https://doi.org/10.1137/0713071 (turned uniforms)
"""

__all__ = ["GumbelRao", "conditional_gumbel"]

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from ..numerics.gumbel import log_exponential
from ..numerics.gumbel_softmax import check_temperature, soften
from ..numerics.tracing import is_eager
from .base import Pathwise, positive_integer
from .factors import Factors
from .surrogate import attach
from .temperature import Schedule, temperature_now


class GumbelRao(Pathwise):
    """Straight-through Gumbel-softmax, averaged over the noise that leads to the same draw.

    Args:
        temperature: A number, or a :class:`~gengs.temperature.Schedule`, read at each call.
        inner: How many times the noise is drawn for each draw of the atoms.
        samples: The number of draws of the atoms.
    """

    paper_name = "Gumbel-Rao"
    needs = "any distribution, as a table of atoms"
    year = 2021
    always_shown = ("temperature", "inner")
    reference = "Paulus et al., Rao-Blackwellizing the Straight-Through Gumbel-Softmax"

    def __init__(
        self, temperature: float | Schedule = 0.5, inner: int = 10, samples: int = 1
    ) -> None:
        super().__init__(samples)
        check_temperature(temperature_now(temperature))
        self.temperature = temperature
        self.inner = positive_integer(type(self).__name__, "inner", inner)

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        tau, law = temperature_now(self.temperature), factors.finite
        winner = law.sample_index(shape)  # (S, *batch, *factors)
        if isinstance(tau, float) and is_eager(law.logits):
            weights: Tensor = _Averaged.apply(law.logits, winner, tau, self.inner)
        else:
            weights = self._weights(law.logits, winner, tau)
        return attach(law.at(winner), law.mix(weights, fixed_atoms=True), law.logits)

    def _weights(self, logits: Tensor, winner: Tensor, tau: float | Tensor) -> Tensor:
        """The same by torch's own operations, for ``vmap`` and ``torch.compile``."""
        with torch.no_grad():
            repeated = winner.expand(self.inner, *winner.shape)
            perturbed = conditional_gumbel(logits, repeated)  # (K, S, *batch, *factors, n)
        # the perturbed logits, whose noise stays fixed: their derivative is that of the logits
        possible = logits.where(logits > -torch.inf, 0.0)
        perturbed = perturbed + (possible - possible.detach())
        return soften(perturbed, tau).mean(0)


class _Averaged(torch.autograd.Function):
    """Weights whose gradient is averaged over noise that is drawn on the way back.

    Their values are zeros: an exact draw takes their place.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, winner: Tensor, tau: float, inner: int) -> Tensor:
        ctx.save_for_backward(logits, winner)
        ctx.settings = tau, inner
        return logits.new_zeros(()).expand(*winner.shape, logits.shape[-1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, winner = ctx.saved_tensors
        tau, inner = ctx.settings
        n = logits.shape[-1]
        table = logits.expand_as(grad).reshape(-1, n)
        few = max(1, (_ON_CPU if grad.device.type == "cpu" else _ON_DEVICE) // n)
        parts = (x.split(few) for x in (grad.reshape(-1, n), table, winner.reshape(-1, 1)))
        pulled = []
        for g, log_p, won in zip(*parts, strict=True):
            total = torch.zeros_like(g)
            for weights in _given_winner(log_p.detach(), won, tau, inner):
                mass = weights.sum(-1, keepdim=True)
                mean = torch.linalg.vecdot(weights, g).unsqueeze(-1) / mass
                total.add_(torch.sub(g, mean).mul_(weights).div_(mass))
            pulled.append(total / (tau * inner))
        gradient = torch.cat(pulled).view_as(grad) if pulled else torch.zeros_like(grad)
        return gradient.sum_to_size(logits.shape), None, None, None


_ON_CPU, _ON_DEVICE = 2**16, 2**24
"""How many numbers are worked on at a time: what a core's cache holds; what fills a device."""

_LEAST = 1e-26
"""Weights below round away in sums, and as subnormal numbers would be slow: they become 0."""


def _given_winner(logits: Tensor, winner: Tensor, tau: float, inner: int) -> Iterator[Tensor]:
    """Unnormalised weights ``(rows, n)``, 1 for the winner, ``inner`` times."""
    first = torch.empty_like(logits[:, :1]).expand(-1, inner).contiguous()
    scale = -1 / first.exponential_()  # (rows, inner)
    rarity = (-logits).exp()
    bits = 31 if logits.dtype == torch.float32 else 62
    words = torch.empty(-(-logits.numel() * bits // 62), dtype=torch.int64, device=logits.device)
    words.random_(-(2**63), None)
    random = words.view(torch.int32) if bits == 31 else words
    random = random[: logits.numel()].view_as(logits)
    # centred in its cell, and just under 1 after rounding
    step = -(2.0**-bits) * (1 - torch.finfo(logits.dtype).eps / 2)
    for j in range(inner):
        turned = random.add(j * 2**bits // inner).bitwise_and_(2**bits - 1)
        r = turned.to(logits.dtype).add_(0.5).mul_(step).log1p_()
        r.mul_(rarity).mul_(scale[:, j : j + 1])
        if tau in (0.5, 1.0):  # without a logarithm
            weights = r.add_(1.0).pow_(-1 / tau)
        else:
            weights = r.log1p_().mul_(-1 / tau).exp_()
        threshold(weights, _LEAST, 0.0, inplace=True)
        yield weights.scatter_(-1, winner, 1.0)


def conditional_gumbel(logits: Tensor, winner: Tensor) -> Tensor:
    r"""Perturbed logits given their winner, :math:`\tilde z \sim p(z \mid \arg\max z = b)`.

    .. math::
        \tilde z_b = -\log E_b, \qquad
        \tilde z_i = -\log(E_i / \pi_i + E_b), \quad i \ne b

    The logits ``(*batch, n)`` are normalised, the winners are indices ``(*sample, *batch)``.
    """
    n = logits.shape[-1]
    shape = torch.Size((*winner.shape, n))
    log_e = log_exponential(shape, logits.dtype, logits.device)
    index = winner.unsqueeze(-1)
    log_e_winner = log_e.gather(-1, index)
    # an impossible atom (logit -inf) gets -inf by the formula; masked so that no NaN flows back
    possible = torch.isfinite(logits)
    others = -torch.logaddexp(log_e - logits.where(possible, 0.0), log_e_winner)
    others = others.where(possible, -torch.inf)
    is_winner = torch.arange(n, device=logits.device) == index
    return (-log_e_winner).where(is_winner, others)
