"""A corpus on disk: written document by document, read without reading it.

The arrays grow as documents come, in a folder with a temporary name, which takes its own when all
is whole: whoever finds the folder finds a complete corpus. Memory holds one batch of documents.
"""

from __future__ import annotations

__all__ = ["CorpusWriter", "read_folder"]

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..study.atomic import temporary_name, write_atomically

_FORMAT, _VERSION = "gengs corpus", 1
_ARRAYS = ("indptr", "indices", "data")


class GrowingArray:
    """A ``.npy`` file that is appended to, row by row; its header is put right at the end.

    Args:
        path: The file.
        dtype: Of its entries.
        width: The length of a row; none for an array of one dimension.
    """

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width, self.length = np.dtype(dtype), width, 0
        self.file = path.open("wb")
        self._write_header()
        self._begin = self.file.tell()

    def append(self, values: Any) -> None:
        """Add values at the end."""
        array = np.ascontiguousarray(values, dtype=self.dtype)
        self.file.write(array.tobytes())
        self.length += len(array)

    def close(self) -> None:
        """Write the length, and force all to the disk."""
        self.file.seek(0)
        self._write_header()
        if self.file.tell() != self._begin:  # numpy leaves room for the digits of any length
            raise OSError("the header of a .npy file has changed its size.")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def _write_header(self) -> None:
        header = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.length,) if self.width is None else (self.length, self.width),
        }
        np.lib.format.write_array_header_1_0(self.file, header)


class CorpusWriter:
    """Writes a corpus to a new folder; a context manager.

    Args:
        folder: Where; it must not exist, or be empty.

    Leaving the context before :meth:`finish` (by an error) removes what was written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise FileExistsError(f"expected a new folder for the corpus, but {folder} exists.")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.temporary = temporary_name(self.folder)
        shutil.rmtree(self.temporary, ignore_errors=True)  # what a killed process left
        self.temporary.mkdir()
        self._indptr = GrowingArray(self.temporary / "indptr.npy", np.int64)
        self._indices = GrowingArray(self.temporary / "indices.npy", np.int32)
        self._data = GrowingArray(self.temporary / "data.npy", np.float32)
        self._indptr.append([0])
        self.tokens = 0.0

    def __len__(self) -> int:
        """How many documents have been written."""
        return self._indptr.length - 1

    def append(self, words: Any, counts: Any) -> None:
        """Add a document: the columns of its words and their counts."""
        self.append_many([len(words)], words, counts)

    def append_many(self, sizes: Any, words: Any, counts: Any) -> None:
        """Add documents of ``sizes`` distinct words, one after another in ``words``."""
        self._indptr.append(self._indices.length + np.cumsum(np.asarray(sizes, np.int64)))
        self._indices.append(words)
        self._data.append(counts)
        self.tokens += float(np.sum(counts, dtype=np.float64))

    def finish(
        self,
        vocabulary: Sequence[str],
        labels: Any = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        """Give the folder its name."""
        for array in (self._indptr, self._indices, self._data):
            array.close()
        if labels is not None:
            growing = GrowingArray(self.temporary / "labels.npy", np.int64)
            growing.append(labels)
            growing.close()
        facts = {
            "format": _FORMAT,
            "version": _VERSION,
            "documents": len(self),
            "words": len(vocabulary),
            "nonzeros": self._indices.length,
            "tokens": self.tokens,
            "label_names": None if label_names is None else list(label_names),
        }
        words = json.dumps(list(vocabulary), indent=0)
        write_atomically(self.temporary / "vocabulary.json", words.encode())
        write_atomically(self.temporary / "corpus.json", (json.dumps(facts) + "\n").encode())
        self.temporary.rename(self.folder)

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for array in (self._indptr, self._indices, self._data):
            array.file.close()
        shutil.rmtree(self.temporary, ignore_errors=True)


def read_folder(
    folder: Path,
) -> tuple[Any, Any, Any, list[str], Any, list[str] | None]:
    """The mapped arrays ``indptr``, ``indices``, ``data``, the vocabulary, labels and their names.

    Raises:
        ValueError: If the folder holds no corpus, or a damaged one.
    """
    facts = _read_json(folder, "corpus.json")
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise ValueError(f"{folder / 'corpus.json'} does not describe a corpus.")
    if facts.get("version") != _VERSION:
        raise ValueError(
            f"expected version {_VERSION} of a corpus in {folder}, but got {facts.get('version')}."
        )
    vocabulary = _read_json(folder, "vocabulary.json")
    indptr, indices, data = (_map(folder, name) for name in _ARRAYS)
    labels = _map(folder, "labels") if (folder / "labels.npy").exists() else None
    whole = (
        len(indptr) == facts["documents"] + 1
        and len(indices) == len(data) == facts["nonzeros"]
        and int(indptr[-1]) == facts["nonzeros"]
        and isinstance(vocabulary, list)
        and len(vocabulary) == facts["words"]
    )
    if not whole:
        raise ValueError(f"the corpus in {folder} is damaged: its parts do not fit together.")
    if facts["nonzeros"] < 1 << 31:
        # SciPy wants both kinds of index to be of one type, and would copy the longer array
        indptr = indptr.astype(np.int32)
    return indptr, indices, data, vocabulary, labels, facts["label_names"]


def _read_json(folder: Path, name: str) -> Any:
    try:
        return json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{folder} is not the folder of a corpus: no {name}.") from None
    except ValueError as error:
        raise ValueError(f"{folder / name} is damaged: {error}") from None


def _map(folder: Path, name: str) -> Any:
    path = folder / f"{name}.npy"
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"the corpus in {folder} is damaged: {path.name}: {error}") from None
