"""The first thing a reader should know of each experiment, in one sentence."""

from __future__ import annotations

__all__ = ["headlines"]

from collections.abc import Iterator, Sequence

from .cells import with_error
from .contents import Contents, Section
from .summaries import Summary, Verdict, best_of

_VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "within": "within two standard errors",
    "worse": "worse",
    "single": "with one run so far",
}


def headlines(contents: Contents) -> list[str]:
    """Who is best at what, and how many published numbers were reached."""
    return [line for section in contents.sections for line in _lines(section)]


def _lines(section: Section) -> Iterator[str]:
    view = section.view
    groups: dict[tuple[str, str], list[Summary]] = {}
    for one in section.summaries:
        if view.headline and one.metric == view.metrics[0] and one.count:
            where = one.setting.condition if view.many_estimators else one.setting.data
            groups.setdefault((one.setting.table, where), []).append(one)
    winners = [
        _winner(members) + (f" on {where}" if where else "")
        for (_, where), members in groups.items()
        if len(members) > 1
    ]
    if winners:
        yield f"The lowest {view.headline}: {', '.join(winners)}."
    for metric in dict.fromkeys(one.metric for one in section.summaries if one.verdict):
        verdicts = [one.verdict for one in section.summaries if one.metric == metric]
        parts = [f"{n} {words}" for kind, words in _VERDICTS.items() if (n := verdicts.count(kind))]
        total = sum(verdict is not None for verdict in verdicts)
        yield f"{metric.title}, beside {total} numbers of the paper: {', '.join(parts)}."


def _winner(members: Sequence[Summary]) -> str:
    """The best with its number, and how many others cannot be told from it."""
    best = min(members, key=lambda one: one.mean)
    words = [
        getattr(best.setting, key)
        for key in ("estimator", "condition")
        if len({getattr(one.setting, key) for one in members}) > 1
    ]
    value = with_error(best.mean, best.error, best.metric.digits)
    ties = len(best_of(members)) - 1
    more = f", {ties} more within two standard errors" if ties else ""
    return f"{', '.join(word for word in words if word)} ({value}{more})"
