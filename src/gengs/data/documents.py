"""Documents in a text file, one after another, however long the file is.

=====================  ========================================================================
``.txt``               one document a line; an empty line is an empty document
``.jsonl``, ``.ndjson``  one JSON object a line, the text in a named field
``.csv``, ``.tsv``     a header, then one document a row, the text in a named column
=====================  ========================================================================

Each may be compressed (``.gz``). A line that cannot be read is an error that has its number, and so
is a line of extraordinary length: most likely the file does not have one document a line.
"""

from __future__ import annotations

__all__ = ["Document", "TextFile"]

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NamedTuple

from ..study.config import nearest

_FORMATS = {
    ".txt": "lines",
    ".text": "lines",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "table",
    ".tsv": "table",
}


class Document(NamedTuple):
    """One document of a file."""

    line: int
    """Where it begins, counted from one."""
    text: str
    """What it says."""
    name: str
    """What it is called, or nothing."""


@dataclass(frozen=True)
class TextFile:
    """A file of documents; each iteration reads it anew.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "corpus.jsonl")
        ...     _ = path.write_text('{"text": "one"}')
        ...     [document.text for document in TextFile(path)]
        ['one']
    """

    path: Path
    field: str = "text"
    """The field or column with the text."""
    name_field: str | None = None
    """The field or column with a document's name."""
    encoding: str = "utf-8"
    """The encoding of the file."""
    errors: Literal["strict", "replace"] = "strict"
    """What to do with bytes that are not in that encoding."""
    longest_line: int = 1 << 24
    """The most bytes of a line."""

    def __post_init__(self) -> None:
        try:
            if not codecs.lookup(self.encoding)._is_text_encoding:
                raise LookupError
        except LookupError:
            raise ValueError(
                f"expected a known `encoding`, such as utf-8 or latin-1, but got {self.encoding!r}."
            ) from None
        _ = self.format

    @property
    def format(self) -> str:
        """How documents are kept: lines, json or table."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if suffixes[-1:] == [".gz"]:
            suffixes.pop()
        suffix = suffixes[-1] if suffixes else ""
        if suffix not in _FORMATS:
            raise ValueError(
                f"expected a file that ends in {', '.join(_FORMATS)} (perhaps with .gz), but got "
                f"{self.path}."
            )
        return _FORMATS[suffix]

    def __iter__(self) -> Iterator[Document]:
        """The documents, in the order of the file."""
        read = {"lines": self._from_lines, "json": self._from_json, "table": self._from_table}
        return read[self.format]()

    def _from_lines(self) -> Iterator[Document]:
        for number, line in self._lines():
            yield Document(number, line.rstrip("\r\n"), "")

    def _from_json(self) -> Iterator[Document]:
        for number, line in self._lines():
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = str(error) or type(error).__name__
                raise ValueError(
                    f"expected a JSON object in line {number} of {self.path}, but it does not "
                    f"parse: {reason}."
                ) from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"expected a JSON object in line {number} of {self.path}, but got "
                    f"{type(record).__name__} {line.strip()[:40]!r}."
                )
            text = self._value(record, self.field, number)
            name = "" if self.name_field is None else self._value(record, self.name_field, number)
            yield Document(number, text, name)

    def _value(self, record: dict[str, object], field: str, number: int) -> str:
        if field not in record:
            hint = nearest(field, record) if record else "; it has none."
            raise ValueError(f"line {number} of {self.path} has no field {field!r}{hint}")
        value = record[field]
        if value is None:
            return ""
        if not isinstance(value, str) and field == self.field:
            raise ValueError(
                f"expected text in the field {field!r} in line {number} of {self.path}, but got "
                f"{type(value).__name__}."
            )
        return str(value)

    def _from_table(self) -> Iterator[Document]:
        stream = (line for _, line in self._lines())
        delimiter, header = self._header(next(stream, ""))
        csv.field_size_limit(max(csv.field_size_limit(), self.longest_line))
        place = header.index(self.field)
        name_place = header.index(self.name_field) if self.name_field else None
        rows = csv.reader(stream, delimiter=delimiter, strict=True)
        while True:
            number = rows.line_num + 2  # where the row begins: after the header and those read
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise ValueError(
                    f"the row of {self.path} that begins in line {number} does not parse: {error}."
                ) from None
            if not row:
                continue
            if len(row) != len(header):
                raise ValueError(
                    f"expected {len(header)} columns in line {number} of {self.path}, but got "
                    f"{len(row)}."
                )
            name = "" if name_place is None else row[name_place]
            yield Document(number, row[place], name)

    def _header(self, line: str) -> tuple[str, list[str]]:
        """The delimiter for which the header has the column, and the names of all columns."""
        if not line.strip():
            raise ValueError(f"expected a header in line 1 of {self.path}, but it is empty.")
        tsv = ".tsv" in [suffix.lower() for suffix in self.path.suffixes]
        wanted = {self.field, *([self.name_field] if self.name_field else [])}
        names: list[str] = []
        for delimiter in "\t" if tsv else ",;\t":
            found = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
            if wanted <= set(found):
                return delimiter, found
            names = found if len(found) > len(names) else names
        missing = sorted(wanted - set(names))
        raise ValueError(f"{self.path} has no column {missing[0]!r}{nearest(missing[0], names)}")

    def _lines(self) -> Iterator[tuple[int, str]]:
        number = 0
        try:
            with self._open() as file:
                if "\n".encode(self.encoding) == b"\n":
                    for number, line in self._lines_of_bytes(file):
                        yield number, line
                    return
                # two or four bytes a letter: the line's end is not the byte of a newline
                text = io.TextIOWrapper(file, self.encoding, self.errors, newline="\n")
                while line := text.readline(self.longest_line + 1):
                    number += 1
                    self._check_length(number, len(line))
                    yield number, line
        except UnicodeDecodeError as error:
            raise ValueError(self._undecodable(number + 1, error)) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{self.path} is truncated or damaged after line {number}: {error}"
            ) from None

    def _lines_of_bytes(self, file: IO[bytes]) -> Iterator[tuple[int, str]]:
        number = 0
        while line := file.readline(self.longest_line + 1):
            number += 1
            self._check_length(number, len(line))
            if number == 1 and line.startswith(codecs.BOM_UTF8):
                line = line[len(codecs.BOM_UTF8) :]
            try:
                yield number, line.decode(self.encoding, self.errors)
            except UnicodeDecodeError as error:
                raise ValueError(self._undecodable(number, error)) from None

    def _check_length(self, number: int, length: int) -> None:
        if length > self.longest_line:
            raise ValueError(
                f"line {number} of {self.path} is longer than {self.longest_line:,} bytes; is it "
                "one document a line? If so, raise `longest_line`."
            )

    def _undecodable(self, number: int, error: UnicodeDecodeError) -> str:
        byte = error.object[error.start]
        return (
            f"line {number} of {self.path} is not {self.encoding} (byte 0x{byte:02x} at place "
            f"{error.start + 1}); give its `encoding`, such as latin-1 or utf-16, or let `errors` "
            "be replace."
        )

    def _open(self) -> IO[bytes]:
        if self.path.is_dir():
            raise ValueError(f"expected a file of documents, but {self.path} is a folder.")
        if self.path.suffix.lower() == ".gz":
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        return self.path.open("rb")
