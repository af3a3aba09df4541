"""Shuffled batches, as a function of the step.

Epoch e visits the items in the order of a permutation drawn from (seed, e) alone. So the batch of a
step can be had in any process, in any order, without replaying the ones before it, and needs no
place in a checkpoint. Items that do not fill a batch wait for another epoch: every batch has the
same size, and a mean over the processes is the mean over the batch.
"""

from __future__ import annotations

__all__ = ["Batches"]

import torch
from torch import Tensor


class Batches:
    """Tensors with a common first dimension, a batch of rows at a time.

    Args:
        *tensors: The data.
        batch_size: Rows in a batch, over all processes.
        seed: The seed of the order.

    Example:
        >>> data = Batches(torch.arange(10), batch_size=4, seed=0)
        >>> data.steps_per_epoch
        2
        >>> (first,) = data.batch(7)
        >>> halves = [data.batch(7, rank, world=2)[0] for rank in (0, 1)]
        >>> sorted(torch.cat(halves).tolist()) == sorted(first.tolist())
        True
    """

    def __init__(self, *tensors: Tensor, batch_size: int, seed: int = 0) -> None:
        if not tensors:
            raise ValueError("expected at least one tensor of data, but got none.")
        sizes = {len(tensor) for tensor in tensors}
        if len(sizes) > 1:
            raise ValueError(f"expected tensors of one length, but got {sorted(sizes)}.")
        (self.items,) = sizes
        if not 1 <= batch_size <= self.items:
            raise ValueError(
                f"expected a `batch_size` between 1 and the {self.items} items, but got "
                f"{batch_size}."
            )
        self.tensors, self.batch_size, self.seed = tensors, batch_size, seed
        self._order: tuple[int, Tensor] | None = None  # the epoch and its permutation

    @property
    def steps_per_epoch(self) -> int:
        """How many whole batches there are."""
        return self.items // self.batch_size

    def batch(self, step: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        """The rows of process ``rank`` in the batch of a step."""
        if self.batch_size % world:
            raise ValueError(
                f"expected a `batch_size` that {world} processes can share, but got "
                f"{self.batch_size}."
            )
        epoch, place = divmod(step, self.steps_per_epoch)
        start = place * self.batch_size
        rows = self.permutation(epoch)[start : start + self.batch_size][rank::world]
        return tuple(tensor[rows.to(tensor.device)] for tensor in self.tensors)

    def permutation(self, epoch: int) -> Tensor:
        """The order of an epoch."""
        if self._order is None or self._order[0] != epoch:
            generator = torch.Generator()
            # The seed makes a stream of seeds, so that neighbouring seeds share no epoch.
            start = torch.Generator().manual_seed(self.seed)
            key = int(torch.randint(2**62, (), generator=start))
            generator.manual_seed((key + epoch) % 2**63)
            self._order = epoch, torch.randperm(self.items, generator=generator)
        return self._order[1]
