"""The command line, run as people run it: in a process of its own."""

import contextlib
import errno
import json
import subprocess
import sys
import warnings
from importlib.resources import files
from types import SimpleNamespace

import pytest

from gengs import catalogue
from gengs_experiments.cli import COMMANDS, _command, main
from gengs_experiments.experiments.laboratory import Measure

EXPERIMENTS = ("vae", "nvpdef", "measure", "synthetic")


def gengs(*arguments):
    command = [sys.executable, "-m", "gengs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_measure_prints_a_table():
    done = gengs("measure", "--estimators", "rloo(4)", "MidCDF", "--gradients", "500")
    assert done.returncode == 0, done.stderr
    assert "exact gradient 1.8" in done.stdout and "MidCDF" in done.stdout


@pytest.mark.parametrize("arguments", [("vae", "--help"), ("estimators",), ("--version",)])
def test_nobody_who_reads_is_no_error(arguments):
    """As in ``gengs vae --help | head``."""
    command = [sys.executable, "-m", "gengs", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_measure_prints_json_and_draws(tmp_path, capsys):
    chart = tmp_path / "chart.png"
    line = ["measure", "--json", "--gradients", "200", "--law", "negative-binomial(3, 0.4)"]
    assert main([*line, "--level", "20", "--cost", "network", "--plot", str(chart)]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4
    assert chart.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--law", "poison(3)"], "did you mean poisson"),
        (["--law", "poisson(1, 2)"], "expected poisson(rate)"),
        (["--law", "poisson(open('x'))"], "literal arguments"),
        (["--law", "poisson('x')"], "expected numbers"),
        (["--estimators", "RLO(4)"], "did you mean"),
        (["--estimators", "RLOO(0)"], "an integer of at least 2"),
        (["--estimators", "RLOO(sample=3)"], "does not take"),
        (["--law", "poisson(1e20)"], "beyond 16,777,216"),
        (["--law", "poisson(1e12)"], "beyond 16,777,216"),
        (["--law", "poisson(1e308)"], "beyond 16,777,216"),
        (["--law", "binomial(1e20, 0.5)"], "beyond 16,777,216"),
        (["--law", f"poisson({'9' * 400})"], "expected numbers"),
        (["--law", f"poisson({'-' * 5000}3)"], "literal arguments"),
        (["--law", f"poisson({'(' * 5000}3{')' * 5000})"], "literal arguments"),
        (["--law", f"poisson({'[' * 90}3{']' * 90})"], "expected numbers"),
        (["--law", "poisson([3])"], "expected numbers"),
        (["--law", "binomial([3, 4], 0.5)"], "expected numbers"),
        (["--law", "categorical(0.5)"], "expected a list of numbers"),
        (["--law", "categorical([[0.5, 0.5]])"], "expected a list of numbers"),
        (["--law", "poisson(rate=3, rate=4)"], "each once"),
        (["--estimators", "REBAR(eta='x')"], "REBAR does not take these settings"),
        (["--estimators"], "expected estimators after --estimators"),
        (["--warm-up", "-1"], "at least 0 for --warm-up"),
        (["--seed", str(2**64)], "--seed below 2^63"),
        (["--plot", "x.docx"], "--plot with .png"),
        (["--plot", "no-such-folder/x.png"], "no folder no-such-folder"),
        (["--gradients", "1"], "gradients"),
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


def test_the_menu_says_what_each_command_says():
    menu = " ".join(gengs("--help").stdout.replace("│", " ").split())
    for name in COMMANDS:
        assert _command(name).__doc__ in menu


def test_topics_alone_is_no_command(capsys):
    assert main(["topics", "--corpus", "20news"]) == 2
    said = capsys.readouterr().err
    assert "topics fit" in said and "gengs nvpdef" in said and said.count("\n") == 1


def test_the_help_of_measure_has_every_distribution(capsys):
    # asked in another process: examples of the docs that ran in this one may have added their own
    error = gengs("measure", "--law", "nonsense(1)").stderr
    names = error.split("The distributions are: ")[1].rstrip(".\n").split(", ")
    with contextlib.suppress(SystemExit):
        main(["measure", "--help"])
    said = capsys.readouterr().out
    assert len(names) > 5 and [name for name in names if f"{name}(" not in said] == []


@pytest.mark.parametrize("name", ["measure", "synthetic"])
def test_what_is_resumed_needs_a_folder(name, capsys):
    assert main([name, "--resume"]) == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*EXPERIMENTS, "study", "report", "topics fit"])
def test_the_folder_to_write_has_a_short_option_in_every_command(name, capsys):
    with contextlib.suppress(SystemExit):
        main([*name.split(), "--help"])
    said = capsys.readouterr().out
    assert "-o " in said and "--out" in said


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_imports_nothing_above_it(name):
    code = f"""
import contextlib, io, sys
from gengs_experiments.cli import COMMANDS, _command, main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main([{name!r}, "--help"])
above = [m for m in sys.modules if m.split(".")[:2][1:] in (["study"], ["report"], ["apps"])]
assert not above, above
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


LIGHT = [
    *("", "--help", "--version", "bogus", "topics --help", "estimators", "estimators --json"),
    *(f"{name} --help" for name in COMMANDS),
    *(f"{name} --bogus 1" for name in COMMANDS),
]


def imported(arguments, among):
    """Which of these packages a command imports; its listing is thrown away."""
    code = f"""
import contextlib, io, sys
from gengs_experiments.cli import main
sink = io.StringIO()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sink):
    with contextlib.redirect_stderr(sink):
        main({arguments!r})
print(*({{name.split(".")[0] for name in sys.modules}} & {among!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("line", LIGHT)
def test_help_listings_and_mistyped_options_import_nothing_that_takes_long(line):
    heavy = {"torch", "numpy", "scipy", "sklearn", "pandas", "matplotlib", "lightning_fabric"}
    assert imported(line.split(), heavy) == []


def test_the_list_of_estimators_is_what_the_classes_say():
    listed = json.loads((files("gengs_experiments") / "estimators.json").read_text("utf-8"))
    assert listed == catalogue(), "write it anew: python docs/estimator_table.py"


def test_bad_numbers_of_synthetic_are_named(tmp_path, capsys):
    for arguments, sentence in [
        (["--workers", "0"], "--workers of at least 1, or -1"),
        (["--estimators"], "expected estimators"),
        (["--seed", str(2**64)], "--seed below 2^63"),
        (["--rate", "nan"], "positive, finite number for --rate"),
    ]:
        assert main(["synthetic", "--out", str(tmp_path / "run"), *arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith("gengs: ") and said.count("\n") == 1 and sentence in said


def test_a_warning_is_a_sentence_and_said_once(monkeypatch, capsys):
    def run(_):
        warnings.simplefilter("always")
        for _ in range(3):
            warnings.warn("this may take long", stacklevel=1)

    monkeypatch.setattr("gengs_experiments.cli._run", run)
    main([])
    assert capsys.readouterr().err == "gengs: warning: this may take long\n"


def test_no_room_for_processes_is_named(monkeypatch, capsys, tmp_path):
    class Full:
        def Semaphore(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("multiprocessing.get_context", lambda kind: Full())
    line = ["synthetic", "--workers", "2", "--steps", "2", "--out", str(tmp_path / "run")]
    assert main([*line, "--estimators", "RF"]) == 1
    said = capsys.readouterr().err
    assert "no room for a semaphore in /dev/shm" in said and said.count("\n") == 1


@pytest.mark.parametrize(("seconds", "said"), [(0.1, ""), (600, "measured MidCDF\n")])
def test_what_takes_long_is_heard_of(seconds, said, monkeypatch, capsys):
    clock = SimpleNamespace(monotonic=iter([0.0, seconds]).__next__)
    monkeypatch.setattr("gengs_experiments.experiments.laboratory.time", clock)
    assert main(["measure", "--estimators", "MidCDF", "--gradients", "100"]) == 0
    found = capsys.readouterr()
    assert found.err == said and "exact gradient 1.8" in found.out


def test_measure_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    line = ["measure", "--gradients", "300", "--estimators", "RLOO(4)", "MidCDF", "--json"]
    assert main([*line, "--out", str(tmp_path / "whole")]) == 0
    whole = json.loads(capsys.readouterr().out)
    real, asked = Measure._measure, []

    def interrupted(self, cost, q, estimator, exact):
        asked.append(type(estimator).__name__)
        if asked == ["RLOO", "MidCDF"]:
            raise KeyboardInterrupt
        return real(self, cost, q, estimator, exact)

    monkeypatch.setattr(Measure, "_measure", interrupted)
    with pytest.raises(SystemExit) as stopped:
        main([*line, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 130
    assert "1 estimators are kept; to go on: " in capsys.readouterr().out
    assert main([*line, "--out", str(tmp_path / "run"), "--resume"]) == 0
    assert asked == ["RLOO", "MidCDF", "MidCDF"]
    found = json.loads(capsys.readouterr().out)
    for result in (whole, found):
        for row in result["rows"]:
            del row["milliseconds"]
    assert found == whole
    records = [(tmp_path / name / "records.jsonl").read_bytes() for name in ("whole", "run")]
    assert records[0] == records[1]


def test_the_catalogue():
    done = gengs("estimators", "--json")
    assert {"UnOrd", "MidCDF"} <= {row["estimator"] for row in json.loads(done.stdout)}
    assert "UnOrd" in gengs("estimators").stdout


@pytest.mark.slow
def test_the_demo_ends_with_a_report(tmp_path):
    command = [sys.executable, "-m", "gengs_experiments.demo", str(tmp_path), "--brief"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "truncation.png").stat().st_size > 10_000
    assert done.stdout.rstrip().endswith(str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "7 of 7 runs done" in page
    for title in (
        "Laboratory",
        "A problem with a known answer",
        "Count-latent VAEs",
        "Topic models",
    ):
        assert f">{title}</h2>" in page
    # all is done: again is a matter of seconds
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "report.html").read_text() == page


def test_measure_keeps_its_result(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["measure", "--gradients", "200", "--out", str(out)]) == 0
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert [record["estimator"] for record in records][-1] == "MidCDF"
    assert all(
        record["kind"] == "measurement" and "milliseconds" not in record for record in records
    )
    assert len((out / "timings.jsonl").read_text().splitlines()) == 4
    assert main(["measure", "--gradients", "200", "--out", str(out)]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_a_switch_that_is_on_is_shown_with_its_opposite(capsys):
    """The help of ``--no-progress`` alone would be that of its opposite."""
    for name in ("vae", "nvpdef", "topics fit"):
        with pytest.raises(SystemExit):
            main([*name.split(), "--help"])
        text = capsys.readouterr().out
        alone = [line for line in text.splitlines() if line.startswith("│ --no-")]
        assert "--progress, --no-progress" in text and not alone
        assert "--no-progress shows none" in text


def test_what_has_no_bias_is_a_dash_with_the_reason(tmp_path, capsys):
    out = tmp_path / "out"
    main(["measure", "--estimators", "VIMCO(4)", "RLOO(4)", "--gradients", "50", "--out", str(out)])
    text = capsys.readouterr().out
    assert "nan" not in text and "— VIMCO(samples=4): of another objective" in text
    main(["report", str(out), "-o", "-"])
    assert "– (another objective)" in capsys.readouterr().out
    run = ["synthetic", "--estimators", "VIMCO", "RF", "--steps", "20", "--seeds", "3"]
    main([*run, "--workers", "1", "--out", str(tmp_path / "descent")])
    text = capsys.readouterr().out
    assert "nan" not in text and "–: another objective." in text
