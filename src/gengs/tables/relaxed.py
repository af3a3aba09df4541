r"""The Gumbel-softmax relaxation of a table of atoms: a distribution and a function.

- :class:`Relaxed`, a distribution on the simplex, with a density;
- :func:`gumbel_relax`, a function, for people who only want a value.

.. math::
    w = \mathrm{softmax}\big((\log \pi + g) / \tau\big), \qquad
    z = \mathcal{T}(w) = \sum_k w_k c_k \quad (\textsc{GenGS})

:math:`w` has a density on the simplex (the Concrete distribution); the value :math:`\mathcal{T}(w)`
has none in closed form, so its draws are weights: values come from
:meth:`value` and :meth:`rsample_value`. As :math:`\tau \to 0` they become exact draws of the atoms
(Proposition 2 of the GenGS paper).

References:
    | The Concrete Distribution (Maddison et al., 2017), https://arxiv.org/abs/1611.00712
    | Categorical Reparameterization with Gumbel-Softmax (Jang et al., 2017),
    | https://arxiv.org/abs/1611.01144
    | Estimating or Propagating Gradients Through Stochastic Neurons (Bengio et al., 2013),
    | https://arxiv.org/abs/1308.3432
    | Generalized Gumbel-Softmax Gradient Estimator (Joo et al., 2020),
    | https://arxiv.org/abs/2003.01847
"""

from __future__ import annotations

__all__ = ["Relaxed", "gumbel_relax"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from ..laws.law import law_of
from ..laws.one_hot import OneHot
from ..numerics.gumbel_softmax import (
    Temperature,
    check_temperature,
    relaxed_value,
    relaxed_weights,
)
from ..numerics.tracing import set_shapes, validates
from .finite import Finite


class Relaxed(Distribution):
    r"""The distribution of :math:`\mathrm{softmax}((\log \pi + g)/\tau)` on the simplex.

    Args:
        temperature: :math:`\tau > 0`: a number, or a tensor that broadcasts with the batch shape
            and may be learned.
        law: The distribution to relax. One that is not yet a :class:`Finite` is truncated where
            1e-6 of its mass lies outside.
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
        self.law = law if isinstance(law, Finite) else law_of(law).table()
        if validates(validate_args) or not isinstance(temperature, Tensor):
            check_temperature(temperature)
        self.temperature = temperature
        batch = self.law.batch_shape
        if isinstance(temperature, Tensor) and temperature.dim():
            batch = torch.broadcast_shapes(batch, temperature.shape)
            self.law = self.law if batch == self.law.batch_shape else self.law.expand(batch)
        set_shapes(self, batch, torch.Size([self.law.num_atoms]), validates(validate_args))

    @property
    def atoms(self) -> Tensor:
        """The atoms of the distribution that is relaxed."""
        return self.law.atoms

    @property
    def logits(self) -> Tensor:
        """The log-probabilities of the distribution that is relaxed."""
        return self.law.logits

    def rsample(self, sample_shape: _size = torch.Size()) -> Tensor:
        """Relaxed one-hot vectors, ``(*sample, *batch, n)``, in the floating type of its source."""
        weights = relaxed_weights(self.logits, self.temperature, torch.Size(sample_shape))
        return weights.to(self.law.dtype)

    def value(self, w: Tensor) -> Tensor:
        r"""The linear map :math:`\mathcal{T}(w) = \sum_k w_k c_k`."""
        return self.law.mix(w)

    def rsample_value(
        self,
        sample_shape: _size = torch.Size(),
        *,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        r"""Values :math:`\mathcal{T}(w)`, of shape ``(*sample, *batch, *event)``.

        Args:
            sample_shape: How many.
            hard: Straight-through: the value is the atom that won, an exact draw; the gradient is
                that of the relaxed value.
            generator: Where the noise comes from.
        """
        shape = torch.Size(sample_shape)
        return relaxed_value(self.law, self.temperature, shape, hard, generator)

    def log_prob(self, value: Tensor) -> Tensor:
        r"""The density at a point of the simplex, computed in log space.

        .. math::
            \log p(w) = \log \Gamma(n) + (n - 1) \log \tau + \sum_k \big(\log \pi_k - (\tau + 1)
            \log w_k\big) - n \log \sum_k \pi_k w_k^{-\tau}

        Atoms of probability zero have weight zero, and the density is that on the others' simplex.
        """
        if self._validate_args:
            self._validate_sample(value)
        return self.log_prob_of_log(value.to(self.logits.dtype).log())

    def log_prob_of_log(self, log_w: Tensor) -> Tensor:
        r"""The same density for given :math:`\log w`: at low temperatures :math:`w` underflows."""
        tau = torch.as_tensor(self.temperature, dtype=log_w.dtype, device=log_w.device)
        tau = tau.unsqueeze(-1)
        possible = (self.logits > -torch.inf).expand(
            torch.broadcast_shapes(self.logits.shape, log_w.shape)
        )
        n = possible.sum(-1).to(log_w.dtype)
        logits, log_w = self.logits.where(possible, 0.0), log_w.where(possible, 0.0)
        score = (logits - tau * log_w).where(possible, -torch.inf).logsumexp(-1)
        terms = (logits - (tau + 1) * log_w).where(possible, 0.0).sum(-1)
        return torch.lgamma(n) + (n - 1) * tau.squeeze(-1).log() + terms - n * score

    def expand(self, batch_shape: _size, _instance: Any = None) -> Relaxed:
        return Relaxed(self.temperature, self.law.expand(batch_shape), self._validate_args)

    def __repr__(self) -> str:
        return f"Relaxed(temperature: {self.temperature}, law: {self.law})"


def gumbel_relax(
    law: Distribution | None = None,
    tau: Temperature = 1.0,
    hard: bool = False,
    *,
    logits: Tensor | None = None,
    dim: int = -1,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""A value drawn from the relaxation of a distribution, differentiable in its parameters.

    Args:
        law: Any discrete distribution: a :class:`Finite`, or one that is truncated where 1e-6
            of its mass lies outside; ``Independent`` of one; a multinomial of any size.
        tau: The temperature.
        hard: Straight-through: an exact draw with the relaxed gradient.
        logits: In place of ``law``: one-hot vectors of these, as in torch's ``gumbel_softmax``.
        dim: Where the last dimension of the result goes; with ``logits``, the dimension of the
            categories, as in torch's ``gumbel_softmax``.
        generator: Where the noise comes from.

    Returns:
        A tensor of shape ``law.batch_shape + law.event_shape``, or of the shape of ``logits``.

    Example:
        >>> rate = torch.tensor([0.5, 3.0, 1e4], requires_grad=True)
        >>> gumbel_relax(torch.distributions.Poisson(rate), tau=0.5, hard=True).shape
        torch.Size([3])
        >>> gumbel_relax(logits=torch.zeros(2, 1024), hard=True).sum(-1)
        tensor([1., 1.])
    """
    if (law is None) == (logits is None):
        raise TypeError("gumbel_relax expects a distribution or `logits`, and one of them only.")
    if logits is not None:
        if not isinstance(logits, Tensor):
            raise TypeError(
                f"gumbel_relax expects a tensor as `logits`, but got {type(logits).__name__}."
            )
        law = OneHot(logits=logits.movedim(dim, -1))
    elif not isinstance(law, Distribution):
        raise TypeError(
            f"gumbel_relax expects a torch distribution, but got {type(law).__name__}; of a tensor "
            "pass logits=."
        )
    check_temperature(tau)
    record = law_of(law)
    value = record.narrowed(record.relax(tau, torch.Size(), hard, generator))
    return value if dim == -1 else value.movedim(-1, dim)
