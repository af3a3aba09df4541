"""JSON in which NaN and the infinities survive.

JSON has no word for them, and Python's ``NaN`` token is not JSON: other readers stop there. So such
a number is written as ``null``, and the key ``"nonfinite"`` of the same object says where (a JSON
pointer, RFC 6901) and which:

    {"loss": null, "step": 3, "nonfinite": {"/loss": "nan"}}

:func:`loads` puts the numbers back. A reader who does not know of this sees ``null``: no value.
Python writes the shortest digits that give the same float, so equal numbers make equal bytes.
"""

from __future__ import annotations

__all__ = ["dumps", "loads"]

import json
import math
from collections.abc import Mapping
from typing import Any

_KEY = "nonfinite"
_NAMES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dumps(record: Mapping[str, Any], indent: int | None = None) -> str:
    """A record as one JSON object; zero-dimensional tensors and NumPy numbers become numbers.

    Example:
        >>> dumps({"step": 3, "loss": float("nan")})
        '{"step": 3, "loss": null, "nonfinite": {"/loss": "nan"}}'
        >>> loads(dumps({"bounds": [0.0, float("inf")]}))
        {'bounds': [0.0, inf]}
    """
    if _KEY in record:
        raise ValueError(f"the key {_KEY!r} of a record is taken: it lists the NaNs.")
    found: dict[str, str] = {}
    plain = _plain(record, "", found)
    if found:
        plain[_KEY] = found
    return json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=indent)


def loads(text: str | bytes) -> dict[str, Any]:
    """The record that :func:`dumps` wrote."""
    record = json.loads(text, parse_constant=_refuse)
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, but got {str(text)[:60]!r}.")
    for pointer, name in record.pop(_KEY, {}).items():
        *path, last = (p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:])
        holder: Any = record
        for part in path:
            holder = holder[int(part) if isinstance(holder, list) else part]
        holder[int(last) if isinstance(holder, list) else last] = _NAMES[name]
    return record


def _refuse(token: str) -> float:
    raise ValueError(f"{token} is not JSON.")


def _plain(value: Any, pointer: str, found: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        result = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"expected strings as keys of a record, but got {key!r}.")
            step = key.replace("~", "~0").replace("/", "~1")
            result[key] = _plain(item, f"{pointer}/{step}", found)
        return result
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{pointer}/{index}", found) for index, item in enumerate(value)]
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        found[pointer] = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"expected numbers, strings, lists and dictionaries in a record, but "
        f"{pointer or 'it'} is a {type(value).__name__}."
    )
