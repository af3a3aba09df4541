"""Each tutorial as a notebook beside its page, made when the site is built.

The examples of a page are doctests; here their prompts and expected outputs are gone, and a cell
ends where an output is to be seen. What is no Python stays text. Links to other pages become
plain text, as a notebook that was downloaded has no pages beside it.
"""

import doctest
import json
import re
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "docs/tutorials/"
INSTALL = "*A tutorial of gengs as a notebook. It needs gengs with its extra `apps`.*"
FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.S | re.M)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")


def notebook(text: str) -> dict[str, object]:
    """The notebook of a page in Markdown."""
    cells = [_cell("markdown", INSTALL)]
    for place, part in enumerate(FENCE.split(text)):
        cells += _code(part) if place % 2 else [_cell("markdown", LINK.sub(r"\1", part))]
    kept = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(kept):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": kept, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _code(fence: str) -> list[dict[str, object]]:
    """The examples of a fence, a cell for each of their outputs."""
    cells, source = [], ""
    for example in doctest.DocTestParser().get_examples(fence):
        source += re.sub(r" *# doctest:.*", "", example.source)
        if example.want:
            # what a notebook that is run as a whole goes on after
            tags = {"tags": ["raises-exception"]} if example.exc_msg else {}
            cells.append(_cell("code", source, tags))
            source = ""
    return [*cells, _cell("code", source)]


def _cell(kind: str, source: str, metadata: object = None) -> dict[str, object]:
    lines = source.strip().splitlines(keepends=True)
    cell: dict[str, object] = {"cell_type": kind, "metadata": metadata or {}, "source": lines}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put a link below the title."""
    if docname.startswith(FOLDER):
        name = docname.removeprefix(FOLDER)
        link = f'<p><a class="notebook" href="{name}.ipynb" download>Download as a notebook</a></p>'
        title, newline, rest = source[0].partition("\n")
        source[0] = f"{title}{newline}\n{link}\n{rest}"


def write(app: Sphinx, problem: Exception | None) -> None:
    if problem is None and app.builder.format == "html":
        for page in Path(app.srcdir, FOLDER).glob("*.md"):
            content = json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1)
            target = Path(app.outdir, FOLDER, f"{page.stem}.ipynb")
            target.write_text(content + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
