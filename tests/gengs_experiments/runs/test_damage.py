"""Damage is refused, or changes nothing: flipped bits, and checkpoints of all kinds."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from test_training import MACHINE, run_toy

import gengs_topics
from gengs_experiments.runs import checkpoint
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.runs.run_status import inspect_run

FLIPS = 200


def flip(path, generator):
    """One random bit of a file; its bytes before."""
    before = path.read_bytes()
    place = generator.randrange(len(before))
    changed = bytearray(before)
    changed[place] ^= 1 << generator.randrange(8)
    path.write_bytes(changed)
    return before


def result(folder):
    """All that a report or a study takes from a finished run."""
    status = inspect_run(folder, verify=True)
    if status.state != "done":
        return None
    pictures = [path.read_bytes() for path in sorted(folder.glob("*.png"))]
    weights = (folder / "weights.safetensors").read_bytes()
    times = (folder / "timings.jsonl").read_bytes()
    return dict(status.manifest), RunFolder.load_records(folder), times, weights, pictures


def test_a_flipped_bit_of_a_finished_run_is_refused_or_changes_nothing(tmp_path):
    folder, generator = tmp_path / "run", random.Random(0)
    run_toy(folder)
    # a checkpoint has checksums of its own, and is read where the run is taken up again
    files = [p for p in sorted(folder.iterdir()) if p.name not in (".lock", "checkpoint.pt")]
    assert {"config.json", "records.jsonl", "complete.json"} <= {path.name for path in files}
    clean, seen = result(folder), set()
    assert clean is not None
    for _ in range(FLIPS):
        file = generator.choice(files)
        before = flip(file, generator)
        found = result(folder)
        assert found in (None, clean), (file.name, before, file.read_bytes())
        if found is None:
            seen.add(file.name)
        file.write_bytes(before)
    assert {"config.json", "records.jsonl", "weights.safetensors"} <= seen
    assert result(folder) == clean


def test_a_finished_run_without_its_mark_is_not_done(tmp_path):
    run_toy(tmp_path / "run")
    (tmp_path / "run/complete.json").unlink()
    assert inspect_run(tmp_path / "run").state == "unfinished"


def test_a_damaged_run_is_not_loaded(tmp_path):
    folder = tmp_path / "run"
    run_toy(folder)
    text = (folder / "records.jsonl").read_text()
    (folder / "records.jsonl").write_text(text[:-40])
    with pytest.raises(ValueError, match=r"records\.jsonl has changed"):
        RunFolder.load_records(folder)


def test_a_flipped_bit_of_a_topic_model_is_refused(tmp_path):
    generator, path = random.Random(0), tmp_path / "model.safetensors"
    counts = torch.randint(0, 3, (30, 12), generator=torch.Generator().manual_seed(0)).numpy()
    model = gengs_topics.TopicModel(2, hidden=(4,), max_iter=1, random_state=0).fit(counts)
    model.save(path)
    clean = gengs_topics.TopicModel.load(path).transform(counts).tolist()
    for _ in range(FLIPS):
        before = flip(path, generator)
        try:
            loaded = gengs_topics.TopicModel.load(path)
        except ValueError as error:
            assert "model.safetensors" in str(error)  # noqa: PT017
        else:
            assert loaded.transform(counts).tolist() == clean
        path.write_bytes(before)


def broken(state):
    """Checkpoints that no run of ours leaves."""
    random_states = state["task"]["random"][0]

    def with_random(**changes):
        task = {**state["task"], "random": [{**random_states, **changes}]}
        return {**state, "task": task}

    yield {}
    yield {"step": 3}
    for name, value in {
        "step": -5,
        "count": -1,
        "records": 10**6,
        "sums": {"loss": "x"},
        "task": [],
    }.items():
        yield {**state, name: value}
    yield {**state, "step": 10**6}
    yield {**state, "step": "3"}
    yield {**state, "task": {**state["task"], "optimizers": [{}]}}
    yield with_random(torch=torch.zeros(3, dtype=torch.uint8))
    yield with_random(torch=torch.zeros(5056))
    yield with_random(numpy=([1, 2], 0, 0, 0.0))
    yield with_random(numpy=([-1] * 624, 0, 0, 0.0))
    yield with_random(python=(3, (1, 2), None))
    yield with_random(cuda="x")


def test_a_checkpoint_that_cannot_be_is_refused_with_a_sentence(tmp_path):
    folder = Path(tmp_path, "run")
    run_toy(folder)
    clean = checkpoint.load(folder / "checkpoint.pt")
    for number, state in enumerate(broken(clean)):
        checkpoint.save(folder / "checkpoint.pt", state)
        with pytest.raises((checkpoint.CheckpointError, ValueError)) as caught:
            run_toy(folder, machine=replace(MACHINE, resume=True))
        said = str(caught.value)
        refused = f"the checkpoint {folder / 'checkpoint.pt'} does not fit this task: "
        assert "\n" not in said and (refused in said or "records" in said), number
    checkpoint.save(folder / "checkpoint.pt", clean)
    run_toy(folder, machine=replace(MACHINE, resume=True))
