"""All that a report says, before anyone decides how it looks: a section for each experiment."""

from __future__ import annotations

__all__ = ["Contents", "Section", "make_contents"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cells import ReportTable
from .charts import Chart, laboratory_chart, synthetic_chart, training_chart
from .doubts import mixed_settings
from .environment import Fact, commands, environment
from .gallery import Exhibit, gallery
from .long_table import long_table
from .metrics import EXPERIMENT_TITLES
from .reading import Unreadable
from .runs import Run, Study, find_studies
from .settings import Setting, Side, group_runs, orientation
from .summaries import PUBLISHED, Summary, summarise
from .tables import pivots
from .topic_lists import Topics, read_topics


@dataclass(frozen=True)
class Section:
    """One experiment of the report."""

    experiment: str
    title: str
    smaller: tuple[str, ...]
    """Budgets of its studies that are less than the paper's."""
    summaries: tuple[Summary, ...]
    choices: tuple[tuple[ReportTable, ...], ...]
    """Tables of estimators by conditions; those of one group differ in the metric."""
    table: ReportTable
    chart: Chart | None
    exhibits: tuple[Exhibit, ...] = ()
    topics: tuple[tuple[Setting, Topics], ...] = ()
    problems: tuple[str, ...] = ()
    sides: Mapping[str, Side] = field(default_factory=dict)
    """By table, whether rows or columns are the estimators."""

    @property
    def tables(self) -> tuple[ReportTable, ...]:
        """All of its tables."""
        return (*(table for group in self.choices for table in group), self.table)


@dataclass(frozen=True)
class Contents:
    """The whole report."""

    title: str
    studies: tuple[Study, ...]
    sections: tuple[Section, ...]
    runs: tuple[Run, ...]
    environment: tuple[Fact, ...]
    commands: tuple[tuple[str, int], ...]


def make_contents(folders: Sequence[Path], title: str | None = None) -> Contents:
    """Read the folders and work out everything that is shown.

    Raises:
        ValueError: If there is neither a study nor a run in them.
    """
    studies = find_studies(folders)
    settings = group_runs(studies)
    names = list(dict.fromkeys(setting.experiment for setting in settings))
    order = list(EXPERIMENT_TITLES)
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    runs = tuple(run for study in studies for run in study.runs)
    return Contents(
        title or _title(studies),
        tuple(studies),
        tuple(_section(name, settings, studies) for name in names),
        runs,
        tuple(environment(runs)),
        tuple(commands(runs)),
    )


def _section(
    name: str, settings: Mapping[Setting, Sequence[Run]], studies: Sequence[Study]
) -> Section:
    own = {setting: runs for setting, runs in settings.items() if setting.experiment == name}
    summaries = summarise(own)
    problems = mixed_settings(own)
    chart: Chart | None = None
    try:
        if name == "measure":
            chart = laboratory_chart(summaries)
        elif name == "synthetic":
            chart = synthetic_chart(own)
        else:
            chart = training_chart(name, own)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # records from elsewhere need not be ours: the rest of the page can still be read
        problems.append(f"no chart: {type(error).__name__} in the records ({str(error)[:200]})")
    return Section(
        name,
        EXPERIMENT_TITLES.get(name, name),
        tuple(dict.fromkeys(str(one.budget) for one in studies if _is_smaller(one, name))),
        tuple(summaries),
        tuple(tuple(group) for group in pivots(own, summaries)),
        long_table("All numbers", own, summaries),
        chart,
        tuple(gallery(own)),
        tuple(_topics(own, problems)),
        tuple(problems),
        orientation(own),
    )


def _is_smaller(study: Study, experiment: str) -> bool:
    own = [run for run in study.runs if run.experiment == experiment]
    compared = any(run.labels.get("table") in PUBLISHED for run in own)
    return compared and study.budget not in (None, "paper")


def _topics(
    settings: Mapping[Setting, Sequence[Run]], problems: list[str]
) -> list[tuple[Setting, Topics]]:
    """The topics of the first run of each setting that has some."""
    found = []
    for setting, runs in settings.items():
        for run in runs:
            path = None if run.folder is None else run.folder / "topics.json"
            if path is None or not path.exists():
                continue
            try:
                found.append((setting, read_topics(path)))
            except Unreadable as problem:
                problems.append(f"{run.id}: {problem}")
            break
    return found


def _title(studies: Sequence[Study]) -> str:
    names = list(dict.fromkeys(study.name for study in studies))
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def seconds(run: Run) -> float | None:
    """How long a run took: its clock starts anew each time it is resumed."""
    total, last = 0.0, 0.0
    found = False
    for line in run.timings:
        value: Any = line.get("seconds")
        if isinstance(value, (int, float)):
            found = True
            if value < last:
                total += last
            last = float(value)
    return total + last if found else None
