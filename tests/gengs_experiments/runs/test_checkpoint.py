"""A checkpoint is whole or absent, and never code."""

import errno
import os
import pickle
import random
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from gengs_experiments.runs import checkpoint
from gengs_experiments.runs.checkpoint import CheckpointError
from gengs_experiments.runs.random_state import random_state, restore_random_state, seed_everything

STATE = {"step": 7, "weights": OrderedDict(w=torch.arange(5.0)), "list": [1, (2.5, "x", None)]}


@pytest.fixture
def path(tmp_path):
    """A good checkpoint."""
    checkpoint.save(tmp_path / "checkpoint.pt", STATE)
    return tmp_path / "checkpoint.pt"


def test_what_is_saved_is_loaded(path):
    state = checkpoint.load(path)
    assert torch.equal(state.pop("weights")["w"], torch.arange(5.0))
    assert state == {"step": 7, "list": [1, (2.5, "x", None)]}
    assert [item.name for item in path.parent.iterdir()] == ["checkpoint.pt"]


def test_a_truncated_file_is_an_error_at_any_length(path):
    data = path.read_bytes()
    for length in [0, 1, 100, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(CheckpointError, match="truncated or not a checkpoint"):
            checkpoint.load(path)


def test_a_flipped_bit_is_an_error(path):
    data = path.read_bytes()
    place = data.index(torch.arange(5.0).numpy().tobytes()) + 5
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoint.load(path)


def test_no_flipped_byte_changes_what_is_loaded(path):
    data = path.read_bytes()
    for place in range(0, len(data), 97):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            state = checkpoint.load(path)
        except CheckpointError:
            continue
        assert torch.equal(state["weights"]["w"], torch.arange(5.0)) and state["step"] == 7


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("owned",)


def test_code_is_refused_and_not_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"step": Malicious()}, path)
    with pytest.raises(CheckpointError, match="other than plain data"):
        checkpoint.load(path)
    path.write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        checkpoint.load(path)
    assert not Path("owned").exists()


def test_another_type_is_refused(path):
    torch.save([1], path)
    with pytest.raises(CheckpointError, match="holds a list"):
        checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(path.with_name("missing.pt"))


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [Malicious()]}, r"state\['a'\]\[0\] is a .*Malicious"),
        ({"rate": np.float64(1.0)}, r"state\['rate'\] is a numpy"),
        ({1.5: 2}, "keys in state"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(path, value, where):
    with pytest.raises(TypeError, match=where):
        checkpoint.save(path, value)
    assert checkpoint.load(path)["step"] == 7


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(path, monkeypatch, moment):
    def full(*arguments, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    if moment == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif moment == "replace":
        monkeypatch.setattr(Path, "replace", full)
    else:
        real_open = Path.open

        def open_full(self, mode="r", *arguments, **settings):
            file = real_open(self, mode, *arguments, **settings)
            return FullFile(file) if "w" in mode else file

        class FullFile:
            def __init__(self, file):
                self.file = file

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                self.file.close()

            def write(self, data):
                self.file.write(data[:50])
                full()

        monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(OSError, match=r"previous one.* disk is full") as caught:
        checkpoint.save(path, {"step": 8})
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert checkpoint.load(path)["step"] == 7
    assert [item.name for item in path.parent.iterdir()] == ["checkpoint.pt"]
    with pytest.raises(OSError, match="nothing was written"):
        checkpoint.save(path.parent / "missing" / "checkpoint.pt", {})


def test_weights_are_the_same_bytes_and_may_be_tied(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    for name in ("a", "b"):
        checkpoint.save_weights(tmp_path / name, {"model": model})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    weights = load_file(tmp_path / "a")
    assert torch.equal(weights["model.2.weight"], model[0].weight)
    assert "model.1.running_mean" in weights


def draw():
    return torch.rand(3).tolist(), random.random(), np.random.rand(), random.gauss(0, 1)  # noqa: NPY002


def test_every_generator_is_restored_through_a_checkpoint(tmp_path):
    random.gauss(0, 1)  # leaves a cached second value
    checkpoint.save(tmp_path / "c.pt", random_state())
    first = draw()
    restore_random_state(checkpoint.load(tmp_path / "c.pt"))
    assert draw() == first


def test_seeds_and_streams_differ():
    draws = set()
    for seed, stream in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        seed_everything(seed, stream)
        draws.add(str(draw()))
    seed_everything(1, 1)
    assert len(draws) == 4 and str(draw()) in draws
