"""Where runs are executed, by joblib: in processes of this machine, or on a Ray cluster."""

__all__ = ["Backend", "Loky", "RayCluster"]

import logging
import math
import os
import platform
import socket
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config

from ..runs.machine import require_semaphores
from .plan import PlannedRun
from .worker import Session, execute, watch


@dataclass(frozen=True)
class Loky:
    """So many processes of this machine; ``None`` for one per core."""

    count: int | None = None

    children = True

    def workers(self, after_death: bool = False) -> int:
        """How many runs at once."""
        require_semaphores(self.count or 2)
        return self.count or int(cpu_count())

    @property
    def threads(self) -> int:
        """Of torch, for one run."""
        told = os.environ.get("OMP_NUM_THREADS", "")
        return int(told) if told.isdigit() and int(told) else max(1, cpu_count() // self.workers())

    def map(self, runs: Sequence[PlannedRun], session: Session, workers: int) -> None:
        """Execute runs; raises if a worker dies."""
        with (
            parallel_config(
                backend="loky",
                inner_max_num_threads=session.threads,
                # a command that was asked to stop waits at its end for workers that idle
                idle_worker_timeout=10,
            ),
            warnings.catch_warnings(),
        ):
            # loky replaces a worker whose memory has grown; that is no news to a user
            warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
            # a worker whose command was killed before it had a run must not wait for one
            _map(runs, session, n_jobs=workers, initializer=watch, initargs=(session,))

    def close(self) -> None:
        """Nothing: the workers end with this process."""


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster, through Ray's own joblib backend."""

    address: str | None = None
    """Of an existing one; by default ``$RAY_ADDRESS``, or one on this machine alone."""
    count: int | None = None
    """How many runs at once; ``None`` for as many as the cluster has room for."""
    gpus: float = 0.0
    """For each run, or a part of one."""

    threads = 1  # and CPUs, for each run
    children = False  # Ray ends what it started for a command that is gone

    def _connect(self) -> None:
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
                host, colon, port = (self.address or "").removeprefix("ray://").rpartition(":")
                if colon and port.isdigit():  # is anybody there? Ray itself would try for minutes
                    socket.create_connection((host, int(port)), timeout=20).close()
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, ValueError, RuntimeError) as error:
                raise OSError(f"there is no Ray cluster at {self.address}: {error}") from error

    def workers(self, after_death: bool = False) -> int:
        """How many runs at once, at this moment; ``after_death`` of a worker, ask each machine."""
        import ray

        self._connect()
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]
        room = 0
        for node in _answering(nodes) if after_death else nodes:
            has = node["Resources"]
            room += int(min(has["CPU"], has.get("GPU", 0) // self.gpus if self.gpus else math.inf))
        return room if self.count is None else min(self.count, room)

    def map(self, runs: Sequence[PlannedRun], session: Session, workers: int) -> None:
        """Execute runs; raises if a worker dies."""
        resources = {"num_cpus": 1, "num_gpus": self.gpus}
        # Ray's pool deals tasks out in turns, so all at once keeps everyone busy longest.
        options = {"pre_dispatch": "all", "ray_remote_args": resources}
        _map(runs, session, n_jobs=workers, backend="ray", **options)

    def close(self) -> None:
        """Leave the cluster."""
        import ray

        ray.shutdown()


Backend = Loky | RayCluster


def _map(runs: Sequence[PlannedRun], session: Session, **options: Any) -> None:
    Parallel(batch_size=1, **options)(delayed(execute)(run, session) for run in runs)


def _answering(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The machines that answer. One that just died counts as alive for a while: ask each."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    answer = ray.remote(num_cpus=0, max_retries=0)(platform.node)
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
