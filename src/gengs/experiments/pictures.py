"""Many small images as one picture, and a picture as a PNG file.

A grid is filled row by row, with a line of grey between the images. Small images are enlarged by a
whole factor, each pixel a square: nothing is blurred.
"""

from __future__ import annotations

__all__ = ["beside", "grid", "png"]

import io

import torch
from torch import Tensor

_LINE = 0.5
_LEAST_SIDE = 56  # pixels on the screen


def grid(images: Tensor, columns: int = 10) -> Tensor:
    """Images ``(N, height, width)`` with values in [0, 1] as one picture, ``uint8``.

    Example:
        >>> grid(torch.rand(20, 28, 28), columns=10).shape  # enlarged twice, with lines between
        torch.Size([114, 578])
    """
    if images.dim() != 3 or not len(images):
        raise ValueError(f"expected images (N, height, width), but got {tuple(images.shape)}.")
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    factor = max(1, -(-_LEAST_SIDE // max(images.shape[1:])))
    images = images.repeat_interleave(factor, 1).repeat_interleave(factor, 2)
    height, width = images.shape[1:]
    line = 2
    canvas = torch.full((rows * (height + line) + line, columns * (width + line) + line), _LINE)
    for k, image in enumerate(images):
        top = line + (k // columns) * (height + line)
        left = line + (k % columns) * (width + line)
        canvas[top : top + height, left : left + width] = image
    return (canvas[line:-line, line:-line].clamp(0, 1) * 255).round().to(torch.uint8)


def beside(upper: Tensor, lower: Tensor, columns: int = 10) -> Tensor:
    """Two sets of images in alternating rows of ``columns``: originals over reconstructions."""
    rows = [
        part
        for pair in zip(upper.split(columns), lower.split(columns), strict=True)
        for part in pair
    ]
    return torch.cat(rows)


def png(picture: Tensor) -> bytes:
    """A picture of grey values, ``uint8`` of shape ``(height, width)``, as a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture.numpy()).save(buffer, "png", optimize=True)
    return buffer.getvalue()
