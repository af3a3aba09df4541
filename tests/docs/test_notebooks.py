"""The tutorials' notebooks: valid, without prompts, and run from the first cell to the last."""

import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
notebook = runpy.run_path(str(ROOT / "docs" / "_ext" / "notebooks.py"))["notebook"]


def cells(page, kind):
    found = json.loads(json.dumps(notebook(page.read_text(encoding="utf-8"))))
    assert found["nbformat"] == 4
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"]) > 3
    return [cell for cell in found["cells"] if cell["cell_type"] == kind]


def sources(page, kind):
    return ["".join(cell["source"]) for cell in cells(page, kind)]


def statements(cell):
    """Of a cell; one that is there to show an error has to raise it."""
    source = "".join(cell["source"])
    if "raises-exception" not in cell["metadata"].get("tags", ()):
        return source
    inner = textwrap.indent(source, "    ")
    return f"try:\n{inner}\nexcept ValueError:\n    pass\nelse:\n    raise SystemExit('no error')"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_example_of_the_page_is_in_the_notebook(page):
    code, text = sources(page, "code"), sources(page, "markdown")
    assert code and not any(re.search(r"^(>>>|\.\.\.) |doctest:", one, re.M) for one in code)
    page_text = page.read_text(encoding="utf-8")
    prompts = len(re.findall(r"^(?:>>>|\.\.\.)(?: |$)", page_text, re.M))
    assert sum(len(one.splitlines()) for one in code) == prompts
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(text)):
        assert link.startswith("http"), link


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_it_runs(page, tmp_path):
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(map(statements, cells(page, "code"))), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
