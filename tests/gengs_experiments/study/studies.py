"""Small studies, and the command that runs them as people do."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from gengs_experiments.runs.records import COMPLETE, checksums

# Seconds without a heavy import: nothing is trained.
MEASURE = """
experiment = "measure"
[base]
law = "poisson(3)"
level = 12
gradients = {gradients}
[grid]
estimators = [["RLOO(4)"], ["MidCDF"], ["GenGS(0.5)"]]
seed = [0, 1]
"""

# A real training, long enough to be killed in the middle.
TRAIN = """
experiment = "vae"
[base]
data = "digits"
images = 500
network = "64-32"
latents = 4
epochs = {epochs}
evaluation_images = 50
[grid]
seed = [{seeds}]
"""

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def write(path, text, **values):
    path.write_text(text.format(**values))
    return path


def command(*arguments):
    return [sys.executable, "-m", "gengs", "study", *map(str, arguments)]


def run(*arguments, timeout=600):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT
    )


def start(*arguments):
    """In a session of its own, so that all of it can be found and ended."""
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )


def session_members(leader):
    """The living processes of a session, whatever groups they made."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state not in "ZX":
            found.append(int(entry.name))
    return found


def kill_session(leader):
    for pid in session_members(leader):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue


def wait_for(condition, process=None, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        if process is not None and process.poll() is not None:
            raise AssertionError(f"it ended early: {process.stdout.read()}")
        time.sleep(0.05)


def records(folder):
    """The bytes of all records by run."""
    return {
        path.parent.name: path.read_bytes()
        for path in sorted((folder / "runs").glob("*/records.jsonl"))
    }


def finish_again(path):
    """As if the run in this folder had ended with what is there now."""
    count = (path / "records.jsonl").read_bytes().count(b"\n")
    (path / COMPLETE).write_text(json.dumps({"records": count, "sha256": checksums(path)}))


def in_progress(folder):
    return [path for path in folder.glob(".study/*/*") if path.name != "stop"]
