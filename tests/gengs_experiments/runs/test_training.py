"""One loop: killed anywhere it ends as if it had not been; what goes wrong has a name."""

import json
import math
import os
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from digits_run import Batches, Digits, make_task
from torch import nn

import gengs
from gengs_experiments.runs import checkpoint
from gengs_experiments.runs.checkpoint import CheckpointError
from gengs_experiments.runs.progress import Progress
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.runs.training import Machine, NonFiniteError, Task, Training, train

PROGRAM = [sys.executable, "-W", "error", str(Path(__file__).with_name("digits_run.py"))]


def run_digits(*arguments):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600
    )


def artefacts(folder):
    return [(folder / name).read_bytes() for name in ("records.jsonl", "weights.safetensors")]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("digits") / "run"
    done = run_digits(folder)
    assert done.returncode == 0, done.stderr
    assert "step 60/60" in done.stdout and "time left" in done.stdout
    return folder


@pytest.mark.slow
def test_killed_at_random_steps_it_ends_with_the_same_bytes(digits, tmp_path):
    draw = random.Random()  # another place each time; a failure prints it
    kills = [
        ["--kill-at", str(draw.randrange(1, 35))],
        ["--resume", "--kill-in-save", str(draw.randrange(1, 3))],
    ]
    for arguments in kills:
        done = run_digits(tmp_path / "run", *arguments)
        assert done.returncode == -9, (kills, done.stderr)
    done = run_digits(tmp_path / "run", "--resume")
    assert done.returncode == 0, (kills, done.stderr)
    assert artefacts(tmp_path / "run") == artefacts(digits), kills


@pytest.mark.slow
@pytest.mark.parametrize("terminate", [[], ["--terminate"]])
def test_a_signal_saves_and_says_how_to_go_on(digits, tmp_path, terminate):
    folder = tmp_path / "run"
    done = run_digits(folder, "--signal-at", 32, *terminate)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "saved at step 33; to go on: python " in done.stdout and " --resume" in done.stdout
    assert checkpoint.load(folder / "checkpoint.pt")["step"] == 33
    if not terminate:
        assert run_digits(folder, "--resume").returncode == 0
        assert artefacts(folder) == artefacts(digits)


@pytest.mark.slow
def test_two_processes_share_the_batch(tmp_path):
    folder = tmp_path / "run"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program = [PROGRAM[-1], str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, *program], capture_output=True, text=True, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr
    last = RunFolder.load_records(folder)[-1]
    assert last["kind"] == "evaluation" and last["accuracy"] > 0.25  # chance is 0.1
    state = checkpoint.load(folder / "checkpoint.pt")
    first, second = (one["torch"] for one in state["task"]["random"])
    assert not torch.equal(first, second)  # each draws its own noise
    config = Digits()
    with pytest.raises(CheckpointError, match=r"2 processes.* 1"):
        train(make_task(config), folder, config, config.training, replace(MACHINE, resume=True))


@dataclass(frozen=True)
class Toy:
    """Fit a line through noise."""

    training: Training = Training(steps=20, record_every=5)  # noqa: RUF009 (it is frozen)
    seed: int = 0


MACHINE = Machine(accelerator="cpu", progress=False, checkpoint_steps=4)


def make_toy(spoil=lambda step, batch: batch, **changes):
    """A task of a few milliseconds; ``spoil`` may change a batch."""
    torch.manual_seed(0)
    x = torch.randn(40, 3)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    batches = Batches(x, x.sum(-1, keepdim=True), batch_size=8)

    class Spoiled:
        def batch(self, step, rank, world):
            return spoil(step, batches.batch(step, rank, world))

    task = Task(
        modules={"model": model},
        step=lambda batch: (model(batch[0]) - batch[1]).square().mean(),
        data=Spoiled(),
        optimizers=[torch.optim.SGD(model.parameters(), lr=0.01)],
        evaluate=lambda: {"noise": torch.rand(()), "training": model.training},
    )
    return replace(task, **changes)


def run_toy(folder, task=None, machine=MACHINE, **changes):
    config = Toy(replace(Toy().training, **changes))
    return train(task or make_toy(), folder, config, config.training, machine)


def test_records_and_files(tmp_path):
    records = run_toy(tmp_path / "run", evaluate_every=8)
    steps = [(record["kind"], record["step"]) for record in records]
    train_steps = [("train", 5), ("train", 10), ("train", 15), ("train", 20)]
    evaluations = [("evaluation", 8), ("evaluation", 16), ("evaluation", 20)]
    assert sorted(steps) == sorted(train_steps + evaluations)
    assert list(records[0]) == ["kind", "step", "loss", "gradient_norm"]
    assert not any(record["training"] for record in records if record["kind"] == "evaluation")
    text = (tmp_path / "run/timings.jsonl").read_text()
    timings = [json.loads(line) for line in text.splitlines()]
    assert [(t["kind"], t["step"]) for t in timings] == steps and timings[0]["seconds"] > 0
    assert RunFolder.load_records(tmp_path / "run") == records


def test_evaluating_and_saving_more_often_changes_nothing_else(tmp_path):
    results = []
    for number, every in enumerate([None, 1, 7]):
        machine = replace(MACHINE, checkpoint_steps=every, checkpoint_seconds=0.0)
        records = run_toy(tmp_path / str(number), machine=machine, evaluate_every=every)
        weights = (tmp_path / str(number) / "weights.safetensors").read_bytes()
        results.append(([r for r in records if r["kind"] == "train"], weights))
    assert results[0] == results[1] == results[2]


def test_a_finished_run_is_left_as_it_is(tmp_path):
    run_toy(tmp_path / "run")
    before = artefacts(tmp_path / "run")
    run_toy(tmp_path / "run", machine=replace(MACHINE, resume=True))
    assert artefacts(tmp_path / "run") == before


@pytest.mark.parametrize("clip", [None, 0.1])
def test_the_gradient_is_clipped_and_its_norm_recorded(tmp_path, clip):
    task = make_toy()
    model = task.modules["model"]
    norms = []

    class Watch:
        def step(self):
            grads = [p.grad for p in model.parameters()]
            norms.append(float(torch.nn.utils.get_total_norm(grads)))

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    records = run_toy(tmp_path / "run", replace(task, schedules={"watch": Watch()}), clip=clip)
    recorded = records[0]["gradient_norm"]
    if clip is None:
        assert sum(norms[:5]) / 5 == pytest.approx(recorded)
    else:
        assert recorded > clip and norms == pytest.approx([clip] * 20, rel=1e-4)


def spoil_at(step, value):
    def spoil(now, batch):
        return (batch[0] * value, batch[1]) if now == step else batch

    return spoil


def test_a_bad_batch_is_named_and_the_checkpoint_kept(tmp_path):
    with pytest.raises(NonFiniteError, match=r"step 11: the batch is nan.* step 8"):
        run_toy(tmp_path / "run", make_toy(spoil_at(10, math.nan)))
    assert checkpoint.load(tmp_path / "run/checkpoint.pt")["step"] == 8
    with pytest.raises(NonFiniteError, match="step 11"):  # the same again
        run_toy(tmp_path / "run", make_toy(spoil_at(10, math.nan)), replace(MACHINE, resume=True))
    # with the cause removed, it goes on from the checkpoint as if nothing had been
    run_toy(tmp_path / "run", machine=replace(MACHINE, resume=True))
    run_toy(tmp_path / "clean")
    assert artefacts(tmp_path / "run") == artefacts(tmp_path / "clean")


def test_a_bad_result_parameter_or_gradient_is_named(tmp_path):
    task = make_toy()
    model = task.modules["model"]
    bad = replace(task, step=lambda batch: model(batch[0]).mean() * math.nan)
    with pytest.raises(NonFiniteError, match=r"step 1: .*'loss'.* nan.* no checkpoint"):
        run_toy(tmp_path / "result", bad)
    # the square root has a value at zero, and no slope
    bad = replace(task, step=lambda batch: (model[2].bias * 0).sum().sqrt())
    with pytest.raises(NonFiniteError, match=r"step 1: .*gradient of model\.2\.bias"):
        run_toy(tmp_path / "gradient", bad)
    # clipping does not spoil the gradients that come before it

    def step(batch):
        return model(batch[0]).mean() + (model[2].bias * 0).sum().sqrt()

    bad = replace(task, step=step)
    with pytest.raises(NonFiniteError, match=r"step 1: .*gradient of model\.2\.bias"):
        run_toy(tmp_path / "clipped", bad, clip=1.0)
    with torch.no_grad():
        model[2].bias.fill_(math.inf)
    with pytest.raises(NonFiniteError, match=r"the parameter model\.2\.bias is infinite"):
        run_toy(tmp_path / "parameter", task)


def test_a_law_that_refuses_nan_is_a_bad_tensor_too(tmp_path):
    task = make_toy(spoil_at(1, math.nan))
    model = task.modules["model"]

    def step(batch):
        rate = model(batch[0]).exp()
        return gengs.GenGS(0.5).expect(lambda z: z, torch.distributions.Poisson(rate)).mean()

    with pytest.raises(NonFiniteError, match="step 2: the batch is nan"):
        run_toy(tmp_path / "run", replace(task, step=step))


def test_an_error_of_the_task_stays_what_it_is(tmp_path):
    def step(batch):
        raise ValueError("my own mistake")

    with pytest.raises(ValueError, match="my own mistake"):
        run_toy(tmp_path / "run", make_toy(step=step))


@pytest.mark.parametrize("estimator", [gengs.NVIL(), gengs.RELAX(), gengs.REBAR()])
def test_an_estimator_with_parts_of_its_own_resumes(tmp_path, estimator):
    """Lazy layers too, which have no shape when the optimiser gets them."""

    def make(fail_at=None):
        torch.manual_seed(0)
        own = type(estimator)()
        model = nn.Linear(3, 2)
        optimizers = [
            torch.optim.Adam(model.parameters(), lr=0.01),
            torch.optim.Adam(own.parameters(), lr=0.01),
        ]

        def step(batch):
            (x,) = batch
            law = gengs.truncate(torch.distributions.Poisson(model(x).exp()), 8)
            q = torch.distributions.Independent(law, 1)
            return own.expect(lambda z: (z - 2).square().sum(-1), q).mean()

        data = Batches(torch.randn(16, 3), batch_size=8)

        class Failing:
            def batch(self, step, rank, world):
                if step == fail_at:
                    raise RuntimeError("the power is gone")
                return data.batch(step, rank, world)

        return Task({"model": model, "estimator": own}, step, Failing(), optimizers)

    run_toy(tmp_path / "clean", make())
    with pytest.raises(RuntimeError, match="power"):
        run_toy(tmp_path / "run", make(fail_at=10))
    run_toy(tmp_path / "run", make(), replace(MACHINE, resume=True))
    assert artefacts(tmp_path / "run") == artefacts(tmp_path / "clean")


def test_a_checkpoint_of_another_task_is_refused(tmp_path):
    run_toy(tmp_path / "run")
    other = make_toy()
    for modules in ({"model": nn.Linear(3, 2)}, {"network": other.modules["model"]}):
        with pytest.raises(CheckpointError, match="does not fit this task"):
            run_toy(
                tmp_path / "run", replace(other, modules=modules), replace(MACHINE, resume=True)
            )


def test_lost_records_are_an_error(tmp_path):
    run_toy(tmp_path / "run")
    (tmp_path / "run/records.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"records\.jsonl has changed"):
        run_toy(tmp_path / "run", machine=replace(MACHINE, resume=True))
    (tmp_path / "run/complete.json").unlink()
    with pytest.raises(ValueError, match="expected at least 5 records"):
        run_toy(tmp_path / "run", machine=replace(MACHINE, resume=True))


def test_a_step_must_return_a_scalar_loss(tmp_path):
    for number, (result, message) in enumerate(
        [
            (torch.ones(2), r"scalar as the result 'loss' of the step, but got the shape \(2,\)"),
            ({"elbo": torch.ones(())}, "a result 'loss'"),
            ({"loss": torch.ones(()), "kind": torch.ones(())}, "'kind' in a record is taken"),
        ]
    ):
        with pytest.raises(ValueError, match=message):
            run_toy(tmp_path / str(number), make_toy(step=lambda batch, r=result: r))


def test_settings_are_checked():
    for settings in ({"steps": 0}, {"record_every": 0}, {"clip": 0.0}):
        with pytest.raises(ValueError, match=f"`{next(iter(settings))}`"):
            Training(**settings)
    for machine in (Machine(devices=0), Machine(checkpoint_steps=0)):
        with pytest.raises(ValueError, match="at least 1 for --"):
            machine.check()


def test_tensorboard_scalars(tmp_path):
    run_toy(tmp_path / "run", machine=replace(MACHINE, tensorboard=True))
    (file,) = (tmp_path / "run/tensorboard").iterdir()
    assert b"train/loss" in file.read_bytes() and b"evaluation/noise" in file.read_bytes()


def test_progress_is_a_bar_in_a_terminal_and_lines_elsewhere(capsys, monkeypatch):
    with Progress(10, start=5, seconds=0.0) as progress:
        progress.update(6, 0.25)
        progress.say("hello [there]")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("step 6/10") and "loss 0.25" in lines[0]
    assert lines[1] == "hello [there]"
    clock = iter([0.0, 1.9, 2.1, 12.0, 12.2])
    monkeypatch.setattr("gengs_experiments.runs.progress.time.monotonic", lambda: next(clock))
    with Progress(10) as progress:
        for step in range(4):
            progress.update(step, 0.25)
    said = [line.split("/")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["step 1", "step 3"]  # soon, and then every ten seconds
    monkeypatch.undo()
    with Progress(10, shown=False) as progress:
        progress.update(10, 0.25)
        progress.say("hello")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with Progress(10, start=5) as progress:
        progress.update(6, 0.25)
        progress.say("hello [there]")
    shown = capsys.readouterr().out
    assert "6/10" in shown and "loss 0.25" in shown and "hello [there]" in shown
