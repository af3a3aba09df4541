"""What speaks against a number: runs that are not what their place in a table says.

A mean is over runs that differ in their seed alone. A run with other settings than its plan's (a
default changed in between, a file was edited) is left out; where the plans themselves let runs with
other settings share a cell, the report says so.
"""

from __future__ import annotations

__all__ = ["lost_records", "mixed_settings", "other_settings"]

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..experiments.registry import EXPERIMENTS
from ..study.differences import differences, in_words

if TYPE_CHECKING:
    from .one_run import Run
    from .settings import Setting


def other_settings(
    experiment: str, own: Mapping[str, Any], other: Mapping[str, Any], where: str
) -> str:
    """How a run's settings differ from others; empty if they do not.

    Example:
        >>> other_settings("vae", {"epochs": 15}, {"epochs": 30, "clip": None}, "in the plan")
        'made with other settings (epochs: 15, in the plan 30)'
    """
    found = differences(_kind(experiment), own, other)
    return f"made with other settings ({in_words(found, where)})" if found else ""


def lost_records(experiment: str, folder: Path) -> bool:
    """Whether a run came to its end, but what it measured is gone."""
    known = EXPERIMENTS.get(experiment)
    return known is not None and known.has_ended(folder) and not known.is_complete(folder)


def mixed_settings(settings: Mapping[Setting, Sequence[Run]]) -> list[str]:
    """A sentence for each mean over runs that differ in more than their seed."""
    sentences = []
    for place, runs in settings.items():
        done = [run for run in runs if run.state == "done"]
        names: set[str] = set()
        for run in done[1:]:
            names |= set(differences(_kind(run.experiment), done[0].config, run.config))
        names.discard("seed")
        if names:
            labels = (place.table, place.data, place.row, place.column)
            cell = ", ".join(label for label in labels if label)
            sentences.append(
                f"{cell}: a mean over runs that differ in {', '.join(sorted(names))}, not only in "
                "their seed"
            )
    return sentences


def _kind(experiment: str) -> type[Any] | None:
    return EXPERIMENTS[experiment].config_class if experiment in EXPERIMENTS else None
