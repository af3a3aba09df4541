"""A study on a real Ray cluster of two machines, one of which dies in the middle."""

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from studies import (
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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs gengs[ray]"),
]


@pytest.fixture
def cluster():
    """The cluster's process, with its ``address``; nothing of it outlives the test."""
    program = Path(__file__).with_name("ray_cluster.py")
    process = subprocess.Popen(
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        line = process.stdout.readline().split()
        assert line, "the cluster did not start"
        process.address, process.fragile = line[0], int(line[1])
        yield process
    finally:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=120)
        kill_session(process.pid)
        process.stdout.close()
        process.wait()
        wait_for(lambda: not session_members(process.pid))


def recorded_by(daemon, out):
    """The records so far of the run in progress on the machine of this daemon."""
    for note in in_progress(out):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, IndexError):
            worker = note.read_text().split()[1]
            parent = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == daemon:
                return records(out).get(note.name)
    return None


def test_a_machine_dies_and_no_record_is_lost_or_doubled(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    grid = write(tmp_path / "grid.toml", TRAIN, epochs=60, seeds="0, 1, 2")
    out = tmp_path / "out"
    study = start(grid, "--out", out, "--backend", "ray", "--ray-address", cluster.address)
    try:
        wait_for(lambda: recorded_by(cluster.fragile, out), study)
        cluster.stdin.write("kill\n")
        cluster.stdin.flush()
        assert cluster.stdout.readline().strip() == "killed"
        said, _ = study.communicate(timeout=600)
    finally:
        kill_session(study.pid)
        study.communicate()
    assert study.returncode == 0, said
    assert "a worker died with" in said and "3 of 3 runs done" in said
    assert "raylet" not in said  # Ray keeps its logs to itself
    assert main(["study", str(grid), "--out", str(tmp_path / "alone"), "--workers", "1"]) == 0
    assert records(out) == records(tmp_path / "alone")
    assert len(records(out)) == 3


def test_there_is_no_cluster(tmp_path, capsys):
    grid = write(tmp_path / "grid.toml", 'experiment = "measure"')
    arguments = ["--backend", "ray", "--ray-address", "127.0.0.1:1", "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-m", "gengs", "study", grid, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
