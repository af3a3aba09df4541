"""Whether two records of settings mean the same run, read from their JSON alone.

A run's folder and a study's plan each keep the settings. They may be of different ages: between
them the experiment may have got a new setting, or another default.

Example:
    >>> @dataclasses.dataclass(frozen=True)
    ... class Config:
    ...     rate: float = 0.1
    ...     clip: float | None = None
    >>> differences(Config, {"rate": 0.1}, {"rate": 0.2, "clip": None})
    {'rate': (0.1, 0.2)}
    >>> in_words(differences(Config, {"rate": 0.1}, {"rate": 0.1, "clip": 2.0}))
    'clip: None, now 2.0'
"""

from __future__ import annotations

__all__ = ["differences", "in_words"]

import dataclasses
from collections.abc import Mapping
from typing import Any

from .config import defaults


class _Absent:
    def __repr__(self) -> str:
        return "no such setting"


_ABSENT = _Absent()


def differences(
    kind: type[Any] | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """The settings that differ, with both values.

    Args:
        kind: The experiment's configuration class, which knows the defaults; ``None`` if this
            version has no such experiment.
        before: Settings as JSON.
        after: Others.
    """
    if before == after:  # nearly always, and asked for every second while a study runs
        return {}
    # A setting that one side lacks was introduced after that side was written. Whoever introduces
    # one gives it the default that changes nothing, so such a run had today's default, and no other
    # value: runs that are done stay done, but only as long as the setting is left alone.
    usual = {} if kind is None else defaults(kind)
    silent = set() if kind is None else _unrecorded(kind)
    found = {}
    for name in {**before, **after}:
        pair = tuple(side.get(name, usual.get(name, _ABSENT)) for side in (before, after))
        if name not in silent and not _equal(*pair):
            found[name] = (pair[0], pair[1])
    return found


def in_words(found: Mapping[str, tuple[Any, Any]], now: str = "now") -> str:
    """Differences for a sentence: ``epochs: 15, now 30; clip: None, now 1.0``."""
    return "; ".join(f"{name}: {a!r}, {now} {b!r}" for name, (a, b) in found.items())


def _unrecorded(kind: type[Any]) -> set[str]:
    """How to run rather than what; an old record may still have it."""
    return {f.name for f in dataclasses.fields(kind) if not f.metadata.get("recorded", True)}


def _equal(a: Any, b: Any) -> bool:
    # 1 is 1.0 in a file; by representation, NaN is NaN.
    return bool(a == b) or repr(a) == repr(b)
