"""Which draw is credited with which costs: from log-probabilities and costs to a gradient.

The rules that use the score keep the distribution and the value of each draw. Here they are put
together once the costs are known: draws of the same line are weighed at once.
"""

from __future__ import annotations

__all__ = ["Credit", "evaluate"]

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ..estimators.surrogate import attach
from ..numerics.autograd_function import AutogradFunction
from ..numerics.once_differentiable import OnceDifferentiable
from .increments import Increments
from .known_laws import score_of, stacked
from .law_checks import base_of
from .replicate_dims import per_replicate, replicate_dim
from .sample_site import ProgramWarning, Site, by_line, warn_once


def evaluate(sites: Sequence[Site]) -> None:
    """Make the log-probabilities of draws, those of one line together."""
    waiting = [s for s in sites if s.log_prob is None and s.drawn_from is not None]
    for group in by_line(waiting, "shape", "instruction"):
        whole = stacked([site.drawn_from for site in group]) if len(group) > 1 else None
        if whole is None:
            for site in group:
                site.log_prob = score_of(site.drawn_from, site.value)  # type: ignore[arg-type]
            continue
        values = torch.stack([site.value for site in group])  # type: ignore[misc]
        sample = values.dim() - 1 - len(whole.batch_shape[1:]) - len(whole.event_shape)
        values = values.movedim(0, sample)  # (*sample, T, *batch)
        log_probs = score_of(whole, values).unbind(sample)
        for site, log_prob in zip(group, log_probs, strict=True):
            site.log_prob = log_prob


class Credit:
    """The score of a program's draws, for one number of replicates.

    Args:
        sites: All draws.
        replicates: How many replicates there are; ``None`` for one run of the program.
        dim: The dimension of a draw that counts them, if the user said so.
        branched: Whether the program may have looked at its draws to decide what to do next.

    Attributes:
        inputs: The tensors through which gradients go back: log-probabilities and means.
    """

    def __init__(
        self, sites: Sequence[Site], replicates: int | None, dim: int | None, branched: bool
    ) -> None:
        scored = [site for site in sites if site.scored]
        evaluate(scored)
        self.replicates = replicates
        groups: dict[Any, list[Tensor]] = {}  # draws that have the same costs to their credit
        for site in scored:
            if site.log_prob is None:
                continue
            which = replicate_dim(site, tuple(site.log_prob.shape), replicates, dim)
            site.shared = replicates is not None and which is None
            score = site.log_prob.sum() if which is None else per_replicate(site.log_prob, which)
            groups.setdefault((site.epoch, site.baseline, which is None), []).append(score)
        self._keys = list(groups)
        self.inputs = [torch.stack(scores).sum(0) for scores in groups.values()]
        self._increments = None
        if replicates is not None and any(site.fitted is not None for site in scored):
            self._increments = Increments.of(_own(sites, replicates, dim), replicates, branched)
        if self._increments is not None:
            self.inputs += self._increments.means

    def __bool__(self) -> bool:
        return bool(self._keys)

    def surrogate(self, inputs: Sequence[Tensor], returns: Sequence[Tensor]) -> Tensor:
        """Numbers, one for each replicate, whose gradient in ``inputs`` is that of the score.

        ``returns`` are the costs from each epoch on, without a gradient.
        """
        fit = None
        if self._increments is not None:
            fit = self._increments.fit(returns)
        terms = []
        for key, scores in zip(self._keys, inputs[: len(self._keys)], strict=True):
            epoch, baseline, shared = key
            if epoch >= len(returns):  # nothing was paid after it
                continue
            after = returns[epoch]
            if shared:
                after = after.mean() if self.replicates is not None else after.sum()
            elif baseline and fit is not None:
                after = fit.residuals[epoch]
            elif baseline:
                after = after - (after.sum() - after) / (len(after) - 1)
            terms.append(scores * after)
        if fit is not None:
            means = inputs[len(self._keys) :]
            terms.append(fit.along(means))
        return sum(terms[1:], terms[0]) if terms else returns[0] * 0

    def loss(self, parts: Sequence[Tensor]) -> Tensor:
        """The sum of costs, one number per replicate, with the gradient of the score."""
        parts = [p if p.is_floating_point() else p.to(torch.get_default_dtype()) for p in parts]
        total = torch.stack(parts).sum(0)
        if not self:
            return total
        returns = list(accumulate(part.detach() for part in reversed(parts)))[::-1]
        zero: Tensor = _Score.apply(self.surrogate(self.inputs, returns).expand(total.shape))
        return attach(total, zero, not_twice=_NOT_TWICE)

    def mean(self, x: Tensor) -> Tensor:
        """The mean over replicates, ``x.mean(0)``, with the gradient of the score."""
        x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
        if not self:
            return x.mean(0)
        zero: Tensor = _MeanScore.apply(self, x.detach(), *self.inputs)
        return attach(x.mean(0), zero, not_twice=_NOT_TWICE)


def _own(sites: Sequence[Site], replicates: int, dim: int | None) -> list[tuple[Site, int]]:
    """The draws to which a control variate is fitted, with the dimension of the replicates."""
    found = []
    for site in sites:
        if site.fitted is None or site.drawn_from is None or site.value is None:
            continue
        events = len(base_of(site.drawn_from).event_shape)
        shape = tuple(site.value.shape[: site.value.dim() - events])
        which = replicate_dim(site, shape, replicates, dim)
        if which is not None:
            found.append((site, which))
    return found


class _Score(AutogradFunction):
    """Zero, whose gradient is that of the surrogate; unequal weights of replicates are told."""

    @staticmethod
    def forward(surrogate: Tensor) -> Tensor:
        return torch.zeros_like(surrogate)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        if grad.numel() > 1 and grad.device.type == "cpu":
            _require_equal_weights(grad)
        return grad


def _require_equal_weights(grad: Tensor) -> None:
    """Warn where the replicates' costs have unequal weights in what was differentiated."""
    try:
        low, high = grad.detach().aminmax()
        unequal = bool(high - low > 1e-4 * torch.maximum(high.abs(), low.abs()))
    except RuntimeError:  # inside a transform there is nothing to look at
        return
    if unequal:
        warn_once(
            "the replicates of program.loss have unequal weights in what was differentiated, as in "
            "program.loss(cost).square().mean(): the score of a function of the cost needs that "
            "function inside, program.loss(cost.square()); a function of an expectation needs "
            "program.mean(x). (Fixed weights, which do not depend on the draws, are right.)",
            ProgramWarning,
            "<program.loss>",
            1,
        )


class _MeanScore(torch.autograd.Function):
    """Zeros in the shape of a mean, with the gradient of the score of what is asked of it."""

    @staticmethod
    def forward(credit: Credit, x: Tensor, *inputs: Tensor) -> Tensor:
        return torch.zeros_like(x[0])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.credit = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *inputs = ctx.saved_tensors
        cost = (x * grad).flatten(1).sum(1) if x.dim() > 1 else x * grad
        with torch.enable_grad():
            leaves = [value.detach().requires_grad_() for value in inputs]
            returns = [cost.detach()] * (1 + max(epoch for epoch, _, _ in ctx.credit._keys))
            value = ctx.credit.surrogate(leaves, returns).mean()
        found = torch.autograd.grad(value, leaves, allow_unused=True)
        if torch.is_grad_enabled():
            found = tuple(
                None if f is None else OnceDifferentiable.apply(f, _NOT_TWICE, grad) for f in found
            )
        return None, None, *found


_NOT_TWICE = (
    "the score rule of gengs.differentiable has no second derivative: that of its estimate is no "
    "estimate of the second; the path has one, where its draws have closed forms."
)
