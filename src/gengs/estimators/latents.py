"""The law of a latent vector, as estimators see it: independent factors.

``Independent(Poisson(rate), 1)`` with ``rate`` of shape ``(100, 50)`` is a batch of 100 vectors of
50 factors. :class:`Latents` holds the factors' law and knows which dimensions are batch, which are
factors and which belong to one atom (vector atoms), so that no estimator has to.

Shapes: values are ``(S, *batch, *factors, *event)``, costs ``(S, *batch)``, tables of
log-probabilities ``(*batch, *factors, n)``.
"""

from __future__ import annotations

__all__ = ["Latents"]

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, Independent

from ..distributions.deferred import Deferred
from ..distributions.families import tensors_of, twin_of
from ..distributions.finite import Finite
from ..distributions.once import once
from ..distributions.straight_through import StraightThrough
from ..distributions.truncate import as_finite
from ..distributions.validation import all_finite, inside_transform, inspectable


class Latents:
    """A law of independent factors.

    Args:
        q: The law: a scalar one, or ``Independent`` of one, whose event is the latent vector.
        owner: The name of the estimator, for messages.

    Attributes:
        law: The factors' law, of batch shape ``batch + factors``.
        batch: The shape of the result of an expectation.
        factors: The shape of one latent vector, in factors.
    """

    def __init__(self, q: Distribution, owner: str) -> None:
        if not isinstance(q, Distribution):
            raise TypeError(
                f"{owner}.expect expects a torch distribution as `q`, but got {type(q).__name__}."
            )
        factor_dims = 0
        while isinstance(q, Independent):
            factor_dims += q.reinterpreted_batch_ndims
            q = q.base_dist
        if isinstance(q, StraightThrough):  # an estimator brings its own gradient
            q = q.law
        self.owner = owner
        self.law = _prepared(q, owner)
        cut = len(q.batch_shape) - factor_dims
        self.batch, self.factors = q.batch_shape[:cut], q.batch_shape[cut:]

    @property
    def event(self) -> torch.Size:
        """The shape of one atom: empty for numbers."""
        return self.law.event_shape

    @once
    def finite(self) -> Finite:
        """The factors' law on finitely many atoms, truncated (1e-6 of the mass) where needed."""
        return as_finite(self.law)

    @once
    def mean(self) -> Tensor:
        """The factors' mean, differentiable: ``(*batch, *factors, *event)``."""
        if isinstance(self.law, Categorical):  # torch leaves it NaN
            return self.finite.mean
        try:
            return self.law.mean
        except NotImplementedError:
            return self.finite.mean

    def sample(self, samples: int) -> Tensor:
        """Exact draws, ``(S, *batch, *factors, *event)``; a gradient reaches learned atoms only."""
        shape = torch.Size([samples])
        if isinstance(self.law, Finite):
            return self.law._atoms_at(self.law.sample_index(shape))
        with torch.no_grad():
            try:
                draws = self.law.sample(shape)
            except NotImplementedError:  # a law of somebody's own that is a PMF and no more
                draws = self.finite.sample(shape)
        # a cost sees the same kind of number from every law; torch's Categorical draws integers
        return draws if draws.is_floating_point() else draws.to(self._parameter_dtype())

    def refuse_learned_atoms(self) -> None:
        """Raise where the atoms require a gradient that the estimator does not have."""
        if isinstance(self.law, Finite) and self.law.atoms.requires_grad:
            raise TypeError(
                f"{self.owner} does not differentiate with respect to atoms, but these require a "
                "gradient; detach them, or use GenGS, MidCDF, RLOO or UnOrd."
            )

    def _parameter_dtype(self) -> torch.dtype:
        kinds = [t.dtype for _, _, t in tensors_of(self.law) if t.is_floating_point()]
        return max(kinds, key=lambda kind: kind.itemsize, default=torch.get_default_dtype())

    def log_prob(self, value: Tensor) -> Tensor:
        """The joint log-probability of values: ``(S, *batch)``."""
        return self.sum_factors(self.law.log_prob(value))

    def sum_factors(self, x: Tensor) -> Tensor:
        """Sum over the factors, which come last in ``x``."""
        return x.flatten(x.dim() - len(self.factors)).sum(-1) if self.factors else x

    def spread(self, weight: Tensor) -> Tensor:
        """A number per draw, ``(S, *batch)``, shaped to multiply values factor by factor."""
        return weight.reshape(weight.shape + (1,) * (len(self.factors) + len(self.event)))


def _with_checked_gradient(parameter: Tensor, owner: str) -> Tensor:
    """The same tensor; on the way back it refuses NaN and infinities."""
    if not inspectable(parameter) or inside_transform():  # nor would its gradient be
        return parameter

    def refuse(grad: Tensor | None) -> None:
        if grad is not None and inspectable(grad) and not all_finite(grad):
            bad = int((~torch.isfinite(grad)).sum())
            raise FloatingPointError(
                f"{owner}: {bad} of {grad.numel()} entries of the gradient with respect to the "
                f"law's parameter of shape {tuple(grad.shape)} are NaN or infinite."
            )

    twin = parameter.view_as(parameter)  # a hook on the caller's own tensor would stay there
    twin.register_hook(refuse)
    return twin


def _prepared_tensor(value: Tensor, owner: str) -> Tensor:
    result = value
    if value.is_floating_point() and value.dtype.itemsize < 4:
        result = result.float()
    # a compiler cannot ask about inference mode, and compiles nothing in it
    inference = not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()
    trains = torch.is_grad_enabled() and not inference
    return _with_checked_gradient(result, owner) if value.requires_grad and trains else result


_PARTS = (Tensor, Distribution)


def _prepared(part: Any, owner: str, seen: dict[int, Any] | None = None) -> Any:
    """The same law, in float32 or wider, through which no gradient that is not finite passes.

    Half precision cannot hold a count past 256 (bfloat16) or 2048, and torch cannot draw from all
    laws in it. What a law holds twice, such as a parameter and its alias, stays one (``seen``).
    """
    seen = {} if seen is None else seen
    if id(part) in seen:
        return seen[id(part)]
    if isinstance(part, Tensor):
        result: Any = _prepared_tensor(part, owner)
    elif isinstance(part, Deferred):
        change = partial(_prepared_tensor, owner=owner)
        # not with `seen`, which will hold the result: a circle keeps tensors until it is collected
        result = part.through(partial(_prepared, owner=owner), change)
    else:
        result = twin_of(part)
        parts = ((k, v) for k, v in vars(part).items() if isinstance(v, _PARTS))
        vars(result).update({k: _prepared(v, owner, seen) for k, v in parts})
    seen[id(part)] = result
    return result
