"""The relaxation as one call, for people who only want a value."""

from __future__ import annotations

__all__ = ["gumbel_relax"]

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Multinomial

from .multinomial import explodes
from .relaxed import Relaxed, Temperature
from .relaxed_multinomial import RelaxedMultinomial


def gumbel_relax(
    law: Distribution,
    tau: Temperature = 1.0,
    hard: bool = False,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""A value drawn from the relaxation of ``law``, differentiable in its parameters.

    Args:
        law: Any discrete law: a :class:`Finite`, or one that is truncated where 1e-6 of its mass
            lies outside; ``Independent`` of one; a multinomial of any size.
        tau: The temperature.
        hard: Straight-through: an exact draw with the relaxed gradient.
        generator: Where the noise comes from.

    Returns:
        A tensor of shape ``law.batch_shape + law.event_shape``.

    Example:
        >>> rate = torch.tensor([0.5, 3.0, 1e4], requires_grad=True)
        >>> gumbel_relax(torch.distributions.Poisson(rate), tau=0.5, hard=True).shape
        torch.Size([3])
    """
    while isinstance(law, Independent):
        law = law.base_dist
    relaxed: Relaxed | RelaxedMultinomial
    if isinstance(law, Multinomial) and explodes(law):
        relaxed = RelaxedMultinomial(tau, law)
    else:
        relaxed = Relaxed(tau, law)
    return relaxed.rsample_value(hard=hard, generator=generator)
