r"""From a text to its words.

A word is two or more letters or digits that begin with a letter, in lower case. English endings
after an apostrophe (``'s``, ``n't``, ...) are cut off, so that "model's" counts as "model" and
"isn't" as the stop word "is". Languages that do not put blanks between words must be split before.
"""

from __future__ import annotations

__all__ = ["ENGLISH", "Words", "read_stop_words"]

import re
import unicodedata
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

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

    def __post_init__(self) -> None:
        if self.least_letters < 1:
            raise ValueError(
                f"expected at least 1 for `least_letters`, but got {self.least_letters}."
            )

    def __call__(self, text: str) -> list[str]:
        """The words, in their order."""
        # one spelling for letters with accents, whichever way they were typed
        plain = _ENDING.sub("", unicodedata.normalize("NFC", text).lower())
        return [word for word in _WORD.findall(plain) if len(word) >= self.least_letters]


def read_stop_words(name: str) -> Set[str]:
    """Words to leave out: ``english``, ``none``, or a file of words, separated by white space."""
    if name == "none":
        return frozenset()
    if name == ENGLISH:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        stop_words: frozenset[str] = ENGLISH_STOP_WORDS
        return stop_words
    path = Path(name)
    try:
        return frozenset(path.read_text(encoding="utf-8").lower().split())
    except UnicodeDecodeError as error:
        raise ValueError(f"the file of stop words {path} is not UTF-8 text: {error}.") from None
    except FileNotFoundError:
        raise ValueError(
            f"expected 'english', 'none' or a file as stop words, but got {name!r}."
        ) from None
