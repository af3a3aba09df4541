"""All that a report says, before anyone decides how it looks: a section for each experiment."""

__all__ = ["Contents", "Section", "contents_of", "make_contents"]

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .artifacts import Exhibit, TopicLists, gallery, topic_lists
from .charts import Chart, make_chart
from .metric_catalogue import EXPERIMENT_VIEWS, ExperimentView, view_of
from .run_results import RunResult, StudyResults, find_studies
from .seed_groups import SeedGroups, Setting, group_runs, grouped, mixed_settings
from .summaries import PUBLISHED, Summary, Verdict, best_of, summarise
from .tables import ReportTable, make_tables, with_error

_VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "within": "within two standard errors",
    "worse": "worse",
    "single": "with one run so far",
}


@dataclass(frozen=True)
class Section:
    """One experiment of the report."""

    view: ExperimentView  # how the experiment is shown
    smaller: tuple[str, ...]  # budgets of its studies that are less than the paper's
    summaries: Sequence[Summary]
    choices: Sequence[Sequence[ReportTable]]
    """Tables of estimators by conditions; those of one group differ in the metric."""
    table: ReportTable
    chart: Chart | None
    galleries: Mapping[str, Sequence[Exhibit]]
    """Pictures by data and condition."""
    topics: Sequence[tuple[Setting, TopicLists]]
    problems: tuple[str, ...]

    @property
    def tables(self) -> list[ReportTable]:
        """All of its tables."""
        return [*(table for group in self.choices for table in group), self.table]

    @property
    def headlines(self) -> Iterator[str]:
        """Who is best at what, and how many published numbers were reached: a sentence each."""
        groups: dict[tuple[str, str], list[Summary]] = {}
        for one in self.summaries:
            if self.view.headline and one.metric == self.view.metrics[0] and one.count:
                where = one.setting.condition if self.view.many_estimators else one.setting.data
                groups.setdefault((one.setting.table, where), []).append(one)
        winners = [
            _winner(members) + (f" on {where}" if where else "")
            for (_, where), members in groups.items()
            if len(members) > 1
        ]
        if winners:
            yield f"The lowest {self.view.headline}: {', '.join(winners)}."
        for own in grouped((one for one in self.summaries if one.verdict), "metric"):
            counts = Counter(one.verdict for one in own)
            parts = [f"{counts[kind]} {words}" for kind, words in _VERDICTS.items() if counts[kind]]
            title = own[0].metric.title
            yield f"{title}, beside {len(own)} numbers of the paper: {', '.join(parts)}."


@dataclass(frozen=True)
class Contents:
    """The whole report."""

    title: str
    studies: Sequence[StudyResults]
    sections: Sequence[Section]
    runs: Sequence[RunResult]
    environment: Mapping[str, Sequence[tuple[str, int]]]
    """Versions, threads and machines, each with the number of runs it is true of."""
    commands: Sequence[tuple[str, int]]
    """The command lines that began the runs, the most frequent first."""

    @property
    def headlines(self) -> list[str]:
        """The first things a reader should know."""
        return [line for section in self.sections for line in section.headlines]


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
    names = dict.fromkeys([*(name for name in EXPERIMENT_VIEWS if name in found), *found])
    runs = [run for study in studies for run in study.runs]
    facts: dict[str, Counter[str]] = {}
    for run in runs:
        threads = {name: value for name, value in run.manifest.items() if name == "threads"}
        for part in (run.manifest.get("versions"), threads, run.manifest.get("machine")):
            for name, value in part.items() if isinstance(part, dict) else ():
                facts.setdefault(str(name), Counter())[str(value)] += 1
    commands = Counter(str(run.manifest["command"]) for run in runs if "command" in run.manifest)
    return Contents(
        title or _title(studies),
        studies,
        [_section(name, groups, studies) for name in names],  # the known ones first
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
    smaller = dict.fromkeys(
        study.budget
        for study in studies
        for run in study.runs
        if run.experiment == name and run.labels.get("table") in PUBLISHED
    )
    return Section(
        view_of(name),
        tuple(budget for budget in smaller if budget not in (None, "paper")),
        summaries,
        *make_tables(name, own, summaries),
        chart,
        gallery(own),
        topics,
        (*problems, *unreadable),
    )


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


def _title(studies: Sequence[StudyResults]) -> str:
    names = list(dict.fromkeys(study.name for study in studies))
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
