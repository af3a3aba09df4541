"""Which words to keep: a first pass over the documents.

Words in too few documents teach nothing, words in too many tell no documents apart, and stop words
are both frequent and empty. Of the others, those in the most documents are kept.

Memory holds one number for each distinct word. Past ``prune_at`` of them, the rarest are forgotten
again and again, so that a corpus of any size fits; such words could not have been kept anyway.
"""

from __future__ import annotations

__all__ = ["VocabularySettings", "choose_vocabulary"]

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class VocabularySettings:
    """Which words to keep."""

    min_df: float = 5
    """Keep words of at least this many documents; below 1, of this share of them."""
    max_df: float = 0.5
    """Keep words of at most this many documents; up to 1, of this share of them."""
    size: int = 10_000
    """Keep at most this many words: those of the most documents."""

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"expected `{name}` of at least 0, but got {value}.")
        if self.size < 1:
            raise ValueError(f"expected a vocabulary `size` of at least 1, but got {self.size}.")

    def bounds(self, documents: int) -> tuple[float, float]:
        """The least and greatest number of documents that a word may be in."""
        least = self.min_df * documents if self.min_df < 1 else self.min_df
        greatest = self.max_df * documents if self.max_df <= 1 else self.max_df
        return least, greatest


def choose_vocabulary(
    documents: Iterable[Iterable[str]],
    settings: VocabularySettings | None = None,
    stop_words: Set[str] = frozenset(),
    prune_at: int = 2_000_000,
) -> list[str]:
    """The words to keep, in alphabetical order.

    Args:
        documents: The words of each document; one pass is made.
        settings: Which words to keep.
        stop_words: Words to leave out.
        prune_at: Forget the rarest words when there are more than this many.

    Raises:
        ValueError: If nothing is left; the message says why.

    Example:
        >>> texts = [["a", "b", "b"], ["a", "c"], ["a", "b"]]
        >>> choose_vocabulary(texts, VocabularySettings(min_df=2, max_df=0.9))
        ['b']
    """
    settings = settings or VocabularySettings()
    frequency: Counter[str] = Counter()
    total, floor = 0, 0
    for words in documents:
        total += 1
        frequency.update(set(words))
        while len(frequency) > prune_at:
            floor += 1
            frequency = Counter({word: n for word, n in frequency.items() if n > floor})
    if not total:
        raise ValueError("expected documents, but there are none.")
    least, greatest = settings.bounds(total)
    rest = {word: n for word, n in frequency.items() if word not in stop_words}
    kept = {word: n for word, n in rest.items() if least <= n <= greatest}
    if not kept:
        raise ValueError(_why_empty(total, frequency, rest, least, greatest))
    chosen = sorted(kept, key=lambda word: (-kept[word], word))[: settings.size]
    return sorted(chosen)


def _why_empty(
    total: int, frequency: Counter[str], rest: dict[str, int], least: float, greatest: float
) -> str:
    if not frequency:
        return f"the vocabulary is empty: the {total} documents have no words."
    if not rest:
        return f"the vocabulary is empty: all {len(frequency)} words are stop words."
    if least > greatest:
        return (
            f"the vocabulary is empty: `min_df` and `max_df` of {total} documents are {least:g} "
            f"and {greatest:g}."
        )
    rare = sum(n < least for n in rest.values())
    return (
        f"the vocabulary is empty: of {len(rest)} words, {rare} are in fewer than {least:g} "
        f"documents and {len(rest) - rare} in more than {greatest:g}; lower `min_df` or raise "
        "`max_df`."
    )
