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

__all__ = ["ArrivalTimes"]

import math
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ..laws.law import law_of
from ..numerics.gumbel import log_exponential
from ..numerics.gumbel_softmax import check_temperature
from ..numerics.tails import widen
from ..numerics.tracing import inside_transform, inspectable, require_finite, require_memory
from ..tables.finite import Finite
from .base import Pathwise, positive_integer
from .factors import Factors
from .temperature import Schedule, temperature_now


class ArrivalTimes(Pathwise):
    """The pathwise gradient of a soft count of arrivals; for Poisson factors.

    Args:
        temperature: Half the width of the soft step; at most 1 keeps the cubic's mean exact. A
            number, or a :class:`~gengs.temperature.Schedule`, read at each call.
        kind: The soft step, ``"cubic"`` or ``"sigmoid"``.
        samples: The number of draws.
        arrivals: How many arrivals are drawn for each count. ``None`` (the default) reads the
            largest rate, which waits for a GPU; under ``torch.compile`` and ``vmap`` give a number.
    """

    paper_name = "EAT"
    needs = "Poisson"
    vmaps = compiles = False
    year = 2024
    always_shown = ("temperature", "kind")
    reference = "Vafaii et al., Poisson Variational Autoencoder"

    def __init__(
        self,
        temperature: float | Schedule = 0.5,
        kind: Literal["cubic", "sigmoid"] = "cubic",
        samples: int = 1,
        arrivals: int | None = None,
    ) -> None:
        super().__init__(samples)
        check_temperature(temperature_now(temperature))
        if kind not in ("cubic", "sigmoid"):
            raise ValueError(f"ArrivalTimes expects `kind` 'cubic' or 'sigmoid', got {kind!r}.")
        if arrivals is not None:
            positive_integer("ArrivalTimes", "arrivals", arrivals)
        self.temperature, self.kind, self.arrivals = temperature, kind, arrivals

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        law = factors.given
        rate: Tensor | None = getattr(law_of(law), "arrival_rate", None)
        if rate is None:
            kind = type(law).__name__ + ", on finitely many atoms" * isinstance(law, Finite)
            raise TypeError(
                f"ArrivalTimes expects a Poisson distribution, but `q` is {kind}; pass "
                "torch's Poisson as it is, not truncated, or use GenGS, MidCDF or ReinMax."
            )
        rate, tau = widen(rate), float(temperature_now(self.temperature))
        # past it an arrival counts as nothing (cubic), or as 1e-8 (sigmoid)
        horizon = 1 + tau * (1 if self.kind == "cubic" else 18)
        if self.arrivals is None:
            arrivals = _enough(rate, horizon)
        else:
            arrivals, most = self.arrivals, self.arrivals / horizon
            sentence = f"ArrivalTimes(arrivals={arrivals}) is too few for rates above {most:.4g}."
            factors.deferred_checks.append((rate.detach() > most, partial(ValueError, sentence)))
        full = torch.Size((*shape, *rate.shape, arrivals))
        require_memory(full[:-1], arrivals, rate.dtype, rate.device)
        waits = log_exponential(full, rate.dtype, rate.device).exp_()
        # a rate of zero waits for ever, without the 0 · inf of 1/0
        times = waits.cumsum_(-1) / rate.clamp_min(1e-12).unsqueeze(-1)
        if self.kind == "sigmoid":
            return torch.sigmoid((1 - times) / tau).sum(-1)
        u = ((1 - times) / (2 * tau) + 0.5).clamp(0, 1)
        return (u * u * (3 - 2 * u)).sum(-1)


def _enough(rate: Tensor, horizon: float) -> int:
    """So many arrivals that the last one comes after the horizon, but once in a billion counts."""
    if not inspectable(rate) or inside_transform():
        raise RuntimeError(
            "ArrivalTimes reads the largest rate to know how many arrivals to draw, which "
            "torch.compile and vmap do not allow; give arrivals=, or use MidCDF."
        )
    most = float(rate.detach().max()) * horizon if rate.numel() else 0.0
    if not math.isfinite(most):
        require_finite("rate", rate, "ArrivalTimes")
    return math.ceil(most + 6 * math.sqrt(most) + 12)
