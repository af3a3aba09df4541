"""What ``TopicModel`` takes for documents: arrays, data frames, SciPy matrices, a corpus on disk.

Arrays, data frames and SciPy matrices are checked whole, by scikit-learn's rules. A corpus, which
may be on disk and larger than memory, is checked batch by batch as it is read.
"""

__all__ = ["column_words", "read_counts_of"]

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_non_negative, validate_data

from gengs_experiments.data.sparse_rows import CompressedRows


def read_counts_of(model: Any, X: Any, reset: bool) -> CompressedRows:
    """The documents that a user gave to a model, by rows.

    With ``reset`` the model notes how many words there are, and which; else other words than it has
    seen, like what is negative, are a ``ValueError``. Fractions, such as tf-idf, are warned of,
    whatever they are for; the values of a corpus are known to be counts.
    """
    if hasattr(X, "indptr") and not scipy.sparse.issparse(X):
        counts = X
        if reset:
            model.n_features_in_ = X.shape[1]
            model.__dict__.pop("feature_names_in_", None)
        elif X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"expected {model.n_features_in_} words in `X`, but it has {X.shape[1]}."
            )
    else:
        X = validate_data(model, X, accept_sparse="csr", dtype="numeric", reset=reset)
        check_non_negative(X, type(model).__name__)
        # SciPy has no sparse matrices of half precision
        counts = scipy.sparse.csr_array(X.astype(np.float32) if X.dtype == np.float16 else X)
        _warn_of_fractions(counts.data)
    if reset:
        names = getattr(X, "vocabulary", getattr(model, "feature_names_in_", None))
        model.vocabulary_ = None if names is None else [str(name) for name in names]
    return counts


def _warn_of_fractions(values: Any) -> None:
    fractions = values[np.trunc(values) != values]
    if len(fractions):
        warnings.warn(
            f"expected counts of words in `X`, but got {fractions[0]:.4g}: weights such as tf-idf "
            "give topics, but their perplexity means nothing.",
            stacklevel=4,
        )


def column_words(model: Any, vocabulary: Sequence[str] | None) -> list[str]:
    """The words of the columns: these, those that the data brought, or numbers."""
    words = model.vocabulary_ if vocabulary is None else [str(word) for word in vocabulary]
    if words is None:
        return [f"x{column}" for column in range(model.n_features_in_)]
    if len(words) != model.n_features_in_:
        raise ValueError(
            f"expected {model.n_features_in_} words in `vocabulary`, but got {len(words)}."
        )
    return words
