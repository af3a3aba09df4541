"""Run a study: what is missing or failed, on as many workers as there are, until it is done.

    plan → what is left → fan out → each run in its own folder → what is left now?

Everything that is known about progress is in the study's folder, so a study can be stopped, killed,
copied and taken up again anywhere.
"""

from __future__ import annotations

__all__ = ["adopt_plan", "check_folder", "run_study", "select"]

import io
import os
import platform
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

from ..experiments.machine import Machine
from .board import Board
from .config import nearest
from .fan_out import Backend, fan_out
from .plan import Plan, Run, read_plan, write_plan
from .session import Session
from .status import Status, state_of
from .worker import Job


def check_folder(folder: Path, plan: Plan) -> None:
    """Refuse a folder that is not for this study.

    Raises:
        ValueError: If the folder holds another study, or no study but something else.
    """
    if (folder / "plan.json").exists():
        known = read_plan(folder)
        if (known.name, known.budget) != (plan.name, plan.budget):
            raise ValueError(
                f"{folder} holds the study {known.name} ({known.budget}), not {plan.name} "
                f"({plan.budget}): choose another folder with --out."
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"expected a new folder or a study, but {folder} holds something else.")


def adopt_plan(folder: Path, plan: Plan) -> None:
    """Write the plan to a study's folder, unless it is there; ``ValueError`` as above."""
    check_folder(folder, plan)
    if not (folder / "plan.json").exists() or read_plan(folder) != plan:
        write_plan(folder, plan)


def select(runs: Sequence[Run], only: Iterable[str]) -> list[Run]:
    """The runs whose labels (or seed) have the values of ``label=value`` texts.

    Several values of one label are alternatives.

    Raises:
        ValueError: If no run has such a label or value.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        label, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"expected label=value for --only, but got {text!r}.")
        values = {labels[label] for run in runs if label in (labels := _labels(run))}
        if not values:
            names = {name for run in runs for name in _labels(run)}
            raise ValueError(f"no run has a label {label!r}{nearest(label, names)}")
        if value not in values:
            raise ValueError(f"no run has {label} {value!r}{nearest(value, values)}")
        wanted.setdefault(label, set()).add(value)
    return [
        run
        for run in runs
        if all(_labels(run).get(label) in values for label, values in wanted.items())
    ]


def run_study(
    plan: Plan,
    folder: Path,
    backend: Backend,
    runs: Sequence[Run],
    machine: Machine,
    data_dir: Path | None = None,
) -> tuple[Status, bool]:
    """Do these runs of a study; its status afterwards, and whether it was interrupted.

    Args:
        plan: The study; it is written to the folder first.
        folder: The study's folder.
        backend: Where to execute.
        runs: Which of the plan's runs to do, in this order.
        machine: For each run; it should resume and be silent.
        data_dir: Where the data sets are.
    """
    adopt_plan(folder, plan)
    folder = folder.resolve()
    workers = backend.workers()
    session = Session.begin(folder)
    job = Job(
        folder=folder,
        session=session,
        data_dir=None if data_dir is None else data_dir.resolve(),
        machine=machine,
        threads=backend.threads,
        pid=os.getpid(),
        host=platform.node(),
    )
    shown = Plan(plan.name, plan.budget, tuple(runs))
    try:
        with (
            _stop_on_signal(session),
            Board(lambda: Status(shown, folder, session.running()), workers) as board,
            # The board has the terminal; Ray would print the logs of machines that are gone.
            redirect_stdout(io.StringIO()),
        ):
            try:
                fan_out(runs, job, backend, lambda some: _missing(folder, some), board.say)
            finally:
                backend.close()
        return Status(plan, folder), session.stopping
    finally:
        session.end()


def _missing(folder: Path, runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if state_of(folder, run) == "waiting"]


def _labels(run: Run) -> dict[str, str]:
    return {**run.labels, "seed": str(run.seed)}


@contextmanager
def _stop_on_signal(session: Session) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM asks all workers to save and stop; a second one acts at once."""
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        session.stop()
        restore()
        print("\nsaving the runs in progress …", file=sys.stderr, flush=True)

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
