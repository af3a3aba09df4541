r"""Items that are picked one after the other without replacement: ``torch.multinomial(w, k)``.

Given the picks before it, each pick is a category: that is the score of the order, and its mean. By
the path the whole order moves as a :class:`gengs.PlackettLuce` does, whose neighbours change places
(:mod:`gengs.laws.ranking_swaps`). Two faces of it are asked for: which item has which place (a
matrix, beside the indices), and which items were picked at all (beside a mask made of them).

**Weights of 0** never come, and enter as they grow: :math:`w_i = \epsilon` arrives before the m-th
arrival with probability :math:`\epsilon \tau_m`, and passes those behind it one by one. That is the
whole one-sided slope, of which the swap rule, in the logarithm of a weight, has no part.
"""

from __future__ import annotations

__all__ = ["Picks"]

import zlib
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical

from ..distributions import PlackettLuce
from ..laws.ranking_members import members_of
from ..numerics.autograd_function import AutogradFunction


class Picks(Categorical):
    """The picks of a drawn order, each given those before it: ``k`` rows of ``n`` categories.

    Args:
        weights: Of the items, ``(*batch, n)``, not negative.
        order: The items that were picked, ``(*batch, k)``.
    """

    def __init__(self, weights: Tensor, order: Tensor) -> None:
        n = weights.shape[-1]
        rows = order.unsqueeze(-1) == torch.arange(n, device=order.device)  # (*batch, k, n)
        taken = rows.cumsum(-2) > rows.to(torch.int64)
        left = weights.unsqueeze(-2).expand(taken.shape).masked_fill(taken, 0.0)
        super().__init__(left, validate_args=False)
        self.weights, self.order = weights, order

    @property
    def given(self) -> Categorical:
        """The same, as one of torch's own classes."""
        return Categorical(self.probs, validate_args=False)

    @property
    def ranking(self) -> PlackettLuce:
        """The distribution of the whole order."""
        impossible = self.weights == 0
        logits = self.weights.masked_fill(impossible, 1.0).log().masked_fill(impossible, -torch.inf)
        return PlackettLuce(logits, self.order.shape[-1], validate_args=False)

    def matrix(self) -> Tensor:
        """Which item has which place, ``(*batch, k, n)``, with the swap rule's gradient."""
        return self.ranking.matrix(self.order) + self._entries()

    def members(self) -> Tensor:
        """Which items were picked, ``(*batch, n)``: quieter than the sum over places."""
        noise = _noise_apart(self.order.device)
        members = members_of(self.ranking.logits, self.order, generator=noise)
        return members + self._entries().sum(-2)

    def _entries(self) -> Any:
        """Zeros, ``(*batch, k, n)``, with the slope of weights that are 0."""
        if not self.weights.requires_grad or not bool((self.weights == 0).any()):
            return torch.zeros_like(self.probs)
        return _EntriesOfZero.apply(self.weights, self.order)


class _EntriesOfZero(AutogradFunction):
    @staticmethod
    def forward(weights: Tensor, order: Tensor) -> Tensor:
        return weights.new_zeros(*order.shape, weights.shape[-1])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, order = ctx.saved_tensors
        placed = weights.gather(-1, order)
        rest = weights.scatter(-1, order, 0.0).sum(-1, keepdim=True)
        time = (placed.flip(-1).cumsum(-1).flip(-1) + rest).reciprocal().cumsum(-1)  # tau, (…, k)
        # what it brings to be at place m, and not at the next one: i comes, who stood there leaves
        gain = grad - torch.nn.functional.pad(grad, (0, 0, 0, 1))[..., 1:, :]
        passed = gain - gain.gather(-1, order.unsqueeze(-1))
        slope = (time.unsqueeze(-1) * passed).sum(-2)
        return slope.masked_fill(weights != 0, 0.0), None


def _noise_apart(device: torch.device) -> torch.Generator:
    """Random numbers that the program will not draw: its own draws stay what they are."""
    on_gpu = device.type == "cuda"
    state = torch.cuda.get_rng_state(device) if on_gpu else torch.get_rng_state()
    return torch.Generator(device).manual_seed(zlib.crc32(state.numpy().tobytes()))
