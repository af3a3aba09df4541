"""One study from the folders of several machines.

Runs are files: the merged study has all runs of all folders. The same run in two folders is no
conflict if one is further than the other, or both hold the same records; two complete runs with
different records are refused, because one of them would have to be thrown away.
"""

from __future__ import annotations

__all__ = ["merge"]

import shutil
from collections.abc import Sequence
from pathlib import Path

from ..experiments.registry import EXPERIMENTS
from .config import changes
from .finished import refuse_conflicts
from .lock import take_lock
from .plan import Plan, Run, read_plan, write_plan
from .records import RunFolder

_NOT_COPIED = (".lock", ".*.partial")


def merge(sources: Sequence[str | Path], target: str | Path) -> tuple[Plan, int]:
    """Merge study folders into a new one, or into one of the same study.

    Args:
        sources: Study folders; they are not changed.
        target: The merged study's folder.

    Returns:
        The merged plan, and how many run folders were copied.

    Raises:
        ValueError: If the studies differ, the same run has different records, or a run's folder
            holds another one; nothing has been copied then.
    """
    folders, target = [Path(source) for source in sources], Path(target)
    if (target / "plan.json").exists() and target.resolve() not in {f.resolve() for f in folders}:
        folders = [target, *folders]
    elif target.exists() and not (target / "plan.json").exists() and any(target.iterdir()):
        raise ValueError(f"expected a new folder or a study, but {target} holds something else.")
    plans = [read_plan(folder) for folder in folders]
    merged = _one_plan(folders, plans)
    for folder in folders:
        refuse_conflicts(folder, merged.runs)
    best = {run.id: _furthest(folders, run) for run in merged.runs}
    copied = 0
    write_plan(target, merged)
    for run in merged.runs:
        source = best[run.id]
        if source is not None and source.resolve() != (target / "runs" / run.id).resolve():
            _copy(source, target / "runs" / run.id)
            copied += 1
    return merged, copied


def _one_plan(folders: Sequence[Path], plans: Sequence[Plan]) -> Plan:
    first = plans[0]
    runs: dict[str, Run] = {}
    for folder, plan in zip(folders, plans, strict=True):
        if (plan.name, plan.budget) != (first.name, first.budget):
            raise ValueError(
                f"{folders[0]} holds the study {first.name} ({first.budget}), but {folder} holds "
                f"{plan.name} ({plan.budget})."
            )
        for run in plan.runs:
            known = runs.setdefault(run.id, run)
            different = changes(known.config, run.config)
            if different:
                raise ValueError(
                    f"the run {run.id} has other settings in {folder}: {'; '.join(different)}."
                )
    return Plan(first.name, first.budget, tuple(runs.values()))


def _furthest(folders: Sequence[Path], run: Run) -> Path | None:
    """The folder of the run to keep."""
    is_complete = EXPERIMENTS[run.experiment].is_complete
    paths = [path for folder in folders if (path := folder / "runs" / run.id).exists()]
    complete = [path for path in paths if is_complete(path)]
    if not complete:
        return max(paths, key=lambda path: len(RunFolder.load_records(path)), default=None)
    records = [(path / "records.jsonl").read_bytes() for path in complete]
    for path, record in zip(complete, records, strict=True):
        if record != records[0]:
            raise ValueError(
                f"the run {run.id} is complete in {complete[0]} and in {path}, with different "
                "records; remove one of the two and merge again."
            )
    return complete[0]


def _copy(source: Path, target: Path) -> None:
    """Copy a run that nobody writes, so that a kill leaves the old one or the new one."""
    with take_lock(source):
        partial = target.with_name(f".{target.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    if target.exists():
        shutil.rmtree(target)
    partial.rename(target)
