"""Many small images as one picture.

A grid is filled row by row, with a line of grey between the images. Small images are enlarged by a
whole factor, each pixel a square: nothing is blurred.
"""

from __future__ import annotations

__all__ = ["beside", "grid"]

import torch
from torch import Tensor
from torch.nn.functional import pad

_LINE, _GREY = 2, 0.5
_LEAST_SIDE = 56  # pixels on the screen


def grid(images: Tensor, columns: int = 10) -> Tensor:
    """Images ``(N, height, width)`` with values in [0, 1] as one picture, ``uint8``.

    Example:
        >>> grid(torch.rand(20, 28, 28), columns=10).shape  # enlarged twice, with lines between
        torch.Size([114, 578])
    """
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    factor = max(1, -(-_LEAST_SIDE // max(images.shape[1:])))
    tiles = images.repeat_interleave(factor, 1).repeat_interleave(factor, 2)
    missing = rows * columns - len(images)
    tiles = pad(tiles, (0, _LINE, 0, _LINE, 0, missing), value=_GREY)
    tiles = tiles.unflatten(0, (rows, columns)).movedim(2, 1)  # rows, height, columns, width
    canvas = tiles.flatten(2).flatten(0, 1)[:-_LINE, :-_LINE]
    return (canvas.clamp(0, 1) * 255).round().to(torch.uint8)


def beside(upper: Tensor, lower: Tensor, columns: int = 10) -> Tensor:
    """Two sets of images in alternating rows of ``columns``: originals over reconstructions."""
    pairs = zip(upper.split(columns), lower.split(columns), strict=True)
    return torch.cat([part for pair in pairs for part in pair])
