"""Plans: stable ids, files that round-trip, the built-in studies and the published numbers."""

import hashlib
import json
from dataclasses import replace
from typing import get_args

import pytest

from gengs.estimators.spec import parse_estimator
from gengs_experiments.experiments.descent import contenders
from gengs_experiments.experiments.registry import EXPERIMENTS
from gengs_experiments.experiments.synthetic import Synthetic
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.study.plan import Plan, PlannedRun, read_plan, write_plan
from gengs_experiments.study.published import TABLE1, TABLE2
from gengs_experiments.study.study_command import Budget
from gengs_experiments.study.study_file import STUDIES, read_study


def test_an_id_is_the_same_in_every_process():
    config = VaeConfig(data="mnist", prior="poisson(3)", estimator="GenGS(samples=10)", seed=4)
    run = PlannedRun("vae", replace(config, kl_warm_up=0))  # the default when it was named
    assert run.id == "mnist-poisson-3-tilted-gengs-samples-10-seed4-0cfe193c"
    assert PlannedRun("vae", config).id != run.id


def test_an_id_tells_all_settings_apart_but_not_labels():
    run = PlannedRun("vae", VaeConfig())
    assert PlannedRun("vae", VaeConfig(), {"row": "another"}).id == run.id
    others = [{"seed": 1}, {"epochs": 31}, {"temperature": (1.0, 0.2)}, {"kl_warm_up": 5}]
    ids = {PlannedRun("vae", replace(VaeConfig(), **other)).id for other in others}
    assert len(ids) == len(others) and run.id not in ids


@pytest.mark.parametrize("budget", get_args(Budget))
@pytest.mark.parametrize("name", STUDIES)
def test_a_built_in_plan_survives_its_file(name, budget, tmp_path):
    plan = read_study(name, budget)
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan
    assert {run.labels["table"] for run in plan.runs} == {name}
    assert all(set(run.labels) == {"table", "row", "column", "data"} for run in plan.runs)


@pytest.mark.parametrize(
    ("name", "budget", "runs", "digest"),
    [
        ("figure3", "smoke", 2, "c13b3397"),
        ("figure3", "small", 5, "0e8f2adb"),
        ("figure3", "paper", 5, "69bf7eaa"),
        ("table1", "smoke", 4, "efb6506a"),
        ("table1", "small", 202, "2a173435"),
        ("table1", "paper", 2600, "96dbc374"),
        ("table2", "smoke", 7, "f8fab8cf"),
        ("table2", "small", 27, "bdeff29e"),
        ("table2", "paper", 580, "512cc001"),
        ("midcdf", "smoke", 12, "0bb47e36"),
        ("midcdf", "small", 36, "43bd3cc8"),
        ("midcdf", "paper", 120, "fc164da3"),
    ],
)
def test_a_built_in_study_has_the_runs_of_its_folders(name, budget, runs, digest):
    """Whoever has begun one goes on with it: the same runs, in the same order and places."""
    plan = read_study(name, budget)
    lines = [f"{run.id} {json.dumps(run.labels, sort_keys=True)}" for run in plan.runs]
    assert (plan.name, plan.budget, len(lines)) == (name, budget, runs)
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest().startswith(digest)


def test_there_is_no_such_study():
    with pytest.raises(ValueError, match="did you mean 'table1'"):
        read_study("tabel1")


def test_the_table_has_the_papers_cells():
    cells = {
        (run.labels["data"], run.labels["row"], run.labels["column"])
        for run in read_study("table1", "paper").runs
    }
    published = {
        (data, row, column)
        for data in TABLE1
        for row in TABLE1[data]
        for column in TABLE1[data][row]
    }
    assert len(published) == 2 * 6 * 14
    assert published <= cells


def test_columns_are_the_estimators_of_figure3():
    """The same names mean the same estimators; numbers of draws aside."""
    named = {one.label: one for one in contenders(Synthetic(), ["all"])}
    of_columns = {run.labels["column"]: run.config for run in read_study("table1", "small").runs}
    assert len(of_columns) == 24
    for column, config in of_columns.items():
        paper = column.removesuffix("(10)").removesuffix(" Imp")
        if paper in named:
            assert type(parse_estimator(config.estimator)) is type(named[paper].make()), column


def test_published_numbers():
    dashes = [
        (data, row, column)
        for data in TABLE1
        for row, cells in TABLE1[data].items()
        for column, value in cells.items()
        if value is None
    ]
    assert len(dashes) == 8 + 9  # the paper's dashes
    assert TABLE1["omniglot"]["NB(5,.3)"]["GenGS NP(10)"] == 124.98
    assert TABLE2["rcv1"]["GenGS(10)"] == {"2 layers": 576.0}
    assert TABLE2["20news"]["RELAX(10)"] == {"2 layers": 1116.0}


def test_runs_are_not_repeated():
    run = PlannedRun("vae", VaeConfig())
    with pytest.raises(ValueError, match="twice"):
        Plan("mine", "custom", (run, run))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content.pop("budget"), "'budget'"),
        (lambda content: content.update(runz=[]), "did you mean 'runs'"),
        (lambda content: content["runs"][0].update(id="../../etc"), "a run's id"),
        (lambda content: content["runs"][0].update(experiment="vea"), "did you mean 'vae'"),
        (lambda content: content["runs"][0]["config"].update(epoch=3), "did you mean 'epochs'"),
        (lambda content: content["runs"][0]["config"].update(epochs="3"), "expected int"),
        (lambda content: content.update(runs=[3]), "damaged"),
    ],
)
def test_a_damaged_plan_is_refused(change, sentence, tmp_path):
    write_plan(tmp_path, read_study("table1", "smoke"))
    content = json.loads((tmp_path / "plan.json").read_text())
    change(content)
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=sentence):
        read_plan(tmp_path)


def test_no_plan(tmp_path):
    with pytest.raises(ValueError, match=r"no plan\.json"):
        read_plan(tmp_path)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_experiments_can_be_run_as_they_are_and_named(experiment):
    config = experiment.config_class()
    assert config.seed == 0 and all(hasattr(config, name) for name in experiment.named_by)
