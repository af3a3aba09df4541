"""Study folders of several machines become one."""

import pytest
from studies import MEASURE, finish_again, records, write

from gengs_experiments.cli import main
from gengs_experiments.study.plan import read_plan
from gengs_experiments.study.status import Status


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return write(tmp_path / "grid.toml", MEASURE, gradients=50)


def study(grid, out, *arguments):
    assert main(["study", str(grid), "--out", str(out), "--workers", "1", *arguments]) == 0


def merge(*folders, out):
    return main(["study", "merge", *map(str, folders), "-o", str(out)])


def test_two_halves_make_a_whole(grid, tmp_path, capsys):
    a, b, both = (tmp_path / name for name in ("a", "b", "both"))
    study(grid, a, "--only", "seed=0")
    study(grid, b, "--only", "seed=1")
    before = records(a)
    assert merge(a, b, out=both) == 0
    assert "6 run folders copied; 6 of 6 runs done" in capsys.readouterr().out
    assert records(both) == {**records(a), **records(b)} and len(records(both)) == 6
    assert records(a) == before  # sources stay as they are
    assert not list(both.glob("runs/*/.lock"))
    assert merge(a, b, out=both) == 0  # again: nothing to do
    assert "0 run folders copied" in capsys.readouterr().out
    assert merge(b, out=a) == 0  # into one of the two
    status = Status(read_plan(a), a)
    assert status.count("done") == 6
    (both / "plan.json").unlink()  # as where only the runs were copied
    study(grid, both)
    assert "nothing is left to do" in capsys.readouterr().out
    assert read_plan(both).runs == read_plan(a).runs


def test_the_complete_one_of_two_is_kept(grid, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    study(grid, a, "--max-runs", "1")
    study(grid, b, "--max-runs", "1")
    (begun,) = (a / "runs").iterdir()
    (begun / "complete.json").unlink()
    (begun / "records.jsonl").write_bytes(b"")
    assert merge(a, b, out=tmp_path / "both") == 0
    assert records(tmp_path / "both") == records(b)


def test_a_conflict_is_refused_before_anything_is_copied(grid, tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    study(grid, a)
    study(grid, b, "--max-runs", "1")
    (run,) = (b / "runs").iterdir()
    text = (run / "records.jsonl").read_text().replace('"gradients": 50', '"gradients": 51')
    (run / "records.jsonl").write_text(text)
    assert merge(a, b, out=tmp_path / "both") == 2
    assert "records.jsonl has changed since" in capsys.readouterr().err
    finish_again(run)
    assert merge(a, b, out=tmp_path / "both") == 2
    error = capsys.readouterr().err
    assert run.name in error and "with different records" in error
    assert not (tmp_path / "both").exists()


def test_other_studies_and_other_things_are_refused(grid, tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    study(grid, a, "--max-runs", "1")
    other = write(tmp_path / "other.toml", MEASURE, gradients=60)
    study(other, b, "--max-runs", "1")
    assert merge(a, b, out=tmp_path / "both") == 2
    assert "holds the study grid (custom), but" in capsys.readouterr().err
    assert merge(a, tmp_path, out=tmp_path / "both") == 2
    assert "no plan.json" in capsys.readouterr().err
    assert merge(out=tmp_path / "both") == 2
    assert "expected the folders" in capsys.readouterr().err
