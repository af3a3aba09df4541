"""Results are pages of the site as they are written by the commands that made them.

A table of a single run has no heading and stands in no table of contents: it is named after its
folder, and reached by links.
"""

from sphinx.application import Sphinx


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname.startswith("results/"):
        text = source[0]
        if not any(line.startswith("# ") for line in text.splitlines()):
            text = f"# {docname.removeprefix('results/').removesuffix('/table')}\n\n{text}"
        source[0] = f"---\norphan: true\n---\n\n{text}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
