r"""Latents that choose: groups of k-of-n subsets, their prior and the posterior of an encoder.

Each latent is a k-subset of n elements, a vector of 0 and 1 with sum k. The prior is one
:class:`~gengs.Subset`, the same for all groups, usually the uniform one; the posterior is a
``Subset`` of the same k whose logits are the prior's plus n raw numbers. Their divergence is a
closed form of the log-partition and the inclusion probabilities.

    >>> uniform = Subset(2, logits=torch.zeros(5))
    >>> q, p = SubsetLatents(uniform)(torch.zeros(3, 4 * 5))  # a batch of 3, four groups
    >>> q.batch_shape, q.event_shape
    (torch.Size([3, 4]), torch.Size([5]))
    >>> torch.distributions.kl_divergence(q, p).sum()
    tensor(0.)

References:
    | SIMPLE: A Gradient Estimator for k-Subset Sampling (Ahmed et al., 2023),
    | https://arxiv.org/abs/2210.01941
    | Implicit MLE: Backpropagating Through Discrete Exponential Family Distributions (Niepert et
    | al., 2021), https://arxiv.org/abs/2106.01798 (autoencoders with groups of 10-of-20)
"""

__all__ = ["SubsetLatents"]

import torch
from torch import Tensor

from ..estimators.base import positive_integer
from ..laws.subset import Subset
from .fixed_prior import WideBuffers


class SubsetLatents(WideBuffers):
    """The prior, and the posterior that belongs to a raw output.

    Args:
        prior: The distribution of one group, without a batch shape.
        latents: The number of groups, where raw outputs are not to tell it.
        validate_args: Whether to check parameters; on by default.
    """

    logits: Tensor

    def __init__(
        self, prior: Subset, latents: int | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__()
        if prior.batch_shape or not isinstance(prior.k, int):
            raise ValueError(
                "VAE expects the Subset prior of one group of elements, but got one of batch shape "
                f"{tuple(prior.batch_shape)}."
            )
        if prior.logits.requires_grad:
            raise ValueError("VAE expects a Subset prior without gradients: it is not learned.")
        if latents is not None:
            positive_integer("VAE", "latents", latents)
        self.k, self.count, self.validate_args = prior.k, latents, validate_args
        self.register_buffer("logits", prior.logits, persistent=False)

    @property
    def prior(self) -> Subset:
        """The prior of each group."""
        return Subset(self.k, self.logits, validate_args=False)

    def forward(self, raw: Tensor, whole: bool = False) -> tuple[Subset, Subset]:
        """The groups' posterior ``(*, D)`` and prior, for an encoder's raw output ``(*, D * n)``.

        Args:
            raw: What the encoder returned.
            whole: For the other latents' sake: nothing is truncated here.
        """
        n = len(self.logits)
        groups = self.count or (raw.shape[-1] // n if raw.dim() else 0)
        if raw.dim() < 2 or raw.shape[-1] != groups * n or not groups:
            count = "groups" if self.count is None else self.count
            raise ValueError(
                f"the posterior of subsets expects an encoder with {n} outputs for each group, "
                f"shape (batch, {count} * {n}), but got shape {tuple(raw.shape)}."
            )
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32)).unflatten(-1, (groups, n))
        check = False if torch.compiler.is_compiling() else self.validate_args
        return Subset(self.k, raw + self.logits, check), self.prior

    def extra_repr(self) -> str:
        return f"{self.k} of {len(self.logits)}, groups={self.count}"
