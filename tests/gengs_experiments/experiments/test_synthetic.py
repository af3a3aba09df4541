"""The synthetic experiment: closed forms, independent seeds, records, figures, the command."""

import json
import math
import subprocess
import sys

import pytest
import torch
from torch.distributions import Independent

from gengs import Exact
from gengs_experiments.cli import main
from gengs_experiments.experiments.descent import _Team, contenders, descend
from gengs_experiments.experiments.quadratic import FAMILIES, Quadratic
from gengs_experiments.experiments.synthetic import Synthetic
from gengs_experiments.report.curves import descent_curves
from gengs_experiments.report.record_columns import read_records
from gengs_experiments.runs.manifest import read_manifest
from gengs_experiments.runs.records import RunFolder

TINY = ["--seeds", "3", "--steps", "12", "--every", "6", "--gradients", "4",
        "--final-gradients", "8", "--workers", "1"]  # fmt: skip


def problem_of(law, **settings):
    return Quadratic(FAMILIES[law], **settings)


def contender(label, law="poisson", **settings):
    return contenders(Synthetic(law=law, **settings), [label])[0]


def descent(label, law="poisson", seed=0, **changes):
    """The records of a short descent."""
    settings = {"law": law, "seeds": 4, "steps": 30, "rate": 0.05, "every": 10}
    settings |= {"gradients": 20, "final_gradients": 50, "seed": seed} | changes
    return descend(Synthetic(**settings), label)[0]


@pytest.mark.parametrize("law", FAMILIES)
@pytest.mark.parametrize("dimension", [1, 2])
def test_closed_forms_agree_with_enumeration(law, dimension):
    problem = problem_of(law, dimension=dimension)
    theta = problem.parameters(3).double()
    theta = (theta + torch.tensor([-0.3, 0.0, 0.4]).reshape(3, *(1,) * (theta.dim() - 1))).clone()
    theta[..., -1] -= 0.2  # not all alike, and for the multinomial no mere shift
    theta.requires_grad_()
    tolerance = 1e-14 if dimension == 1 else 1e-6  # two coordinates: fewer atoms, squared
    value = Exact(tolerance).expect(problem.cost, Independent(problem.law(theta), 1))
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    close = {"rtol": 1e-6, "atol": 1e-6} if dimension == 1 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(problem.loss(theta), value, **close)
    torch.testing.assert_close(problem.gradient(theta), gradient, **close)


@pytest.mark.parametrize("law", FAMILIES)
def test_the_minimum_is_where_exact_descent_ends(law):
    problem = problem_of(law)
    theta = problem.parameters().double().requires_grad_()
    optimiser = torch.optim.LBFGS([theta], max_iter=300, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = problem.loss(theta).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    # the multinomial's minimum is on the simplex's edge, at infinite logits
    assert problem.loss(theta).item() == pytest.approx(problem.minimum, abs=2e-4)
    assert problem.loss(theta).item() >= problem.minimum - 1e-9


@pytest.mark.parametrize("label", ["RF", "NVIL", "REBAR", "mid-CDF"])
def test_seeds_differ_and_repeat(label):
    first, again, other = descent(label), descent(label), descent(label, seed=1)
    assert first == again and len(first) == 31
    assert first[-1]["loss"] != other[-1]["loss"] and first[-1]["bias"] != other[-1]["bias"]


@pytest.mark.parametrize("label", ["RF", "NVIL", "REBAR", "mid-CDF"])
def test_no_two_seeds_are_alike(label):
    torch.manual_seed(0)
    problem, one = problem_of("poisson"), contender(label)
    team = _Team(problem, one, [one.make() for _ in range(4 if one.make().learns else 1)])
    theta = problem.parameters(4).requires_grad_()
    for _ in range(30):
        team.expect(theta).sum().backward()  # adds up
    assert len(set(theta.grad.flatten().tolist())) == 4


@pytest.mark.parametrize("label", ["NVIL", "RELAX", "RF*"])
def test_measuring_leaves_no_trace(label):
    problem, one = problem_of("poisson"), contender(label)
    team = _Team(problem, one, [one.make() for _ in range(4 if one.make().learns else 1)])
    theta = problem.parameters(4).requires_grad_()
    team.expect(theta).sum().backward()
    before = [
        part.clone() for estimator in team.estimators for part in estimator.state_dict().values()
    ]
    team.quality(theta, 7)
    after = [part for estimator in team.estimators for part in estimator.state_dict().values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_seeds_of_a_learning_estimator_are_independent():
    """A seed that goes astray does not move another one's baseline."""
    problem, one = problem_of("poisson"), contender("NVIL")
    team = _Team(problem, one, [one.make() for _ in range(2)])
    theta = torch.tensor([[3.0], [9.0]], requires_grad=True)
    team.expect(theta)
    still, astray = (float(estimator.mean) for estimator in team.estimators)
    assert still < 500 < astray


@pytest.mark.parametrize("law", FAMILIES)
def test_unbiased_gradients_are_found_unbiased(law):
    """RLOO's bias over 4 seeds × 20,000 gradients is within 5 standard errors: false alarm 1e-6."""
    last = descent("RF*", law, steps=1, final_gradients=20_000)[-1]
    assert last["bias_se"] == pytest.approx((last["variance"] / 20_000 / 4) ** 0.5)
    assert math.hypot(*last["bias"]) < 5 * last["bias_se"]


def test_all_estimators_of_the_paper_and_evaluations():
    everyone = contenders(Synthetic(), ["all"])
    paper = {"RF", "RF*", "NVIL", "MuProp", "VIMCO", "REBAR", "RELAX", "DetRB", "DetRB*", "StoRB",
             "StoRB*", "UnOrd", "GenGS", "GenGS ST", "GenGS NP"}  # fmt: skip
    assert paper < {one.label for one in everyone}
    finite = contenders(Synthetic(law="binomial"), ["all"])
    assert {one.label for one in everyone} - {one.label for one in finite} == {"GenGS NP"}
    short = {"seeds": 2, "steps": 1, "gradients": 2, "final_gradients": 2}
    labels = ("RF*", "DetRB*", "mid-CDF")
    shown = {label: descent(label, **short)[-1]["evaluations"] for label in labels}
    assert shown == {"RF*": 2, "DetRB*": 5, "mid-CDF": 1}


def command(*arguments):
    line = [sys.executable, "-m", "gengs", "synthetic", *TINY, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=600)


def test_the_command_writes_records_figures_and_tables(tmp_path):
    out = tmp_path / "run"
    done = command("--law", "multinomial", "--json", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "EAT is left out: " in done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {"RF", "RELAX", "GenGS ST", "UnOrd", "mid-CDF"} < {row["estimator"] for row in rows}
    vimco = next(row for row in rows if row["estimator"] == "VIMCO")
    assert vimco["bias"] is None and vimco["evaluations"] == 4
    records = RunFolder.load_records(out)
    last = next(r for r in records if r["estimator"] == "RF" and r.get("last"))
    (row,) = (row for row in rows if row["estimator"] == "RF")  # one standard error, as all ± are
    assert row["bias_se"] == last["bias_se"] and row["excess_se"] == last["excess_se"]
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figure.png").stat().st_size > 50_000
    assert (out / "figure.svg").read_text().count("<path") > 100
    page = (out / "figure.html").read_text()
    assert "Plotly" in page and "GenGS ST" in page and 'src="http' not in page
    table = (out / "table.md").read_text()
    assert table.count("\n| ") == len(rows) + 1 and "Mean ± one standard error." in table
    assert (out / "table.csv").read_text().startswith("estimator,excess")
    config = read_manifest(out)
    assert config["seed"] == 0 and "synthetic --seeds 3" in config["command"]
    records = RunFolder.load_records(out)
    assert len(records) == 13 * len(rows)
    assert {len(record["bias"]) for record in records if "bias" in record} == {3}
    panels = descent_curves(read_records(out / "records.jsonl"), 5)["GenGS"]
    assert (panels["variance"].mean > 0).all()


def test_a_run_repeats_to_the_byte_resumes_and_prints_a_table(tmp_path, capsys):
    names = ["--estimators", "NVIL", "GenGS NP", "mid-CDF", "GenGS(0.1)"]
    lines = [["synthetic", *TINY, *names, "--out", str(tmp_path / out)] for out in ("1", "2")]
    assert [main(line) for line in lines] == [0, 0]
    assert "GenGS(0.1)" in capsys.readouterr().out
    first, again = ((tmp_path / out / "records.jsonl").read_bytes() for out in ("1", "2"))
    assert first == again
    assert main(lines[1]) == 2 and "already holds a run" in capsys.readouterr().err
    # killed in the middle of the third estimator
    (tmp_path / "2" / "complete.json").unlink()
    records = first.splitlines(keepends=True)
    (tmp_path / "2" / "records.jsonl").write_bytes(b"".join(records[:30]) + b'{"estim')
    assert main([*lines[1], "--resume"]) == 0
    progress = capsys.readouterr().err
    assert "3/4" in progress and "2/4" not in progress
    assert (tmp_path / "2" / "records.jsonl").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--estimators", "GenGZ"], "did you mean GenGS"),
        (["--estimators", "RF", "RF"], "each estimator once"),
        (["--estimators", "EAT", "--law", "binomial"], "can serve the binomial distribution"),
        (["--seeds", "1"], "at least 2 for --seeds"),
        (["--steps", "0"], "at least 1 for --steps"),
        (["--start", "-3"], "positive rate as the start"),
        (["--target", "0.3", "0.7", "--law", "multinomial"], "3 probabilities as the target"),
        (["--rate", "nan"], "positive, finite number for --rate"),
        (["--k", "1"], "at least 2 for --k"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(arguments, sentence, capsys, tmp_path):
    line = ["synthetic", *TINY, "--out", str(tmp_path / "run"), *arguments]
    assert main(line) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if "left out" not in line]
    assert len(error) == 1 and error[0].startswith("gengs: ") and sentence in error[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("law", "name"), [("poisson", "RF"), ("multinomial", "REBAR")])
def test_a_descent_that_diverges_is_a_sentence(law, name, capsys, tmp_path):
    line = ["synthetic", *TINY, "--law", law, "--estimators", name, "--workers", "1"]
    assert main([*line, "--rate", "1000", "--out", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"gengs: {name} diverged at step ") and error.count("\n") == 1


def test_an_unknown_law():
    done = command("--law", "poison")
    assert done.returncode == 2 and "negative-binomial" in done.stderr
    assert "Traceback" not in done.stderr
