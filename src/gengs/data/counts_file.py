"""A sparse matrix in a numpy archive, as ``scipy.sparse.save_npz`` writes it."""

from __future__ import annotations

__all__ = ["read_counts"]

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse


def read_counts(path: str | Path) -> scipy.sparse.csr_array:
    """The matrix, by rows; an archive with Python objects in it is refused.

    Raises:
        ValueError: If the file is damaged, or holds something else.
    """
    try:
        with Path(path).open("rb") as file:
            matrix = scipy.sparse.load_npz(file)  # never unpickles
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    # SciPy has no one kind of error for a damaged file
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read as a sparse matrix of scipy.sparse.save_npz ({error})."
        ) from None
    matrix = scipy.sparse.csr_array(matrix)
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{path} holds a matrix that is not sound ({error}).") from None
    if matrix.dtype.kind not in "uifb":
        raise ValueError(f"expected counts in {path}, but got {matrix.dtype}.")
    return matrix.astype(np.float32)
