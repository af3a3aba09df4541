"""Many runs at once, by joblib: in processes of this machine, or on a Ray cluster.

Runs never raise (:mod:`.worker`), so an exception here means that a worker process died: out of
memory, or its machine is gone. joblib then gives up the whole batch. The runs that were done stay
done; the rest begins again where its checkpoints are, on the workers that are left.

A run that takes its worker down with it must not do so for ever. Runs that were in progress when a
worker died, twice at the same checkpoint, are done one by one; one that then loses its worker when
it is alone is the culprit, and has failed.
"""

from __future__ import annotations

__all__ = ["Backend", "Loky", "RayCluster", "fan_out"]

import logging
import os
import socket
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .atomic import write_atomically
from .plan import Run
from .worker import Job, NotSharedError, execute


class Backend(Protocol):
    """Where runs are executed."""

    @property
    def threads(self) -> int:
        """Of torch, for one run."""

    def workers(self, after_death: bool = False) -> int:
        """How many runs at once, at this moment; ``after_death`` of a worker, ask again."""

    def map(self, runs: Sequence[Run], job: Job, workers: int) -> None:
        """Execute runs; raises if a worker dies."""

    def close(self) -> None:
        """Let go of the workers."""


@dataclass(frozen=True)
class Loky:
    """Processes of this machine.

    Args:
        count: How many; ``None`` for one per core.
    """

    count: int | None = None

    def workers(self, after_death: bool = False) -> int:
        from joblib import cpu_count

        return self.count or int(cpu_count())

    @property
    def threads(self) -> int:
        from joblib import cpu_count

        told = os.environ.get("OMP_NUM_THREADS", "")
        return int(told) if told.isdigit() and int(told) else max(1, cpu_count() // self.workers())

    def map(self, runs: Sequence[Run], job: Job, workers: int) -> None:
        from joblib import Parallel, delayed, parallel_config

        with (
            parallel_config(backend="loky", inner_max_num_threads=job.threads),
            warnings.catch_warnings(),
        ):
            # loky replaces a worker whose memory has grown; that is no news to a user
            warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
            Parallel(n_jobs=workers, batch_size=1)(delayed(execute)(run, job) for run in runs)

    def close(self) -> None:
        pass  # they end with this process


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster, through Ray's own joblib backend.

    Args:
        address: Of an existing cluster; by default ``$RAY_ADDRESS``, or one on this machine alone.
        count: How many runs at once; ``None`` for as many as the cluster has room for.
        gpus: For each run, or a part of one.
        threads: CPUs for each run.
    """

    address: str | None = None
    count: int | None = None
    gpus: float = 0.0
    threads: int = 1

    def connect(self) -> None:
        """Connect, once."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise ValueError("the ray backend needs Ray: pip install 'gengs[ray]'") from None
        register_ray()
        if not ray.is_initialized():
            try:
                _knock(self.address)
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, ValueError, RuntimeError) as error:
                raise OSError(f"there is no Ray cluster at {self.address}: {error}") from error

    def workers(self, after_death: bool = False) -> int:
        import ray

        self.connect()
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]
        room = 0
        for node in _answering(nodes) if after_death else nodes:
            has = node["Resources"]
            fits = has.get("CPU", 0) // self.threads
            room += int(min(fits, has.get("GPU", 0) // self.gpus) if self.gpus else fits)
        return room if self.count is None else min(self.count, room)

    def map(self, runs: Sequence[Run], job: Job, workers: int) -> None:
        from joblib import Parallel, delayed

        resources: dict[str, Any] = {"num_cpus": self.threads, "num_gpus": self.gpus}
        # Ray's pool deals tasks out in turns, so all at once keeps everyone busy longest.
        parallel = Parallel(
            n_jobs=workers,
            backend="ray",
            batch_size=1,
            pre_dispatch="all",
            ray_remote_args=resources,
        )
        parallel(delayed(execute)(run, job) for run in runs)

    def close(self) -> None:
        import ray

        ray.shutdown()


def _knock(address: str | None) -> None:
    """Raise ``OSError`` if nobody listens there; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=20).close()


def _answer() -> None:
    pass


def _answering(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The machines that answer. One that just died counts as alive for a while: ask each."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    answer = ray.remote(num_cpus=0, max_retries=0)(_answer)
    asked = {}
    for node in nodes:
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked[answer.options(scheduling_strategy=there).remote()] = node
    waiting, found = list(asked), []
    seconds = 60.0  # for the first
    while waiting and (ready := ray.wait(waiting, timeout=seconds)[0]):
        waiting.remove(ready[0])
        with suppress(ray.exceptions.RayError):
            ray.get(ready[0])
            found.append(asked[ready[0]])
            seconds = 10.0
    return found


def fan_out(
    runs: Sequence[Run],
    job: Job,
    backend: Backend,
    remaining: Callable[[Sequence[Run]], list[Run]],
    say: Callable[[str], None],
) -> None:
    """Execute runs, whatever happens to the workers.

    Args:
        runs: What is to be done.
        job: What they have in common.
        backend: Where.
        remaining: Which of some runs are neither done nor failed.
        say: Tell the user something.
    """
    deaths: Counter[str] = Counter()
    places: dict[str, tuple[int, int]] = {}
    total = idle = 0  # deaths, and those in a row with no run in progress
    while runs and not job.session.stopping:
        batch = [run for run in runs if deaths[run.id] < 2]
        alone = not batch
        batch = batch or list(runs[:1])
        workers = min(backend.workers(after_death=total > 0), len(batch))
        if workers < 1:
            raise OSError("the cluster has no room for a run.")
        try:
            # Two workers for one suspect: one would be this process itself.
            backend.map(batch, job, 2 if alone else workers)
        except (NotSharedError, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            lost = [run for run in batch if run.id in job.session.running()]
            total, idle = total + 1, 0 if lost else idle + 1
            if idle == 3:
                raise OSError(f"workers die before they begin a run: {error}") from error
            for run in lost:
                place = _place(job.folder_of(run))
                deaths[run.id] = deaths[run.id] + 1 if places.get(run.id) == place else 1
                places[run.id] = place
                job.session.ended(run.id)
                if alone:
                    _give_up(job, run, error)
            say(f"a worker died with {_count(lost)} in progress; going on: {_first_line(error)}")
            runs = remaining(runs)
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


def _give_up(job: Job, run: Run, error: Exception) -> None:
    path = job.folder_of(run)
    path.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        text = f"The worker process died three times in this run; the last time alone.\n{error}\n"
        write_atomically(path / "error.txt", text.encode())


def _count(runs: Sequence[Run]) -> str:
    return f"{len(runs)} run" if len(runs) == 1 else f"{len(runs)} runs"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
