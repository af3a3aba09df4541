"""Does an estimator's gradient agree with the reference, or does it say why it has none?

Replicates run side by side in the batch, each with parameters of its own, so that one backward pass
gives a sample of gradients. Their mean is compared with the reference by a z-test; the declared
false-alarm rate is per call, over all entries together.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

FALSE_ALARM = 1e-7

REFUSALS = (TypeError, ValueError, NotImplementedError)
"""How a law or a cost may be declined: with a sentence."""


@dataclass(frozen=True)
class Answer:
    """What came back: samples of values and gradients, or a sentence."""

    values: np.ndarray | None = None
    gradients: dict | None = None
    refusal: str | None = None


def ask(expectation, parameters):
    """Values ``(R,)`` and, for each parameter, gradients ``(R, *shape)`` of an expectation."""
    try:
        values = expectation()
        if not values.requires_grad:
            return Answer(values.detach().numpy(), dict.fromkeys(parameters))
        found = torch.autograd.grad(values.sum(), list(parameters.values()), allow_unused=True)
    except REFUSALS as error:
        return Answer(refusal=f"{type(error).__name__}: {error}")
    gradients = {
        name: None if gradient is None else gradient.numpy()
        for name, gradient in zip(parameters, found, strict=True)
    }
    return Answer(values.detach().numpy(), gradients)


def complaint(answer, reference, bias=0.0, rounding=1e-6):
    """What is wrong with the gradients, as a sentence; ``None`` where nothing is.

    Args:
        answer: What came back.
        reference: The value and the gradients that are right.
        bias: How far the mean may be off, as a fraction of the largest entry of the gradient.
        rounding: How far it may be off in any case, likewise.
    """
    if answer.refusal is not None:
        return None if len(answer.refusal) > 30 else f"refused without a sentence: {answer.refusal}"
    _, wanted = reference
    for name, truth in wanted.items():
        found = answer.gradients[name]
        if found is None:
            return f"{name}: no gradient where {np.round(truth, 4)} is right"
        if not np.isfinite(found).all():
            return f"{name}: a gradient is not finite"
        off = _off(found, np.asarray(truth), bias, rounding)
        if off is not None:
            return f"{name}: {off}"
    return None


def _off(samples, truth, bias, rounding):
    mean, n = samples.mean(0), len(samples)
    error = samples.std(0, ddof=1) / n**0.5 if n > 1 else np.zeros_like(mean)
    limit = stats.norm.isf(FALSE_ALARM / 2 / max(truth.size, 1))
    size = np.abs(truth).max(initial=0.0)
    allowed = limit * error + bias * size + rounding * max(size, 1.0)
    if (np.abs(mean - truth) <= allowed).all():
        largest = np.abs(truth) == size
        blind = size > 0 and (allowed[largest] >= size).all()
        return "too few replicates to tell the mean from zero" if blind else None
    return f"mean {np.round(mean, 4)} ± {np.round(error, 4)} where {np.round(truth, 4)} is right"
