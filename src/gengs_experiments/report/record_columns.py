"""The records of a run as columns of numbers, read line by line: a million lines are a few arrays.

Records belong together that have the same ``kind`` and, where a run compares several, the same
``estimator``. Of each such series the last record is kept whole; of all others, the finite numbers
with their steps.
"""

__all__ = ["RecordColumns", "as_number", "read_records", "read_times"]

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .untrusted_files import record_batches

Array = NDArray[np.float64]
Series = tuple[str, str]
"""A kind of records and an estimator; either may be empty."""


@dataclass(frozen=True)
class RecordColumns:
    """The series of a run."""

    last: dict[Series, Mapping[str, Any]] = field(default_factory=dict)
    """The last record of each."""
    columns: dict[Series, dict[str, list[Array]]] = field(default_factory=dict)
    """Parts ``(2, n)``, steps over values, of each number; an entry of a list has its place after
    a slash."""

    def extend(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Put records behind the others."""
        found: dict[Series, list[Mapping[str, Any]]] = defaultdict(list)
        for record in records:
            found[str(record.get("kind", "")), str(record.get("estimator", ""))].append(record)
        for series, rows in found.items():
            self.last[series] = rows[-1]
            columns = self.columns.setdefault(series, {})
            steps = _floats([row.get("step") for row in rows])
            for key in dict.fromkeys(chain.from_iterable(rows)):
                if key not in ("kind", "estimator", "step"):
                    for name, values in _numbers(key, [row.get(key) for row in rows]):
                        part = np.stack([steps, values])
                        kept = np.isfinite(part).all(0)
                        if kept.any():
                            columns.setdefault(name, []).append(part[:, kept])

    def series(self, kind: str, estimator: str = "") -> dict[str, tuple[Array, Array]]:
        """Steps, increasing, and values of each number of a series; the last word on a step counts.

        Example:
            >>> records = RecordColumns()
            >>> pairs = ((1, 3.0), (2, 2.0), (2, 2.5))
            >>> records.extend({"kind": "train", "step": k, "loss": loss} for k, loss in pairs)
            >>> [column.tolist() for column in records.series("train")["loss"]]
            [[1.0, 2.0], [3.0, 2.5]]
        """
        found = {}
        for key, parts in self.columns.get((kind, estimator), {}).items():
            steps, values = np.concatenate(parts, axis=1)
            if not (np.diff(steps) > 0).all():
                steps, last = np.unique(steps[::-1], return_index=True)
                values = values[::-1][last]
            found[key] = steps, values
        return found


def read_records(path: Path) -> RecordColumns:
    """The records in a file; none if there is no file."""
    records = RecordColumns()
    for batch in record_batches(path):
        records.extend(batch)
    return records


def read_times(path: Path) -> tuple[float | None, dict[str, Any]]:
    """The seconds of a run by the clock, and milliseconds of a gradient by estimator.

    The clock starts anew each time a run is resumed: parts are summed.
    """
    total, last = 0.0, None
    milliseconds: dict[str, Any] = {}
    for line in chain.from_iterable(record_batches(path)):
        if "estimator" in line:
            milliseconds[str(line["estimator"])] = line.get("milliseconds")
        value = as_number(line.get("seconds"))
        if value is not None:
            total += last if last is not None and value < last else 0.0
            last = value
    return None if last is None else total + last, milliseconds


def as_number(value: Any) -> float | None:
    """A number as a float; ``None`` for whatever else was written."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _numbers(key: str, column: list[Any]) -> Iterable[tuple[str, Array]]:
    """The numbers of a column, and of each place of its lists."""
    lists = [value for value in column if isinstance(value, list)]
    yield key, _floats(column)
    for place in range(max(map(len, lists), default=0)):
        parts = [v[place] if isinstance(v, list) and place < len(v) else None for v in column]
        yield f"{key}/{place}", _floats(parts)


def _floats(column: list[Any]) -> Array:
    """Numbers, and NaN for whatever else was written."""
    with suppress(OverflowError):  # an integer of hundreds of digits
        if {*map(type, column)} <= {int, float}:
            return np.array(column, np.float64)
    return np.array([as_number(value) for value in column], np.float64)
