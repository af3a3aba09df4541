"""Image data sets, as grey values in memory.

=================  ==================================================  =======  ======  ======
name               what                                                size     train   test
=================  ==================================================  =======  ======  ======
digits             scikit-learn's handwritten digits, embedded         8 x 8     1,497     300
mnist              MNIST                                               28 x 28  60,000  10,000
fashion-mnist      pictures of clothes (Zalando Research)              28 x 28  60,000  10,000
static-mnist       MNIST binarised once (Salakhutdinov & Murray)       28 x 28  50,000  10,000
omniglot           OMNIGLOT, reduced from the originals, 15 of 20      28 x 28  24,345   8,115
                   drawers of each character for training
omniglot-burda     OMNIGLOT as in Burda et al. (``chardata.mat``)      28 x 28  24,345   8,070
=================  ==================================================  =======  ======  ======

The two OMNIGLOT versions differ in resampling and split: their likelihoods cannot be compared. No
loader sees a file before its checksum was compared, so that what is in it is known.
"""

from __future__ import annotations

__all__ = ["IMAGE_SETS", "ImageSet", "load_images"]

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..runs.config import nearest
from .archive import fetch_all
from .batches import keyed_generator
from .own_images import is_path, load_own_images, read_idx

Parts = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ImageSet:
    """Images for training and for testing."""

    name: str
    """As it was asked for: that of a published set, or a path."""
    train: Tensor
    """Grey values from 0 to 255, ``uint8``, ``(N, pixels)``, ink bright."""
    test: Tensor
    shape: tuple[int, int]
    """Height and width of an image."""
    held_out: bool = False
    """Whether nothing was set apart for testing, and a tenth was held out of your own images."""

    @property
    def pixels(self) -> int:
        return self.train.shape[1]

    @property
    def checksum(self) -> str:
        """Of all images: tells whether a file of your own is still the same."""
        digest = hashlib.sha256(repr((self.shape, len(self.train))).encode())
        for part in (self.train, self.test):
            digest.update(part.numpy().tobytes())
        return digest.hexdigest()

    def take(self, train: int | None = None, test: int | None = None, seed: int = 0) -> ImageSet:
        """A smaller set: so many random images of each part (the same for the same seed)."""
        chosen = {}
        for part, count in (("train", train), ("test", test)):
            images = getattr(self, part)
            if count is not None and not 1 <= count <= len(images):
                raise ValueError(f"expected 1 to {len(images)} images for {part}, but got {count}.")
            order = torch.randperm(len(images), generator=keyed_generator("subset", part, seed))
            chosen[part] = images if count is None else images[order[:count]]
        return replace(self, **chosen)


def load_images(name: str = "digits", data_dir: str | Path | None = None) -> ImageSet:
    """An image set by name, or images of your own (:mod:`.own_images`).

    Args:
        name: digits (embedded), mnist, fashion-mnist, static-mnist, omniglot or omniglot-burda; or
            a path: an .npz or .npy file, a folder of PNG files or of idx files, an idx file.
            Arrays in an .npz file are named train and test, or x_train and x_test, or train_images
            and test_images; of a single array (or folder, or idx file) a tenth is held out.
        data_dir: Where to look for files first, instead of the folder in ``GENGS_DATA``.

    Example:
        >>> digits = load_images("digits")
        >>> digits.train.shape, digits.test.shape, digits.shape
        (torch.Size([1497, 64]), torch.Size([300, 64]), (8, 8))
    """
    held_out = False
    if name in IMAGE_SETS:
        train, test = IMAGE_SETS[name](*fetch_all(name, data_dir))
    elif is_path(name):
        train, test, held_out = load_own_images(name)
    else:
        raise ValueError(f"there is no image set or file {name!r}{nearest(name, IMAGE_SETS)}")
    size = (train.shape[1], train.shape[2])
    return ImageSet(name, train.flatten(1), test.flatten(1), size, held_out)


def _digits() -> Parts:
    from sklearn.datasets import load_digits

    images = _grey(load_digits().images, highest=16)  # how many of 4 x 4 pixels had ink
    images = images[torch.randperm(len(images), generator=keyed_generator("digits"))]
    return images[:-300], images[-300:]


def _static_mnist(train: Path, test: Path) -> Parts:
    return _mat(train, "X").reshape(-1, 28, 28), _mat(test, "X").reshape(-1, 28, 28)


def _omniglot(path: Path) -> Parts:
    with np.load(path, allow_pickle=False) as arrays:
        return _grey(arrays["train_images"]), _grey(arrays["test_images"])


def _omniglot_burda(path: Path) -> Parts:
    # an image is a column of the file, and MATLAB runs down its columns
    train, test = (_mat(path, name).T.reshape(-1, 28, 28).mT for name in ("data", "testdata"))
    return train.contiguous(), test.contiguous()


IMAGE_SETS: dict[str, Callable[..., Parts]] = {
    "digits": _digits,
    "mnist": lambda train, test: (_idx(train), _idx(test)),
    "fashion-mnist": lambda train, test: (_idx(train), _idx(test)),
    "static-mnist": _static_mnist,
    "omniglot": _omniglot,
    "omniglot-burda": _omniglot_burda,
}
"""The readers by name: from the files of a set to images for training and testing."""


def _idx(path: Path) -> Tensor:
    return torch.from_numpy(read_idx(path).copy())


def _mat(path: Path, variable: str) -> Tensor:
    """One array of a MATLAB file, of intensities from 0 to 1."""
    from scipy.io import loadmat

    return _grey(loadmat(path, variable_names=[variable])[variable], highest=1)


def _grey(array: Any, highest: int = 255) -> Tensor:
    """Intensities from 0 to ``highest`` as grey values from 0 to 255."""
    if highest != 255:
        array = (array * (255 / highest)).round()
    return torch.from_numpy(np.ascontiguousarray(array, np.uint8))
