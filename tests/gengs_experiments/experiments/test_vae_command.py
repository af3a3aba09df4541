"""``gengs vae``, run as people run it."""

import json
import subprocess
import sys

import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gengs_experiments.cli import main
from gengs_experiments.runs.records import RunFolder

SMALL = ["--latents", "6", "--network", "64-32", "--epochs", "2", "--images", "400",
         "--evaluation-images", "100", "--no-progress"]  # fmt: skip


def vae(out, *arguments):
    command = [sys.executable, "-m", "gengs", "vae", "--out", str(out), *SMALL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def here(out, *arguments):
    """In this process, which has imported everything; its exit code."""
    return main(["vae", "--out", str(out), *SMALL, *arguments])


def evaluations(out):
    lines = (out / "records.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "evaluation"]


@pytest.mark.parametrize(
    "settings",
    [
        ["--estimator", "MidCDF(2)"],
        ["--estimator", "MidCDF", "--posterior", "implicit", "--decoder-input", "counts"],
        ["--estimator", "GenGS", "--posterior", "explicit", "--prior", "negative-binomial(3, 0.5)"],
        ["--estimator", "VIMCO(3)", "--prior", "geometric(0.5)", "--kl-warm-up", "5"],
        ["--estimator", "ArrivalTimes", "--posterior", "explicit", "--level", "0"],
        ["--estimator", "GenGS(samples=2)", "--posterior", "explicit", "--mass", "0.99"],
        ["--prior", "subset(6, 3)"],
    ],
    ids=lambda settings: settings[1],
)
def test_it_trains_and_evaluates_with_exact_draws(tmp_path, settings):
    assert here(tmp_path / "run", *settings, "--likelihood-samples", "20") == 0
    (last,) = evaluations(tmp_path / "run")
    assert 20 < last["nelbo_test"] < 60  # 64 pixels: untrained it is about 45
    assert last["nll_test"] < last["nelbo_test"] + 1
    assert (tmp_path / "run" / "weights.safetensors").exists()


def test_the_same_command_gives_the_same_bytes(tmp_path):
    """In a process of its own, and in this one, which has done other things before."""
    assert vae(tmp_path / "a", "--evaluate-every", "1").returncode == 0
    assert here(tmp_path / "b", "--evaluate-every", "1") == 0
    records = [(tmp_path / name / "records.jsonl").read_bytes() for name in ("a", "b")]
    assert records[0] == records[1]
    assert here(tmp_path / "a", "--evaluate-every", "1", "--resume") == 0  # nothing is left to do
    assert (tmp_path / "a" / "records.jsonl").read_bytes() == records[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prior", "poisson(4)"], "level"),
        (["--prior", "normal(0)"], "there is no distribution"),
        (["--estimator", "Magic"], "there is no estimator"),
        (["--posterior", "implicit", "--level", "0"], "implicit posterior needs"),
        (["--level", "0"], "tilted posterior needs"),
        (["--gaussian-draws", "0"], "at least 1 for --gaussian-draws"),
        (["--images", "5", "--batch-size", "10"], "batch_size"),
        (["--latents", "0"], "at least 1 for --latents"),
        (["--checkpoint-steps", "0"], "at least 1 for --checkpoint-steps"),
        (["--prior", "negativ(3, 0.5)"], "did you mean negative-binomial?"),
        (["--mass", "0.9"], "--mass goes with --posterior explicit"),
        (["--mass", "1.5"], "--mass between 0 and 1, but got 1.5"),
        (["--accelerator", "mps"], "it has no mps"),
        (["--learning-rate", "-1"], "positive, finite number for --learning-rate, but got -1.0"),
        (["--temperature", "0", "1"], "for --temperature, but got 0.0 1.0"),
        (["--prior", "poisson(-1)"], "expected poisson with rate >= 0, but got 'poisson(-1)'"),
        (["--prior", "categorical(3)"], "expected a list of numbers as the parameters of"),
        (["--prior", "binomial(2.5, 0.5)"], "an integer total_count"),
        (["--prior", "subset(6, 7)"], "expected subset with integers 0 <= k <= n"),
        (["--prior", "subset(6, 3)", "--level", "4"], "--level and --mass do not go with"),
        (["--prior", "ranking(4)"], "a --prior of counts, subset(n, k) or gaussian"),
    ],
)
def test_bad_usage(tmp_path, arguments, sentence, capsys):
    assert main(["vae", "--out", str(tmp_path / "run"), *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error


@pytest.mark.parametrize(
    ("prior", "posterior"),
    [
        ("binomial(5, 0.3)", "implicit"),
        ("binomial(5, 0.3)", "explicit"),
        ("binomial(5, 0.3)", "tilted"),
        ("bernoulli(0.3)", "implicit"),
        ("categorical([1, 2, 3])", "implicit"),
    ],
)
def test_a_prior_with_finitely_many_values_needs_no_level(tmp_path, prior, posterior):
    sizes = ["--images", "200", "--epochs", "1", "--network", "64-32", "--latents", "4"]
    settings = ["--prior", prior, "--posterior", posterior, "--evaluation-images", "50"]
    assert main(["vae", "--out", str(tmp_path / "run"), *sizes, *settings]) == 0
    assert RunFolder.load_records(tmp_path / "run")[-1]["nelbo_test"] > 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "run"
    assert main(["vae", "--out", str(folder), "--epochs", "1"]) == 1
    assert capsys.readouterr().err == f"gengs: {folder}: Not a directory.\n"


def test_the_gaussian_reference_and_the_pictures(tmp_path):
    out = tmp_path / "run"
    gaussian = ["--prior", "gaussian", "--gaussian-draws", "2"]
    assert here(out, *gaussian, "--tensorboard", "--evaluate-every", "1") == 0
    assert len(evaluations(out)) == 2
    for name, rows in (("reconstructions", 6), ("samples", 6)):
        with Image.open(out / f"{name}.png") as picture:
            # 10 columns of 8 x 8 images, enlarged 7 times, with lines of 2 between them
            assert picture.size == (10 * 58 - 2, rows * 58 - 2) and picture.mode == "L"
    events = EventAccumulator(str(out / "tensorboard"), size_guidance={"images": 0})
    events.Reload()
    assert sorted(events.Tags()["images"]) == ["reconstructions", "samples"]
    assert [event.step for event in events.Images("samples")] == [4, 8]


def test_two_processes_train_as_one_with_the_same_global_batch(tmp_path):
    """The loss of ``Exact`` has no noise, so equal in expectation is equal but for rounding."""
    settings = ["--estimator", "Exact", "--level", "3", "--latents", "2", "--binarise", "threshold"]
    assert here(tmp_path / "one", *settings) == 0
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = ["--out", str(tmp_path / "two"), "--accelerator", "cpu", *SMALL, *settings]
    command = [*launch, "-m", "gengs", "vae", *arguments]
    two = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert two.returncode == 0, two.stderr
    assert "find_unused_parameters" not in two.stderr
    records = [RunFolder.load_records(tmp_path / name) for name in ("one", "two")]
    for single, double in zip(*records, strict=True):
        for key in {"loss", "gradient_norm", "kl_test", "active_units"} & single.keys():
            assert double[key] == pytest.approx(single[key], rel=1e-3), key
    losses = [record["loss"] for record in records[0] if record["kind"] == "train"]
    assert losses[-1] < losses[0]  # they have learned something


def test_a_folder_in_which_nothing_began_can_be_used_again(tmp_path, capsys):
    run = ["vae", "--out", str(tmp_path / "run"), "--images", "100", "--epochs", "1",
           "--network", "64-32", "--latents", "4", "--no-progress"]  # fmt: skip
    assert main([*run, "--estimator", "Exact", "--latents", "40"]) != 0  # too many values
    assert main([*run, "--learning-rate", "1e39"]) == 1
    assert "choose a smaller --learning-rate than 1e+39" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("learning_rate", "epochs", "code"),
    [("1e9", "1", 0), ("1e9", "2", 1), ("30", "4", 0)],  # finite, not finite, stuck far above
)
def test_training_that_diverged_is_told(tmp_path, capsys, learning_rate, epochs, code):
    settings = ["--images", "100", "--learning-rate", learning_rate, "--epochs", epochs]
    assert here(tmp_path / "run", *settings) == code
    said = "".join(capsys.readouterr())
    assert "training diverged" in said
    assert f"a smaller --learning-rate than {float(learning_rate):g}" in said
    assert "collapse" not in said


def test_an_untrained_model_has_not_diverged(tmp_path, capsys):
    """One tiny step, and posteriors that begin hundreds of nats away from the prior."""
    far = ["--prior", "poisson(20)", "--level", "45", "--posterior", "explicit", "--latents", "50"]
    settings = ["--images", "100", "--epochs", "1", "--learning-rate", "1e-6"]
    assert here(tmp_path / "run", *far, *settings) == 0
    assert evaluations(tmp_path / "run")[-1]["nelbo_test"] > 400
    assert "diverged" not in "".join(capsys.readouterr())
