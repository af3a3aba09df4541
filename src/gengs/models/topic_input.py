"""What people pass to ``TopicModel`` as documents, as compressed rows that were checked.

Arrays, data frames and SciPy matrices are checked whole, by scikit-learn's rules. A corpus, which
may be on disk and larger than memory, is checked batch by batch as it is read.
"""

from __future__ import annotations

__all__ = ["counts_of", "in_order"]

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_non_negative, validate_data
from torch import Tensor

from ..data.sparse_batches import CompressedRows, SparseBatches

# documents that are made dense at once
_ROWS = 256


def counts_of(model: Any, X: Any, reset: bool) -> CompressedRows:
    """The counts by rows; with ``reset``, the model notes how many words there are, and which.

    Args:
        model: The ``TopicModel``.
        X: The documents.
        reset: Whether these are the first documents that the model sees.
    """
    if hasattr(X, "indptr") and not scipy.sparse.issparse(X):
        if reset:
            model.n_features_in_ = X.shape[1]
            model.__dict__.pop("feature_names_in_", None)
        elif X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"expected {model.n_features_in_} words in `X`, but it has {X.shape[1]}."
            )
        counts = X
    else:
        X = validate_data(model, X, accept_sparse="csr", dtype="numeric", reset=reset)
        check_non_negative(X, "TopicModel")
        if X.dtype == np.float16:  # SciPy has no sparse matrices of it
            X = X.astype(np.float32)
        counts = scipy.sparse.csr_array(X)
    if reset:
        names = getattr(X, "vocabulary", getattr(model, "feature_names_in_", None))
        model.vocabulary_ = None if names is None else [str(name) for name in names]
    return counts


def in_order(counts: CompressedRows) -> Iterator[Tensor]:
    """All documents, dense, in batches."""
    return SparseBatches(counts, min(_ROWS, counts.shape[0]), shuffle=False).epoch(0)
