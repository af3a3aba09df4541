"""``gengs study``: many runs, resumable, in parallel, here or on a cluster."""

from __future__ import annotations

__all__ = ["MergeStudies", "Study"]

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ..experiments.interruption import Interrupted
from ..experiments.machine import Machine
from .board import named
from .estimate import duration, known_times, rehearsed_times
from .fan_out import Backend, Loky, RayCluster
from .finished import refuse_conflicts
from .manifest import command
from .merge import merge
from .plan import Plan, Run, write_plan
from .plans import Budget, built_in
from .runner import check_folder, run_study, select
from .status import Status, error_line
from .study_file import read_study

_Folder = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")]


@dataclass(frozen=True)
class Study:
    """Run a study: many runs, in parallel, resumable. Again does what is missing or failed."""

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME|FILE.toml")]]
    """figure3, table1, table2 or midcdf; or a file with a grid of your own. To join the folders of
    several machines: gengs study merge."""
    budget: Budget | None = None
    """smoke: seconds, does it run? small: hours, is the ranking right? paper: the published setting
    as far as it is known. By default small."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")] = None
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
        plan = self._plan()
        folder = self.out or self._folder(plan)
        runs = select(plan.runs, self.only)
        if self.max_runs is not None and self.max_runs < 1:
            raise ValueError(f"expected at least 1 for --max-runs, but got {self.max_runs}.")
        if (folder / "plan.json").exists():
            check_folder(folder, plan)
        refuse_conflicts(folder, plan.runs)
        status = Status(plan, folder)
        left = [run for run in runs if status.states[run.id] in self._wanted][: self.max_runs]
        if left:  # where all is done, the runs may have been copied here without their plan
            check_folder(folder, plan)
        if self.dry_run:
            self._list(plan, folder, runs, left)
            return
        if not left:
            if not (folder / "plan.json").exists():  # runs that were copied here
                write_plan(folder, plan)
            done = sum(status.states[run.id] == "done" for run in runs)  # others may have failed
            print(f"nothing is left to do in {folder}: {done} of {len(runs)} runs are done.")
            return
        machine = Machine(
            resume=True, accelerator=self._device, checkpoint_seconds=60.0, progress=False
        )
        status, interrupted = run_study(plan, folder, self._backend, left, machine, self.data_dir)
        self._conclude(folder, status, left, interrupted)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return ("waiting",) if self.skip_failed else ("waiting", "failed")

    @property
    def _device(self) -> Literal["auto", "cpu", "cuda", "mps"]:
        return self.accelerator or ("cuda" if self.gpus_per_run else "cpu")

    @property
    def _backend(self) -> Backend:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"expected at least 1 for --workers, but got {self.workers}.")
        if self.gpus_per_run < 0:
            raise ValueError(f"expected no negative --gpus-per-run, but got {self.gpus_per_run}.")
        if self.backend == "ray":
            return RayCluster(self.ray_address, self.workers, self.gpus_per_run)
        if self.ray_address or self.gpus_per_run:
            raise ValueError("--ray-address and --gpus-per-run need --backend ray.")
        return Loky(self.workers)

    def _plan(self) -> Plan:
        if not self.name.endswith(".toml"):
            return built_in(self.name, self.budget or "small")
        if self.budget is not None:
            raise ValueError("a budget is for the built-in studies: a file says all itself.")
        return read_study(self.name)

    def _folder(self, plan: Plan) -> Path:
        other = plan.budget not in ("small", "custom")
        return Path("runs") / (f"{plan.name}-{plan.budget}" if other else plan.name)

    def _list(self, plan: Plan, folder: Path, runs: list[Run], left: list[Run]) -> None:
        status, backend = Status(plan, folder), self._backend
        for run in runs:
            state = status.states[run.id]
            print(f"{state:8}{named(run)}  [{run.id}]")
        print(f"{len(runs)} runs, {len(left)} to do, in {folder}")
        times = known_times(folder, plan.runs)
        source = "from the complete runs in this folder"
        if left and times.overall is None:
            times, some, all_ = rehearsed_times(left, self.data_dir, backend.threads)
            source = f"from a few steps of {some} of {all_} kinds of runs; evaluations, and some "
            source += "seconds in which each worker starts, left out"
        workers = backend.workers()
        total = duration(times.total(left, workers))
        print(f"time for what is left: {total}, {workers} at once ({source})")

    def _conclude(self, folder: Path, status: Status, tried: list[Run], interrupted: bool) -> None:
        failed = [run for run in tried if status.states[run.id] == "failed"]
        for run in failed:
            print(f"failed: {named(run)}: {error_line(folder, run)}")
            print(f"        {folder / 'runs' / run.id / 'error.txt'}")
        done, total = status.count("done"), len(status.plan.runs)
        if interrupted:
            print(f"stopped with {done} of {total} runs done; to go on: {command()}")
            raise Interrupted
        print(f"{done} of {total} runs done, in {folder}")
        if failed:
            raise SystemExit(1)
        busy = [run for run in tried if status.states[run.id] == "waiting"]
        if busy:
            print(f"{len(busy)} runs are in the hands of another process; for them: {command()}")
        elif done == total:
            print(f"to see it: gengs report {shlex.quote(str(folder))} -o report.html")


@dataclass(frozen=True)
class MergeStudies:
    """Join study folders of several machines into one; the same run twice must agree."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """The folders; they are not changed."""
    out: _Folder
    """The merged study's folder: a new one, or one of the same study."""

    def run(self) -> None:
        """Merge and say what came of it."""
        if not self.folders:
            raise ValueError("expected the folders of studies to merge.")
        plan, copied = merge(self.folders, self.out)
        status = Status(plan, self.out)
        print(
            f"{copied} run folders copied; {status.count('done')} of {len(plan.runs)} runs done, "
            f"in {self.out}"
        )
