"""One study from the folders of several machines.

Runs are files: the merged study has all runs of all folders. The same run in two folders is no
conflict if one is further than the other, or both hold the same records; two complete runs with
different records are refused, because one of them would have to be thrown away.
"""

__all__ = ["merge"]

import shutil
from collections.abc import Sequence
from pathlib import Path

from ..runs.config import differences, in_words, to_json
from ..runs.records import RunFolder, folder_lock
from .plan import Plan, PlannedRun, check_folder, read_plan, write_plan
from .status import look_at, refuse_conflicts


def merge(sources: Sequence[str | Path], target: str | Path) -> tuple[Plan, int]:
    """Merge study folders into a new one, or into one of the same study; the sources stay.

    Returns:
        The merged plan, and how many run folders were copied.

    Raises:
        ValueError: If the studies differ, the same run has different records, or a run's folder
            is damaged or holds another one; nothing has been copied then.
    """
    folders, target = [Path(source) for source in sources], Path(target)
    if (target / "plan.json").exists() and target.resolve() not in {f.resolve() for f in folders}:
        folders = [target, *folders]
    merged = _one_plan(folders)
    check_folder(target, merged)
    for folder in folders:
        refuse_conflicts(folder, merged.runs)
    best = [(run.id, _furthest(folders, run)) for run in merged.runs]
    write_plan(target, merged)
    copied = 0
    for name, source in best:
        if source is not None and source.resolve() != (target / "runs" / name).resolve():
            _copy(source, target / "runs" / name)
            copied += 1
    return merged, copied


def _one_plan(folders: Sequence[Path]) -> Plan:
    first = read_plan(folders[0])
    runs: dict[str, PlannedRun] = {}
    for folder in folders:
        plan = read_plan(folder)
        if (plan.name, plan.budget) != (first.name, first.budget):
            raise ValueError(
                f"{folders[0]} holds the study {first.name} ({first.budget}), but {folder} holds "
                f"{plan.name} ({plan.budget})."
            )
        for run in plan.runs:
            known = runs.setdefault(run.id, run).config
            found = differences(type(known), to_json(known), to_json(run.config))
            if found:
                words = in_words(found, f"in {folder}")
                raise ValueError(f"the run {run.id} has different settings ({words}).")
    return Plan(first.name, first.budget, tuple(runs.values()))


def _furthest(folders: Sequence[Path], run: PlannedRun) -> Path | None:
    """The folder of the run to keep."""
    complete = [f / "runs" / run.id for f in folders if look_at(f, run).state == "done"]
    if not complete:
        begun = [path for f in folders if (path := f / "runs" / run.id).exists()]
        return max(begun, key=lambda path: len(RunFolder.load_records(path)), default=None)
    for path in complete:
        if (path / "records.jsonl").read_bytes() != (complete[0] / "records.jsonl").read_bytes():
            raise ValueError(
                f"the run {run.id} is complete in {complete[0]} and in {path}, with different "
                "records; remove one of the two and merge again."
            )
    return complete[0]


def _copy(source: Path, target: Path) -> None:
    """Copy a run that nobody writes, so that a kill leaves the old one or the new one."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with folder_lock(source):
        shutil.copytree(source, partial, ignore=shutil.ignore_patterns(".lock", ".*.partial"))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
