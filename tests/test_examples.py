"""Each example runs, in a process of its own, for a few steps; it has a line in the list."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALL = {"simulator": ["--steps", "2", "--outbreaks", "2"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    settings = {key: value for key, value in os.environ.items() if key != "GENGS_DATA"}
    command = [sys.executable, "-W", "error", path, *SMALL.get(path.stem, ["--steps", "5"])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=settings)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4 and "nan" not in done.stdout
    assert not list(tmp_path.iterdir())  # it leaves nothing behind


def test_the_list_has_every_example():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 4
    for path in EXAMPLES:
        assert f"| [`{path.name}`]({path.name}) |" in listed
