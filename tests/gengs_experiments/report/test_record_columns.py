"""The numbers of records, whatever they hold."""

import json
import random

import pytest

from gengs_experiments.report.record_columns import read_records
from gengs_experiments.report.untrusted_files import Unreadable, saved_records

ODD = ["text", None, True, [1.0, 2, "x"], {}, 10**400, -(2**70)]


def records(seed, count=3000):
    """Long stretches of one layout, as a training writes, and strange ones in between."""
    draw = random.Random(seed)
    found = []
    while len(found) < count:
        kind = draw.choice(["train", "evaluation", None, 7])
        keys = draw.sample(["loss", "norm", "kl", "estimator"], draw.randint(1, 4))
        for _ in range(draw.choice([1, 3, 20, 400])):
            record = {"kind": kind, "step": len(found) - draw.choice([0, 0, 0, 3])}
            record |= {key: draw.choice([1, -2.5, float("nan"), float("inf")]) for key in keys}
            if "estimator" in keys:
                record["estimator"] = draw.choice(["a", "b"]) if draw.random() < 0.1 else "a"
            if draw.random() < 0.01:
                record[draw.choice([*keys, "step"])] = draw.choice(ODD)
            found.append(record)
    return found


def plainly(given):
    """The same by dictionaries: the last word on each step of each number."""
    found = {}

    def put(series, key, step, value):
        if isinstance(value, list):
            for place, item in enumerate(value):
                put(series, f"{key}/{place}", step, item)
        elif type(value) in (int, float) and abs(value) < 1e300:
            found.setdefault(series, {}).setdefault(key, {})[float(step)] = float(value)

    for record in given:
        step = record.get("step")
        if type(step) in (int, float) and abs(step) < 1e300:
            series = str(record.get("kind", "")), str(record.get("estimator", ""))
            for key, value in record.items():
                if key not in ("kind", "estimator", "step"):
                    put(series, key, step, value)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_the_last_word_on_each_step(seed, tmp_path):
    given = records(seed)
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in given))
    columns = read_records(path)
    found = {
        key: {name: dict(zip(*map(list, pair), strict=True)) for name, pair in own.items()}
        for key in columns.columns
        if (own := columns.series(*key))
    }
    assert found == plainly(given) and len(found) > 3
    last = {(str(one.get("kind", "")), str(one.get("estimator", ""))): one for one in given}
    assert repr(columns.last) == repr(last)


def test_torn_and_damaged_lines(tmp_path):
    path = tmp_path / "records.jsonl"
    lines = [f'{{"kind": "train", "step": {k}, "loss": 1.5}}\n' for k in range(20_000)]
    path.write_text("".join(lines) + '{"kind": "tra')
    assert len(list(saved_records(path))) == 20_000
    path.write_text("".join(lines) + '{"kind": "train", "step": 20000, "loss": NaN}\n')
    steps, _ = read_records(path).series("train")["loss"]
    assert len(steps) == 20_000  # the last is no number
    for wrong in ("{}, {}\n", "[]\n", "{\n", '"x": 1}\n'):
        path.write_text("".join(lines) + wrong)
        with pytest.raises(Unreadable, match="line 20001"):
            list(saved_records(path))
