"""The features of a fitted score, which need no knowledge of the program.

For each line of code, a few functions of how often it was visited, times 1, the mean of the draw,
what each line has drawn so far, its square, and what it drew last. All of them are of the past:
they are known before the draw whose increment they weigh.
"""

from __future__ import annotations

__all__ = ["Features", "Stream"]

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_CHUNK = 4_000_000
"""So many numbers of a table of features are made at a time."""


@dataclass
class Stream:
    """One number per replicate and visit of a line."""

    line: Any
    drawn: Tensor  # (T, R)
    mean: Tensor  # (T, R)
    position: list[int]
    epoch: Tensor  # (T,)


class Features:
    """The features of all streams, as many as the replicates can bear.

    Attributes:
        key: What they depend on: programs with the same key have the same features.
        tables: Of each stream ``(R, J * K)``, the sum over time of features times increments.
        spreads: Of each stream ``(R, J * K)``, squares of what a feature should vary by.
    """

    def __init__(self, streams: list[Stream], replicates: int, branched: bool) -> None:
        self.streams, self.replicates = streams, replicates
        self.drift = [(s.drawn - s.mean.detach()).double() for s in streams]
        self._kept: dict[int, Tensor] = {}
        self._choose(branched)
        self._history()
        self.spreads: list[Tensor] = []
        self.tables = self._table()

    def _choose(self, branched: bool) -> None:
        """How many functions of time and of the past: as many as the replicates can bear."""
        most, s = max(self.replicates // 6, 4), len(self.streams)
        for past, time in (
            ("all", 4),
            ("lines", 4),
            ("own", 4),
            ("own", 2),
            ("mean", 4),
            ("mean", 2),
            ("none", 2),
        ):
            per = {"all": 2 + 3 * s, "lines": 2 + 2 * s, "own": 5, "mean": 2, "none": 1}[past]
            if s * per * time <= min(most, 600):
                break
        else:
            past, time = "none", 1
        self._past = past
        longest = max(len(stream.drawn) for stream in self.streams)
        # where the program decides by its draws how long it runs, time must not know the end
        self._basis = [
            _hats(len(x.drawn), time) if branched else _cosines(len(x.drawn), time)
            for x in self.streams
        ]
        self.key = (
            past,
            time,
            branched,
            longest if not branched else 0,
            tuple((stream.line, 0 if branched else len(stream.drawn)) for stream in self.streams),
        )

    def _history(self) -> None:
        """For each stream and visit what each stream had drawn before, and drew last."""
        self._before: list[list[tuple[Tensor, Tensor]]] = []
        if self._past in ("none", "mean"):
            self._before = [[] for _ in self.streams]
            return
        sums = []
        for stream in self.streams:
            zero = stream.drawn.new_zeros(1, self.replicates, dtype=torch.float64)
            drawn = torch.cat([zero, stream.drawn.double()])
            sums.append((drawn.cumsum(0), drawn))
        for stream in self.streams:
            rows = []
            for other, (total, last) in zip(self.streams, sums, strict=True):
                if self._past == "own" and other is not stream:
                    continue
                visits = torch.searchsorted(
                    torch.tensor(other.position), torch.tensor(stream.position)
                )  # how often it was there before
                rows.append((total[visits], last[visits]))
            self._before.append(rows)

    def _functions_of_past(self, i: int, rows: slice) -> Tensor:
        """``(T, R, J)``; kept for the weights if they are few."""
        if i in self._kept:
            return self._kept[i]
        made = self._make_functions_of_past(i, rows)
        if len(self._chunks(i)) == 1:
            self._kept[i] = made
        return made

    def _make_functions_of_past(self, i: int, rows: slice) -> Tensor:
        stream = self.streams[i]
        mean = stream.mean.detach()[rows].double()
        parts = [torch.ones_like(mean)]
        if self._past != "none":
            parts.append(mean)
        for total, last in self._before[i]:
            parts += [total[rows], last[rows]]
            if self._past != "lines":
                parts.append(total[rows].square())
        return torch.stack(parts, -1)

    def _chunks(self, i: int) -> list[slice]:
        t = len(self.streams[i].drawn)
        size = self.replicates * (2 + 3 * len(self._before[i]))
        step = max(1, _CHUNK // max(size, 1))
        return [slice(k, k + step) for k in range(0, t, step)]

    def _table(self) -> list[Tensor]:
        """Of each stream ``(R, J * K)``: the sum over time of features times increments."""
        found = []
        for i, drift in enumerate(self.drift):
            total: Any = 0
            spread: Any = 0
            for rows in self._chunks(i):
                past = self._functions_of_past(i, rows)
                mean = self.streams[i].mean.detach()[rows].abs().double().unsqueeze(-1)
                spread = spread + (past.square() * mean).sum(0)
                past = past * drift[rows].unsqueeze(-1)
                total = total + torch.einsum("tk,trj->rjk", self._basis[i][rows], past)
            found.append(total.flatten(1))
            self.spreads.append(spread.repeat_interleave(self._basis[i].shape[1], 1))
        return found

    def weights(self, i: int, halves: list[Tensor], coefficients: list[Tensor]) -> Tensor:
        """Of a stream, ``(T, R)``: each half of the replicates has coefficients of its own."""
        sizes = [table.shape[1] for table in self.tables]
        a = torch.empty_like(self.drift[i])
        for half, beta in zip(halves, coefficients, strict=True):
            part = beta.split(sizes)[i].reshape(-1, self._basis[i].shape[1])  # (J, K)
            over_time = self._basis[i] @ part.T  # (T, J)
            for rows in self._chunks(i):
                past = self._functions_of_past(i, rows)[:, half]
                a[rows, half] = torch.einsum("tj,trj->tr", over_time[rows], past)
        return a


def _cosines(visits: int, number: int) -> Tensor:
    """Smooth functions of how often a line was visited, ``(visits, number)``.

    Of the square root of time: the first visits, where an epidemic starts or dies out, are told
    apart more finely. On one of ten people evenly spaced cosines are four times noisier.
    """
    number = min(number, visits)
    t = torch.arange(visits, dtype=torch.float64).unsqueeze(-1) / max(visits - 1, 1)
    return torch.cos(math.pi * t.sqrt() * torch.arange(number, dtype=torch.float64))


def _hats(visits: int, number: int) -> Tensor:
    """Hat functions that do not depend on how many visits there will be, ``(visits, number)``."""
    t = torch.arange(1, visits + 1, dtype=torch.float64).log2().unsqueeze(-1)
    centres = torch.arange(number, dtype=torch.float64) * 2
    far = (t - centres).clamp(min=-2) / 2
    far[:, -1] = far[:, -1].clamp(max=0)  # the last one stays
    return (1 - far.abs()).clamp_min(0)
