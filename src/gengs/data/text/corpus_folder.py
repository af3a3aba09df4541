"""A corpus on disk: written block by block, read as a memory map.

The arrays grow as documents come, in a folder with a temporary name, which takes its own when all
is whole: whoever finds the folder finds a complete corpus. Memory holds one block of documents.
"""

from __future__ import annotations

__all__ = ["read_folder", "write_folder"]

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ...runs.atomic import temporary_name, write_atomically

_KIND = {"format": "gengs corpus", "version": 1}
_ARRAYS = {"indptr": "<i8", "indices": "<i4", "data": "<f4"}
_HEADER = 128  # bytes: numpy pads the header of such an array, so that any length fits into it


def write_folder(
    folder: str | Path,
    blocks: Iterable[Any],
    vocabulary: Sequence[str],
    labels: Any = None,
    label_names: Sequence[str] | None = None,
) -> None:
    """Write a corpus to a new or empty folder, which appears when it is whole.

    ``blocks`` are the counts of successive documents, as sparse matrices by rows.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"expected a new folder for the corpus, but {folder} exists.")
    temporary = temporary_name(folder)
    shutil.rmtree(temporary, ignore_errors=True)  # what a killed process left
    temporary.mkdir(parents=True)
    try:
        documents, entries = _write_arrays(temporary, blocks)
        if labels is not None:
            np.save(temporary / "labels.npy", np.asarray(labels, np.int64))
        facts = {
            **_KIND,
            "documents": documents,
            "words": len(vocabulary),
            "nonzeros": entries,
            "label_names": None if label_names is None else list(label_names),
        }
        for name, content in (("vocabulary", list(vocabulary)), ("corpus", facts)):
            text = json.dumps(content, indent=0) + "\n"
            write_atomically(temporary / f"{name}.json", text.encode())
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_arrays(folder: Path, blocks: Iterable[Any]) -> tuple[int, int]:
    """Append blocks to the arrays, and say how many documents and entries there were."""
    documents = entries = 0
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{name}.npy").open("wb")) for name in _ARRAYS]
        for file in files:
            file.write(bytes(_HEADER))
        files[0].write(bytes(8))  # where the first document begins
        for rows in blocks:
            parts = rows.indptr[1:].astype(np.int64) + entries, rows.indices, rows.data
            for part, dtype, file in zip(parts, _ARRAYS.values(), files, strict=True):
                part.astype(dtype).tofile(file)
            documents, entries = documents + rows.shape[0], entries + rows.nnz
        lengths = documents + 1, entries, entries
        for file, dtype, length in zip(files, _ARRAYS.values(), lengths, strict=True):
            file.seek(0)
            facts = {"descr": dtype, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(file, facts)
            file.flush()
            os.fsync(file.fileno())
    return documents, entries


def read_folder(folder: Path) -> tuple[Any, list[str], Any, list[str] | None]:
    """The counts, as a matrix on mapped arrays, the vocabulary, the labels and their names."""
    if not (folder / "corpus.json").is_file():
        raise ValueError(f"{folder} is not the folder of a corpus: no corpus.json.")
    facts = _part(folder, "corpus.json")
    if not isinstance(facts, dict) or not _KIND.items() <= facts.items():
        kind = "; ".join(f"{name}: {value}" for name, value in _KIND.items())
        raise ValueError(f"{folder / 'corpus.json'} does not describe a corpus ({kind}).")
    vocabulary = list(_part(folder, "vocabulary.json"))
    indptr, indices, data = (_part(folder, f"{name}.npy") for name in ("indptr", "indices", "data"))
    labels = _part(folder, "labels.npy") if (folder / "labels.npy").exists() else None
    sizes = {"documents": len(indptr) - 1, "words": len(vocabulary), "nonzeros": len(data)}
    if not (sizes.items() <= facts.items() and len(data) == len(indices) == indptr[-1]):
        raise ValueError(f"the corpus in {folder} is damaged: its parts do not fit together.")
    counts = scipy.sparse.csr_array((len(indptr) - 1, len(vocabulary)), dtype=data.dtype)
    # Not through the constructor, which would copy mapped arrays. SciPy wants both kinds of index
    # to be of one type, and would copy the longer array for that, too.
    counts.indptr = indptr.astype(np.int32) if len(data) < 1 << 31 else indptr
    counts.indices, counts.data = indices, data
    return counts, vocabulary, labels, facts.get("label_names")


def _part(folder: Path, name: str) -> Any:
    try:
        if name.endswith(".json"):
            return json.loads((folder / name).read_bytes())
        return np.load(folder / name, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"the corpus in {folder} is damaged: {name}: {error}") from None
