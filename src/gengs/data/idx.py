"""The idx format of the MNIST files: a magic number, the sizes, the bytes.

Bytes 0 and 1 are zero, byte 2 is the type (8: unsigned bytes), byte 3 the number d of dimensions;
then d sizes as big-endian 32-bit integers; then the values, the last dimension running fastest.
Here always inside gzip.
"""

from __future__ import annotations

__all__ = ["read_idx"]

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def read_idx(path: str | Path, shape: tuple[int, ...]) -> Tensor:
    """The values of a gzipped idx file, ``uint8``.

    Args:
        path: The file.
        shape: The sizes it must have; -1 for any. They are checked before the values are read, so
            that a wrong file cannot fill the memory.
    """
    try:
        with gzip.open(path) as file:
            magic = file.read(4)
            if magic != bytes([0, 0, 8, len(shape)]):
                raise ValueError(
                    f"{path} is not an idx file of bytes in {len(shape)} dimensions: it starts with"
                    f" {magic.hex(' ') or 'nothing'} instead of 00 00 08 {len(shape):02x}."
                )
            sizes = tuple(np.frombuffer(file.read(4 * len(shape)), ">u4").tolist())
            good = len(sizes) == len(shape) and all(
                want in (-1, size) for want, size in zip(shape, sizes, strict=True)
            )
            if not good:
                raise ValueError(f"{path} has shape {sizes}, but {shape} was expected.")
            values = file.read(math.prod(sizes))
            rest = file.read(1)
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise ValueError(f"{path} is a truncated or damaged gzip file ({error}).") from None
    if len(values) != math.prod(sizes) or rest:
        found = "more" if rest else f"{len(values):,}"
        raise ValueError(f"{path} has {found} values where {math.prod(sizes):,} were expected.")
    return torch.frombuffer(bytearray(values), dtype=torch.uint8).reshape(sizes)
