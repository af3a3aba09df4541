"""An attribute's first line is a sentence: a colon in it does not set off a type.

Napoleon reads "The first integer: one for all" as a type and its description.
"""

from typing import Any

from sphinx.application import Sphinx


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(": ", "; ", 1)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before Napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
