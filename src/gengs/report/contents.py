"""All that a report says, before anyone decides how it looks: a section for each experiment."""

from __future__ import annotations

__all__ = ["Contents", "Section", "contents_of", "make_contents"]

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .artifacts import Exhibit, TopicLists, gallery, topic_lists
from .cells import ReportTable
from .charts import Chart, make_chart
from .metric_catalogue import EXPERIMENT_VIEWS, ExperimentView, view_of
from .run_results import RunResult, StudyResults, find_studies
from .seed_groups import SeedGroups, Setting, group_runs, mixed_settings
from .summaries import PUBLISHED, Summary, summarise
from .tables import make_tables


@dataclass(frozen=True)
class Section:
    """One experiment of the report."""

    experiment: str
    smaller: tuple[str, ...]  # budgets of its studies that are less than the paper's
    summaries: tuple[Summary, ...]
    choices: tuple[tuple[ReportTable, ...], ...]
    """Tables of estimators by conditions; those of one group differ in the metric."""
    table: ReportTable
    chart: Chart | None
    galleries: Mapping[str, Sequence[Exhibit]] = field(default_factory=dict)
    """Pictures by data and condition."""
    topics: tuple[tuple[Setting, TopicLists], ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def view(self) -> ExperimentView:
        """How the experiment is shown."""
        return view_of(self.experiment)

    @property
    def tables(self) -> tuple[ReportTable, ...]:
        """All of its tables."""
        return (*(table for group in self.choices for table in group), self.table)


@dataclass(frozen=True)
class Contents:
    """The whole report."""

    title: str
    studies: tuple[StudyResults, ...]
    sections: tuple[Section, ...]
    runs: tuple[RunResult, ...]
    environment: Mapping[str, Sequence[tuple[str, int]]]
    """Versions, threads and machines, each with the number of runs it is true of."""
    commands: Sequence[tuple[str, int]]
    """The command lines that began the runs, the most frequent first."""


def make_contents(folders: Sequence[Path], title: str | None = None) -> Contents:
    """Read the folders and work out everything that is shown.

    Raises:
        ValueError: If there is neither a study nor a run in them.
    """
    return contents_of(find_studies(folders), title)


def contents_of(studies: Sequence[StudyResults], title: str | None = None) -> Contents:
    """Work out everything that is shown of these studies."""
    groups = group_runs(studies)
    found = dict.fromkeys(setting.experiment for setting in groups)
    names = [*(name for name in EXPERIMENT_VIEWS if name in found), *found]  # the known ones first
    runs = tuple(run for study in studies for run in study.runs)
    facts: dict[str, Counter[str]] = {}
    for run in runs:
        for name, value in _facts(run.manifest).items():
            facts.setdefault(name, Counter())[value] += 1
    commands = Counter(str(run.manifest["command"]) for run in runs if "command" in run.manifest)
    return Contents(
        title or _title(studies),
        tuple(studies),
        tuple(_section(name, groups, studies) for name in dict.fromkeys(names)),
        runs,
        {name: counter.most_common() for name, counter in facts.items()},
        commands.most_common(),
    )


def _section(name: str, groups: SeedGroups, studies: Sequence[StudyResults]) -> Section:
    own = {setting: runs for setting, runs in groups.items() if setting.experiment == name}
    summaries = summarise(own)
    problems = mixed_settings(own)
    chart = None
    try:
        chart = make_chart(name, own, summaries)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # records from elsewhere need not be ours: the rest of the page can still be read
        problems.append(f"no chart: {type(error).__name__} in the records ({str(error)[:200]})")
    topics, unreadable = topic_lists(own)
    choices, table = make_tables(name, own, summaries)
    return Section(
        name,
        tuple(dict.fromkeys(str(one.budget) for one in studies if _is_smaller(one, name))),
        tuple(summaries),
        tuple(map(tuple, choices)),
        table,
        chart,
        gallery(own),
        tuple(topics),
        (*problems, *unreadable),
    )


def _is_smaller(study: StudyResults, experiment: str) -> bool:
    own = [run for run in study.runs if run.experiment == experiment]
    compared = any(run.labels.get("table") in PUBLISHED for run in own)
    return compared and study.budget not in (None, "paper")


def _title(studies: Sequence[StudyResults]) -> str:
    names = list(dict.fromkeys(study.name for study in studies))
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    threads = {"threads": manifest["threads"]} if "threads" in manifest else {}
    parts = (manifest.get("versions"), threads, manifest.get("machine"))
    return {str(k): str(v) for part in parts if isinstance(part, dict) for k, v in part.items()}
