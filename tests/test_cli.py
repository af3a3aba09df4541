"""The command line, run as people run it: in a process of its own."""

import json
import subprocess
import sys

import pytest

from gengs.cli import main


def gengs(*arguments):
    command = [sys.executable, "-m", "gengs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_measure_prints_a_table():
    done = gengs("measure", "--estimators", "rloo(4)", "MidCDF", "--replicates", "500")
    assert done.returncode == 0, done.stderr
    assert "exact gradient 1.8" in done.stdout and "MidCDF" in done.stdout


def test_measure_prints_json_and_draws(tmp_path):
    chart = tmp_path / "chart.png"
    done = gengs("measure", "--json", "--replicates", "200", "--law", "negative-binomial(3, 0.4)",
                 "--level", "20", "--cost", "network", "--plot", str(chart))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 4
    assert chart.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--law", "poison(3)"], "did you mean poisson"),
        (["--law", "poisson(1, 2)"], "expected poisson(rate)"),
        (["--law", "poisson(open('x'))"], "literal arguments"),
        (["--law", "poisson('x')"], "expected numbers"),
        (["--estimators", "RLO(4)"], "did you mean"),
        (["--estimators", "RLOO(0)"], "positive integer"),
        (["--estimators", "RLOO(sample=3)"], "does not take"),
        (["--replicates", "1"], "replicates"),
        (["--level", "0"], "level"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(arguments, sentence, capsys):
    assert main(["measure", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gengs: ") and error.count("\n") == 1 and sentence in error


def test_unknown_options_and_help():
    done = gengs("measure", "--nonsense", "1")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    done = gengs("--help")
    assert done.returncode == 0 and "measure" in done.stdout and "estimators" in done.stdout
    assert gengs("--version").stdout.startswith("gengs 0.")


def test_the_catalogue():
    done = gengs("estimators", "--json")
    assert {"UnOrd", "MidCDF"} <= {row["estimator"] for row in json.loads(done.stdout)}
    assert "UnOrd" in gengs("estimators").stdout


@pytest.mark.slow
def test_the_demo_ends_with_a_report(tmp_path):
    command = [sys.executable, "-m", "gengs.demo", str(tmp_path), "--brief"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "truncation.png").stat().st_size > 10_000
    assert done.stdout.rstrip().endswith(str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "12 of 12 runs done" in page
    for title in (
        "Laboratory",
        "A problem with a known answer",
        "Count-latent VAEs",
        "Topic models",
    ):
        assert f">{title}</h2>" in page
    # all is done: again is a matter of seconds
    again = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "report.html").read_text() == page


def test_measure_keeps_its_result(tmp_path):
    out = tmp_path / "run"
    done = gengs("measure", "--replicates", "200", "--out", str(out))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert [record["estimator"] for record in records][-1] == "MidCDF"
    assert all(
        record["kind"] == "measurement" and "milliseconds" not in record for record in records
    )
    assert len((out / "timings.jsonl").read_text().splitlines()) == 4
    again = gengs("measure", "--replicates", "200", "--out", str(out))
    assert again.returncode == 2 and "already holds a run" in again.stderr
