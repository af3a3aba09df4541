"""Make the embedded sample: ``python -m benchmarks.debian_sample Packages Translation-en out.gz``.

Both files are Debian's package lists, uncompressed: the one has the section of each package, the
other its description in English.
"""

from __future__ import annotations

__all__ = ["main"]

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SECTIONS = (
    *("database", "electronics", "fonts", "games", "graphics", "hamradio"),
    *("mail", "math", "science", "sound", "video", "web"),
)
_EACH = 200
_TEST_EVERY = 6
_LEAST, _MOST = 35, 170  # words of a description
# parts of another package, or packages without a subject of their own
_PART = re.compile(
    r"^(lib|python|fonts-noto|task-)|-(data|doc|docs|dev|dbg|common|bin|cli|gui|utils?|plugins?|"
    r"tools|examples?|server|client|perl|java|music|lang|l10n|levels|maps|full|core|gtk|qt|nox)\d*$"
)
_EMPTY = re.compile(r"transitional|dummy package|metapackage|meta-package", re.IGNORECASE)


def stanzas(path: Path) -> Iterator[dict[str, str]]:
    """The fields of each paragraph of a Debian control file."""
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line.startswith((" ", "\t")):
                fields[name] += "\n" + line
            elif line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            yield fields


def main(packages: str, translation: str, out: str) -> None:
    """Write the sample."""
    texts = {f["Package"]: f["Description-en"] for f in stanzas(Path(translation))}
    found: dict[str, list[dict[str, str]]] = {section: [] for section in SECTIONS}
    seen: set[str] = set()
    for fields in sorted(stanzas(Path(packages)), key=lambda fields: fields["Package"]):
        name, section = fields["Package"], fields.get("Section", "")
        source = fields.get("Source", name).split()[0]
        if section not in found or name not in texts or _PART.search(name) or source in seen:
            continue
        text = re.sub(r"\s+", " ", texts[name].replace("\n .\n", "\n"))
        if not text.isascii() or _EMPTY.search(text) or text[:60] in seen:
            continue
        if _LEAST <= len(text.split()) <= _MOST:
            seen |= {source, text[:60]}
            found[section].append({"package": name, "section": section, "text": text})
    documents = []
    for section in SECTIONS:
        some = found[section]
        # spread over the alphabet, in which neighbours resemble each other
        count = min(_EACH, len(some))
        chosen = [some[i * len(some) // count] for i in range(count)]
        for number, document in enumerate(chosen):
            part = "test" if number % _TEST_EVERY == 0 else "train"
            documents.append({**document, "part": part})
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    Path(out).write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    print(f"{len(documents)} documents: { ({s: len(found[s]) for s in SECTIONS}) }")


if __name__ == "__main__":
    main(*sys.argv[1:])
