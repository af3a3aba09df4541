"""An experiment's configuration, a frozen dataclass, as JSON and back.

The fields are the command line and the record. A field that says how to run rather than what (the
folder, the progress bar) is marked with ``UNRECORDED`` and may differ when a run is resumed.
Numbers are checked before anything is read or trained, and named by the options that people typed.

Example:
    >>> @dataclasses.dataclass(frozen=True)
    ... class Config:
    ...     rate: float = 0.1
    ...     folder: Path = dataclasses.field(default=Path("runs"), metadata=UNRECORDED)
    >>> to_json(Config())
    {'rate': 0.1}
    >>> in_words(differences(Config, {"rate": 0.1}, {"rate": 0.2}))
    'rate: 0.1, now 0.2'
    >>> from_json(Config, {"rat": 1})
    Traceback (most recent call last):
    ValueError: unknown key 'rat' in config; did you mean 'rate'?
"""

__all__ = [
    *("UNRECORDED", "check_least", "check_positive", "defaults", "differences", "from_json"),
    *("in_words", "nearest", "option", "to_json"),
]

import contextlib
import dataclasses
import difflib
import functools
import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")

UNRECORDED = {"recorded": False}
"""The ``metadata`` of a field that is no part of the record."""


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for an error message: ``; did you mean 'x'?``, or the whole list."""
    words = sorted(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; expected one of {', '.join(words)}."


def to_json(config: Any) -> dict[str, Any]:
    """The recorded fields as plain data: paths as strings, tuples as lists."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"expected a dataclass as `config`, but got {config!r}.")
    return json.loads(json.dumps(config, default=_plain))


def defaults(kind: type[Any]) -> dict[str, Any]:
    """The defaults of the recorded fields, as plain data; fields without one are left out."""
    missing, found = dataclasses.MISSING, {}
    for field in _recorded(kind):
        made = field.default if field.default_factory is missing else field.default_factory()
        if made is not missing:
            found[field.name] = made
    return json.loads(json.dumps(found, default=_plain))


def from_json(kind: type[T], values: Mapping[str, Any], where: str = "config") -> T:
    """Rebuild a configuration; what ``values`` leaves out has its default.

    Raises:
        ValueError: For a key that ``kind`` does not have; the message names the nearest one.
        TypeError: For a value of the wrong type.
    """
    fields = {field.name for field in _recorded(kind)}
    hints = _hints(kind)  # type: ignore[arg-type]  # a class is hashable
    for key in values:
        if key not in fields:
            raise ValueError(f"unknown key {key!r} in {where}{nearest(key, fields)}")
    arguments = {
        key: _rebuild(hints[key], value, f"{where}.{key}") for key, value in values.items()
    }
    try:
        return kind(**arguments)
    except TypeError as error:  # a field without a default is missing
        raise TypeError(f"could not rebuild {kind.__name__} from {where}: {error}") from error


def differences(
    kind: type[Any] | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """The settings in which two records of a configuration differ, with both values.

    The records may be of different ages: a setting that one side lacks was introduced after that
    side was written. Whoever introduces one gives it the default that changes nothing, so such a
    run had today's default; the class ``kind`` knows it (``None`` if there is none now).
    """
    if before == after:  # nearly always, and asked for every second while a study runs
        return {}
    usual, fields = ({}, ()) if kind is None else (defaults(kind), dataclasses.fields(kind))
    unrecorded = {field.name for field in fields if not field.metadata.get("recorded", True)}
    found = {}
    for name in {**before, **after}:
        a, b = (side.get(name, usual.get(name, _Absent())) for side in (before, after))
        # 1 is 1.0 in a file; by representation, NaN is NaN.
        if name not in unrecorded and a != b and repr(a) != repr(b):
            found[name] = (a, b)
    return found


def in_words(found: Mapping[str, tuple[Any, Any]], now: str = "now") -> str:
    """Differences for a sentence: ``epochs: 15, now 30; clip: None, now 1.0``."""
    return "; ".join(f"{name}: {a!r}, {now} {b!r}" for name, (a, b) in found.items())


def option(name: str) -> str:
    """The option of a field: ``kl_warm_up`` is typed ``--kl-warm-up``."""
    return "--" + name.replace("_", "-")


def check_least(config: object, least: Mapping[str, float]) -> None:
    """Raise for the first number below its least value, or not finite; ``None`` is left alone."""
    for name, bound in least.items():
        value = getattr(config, name)
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and not bound <= number < math.inf:
                kind = "" if math.isfinite(number) else "a finite number of "
                raise ValueError(
                    f"expected {kind}at least {bound} for {option(name)}, but got {number}."
                )
        if name == "seed" and value >= 2**63:  # torch's generators take no more
            raise ValueError(f"expected --seed below 2^63, but got {value}.")


def check_positive(config: object, *names: str) -> None:
    """Raise for the first field that is not positive and finite; ``None`` is left alone."""
    for name in names:
        number = getattr(config, name)
        if number is not None and not 0 < number < math.inf:
            raise ValueError(
                f"expected a positive, finite number for {option(name)}, but got {number}."
            )


_hints = functools.cache(typing.get_type_hints)


class _Absent:
    def __repr__(self) -> str:
        return "no such setting"


def _recorded(config: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(config) if f.init and f.metadata.get("recorded", True)]


def _plain(value: Any) -> Any:
    """What JSON has no word for: a dataclass as its recorded fields, a path as its text."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in _recorded(value)}
    return str(value)


def _rebuild(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        for option in arguments:
            with contextlib.suppress(TypeError, ValueError):
                return _rebuild(option, value, where)
    elif origin is Literal:
        if value in arguments:
            return value
    elif dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_json(typing.cast(type, hint), value, where)
    elif origin in (list, tuple) and isinstance(value, list):
        alike = origin is list or arguments[-1] is Ellipsis
        items = arguments[:1] * len(value) if alike else arguments
        if len(items) == len(value):
            pairs = enumerate(zip(items, value, strict=True))
            return origin(_rebuild(h, v, f"{where}[{i}]") for i, (h, v) in pairs)
    elif origin is dict and isinstance(value, Mapping):
        return {k: _rebuild(arguments[1], v, f"{where}[{k!r}]") for k, v in value.items()}
    elif isinstance(hint, type):
        if issubclass(hint, Path) and isinstance(value, str):
            return Path(value)
        if hint is float and type(value) is int:
            return float(value)
        if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
            return value
    kind = getattr(hint, "__name__", hint)
    if origin is Literal:
        kind = " or ".join(", ".join(map(repr, arguments)).rsplit(", ", 1))
    raise TypeError(f"expected {kind} for {where}, but got {value!r}.")
