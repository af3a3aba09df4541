"""Means, errors and verdicts, and the tables and formats made of them."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest
from report_folders import (
    HOSTILE,
    Config,
    finish,
    labels,
    measure_run,
    partial_study,
    study,
    synthetic_run,
    topics_run,
    vae_run,
)

from gengs_experiments.report.contents import make_contents
from gengs_experiments.report.curves import training_curves
from gengs_experiments.report.record_columns import RecordColumns, read_times
from gengs_experiments.report.rendering import render
from gengs_experiments.report.run_results import RunResult
from gengs_experiments.runs.records import RunFolder


def summaries(contents):
    return {
        (one.setting.condition, one.setting.estimator, one.metric.key): one
        for section in contents.sections
        for one in section.summaries
    }


def test_mean_error_and_verdict(tmp_path):
    found = summaries(make_contents([partial_study(tmp_path / "s")]))
    gengs = found["Pois(2)", "GenGS", "nelbo_train"]
    assert (gengs.mean, gengs.count, gengs.paper) == (104.0, 3, 103.18)
    assert gengs.error == pytest.approx(1 / math.sqrt(3))
    assert gengs.verdict == "within"  # 0.82 is less than two standard errors, 1.15
    assert found["Pois(2)", "GenGS", "relaxed_train"].verdict == "better"  # 1.18
    imp = found["Pois(2)", "GenGS Imp", "nelbo_train"]
    assert imp.verdict == "better" and imp.difference == pytest.approx(90.05 - 96.04)
    assert found["Pois(2)", "RF*", "nelbo_train"].verdict == "single"
    assert found["Pois(2)", "GenGS", "nelbo_test"].verdict is None  # the paper has none
    assert replace(gengs, mean=110.0).verdict == "worse"


def test_a_run_that_diverged_is_counted_apart(tmp_path):
    runs = {}
    for seed, value in enumerate((100.0, 102.0, math.nan)):
        config = Config(seed=seed)
        runs[f"r{seed}"] = (config, labels())
        with RunFolder.open(tmp_path / "s/runs" / f"r{seed}", config, experiment="vae") as run:
            run.records.append({"kind": "evaluation", "step": 1, "nelbo_train": value})
            run.finish()
    contents = make_contents([study(tmp_path / "s", runs)])
    one = summaries(contents)["Pois(2)", "GenGS", "nelbo_train"]
    assert (one.mean, one.count, one.lost) == (101.0, 2, 1)
    assert "1 not finite" in render(contents, "markdown")


def test_metrics_have_their_order_whichever_run_has_them(tmp_path):
    found = ({"nelbo_train": 1.0, "mine": 2.0}, {"nelbo_test": 3.0, "nelbo_train": 1.0})
    for seed, numbers in enumerate(found):
        folder = tmp_path / "r" / str(seed)
        with RunFolder.open(folder, Config(seed=seed), experiment="vae") as run:
            run.records.append({"kind": "evaluation", "step": 1, **numbers})
            run.finish()
    (section,) = make_contents([tmp_path / "r"]).sections
    assert section.table.columns[2:] == ("−ELBO, test", "−ELBO, train", "mine")


def test_runs_of_many_estimators(tmp_path):
    synthetic_run(tmp_path / "runs" / "a")
    measure_run(tmp_path / "runs" / "b")
    found = summaries(make_contents([tmp_path / "runs"]))
    excess = found["poisson", "mid-CDF", "excess"]
    assert (excess.mean, excess.error, excess.count) == (0.25, 0.05, 4)
    assert found["poisson", "RF", "bias"].mean == pytest.approx(0.5)  # the length of (0.3, -0.4)
    assert found["poisson", "RF", "milliseconds"].mean == 1.5
    bias = found["poisson(3)", "MidCDF", "bias"]
    assert (bias.mean, bias.error, bias.count) == (-0.2, 0.01, 500)


def test_the_tables(tmp_path):
    (section,) = make_contents([partial_study(tmp_path / "s")]).sections
    (group,) = section.choices
    # the headline is about test images, and so is what the section opens on
    assert [table.choice for table in group] == ["−ELBO, test", "−ELBO, train", "as trained"]
    assert next(iter(section.chart.data["views"]["mnist"])) == "−ELBO, test"
    train = group[1]
    assert [row[0].text for row in train.rows] == ["RF*", "NVIL", "GenGS", "GenGS Imp"]
    cells = {row[0].text: row[1] for row in train.rows}
    assert cells["GenGS"].text == "104.0 ± 0.6" and cells["GenGS"].paper == "103.18"
    assert cells["GenGS Imp"].best and cells["GenGS Imp"].sign == "▼"
    assert cells["NVIL"].text == "failed" and cells["NVIL"].value is None
    assert section.table.columns[1] == "runs"
    assert [row[1].text for row in section.table.rows] == ["3", "1", "2", "0 of 3"]
    # a dash of the paper stays a dash
    config = Config(estimator="UnOrd")
    vae_run(tmp_path / "t/runs/a", config=config)
    runs = {"a": (config, labels("UnOrd(10)", row="Geom(.5)")),
            "b": (config, labels("GenGS", row="Geom(.5)"))}  # fmt: skip
    (section,) = make_contents([study(tmp_path / "t", runs)]).sections
    train = section.choices[0][1]
    assert {row[0].text: row[1].paper for row in train.rows} == {
        "GenGS": "100.92",
        "UnOrd(10)": "—",
    }


def test_headlines_name_the_best(tmp_path):
    lines = make_contents([partial_study(tmp_path / "s")]).headlines
    assert "GenGS Imp (91.05 ± 0.05) on mnist" in lines[0]
    assert lines[1] == (
        "−ELBO, train, beside 3 numbers of the paper: 1 better, 1 within two standard errors, "
        "1 with one run so far."
    )


def test_runs_of_two_folders_are_compared_with_each_other(tmp_path):
    """The best is named and bold where it is one run of its own folder."""
    for seed, value in enumerate((32.0, 32.6)):
        vae_run(tmp_path / "a" / str(seed), value, Config(estimator="RLOO(4)", seed=seed))
    vae_run(tmp_path / "b", 23.09, Config(estimator="MidCDF(2)"))
    contents = make_contents([tmp_path / "a", tmp_path / "b"])
    assert contents.headlines[0].startswith("The lowest") and "MidCDF(2) (24.09)" in str(
        contents.headlines[0]
    )
    (section,) = contents.sections
    best = {row[0].text for row in section.table.rows if any(cell.best for cell in row)}
    assert best == {"MidCDF(2)"}


def test_runs_of_two_folders_are_told_apart_by_what_differs(tmp_path):
    vae_run(tmp_path / "a", 30.0, Config(posterior="explicit"))
    vae_run(tmp_path / "b", 20.0, Config(posterior="implicit"))
    (section,) = make_contents([tmp_path / "a", tmp_path / "b"]).sections
    names = [row[0].text for row in section.table.rows]
    assert names == ["GenGS, posterior explicit", "GenGS, posterior implicit"]


@pytest.mark.parametrize("row", ["prior", "estimator"])
def test_a_study_of_ones_own_has_the_rows_of_its_labels(tmp_path, row):
    runs = {}
    for number, (prior, estimator) in enumerate(
        (prior, estimator) for prior in ("poisson(2)", "poisson(3)") for estimator in ("A", "B")
    ):
        config = Config(prior=prior, estimator=estimator)
        place = (prior, estimator) if row == "prior" else (estimator, prior)
        runs[f"r{number}"] = (config, labels(place[1], row=place[0], table="mine"))
        vae_run(tmp_path / "runs" / f"r{number}", 100.0 + number, config)
    (section,) = make_contents([study(tmp_path, runs, name="mine")]).sections
    table = section.choices[0][0]
    across = ("A", "B") if row == "prior" else ("poisson(2)", "poisson(3)")
    assert table.columns[1:] == across
    bold = {(line[0].text, head) for line in table.rows
            for head, cell in zip(table.columns, line, strict=True) if cell.best}  # fmt: skip
    best = {("poisson(2)", "A"), ("poisson(3)", "A")}
    assert bold == (best if row == "prior" else {(a, b) for b, a in best})
    assert f"best of a {'row' if row == 'prior' else 'column'}" in table.legend


def test_csv_has_every_digit(tmp_path):
    text = render(make_contents([partial_study(tmp_path / "s")]), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    (row,) = (r for r in rows if r["estimator"] == "GenGS" and r["metric"] == "nelbo_train")
    assert float(row["mean"]) == 104.0 and int(row["runs"]) == 3 and row["verdict"] == "within"
    assert float(row["standard_error"]) == pytest.approx(1 / math.sqrt(3), rel=1e-14)
    assert float(row["difference"]) == 104.0 - 103.18


def test_formats_escape_what_they_show(tmp_path):
    config = Config(estimator="=cmd|' /C calc'!A0")
    vae_run(tmp_path / "r" / "a", config=config)
    vae_run(tmp_path / "r" / "b", config=replace(config, estimator=r"\input{x}$a_b%&#" + HOSTILE))
    contents = make_contents([tmp_path / "r"], title="a | b\n# c <b>")
    rows = list(csv.DictReader(io.StringIO(render(contents, "csv"))))
    assert all(row["estimator"][0] not in "=+-@" for row in rows)
    markdown = render(contents, "markdown")
    assert not re.search(r"(?<!\\)<", markdown) and markdown.startswith(r"# a \| b \# c \<b\>")
    latex = render(contents, "latex")
    assert r"\textbackslash{}input\{x\}\$a\_b\%\&\#" in latex and r"\input" not in latex
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == latex.count(r"\caption")


def test_topics(tmp_path):
    topics_run(tmp_path / "r" / "a", words=(HOSTILE, "cell"))
    (section,) = make_contents([tmp_path / "r"]).sections
    ((_, topics),) = section.topics
    assert topics.topics[0] == ((HOSTILE[:60], 1.0), ("cell", 0.5))
    assert topics.hierarchy[0].children[1].title == "topic 2"
    (tmp_path / "r" / "a" / "topics.json").write_text("[1, 2")
    finish(tmp_path / "r" / "a")
    (section,) = make_contents([tmp_path / "r"]).sections
    assert not section.topics and "topics.json is damaged" in section.problems[0]
    strange = '{"topics": [3, {"words": 4}, {"words": ["a"], "weights": ["b"]}], "hierarchy": {}}'
    (tmp_path / "r" / "a" / "topics.json").write_text(strange)
    finish(tmp_path / "r" / "a")
    (section,) = make_contents([tmp_path / "r"]).sections
    assert section.topics[0][1].topics[1] == (("a", 0.0),)


def test_curves_average_seeds_where_all_have_been():
    def run(values):
        records = RecordColumns()
        for step, value in enumerate(values):
            records.extend([{"kind": "train", "step": step, "loss": value}])
        return RunResult("a", "vae", {}, {}, "done", records=records)

    curve = training_curves([run([1.0, 2.0, 3.0]), run([3.0, 2.0])], "train")["loss"]
    assert (curve.step.tolist(), curve.mean.tolist(), curve.count) == ([0, 1], [2, 2], 2)
    assert curve.high.tolist() == [4, 2] and curve.low.tolist() == [0, 2]  # ± 2 s.e., 1 and 0
    (alone,) = training_curves([run([1.0, math.inf, 3.0])], "train").values()
    assert alone.mean.tolist() == [1, 3] and not len(alone.low)
    long = training_curves([run([float(i) for i in range(5000)])], "train")["loss"]
    assert len(long.step) == 200 and long.step[-1] == 4999


def test_time_is_summed_over_resumptions(tmp_path):
    lines = [{"seconds": 1.0}, {"seconds": 5.0}, {"seconds": 2.0}, {"estimator": "x"}]
    (tmp_path / "timings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_times(tmp_path / "timings.jsonl")[0] == 7.0
    assert read_times(tmp_path / "nothing")[0] is None


def test_tables_of_two_orientations_side_by_side(tmp_path):
    partial_study(tmp_path / "a")
    runs = {}
    for estimator in ("GenGS", "MidCDF"):
        for posterior in ("explicit", "implicit"):
            config = Config(estimator=estimator, posterior=posterior)
            name = f"{estimator}-{posterior}".lower()
            runs[name] = (config, labels(posterior, row=estimator, table="midcdf"))
            vae_run(tmp_path / "b/runs" / name, config=config)
    study(tmp_path / "b", runs, name="midcdf", budget="paper")
    (section,) = make_contents([tmp_path / "a", tmp_path / "b"]).sections
    first, second = section.choices
    assert [row[0].text for row in first[0].rows] == ["RF*", "NVIL", "GenGS", "GenGS Imp"]
    assert [row[0].text for row in second[0].rows] == ["GenGS", "MidCDF"]
    assert {row[0].text for row in section.table.rows} == {"RF*", "NVIL", "GenGS", "GenGS Imp",
                                                           "MidCDF"}  # fmt: skip
    views = section.chart.data["views"]
    assert {line["label"] for view in views.values() for line in view["−ELBO, train"]} == {
        *("RF*", "NVIL", "GenGS", "GenGS Imp", "MidCDF")
    }
    assert section.smaller == ("small",)


def test_a_study_that_waits_shows_what_it_waits_for(tmp_path):
    runs = {c.lower(): (Config(estimator=c), labels(c)) for c in ("GenGS", "NVIL")}
    (section,) = make_contents([study(tmp_path / "s", runs)]).sections
    table = section.choices[0][0]
    assert [(row[1].text, row[1].paper) for row in table.rows] == [
        ("waiting", "129.34"),
        ("waiting", "103.18"),
    ]
    assert section.chart is None


def test_terminal_escapes_reach_neither_a_terminal_nor_a_text_file(tmp_path, capsys):
    from gengs_experiments.cli import main

    hostile = "Gen\x1b]0;title\x07GS\x9b31m"
    for seed in (0, 1):
        vae_run(tmp_path / "s/runs" / f"r{seed}", config=Config(estimator=hostile, seed=seed))
    runs = {f"r{seed}": (Config(estimator=hostile, seed=seed), labels(hostile)) for seed in (0, 2)}
    folder = study(tmp_path / "s", {**runs, "r1": runs["r0"]}, name=hostile)
    for suffix in ("md", "csv", "tex"):
        out = tmp_path / f"report.{suffix}"
        assert main(["report", str(folder), "-o", str(out)]) == 0
        said = capsys.readouterr()
        assert "left out: r1" in said.err
        for text in (out.read_text(), *said):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
        assert "x1b" in out.read_text()
