"""From a text to its words.

A word is two or more letters or digits that begin with a letter, in lower case. English endings
after an apostrophe (``'s``, ``n't``, ...) are cut off, so that "model's" counts as "model" and
"isn't" as the stop word "is".

**Scripts without spaces.** Chinese, Japanese, Thai, Lao, Khmer and Burmese do not put blanks
between words, and whole clauses would be taken for words. Such texts are split before: by blanks,
as lists of words, or by a function of the user's (:func:`load_tokenizer`). :func:`is_unsplit` tells
whether somebody forgot to.
"""

__all__ = ["Split", "Words", "is_unsplit", "load_tokenizer"]

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Split = Callable[[str], list[str]]
"""From a text to its words."""

_ENDING = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b")
_WORD = re.compile(r"\b[^\W\d_]\w+\b")
# Thai and Lao, Burmese, Khmer, kana, Han
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_LETTERS = re.compile(r"[^\W\d_]")
_LONG, _MUCH = 5, 0.2


@dataclass(frozen=True)
class Words:
    """How a text is split; the same for the documents of a model and for later ones.

    Example:
        >>> Words(least_letters=3)("The cats' 2nd mp3 isn't Zoë's.")
        ['the', 'cats', 'mp3', 'zoë']
    """

    least_letters: int = 3
    """Leave out shorter words; not those of scripts without spaces, where two letters are many."""

    def __call__(self, text: str) -> list[str]:
        """The words, in their order."""
        # one spelling for letters with accents, whichever way they were typed
        plain = _ENDING.sub("", unicodedata.normalize("NFC", text).lower())
        least = self.least_letters
        words = _WORD.findall(plain)
        return [word for word in words if len(word) >= least or _UNSPACED.match(word)]


def is_unsplit(texts: Iterable[str]) -> bool:
    """Whether much of the texts is in a script without spaces, and nobody has put any there.

    Example:
        >>> is_unsplit(["今天天气很好我们去公园散步"]), is_unsplit(["今天 天气 很 好"])
        (True, False)
    """
    runs = letters = inside = 0
    for text in texts:
        letters += len(_LETTERS.findall(text))
        found = _UNSPACED.findall(text)
        runs, inside = runs + len(found), inside + sum(map(len, found))
    return inside > _MUCH * letters and inside > _LONG * runs


def load_tokenizer(name: str) -> Split:
    """What ``package.module:function`` names: it splits a text into words.

    Modules of the current folder are found, too.

    Raises:
        ValueError: If there is none.
    """
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise ValueError(f"expected package.module:function as --tokenizer, but got {name!r}.")
    sys.path.append(str(Path.cwd()))
    try:
        function = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"expected package.module:function as --tokenizer, but got {name!r}: {error}."
        ) from None
    finally:
        sys.path.pop()
    if not callable(function):
        raise ValueError(f"expected --tokenizer to name a function, but {name!r} is not callable.")

    def split(text: str) -> list[str]:
        words = [word for word in map(str, function(text)) if not word.isspace()]
        return [word for word in words if word]

    return split
