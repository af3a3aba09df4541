"""Whether a folder holds the result of *this* run, not of another one of the same name.

A run's id leaves out settings that have their default (:mod:`.plan`). So a run that was done before
a default changed keeps its name, and means something else; and anyone can edit a ``config.json``.
A result counts only if the folder's own record of its settings is what would be run now, and if the
records that it is made of are there. A folder of which this is not true is never run over: a study
refuses to begin, and says which folder it is.
"""

from __future__ import annotations

__all__ = ["conflict", "is_done", "refuse_conflicts"]

from collections.abc import Iterable
from pathlib import Path

from ..experiments.registry import EXPERIMENTS
from .config import to_json
from .differences import differences, in_words
from .manifest import experiment_of, read_manifest
from .plan import Run
from .records import has_begun


def is_done(path: Path, run: Run) -> bool:
    """Whether nothing is left to do for this run in this folder."""
    return EXPERIMENTS[run.experiment].is_complete(path) and not conflict(path, run)


def conflict(path: Path, run: Run) -> str:
    """Why a folder's content cannot be this run's, in words; empty if it can, or there is none."""
    experiment = EXPERIMENTS[run.experiment]
    ended = experiment.has_ended(path)
    if not ended and not ((path / "config.json").exists() and has_begun(path)):
        return ""  # whatever is there will be written anew
    if ended and not experiment.is_complete(path):
        return "is finished, but its records.jsonl is missing or empty"
    try:
        then = read_manifest(path)
    except (ValueError, TypeError, OSError) as error:
        return f"cannot be told apart from others ({str(error).rstrip('.')})"
    if then["experiment"] != experiment_of(run.config):
        return f"was made by the experiment {then['experiment']!r}"
    if not isinstance(then["config"], dict):
        return "has no settings in its config.json"
    found = differences(type(run.config), then["config"], to_json(run.config))
    return f"was made with other settings ({in_words(found)})" if found else ""


def refuse_conflicts(folder: Path, runs: Iterable[Run]) -> None:
    """Refuse a study's folder in which a run's folder holds something else.

    Raises:
        ValueError: The message names the first such run, what is wrong and what to do.
    """
    found = []
    for run in runs:
        path = folder / "runs" / run.id
        reason = conflict(path, run)
        if reason:
            found.append((path, run, reason))
    if found:
        path, run, reason = found[0]
        more = f" ({len(found) - 1} more runs are like it)" if len(found) > 1 else ""
        raise ValueError(
            f"the run {run.id} in {path} {reason}{more}: delete that folder to do the run again, "
            "or choose another folder for the study."
        )
