"""Text from files and folders, made harmless for a terminal and for a spreadsheet.

A word of somebody's corpus may hold the escape sequences that move a terminal's cursor, set its
title or colour what follows; a label may begin like a spreadsheet's formula.
"""

__all__ = ["CONTROLS", "ignore_closed_stdout", "on_page", "printable", "say", "spreadsheet_cell"]

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# C0 and C1 controls but tab and newline, and what turns the direction of the text around.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    r"""The text with its control characters as escapes, for a terminal or a text file.

    Example:
        >>> print(printable("a\x1b[31m\rb\n\tc"))
        a\x1b[31m\x0db
            c
    """
    return CONTROLS.sub(_escape, str(text))


def on_page(value: object) -> object:
    """What a template inserts: its control characters as escapes; markup and numbers stay."""
    return printable(value) if type(value) is str else value


@contextmanager
def ignore_closed_stdout() -> Iterator[None]:
    """Inside, a terminal that was closed is no failure: from then on nothing is said to it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EPIPE, errno.EBADF):
            raise
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, 1)  # Python itself would fail once more when it ends
        os.dup2(nobody, 2)


def say(text: object, *, error: bool = False) -> None:
    """Print a line for a person, harmless for the terminal, on standard output or error."""
    with ignore_closed_stdout():
        print(printable(text), file=sys.stderr if error else sys.stdout, flush=True)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def spreadsheet_cell(text: str) -> str:
    """A cell of a CSV file: what begins like a formula gets an apostrophe, which makes it text.

    Example:
        >>> spreadsheet_cell("=1+1"), spreadsheet_cell("word")
        ("'=1+1", 'word')
    """
    text = printable(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
