"""Ctrl-C, a polite kill, a closed terminal: one request. What is done is kept, exit code 130."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")

LONG = {
    "measure": ["--gradients", "20000000", "--estimators", "MidCDF", "UnOrd(10)"],
    "synthetic": ["--steps", "200000", "--seeds", "2", "--estimators", "RF", "RF*"],
    "vae": ["--epochs", "5000"],
}


def start(command, out, **options):
    line = [sys.executable, "-m", "gengs", command, *LONG[command], "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GENGS_TEST_TAG": str(out)}
    return subprocess.Popen(line, env=environment, text=True, preexec_fn=as_usual, **options)


def as_usual():
    """What a shell in the background ignores, its children would ignore too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def tagged(out):
    """The processes of a command, orphans too."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"GENGS_TEST_TAG={out}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has just ended
            continue
    return found


def wait_until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def has_begun(command, out):
    """It is at work: beyond its imports and its checks."""
    if command == "synthetic":
        return len(tagged(out)) >= 3  # workers
    return (out / "records.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "number"),
    [
        # the engine's own: Ctrl-C in test_training, a closed terminal below
        ("vae", signal.SIGTERM),
        ("synthetic", signal.SIGINT),
        ("synthetic", signal.SIGHUP),
        *(("measure", number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_signal_keeps_what_is_done_and_says_how_to_go_on(tmp_path, command, number):
    out = tmp_path / "run"
    process = start(command, out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: has_begun(command, out) or process.poll() is not None)
        time.sleep(1)
        process.send_signal(number)
        said, errors = process.communicate(timeout=300)
        assert process.returncode == 130, (said, errors)
        assert "to go on: " in said and " --resume" in said
        assert "Traceback" not in errors, errors
        wait_until(lambda: not tagged(out))
    finally:
        for pid in tagged(out):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_a_killed_synthetic_leaves_nobody_behind(tmp_path):
    out = tmp_path / "run"
    process = start("synthetic", out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(tagged(out)) >= 3)
        time.sleep(8)  # imports are done and both are at work
        process.kill()
        process.wait()
        wait_until(lambda: not tagged(out))
    finally:
        for pid in tagged(out):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_terminal_that_is_closed(tmp_path):
    """The first run saves itself, although nobody hears it any more."""
    out = tmp_path / "run"
    ours, theirs = pty.openpty()
    process = start("vae", out, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        wait_until(lambda: has_begun("vae", out) or process.poll() is not None)
        time.sleep(2)
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as the kernel would do for a controlling terminal
        assert process.wait(timeout=300) == 130
        assert (out / "checkpoint.pt").exists()
    finally:
        process.kill()
        process.wait()


def test_an_interrupted_import_ends_with_the_code(tmp_path):
    """Python ends by SIGINT after a KeyboardInterrupt in exec(), whoever has caught it since."""
    (tmp_path / "interrupted.py").write_text(
        "import gengs_experiments.cli\n"
        "gengs_experiments.cli._run = lambda arguments: exec('raise KeyboardInterrupt')\n"
        "gengs_experiments.cli.entry()\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 130 and done.stderr == "gengs: interrupted\n"
