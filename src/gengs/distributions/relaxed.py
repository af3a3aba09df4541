r"""The Gumbel-softmax relaxation of a law on finitely many atoms: a law on the simplex.

.. math::
    y = \mathrm{softmax}\big((\log \pi + g) / \tau\big), \qquad
    z = \mathcal{T}(y) = \sum_k y_k c_k \quad (\textsc{GenGS})

:math:`y` has a density on the simplex (the Concrete distribution); the value :math:`\mathcal{T}(y)`
has none in closed form, so it is not what this law is a law of: values come from :meth:`value` and
:meth:`rsample_value`. As :math:`\tau \to 0` they become exact draws of the atoms.

References:
    | The Concrete Distribution (Maddison et al., 2017), https://arxiv.org/abs/1611.00712
    | Categorical Reparameterization with Gumbel-Softmax (Jang et al., 2017),
    | https://arxiv.org/abs/1611.01144
    | Generalized Gumbel-Softmax Gradient Estimator (Joo et al., 2020),
    | https://arxiv.org/abs/2003.01847
"""

from __future__ import annotations

__all__ = ["Relaxed"]

from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from .fused_value import fused_value
from .gumbel import log_exponential
from .truncate import as_finite
from .validation import inspectable, ordinary, validates

Temperature = float | Tensor


class Relaxed(Distribution):
    r"""The law of :math:`\mathrm{softmax}((\log \pi + g)/\tau)` on the simplex of the atoms.

    Args:
        temperature: :math:`\tau > 0`: a number, or a tensor that broadcasts with the batch shape
            and may be learned.
        law: The law to relax. A law that is not yet a :class:`Finite` is truncated where 1e-6 of
            its mass lies outside.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> rate = torch.tensor(3.0, requires_grad=True)
        >>> z = Relaxed(0.5, torch.distributions.Poisson(rate)).rsample_value()
        >>> z.backward()
        >>> bool(rate.grad > 0)
        True
    """

    arg_constraints = {"temperature": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Temperature, law: Distribution, validate_args: bool | None = None
    ) -> None:
        self.law = as_finite(law)
        check_temperature(temperature)
        self.temperature = temperature
        batch = self.law.batch_shape
        if isinstance(temperature, Tensor) and temperature.dim():
            batch = torch.broadcast_shapes(batch, temperature.shape)
            self.law = self.law if batch == self.law.batch_shape else self.law.expand(batch)
        super().__init__(batch, torch.Size([self.law.num_atoms]), validate_args=False)
        self._validate_args = validates(validate_args)

    @property
    def atoms(self) -> Tensor:
        """The atoms of the law that is relaxed."""
        return self.law.atoms

    @property
    def logits(self) -> Tensor:
        """The log-probabilities of the law that is relaxed."""
        return self.law.logits

    def rsample(self, sample_shape: _size = torch.Size()) -> Tensor:
        """Relaxed one-hot vectors, ``(*sample, *batch, n)``, in the law's own floating type."""
        return self._weights(torch.Size(sample_shape)).to(self.law.dtype)

    def value(self, y: Tensor) -> Tensor:
        r"""The linear map :math:`\mathcal{T}(y) = \sum_k y_k c_k`."""
        return self.law.mix(y)

    def rsample_value(
        self,
        sample_shape: _size = torch.Size(),
        *,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        r"""Values :math:`\mathcal{T}(y)`, of shape ``(*sample, *batch, *event)``.

        Args:
            sample_shape: How many.
            hard: Straight-through: the value is the atom that won, an exact draw; the gradient is
                that of the relaxed value.
            generator: Where the noise comes from.
        """
        shape = torch.Size(sample_shape)
        if not hard and isinstance(self.temperature, float | int):
            tau = float(self.temperature)
            scores = self.law.softmax_scores(tau)
            if self._fusible(scores):
                noise = _log_noise(scores, shape, generator)
                return fused_value(scores, noise, self.atoms, tau, self.law.all_possible)
        weights = self._weights(shape, generator)
        if not hard:
            return self.law.mix(weights)
        # learned atoms move with the one that was drawn; the weights' gradient is the relaxed one
        value = self.law.mix(weights, self.atoms.detach())
        atom = self.law._atoms_at(weights.detach().argmax(-1))
        return atom + (value - value.detach())  # exactly the atom: value + (atom - value) rounds

    def log_prob(self, value: Tensor) -> Tensor:
        r"""The density at a point of the simplex, computed in log space.

        .. math::
            \log p(y) = \log \Gamma(n) + (n - 1) \log \tau + \sum_k \big(\log \pi_k - (\tau + 1)
            \log y_k\big) - n \log \sum_k \pi_k y_k^{-\tau}

        Atoms of probability zero have weight zero, and the density is that on the others' simplex.
        """
        if self._validate_args:
            self._validate_sample(value)
        return self.log_prob_of_log(value.to(self.logits.dtype).log())

    def log_prob_of_log(self, log_y: Tensor) -> Tensor:
        r"""The same density for given :math:`\log y`: at low temperatures :math:`y` underflows."""
        tau = self._tau_column(log_y)
        possible = (self.logits > -torch.inf).expand(
            torch.broadcast_shapes(self.logits.shape, log_y.shape)
        )
        n = possible.sum(-1).to(log_y.dtype)
        logits, log_y = self.logits.where(possible, 0.0), log_y.where(possible, 0.0)
        score = (logits - tau * log_y).where(possible, -torch.inf).logsumexp(-1)
        terms = (logits - (tau + 1) * log_y).where(possible, 0.0).sum(-1)
        return torch.lgamma(n) + (n - 1) * tau.squeeze(-1).log() + terms - n * score

    def expand(self, batch_shape: _size, _instance: Any = None) -> Relaxed:
        relaxed = self._get_checked_instance(Relaxed, _instance)
        relaxed.law = self.law.expand(batch_shape)
        relaxed.temperature = self.temperature
        super(Relaxed, relaxed).__init__(
            torch.Size(batch_shape), self.event_shape, validate_args=False
        )
        relaxed._validate_args = self._validate_args
        return relaxed

    def __repr__(self) -> str:
        return f"Relaxed(temperature: {self.temperature}, law: {self.law})"

    def _weights(
        self, sample_shape: torch.Size, generator: torch.Generator | None = None
    ) -> Tensor:
        """Relaxed one-hot vectors, in ``float32`` or wider."""
        perturbed = self.logits - _log_noise(self.logits, sample_shape, generator)
        return soften(perturbed, self._tau_column(perturbed))

    def _fusible(self, scores: Tensor) -> bool:
        """Whether the fast path serves: atoms shared and fixed, a plain tensor."""
        return (
            self.atoms.dim() == 1
            and self.atoms.dtype == scores.dtype
            and not self.atoms.requires_grad
            and ordinary(scores)
        )

    def _tau_column(self, like: Tensor) -> Tensor:
        tau = torch.as_tensor(self.temperature, dtype=like.dtype, device=like.device)
        return tau.unsqueeze(-1)


def _log_noise(like: Tensor, sample_shape: torch.Size, generator: torch.Generator | None) -> Tensor:
    return log_exponential(sample_shape + like.shape, like.dtype, like.device, generator)


def soften(perturbed: Tensor, temperature: Temperature) -> Tensor:
    """``softmax(perturbed / temperature)``, the largest subtracted first, as 1/τ may overflow."""
    largest = perturbed.detach().amax(-1, keepdim=True)
    return ((perturbed - largest) / temperature).softmax(-1)


def check_temperature(temperature: Temperature) -> None:
    """Raise a ``ValueError`` unless every temperature is positive and finite."""
    if not isinstance(temperature, Tensor | Real):
        raise TypeError(f"expected a number or a tensor as `temperature`, but got {temperature!r}.")
    if isinstance(temperature, Tensor):
        if not inspectable(temperature) or temperature.numel() == 0:
            return
        good = bool(((temperature > 0) & torch.isfinite(temperature)).all())
        shown: object = temperature.detach().flatten()[:3].tolist()
    else:
        good = 0 < temperature < float("inf")
        shown = temperature
    if not good:
        raise ValueError(f"expected a positive, finite `temperature`, but got {shown}.")
