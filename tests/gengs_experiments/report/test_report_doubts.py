"""Runs that are not what their place in a table says are left out, and said."""

import json

import pytest
from report_folders import Config, finish, labels, measure_run, partial_study, study, vae_run

from gengs_experiments.cli import main
from gengs_experiments.report.contents import make_contents
from gengs_experiments.report.run_results import find_studies


def run_named(folder, name):
    return next(run for one in find_studies([folder]) for run in one.runs if run.id == name)


def edit(folder, **settings):
    content = json.loads((folder / "config.json").read_text())
    content["config"].update(settings)
    (folder / "config.json").write_text(json.dumps(content))
    finish(folder)


def numbers(*folders):
    """The mean and the number of runs of −ELBO, by column."""
    (section,) = make_contents(list(folders)).sections
    return {
        one.setting.estimator: (one.mean, one.count)
        for one in section.summaries
        if one.metric.key == "nelbo_train"
    }


def test_a_run_with_other_settings_than_its_plan_is_no_part_of_a_mean(tmp_path, capsys):
    folder = partial_study(tmp_path / "s")
    assert numbers(folder)["GenGS"] == (104.0, 3)
    edit(folder / "runs" / "run-0", prior="poisson(7)")
    run = run_named(folder, "run-0")
    assert run.state == "different" and not run.records.last
    assert run.error == (
        "was made with other settings (prior: 'poisson(7)', in the plan 'poisson(2)')"
    )
    assert numbers(folder)["GenGS"] == (104.5, 2)
    for suffix in ("html", "md", "csv", "tex"):
        out = tmp_path / f"report.{suffix}"
        assert main(["report", str(folder), "-o", str(out)]) == 0
        said = capsys.readouterr()
        assert "5 of 9 runs done" in said.out and "left out: run-0: was made with other" in said.err
    assert "run-0, different" in (tmp_path / "report.md").read_text()
    assert 'class="state different"' in (tmp_path / "report.html").read_text()


def test_a_setting_that_only_one_side_knows_has_its_default(tmp_path):
    folder = partial_study(tmp_path / "s")
    edit(folder / "runs" / "run-0", likelihood_samples=0)  # of VaeConfig, with its default
    edit(folder / "runs" / "run-1", likelihood_samples=5)
    assert run_named(folder, "run-0").state == "done"
    assert run_named(folder, "run-1").state == "different"


def test_the_result_of_another_experiment(tmp_path):
    folder = study(tmp_path / "s", {"a": (Config(), labels())})
    vae_run(folder / "runs" / "a", experiment="measure")
    assert run_named(folder, "a").error == "was made by the experiment 'measure', not 'vae'"


@pytest.mark.parametrize("lose", [lambda p: p.unlink(), lambda p: p.write_bytes(b"")])
def test_a_finished_run_without_records_is_damaged(tmp_path, lose):
    folder = partial_study(tmp_path / "s")
    lose(folder / "runs" / "run-0" / "records.jsonl")
    run = run_named(folder, "run-0")
    assert run.state == "damaged" and "records.jsonl is missing or empty" in run.error
    (one,) = find_studies([folder])
    assert one.count("done") == 5
    loose = measure_run(tmp_path / "loose")
    assert run_named(loose, "loose").state == "done"
    (loose / "complete.json").unlink()
    lose(loose / "records.jsonl")
    assert run_named(loose, "loose").state == "unfinished"


def test_a_finished_run_without_settings_is_damaged(tmp_path):
    folder = partial_study(tmp_path / "s")
    (folder / "runs" / "run-0" / "config.json").unlink()
    assert run_named(folder, "run-0").error == "is finished, but has no config.json"


def test_two_copies_that_disagree(tmp_path):
    for name in ("a", "b", "c"):
        partial_study(tmp_path / name)
    records = tmp_path / "b" / "runs" / "run-1" / "records.jsonl"
    records.write_text(records.read_text().replace("104.0", "103.0"))
    finish(records.parent)
    plan = json.loads((tmp_path / "b" / "plan.json").read_text())
    plan["runs"][0]["config"]["prior"] = "poisson(7)"  # as with another default
    (tmp_path / "b" / "plan.json").write_text(json.dumps(plan))
    edit(tmp_path / "b" / "runs" / "run-0", prior="poisson(7)")
    (one,) = find_studies([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    found = {run.id: run for run in one.runs}
    assert "prior: 'poisson(2)', in" in found["run-0"].error
    assert "has other records" in found["run-1"].error
    assert one.count("different") == 2 and one.count("done") == 4


def test_a_mean_over_runs_that_differ_in_more_than_their_seed_is_said(tmp_path, capsys):
    configs = {"a": Config(), "b": Config(prior="poisson(7)", seed=1), "c": Config(seed=2)}
    folder = study(tmp_path / "s", {name: (one, labels()) for name, one in configs.items()})
    for name, config in configs.items():
        vae_run(folder / "runs" / name, config=config)
    (section,) = make_contents([folder]).sections
    sentence = "a mean over runs that differ in prior, not only in their seed"
    assert section.problems == (f"table1, mnist, Pois(2), GenGS: {sentence}",)
    assert main(["report", str(folder), "-o", str(tmp_path / "report.md")]) == 0
    assert sentence in capsys.readouterr().err
    assert sentence in (tmp_path / "report.md").read_text()
