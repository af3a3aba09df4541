"""The report as one HTML page, as tables in Markdown and LaTeX, and as tidy CSV.

The page needs nothing else: no network, no other file. Three defences keep a word in somebody's
data from becoming code in somebody's browser. Jinja escapes every string it inserts. The data of
the charts are a JSON block in which Jinja writes ``<``, ``>``, ``&`` and ``'`` as escapes. And the
page forbids, in its own head, every script but the two whose hashes it names, and every request.
"""

from __future__ import annotations

__all__ = ["markdown_table", "render", "render_page"]

import base64
import csv
import hashlib
import io
import re
from collections.abc import Callable
from dataclasses import astuple
from datetime import timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gengs import __version__
from gengs.lab.palette import HUES

from ..runs.run_status import STATES
from ..runs.sanitise import on_page, printable, spreadsheet_cell
from ..study.published import CITATION
from .contents import Contents
from .tables import Cell, ReportTable

if TYPE_CHECKING:
    from jinja2 import Environment

_SIGNS = dict(zip(STATES, "✓…–×××○", strict=True))
_HEADS = (
    *("experiment", "table", "data", "condition", "estimator", "metric"),
    *("mean", "standard_error", "runs", "not_finite", "paper", "difference", "verdict"),
)


def render(contents: Contents, form: str, command: str = "gengs report") -> str:
    """The report as html, markdown, csv or latex."""
    if form == "html":
        return render_page(contents, command)
    if form == "csv":
        return _csv(contents)
    escape, name = (_latex, "report.tex") if form == "latex" else (_markdown, "report.md")
    return _text_templates(escape).get_template(name).render(contents=contents)


def markdown_table(table: ReportTable) -> str:
    """One table, and below it what ± and bold mean."""
    return _text_templates(_markdown).get_template("table.md").render(table=table)


def render_page(contents: Contents, command: str = "gengs report") -> str:
    """The page as text."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    charts = [section.chart for section in contents.sections if section.chart]
    script, plotly = _asset("report.js"), str(get_plotlyjs()) if charts else ""
    style = _asset("report.css")
    for number, mode in enumerate(("light", "dark")):  # the palette's hue of each kind
        hues = " ".join(f"--{kind}: {pair[number]};" for kind, pair in HUES.items())
        style = style.replace(f"/* {mode} hues */", hues)
    digests = [hashlib.sha256(code.encode()).digest() for code in (plotly, script) if code]
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    templates = _templates(on_page)
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return templates.get_template("report.html").render(
        contents=contents,
        states=STATES,
        signs=_SIGNS,
        duration=lambda seconds: str(timedelta(seconds=round(seconds))),
        paper_shown=any(s.paper is not None for one in contents.sections for s in one.summaries),
        citation=CITATION,
        command=command,
        version=__version__,
        css=Markup(style),
        hashes=Markup(" ".join(hashes)),
        data={"charts": [{"id": chart.id, **chart.data} for chart in charts]},
        plotly=Markup(plotly),
        script=Markup(script),
    )


def _templates(finalize: Callable[[Any], Any], text: bool = False) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=text,
        lstrip_blocks=text,
        keep_trailing_newline=text,
    )


def _text_templates(escape: Callable[[str], str]) -> Environment:
    """Templates that are not HTML: each string that one inserts is escaped in its own way."""
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return Markup(escape(printable(" ".join(value.split())))) if type(value) is str else value

    templates = _templates(finalize, text=True)
    templates.filters["shown"] = _shown
    return templates


def _shown(cell: Cell, table: ReportTable) -> str:
    """The cell's text with what small print says on the page."""
    small = [
        f"paper {cell.paper}" if cell.paper else "",
        f"{cell.sign} {cell.difference}" if cell.verdict else "",
        cell.note if cell.note != cell.text else "",
        f"n = {cell.count}" if cell.count and not table.common_count else "",
    ]
    return (
        f"{cell.text} ({'; '.join(filter(None, small))})" if cell.text and any(small) else cell.text
    )


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|!~$&])", r"\\\1", text)


_LATEX = {character: f"\\{character}" for character in "{}$&%#_"} | {"–": "--"}
_NAMES = ("backslash", "asciitilde", "asciicircum", "bar", "less", "greater")
_LATEX |= {sign: rf"\text{name}{{}}" for sign, name in zip(r"\~^|<>", _NAMES, strict=True)}
_MATHS = (r"\pm", r"-", r"\blacktriangledown", r"\blacktriangle", r"\approx", r"\circ")
_LATEX |= {sign: f"${word}$" for sign, word in zip("±−▼▲≈○", _MATHS, strict=True)}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv(contents: Contents) -> str:
    """A row for each number with all its digits, its error, the count of runs, the paper's."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")  # which writes nothing for None
    writer.writerow(_HEADS)
    for section in contents.sections:
        for one in section.summaries:
            words = map(spreadsheet_cell, (*astuple(one.setting), one.metric.key))
            numbers = (one.mean, one.error, one.count, one.lost, one.paper, one.difference)
            writer.writerow([*words, *numbers, one.verdict])
    return file.getvalue()


def _asset(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
