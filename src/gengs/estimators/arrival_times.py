r"""A Poisson count as arrivals within a unit of time, softly counted (EAT).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]`, for Poisson factors of rate
:math:`\lambda`, with the pathwise gradient of

.. math::
    z = \sum_i s\Big(\frac{1 - t_i}{2 \tau} + \frac12\Big), \qquad
    t_i = \frac1\lambda \sum_{j \le i} E_j, \qquad E_j \sim \mathrm{Exp}(1)

where :math:`s` is a soft step from 0 to 1:

- ``kind="cubic"``: :math:`s(u) = 3 u^2 - 2 u^3`, clipped to [0, 1]. Arrivals before
  :math:`1 - \tau` count fully, those after :math:`1 + \tau` not at all, and for :math:`\tau \le 1`
  the mean of :math:`z` is exactly :math:`\lambda`: linear costs have no bias;
- ``kind="sigmoid"``: the logistic function of :math:`(1 - t_i) / \tau`; its mean is too large, by
  :math:`\lambda \tau \log(1 + e^{-1/\tau})`.

As :math:`\tau \to 0` the count becomes exact. There is no table of atoms; the number of arrivals
that are drawn follows from the largest rate, with a chance below 1e-8 to miss one. It needs a cost
that is differentiable, and defined between the integers. It is biased: like GenGS it differentiates
a relaxed expectation; its variance grows as :math:`\tau` falls.

References:
    | Poisson Variational Autoencoder (Vafaii et al., 2024), https://arxiv.org/abs/2405.14473
    | A Hitchhiker's Guide to Poisson Gradient Estimation (Ibrahim et al., 2026),
    | https://arxiv.org/abs/2602.03896 (the cubic step)
"""

from __future__ import annotations

__all__ = ["ArrivalTimes"]

import math
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Poisson

from ..distributions.finite import Finite
from ..distributions.gumbel import log_exponential
from ..distributions.memory import require_memory
from ..distributions.relaxed import check_temperature
from ..distributions.temperature import Schedule
from .base import CheckedCost, Estimator
from .latents import Latents


class ArrivalTimes(Estimator):
    """The pathwise gradient of a soft count of arrivals; for Poisson factors.

    Args:
        temperature: Half the width of the soft step; at most 1 keeps the cubic's mean exact. A
            number, or a :class:`~gengs.temperature.Schedule`, read at each call.
        kind: The soft step, ``"cubic"`` or ``"sigmoid"``.
        samples: The number of draws.
    """

    paper_name = "EAT"
    unbiased = False
    needs_cost_gradient = True
    needs = "Poisson"
    year = 2024
    reference = "Vafaii et al., Poisson Variational Autoencoder"

    def __init__(
        self,
        temperature: float | Schedule = 0.5,
        kind: Literal["cubic", "sigmoid"] = "cubic",
        samples: int = 1,
    ) -> None:
        super().__init__(samples)
        if not isinstance(temperature, Schedule):
            check_temperature(temperature)
        if kind not in ("cubic", "sigmoid"):
            raise ValueError(f"ArrivalTimes expects `kind` 'cubic' or 'sigmoid', got {kind!r}.")
        self.temperature, self.kind = temperature, kind

    def _estimate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        law = latents.law
        if not isinstance(law, Poisson):
            kind = "a law on finitely many atoms" if isinstance(law, Finite) else type(law).__name__
            raise TypeError(
                f"ArrivalTimes counts the arrivals of a Poisson law, but `q` is {kind}; pass "
                "torch's Poisson as it is, not truncated, or use GenGS, MidCDF or ReinMax."
            )
        tau = self.temperature
        tau = tau.value if isinstance(tau, Schedule) else tau
        f = cost.along(self._count(law.rate, tau))
        return f.mean(0)

    def _count(self, rate: Tensor, tau: float) -> Tensor:
        """Soft counts, ``(S, *rate.shape)``, in ``float32`` or wider inside."""
        wide = rate.to(torch.promote_types(rate.dtype, torch.float32))
        # past this time an arrival counts as nothing (cubic), or as 1e-8 (sigmoid)
        horizon = 1 + tau * (1 if self.kind == "cubic" else 18)
        most = float(wide.detach().max()) * horizon if wide.numel() else 0.0
        arrivals = math.ceil(most + 6 * math.sqrt(most) + 12)
        shape = torch.Size((self.samples, *wide.shape, arrivals))
        require_memory(shape[:-1], arrivals, wide.dtype, wide.device)
        waits = log_exponential(shape, wide.dtype, wide.device).exp_()
        # a rate of zero waits for ever, without the 0 · inf of 1/0
        times = waits.cumsum_(-1) / wide.clamp_min(1e-12).unsqueeze(-1)
        if self.kind == "sigmoid":
            return torch.sigmoid((1 - times) / tau).sum(-1).to(rate.dtype)
        u = ((1 - times) / (2 * tau) + 0.5).clamp(0, 1)
        return (u * u * (3 - 2 * u)).sum(-1).to(rate.dtype)

    def extra_repr(self) -> str:
        shown = f"temperature={self.temperature}, kind={self.kind!r}"
        return ", ".join(filter(None, [shown, super().extra_repr()]))
