r"""Batches of images or documents, a function of the seed and the step alone.

``Batches(images, 100, seed=3).at(step)`` is the batch of a global step, always the same: the order
of an epoch follows from (seed, epoch) and the noise of the binarisation from (seed, step). So a run
that is interrupted continues with the bytes it would have had, with nothing to save but the step.
In data-parallel training each process takes its rows of the same batch, ``x[rank::world]``.

**Images** are grey values :math:`v \in \{0, \dots, 255\}`, which become pixels on the way:

- *dynamic*: a fresh Bernoulli(v / 255) for each pixel at each access;
- *static*: one such draw per pixel, once and for all (the same for every seed);
- *threshold*: 1 where v / 255 exceeds one half;
- *none*: the intensity v / 255 itself.

**Documents** are sparse counts: a batch gathers its rows and is made dense alone. Of a corpus that
is mapped from a file only the rows of the batch are read, so it may be larger than memory. Reading
single rows from all over a disk is slow. With ``block`` rows are taken in blocks of neighbours: the
blocks of an epoch come in random order, and the rows of 256 successive blocks are mixed. With
``block=1`` every order is equally likely.
"""

__all__ = ["Batches", "Binarisation", "keyed_generator"]

import hashlib
from collections.abc import Iterator
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .sparse_rows import CompressedRows, dense_rows

Binarisation = Literal["dynamic", "static", "threshold", "none"]
_MIXED = 256  # blocks


class Batches:
    """Batches of rows, addressed by step.

    Args:
        data: Images, grey values in ``uint8`` of shape ``(N, *pixels)``; or documents, counts by
            compressed rows: a SciPy matrix or a :class:`~gengs_topics.text.Corpus`.
        batch_size: How many rows a batch has, over all processes.
        seed: Determines order and noise.
        binarise: How grey values become pixels: dynamic, static, threshold or none.
        shuffle: Shuffle each epoch and drop the few rows that do not fill a batch; otherwise keep
            the order and let the last batch of an epoch be shorter.
        rows: Take these rows only.
        block: Take neighbouring rows together, for a corpus on a slow disk.

    Example:
        >>> images = torch.randint(256, (1000, 64), dtype=torch.uint8)
        >>> batches = Batches(images, 100, seed=3)
        >>> len(batches), batches.at(17).shape, bool((batches.at(17) == batches.at(17)).all())
        (10, torch.Size([100, 64]), True)
    """

    def __init__(
        self,
        data: Tensor | CompressedRows,
        batch_size: int,
        seed: int = 0,
        binarise: Binarisation = "dynamic",
        shuffle: bool = True,
        *,
        rows: Any = None,
        block: int = 1,
    ) -> None:
        self.data = _pixels(data, binarise) if isinstance(data, Tensor) else data
        self.subset = None if rows is None else torch.as_tensor(rows, dtype=torch.int64)
        self.items = data.shape[0] if self.subset is None else len(self.subset)
        if not 1 <= batch_size <= self.items:
            kind = "images" if isinstance(data, Tensor) else "documents"
            raise ValueError(
                f"expected a `batch_size` from 1 to the {self.items} {kind}, but got {batch_size}."
            )
        if block < 1:
            raise ValueError(f"expected at least 1 for `block`, but got {block}.")
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        self.binarise, self.block = binarise, block
        self._order: tuple[int, Tensor] | None = None  # the last epoch asked for, and its rows

    def __len__(self) -> int:
        """Batches per epoch."""
        whole, rest = divmod(self.items, self.batch_size)
        return whole + (rest > 0 and not self.shuffle)

    def at(self, step: int, rank: int = 0, world: int = 1) -> Tensor:
        """The batch of a global step, ``(B, ...)``, or the rows of process ``rank`` in it."""
        size = self.batch_size
        if size % world:
            raise ValueError(
                f"expected a `batch_size` that {world} processes can share, but got {size}."
            )
        epoch, place = divmod(step, len(self))
        rows = self.order(epoch)[place * size : (place + 1) * size]
        if not isinstance(self.data, Tensor):
            return dense_rows(self.data, rows[rank::world])
        chosen = self.data.index_select(0, rows)
        if self.binarise == "dynamic":
            # the noise of the whole batch, so that it is the same for any number of processes
            chosen = bernoulli(chosen, keyed_generator("noise", self.seed, step))
        pixels = chosen[rank::world].to(torch.get_default_dtype())
        return pixels / 255 if self.binarise == "none" else pixels

    batch = at
    """The same, as the training loop calls it."""

    def epoch(self, epoch: int) -> Iterator[Tensor]:
        """The batches of one epoch."""
        return (self.at(epoch * len(self) + place) for place in range(len(self)))

    def order(self, epoch: int) -> Tensor:
        """The rows of an epoch, in their order."""
        if self._order is None or self._order[0] != epoch:
            order = self._shuffled(epoch) if self.shuffle else torch.arange(self.items)
            self._order = epoch, order if self.subset is None else self.subset[order]
        return self._order[1]

    def _shuffled(self, epoch: int) -> Tensor:
        generator = keyed_generator("order", self.seed, epoch)
        if self.block == 1:
            return torch.randperm(self.items, generator=generator)
        blocks = torch.randperm(-(-self.items // self.block), generator=generator)
        order = (blocks[:, None] * self.block + torch.arange(self.block)).flatten()
        order = order[order < self.items]
        for part in order.split(self.block * _MIXED):
            part.copy_(part[torch.randperm(len(part), generator=generator)])
        return order


def keyed_generator(*key: object) -> torch.Generator:
    """A generator whose stream follows from the key alone."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


def bernoulli(grey: Tensor, generator: torch.Generator) -> Tensor:
    """Exact Bernoulli(v / 255) draws for grey values ``v``, both in ``uint8``."""
    # of 255 equally likely numbers, v are below v
    noise = torch.randint(255, grey.shape, generator=generator, dtype=torch.uint8)
    return (noise < grey).view(torch.uint8)


def _pixels(images: Tensor, binarise: Binarisation) -> Tensor:
    """What is kept of the images: that of the binarisation which is done once and for all."""
    if images.dtype != torch.uint8 or images.dim() < 2:
        raise TypeError(
            "expected grey values as a uint8 tensor of shape (N, *pixels), but got "
            f"{images.dtype} of shape {tuple(images.shape)}."
        )
    if binarise not in (options := get_args(Binarisation)):
        names = ", ".join(options)
        raise ValueError(f"expected `binarise` to be one of {names}, but got {binarise!r}.")
    if binarise == "static":
        return bernoulli(images, keyed_generator("static"))
    return (images > 127).to(torch.uint8) if binarise == "threshold" else images.contiguous()
