"""The report as one HTML page that needs nothing else: no network, no other file.

Three defences keep a word in somebody's data from becoming code in somebody's browser. Jinja
escapes every string it inserts. The data of the charts are a JSON block in which ``<``, ``>`` and
``&`` are written as escapes. And the page forbids, in its own head, every script but the two whose
hashes it names, and every request.
"""

from __future__ import annotations

__all__ = ["render_page"]

import base64
import hashlib
import json
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from .. import __version__
from ..lab.palette import HUES
from ..runs.run_status import STATES, State
from ..runs.sanitise import on_page
from ..study.paper import CITATION
from .contents import Contents
from .headlines import headlines

_SIGNS: dict[State, str] = {
    "done": "✓",
    "running": "…",
    "unfinished": "–",
    "failed": "×",
    "damaged": "×",
    "different": "×",
    "waiting": "○",
}


def render_page(contents: Contents, command: str = "gengs report") -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    charts = [section.chart for section in contents.sections if section.chart]
    script = _asset("report.js")
    plotly = _plotly() if charts else ""
    scripts = [code for code in (plotly, script) if code]
    environment = Environment(
        autoescape=True, finalize=on_page, undefined=StrictUndefined, auto_reload=False
    )
    return environment.from_string(_asset("report.html")).render(
        contents=contents,
        states=STATES,
        signs=_SIGNS,
        duration=lambda seconds: str(timedelta(seconds=round(seconds))),
        headlines=headlines(contents),
        paper_shown=any(s.paper is not None for one in contents.sections for s in one.summaries),
        citation=CITATION,
        command=command,
        version=__version__,
        css=Markup(_style()),
        hashes=Markup(" ".join(map(_hash, scripts))),
        data=Markup(escaped_json({"charts": [{"id": c.id, **c.data} for c in charts]})),
        plotly=Markup(plotly),
        script=Markup(script),
    )


def escaped_json(value: Any) -> str:
    r"""JSON that no HTML parser takes for markup.

    Example:
        >>> escaped_json("</script>&")
        '"\\u003c/script\\u003e\\u0026"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _style() -> str:
    """The style, with the palette's hue of each kind on a light page and on a dark one."""
    style = _asset("report.css")
    for number, mode in enumerate(("light", "dark")):
        hues = " ".join(f"--{kind}: {pair[number]};" for kind, pair in HUES.items())
        style = style.replace(f"/* {mode} hues */", hues)
    return style
