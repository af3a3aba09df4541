"""The report as one HTML page that needs nothing else: no network, no other file.

Three defences keep a word in somebody's data from becoming code in somebody's browser. Jinja
escapes every string it inserts. The data of the charts are a JSON block in which Jinja writes
``<``, ``>``, ``&`` and ``'`` as escapes. And the page forbids, in its own head, every script but
the two whose hashes it names, and every request.
"""

from __future__ import annotations

__all__ = ["render_page"]

import base64
import hashlib
from datetime import timedelta
from importlib.resources import files

from .. import __version__
from ..lab.palette import HUES
from ..runs.run_status import STATES, State
from ..runs.sanitise import on_page
from ..study.published import CITATION
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
    from plotly.offline import get_plotlyjs

    charts = [section.chart for section in contents.sections if section.chart]
    script, plotly = _asset("report.js"), str(get_plotlyjs()) if charts else ""
    environment = Environment(autoescape=True, finalize=on_page, undefined=StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
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
        hashes=Markup(" ".join(_hash(code) for code in (plotly, script) if code)),
        data={"charts": [{"id": chart.id, **chart.data} for chart in charts]},
        plotly=Markup(plotly),
        script=Markup(script),
    )


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
