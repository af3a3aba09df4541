"""A folder counts as a run's result only if it was made with the settings that would be run now."""

import json
import shutil
from dataclasses import dataclass, field

import pytest
from studies import MEASURE, finish_again, write

from gengs_experiments.cli import main
from gengs_experiments.runs.config import UNRECORDED, differences, in_words
from gengs_experiments.study.plan import read_plan
from gengs_experiments.study.status import Status


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    text = MEASURE.replace('estimators = [["RLOO(4)"], ["MidCDF"], ["GenGS(0.5)"]]', "")
    return write(tmp_path / "grid.toml", text, gradients=50)


@pytest.fixture
def done(grid, tmp_path):
    """A study of two runs, both done."""
    assert study(grid, tmp_path / "done") == 0
    return tmp_path / "done"


def study(grid, out, *arguments):
    return main(["study", str(grid), "--out", str(out), "--workers", "1", *arguments])


def first(folder):
    return sorted((folder / "runs").iterdir())[0]


def edit(path, **settings):
    content = json.loads((path / "config.json").read_text())
    content["config"].update(settings)
    (path / "config.json").write_text(json.dumps(content))


def forget(path, name):
    content = json.loads((path / "config.json").read_text())
    del content["config"][name]
    (path / "config.json").write_text(json.dumps(content))
    finish_again(path)


def refused(grid, folder, capsys, *words):
    """In all commands alike, in one sentence, and with nothing written."""
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    capsys.readouterr()
    for arguments in ((), ("--dry-run",), ("--skip-failed",)):
        assert study(grid, folder, *arguments) == 2
        output = capsys.readouterr()
        assert output.out == ""
        for word in (*words, "delete that folder", "another folder"):
            assert word in output.err
        assert output.err.count("\n") == 1
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert Status(read_plan(folder), folder).count("done") < 2


def test_a_run_of_before_a_default_changed_is_not_done(grid, done, capsys):
    """As an older version with another default would have left it: the id is the same."""
    plan = json.loads((done / "plan.json").read_text())
    for run in plan["runs"]:
        run["config"]["target"] = 2.5
        edit(done / "runs" / run["id"], target=2.5)
    (done / "plan.json").write_text(json.dumps(plan))
    capsys.readouterr()
    for arguments in ((), ("--dry-run",)):
        assert study(grid, done, *arguments) == 2
        error = capsys.readouterr().err
        assert "target: 2.5, now 2.6" in error and plan["runs"][0]["id"] in error
        assert "1 more" in error
    assert json.loads((done / "plan.json").read_text()) == plan  # not adopted


def test_an_edited_run_is_not_done(grid, done, capsys):
    edit(first(done), target=1.5)
    refused(grid, done, capsys, first(done).name, "target: 1.5, now 2.6")
    edit(first(done), target=2.6, strange=1)
    refused(grid, done, capsys, "strange: 1, now no such setting")


def test_an_unfinished_run_with_other_settings_is_refused_alike(grid, done, capsys):
    (first(done) / "complete.json").unlink()
    edit(first(done), target=1.5)
    refused(grid, done, capsys, first(done).name, "target: 1.5, now 2.6")


def test_a_run_without_its_record_of_settings_is_refused(grid, done, capsys):
    (first(done) / "config.json").write_text("{")
    refused(grid, done, capsys, first(done).name, "config.json is damaged")
    (first(done) / "config.json").unlink()
    refused(grid, done, capsys, first(done).name, "no config.json")


@pytest.mark.parametrize("lose", [lambda p: p.unlink(), lambda p: p.write_bytes(b"")])
def test_a_run_without_records_is_not_done(grid, done, capsys, lose):
    lose(first(done) / "records.jsonl")
    refused(grid, done, capsys, first(done).name, "records.jsonl is missing or empty")
    shutil.rmtree(first(done))  # as the sentence says
    assert study(grid, done) == 0
    assert "2 of 2 runs done" in capsys.readouterr().out


def test_a_setting_that_an_old_run_does_not_know_has_its_default(grid, done, tmp_path, capsys):
    forget(first(done), "warm_up")
    capsys.readouterr()
    assert study(grid, done) == 0
    assert "nothing is left to do" in capsys.readouterr().out
    forget(first(done), "gradients")  # the study sets it: 50, not the default
    refused(grid, done, capsys, "gradients: 20000, now 50")


def test_runs_of_another_machine_are_copied_in(grid, done, tmp_path, capsys):
    here = tmp_path / "here"
    assert study(grid, here, "--max-runs", "1") == 0
    for run in (done / "runs").iterdir():
        if not (here / "runs" / run.name).exists():
            shutil.copytree(run, here / "runs" / run.name)
    capsys.readouterr()
    assert study(grid, here) == 0
    assert "nothing is left to do" in capsys.readouterr().out


@dataclass(frozen=True)
class Config:
    rate: float = 1.0
    sizes: tuple[int, ...] = (1, 2)
    workers: int = field(default=1, metadata=UNRECORDED)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"rate": 1}, {"rate": 1.0}, ""),
        ({"rate": float("nan")}, {"rate": float("nan")}, ""),
        ({}, {"rate": 1.0, "sizes": [1, 2]}, ""),
        ({"rate": 1.0, "sizes": [1, 2]}, {}, ""),
        ({}, {"rate": 2.0}, "rate: 1.0, now 2.0"),
        ({"workers": 8}, {}, ""),  # once recorded, now not
        ({"old": 3}, {}, "old: 3, now no such setting"),
    ],
)
def test_settings_on_one_side_only(before, after, words):
    assert in_words(differences(Config, before, after)) == words
