"""Results are pages of the site as they are written by the commands that made them.

A table of a single run has no heading and stands in no table of contents: it is named after its
folder, and reached by links. A table that a page links before its runs are done is marked as such.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    folder = Path(app.srcdir, docname).parent
    source[0] = text = LINK.sub(lambda link: marked(link, folder), source[0])
    if docname.startswith("results/"):
        if not any(line.startswith("# ") for line in text.splitlines()):
            text = f"# {docname.removeprefix('results/').removesuffix('/table')}\n\n{text}"
        source[0] = f"---\norphan: true\n---\n\n{text}"


def marked(link: re.Match[str], folder: Path) -> str:
    words, target = link.groups()
    missing = "results" in (folder / target).resolve().parts and not (folder / target).exists()
    return f"{words} (not there yet)" if missing else link.group()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
