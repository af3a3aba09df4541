"""Any folder as studies and runs: what is there, what is missing, what is damaged."""

import json

import pytest
from report_folders import Config, labels, partial_study, study, vae_run

from gengs_experiments.report.run_results import find_studies
from gengs_experiments.report.seed_groups import group_runs
from gengs_experiments.report.untrusted_files import Unreadable
from gengs_experiments.runs.records import folder_lock


def states(folder):
    return {run.id: run.state for one in find_studies([folder]) for run in one.runs}


def test_a_partial_study(tmp_path):
    folder = partial_study(tmp_path / "s")
    found = states(folder)
    assert found["run-0"] == "done" and found["run-failed"] == "failed"
    assert found["run-begun"] == "unfinished" and found["run-waiting"] == "waiting"
    (one,) = find_studies([folder])
    assert (one.name, one.budget, one.count("done")) == ("table1", "small", 6)
    failed = next(run for run in one.runs if run.state == "failed")
    assert failed.error == "NonFiniteError: NVIL is NaN"


def test_a_locked_run_is_running_and_stays_locked(tmp_path):
    folder = partial_study(tmp_path / "s")
    with folder_lock(folder / "runs" / "run-begun"):
        assert states(folder)["run-begun"] == "running"
        with (
            pytest.raises(OSError, match="in use"),
            folder_lock(folder / "runs" / "run-begun"),
        ):
            pass
    assert states(folder)["run-begun"] == "unfinished"


def test_one_run_and_folders_of_runs(tmp_path):
    vae_run(tmp_path / "many" / "a")
    vae_run(tmp_path / "many" / "deep" / "b", config=Config(seed=1))
    assert states(tmp_path / "many" / "a") == {"a": "done"}
    assert states(tmp_path / "many") == {"a": "done", "b": "done"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="found neither"):
        find_studies([tmp_path / "empty"])
    with pytest.raises(ValueError, match="is none"):
        find_studies([tmp_path / "missing"])


def test_two_copies_of_a_study_are_one(tmp_path):
    partial_study(tmp_path / "here")
    partial_study(tmp_path / "there")
    config = Config(estimator="NVIL", seed=2)
    vae_run(tmp_path / "there" / "runs" / "run-waiting", config=config)
    (one,) = find_studies([tmp_path / "here", tmp_path / "there"])
    assert len(one.runs) == 9 and one.count("done") == 7


@pytest.mark.parametrize("file", ["config.json", "records.jsonl", "timings.jsonl"])
def test_a_damaged_run_does_not_stop_the_rest(tmp_path, file):
    folder = partial_study(tmp_path / "s")
    (folder / "runs" / "run-0" / file).write_text('{"kind": \n{"x": NaN}\n')
    (one,) = find_studies([folder])
    damaged = next(run for run in one.runs if run.id == "run-0")
    assert damaged.state == "damaged" and file in damaged.error
    assert one.count("done") == 5


def test_json_as_deep_as_the_sea(tmp_path):
    folder = partial_study(tmp_path / "s")
    (folder / "runs" / "run-0" / "config.json").write_text('{"a":' * 10**5 + "1" + "}" * 10**5)
    assert states(folder)["run-0"] == "damaged"


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b", "", "/etc"])
def test_an_id_cannot_leave_the_study(tmp_path, name):
    study(tmp_path / "s", {name: (Config(), labels())})
    with pytest.raises(Unreadable, match="name of a folder"):
        find_studies([tmp_path / "s"])


def test_settings_of_a_study_and_of_loose_runs(tmp_path):
    partial_study(tmp_path / "s")
    found = group_runs(find_studies([tmp_path / "s"]))
    sizes = {setting.estimator: len(runs) for setting, runs in found.items()}
    assert sizes == {"GenGS": 3, "RF*": 1, "GenGS Imp": 2, "NVIL": 3}
    assert {setting.condition for setting in found} == {"Pois(2)"}
    for number, posterior in enumerate(("explicit", "implicit")):
        for seed in (0, 1):
            config = Config(posterior=posterior, seed=seed)
            vae_run(tmp_path / "loose" / f"{number}-{seed}", config=config)
    loose = group_runs(find_studies([tmp_path / "loose"]))
    assert [setting.estimator for setting in loose] == ["GenGS, posterior explicit",
                                                     "GenGS, posterior implicit"]  # fmt: skip
    assert [len(runs) for runs in loose.values()] == [2, 2]


def test_a_run_in_two_studies_counts_once(tmp_path):
    config = Config(seed=3)
    for name in ("a", "b"):
        vae_run(tmp_path / name / "runs" / "r", config=config, done=name == "b")
        study(tmp_path / name, {"r": (config, labels())}, name=name)
    ((_, runs),) = group_runs(find_studies([tmp_path / "a", tmp_path / "b"])).items()
    assert [run.state for run in runs] == ["done"]


def test_rows_may_be_the_estimators(tmp_path):
    runs = {}
    for estimator in ("GenGS", "MidCDF"):
        for posterior in ("explicit", "implicit"):
            name = f"{estimator}-{posterior}".lower()
            config = Config(estimator=estimator, posterior=posterior)
            runs[name] = (config, labels(posterior, row=estimator, table="midcdf"))
    folder = study(tmp_path / "s", runs, name="midcdf")
    found = group_runs(find_studies([folder]))
    assert {setting.estimator for setting in found} == {"GenGS", "MidCDF"}


def test_a_plan_that_is_none(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"name": "x", "budget": "y", "runs": "z"}))
    with pytest.raises(Unreadable, match="list of runs"):
        find_studies([tmp_path])
