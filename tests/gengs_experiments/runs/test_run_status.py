"""One answer to what a run folder holds."""

import json
from dataclasses import dataclass

import pytest
from filelock import FileLock

from gengs_experiments.runs.config import to_json
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.runs.run_status import CONFLICTS, inspect_run


@dataclass(frozen=True)
class Config:
    rate: float = 0.5
    seed: int = 0


@pytest.fixture
def folder(tmp_path):
    """A finished run."""
    with RunFolder.open(tmp_path / "run", Config(), experiment="toy") as run:
        run.records.append({"step": 1})
        (run.path / "samples.png").write_bytes(b"picture")
        run.finish()
    return tmp_path / "run"


def look(folder, config=None, **options):
    settings = to_json(config or Config())
    return inspect_run(folder, "toy", settings, Config, verify=True, **options)


def test_the_states_of_a_run(folder, tmp_path):
    assert look(tmp_path / "none").state == "waiting"
    assert look(folder).state == "done"
    (folder / "complete.json").unlink()
    assert look(folder).state == "unfinished"
    with FileLock(folder / ".lock"):
        assert look(folder).state == "running"
    (folder / "error.txt").write_text("Traceback\nValueError: why\n\nIts last output:\nx\n")
    status = look(folder)
    assert (status.state, status.reason) == ("failed", "ValueError: why")
    assert (status.experiment, status.settings) == ("toy", {"rate": 0.5, "seed": 0})


def test_taken_up_again_it_is_not_complete_until_it_is_finished_again(folder):
    with RunFolder.open(folder, Config(), resume=True, experiment="toy") as run:
        assert not (folder / "complete.json").exists()
        run.finish()
    assert look(folder).state == "done"


def test_another_run_is_told(folder):
    status = look(folder, Config(rate=1.0), now="in the plan")
    assert status.state == "different" and status.state in CONFLICTS
    assert status.reason == "was made with other settings (rate: 0.5, in the plan 1.0)"
    status = inspect_run(folder, "other", {}, Config)
    assert status.reason == "was made by the experiment 'toy', not 'other'"
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "config": 3}))
    assert look(folder).reason == "has no settings in its config.json"
    assert inspect_run(folder).state == "done"  # nobody said what it should be


@pytest.mark.parametrize("name", ["config.json", "records.jsonl", "samples.png"])
def test_each_changed_byte_of_a_finished_run_is_noticed(folder, name):
    data = (folder / name).read_bytes()
    for place in range(0, len(data), max(1, len(data) // 7)):
        changed = bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]])
        (folder / name).write_bytes(changed)
        assert look(folder).state in CONFLICTS
    (folder / name).write_bytes(data[:-1])  # as a torn line: another number of records
    assert look(folder).state in CONFLICTS
    (folder / name).write_bytes(data)
    assert look(folder).state == "done"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("records.jsonl", b"", "is finished, but its records.jsonl is missing or empty"),
        ("config.json", None, "is finished, but has no config.json"),
        ("config.json", b"{", "cannot be read: {folder}/config.json is damaged: Expecting"),
        ("config.json", b" " * 2**21, "more than"),
        ("config.json", b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "config.json is damaged"),
        ("samples.png", None, "its samples.png is missing"),
        ("complete.json", b"[", "complete.json cannot be read"),
    ],
)
def test_damage_is_named(folder, name, data, reason):
    if data is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data)
    status = look(folder)
    reason = reason.replace("{folder}", str(folder))
    assert status.state == "damaged" and reason in status.reason
