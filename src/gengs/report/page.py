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
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from .. import __version__
from ..study.paper import CITATION
from .cells import ReportTable
from .contents import Contents, Section, seconds
from .headlines import headlines
from .runs import Run, State

_SIGNS: dict[State, str] = {
    "done": "✓",
    "running": "…",
    "unfinished": "–",
    "failed": "×",
    "damaged": "×",
    "different": "×",
    "waiting": "○",
}

INTROS = {
    "measure": "Independent gradients of each estimator against the exact one: how far off on "
    "average (bias), how spread (variance), at which price.",
    "synthetic": "Minimise E Σ (z − t)² over the parameter of a law, one gradient a step. Loss, "
    "gradient and minimum have closed forms, so every number is a distance from a known answer.",
    "vae": "The negative ELBO in nats for an image, less is better. −ELBO takes exact, discrete "
    "draws; “as trained” is the value that the estimator itself descends on, which is no bound "
    "where it is relaxed. The paper’s GenGS columns are most likely such values.",
    "topics": "Test perplexity, less is better. “as trained” is that of relaxed counts, which is "
    "no perplexity of the discrete model.",
}


@dataclass(frozen=True)
class _Line:
    """A run in the list of runs."""

    id: str
    experiment: str
    state: State
    order: int
    sign: str
    error: str
    seed: int | None
    seconds: float | None
    time: str


def render_page(contents: Contents, command: str = "gengs report") -> str:
    """The page as text."""
    from jinja2 import Environment
    from markupsafe import Markup

    charts = [section.chart for section in contents.sections if section.chart]
    script = _asset("page.js")
    plotly = _plotly() if charts else ""
    scripts = [code for code in (plotly, script) if code]
    loader = Environment(autoescape=True, trim_blocks=False, auto_reload=False)
    template = loader.from_string(_asset("page.html"))
    return template.render(
        contents=_with_anchors(contents),
        states=get_args(State),
        headlines=headlines(contents),
        intros=INTROS,
        run_lines=list(map(_line, contents.runs)),
        paper_shown=any(s.paper is not None for one in contents.sections for s in one.summaries),
        citation=CITATION,
        command=command,
        version=__version__,
        css=Markup(_asset("page.css")),
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


def _with_anchors(contents: Contents) -> Mapping[str, Any]:
    """The contents with what only a page needs: anchors, captions of pictures, common counts."""
    sections = [
        {
            **_fields(section),
            "anchor": f"section-{number}",
            "choices": [[_table(table) for table in group] for group in section.choices],
            "table": _table(section.table),
            "galleries": _galleries(section),
        }
        for number, section in enumerate(contents.sections, 1)
    ]
    return {**_fields(contents), "sections": sections}


def _table(table: ReportTable) -> Mapping[str, Any]:
    counts = {cell.count for row in table.rows for cell in row if cell.count}
    return {
        **_fields(table),
        "common_count": counts.pop() if len(counts) == 1 else None,
        "has_best": any(cell.best for row in table.rows for cell in row),
    }


def _galleries(section: Section) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Pictures by data and condition, each with the estimator for a caption."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for exhibit in section.exhibits:
        place = exhibit.setting
        pair = (place.row, place.column)
        name, condition = pair if section.sides[place.table] == "row" else pair[::-1]
        title = " · ".join(word for word in (place.data, condition) if word)
        words = [name] if exhibit.seed is None else [name, f"seed {exhibit.seed}"]
        shown = {**_fields(exhibit), "caption": ", ".join(word for word in words if word)}
        found.setdefault(title, []).append(shown)
    return list(found.items())


def _fields(thing: Any) -> dict[str, Any]:
    return dict(vars(thing))


def _line(run: Run) -> _Line:
    time = seconds(run)
    shown = "" if time is None else str(timedelta(seconds=round(time)))
    order = get_args(State).index(run.state)
    return _Line(
        run.id,
        run.experiment,
        run.state,
        order,
        _SIGNS[run.state],
        run.error,
        run.seed,
        time,
        shown,
    )
