"""The first thing a reader should know of each experiment, in one sentence."""

from __future__ import annotations

__all__ = ["headlines"]

from collections.abc import Iterator, Sequence

from .contents import Contents, Section
from .numbers import with_error
from .summaries import Summary, Verdict

# the metric that a sentence is about, and what it is called in one
_LEADING = {
    "vae": ("nelbo_test", "discrete negative ELBO on test images"),
    "topics": ("perplexity_test", "discrete test perplexity"),
    "synthetic": ("excess", "loss above the minimum"),
}


def headlines(contents: Contents) -> list[str]:
    """Who is best at what, and how many published numbers were reached."""
    return [line for section in contents.sections for line in _lines(section)]


def _lines(section: Section) -> Iterator[str]:
    key, words = _LEADING.get(section.experiment, ("", ""))
    found = [one for one in section.summaries if one.metric.key == key and one.count]
    groups: dict[tuple[str, str], list[Summary]] = {}
    for one in found:
        where = one.setting.row if section.experiment == "synthetic" else one.setting.data
        groups.setdefault((one.setting.table, where), []).append(one)
    winners = []
    for (_, where), members in groups.items():
        if len(members) > 1:
            best = min(members, key=lambda one: one.mean)
            name = _name(best, members)
            value = with_error(best.mean, best.error, best.metric.digits)
            winners.append(f"{name} ({value}){' on ' + where if where else ''}")
    if winners:
        yield f"The lowest {words}: {', '.join(winners)}."
    yield from _published(section.summaries)


def _name(best: Summary, members: Sequence[Summary]) -> str:
    """The row and the column of the best, where they vary."""
    words = [
        getattr(best.setting, key)
        for key in ("column", "row")
        if len({getattr(one.setting, key) for one in members}) > 1
    ]
    return ", ".join(word for word in words if word)


def _published(summaries: Sequence[Summary]) -> Iterator[str]:
    for metric in dict.fromkeys(one.metric for one in summaries if one.verdict):
        verdicts = [one.verdict for one in summaries if one.metric == metric and one.verdict]
        counts: dict[Verdict, str] = {
            "better": "better",
            "within": "within two standard errors",
            "worse": "worse",
            "single": "with one run so far",
        }
        parts = [f"{n} {words}" for kind, words in counts.items() if (n := verdicts.count(kind))]
        yield (f"{metric.title}, beside {len(verdicts)} numbers of the paper: {', '.join(parts)}.")
