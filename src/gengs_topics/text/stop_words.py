"""Stop words by language: words that are frequent, and say nothing of a text's theme.

The lists of 58 languages are those of stopwords-iso, by ISO 639-1 codes; the English one is
scikit-learn's, which leaves more to tell texts apart by. The language of a text is the one whose
stop words make up most of it, a word that several languages share counting for less.
"""

__all__ = ["AUTO", "languages_of", "read_stop_words"]

from collections import Counter
from collections.abc import Iterable, Set
from functools import cache
from pathlib import Path

from gengs_experiments.runs.config import nearest

from .documents import numbered_lines

AUTO = "auto"
"""The stop words of the languages that the texts are in."""

_LEAST = 0.1
"""Of a text's words, the least share of stop words by which its language is told."""
_SPOKEN = 0.1
"""A language that so many of the texts are in has its stop words left out."""


def read_stop_words(name: str) -> Set[str]:
    """Words to leave out: of a language, ``none``, or a file of words, separated by white space.

    Args:
        name: An ISO 639-1 code such as ``de``, ``english``, ``none``, or a file.
    """
    if name in ("english", "en"):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    if name == "none":
        return frozenset()
    if name in _lists():
        return _lists()[name]
    try:
        lines = numbered_lines(Path(name))
        return frozenset(word for _, line in lines for word in line.lower().split())
    except FileNotFoundError:
        known = ["auto", "english", "none", *_lists()]
        raise ValueError(
            "expected 'auto', 'english', 'none', a language's code such as 'de', or a file as "
            f"`stop_words`, but got {name!r}{nearest(name, known)}"
        ) from None


def languages_of(documents: Iterable[Iterable[str]]) -> list[str]:
    """The languages that documents are in, by their words; the most frequent first.

    Example:
        >>> languages_of([["der", "hund", "und", "die", "katze", "sind", "nicht", "hier"]])
        ['de']
    """
    of_word: dict[str, list[str]] = {}
    for language, listed in _lists().items():
        for word in listed:
            of_word.setdefault(word, []).append(language)
    found: Counter[str] = Counter()
    for document in documents:
        words = list(document)
        shares: dict[str, float] = {}
        seen: dict[str, set[str]] = {}
        for word in words:
            languages = of_word.get(word, ())
            for language in languages:
                shares[language] = shares.get(language, 0.0) + 1 / len(languages)
                seen.setdefault(language, set()).add(word)
        # one word may be a stop word of any language
        known = {name: share for name, share in shares.items() if len(seen[name]) > 1}
        if known and max(known.values()) >= _LEAST * len(words):
            found[max(known, key=known.__getitem__)] += 1
    return [name for name, n in found.most_common() if n >= _SPOKEN * found.total()]


@cache
def _lists() -> dict[str, Set[str]]:
    from stopwordsiso import langs, stopwords

    return {code: frozenset(stopwords(code)) for code in sorted(langs())}
