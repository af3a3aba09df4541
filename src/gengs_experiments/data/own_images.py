"""Images of your own: from a file or a folder to what ``gengs vae --data`` trains on.

=====================  ============================================================================
path                   what is in it
=====================  ============================================================================
``images.npz``         arrays ``train`` and ``test`` (or ``x_train`` and ``x_test``, or
                       ``train_images`` and ``test_images``), or one array
``images.npy``         one array
``folder/``            PNG files of one size, or such files in ``folder/train`` and ``folder/test``
``folder/``            idx files like MNIST's: ``train-images-idx3-ubyte`` and
                       ``t10k-images-idx3-ubyte``, gzipped or not
``images-idx3-ubyte``  one idx file, gzipped or not
=====================  ============================================================================

An array has the shape ``(N, height, width)``, with or without one channel, or ``(N, pixels)``; its
values are 0 to 255, or fractions from 0 to 1, or ``False`` and ``True``. Where no images are set
apart for testing, a tenth of them is held out: which ones depends on their number alone.

Files are read as data: an array of Python objects, which could run code, is refused.
"""

from __future__ import annotations

__all__ = ["is_path", "load_own_images", "read_idx"]

import gzip
import math
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .batches import keyed_generator

_PAIRS = (("train", "test"), ("x_train", "x_test"), ("train_images", "test_images"))
_BEGINNINGS = (b"PK", b"\x93NUMPY")
_IDX = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
_LARGEST_SIDE = 4096  # pixels: a PNG of a few bytes may claim any size
_IDX_HEAD = bytes([0, 0, 8, 3])  # bytes, in three dimensions


def is_path(name: str) -> bool:
    """Whether it is meant as a file or a folder, not as the name of a set."""
    return "/" in name or "\\" in name or "." in name or Path(name).exists()


def load_own_images(path: str | Path) -> tuple[Tensor, Tensor, bool]:
    """Images for training and testing, grey values ``uint8 (N, height, width)``.

    The last value says whether those for testing were held out here.

    Raises:
        ValueError: If they cannot be read as grey images, in one sentence.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"there are no images at {path}: no such file or folder.")
    parts = _folder(path) if path.is_dir() else _file(path)
    images = [_grey(array, where) for array, where in parts]
    held_out = len(images) == 1
    if held_out:
        images = list(_held_out(images[0], path))
    train, test = images
    if train.shape[1:] != test.shape[1:]:
        raise ValueError(
            f"expected images of one size in {path}, but those for training have "
            f"{_size(train)} pixels and those for testing {_size(test)}."
        )
    return train, test, held_out


def _file(path: Path) -> list[tuple[np.ndarray, str]]:
    if path.suffix not in (".npz", ".npy"):
        return [(read_idx(path), str(path))]
    try:
        with path.open("rb") as file:
            if not file.read(6).startswith(_BEGINNINGS):  # NumPy takes anything else for a pickle
                raise ValueError("it begins with neither an archive's nor an array's bytes.")
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
            arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged, or no {path.suffix[1:]} file: {error}") from error
    except ValueError as error:
        if "pickle" in str(error):
            raise ValueError(
                f"{path} holds Python objects, which could run code: save plain numbers."
            ) from error
        raise ValueError(f"{path} is damaged, or no {path.suffix[1:]} file: {error}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"expected arrays in {path}, but {name} in it is none.")
    for pair in _PAIRS:
        if set(pair) <= set(arrays):
            return [(arrays[name], f"{name} of {path}") for name in pair]
    if len(arrays) != 1:
        raise ValueError(
            f"expected one array in {path}, or a pair named train and test, but it has "
            f"{', '.join(sorted(arrays)) or 'none'}."
        )
    return [(array, str(path)) for array in arrays.values()]


def _folder(path: Path) -> list[tuple[np.ndarray, str]]:
    named = [[file for file in (path / name, path / f"{name}.gz") if file.is_file()]
             for name in _IDX]  # fmt: skip
    if all(named):
        return [(read_idx(files[0]), str(files[0])) for files in named]
    if (path / "train").is_dir() and (path / "test").is_dir():
        return [(_pictures(path / part), str(path / part)) for part in ("train", "test")]
    return [(_pictures(path), str(path))]


def _pictures(folder: Path) -> np.ndarray:
    """The PNG files of a folder and those below it, by name."""
    from PIL import Image, UnidentifiedImageError

    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() == ".png")
    if not files:
        raise ValueError(
            f"expected PNG files in {folder}, or the idx files {' and '.join(_IDX)}, but there "
            "are none."
        )
    pictures: list[np.ndarray] = []
    for file in files:
        try:
            with Image.open(file, formats=["PNG"]) as picture:
                width, height = picture.size
                if max(width, height) > _LARGEST_SIDE:
                    raise ValueError(
                        f"expected at most {_LARGEST_SIDE} pixels a side, but {file} says "
                        f"{height} x {width}."
                    )
                if pictures and (height, width) != pictures[0].shape:
                    raise ValueError(
                        f"expected images of one size, but {files[0]} has "
                        f"{' x '.join(map(str, pictures[0].shape))} pixels and {file} "
                        f"{height} x {width}."
                    )
                pictures.append(np.asarray(picture.convert("L")))
        except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as e:
            raise ValueError(f"{file} is damaged, or no PNG file.") from e
    return np.stack(pictures)


def read_idx(path: Path) -> np.ndarray:
    """Images of an idx file: a head of four big-endian integers, then bytes, by rows."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    if content[:4] != _IDX_HEAD or len(content) < 16:
        raise ValueError(
            f"expected an .npz or .npy file, a folder, or an idx file of images, but {path} is "
            "something else."
        )
    sizes = np.frombuffer(content, ">u4", 3, 4).tolist()
    if math.prod(sizes) != len(content) - 16:
        raise ValueError(
            f"{path} is damaged: it should hold {' x '.join(map(str, sizes))} pixels, but holds "
            f"{len(content) - 16:,}."
        )
    return np.frombuffer(content, np.uint8, offset=16).reshape(sizes)


def _grey(array: np.ndarray, where: str) -> Tensor:
    """Any numbers that are grey images, as ``uint8 (N, height, width)``."""
    given = array.shape
    if array.ndim == 4 and 1 in (array.shape[1], array.shape[3]):
        array = array.squeeze(1 if array.shape[1] == 1 else 3)
    if array.ndim == 2:
        side = math.isqrt(array.shape[1])
        array = array.reshape(-1, *((side, side) if side**2 == array.shape[1] else (1, given[1])))
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            "expected grey images of the shape (N, height, width) or (N, pixels), but "
            f"{where} has {tuple(given)}."
        )
    if array.dtype.kind not in "buif":
        raise ValueError(f"expected numbers in {where}, but got the type {array.dtype}.")
    low, high = (float(array.min()), float(array.max()))
    fractions = array.dtype.kind in "bf" and high <= 1
    if not (low >= 0 and high <= 255):  # NaN, too
        raise ValueError(
            f"expected grey values from 0 to 255, or from 0 to 1, but {where} has {low:g} to "
            f"{high:g}."
        )
    if low == high:
        raise ValueError(f"expected images in {where}, but all of its pixels are {low:g}.")
    scaled = (array * 255.0).round() if fractions else np.rint(array)
    return torch.from_numpy(np.ascontiguousarray(scaled, np.uint8))


def _held_out(images: Tensor, path: Path) -> tuple[Tensor, Tensor]:
    """Nine tenths to train on, and one to test on, the same for the same number of images."""
    if len(images) < 2:
        raise ValueError(f"expected at least two images in {path}, but it has {len(images)}.")
    generator = keyed_generator("own", len(images))
    order = torch.randperm(len(images), generator=generator)
    held = max(1, len(images) // 10)
    return images[order[held:]], images[order[:held]]


def _size(images: Tensor) -> str:
    return " x ".join(map(str, images.shape[1:]))
