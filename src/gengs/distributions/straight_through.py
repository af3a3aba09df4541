r"""A discrete law whose draws carry the gradient of its relaxation.

Forward :math:`z = c_{\arg\max(\log \pi + g)}`, an exact draw; backward the gradient of
:math:`\mathcal{T}(\mathrm{softmax}((\log\pi + g)/\tau))`. In every other respect it is the discrete
law: ``log_prob`` of a count is the PMF, ``sample`` gives exact atoms, ``mean`` is the law's.
So it drops into any code that asks a distribution for ``rsample``.

References:
    | Estimating or Propagating Gradients Through Stochastic Neurons (Bengio et al., 2013),
    | https://arxiv.org/abs/1308.3432
"""

from __future__ import annotations

__all__ = ["StraightThrough"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from .relaxed import Relaxed, Temperature


class StraightThrough(Distribution):
    """Discrete draws with a relaxed gradient.

    Args:
        temperature: Of the relaxation that lends its gradient.
        law: As for :class:`Relaxed`.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> rate = torch.tensor([2.0, 4.0], requires_grad=True)
        >>> q = StraightThrough(0.5, torch.distributions.Poisson(rate))
        >>> z = q.rsample()
        >>> bool((z == z.round()).all()), q.log_prob(z).shape
        (True, torch.Size([2]))
    """

    arg_constraints = {"temperature": constraints.positive}
    has_rsample = True
    has_enumerate_support = True

    def __init__(
        self, temperature: Temperature, law: Distribution, validate_args: bool | None = None
    ) -> None:
        self._set(Relaxed(temperature, law, validate_args))

    def _set(self, relaxed: Relaxed) -> None:
        self.relaxed = relaxed
        self.law = relaxed.law
        self.temperature = relaxed.temperature
        super().__init__(relaxed.batch_shape, relaxed.law.event_shape, validate_args=False)
        self._validate_args = relaxed._validate_args

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """The atoms."""
        return self.law.support

    def rsample(self, sample_shape: _size = torch.Size()) -> Tensor:
        """Exact draws with the relaxed gradient."""
        return self.relaxed.rsample_value(sample_shape, hard=True)

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self.law.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.law.log_prob(value)

    def entropy(self) -> Tensor:
        return self.law.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self.law.enumerate_support(expand)

    @property
    def mean(self) -> Tensor:
        return self.law.mean

    @property
    def variance(self) -> Tensor:
        return self.law.variance

    @property
    def mode(self) -> Tensor:
        return self.law.mode

    def __repr__(self) -> str:
        return f"StraightThrough(temperature: {self.temperature}, law: {self.law})"

    def expand(self, batch_shape: _size, _instance: Any = None) -> StraightThrough:
        result = self._get_checked_instance(StraightThrough, _instance)
        result._set(self.relaxed.expand(batch_shape))
        return result
