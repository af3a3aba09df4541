"""``gengs vae``, run as people run it."""

import json
import subprocess
import sys

import pytest

from gengs.cli import main

SMALL = ["--latents", "6", "--network", "64-32", "--epochs", "2", "--images", "400",
         "--evaluation-images", "100", "--no-progress"]  # fmt: skip


def vae(out, *arguments):
    command = [sys.executable, "-m", "gengs", "vae", "--out", str(out), *SMALL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def evaluations(out):
    lines = (out / "records.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "evaluation"]


@pytest.mark.parametrize(
    "settings",
    [
        ["--estimator", "MidCDF"],
        ["--estimator", "GenGS", "--posterior", "explicit", "--prior", "negative-binomial(3, 0.5)"],
        ["--estimator", "VIMCO(3)", "--prior", "geometric(0.5)", "--kl-warm-up", "5"],
        ["--estimator", "ArrivalTimes", "--posterior", "explicit", "--level", "0"],
        ["--estimator", "GenGS(samples=2)", "--posterior", "explicit", "--mass", "0.99"],
    ],
    ids=lambda settings: settings[1],
)
def test_it_trains_and_evaluates_with_exact_draws(tmp_path, settings):
    done = vae(tmp_path / "run", *settings, "--likelihood-samples", "20")
    assert done.returncode == 0, done.stderr
    (last,) = evaluations(tmp_path / "run")
    assert 20 < last["nelbo_test"] < 60  # 64 pixels: untrained it is about 45
    assert last["nll_test"] < last["nelbo_test"] + 1
    assert (tmp_path / "run" / "weights.safetensors").exists()


def test_the_same_command_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        assert vae(tmp_path / name, "--evaluate-every", "1").returncode == 0
    records = [(tmp_path / name / "records.jsonl").read_bytes() for name in ("a", "b")]
    assert records[0] == records[1]
    again = vae(tmp_path / "a", "--evaluate-every", "1", "--resume")  # nothing is left to do
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "a" / "records.jsonl").read_bytes() == records[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prior", "poisson(4)"], "level"),
        (["--prior", "normal(0)"], "there is no law"),
        (["--estimator", "Magic"], "there is no estimator"),
        (["--posterior", "implicit", "--level", "0"], "implicit posterior needs"),
        (["--images", "5", "--batch-size", "10"], "batch_size"),
    ],
)
def test_bad_usage(tmp_path, arguments, sentence, capsys):
    assert main(["vae", "--out", str(tmp_path / "run"), *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error
