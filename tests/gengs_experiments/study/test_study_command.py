"""``gengs study``: what is missing or failed is done, what is done is left alone."""

import importlib
import json
import re
from types import SimpleNamespace

import pytest
from studies import MEASURE, TRAIN, run, write

from gengs_experiments.cli import main
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.study.plan import read_plan
from gengs_experiments.study.progress_lines import ProgressLines
from gengs_experiments.study.status import Status
from gengs_experiments.study.study_file import STUDIES, read_study


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def grid(tmp_path):
    return write(tmp_path / "grid.toml", MEASURE, gradients=200)


def study(*arguments):
    """In this process: the exit code."""
    try:
        return main(["study", *map(str, arguments), "--workers", "1"])
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("name", STUDIES)
def test_every_built_in_study_runs(name, tmp_path, capsys):
    out = tmp_path / name
    assert study(name, "--budget", "smoke", "--out", out) == 0, capsys.readouterr().out
    status = Status(read_plan(out), out)
    assert status.count("done") == len(status.plan.runs) > 1
    assert not (out / ".study").exists()
    assert study(name, "--budget", "smoke", "--out", out) == 0
    assert "nothing is left to do" in capsys.readouterr().out


@pytest.mark.slow
def test_two_workers(grid, tmp_path):
    out = tmp_path / "out"
    done = run(grid, "--out", out, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "6/6 done" in done.stdout and "gengs report" in done.stdout
    assert study(grid, "--out", tmp_path / "alone") == 0
    for path in (out / "runs").iterdir():
        other = tmp_path / "alone" / "runs" / path.name
        assert (path / "records.jsonl").read_bytes() == (other / "records.jsonl").read_bytes()


def test_a_run_that_fails_keeps_its_error_and_is_tried_again(tmp_path, capsys):
    text = MEASURE.replace('["MidCDF"]', '["Magic"]')
    grid, out = write(tmp_path / "grid.toml", text, gradients=50), tmp_path / "out"
    assert study(grid, "--out", out) == 1
    said = capsys.readouterr().out
    assert "4 of 6 runs done" in said and "there is no estimator 'Magic'" in said
    status = Status(read_plan(out), out)
    failed = status.runs("failed")
    assert [run.config.estimators for run in failed] == [("Magic",)] * 2
    errors = [out / "runs" / run.id / "error.txt" for run in failed]
    assert all("Traceback" in error.read_text() for error in errors)

    kept = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/complete.json")}
    errors[0].write_text("an old error")
    assert study(grid, "--out", out) == 1  # both failed runs, and no other
    assert "Magic" in errors[0].read_text()
    assert {p: p.stat().st_mtime_ns for p in kept} == kept and len(kept) == 4
    assert study(grid, "--out", out, "--skip-failed") == 0
    said = capsys.readouterr().out
    assert "nothing is left to do" in said and "4 of 6 runs are done" in said


def test_only_and_max_runs(grid, tmp_path, capsys):
    out = tmp_path / "out"
    assert study(grid, "--out", out, "--only", "seed=1", "--max-runs", "2") == 0
    status = Status(read_plan(out), out)
    assert len(status.plan.runs) == 6  # the plan is whole
    assert [run.seed for run in status.runs("done")] == [1, 1]
    for wrong, sentence in {
        "sed=1": "did you mean 'seed'",
        "seed=7": "no run has seed '7'",
        "seed": "expected label=value",
    }.items():
        assert study(grid, "--out", out, "--only", wrong) == 2
        assert sentence in capsys.readouterr().err


def test_a_dry_run_does_nothing_and_says_where_its_estimate_is_from(tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("table1", "--budget", "smoke", "--out", out, "--dry-run")
    assert study(*arguments) == 0
    said = capsys.readouterr().out
    assert "4 runs, 4 to do" in said  # a slow machine has time for fewer kinds
    assert re.search("a few steps of [1-4] of 4 kinds", said)
    assert "waiting digits, Pois(2), RF*, seed 0" in said
    assert not out.exists()

    assert study(*arguments[:-1], "--max-runs", "1") == 0
    capsys.readouterr()
    timing = next(out.glob("runs/*/timing.json"))
    timing.write_text(json.dumps({"seconds": 600.0, "threads": 1}))
    assert study(*arguments) == 0
    said = capsys.readouterr().out
    assert "30 min, 1 at once (from the complete runs" in said  # three more as slow as this one


def test_an_estimate_counts_what_a_run_does_before_its_first_step(tmp_path, monkeypatch, capsys):
    """Loading takes a minute by this clock, training next to nothing."""
    clock = iter(range(0, 10**6, 60))
    registry = importlib.import_module("gengs_experiments.experiments.registry")
    registry._data.cache_clear()
    monkeypatch.setattr(registry, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    grid = write(tmp_path / "grid.toml", TRAIN, epochs=1, seeds="0, 1, 2")
    assert study(grid, "--out", tmp_path / "out", "--dry-run") == 0
    registry._data.cache_clear()
    said = capsys.readouterr().out
    assert "time for what is left: 6 min" in said  # three runs that load and build
    assert "evaluations, and some seconds in which each worker starts, left out" in said


def test_a_dry_run_downloads_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GENGS_DATA", raising=False)
    monkeypatch.setattr("gengs_experiments.data.archive.cache_folder", lambda: tmp_path / "cache")
    asked = []
    monkeypatch.setattr(
        "gengs_experiments.data.archive._download", lambda url, file: asked.append(url)
    )
    importlib.import_module("gengs_experiments.experiments.registry")._data.cache_clear()
    out = tmp_path / "out"
    assert study("table1", "--out", out, "--dry-run", "--max-runs", "2") == 0
    said = capsys.readouterr().out
    assert "the download of the data of 2 kinds, and" in said and "unknown" in said
    assert asked == [] and not out.exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_folder_of_another_study_is_refused(grid, tmp_path, capsys, more):
    out = tmp_path / "out"
    assert study(grid, "--out", out, "--max-runs", "1") == 0
    assert study("table1", "--budget", "smoke", "--out", out, *more) == 2
    assert "holds the study grid (custom), not table1 (smoke)" in capsys.readouterr().err
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    assert study(grid, "--out", tmp_path / "photos", *more) == 2
    assert "holds something else" in capsys.readouterr().err


def test_another_study_of_the_same_runs_is_refused_too(grid, tmp_path, capsys):
    """Also where nothing is left to do."""
    out = tmp_path / "out"
    assert study(grid, "--out", out) == 0
    assert study(grid.rename(tmp_path / "other.toml"), "--out", out) == 2
    assert "holds the study grid (custom), not other (custom)" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("text", [MEASURE, TRAIN.replace("{seeds}", "0, 1")])
def test_a_negative_seed_is_refused_before_anything_runs(tmp_path, capsys, text, more):
    text = text.replace("seed = [0, 1]", "seed = [0, -1]")
    grid, out = write(tmp_path / "grid.toml", text, gradients=50, epochs=1), tmp_path / "out"
    assert study(grid, "--out", out, *more) == 2
    output = capsys.readouterr()
    assert "expected a `seed` of at least 0 for the run" in output.err and "got -1" in output.err
    assert not output.out and not out.exists()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('estimator = "Foo"', "with estimator 'Foo': there is no estimator 'Foo'"),
        ('prior = "poison(2)"', "with prior 'poison(2)': "),
        ("epochs = 0", ": expected at least 1 for --epochs, but got 0"),
    ],
)
def test_a_dry_run_names_the_run_and_the_setting_that_is_wrong(tmp_path, capsys, setting, sentence):
    text = TRAIN.replace("epochs = {epochs}\n", "").replace("[grid]", f"{setting}\n[grid]")
    grid = write(tmp_path / "grid.toml", text, seeds="7")
    assert study(grid, "--out", tmp_path / "out", "--dry-run") == 2
    output = capsys.readouterr()
    run_id = output.out.partition("[")[2].partition("]")[0]
    assert output.err.startswith(f"gengs: the run {run_id}") and "seed7" in run_id
    assert sentence in output.err


def test_lines_count_up_although_several_runs_ended_at_once(tmp_path, capsys):
    plan = read_study(write(tmp_path / "grid.toml", MEASURE, gradients=50))
    looks = [Status(plan, tmp_path)]
    with ProgressLines(lambda: looks[-1], workers=1, seconds=1000):
        for run in plan.runs:
            path = tmp_path / "runs" / run.id
            with RunFolder.open(path, run.config) as folder:
                folder.records.append({"step": 0})
            (path / "complete.json").touch()
        looks.append(Status(plan, tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"{n}/6 done" for n in range(1, 7)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tabel1"], "did you mean 'table1'"),
        (["none.toml"], "there is no file"),
        (["table1", "--max-runs", "0"], "--max-runs"),
        (["table1", "--gpus-per-run", "1"], "need --backend ray"),
    ],
)
def test_bad_usage(arguments, sentence, tmp_path, capsys):
    assert study(*arguments, "--out", tmp_path / "out") == 2
    assert sentence in capsys.readouterr().err


def test_a_file_has_no_budget(grid, tmp_path, capsys):
    assert study(grid, "--budget", "smoke", "--out", tmp_path / "out") == 2
    assert "a budget is for the built-in studies" in capsys.readouterr().err
