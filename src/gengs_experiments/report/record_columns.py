"""The numbers in a run's records, each over its steps.

Records belong together that have the same ``kind`` and, where a run compares several, the same
``estimator``. Of each such series the last record is kept whole; of all others, the finite numbers
with their steps.
"""

__all__ = ["RecordColumns", "as_number", "read_records", "read_times"]

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .untrusted_files import saved_records

Array = NDArray[np.float64]
Series = tuple[str, str]
"""A kind of records and an estimator; either may be empty."""


@dataclass(frozen=True)
class RecordColumns:
    """The series of a run."""

    last: dict[Series, Mapping[str, Any]] = field(default_factory=dict)
    """The last record of each."""
    columns: dict[Series, dict[str, dict[float, float]]] = field(default_factory=dict)
    """Each number by its steps; an entry of a list has its place after a slash."""

    def extend(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Put records behind the others; the last word on a step counts."""
        for record in records:
            series = str(record.get("kind", "")), str(record.get("estimator", ""))
            self.last[series] = record
            step = as_number(record.get("step"))
            for key, value in record.items():
                if step is not None and key not in ("kind", "estimator", "step"):
                    for name, number in _numbers(key, value):
                        if math.isfinite(number) and math.isfinite(step):
                            column = self.columns.setdefault(series, {}).setdefault(name, {})
                            column[step] = number

    def series(self, kind: str, estimator: str = "") -> dict[str, tuple[Array, Array]]:
        """Steps, increasing, and values of each number of a series.

        Example:
            >>> records = RecordColumns()
            >>> pairs = ((1, 3.0), (2, 2.0), (2, 2.5))
            >>> records.extend({"kind": "train", "step": k, "loss": loss} for k, loss in pairs)
            >>> [column.tolist() for column in records.series("train")["loss"]]
            [[1.0, 2.0], [3.0, 2.5]]
        """
        found = {}
        for key, column in self.columns.get((kind, estimator), {}).items():
            steps, values = np.array(sorted(column.items())).T
            found[key] = steps, values
        return found


def read_records(path: Path) -> RecordColumns:
    """The records in a file; none if there is no file."""
    records = RecordColumns()
    records.extend(saved_records(path))
    return records


def read_times(path: Path) -> tuple[float | None, dict[str, Any]]:
    """The seconds of a run by the clock, and milliseconds of a gradient by estimator.

    The clock starts anew each time a run is resumed: parts are summed.
    """
    total, last = 0.0, None
    milliseconds: dict[str, Any] = {}
    for line in saved_records(path):
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


def _numbers(key: str, value: Any) -> Iterator[tuple[str, float]]:
    """The number, or those of a list with their places."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            if (number := as_number(item)) is not None:
                yield f"{key}/{place}", number
    elif (number := as_number(value)) is not None:
        yield key, number
