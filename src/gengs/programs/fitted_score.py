r"""The score with a fitted martingale: unbiased for every program, and quiet.

For draws :math:`z_1, \dots, z_T` with means :math:`m_t` given the past, weights :math:`a_t` that
depend on the past only, and :math:`h = \sum_t a_t (z_t - m_t)`,

.. math::
    \nabla E f = E\Big[(f - h) \sum_t \nabla \log p(z_t \mid \text{past})\Big]
    + E\Big[\sum_t a_t \nabla m_t\Big]

exactly, for every cost, steps and branches included: :math:`z_t - m_t` and
:math:`\nabla \log p(z_t)` have mean 0 given the past, so that of all products only
:math:`a_t\, E[(z_t - m_t) \nabla \log p(z_t)] = a_t \nabla m_t` remains. Where :math:`h` predicts
the cost, little noise is left.

The weights are fitted by ridge regression over the replicates, on one half of them for the other,
so that nothing is biased; the ridge is chosen inside the fitting half, and may be infinite: then it
is RLOO with the other half's mean for a baseline. The features need no knowledge of the program.
For each line of code, a few functions of how often it was visited, times 1, the mean of the draw,
what each line has drawn so far, its square, and what it drew last.

A rule that is used again (between steps of an optimiser) remembers its regressions, with a weight
that fades: earlier draws say nothing about the present ones, so that is unbiased, too.

References:
    | Approximating Martingales for Variance Reduction in Markov Process Simulation
    | (Henderson and Glynn, 2002), https://doi.org/10.1287/moor.27.2.253.329
    | Control functionals and regression control variates (Glasserman, Monte Carlo Methods in
    | Financial Engineering, 2003, section 4.1)
    | Q-Prop: Sample-Efficient Policy Gradient with An Off-Policy Critic (Gu et al., 2017),
    | https://arxiv.org/abs/1611.02247 (the same identity with a learned critic)
    | Variance Reduction Techniques for Gradient Estimates in Reinforcement Learning (Greensmith,
    | Bartlett and Baxter, 2004), https://www.jmlr.org/papers/v5/greensmith04a.html
    | Buy 4 REINFORCE Samples, Get a Baseline for Free! (Kool et al., 2019)
"""

from __future__ import annotations

__all__ = ["FittedScore", "Increments"]

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .known_laws import mean_of, stacked
from .law_checks import base_of
from .regression import Memory, fit
from .sample_site import Site, by_line

_FEW = 32
"""With fewer replicates there is nothing to fit: it is RLOO."""
_FEW_STREAMS = 8
"""So many numbers of one draw are looked at one by one; of more, their sum."""
_CHUNK = 4_000_000
"""So many numbers of a table of features are made at a time."""


class FittedScore:
    """A rule of :func:`gengs.differentiable`: the score with a control variate that is fitted.

    Args:
        memory: The weight of what was fitted in earlier blocks, per block; 0 forgets them.

    Example:
        >>> import gengs
        >>> _ = torch.manual_seed(0)
        >>> theta = torch.tensor(0.3, requires_grad=True)
        >>> with gengs.differentiable(by=gengs.FittedScore()) as program:
        ...     infected = torch.full((1000,), 10.0)
        ...     for _ in range(5):
        ...         infected = infected + torch.poisson(theta * infected)
        >>> program.loss(infected).mean().backward()
        >>> bool((theta.grad / (50 * 1.3**4) - 1).abs() < 0.05)
        True
    """

    def __init__(self, memory: float = 0.8) -> None:
        if not 0 <= memory < 1:
            raise ValueError(f"FittedScore expects 0 <= memory < 1, but got {memory}.")
        self.memory = memory
        self._memories: dict[Any, Memory] = {}

    def __repr__(self) -> str:
        return f"FittedScore({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The settings that are not the default."""
        return "" if self.memory == 0.8 else f"memory={self.memory}"

    def recall(self, key: Any) -> Memory | None:
        """What is remembered of programs with these features."""
        return self._memories.get(key)

    def remember(self, key: Any, before: Memory | None, x: Tensor, y: Tensor) -> None:
        """Remember a regression of a block, in which ``before`` was known."""
        if self.memory:
            self._memories[key] = Memory.after(before, x, y, self.memory)


@dataclass
class _Stream:
    """One number per replicate and visit of a line."""

    line: Any
    drawn: Tensor  # (T, R)
    mean: Tensor  # (T, R)
    position: list[int]
    epoch: Tensor  # (T,)


@dataclass
class Fit:
    """The weights of one fit."""

    residuals: list[Tensor]
    """Costs from each epoch on, less what was predicted and the other half's mean."""
    weights: list[Tensor]
    """Of each stream, ``(T, R)``."""

    def along(self, means: Sequence[Tensor]) -> Tensor:
        """The second term of the gradient: the weighted means, one number per replicate."""
        terms = [(a * m).sum(0) for a, m in zip(self.weights, means, strict=True)]
        return sum(terms[1:], terms[0])


class Increments:
    """What was drawn less its mean, line by line, and the features made of it."""

    def __init__(
        self, rule: FittedScore, streams: list[_Stream], replicates: int, branched: bool
    ) -> None:
        self.rule, self.streams, self.replicates = rule, streams, replicates
        self.means = [stream.mean for stream in streams]
        self._drift = [(s.drawn - s.mean.detach()).double() for s in streams]
        self._kept: dict[int, Tensor] = {}
        self._choose(branched)
        self._history()
        self._features = self._table()
        self._memory = rule.recall(self._key)  # of earlier blocks: nothing of these draws

    @classmethod
    def of(cls, own: list[tuple[Site, int]], replicates: int, branched: bool) -> Increments | None:
        """The increments of draws; ``None`` where there is nothing to fit."""
        if replicates < _FEW or not own:
            return None
        rule = own[0][0].fitted
        position = {site: i for i, (site, _) in enumerate(own)}
        dims = dict(own)
        streams: list[_Stream] = []
        for group in by_line((site for site, _ in own), "shape", "instruction"):
            if group[0].drawn_from is None:
                continue
            parts = _means(group, [dims[site] for site in group])
            if parts is None:
                continue
            drawn, mean = parts  # (T, R, C)
            epoch = torch.tensor([site.epoch for site in group])
            first = group[0]
            for c in range(drawn.shape[-1]):
                if bool(torch.isfinite(mean[..., c].detach()).all()):
                    streams.append(
                        _Stream(
                            (first.file, first.line, first.instruction, first.law, c),
                            drawn[..., c],
                            mean[..., c],
                            [position[site] for site in group],
                            epoch,
                        )
                    )
        return cls(rule, streams, replicates, branched) if streams else None

    # ------------------------------------------------------------------------------ features

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
        self._key = (
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
        self._spread: list[Tensor] = []  # (R, J * K): squares of what a feature should vary by
        for i, drift in enumerate(self._drift):
            total: Any = 0
            spread: Any = 0
            for rows in self._chunks(i):
                past = self._functions_of_past(i, rows)
                mean = self.streams[i].mean.detach()[rows].abs().double().unsqueeze(-1)
                spread = spread + (past.square() * mean).sum(0)
                past = past * drift[rows].unsqueeze(-1)
                total = total + torch.einsum("tk,trj->rjk", self._basis[i][rows], past)
            found.append(total.flatten(1))
            self._spread.append(spread.repeat_interleave(self._basis[i].shape[1], 1))
        return found

    # ----------------------------------------------------------------------------------- fit

    def fit(self, returns: Sequence[Tensor]) -> Fit:
        """Weights for these costs, those of each half fitted on the other."""
        x = torch.cat(self._features, 1)  # (R, F)
        y = returns[0].double()
        even = torch.arange(self.replicates) % 2 == 0
        # a draw that is almost sure may not have varied at all in one half, and does in the other
        least = [0.1 * torch.cat(self._spread, 1)[half].mean(0).sqrt() for half in (~even, even)]
        coefficients = [
            fit(x[half], y[half], self._memory, floor)
            for half, floor in zip((~even, even), least, strict=True)
        ]
        self.rule.remember(self._key, self._memory, x, y)
        weights: list[Tensor] = []
        sizes = [table.shape[1] for table in self._features]
        for i in range(len(self.streams)):
            a = torch.empty_like(self._drift[i])
            for half, beta in zip((even, ~even), coefficients, strict=True):
                part = beta.split(sizes)[i].reshape(-1, self._basis[i].shape[1])  # (J, K)
                over_time = self._basis[i] @ part.T  # (T, J)
                for rows in self._chunks(i):
                    past = self._functions_of_past(i, rows)[:, half]
                    a[rows, half] = torch.einsum("tj,trj->tr", over_time[rows], past)
            weights.append(a)
        predicted = []
        for epoch in range(len(returns)):
            later = [
                (a * d)[stream.epoch >= epoch].sum(0)
                for a, d, stream in zip(weights, self._drift, self.streams, strict=True)
            ]
            predicted.append(sum(later[1:], later[0]))
        residuals = []
        for after, h in zip(returns, predicted, strict=True):
            rest = after.double() - h
            base = torch.where(even, rest[~even].mean(), rest[even].mean())
            residuals.append((rest - base).to(after.dtype))
        return Fit(
            residuals, [a.to(s.mean.dtype) for a, s in zip(weights, self.streams, strict=True)]
        )


def _means(group: list[Site], dims: list[int]) -> tuple[Tensor, Tensor] | None:
    """What was drawn at the visits of a line, and its mean: ``(T, R, C)`` each."""
    laws = [base_of(site.drawn_from) for site in group]
    whole = stacked(laws) if len(group) > 1 and len(set(dims)) == 1 else None
    if whole is not None:
        values = torch.stack([site.value for site in group])  # type: ignore[misc]
        sample = values.dim() - 1 - len(whole.batch_shape[1:]) - len(whole.event_shape)
        pair = mean_of(whole, values.movedim(0, sample))
        if pair is None:
            return None
        whole_parts = [p.expand(pair[0].shape).movedim(sample, 0) for p in pair]
        drawn, mean = (_per_replicate(p, dims[0] + 1) for p in whole_parts)
        return drawn.to(mean.dtype), mean
    pairs = [mean_of(law, site.value) for law, site in zip(laws, group, strict=True)]  # type: ignore[arg-type]
    if any(pair is None for pair in pairs):
        return None
    rows = [
        [_per_replicate(p.expand(pair[0].shape).unsqueeze(0), dim + 1) for p in pair]  # type: ignore[index, union-attr]
        for pair, dim in zip(pairs, dims, strict=True)
    ]
    drawn, mean = torch.cat([row[0] for row in rows]), torch.cat([row[1] for row in rows])
    return drawn.to(mean.dtype), mean


def _per_replicate(x: Tensor, dim: int) -> Tensor:
    """``(T, ..., R, ..., C)`` to ``(T, R, C)``: the sum over others, or each of a few of them."""
    x = x.movedim(dim, 1)
    if x.dim() == 3:
        return x
    return x.flatten(2) if x[0, 0].numel() <= _FEW_STREAMS else x.flatten(2, -2).sum(2)


def _cosines(visits: int, number: int) -> Tensor:
    """Smooth functions of how often a line was visited, ``(visits, number)``."""
    number = min(number, visits)
    t = torch.arange(visits, dtype=torch.float64).unsqueeze(-1) / max(visits - 1, 1)
    return torch.cos(math.pi * t * torch.arange(number, dtype=torch.float64))


def _hats(visits: int, number: int) -> Tensor:
    """Hat functions that do not depend on how many visits there will be, ``(visits, number)``."""
    t = torch.arange(1, visits + 1, dtype=torch.float64).log2().unsqueeze(-1)
    centres = torch.arange(number, dtype=torch.float64) * 2
    far = (t - centres).clamp(min=-2) / 2
    far[:, -1] = far[:, -1].clamp(max=0)  # the last one stays
    return (1 - far.abs()).clamp_min(0)
