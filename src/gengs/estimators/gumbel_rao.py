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

References:
    | Rao-Blackwellizing the Straight-Through Gumbel-Softmax Gradient Estimator
    | (Paulus et al., 2021), https://arxiv.org/abs/2010.04838
    | REBAR (Tucker et al., 2017), https://arxiv.org/abs/1703.07370, appendix C (conditional noise)
"""

__all__ = ["GumbelRao", "conditional_gumbel"]

import torch
from torch import Tensor

from ..numerics.gumbel import log_exponential
from ..numerics.gumbel_softmax import check_temperature, soften
from .base import Pathwise, attach, positive_integer
from .factors import Factors
from .temperature import Schedule, temperature_now


class GumbelRao(Pathwise):
    """Straight-through Gumbel-softmax, averaged over the noise that leads to the same draw.

    Args:
        temperature: A number, or a :class:`~gengs.temperature.Schedule`, read at each call.
        inner: How many times the noise is drawn for each draw of the atoms.
        samples: The number of draws of the atoms.
    """

    paper_name = "Gumbel-Rao"
    needs = "any law, as a table of atoms"
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
        with torch.no_grad():
            repeated = winner.expand(self.inner, *winner.shape)
            perturbed = conditional_gumbel(law.logits, repeated)  # (K, S, *batch, *factors, n)
        # the perturbed logits, whose noise stays fixed: their derivative is that of the logits
        possible = law.logits > -torch.inf
        perturbed = attach(perturbed, law.logits.where(possible, 0.0))
        relaxed = law.mix(soften(perturbed, tau).mean(0), fixed_atoms=True)
        return attach(law.at(winner), relaxed)


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
