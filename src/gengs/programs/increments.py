"""What was drawn less its mean, line by line, and the control variate that is fitted to it."""

from __future__ import annotations

__all__ = ["Fit", "Increments"]

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .features import Features, Stream
from .fitted_score import FittedScore
from .known_laws import mean_of, stacked
from .law_checks import base_of
from .regression import fit
from .sample_site import Site, by_line

_FEW = 32
"""With fewer replicates there is nothing to fit: it is RLOO."""
_FEW_STREAMS = 8
"""So many numbers of one draw are looked at one by one; of more, their sum."""


_BELIEVED = ("torch.", "gengs.")
"""Whose distributions say what their mean is, without a look at the draws."""
_FAR = 8.0
"""Standard errors."""


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
        self, rule: FittedScore, streams: list[Stream], replicates: int, branched: bool
    ) -> None:
        self.rule, self.streams, self.replicates = rule, streams, replicates
        self.means = [stream.mean for stream in streams]
        self._features = Features(streams, replicates, branched)
        self._memory = rule.recall(self._features.key)  # of earlier blocks: nothing of these draws

    @classmethod
    def of(cls, own: list[tuple[Site, int]], replicates: int, branched: bool) -> Increments | None:
        """The increments of draws; ``None`` where there is nothing to fit."""
        if replicates < _FEW or not own:
            return None
        rule = own[0][0].fitted
        position = {site: i for i, (site, _) in enumerate(own)}
        dims = dict(own)
        streams: list[Stream] = []
        for group in by_line((site for site, _ in own), "shape", "instruction"):
            if group[0].drawn_from is None:
                continue
            parts = _means(group, [dims[site] for site in group])
            if parts is None:
                continue
            drawn, mean = parts  # (T, R, C)
            epoch = torch.tensor([site.epoch for site in group])
            first = group[0]
            foreign = not type(base_of(first.drawn_from)).__module__.startswith(_BELIEVED)
            for c in range(drawn.shape[-1]):
                if _is_mean(drawn[..., c], mean[..., c].detach(), foreign):
                    streams.append(
                        Stream(
                            (first.file, first.line, first.instruction, first.law, c),
                            drawn[..., c],
                            mean[..., c],
                            [position[site] for site in group],
                            epoch,
                        )
                    )
        return cls(rule, streams, replicates, branched) if streams else None

    def fit(self, returns: Sequence[Tensor]) -> Fit:
        """Weights for these costs, those of each half fitted on the other."""
        features = self._features
        x = torch.cat(features.tables, 1)  # (R, F)
        y = returns[0].double()
        even = torch.arange(self.replicates) % 2 == 0
        # a draw that is almost sure may not have varied at all in one half, and does in the other
        least = [
            0.1 * torch.cat(features.spreads, 1)[half].mean(0).sqrt() for half in (~even, even)
        ]
        coefficients = [
            fit(x[half], y[half], self._memory, floor)
            for half, floor in zip((~even, even), least, strict=True)
        ]
        self.rule.remember(features.key, self._memory, x, y)
        weights = [
            features.weights(i, [even, ~even], coefficients) for i in range(len(self.streams))
        ]
        predicted = []
        for epoch in range(len(returns)):
            later = [
                (a * d)[stream.epoch >= epoch].sum(0)
                for a, d, stream in zip(weights, features.drift, self.streams, strict=True)
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


def _is_mean(drawn: Tensor, mean: Tensor, doubted: bool) -> bool:
    """Whether a mean is finite and, where ``doubted``, not contradicted by the draws."""
    if not bool(torch.isfinite(mean).all()):
        return False
    drift = (drawn - mean).double()
    return not doubted or float(drift.sum().abs()) <= _FAR * float(drift.norm())


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
        drawn, mean = (_streams_of(p, dims[0] + 1) for p in whole_parts)
        return drawn.to(mean.dtype), mean
    pairs = [mean_of(law, site.value) for law, site in zip(laws, group, strict=True)]  # type: ignore[arg-type]
    if any(pair is None for pair in pairs):
        return None
    rows = [
        [_streams_of(p.expand(pair[0].shape).unsqueeze(0), dim + 1) for p in pair]  # type: ignore[index, union-attr]
        for pair, dim in zip(pairs, dims, strict=True)
    ]
    drawn, mean = torch.cat([row[0] for row in rows]), torch.cat([row[1] for row in rows])
    return drawn.to(mean.dtype), mean


def _streams_of(x: Tensor, dim: int) -> Tensor:
    """``(T, ..., R, ..., C)`` to ``(T, R, C)``: the sum over others, or each of a few of them."""
    x = x.movedim(dim, 1)
    if x.dim() == 3:
        return x
    return x.flatten(2) if x[0, 0].numel() <= _FEW_STREAMS else x.flatten(2, -2).sum(2)
