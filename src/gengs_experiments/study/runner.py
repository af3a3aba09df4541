"""Run a study: what is missing or failed, on as many workers as there are, until it is done.

    plan → what is left → fan out → each run in its own folder → what is left now?

Everything that is known about progress is in the study's folder, so a study can be stopped, killed,
copied and taken up again anywhere.

Runs never raise (:mod:`.worker`), so an exception of a backend means that a worker process died:
out of memory, or its machine is gone. joblib then gives up the whole batch. The runs that were done
stay done; the rest begins again where its checkpoints are, on the workers that are left.

A run that takes its worker down with it must not do so for ever. Runs that were in progress when a
worker died, twice at the same checkpoint, are done one by one; one that then loses its worker when
it is alone is the culprit, and has failed.
"""

__all__ = ["fan_out", "run_study"]

import io
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path

from ..runs.interruption import interruption
from ..runs.machine import Machine
from ..runs.sanitise import say
from .backends import Backend
from .plan import Plan, PlannedRun, check_folder, read_plan, write_plan
from .progress_lines import ProgressLines
from .status import Status
from .worker import NotSharedError, Session, write_error

_DIED_ALONE = "The worker process died three times in this run; the last time alone."


def run_study(
    plan: Plan,
    folder: Path,
    backend: Backend,
    runs: Sequence[PlannedRun],
    machine: Machine,
    data_dir: Path | None = None,
) -> tuple[Status, bool]:
    """Do these of the plan's runs, in this order, each on the machine, which should be silent.

    Returns:
        The status of the study afterwards, and whether it was interrupted.
    """
    check_folder(folder, plan)
    if not (folder / "plan.json").exists() or read_plan(folder) != plan:
        write_plan(folder, plan)  # not under the feet of another command that does the same study
    folder, workers, data_dir = folder.resolve(), backend.workers(), data_dir and data_dir.resolve()
    session = Session(folder, machine, backend.threads, data_dir, backend.children)
    shown = Plan(plan.name, plan.budget, tuple(runs))

    def stop() -> None:
        session.stop()
        say("\nsaving the runs in progress …", error=True)

    with session:
        with (
            interruption(stop),
            ProgressLines(lambda: Status(shown, folder, session.running()), workers) as lines,
            # They have the terminal; Ray would print the logs of machines that are gone.
            redirect_stdout(io.StringIO()),
        ):
            try:
                fan_out(shown, session, backend, lines.say)
            finally:
                backend.close()
        return Status(plan, folder), session.is_stopping


def fan_out(plan: Plan, session: Session, backend: Backend, say: Callable[[str], None]) -> None:
    """Execute the runs of a plan, whatever happens to the workers; ``say`` tells the user."""
    runs: Sequence[PlannedRun] = plan.runs
    deaths: Counter[tuple[str, int, int]] = Counter()  # by run and how far it was
    idle = 0  # deaths in a row with no run in progress
    while runs and not session.is_stopping:
        batch = [run for run in runs if deaths[run.id, *_place(session.folder_of(run))] < 2]
        alone = not batch
        batch = batch or list(runs[:1])
        workers = min(backend.workers(after_death=bool(deaths or idle)), len(batch))
        if workers < 1:
            raise OSError("the cluster has no room for a run.")
        try:
            # Two workers for one suspect: one would be this process itself.
            backend.map(batch, session, 2 if alone else workers)
        except (NotSharedError, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            lost = [run for run in batch if run.id in session.running()]
            idle = 0 if lost else idle + 1
            if idle == 3:
                raise OSError(f"workers die before they begin a run: {error}") from error
            for run in lost:
                deaths[run.id, *_place(session.folder_of(run))] += 1
                session.ended(run)
                if alone:
                    with suppress(OSError):
                        write_error(session.folder_of(run), f"{_DIED_ALONE}\n{error}\n")
            count = f"{len(lost)} run" if len(lost) == 1 else f"{len(lost)} runs"
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            say(f"a worker died with {count} in progress; going on: {reason}")
            waiting = {run.id for run in Status(plan, session.folder).runs("waiting")}
            runs = [run for run in runs if run.id in waiting]
        else:
            done = {run.id for run in batch}
            runs = [run for run in runs if run.id not in done]


def _place(path: Path) -> tuple[int, int]:
    """How far a run is: its checkpoint, or its records where it has none."""
    with suppress(OSError):
        return (path / "checkpoint.pt").stat().st_mtime_ns, 0
    with suppress(OSError):
        return 0, (path / "records.jsonl").stat().st_size
    return 0, 0
