r"""The unordered set estimator: draws without replacement, each with its right weight (UnOrd).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]`, for a set :math:`S` of :math:`k`
joint outcomes :math:`s` drawn without replacement, with

.. math::
    \sum_{s \in S} q_s R(S, s) \Big[ f_s -
    \sum_{s' \in S} q_{s'} R^{D \setminus s}(S, s') f_{s'} \Big] \nabla \log q_s

where :math:`R(S, s) = P(S \mid s \text{ first}) / P(S)` and :math:`R^{D \setminus s}` is the same
in the domain without :math:`s` (1 for :math:`s' = s`). It is the average of simpler estimators over
every order in which :math:`S` may have been drawn. The weights :math:`q_s R(S, s)` sum to one; the
inner sum is a baseline built in. It is unbiased, asks nothing of the cost, and without its baseline
has never more variance than StoRB, of which it is the conditional mean given :math:`S`; it is exact
once :math:`S` holds every outcome.

How likely a set is follows from a race: outcome :math:`s` arrives at rate :math:`q_s`, and
:math:`S` is drawn if all of it comes before the first other outcome (rate :math:`\rho = 1 - \sum_S
q_s`). So with :math:`r_s = q_s / \rho`

.. math::
    I(A) = \int_0^\infty e^{-t} \prod_{s \in A} (1 - e^{-r_s t})\, dt, \qquad
    R(S, s) = \frac{I(S \setminus s)}{I(S)}, \quad
    R^{D \setminus s}(S, s') = \frac{I(S \setminus \{s, s'\})}{I(S \setminus s)}.

In :math:`\log t` the trapezoid rule converges exponentially: 130 points for :math:`k = 10`, the
same for all sets, give nine digits, and the pairs :math:`s, s'` are one matrix product. In
logarithms it serves probabilities of :math:`e^{-1000}`. A distribution with infinitely many values
is truncated first (1e-6 of the mass).

References:
    | Estimating Gradients for Discrete Random Variables by Sampling without Replacement
    | (Kool et al., 2020), https://arxiv.org/abs/2002.06043
"""

__all__ = ["UnOrd", "unordered_weights"]

import math

import torch
from torch import Tensor

from .base import Estimator, positive_integer
from .checked_cost import Cost
from .factors import Factors
from .surrogate import attach
from .without_replacement import sample_without_replacement


class UnOrd(Estimator):
    """The unordered set estimator.

    Args:
        samples: How many joint outcomes are drawn without replacement and evaluated, k above.
        baseline: Subtract the built-in baseline, which compares draws: at least two are needed.
    """

    paper_name = "UnOrd"
    needs = "any distribution, as a table of atoms"
    always_shown = ("samples",)
    year = 2020
    reference = "Kool et al., Estimating Gradients by Sampling without Replacement"

    def __init__(self, samples: int = 4, baseline: bool = True) -> None:
        super().__init__(positive_integer("UnOrd", "samples", samples, least=1 + bool(baseline)))
        self.baseline = baseline

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        law = factors.finite
        table = law.logits.reshape(*factors.batch, factors.shape.numel(), law.num_atoms)
        drawn = sample_without_replacement(table, self.samples)
        index = drawn.index.reshape(len(drawn.index), *law.batch_shape)
        f = cost(law.at(index))  # (k, *batch)
        log_q = drawn.log_prob.detach().masked_fill(~drawn.possible, -torch.inf)
        # fewer outcomes than asked for: these are all there are, and nothing is left
        complete = (
            ~drawn.possible.all(0) if len(f) == self.samples else torch.ones_like(f[0]).bool()
        )
        weight, others = unordered_weights(log_q.movedim(0, -1), complete)
        weight = weight.movedim(-1, 0).to(f.dtype)
        # far below rounding, and subnormal numbers would slow a network's backward pass 50 times
        weight = weight.masked_fill(weight < torch.finfo(weight.dtype).eps ** 3, 0.0)
        centred = f.detach()
        if self.baseline:
            f_last = centred.movedim(0, -1).unsqueeze(-1)  # (*batch, k, 1)
            centred = centred - (others.to(f.dtype) @ f_last).squeeze(-1).movedim(-1, 0)
        surrogate = (weight * centred * drawn.log_prob).sum(0)
        return attach((weight * f).sum(0), surrogate)


def unordered_weights(log_q: Tensor, complete: Tensor) -> tuple[Tensor, Tensor]:
    r"""The weights :math:`q_s R(S, s)` and :math:`q_{s'} R^{D \setminus s}(S, s')`.

    Args:
        log_q: Log-probabilities of the drawn outcomes, ``(*batch, k)``; ``-inf`` fills up.
        complete: Whether the set holds every possible outcome, ``(*batch)``.

    Returns:
        Tensors of shape ``(*batch, k)`` and ``(*batch, k, k)`` (rows ``s``, columns ``s'``) in
        ``float64``, whose rows sum to one.
    """
    k = log_q.shape[-1]
    log_q = log_q.double()
    rest = (-torch.expm1(log_q.logsumexp(-1))).clamp_min(0).masked_fill(complete, 0.0)
    log_t, log_dt = _nodes(k, log_q.device)  # (N,)
    log_rate = (log_q - rest.log().unsqueeze(-1)).where(log_q > -torch.inf, torch.inf)
    log_term = _log_arrived(log_rate.unsqueeze(-1) + log_t)  # (*batch, k, N)
    log_scale = log_term[..., -1:]  # its largest value, so that the ratios below stay in range
    whole = log_term.sum(-2, keepdim=True) + log_dt  # the integrand of I(S) at the nodes
    whole = (whole - whole.amax(-1, keepdim=True)).exp()
    without = (log_scale - log_term).exp()  # dropping s from the product
    less_one = without * whole
    less_two = less_one @ without.mT  # (*batch, k, k)
    log_less_one = less_one.sum(-1).log()
    log_share = log_q - log_scale.squeeze(-1)
    weight = (log_share + log_less_one - whole.sum(-1).log()).exp()
    others = (log_share.unsqueeze(-2) + less_two.log() - log_less_one.unsqueeze(-1)).exp()
    itself = torch.eye(k, dtype=torch.bool, device=log_q.device)
    return weight, torch.where(itself, log_q.exp().unsqueeze(-1), others)


def _nodes(k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Logarithms of the points of the trapezoid rule, and of their weights with ``exp(-t)``."""
    # The product grows with t, so the part of I(A) below t is at most t: start at 1e-10. At the
    # other end the integrand is below t^k exp(-t), a bump of width 1/sqrt(k).
    step = min(0.25, 0.66 / math.sqrt(k))
    first, last = math.log(1e-10), math.log(4.0 * k + 40)
    log_t = torch.arange(first, last, step, dtype=torch.float64, device=device)
    return log_t, math.log(step) + log_t - log_t.exp()


def _log_arrived(log_rt: Tensor) -> Tensor:
    """``log(1 - exp(-rt))`` from ``log(rt)``, also where ``rt`` itself underflows."""
    return torch.where(log_rt < -30, log_rt, (-torch.expm1(-log_rt.exp())).log())
