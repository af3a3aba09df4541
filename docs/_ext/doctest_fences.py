"""The blank line that ends a doctest before its fence is for the tests, not for the reader."""

import re

from sphinx.application import Sphinx


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname.startswith("docs/"):
        source[0] = re.sub(r"\n\n```(?=\n|\Z)", "\n```", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
