r"""From a text to its words, and which of them to keep.

A word is two or more letters or digits that begin with a letter, in lower case. English endings
after an apostrophe (``'s``, ``n't``, ...) are cut off, so that "model's" counts as "model" and
"isn't" as the stop word "is". Languages that do not put blanks between words must be split before.

Words in too few documents teach nothing, words in too many tell no documents apart, and stop words
are both frequent and empty. Of the others, those in the most documents are kept. That takes a first
pass over the documents, and memory for one number for each distinct word. Past ``prune_at`` of
them, the rarest are forgotten again and again, so that a corpus of any size fits; such words could
not have been kept anyway.
"""

__all__ = ["ENGLISH", "Words", "choose_vocabulary", "read_stop_words"]

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path

from .documents import numbered_lines

ENGLISH = "english"
"""The stop words that scikit-learn ships."""

_ENDING = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b")
_WORD = re.compile(r"\b[^\W\d_]\w+\b")


@dataclass(frozen=True)
class Words:
    """How a text is split; the same for the documents of a model and for later ones.

    Example:
        >>> Words(least_letters=3)("The cats' 2nd mp3 isn't Zoë's.")
        ['the', 'cats', 'mp3', 'zoë']
    """

    least_letters: int = 3
    """Leave out shorter words."""

    def __call__(self, text: str) -> list[str]:
        """The words, in their order."""
        # one spelling for letters with accents, whichever way they were typed
        plain = _ENDING.sub("", unicodedata.normalize("NFC", text).lower())
        return [word for word in _WORD.findall(plain) if len(word) >= self.least_letters]


def read_stop_words(name: str) -> Set[str]:
    """Words to leave out: ``english``, ``none``, or a file of words, separated by white space."""
    if name == ENGLISH:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    if name == "none":
        return frozenset()
    try:
        lines = numbered_lines(Path(name))
        return frozenset(word for _, line in lines for word in line.lower().split())
    except FileNotFoundError:
        raise ValueError(
            f"expected 'english', 'none' or a file as stop words, but got {name!r}."
        ) from None


def choose_vocabulary(
    documents: Iterable[Iterable[str]],
    stop_words: Set[str] = frozenset(),
    *,
    min_df: float = 5,
    max_df: float = 0.5,
    size: int = 10_000,
    prune_at: int = 2_000_000,
) -> list[str]:
    """The words to keep, in alphabetical order.

    Args:
        documents: The words of each document; one pass is made.
        stop_words: Words to leave out.
        min_df: Keep words of at least this many documents; below 1, of this share of them.
        max_df: Keep words of at most this many documents; up to 1, of this share of them.
        size: Keep at most this many words: those of the most documents.
        prune_at: Forget the rarest words when there are more than this many.

    Raises:
        ValueError: If nothing is left; the message says why.

    Example:
        >>> choose_vocabulary([["a", "b", "b"], ["a", "c"], ["a", "b"]], min_df=2, max_df=0.9)
        ['b']
    """
    for name, value, lowest in (("min_df", min_df, 0), ("max_df", max_df, 0), ("size", size, 1)):
        if not value >= lowest:
            raise ValueError(f"expected `{name}` of at least {lowest}, but got {value}.")
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
    least = min_df * total if min_df < 1 else min_df
    greatest = max_df * total if max_df <= 1 else max_df
    rest = {word: n for word, n in frequency.items() if word not in stop_words}
    kept = {word: n for word, n in rest.items() if least <= n <= greatest}
    if kept:
        return sorted(sorted(kept, key=lambda word: (-kept[word], word))[:size])
    if not frequency:
        reason = f"the {total} documents have no words"
    elif not rest:
        reason = f"all {len(frequency)} words are stop words"
    else:
        rare = sum(n < least for n in rest.values())
        reason = (
            f"of {len(rest)} words in {total} documents, {rare} are in fewer than {least:g} and "
            f"{len(rest) - rare} in more than {greatest:g}; lower `min_df` or raise `max_df`"
        )
    raise ValueError(f"the vocabulary is empty: {reason}.")
