"""``gengs nvpdef``, run as people run it: recorded numbers, resumption, topics.json."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from gengs_experiments.cli import main
from gengs_experiments.runs.machine import Machine
from gengs_experiments.study.published import TABLE2
from gengs_experiments.study.study_file import read_study
from gengs_topics.commands.nvpdef_command import Nvpdef
from gengs_topics.commands.nvpdef_experiment import build_nvpdef
from gengs_topics.commands.nvpdef_settings import NvpdefConfig
from gengs_topics.text.text_sets import load_corpus

SMALL = ["--topics", "6", "--hidden", "16", "--epochs", "2", "--draws", "2", "--no-progress"]
# two threads for a batch of 64 wait for each other more than they work
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
KEYS = {"perplexity_test", "perplexity_test_corpus", "perplexity_relaxed", "kl_test"}


def topics(out, *arguments):
    command = [sys.executable, "-m", "gengs", "nvpdef", "--out", str(out), *SMALL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=ALONE)


def evaluations(out):
    lines = (out / "records.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "evaluation"]


@pytest.mark.slow
def test_it_trains_evaluates_and_lists_topics(tmp_path):
    arguments = ["--super-topics", "3", "--importance-draws", "5", "--validation", "0.1"]
    done = topics(tmp_path / "run", *arguments)
    assert done.returncode == 0, done.stderr
    (last,) = evaluations(tmp_path / "run")
    assert set(last) >= KEYS
    assert 500 < last["perplexity_test"] < 1700  # the unigram model has 1352
    assert last["perplexity_importance"] < last["perplexity_test"]
    assert -1 <= last["npmi"] <= 1 and 0 < last["diversity"] <= 1
    assert last["perplexity_validation"] != last["perplexity_test"]
    found = json.loads((tmp_path / "run" / "topics.json").read_text())
    assert [len(topic["words"]) for topic in found["topics"]] == [10] * 6
    assert len(found["hierarchy"]) == 3
    assert set(found["hierarchy"][0]) == {"title", "words", "children"}
    assert (tmp_path / "run" / "weights.safetensors").exists()


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bytes(tmp_path):
    config = NvpdefConfig(
        topics=6, hidden=(16,), epochs=3, draws=2, evaluate_every=1, estimator="NVIL"
    )
    machine = Machine(progress=False, accelerator="cpu")
    Nvpdef(config, tmp_path / "whole", machine=machine).run()
    arguments = ["--epochs", "3", "--evaluate-every", "1", "--estimator", "NVIL"]
    arguments += ["--accelerator", "cpu"]
    command = [sys.executable, "-m", "gengs", "nvpdef", "--out", str(tmp_path / "cut"), *SMALL,
               *arguments, "--checkpoint-steps", "7"]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ALONE
    )
    deadline = time.monotonic() + 600
    while not (tmp_path / "cut" / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    here = ["nvpdef", "--out", str(tmp_path / "cut"), *SMALL, *arguments, "--resume"]
    assert main(here) == 0
    for name in ("records.jsonl", "weights.safetensors", "topics.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "nvdm"},
        {"estimator": "GenGS", "posterior": "explicit", "temperature": (3.0, 0.5)},
        {"estimator": "VIMCO(3)", "weigh": "tokens", "decay": "none", "kl_warm_up": 5},
        {"super_topics": (3,), "stack": "mean-field", "estimator": "RLOO(2)"},
        {"super_topics": (3,), "stack": "chain", "estimator": "MidCDF(3)",
         "inner_estimator": "MidCDF"},
        {"estimator": "ArrivalTimes", "posterior": "explicit", "level": 0, "rates": (1.0,)},
        {"thinning": 0.2, "dropout": 0.1, "batch_norm": True, "learn_rates": True},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)  # fmt: skip
def test_every_switch_trains(changes):
    config = replace(NvpdefConfig(topics=5, hidden=(8,), epochs=1, draws=1), **changes)
    task, _ = build_nvpdef(config, *load_corpus("sample"))
    first = task.step(task.data.batch(0, 0, 1))["loss"]
    for step in range(4):
        for optimizer in task.optimizers:
            optimizer.zero_grad()
        loss = task.step(task.data.batch(step, 0, 1))["loss"]
        loss.backward()
        for optimizer in task.optimizers:
            optimizer.step()
        for schedule in task.schedules.values():
            schedule.step()
    assert loss.isfinite() and first.isfinite()
    for module in task.modules.values():
        module.eval()
    assert task.evaluate()["perplexity_test"] > 100


def test_gengs_follows_its_temperature_in_every_layer():
    config = NvpdefConfig(super_topics=(3,), topics=4, estimator="GenGS", temperature=(3.0, 0.5))
    task, _ = build_nvpdef(config, *load_corpus("sample"))
    schedule = task.schedules["temperature"]
    assert schedule.value == 3.0
    assert all(e.temperature is schedule for e in task.modules["model"].estimators)
    task, _ = build_nvpdef(replace(config, estimator="GenGS(0.7)"), *load_corpus("sample"))
    assert "temperature" not in task.schedules


def test_the_test_documents_are_left_alone_where_asked(tmp_path):
    config = NvpdefConfig(topics=4, hidden=(8,), epochs=1, validation=0.2, test=False)
    machine = Machine(progress=False, accelerator="cpu")
    *_, last = Nvpdef(config, tmp_path / "run", machine=machine).run()
    assert not KEYS & set(last) and "perplexity_validation" in last


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"validation": 1.0}, "`validation` in"),
        ({"model": "nvdm", "super_topics": (3,)}, "no layer above"),
        ({"level": 0}, "a `level` of atoms"),
        ({"rates": (1.0, 2.0)}, "a rate for each of 1 layers"),
        ({"estimator": "Magic"}, "there is no estimator"),
        ({"refine": -1}, "at least 0 for --refine, but got -1"),
        ({"kl_warm_up": -1}, "at least 0 for --kl-warm-up, but got -1"),
        ({"draws": 0}, "at least 1 for --draws"),
        ({"importance_draws": -1}, "at least 0 for --importance-draws"),
        ({"epochs": 0}, "at least 1 for --epochs"),
        ({"seed": -1}, "at least 0 for --seed"),
        ({"super_topics": (3, 0)}, "at least 1 for --super-topics"),
        ({"weight_decay": -0.1}, "at least 0 for --weight-decay"),
        ({"weight_decay": float("nan")}, "at least 0 for --weight-decay"),
        ({"topic_penalty": -0.1}, "at least 0 for --topic-penalty"),
        ({"topic_penalty": float("inf")}, "at least 0 for --topic-penalty"),
        ({"learning_rate": 0.0}, "positive, finite number for --learning-rate"),
        ({"rates": (0.0,)}, "positive, finite `rates`"),
        ({"rates": (1e9,)}, "`rates` below the last atom, `level` - 1 = 29"),
    ],
)
def test_bad_settings(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        build_nvpdef(replace(NvpdefConfig(), **changes), *load_corpus("sample"))


def test_table_2_has_every_row_of_the_paper():
    published = {(row, column) for row, cells in TABLE2["20news"].items() for column in cells}
    runs = read_study("table2", "paper").runs
    for data in ("20news", "reuters"):
        cells = [run.labels for run in runs if run.labels["data"] == data]
        assert published <= {(labels["row"], labels["column"]) for labels in cells}
    assert {run.labels["data"] for run in runs} == {"20news", "reuters"}
    assert {run.config.corpus for run in read_study("table2", "smoke").runs} == {"sample"}
