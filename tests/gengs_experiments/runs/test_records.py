"""A run is a folder that survives being killed, and refuses to become another run."""

import errno
import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import torch

from gengs_experiments.runs.config import UNRECORDED, from_json, to_json
from gengs_experiments.runs.json_lines import JsonLines, dumps, loads
from gengs_experiments.runs.manifest import read_manifest
from gengs_experiments.runs.records import RunFolder


@dataclass(frozen=True)
class Inner:
    width: int = 3


@dataclass(frozen=True)
class Config:
    learning_rate: float = 0.1
    seed: int = 4
    name: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = (1, 2)
    pair: tuple[int, str] = (1, "x")
    data: Path | None = None
    limit: float = math.inf
    inner: Inner = Inner()
    folder: Path = field(default=Path("runs"), metadata=UNRECORDED)


def edit_config(folder, change):
    file = folder / "config.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def opened(path, config, **options):
    """Open a folder, and close it again."""
    with RunFolder.open(path, config, **options):
        pass


@pytest.fixture
def folder(tmp_path):
    """A run with three records, closed."""
    with RunFolder.open(tmp_path / "run", Config()) as run:
        for step in range(3):
            run.records.append({"step": step})
    return tmp_path / "run"


def test_a_new_folder_says_what_made_it(folder):
    manifest = read_manifest(folder)
    assert manifest["experiment"] == "config" and manifest["seed"] == 4
    assert manifest["threads"] == torch.get_num_threads()
    assert set(manifest["versions"]) == {"gengs", "torch", "python"} and manifest["command"]
    assert set(manifest["machine"]) == {"system", "processor", "cores"}
    assert from_json(Config, manifest["config"]) == Config()
    assert "folder" not in manifest["config"]


def test_resuming_keeps_records_and_forgets_the_torn_line(folder):
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"step": 3, "lo')
    assert [r["step"] for r in RunFolder.load_records(folder)] == [0, 1, 2]
    with RunFolder.open(folder, Config(folder=Path("elsewhere")), resume=True) as run:
        assert len(run.records) == 3
        run.records.append({"step": 3})
        assert [r["step"] for r in run.records] == [0, 1, 2, 3]
        run.records.rewind(1)
        run.records.append({"step": 9})
        with pytest.raises(ValueError, match="at least 5 records"):
            run.records.rewind(5)
    assert (folder / "records.jsonl").read_bytes() == b'{"step": 0}\n{"step": 9}\n'


def test_resume_without_a_run_begins_one(tmp_path):
    with RunFolder.open(tmp_path / "new", Config(), resume=True) as run:
        assert len(run.records) == 0


def test_an_existing_run_is_not_overwritten(folder):
    with pytest.raises(ValueError, match="already holds a run"):
        opened(folder, Config())
    assert len(RunFolder.load_records(folder)) == 3


def test_a_changed_value_is_named(folder):
    for config, message in [
        (Config(learning_rate=0.2), r"learning_rate: 0\.1, now 0\.2"),
        (Config(inner=Inner(4)), r"inner: \{'width': 3\}, now \{'width': 4\}"),
    ]:
        with pytest.raises(ValueError, match=message):
            opened(folder, config, resume=True)
    with pytest.raises(ValueError, match="'config', not 'other'"):
        opened(folder, Config(), resume=True, experiment="other")


def test_a_setting_that_there_is_not_is_named(folder):
    edit_config(folder, lambda content: content["config"].update(learnin_rate=1))
    with pytest.raises(ValueError, match="learnin_rate: 1"):
        opened(folder, Config(), resume=True)


def test_an_integer_for_a_float_is_no_change(tmp_path):
    opened(tmp_path, Config(learning_rate=2))
    opened(tmp_path, Config(learning_rate=2.0), resume=True)
    opened(tmp_path, Config(learning_rate=2), resume=True)


def test_other_versions_are_no_other_run(folder):
    edit_config(folder, lambda content: content["versions"].update(torch="1.0"))
    with RunFolder.open(folder, Config(), resume=True) as run:
        assert len(run.records) == 3
    assert read_manifest(folder)["versions"]["torch"] == "1.0"  # of the process that began it


def test_a_damaged_or_missing_config_is_an_error(folder, tmp_path):
    with pytest.raises(ValueError, match="folder of a run"):
        read_manifest(tmp_path)
    (folder / "config.json").write_text('{"experiment": ')
    with pytest.raises(ValueError, match="damaged"):
        opened(folder, Config(), resume=True)
    (folder / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="no settings"):
        opened(folder, Config(), resume=True)


@pytest.mark.parametrize("resume", [True, False])
def test_a_foreign_folder_is_refused_untouched(tmp_path, resume):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=r"holds 'thesis\.tex'"):
        opened(tmp_path, Config(), resume=resume)
    assert [item.name for item in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="is a file"):
        opened(tmp_path / "thesis.tex", Config(), resume=resume)


def test_the_beginning_of_a_run_is_not_foreign(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".config.json.partial").write_text("{")
    opened(tmp_path, Config())


def test_a_folder_in_use_is_refused(folder):
    with (
        RunFolder.open(folder, Config(), resume=True),
        pytest.raises(OSError, match="in use by another process"),
    ):
        opened(folder, Config(), resume=True)
    opened(folder, Config(), resume=True)  # free again


def test_a_process_that_is_killed_frees_its_folder(tmp_path):
    code = (
        "import sys, time, pathlib; from gengs_experiments.runs.records import folder_lock\n"
        "with folder_lock(pathlib.Path(sys.argv[1])):\n"
        "    print('ready', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout.readline() == "ready\n"
        with pytest.raises(OSError, match=f"pid {owner.pid}"):
            opened(tmp_path, Config())
        owner.kill()
    opened(tmp_path, Config())


def test_a_full_disk_keeps_all_whole_records(folder, monkeypatch):
    log = JsonLines(folder / "records.jsonl")
    real, calls = log._file, []

    class Full:
        def write(self, data):
            calls.append(data)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real.write(data[:4])

        def truncate(self, size):
            return real.truncate(size)

    monkeypatch.setattr(log, "_file", Full())
    with pytest.raises(OSError, match=r"before it is kept.* disk is full"):
        log.append({"step": 3})
    monkeypatch.undo()
    log.append({"step": 4})
    log.close()
    assert [r["step"] for r in RunFolder.load_records(folder)] == [0, 1, 2, 4]


def test_a_line_that_is_no_record_is_named(folder):
    (folder / "records.jsonl").write_text('{"step": 0}\n[1]\n')
    with pytest.raises(ValueError, match=r"line 2 of .*records\.jsonl"):
        RunFolder.load_records(folder)


def test_nonfinite_numbers_survive():
    record = {"a/b~": math.nan, "c": [1.0, -math.inf, {"d": math.inf}], "e": None, "f": 0.1}
    assert repr(loads(dumps(record))) == repr(record)
    assert loads(dumps({"x": torch.tensor(2.5), "n": torch.tensor(math.nan)}))["x"] == 2.5


def test_what_is_no_record_is_refused():
    for record, message in [({"x": torch.ones(2)}, "a Tensor"), ({"x": [object()]}, "a object")]:
        with pytest.raises(TypeError, match=message):
            dumps(record)
    with pytest.raises(ValueError, match="JSON"):
        loads("[1]")


def test_a_config_survives_json():
    config = Config(2.0, 5, "b", (7,), (2, "y"), Path("/d"), math.nan, inner=Inner(9))
    back = from_json(Config, loads(dumps(to_json(config))))
    assert repr(back) == repr(config)
    assert from_json(Config, {}) == Config()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": "x"}, "expected int for config.seed, but got 'x'"),
        ({"seed": True}, "config.seed"),
        ({"name": "c"}, "config.name"),
        ({"sizes": [1, "x"]}, r"config.sizes\[1\]"),
        ({"pair": [1]}, "config.pair"),
        ({"data": 3}, "config.data"),
    ],
)
def test_a_config_of_the_wrong_type_is_refused(values, message):
    with pytest.raises(TypeError, match=message):
        from_json(Config, values)


def test_an_unknown_key_inside_is_named():
    with pytest.raises(ValueError, match=r"'widht' in config\.inner.* 'width'"):
        from_json(Config, {"inner": {"widht": 2}})
    with pytest.raises(ValueError, match=r"'zzz' in config.* data, "):
        from_json(Config, {"zzz": 2})
    with pytest.raises(TypeError, match="expected a dataclass"):
        to_json({"a": 1})
