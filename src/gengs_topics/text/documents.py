"""Documents as text, one after another, however many there are.

=======================  ===========================================================
``.txt``                 one document a line; an empty line is an empty document
``.jsonl``, ``.ndjson``  one JSON object a line, the text in a named field, or a list of words
``.csv``, ``.tsv``       a header, then one document a row, the text in a named column
a folder                 each ``.txt`` file in it or below it is a document, called like the
                         file, in the order of their names; hidden ones are left out; without
                         any, each ``.md`` or ``.rst`` file
=======================  ===========================================================

Each file may be compressed (``.gz``). What cannot be read is an error with the line's number.
"""

__all__ = ["Document", "TextFile", "numbered_lines", "text_files"]

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gengs_experiments.runs.config import nearest

LONGEST = 1 << 24
_ESCAPED = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of a byte
_MARKED = (".md", ".rst")  # each is a document of a folder that has none of the plain ones
_PLAIN, _JSON, _TABLE = (".txt", ".text"), (".jsonl", ".ndjson"), (".csv", ".tsv")


class Document(NamedTuple):
    """One document: where it begins, what it says, and what it is called, or nothing."""

    line: int  # counted from one; in a folder, which file it is
    text: Any  # or a list of its words; in a file of counts, how often each of them occurs
    name: str


@dataclass(frozen=True)
class TextFile:
    """A file or a folder of documents; each iteration reads it anew."""

    path: Path
    field: str = "text"  # the field or column with the text
    name_field: str | None = None  # the field or column with a document's name
    encoding: str = "utf-8"  # the encoding of the file
    errors: Literal["strict", "replace"] = "strict"
    """Whether bytes that are not in that encoding are refused."""
    longest_line: int = LONGEST  # the most characters of a line, and of a document in a folder

    def __post_init__(self) -> None:
        if self.path.is_dir():
            if next(text_files(self.path), None) is None:
                others = sorted({path.suffix for path in self.path.iterdir() if path.is_file()})
                found = f" but {', '.join(filter(None, others))}" if any(others) else ""
                raise ValueError(
                    f"expected .txt, .md or .rst files in the folder {self.path}, but it has "
                    f"none{found}."
                )
        elif _suffix(self.path) not in (known := (*_PLAIN, *_JSON, *_TABLE)):
            raise ValueError(
                f"expected a folder of text files, or a file that ends in {', '.join(known)} "
                f"(perhaps with .gz), but got {self.path}."
            )

    def __iter__(self) -> Iterator[Document]:
        """The documents, in the order of the file or of the files' names."""
        if self.path.is_dir():
            for number, path in enumerate(text_files(self.path), 1):
                yield Document(number, self._whole(path), path.relative_to(self.path).as_posix())
        elif _suffix(self.path) in _PLAIN:
            for number, line in self._lines(self.path):
                yield Document(number, line.rstrip("\r\n"), "")
        else:
            for number, record in self._objects() if _suffix(self.path) in _JSON else self._rows():
                text = self._value(record, self.field, number)
                name = self._value(record, self.name_field, number) if self.name_field else ""
                yield Document(number, text, str(name))

    def _whole(self, path: Path) -> str:
        """All of a file, if it is not too long."""
        lines, length = [], 0
        for _, line in self._lines(path):
            lines.append(line)
            length += len(line)
            if length > self.longest_line:
                raise ValueError(
                    f"{path} is longer than {self.longest_line:,} characters; if one document is "
                    "that long, raise `longest_line`."
                )
        return "".join(lines)

    def _objects(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Each JSON object and its line."""
        for number, line in self._lines(self.path):
            if line.strip():
                expected = f"expected a JSON object in line {number} of {self.path}, but"
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"{expected} it does not parse: {error}.") from None
                if not isinstance(record, dict):
                    raise ValueError(f"{expected} got {line.strip()[:40]!r}.")
                yield number, record

    def _rows(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Each row of the table, and the line in which it begins."""
        stream = (line for _, line in self._lines(self.path))
        delimiter, header = self._header(next(stream, ""))
        csv.field_size_limit(max(csv.field_size_limit(), self.longest_line))
        rows, number = csv.reader(stream, delimiter=delimiter, strict=True), 2
        try:
            for row in rows:
                if row and len(row) != len(header):
                    raise csv.Error(f"it has {len(row)} columns instead of {len(header)}")
                if row:
                    yield number, dict(zip(header, row, strict=True))
                number = rows.line_num + 2  # after the header and the lines read
        except csv.Error as error:
            raise ValueError(
                f"the row of {self.path} that begins in line {number} does not parse: {error}."
            ) from None

    def _header(self, line: str) -> tuple[str, list[str]]:
        """The delimiter for which the header has the column, and the names of all columns."""
        if not line.strip():
            raise ValueError(f"expected a header in line 1 of {self.path}, but it is empty.")
        wanted = {self.field, *([self.name_field] if self.name_field else [])}
        names: list[str] = []
        for delimiter in "\t" if _suffix(self.path) == ".tsv" else ",;\t":
            found = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
            if wanted <= set(found):
                return delimiter, found
            names = max(names, found, key=len)
        missing = min(wanted - set(names))
        raise ValueError(f"{self.path} has no column {missing!r}{nearest(missing, names)}")

    def _value(self, record: dict[str, object], field: str, number: int) -> str | list[str]:
        where = f"line {number} of {self.path}"
        if field not in record:
            hint = nearest(field, record) if record else "; it has none."
            raise ValueError(f"{where} has no field {field!r}{hint}")
        value = record[field]
        if field != self.field or isinstance(value, str | None):
            return "" if value is None else str(value)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return value
        kind = type(value).__name__
        raise ValueError(
            f"expected text or a list of words in the field {field!r} in {where}, but got {kind}."
        )

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        advice = "; give its `encoding`, such as latin-1 or utf-16, or let `errors` be replace"
        return numbered_lines(path, self.encoding, self.errors, self.longest_line, advice)


def numbered_lines(
    path: Path,
    encoding: str = "utf-8",
    errors: str = "strict",
    longest: int = LONGEST,
    advice: str = "",
) -> Iterator[tuple[int, str]]:
    """Each line with its number, from one on.

    A file that ends in ``.gz`` is unpacked, and a byte order mark is left out. A line that cannot
    be decoded, or is longer than anybody would mean, is a ``ValueError``, and so is a damaged file.
    ``advice`` is added to the message about bytes that are not in that encoding.
    """
    number = 1
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    # escaped, because a strict decoder fails for a block of lines, not for one of them
    how = "surrogateescape" if errors == "strict" else errors
    try:
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with opened(path, "rb") as file:
            text = io.TextIOWrapper(file, codec, how, newline="\n")
            while line := text.readline(longest + 1):
                if len(line) > longest:
                    raise ValueError(
                        f"line {number} of {path} is longer than {longest:,} characters; if one "
                        "document is that long, raise `longest_line`."
                    )
                if errors == "strict" and (bad := _ESCAPED.search(line)):
                    byte = bytes([ord(bad[0]) - 0xDC00])
                    raise UnicodeDecodeError(encoding, byte, 0, 1, f"place {bad.start() + 1}")
                yield number, line
                number += 1
    except LookupError:
        raise ValueError(
            f"expected a known `encoding`, such as utf-8 or latin-1, but got {encoding!r}."
        ) from None
    except UnicodeDecodeError as error:  # also of encodings with no way to escape a byte
        where = f"byte 0x{error.object[error.start]:02x}, {error.reason}"
        raise ValueError(f"line {number} of {path} is not {encoding} ({where}){advice}.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is truncated or damaged after line {number - 1}: {error}"
        ) from None


def text_files(folder: Path) -> Iterator[Path]:
    """The text files in a folder and below it, in the order of their names; no hidden ones.

    Markdown and reStructuredText are notes beside plain text, and documents where there is none.
    """
    found = _files(folder, _PLAIN)
    first = next(found, None)
    if first is None:
        found = _files(folder, _MARKED)
    else:
        yield first
    yield from found


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, suffixes)
        elif _suffix(path) in suffixes and path.is_file():
            yield path


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix
