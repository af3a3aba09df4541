"""The training curve as a drawing that needs no script.

Two lines over the passes: the perplexity of the documents trained on, as training saw it, and that
of the held-out ones. Colours are those of the page's style.
"""

from __future__ import annotations

__all__ = ["Curve", "training_curve"]

import math
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 34


@dataclass(frozen=True)
class Curve:
    """Lines and ticks in the drawing's coordinates."""

    width: int
    height: int
    trained: str
    """The points of the line of the training documents."""
    held_out: tuple[tuple[float, float], ...]
    """The points of the held-out ones."""
    across: tuple[tuple[float, str], ...]
    """Ticks: places and texts."""
    up: tuple[tuple[float, str], ...]
    last: str
    """In words."""


def training_curve(records: list[dict[str, Any]]) -> Curve | None:
    """The curve of a run's records; nothing if there are fewer than two passes."""
    trained = [
        (r["step"], math.exp(min(r["nats_per_word"], 50))) for r in records if r["kind"] == "train"
    ]
    held_out = [
        (r["step"], r["perplexity_test"])
        for r in records
        if r["kind"] == "evaluation" and "perplexity_test" in r
    ]
    points = [(s, v) for s, v in [*trained, *held_out] if math.isfinite(v) and v > 0]
    if len(trained) < 2 or not points:
        return None
    pass_steps = trained[0][0]
    last = points[-1][0] if not trained else trained[-1][0]
    low = math.log(min(v for _, v in points)) - 0.03
    high = math.log(max(v for _, v in points)) + 0.03

    def across(step: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * step / last, 1)

    def up(value: float) -> float:
        share = (math.log(value) - low) / (high - low)
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share, 1)

    passes = last / pass_steps
    summary = f"Over {passes:.0f} passes, training went from {trained[0][1]:,.0f} to "
    summary += f"{trained[-1][1]:,.0f}"
    if held_out:
        summary += f"; held-out documents ended at {held_out[-1][1]:,.0f}"
    return Curve(
        WIDTH,
        HEIGHT,
        " ".join(f"{across(s)},{up(v)}" for s, v in trained),
        tuple((across(s), up(v)) for s, v in held_out),
        tuple((across(p * pass_steps), f"{p:g}") for p in _ticks(0, passes)),
        tuple((up(v), f"{v:,.0f}") for v in _log_ticks(math.exp(low), math.exp(high))),
        summary + ".",
    )


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    raw = (high - low) / count
    unit = 10 ** math.floor(math.log10(max(raw, 1e-9)))
    step = max(1.0, next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw))
    return [low + step * k for k in range(int((high - low) / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two: as few as three where there are so many."""
    if high / low > 8:
        first = math.floor(math.log10(low))
        marks = [10.0**d * m for d in range(first, first + 12) for m in (1, 2, 5)]
        return [mark for mark in marks if low <= mark <= high]
    top = math.floor(math.log10(high)) + 1
    for step in (10.0**d * m for d in range(top, top - 4, -1) for m in (5, 2, 1)):
        marks = [step * k for k in range(math.ceil(low / step), int(high / step) + 1)]
        if len(marks) >= 3:
            break
    return marks
