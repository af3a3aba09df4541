"""``gengs study``: many runs, resumable, in parallel, here or on a cluster."""

from __future__ import annotations

__all__ = ["Budget", "RunStudy"]

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from ..runs.config import check_least
from ..runs.interruption import Interrupted
from ..runs.machine import Machine
from ..runs.manifest import command
from ..runs.sanitise import say

if TYPE_CHECKING:
    from .backends import Backend
    from .plan import PlannedRun
    from .status import Status

Budget = Literal["smoke", "small", "paper"]
_Folder = tyro.conf.arg(aliases=["-o"], metavar="FOLDER")


@dataclass(frozen=True)
class RunStudy:
    """Run a study: many runs, in parallel, resumable. Again does what is missing or failed."""

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME|FILE.toml")]]
    """figure3, table1, table2 or midcdf; or a file with a grid of your own."""
    budget: Budget | None = None
    """smoke: seconds, does it run? small: hours, is the ranking right? paper: the published setting
    as far as it is known. By default small."""
    out: Annotated[Path | None, _Folder] = None
    """The study's folder; by default in runs/."""
    only: tuple[str, ...] = ()
    """Only runs with these labels, such as "row=Pois(2)" column=GenGS seed=0; of several values of
    one label, any."""
    max_runs: int | None = None
    """Do at most so many runs now."""
    skip_failed: bool = False
    """Do not try runs again that have failed."""
    dry_run: bool = False
    """List the runs and how long they would take, and do nothing."""
    backend: Literal["loky", "ray"] = "loky"
    """Processes of this machine, or a Ray cluster."""
    workers: int | None = None
    """Runs at once; by default one per core, or what the cluster has room for. With fewer, each run
    gets more threads ($OMP_NUM_THREADS, if set, decides)."""
    ray_address: str | None = None
    """An existing Ray cluster, such as auto or ray://host:10001; its machines share the folder. By
    default $RAY_ADDRESS, or a new one on this machine."""
    gpus_per_run: float = 0.0
    """GPUs for each run on a Ray cluster; 0.5 lets two share one."""
    accelerator: Literal["auto", "cpu", "cuda", "mps"] | None = None
    """The kind of device; by default the CPU, or CUDA where runs have GPUs."""
    data_dir: Path | None = None
    """Where the data sets are; by default $GENGS_DATA, or the download cache."""

    def run(self) -> None:
        """Run, or list, and say how it went."""
        from .plan import check_folder, select, write_plan
        from .runner import run_study
        from .status import Status, refuse_conflicts
        from .study_file import read_study

        check_least(self, {"max_runs": 1, "workers": 1, "gpus_per_run": 0})
        plan, backend = read_study(self.name, self.budget), self._backend()
        other = plan.budget not in ("small", "custom")
        name = f"{plan.name}-{plan.budget}" if other else plan.name
        folder, runs = self.out or Path("runs") / name, select(plan.runs, self.only)
        refuse_conflicts(folder, plan.runs)
        status = Status(plan, folder)
        wanted = ("waiting",) if self.skip_failed else ("waiting", "failed")
        left = [run for run in runs if status.states[run.id] in wanted][: self.max_runs]
        # where all is done, the runs may have been copied here without their plan
        if left or (folder / "plan.json").exists():
            check_folder(folder, plan)
        if self.dry_run:
            self._list(status, backend, runs, left)
        elif left:
            device = self.accelerator or ("cuda" if self.gpus_per_run else "cpu")
            machine = Machine(
                resume=True, accelerator=device, checkpoint_seconds=60.0, progress=False
            )
            self._conclude(left, *run_study(plan, folder, backend, left, machine, self.data_dir))
        else:
            if not (folder / "plan.json").exists():
                write_plan(folder, plan)
            done = sum(status.states[run.id] == "done" for run in runs)  # others may have failed
            say(f"nothing is left to do in {folder}: {done} of {len(runs)} runs are done.")

    def _backend(self) -> Backend:
        from .backends import Loky, RayCluster

        if self.backend == "ray":
            return RayCluster(self.ray_address, self.workers, self.gpus_per_run)
        if self.ray_address or self.gpus_per_run:
            raise ValueError("--ray-address and --gpus-per-run need --backend ray.")
        return Loky(self.workers)

    def _list(
        self, status: Status, backend: Backend, runs: list[PlannedRun], left: list[PlannedRun]
    ) -> None:
        from .status import duration, estimated_times, known_times

        for run in runs:
            say(f"{status.states[run.id]:8}{run.title}  [{run.id}]")
        say(f"{len(runs)} runs, {len(left)} to do, in {status.folder}")
        times, source = known_times(status), "from the complete runs in this folder"
        if left and not times:
            times, source = estimated_times(left, self.data_dir, backend.threads)
        workers = backend.workers()
        total = duration(times.total(left, workers))
        say(f"time for what is left: {total}, {workers} at once ({source})")

    def _conclude(self, tried: list[PlannedRun], status: Status, interrupted: bool) -> None:
        failed = [run for run in tried if status.states[run.id] == "failed"]
        for run in failed:
            say(f"failed: {run.title}: {status.errors[run.id]}")
            say(f"        {status.folder / 'runs' / run.id / 'error.txt'}")
        done, total = status.count("done"), len(status.plan.runs)
        if interrupted:
            say(f"stopped with {done} of {total} runs done; to go on: {command()}")
            raise Interrupted
        say(f"{done} of {total} runs done, in {status.folder}")
        if failed:
            raise SystemExit(1)
        busy = [run for run in tried if status.states[run.id] == "waiting"]
        if busy:
            say(f"{len(busy)} runs are in the hands of another process; for them: {command()}")
        elif done == total:
            say(f"to see it: gengs report {shlex.quote(str(status.folder))} -o report.html")
