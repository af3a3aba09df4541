"""What a model keeps of its prior, as modules with buffers: itself, its mean and spread.

They move to a device and a type with the model that holds them, but never below ``float32``: a rate
of 2.3 is none in bfloat16.
"""

__all__ = ["FixedPrior", "Standardise", "WideBuffers", "has_explicit_posterior"]

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from ..laws.law import Law, law_of
from ..tables.finite import Finite


def has_explicit_posterior(prior: Distribution) -> bool:
    """Whether one raw number for each latent makes a distribution of the prior's family."""
    return type(law_of(prior)).explicit.__func__ is not Law.explicit.__func__  # type: ignore[attr-defined]


class WideBuffers(nn.Module):
    """A module whose buffers are constants, in ``float32`` or wider wherever it is moved.

    They are no part of the ``state_dict``, as they follow from the arguments.
    """

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)
        for name, value in before.items():
            like = getattr(self, name)
            if not value.is_meta:  # from the value itself: `to_empty` has none, halves lost digits
                wide = torch.promote_types(like.dtype, torch.float32)
                setattr(self, name, value.to(like.device, wide))
        return self


class FixedPrior(WideBuffers):
    """A prior that is not learned: of one of torch's count families, or on atoms.

    Example:
        >>> FixedPrior(torch.distributions.Poisson(2.0)).to(torch.bfloat16)()
        Poisson(rate: 2.0)
    """

    def __init__(self, law: Distribution) -> None:
        super().__init__()
        self.kind: Any = Finite if isinstance(law, Finite) else type(law)
        if self.kind is not Finite and not has_explicit_posterior(law):
            raise TypeError(
                f"VAE expects a level= with the prior {type(law).__name__}, or a module whose "
                "forward() gives the distribution: it does not know its parameters."
            )
        # of probs and logits, the second is made from the first
        either = [name for name in vars(law) if name in ("probs", "logits")][:1]
        names = ["atoms", "logits"] if self.kind is Finite else ["rate", "total_count", *either]
        for name in names:
            if hasattr(law, name):
                self.register_buffer(name, getattr(law, name), persistent=False)
        if any(value.requires_grad for value in self.buffers()):
            raise ValueError(
                "VAE expects a `prior` without gradients: it keeps what its parameters were "
                "when it was made. For a prior that is learned, pass a module whose forward() "
                "gives the distribution."
            )

    def forward(self) -> Distribution:
        """The prior, of the buffers as they are: ``functional_call`` may have put others there."""
        law: Distribution = self.kind(**self._buffers, validate_args=False)
        return law


class Standardise(WideBuffers):
    """Counts as a network likes its inputs: centred, and of unit spread under the prior.

    ``(z - mean) / standard deviation``, both as they are when it is made.

    Example:
        >>> Standardise(torch.distributions.Poisson(4.0))(torch.tensor([0.0, 4.0, 6.0]))
        tensor([-2.,  0.,  1.])
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, law: Distribution) -> None:
        super().__init__()
        try:
            mean, spread = law.mean.detach(), law.stddev.detach()
        except NotImplementedError:
            mean = spread = torch.tensor(torch.nan)
        if not mean.is_meta and not bool((mean + spread).isfinite().all()):
            raise ValueError(
                f"the mean or the variance of the prior {law} is not known or infinite: pass "
                "standardise=False, and the decoder sees the counts as they are."
            )
        self.register_buffer("centre", mean, persistent=False)  # nn.Buffer is of torch 2.5
        self.register_buffer("spread", torch.where(spread > 0, spread, 1.0), persistent=False)

    def forward(self, z: Tensor) -> Tensor:
        """Latents ``(*, D)`` in units of the distribution."""
        return (z - self.centre) / self.spread
