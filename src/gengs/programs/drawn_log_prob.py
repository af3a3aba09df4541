"""``log_prob`` of what was drawn: the gradient of an index goes through it.

torch looks a category up in a table, which has no slope. The log-probability of a one-hot vector is
linear in it, so the vector that stands for the index carries the gradient on.
"""

__all__ = ["log_prob_of_drawn"]

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, OneHotCategorical

from ..tables.finite import Finite
from .block_stack import outermost
from .law_checks import depends_on_parameters


def log_prob_of_drawn(
    law: Any, kind: type[Distribution], value: Tensor, log_prob: Callable[[Tensor], Tensor]
) -> Tensor:
    """The log-probability of ``value``, by the ``log_prob`` of the class ``kind``."""
    mode = outermost().mode
    surrogate = mode.surrogates.of(value)
    moving = value if value.requires_grad else surrogate
    if moving is None:
        result = log_prob(value)
    elif kind is Categorical:
        one_hot = mode.surrogates.one_hot(value)
        if one_hot is None and value.requires_grad and law.logits.shape[-1] == 2:
            one_hot = torch.stack([1 - value, value], -1)
        result = log_prob(value)
        if one_hot is None or one_hot.shape[-1] != law.logits.shape[-1]:
            mode.report.cut("used as an index", moving, by_library=True)
        else:
            result = _linear(one_hot, law.logits)
    elif kind is OneHotCategorical:
        if law._validate_args:
            law._validate_sample(value)
        result = _linear(value, law._categorical.logits)
    elif kind is Finite or issubclass(kind, Finite):
        result = log_prob(value)
        mode.report.cut("looked up by a log_prob", moving, by_library=True)
    else:
        result = log_prob(value if surrogate is None else surrogate)
    if result.requires_grad and depends_on_parameters(law):
        mode.by_hand.log_prob(result)
    return result


def _linear(one_hot: Tensor, logits: Tensor) -> Tensor:
    # 0 times -inf is no number
    return (one_hot * logits.clamp_min(torch.finfo(logits.dtype).min)).sum(-1)
