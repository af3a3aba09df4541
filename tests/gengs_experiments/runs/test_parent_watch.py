"""A process that is killed outright takes those with it that it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gengs_experiments.runs.machine import launch

COMMAND = [sys.executable, "-m", "gengs", "vae", "--epochs", "100", "--devices", "2"]

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for children")


def children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def alive(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2][1] != "Z"
    except OSError:
        return False


@linux
@pytest.mark.slow
def test_a_killed_process_leaves_no_child(tmp_path):
    """While they start: in training, the child notices that its connection is gone."""
    command = [*COMMAND, "--out", str(tmp_path / "run")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    started: list[int] = []
    try:
        started = wait_for(lambda: children(first.pid))
        assert len(started) == 1
        first.kill()
        first.wait()
        # its imports come before the watch
        assert wait_for(lambda: not alive(started[0]))
    finally:
        first.kill()
        for process in started:
            if alive(process):
                os.kill(process, signal.SIGKILL)


KILLED_AS_IT_STARTS_WORKERS = """
import os, signal, sys
from joblib.externals.loky.process_executor import ProcessPoolExecutor
start = ProcessPoolExecutor._adjust_process_count
def start_and_die(self):
    start(self)
    open(sys.argv[1], "w").write(" ".join(map(str, self._processes)))
    os.kill(os.getpid(), signal.SIGKILL)
ProcessPoolExecutor._adjust_process_count = start_and_die
from gengs_experiments.cli import main
main(sys.argv[2:])
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("line", ["synthetic --seeds 2 --out {}/run", "study {}/s.toml --out {}/s"])
def test_workers_that_never_had_work_end_with_their_command(line, tmp_path):
    """It dies with loky's lock in its hand: they would wait for it, for ever."""
    (tmp_path / "s.toml").write_text('experiment = "measure"\n[grid]\nseed = [0, 1]\n')
    line = line.replace("{}", str(tmp_path)).split()
    noted = tmp_path / "workers"
    program = [sys.executable, "-c", KILLED_AS_IT_STARTS_WORKERS, str(noted)]
    # not to a pipe: the workers would hold it open
    done = subprocess.run([*program, *line, "--workers", "2"], stdout=subprocess.DEVNULL)
    workers = [int(number) for number in noted.read_text().split()]
    try:
        assert done.returncode == -signal.SIGKILL and len(workers) == 2
        assert wait_for(lambda: not any(map(alive, workers)))
    finally:
        for process in workers:
            if alive(process):
                os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_where_the_first_process_refuses_the_others_are_silent(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "letter.txt").write_text("not a run")
    command = [*COMMAND, "--out", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 2
    assert f"{folder} is not a run" in done.stderr and "Traceback" not in done.stderr


def test_what_is_left_for_the_processes_of_a_run_is_for_them_alone(monkeypatch):
    seen = []

    class Launcher:
        def launch(self):
            seen.append(os.environ["GENGS_PARENT"])

    monkeypatch.delenv("GENGS_PARENT", raising=False)
    launch(Launcher())
    assert seen == [str(os.getpid())]
    assert "GENGS_PARENT" not in os.environ
