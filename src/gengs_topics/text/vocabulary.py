r"""Which words of documents to keep.

Words in too few documents teach nothing, and stop words are both frequent and empty. Words in too
many tell no documents apart: but what too many are depends on the corpus. "graph" in half of a
hundred texts is the theme of these, "returns" in half of them is of no theme. They differ in how
they are spread: a word that occurs :math:`t` times among T would, if it did not care where, be in

.. math:: \sum_d 1 - e^{-t\,n_d / T}

documents of lengths :math:`n_d`. By default, words of more than half of the documents are left out
if they are in more than 0.8 times as many (residual idf, Church & Gale).

Of the others, those in the most documents are kept. That takes a first pass over the documents, and
memory for two numbers for each distinct word. Past ``prune_at`` of them, the rarest are forgotten
again and again, so that a corpus of any size fits; such words could not have been kept anyway.

References:
    | Inverse Document Frequency: A Measure of Deviations from Poisson (Church & Gale, 1995)
"""

__all__ = ["choose_vocabulary"]

from collections import Counter
from collections.abc import Iterable, Set
from math import ceil, exp

_COMMON = 0.5
_EVEN = 0.8


def choose_vocabulary(
    documents: Iterable[Iterable[str]],
    stop_words: Set[str] = frozenset(),
    *,
    min_df: float | None = None,
    max_df: float | None = None,
    size: int = 10_000,
    prune_at: int = 2_000_000,
) -> list[str]:
    """The words to keep, in alphabetical order.

    Args:
        documents: The words of each document; one pass is made.
        stop_words: Words to leave out.
        min_df: Keep words of at least this many documents; below 1, of this share of them. By
            default 5; of fewer than 100 documents, a twentieth of them, but at least 2.
        max_df: Keep words of at most this many documents; up to 1, of this share of them. By
            default a half, and of more than these what is not spread evenly.
        size: Keep at most this many words: those of the most documents.
        prune_at: Forget the rarest words when there are more than this many.

    Raises:
        ValueError: If nothing is left; the message says why.

    Example:
        >>> choose_vocabulary([["a", "b", "b"], ["a", "c"], ["a", "b"]], min_df=2, max_df=0.9)
        ['b']
    """
    for name, value, lowest in (("min_df", min_df, 0), ("max_df", max_df, 0), ("size", size, 1)):
        if value is not None and not value >= lowest:
            raise ValueError(f"expected `{name}` of at least {lowest}, but got {value}.")
    frequency: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    total, floor = 0, 0
    for words in documents:
        counts = Counter(words)
        total += 1
        lengths[counts.total()] += 1
        frequency.update(counts.keys())
        occurrences.update(counts)
        while len(frequency) > prune_at:
            floor += 1
            frequency = Counter({word: n for word, n in frequency.items() if n > floor})
            occurrences = Counter({word: occurrences[word] for word in frequency})
    if not total:
        raise ValueError("expected documents, but there are none.")
    if min_df is None:
        min_df = min(5, max(2, ceil(total / 20)))
    least = min_df * total if min_df < 1 else min_df
    share = _COMMON if max_df is None else max_df
    greatest = share * total if share <= 1 else share
    rest = {word: n for word, n in frequency.items() if word not in stop_words}
    kept = {
        word: n
        for word, n in rest.items()
        if n >= least
        and (n <= greatest or (max_df is None and n <= _EVEN * _spread(occurrences[word], lengths)))
    }
    if kept:
        return sorted(sorted(kept, key=lambda word: (-kept[word], word))[:size])
    if not frequency:
        reason = f"the {total} documents have no words"
    elif not rest:
        reason = f"all {len(frequency)} words are stop words"
    elif total == 1:
        reason = "there is one document, and no other to tell it from"
    else:
        rare = sum(n < least for n in rest.values())
        reason = (
            f"of {len(rest)} words in {total} documents, {rare} are in fewer than {least:g} and "
            f"{len(rest) - rare} in more than {greatest:g}; lower `min_df` or raise `max_df`"
        )
    raise ValueError(f"the vocabulary is empty: {reason}.")


def _spread(occurrences: int, lengths: Counter[int]) -> float:
    """In how many documents a word would be that did not care where it occurs."""
    rate = occurrences / max(sum(length * n for length, n in lengths.items()), 1)
    return sum(n * (1 - exp(-rate * length)) for length, n in lengths.items())
