r"""Batches of images from memory, a function of the seed and the step alone.

``Batches(images, 100, seed=3).at(step)`` is the batch of a global step, always the same: the order
of an epoch follows from (seed, epoch) and the noise of the binarisation from (seed, step). So a run
that is interrupted continues with the bytes it would have had, with nothing to save but the step.
In data-parallel training each process takes its rows of the same batch, ``x[rank::world]``.

**Binarisation** of grey values :math:`v \in \{0, \dots, 255\}`:

- *dynamic*: a fresh Bernoulli(v / 255) for each pixel at each access;
- *static*: one such draw per pixel, once and for all (the same for every seed);
- *threshold*: 1 where v / 255 exceeds one half;
- *none*: the intensity v / 255 itself.
"""

from __future__ import annotations

__all__ = ["Batches", "Binarisation"]

import hashlib
from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor

Binarisation = Literal["dynamic", "static", "threshold", "none"]


class Batches:
    """Batches of images, addressed by step.

    Args:
        images: Grey values, ``uint8`` of shape ``(N, *pixels)``.
        batch_size: How many images a batch has.
        seed: Determines order and noise.
        binarise: How grey values become pixels: dynamic, static, threshold or none.
        shuffle: Shuffle each epoch and drop the few images that do not fill a batch; otherwise
            keep the order and let the last batch of an epoch be shorter.

    Example:
        >>> images = torch.randint(256, (1000, 64), dtype=torch.uint8)
        >>> batches = Batches(images, 100, seed=3)
        >>> len(batches), batches.at(17).shape, bool((batches.at(17) == batches.at(17)).all())
        (10, torch.Size([100, 64]), True)
    """

    def __init__(
        self,
        images: Tensor,
        batch_size: int,
        seed: int = 0,
        binarise: Binarisation = "dynamic",
        shuffle: bool = True,
    ) -> None:
        if images.dtype != torch.uint8 or images.dim() < 2:
            raise TypeError(
                "Batches expects grey values as a uint8 tensor of shape (N, *pixels), but got "
                f"{images.dtype} of shape {tuple(images.shape)}."
            )
        if binarise not in get_args(Binarisation):
            options = ", ".join(get_args(Binarisation))
            raise ValueError(
                f"Batches expects `binarise` to be one of {options}, but got {binarise!r}."
            )
        if not 1 <= batch_size <= len(images):
            raise ValueError(
                f"Batches expects a `batch_size` from 1 to the {len(images)} images, "
                f"but got {batch_size}."
            )
        self.batch_size, self.seed = batch_size, seed
        self.binarise, self.shuffle = binarise, shuffle
        if binarise == "static":
            images = bernoulli(images, keyed_generator("static")).to(torch.uint8)
        elif binarise == "threshold":
            images = (images > 127).to(torch.uint8)
        self.images = images.contiguous()
        self._order: tuple[int, Tensor] | None = None

    def __len__(self) -> int:
        """Batches per epoch."""
        whole, rest = divmod(len(self.images), self.batch_size)
        return whole + (rest > 0 and not self.shuffle)

    def at(self, step: int) -> Tensor:
        """The batch of a global step, ``(B, *pixels)``, as floating numbers."""
        epoch, k = divmod(step, len(self))
        index = self._order_of(epoch)[k * self.batch_size : (k + 1) * self.batch_size]
        chosen = self.images.index_select(0, index)
        if self.binarise == "dynamic":
            return bernoulli(chosen, keyed_generator("noise", self.seed, step))
        pixels = chosen.to(torch.get_default_dtype())
        return pixels / 255 if self.binarise == "none" else pixels

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Tensor:
        """The rows of process ``rank`` of ``world`` in the batch of a step."""
        if self.batch_size % world:
            raise ValueError(
                f"expected a `batch_size` that {world} processes can share, but got "
                f"{self.batch_size}."
            )
        return self.at(step)[rank::world]

    def epoch(self, epoch: int) -> Iterator[Tensor]:
        """The batches of one epoch."""
        return (self.at(epoch * len(self) + k) for k in range(len(self)))

    def _order_of(self, epoch: int) -> Tensor:
        if self._order is None or self._order[0] != epoch:
            if self.shuffle:
                generator = keyed_generator("order", self.seed, epoch)
                order = torch.randperm(len(self.images), generator=generator)
            else:
                order = torch.arange(len(self.images))
            self._order = epoch, order
        return self._order[1]


def keyed_generator(*key: object) -> torch.Generator:
    """A generator whose stream follows from the key alone."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


def bernoulli(grey: Tensor, generator: torch.Generator) -> Tensor:
    """Exact Bernoulli(v / 255) draws, as floating numbers, for grey values ``v`` in ``uint8``.

    One random byte per pixel, eight from one random word: ten times as fast as ``torch.bernoulli``.
    """
    words = torch.empty(-(-grey.numel() // 8), dtype=torch.int64)
    words.random_(-(1 << 63), None, generator=generator)
    noise = words.view(torch.uint8).view(-1, 8)
    # A byte has 256 values and the grey scale 255 steps: the last value is drawn again, in the few
    # words that have one. (Comparing whole tensors is vectorised, with a number it is not.)
    spare = torch.eq(noise, torch.full_like(noise, 255)).view(torch.int64).view(-1)
    rows = spare.nonzero().squeeze(-1)
    some = noise[rows]
    fresh = torch.randint(255, some.shape, generator=generator, dtype=torch.uint8)
    noise[rows] = torch.where(some == 255, fresh, some)
    on = noise.view(-1)[: grey.numel()].view(grey.shape) < grey
    return on.view(torch.uint8).to(torch.get_default_dtype())
