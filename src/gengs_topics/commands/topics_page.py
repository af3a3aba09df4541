"""The topics as one HTML page: no script, no network, nothing but the file.

Jinja escapes every string that it inserts, and the page's own head forbids scripts and requests:
a word of somebody's documents stays a word.
"""

__all__ = ["in_a_sentence", "render_page", "training_curve"]

from importlib.resources import files
from math import exp, isfinite, log
from typing import Any, NamedTuple

from gengs import __version__
from gengs_experiments.runs.sanitise import on_page

from ..model.word_ranking import telling_words
from .document_share import most_documents_first, percent
from .topic_use import TopicUse, passage

_MENTIONED = 5  # topics in the sentence at the top
_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 34


def render_page(
    records: list[dict[str, Any]],
    found: dict[str, list[dict[str, Any]]],
    use: TopicUse,
    **shown: Any,
) -> str:
    """The page as text.

    Args:
        records: Of the training.
        found: ``topics.json``.
        use: How documents use the topics.
        shown: The ``title``, the ``corpus`` and the ``tally`` of what was met on the way to it, how
            many documents were ``held_out``, and the ``command`` that made this.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # with a minus sign of its own, and no negative zero
    templates.filters["signed"] = lambda x, digits=2: (
        f"{round(x, digits) + 0.0:.{digits}f}".replace("-", "−")
    )
    css = files(__package__).joinpath("templates", "page.css").read_text(encoding="utf-8")
    return templates.get_template("page.html").render(
        css=Markup(css),
        last=[record for record in records if record["kind"] == "evaluation"][-1],
        curve=training_curve(records),
        about=in_a_sentence(found["topics"], use),
        use=use,
        order=most_documents_first(use.documents.tolist()),
        shares=use.shares().tolist(),
        telling=[min(10, telling_words(topic["weights"])) for topic in found["topics"]],
        passage=passage,
        percent=percent,
        version=__version__,
        **found,
        **shown,
    )


def in_a_sentence(topics: list[dict[str, Any]], use: TopicUse) -> str:
    """What the documents are about: the topics that most of them have as their strongest.

    Those whose words do not belong together are no answer, and uncertain ones only if no other is.
    """
    used = [k for k in most_documents_first(use.documents.tolist()) if use.documents[k]]
    clear = [k for k in used if not topics[k]["note"]][:_MENTIONED]
    named = clear or [k for k in used if topics[k]["note"] == "uncertain"][:_MENTIONED]
    if not named:
        return "No topic of these documents is clear."
    parts = [f"{', '.join(topics[k]['label'])} ({_percent(k, use)})" for k in named]
    if not clear:
        begin = "are too few to be sure of their topics: perhaps"
    elif 2 * use.documents[clear].sum() < use.done:
        begin = "are about many things, most often"
    else:
        begin = "are mostly about"
    others = [k for k in used if k not in named]
    rest = f"; and {len(others)} other topics ({_percent(others, use)})" if others else ""
    said = f"These {use.done:,} documents {begin} {'; '.join(parts)}{rest}."
    return said.replace("1 other topics", "1 other topic")


def _percent(topics: int | list[int], use: TopicUse) -> str:
    """The share of documents that have one of these topics as their strongest."""
    return percent(float(use.documents[topics].sum() / use.done)).replace(" ", "\N{NO-BREAK SPACE}")


class CurveDrawing(NamedTuple):
    """Lines and ticks in the drawing's coordinates."""

    trained: str  # the points of the line of the training documents
    held_out: list[tuple[float, float]]  # the points of the held-out ones
    across: list[tuple[float, str]]  # ticks: places and texts
    up: list[tuple[float, str]]
    last: str  # in words
    width: int = _WIDTH
    height: int = _HEIGHT


def training_curve(records: list[dict[str, Any]]) -> CurveDrawing | None:
    """The curve of a run's records, a drawing that needs no script; with two passes or more.

    Two lines over the passes: the perplexity of the documents trained on, as training saw it, and
    that of the held-out ones.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    trained = [
        (r["step"], exp(min(r["nats_per_word"], 50))) for r in records if r["kind"] == "train"
    ]
    held_out = [
        (r["step"], r["perplexity_test"])
        for r in records
        if r["kind"] == "evaluation" and "perplexity_test" in r
    ]
    points = [(s, v) for s, v in [*trained, *held_out] if isfinite(v) and v > 0]
    if len(trained) < 2 or not points:
        return None
    pass_steps, last = trained[0][0], trained[-1][0]
    low = log(min(v for _, v in points)) - 0.03
    high = log(max(v for _, v in points)) + 0.03

    def across(step: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last, 1)

    def up(value: float) -> float:
        share = (log(value) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share, 1)

    passes = last / pass_steps
    wide = high - low > log(4)
    locate = LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(4, steps=[1, 2, 5, 10])
    heights = [v for v in locate.tick_values(exp(low), exp(high)) if exp(low) <= v <= exp(high)]
    places = [p for p in MaxNLocator(5, integer=True).tick_values(0, passes) if p <= passes]
    digits = 0  # as few as tell the ticks apart
    while digits < 8 and len({f"{v:.{digits}f}" for v in heights}) < len(heights):
        digits += 1
    summary = f"Over {passes:.0f} passes, training went from {trained[0][1]:,.{digits}f} to "
    summary += f"{trained[-1][1]:,.{digits}f}"
    if held_out:
        summary += f"; held-out documents ended at {held_out[-1][1]:,.{digits}f}"
    return CurveDrawing(
        " ".join(f"{across(s)},{up(v)}" for s, v in trained),
        [(across(s), up(v)) for s, v in held_out],
        [(across(p * pass_steps), f"{p:g}") for p in places],
        [(up(v), f"{v:,.{digits}f}") for v in heights],
        summary + ".",
    )
