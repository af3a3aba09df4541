"""Image data sets, as grey values in memory.

=================  ==================================================  =======  ======  ======
name               what                                                size     train   test
=================  ==================================================  =======  ======  ======
digits             scikit-learn's handwritten digits, embedded         8 x 8     1,497     300
mnist              MNIST                                               28 x 28  60,000  10,000
static-mnist       MNIST binarised once (Salakhutdinov & Murray)       28 x 28  50,000  10,000
omniglot           OMNIGLOT, reduced from the originals, 15 of 20      28 x 28  24,345   8,115
                   drawers of each character for training
omniglot-burda     OMNIGLOT as in Burda et al. (``chardata.mat``)      28 x 28  24,345   8,070
=================  ==================================================  =======  ======  ======

The two OMNIGLOT versions differ in resampling and split: their likelihoods cannot be compared.
"""

from __future__ import annotations

__all__ = ["IMAGE_SETS", "ImageSet", "load_images"]

import difflib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .archive import RemoteFile, fetch
from .batches import keyed_generator
from .idx import read_idx

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


def _mnist_file(name: str, sha256: str, size: int) -> RemoteFile:
    urls = tuple(mirror + name for mirror in _MIRRORS)
    return RemoteFile(f"mnist/{name}", f"sha256:{sha256}", urls, "MNIST", size)


def _static_file(part: str, sha256: str, size: int) -> RemoteFile:
    name, origin = f"binarized_mnist_{part}.mat", "published with Yin & Zhou's ARM"
    return RemoteFile(f"binarized_mnist/{name}", f"sha256:{sha256}", (), origin, size)


MNIST = (
    _mnist_file(
        "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9_912_422,
    ),
    _mnist_file(
        "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        1_648_877,
    ),
)
STATIC_MNIST = (
    _static_file(
        "train", "79a0312c7389d855cfc97e3812de3998417c5829d8a51543b56a90a91252ae7e", 2_852_060
    ),
    _static_file(
        "test", "5bc30222e1e7896cbccd1e1db6b28540cc1230f4d2d5473841a5f6cc54be8d38", 490_132
    ),
)
OMNIGLOT = RemoteFile(
    "omniglot/omniglot28.npz",
    "sha256:25857ac305cd8525b12ecabba6bf5cd10bd96812e27435666a4fcf38f674e92d",
    origin="reduced from the images of Lake et al.",
    size=5_169_339,
)
OMNIGLOT_BURDA = RemoteFile(
    "omniglot/chardata.mat",
    "md5:21ecaf34373511aa7691cf2e0802aa3d",
    ("https://github.com/yburda/iwae/raw/master/datasets/OMNIGLOT/chardata.mat",),
    "Burda et al.",
)


@dataclass(frozen=True)
class ImageSet:
    """Images for training and for testing."""

    name: str
    """What they are called."""
    train: Tensor
    """Grey values from 0 to 255, ``uint8``, ``(N, pixels)``, ink bright."""
    test: Tensor
    """Likewise."""
    shape: tuple[int, int]
    """Height and width of an image."""

    @property
    def pixels(self) -> int:
        """How many pixels an image has."""
        return self.train.shape[1]

    def take(self, train: int | None = None, test: int | None = None, seed: int = 0) -> ImageSet:
        """A smaller set: so many random images of each part (the same for the same seed)."""
        return replace(
            self,
            train=_choose(self.train, train, "train", seed),
            test=_choose(self.test, test, "test", seed),
        )


def load_images(name: str = "digits", data_dir: str | Path | None = None) -> ImageSet:
    """An image set by name.

    Args:
        name: digits (embedded), mnist, static-mnist, omniglot or omniglot-burda.
        data_dir: Where to look for files first, instead of the folder in ``GENGS_DATA``.

    Example:
        >>> digits = load_images("digits")
        >>> digits.train.shape, digits.test.shape, digits.shape
        (torch.Size([1497, 64]), torch.Size([300, 64]), (8, 8))
    """
    if name not in IMAGE_SETS:
        near = difflib.get_close_matches(name, IMAGE_SETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(
            f"there is no image set {name!r}; {hint}The sets are: {', '.join(IMAGE_SETS)}."
        )
    train, test = IMAGE_SETS[name](data_dir)
    shape = (train.shape[1], train.shape[2])
    return ImageSet(name, train.flatten(1), test.flatten(1), shape)


def _digits(_: str | Path | None) -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    values = load_digits().images * (255 / 16)  # 0 to 16: how many of 4 x 4 pixels had ink
    images = torch.from_numpy(values.round().astype(np.uint8))
    images = images[torch.randperm(len(images), generator=keyed_generator("digits"))]
    return images[:-300], images[-300:]


def _mnist(data_dir: str | Path | None) -> tuple[Tensor, Tensor]:
    train, test = (fetch(file, data_dir) for file in MNIST)
    return read_idx(train, (60_000, 28, 28)), read_idx(test, (10_000, 28, 28))


def _static_mnist(data_dir: str | Path | None) -> tuple[Tensor, Tensor]:
    train, test = (fetch(file, data_dir) for file in STATIC_MNIST)
    return tuple(
        grey_values(read_mat(path, "X"), (count, 784), path, highest=1).reshape(-1, 28, 28)
        for path, count in ((train, 50_000), (test, 10_000))
    )  # type: ignore[return-value]


def _omniglot(data_dir: str | Path | None) -> tuple[Tensor, Tensor]:
    path = fetch(OMNIGLOT, data_dir)
    train, test = (read_npz(path, f"{part}_images") for part in ("train", "test"))
    return (
        grey_values(train, (24_345, 28, 28), path, highest=255),
        grey_values(test, (8_115, 28, 28), path, highest=255),
    )


def _omniglot_burda(data_dir: str | Path | None) -> tuple[Tensor, Tensor]:
    path = fetch(OMNIGLOT_BURDA, data_dir)
    parts = []
    for variable, count in (("data", 24_345), ("testdata", 8_070)):
        columns = grey_values(read_mat(path, variable), (784, count), path, highest=1)
        parts.append(columns.T.reshape(-1, 28, 28).mT.contiguous())  # MATLAB runs down the columns
    return parts[0], parts[1]


IMAGE_SETS: dict[str, Callable[[str | Path | None], tuple[Tensor, Tensor]]] = {
    "digits": _digits,
    "mnist": _mnist,
    "static-mnist": _static_mnist,
    "omniglot": _omniglot,
    "omniglot-burda": _omniglot_burda,
}
"""The loaders by name: from a data folder to images for training and testing."""


def read_mat(path: str | Path, variable: str) -> Any:
    """One array of a MATLAB file."""
    from scipy.io import loadmat

    try:
        with Path(path).open("rb") as file:
            return loadmat(file, variable_names=[variable])[variable]
    except FileNotFoundError:
        raise
    except KeyError:
        raise ValueError(f"{path} has no variable {variable!r}.") from None
    except Exception as error:  # scipy has no one kind of error for a damaged file
        raise ValueError(f"{path} cannot be read as a MATLAB file ({error}).") from None


def read_npz(path: str | Path, name: str) -> Any:
    """One array of a numpy archive; an array of Python objects is refused."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return archive[name]
    except FileNotFoundError:
        raise
    except KeyError:
        raise ValueError(f"{path} has no array {name!r}.") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as a numpy archive ({error}).") from None


def grey_values(array: Any, shape: tuple[int, ...], path: Path, highest: float) -> Tensor:
    """An array of intensities from 0 to ``highest`` as grey values from 0 to 255."""
    array = np.asarray(array)
    if array.shape != shape or array.dtype.kind not in "uif":
        raise ValueError(
            f"{path} holds {array.dtype} of shape {array.shape}, "
            f"but numbers of shape {shape} were expected."
        )
    if not (array.min() >= 0 and array.max() <= highest):
        raise ValueError(
            f"{path} holds values from {array.min()} to {array.max()}, "
            f"but 0 to {highest} was expected."
        )
    if array.dtype != np.uint8 or highest != 255:
        array = (array * (255 / highest)).round().astype(np.uint8)
    return torch.from_numpy(np.ascontiguousarray(array))


def _choose(images: Tensor, count: int | None, part: str, seed: int) -> Tensor:
    if count is None:
        return images
    if not 1 <= count <= len(images):
        raise ValueError(f"expected 1 to {len(images)} images for {part}, but got {count}.")
    generator = keyed_generator("subset", part, seed)
    return images[torch.randperm(len(images), generator=generator)[:count]]
