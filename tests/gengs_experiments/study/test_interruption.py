"""A study that is stopped or killed, or loses a worker, ends as one that was left alone."""

import os
import signal
import subprocess
import sys
import time

import pytest
from studies import (
    ENVIRONMENT,
    MEASURE,
    TRAIN,
    in_progress,
    kill_session,
    records,
    session_members,
    start,
    wait_for,
    write,
)

from gengs_experiments.cli import main
from gengs_experiments.runs.machine import Machine
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.study.runner import fan_out
from gengs_experiments.study.status import Status
from gengs_experiments.study.study_file import read_study
from gengs_experiments.study.worker import Session

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks into /proc")  # noqa: PTH112


@pytest.fixture
def studies():
    """Start studies; whatever is left of them is ended."""
    started = []

    def begin(*arguments):
        started.append(start(*arguments))
        return started[-1]

    yield begin
    for process in started:
        kill_session(process.pid)
        process.communicate()


def here(grid, out):
    return main(["study", str(grid), "--out", str(out), "--workers", "1"])


@pytest.mark.slow
def test_killed_in_the_middle_and_taken_up_again(studies, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    grid = write(tmp_path / "grid.toml", TRAIN, epochs=100, seeds="0, 1")
    out = tmp_path / "out"
    study = studies(grid, "--out", out, "--workers", "2")
    wait_for(lambda: any(len(content) > 500 for content in records(out).values()), study)
    assert not list(out.glob("runs/*/weights.safetensors")), "it was too fast to be killed"
    os.kill(study.pid, signal.SIGKILL)
    study.wait()
    # Nobody goes on behind our back: the workers save their runs and end.
    wait_for(lambda: not session_members(study.pid))
    assert list(out.glob("runs/*/checkpoint.pt"))
    assert here(grid, out) == 0
    assert not (out / ".study").exists()  # what the killed command left is cleared away
    assert here(grid, tmp_path / "alone") == 0
    assert records(out) == records(tmp_path / "alone")


@pytest.mark.slow
def test_killed_at_five_moments_of_its_start_it_leaves_nobody_behind(studies, tmp_path):
    grid = write(tmp_path / "grid.toml", TRAIN, epochs=10_000, seeds="0, 1")
    for moment in range(5):
        study = studies(grid, "--out", tmp_path / str(moment), "--workers", "2")
        # the workers are there; from then on they import, are given a run, and train
        wait_for(lambda study=study: len(session_members(study.pid)) >= 3, study)
        time.sleep(0.9 * moment)
        os.kill(study.pid, signal.SIGKILL)
        study.wait()
        wait_for(lambda study=study: not session_members(study.pid))


KILLED_AT_THE_WORST_MOMENT = """
import os, sys
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from gengs_experiments.cli import main

start_workers = ProcessPoolExecutor._adjust_process_count

def start_and_die(executor):
    start_workers(executor)
    os.kill(os.getpid(), 9)

ProcessPoolExecutor._adjust_process_count = start_and_die
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_killed_with_the_lock_on_its_workers_it_leaves_nobody_behind(tmp_path):
    """An idle worker ends by itself only where it can have that lock, which nobody gives back."""
    grid = write(tmp_path / "grid.toml", TRAIN, epochs=10_000, seeds="0, 1")
    arguments = ["study", grid, "--out", tmp_path / "out", "--workers", "2"]
    study = subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_THE_WORST_MOMENT, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    try:
        assert study.wait() == -signal.SIGKILL
        wait_for(lambda: not session_members(study.pid), seconds=120)
    finally:
        kill_session(study.pid)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop(studies, tmp_path, number):
    grid = write(tmp_path / "grid.toml", MEASURE, gradients=300_000)
    out = tmp_path / "out"
    workers = 2 if number == signal.SIGINT else 1
    study = studies(grid, "--out", out, "--workers", workers)
    wait_for(lambda: len(in_progress(out)) == workers, study)
    study.send_signal(number)
    said, _ = study.communicate(timeout=600)
    assert study.returncode == 130, said
    assert "of 6 runs done; to go on: python -m gengs study" in said
    assert not (out / ".study").exists()
    assert not list(out.glob("runs/*/error.txt"))
    wait_for(lambda: not session_members(study.pid))


@pytest.mark.slow
def test_a_worker_that_is_killed(studies, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    grid = write(tmp_path / "grid.toml", MEASURE, gradients=20_000)
    out = tmp_path / "out"
    study = studies(grid, "--out", out, "--workers", "2")
    wait_for(lambda: in_progress(out), study)
    os.kill(int(in_progress(out)[0].read_text().split()[1]), signal.SIGKILL)
    said, _ = study.communicate(timeout=600)
    assert study.returncode == 0, said
    assert "a worker died with" in said and "6 of 6 runs done" in said
    assert here(grid, tmp_path / "alone") == 0
    assert records(out) == records(tmp_path / "alone")


class Fragile:
    """A backend whose worker dies in certain runs; two runs are in progress at any time."""

    threads = 1

    def __init__(self, deadly, folder):
        self.deadly, self.folder, self.batches = deadly, folder, []

    def workers(self, after_death=False):
        return 2

    def map(self, runs, session, workers):
        self.batches.append([run.seed for run in runs])
        for pair in zip(runs[::2], [*runs[1::2], None], strict=False):
            for run in filter(None, pair):
                session.started(run)
            if any(run is not None and run.seed in self.deadly for run in pair):
                raise RuntimeError("a worker is gone")
            for run in filter(None, pair):
                session.ended(run)
                with RunFolder.open(session.folder_of(run), run.config) as folder:
                    folder.records.append({"step": 0})
                    folder.finish()


def test_a_run_that_kills_its_worker_is_found_and_given_up(tmp_path):
    text = 'experiment = "measure"\n[grid]\nseed = [0, 1, 2, 3, 4]'
    plan = read_study(write(tmp_path / "grid.toml", text.replace("{", "{{")))
    backend, said = Fragile({3}, tmp_path), []
    with Session(tmp_path, Machine()) as session:
        fan_out(plan, session, backend, said.append)
    states = Status(plan, tmp_path).states
    assert {run.seed: states[run.id] for run in plan.runs} == {
        0: "done", 1: "done", 2: "done", 3: "failed", 4: "done"
    }  # fmt: skip
    # 2 is in progress beside 3; after the second death, suspects are done one by one
    assert backend.batches == [[0, 1, 2, 3, 4], [2, 3, 4], [4], [2], [3]]
    assert len(said) == 3
    culprit = next(run for run in plan.runs if run.seed == 3)
    assert "died" in (session.folder_of(culprit) / "error.txt").read_text()


def test_workers_that_never_begin(tmp_path):
    plan = read_study(write(tmp_path / "grid.toml", 'experiment = "measure"'))

    class Broken(Fragile):
        def map(self, runs, session, workers):
            raise RuntimeError("no room")

    with (
        Session(tmp_path, Machine()) as session,
        pytest.raises(OSError, match=r"before they begin.* no room"),
    ):
        fan_out(plan, session, Broken(set(), tmp_path), lambda text: None)
