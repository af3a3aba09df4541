r"""A distribution cut to finitely many integers: the PMF inside, a whole tail on each end atom.

.. math::
    \pi_k = p(k) \text{ inside}, \qquad
    \pi_{\mathrm{high}} = P(X \ge \mathrm{high}), \qquad
    \pi_{\mathrm{low}} = P(X \le \mathrm{low})

so that :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})` exactly. Lumping is not
renormalising: the end atom carries the whole tail. It is Definition 1 of the GenGS paper, on both
sides as in its Proposition 4: with the window :math:`Z` converges to :math:`X` almost surely. (The
definition says :math:`X > n`, where :math:`X \ge n - 1` is meant.)
"""

from __future__ import annotations

__all__ = ["Truncated"]

import math
import warnings
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from ..laws.pmf import PMF
from ..numerics.tracing import any_of, is_eager, require_memory, tensors_of
from .finite import Finite
from .parameter_checks import check_parameters, parameter_faults
from .windows import Certificate, TruncationWarning, Window


class Truncated(Finite):
    """The distribution of ``clip(X, low, high)``: a :class:`Finite` with its source and window.

    Made by :func:`gengs.truncate`.

    Args:
        source: What is known of the distribution that is cut.
        window: The integers that are kept.
        validate: Whether to check parameters, and how much mass lies outside.
    """

    source: PMF
    window: Window

    def __init__(self, source: PMF, window: Window, validate: bool) -> None:
        if torch.is_grad_enabled():
            _refuse_moving_values(source)
        low, n, like = window.low, window.size, source.like
        require_memory(source.batch_shape, n, torch.float64, like.device)  # what formulas run in
        k = torch.arange(n, device=like.device)
        k = k + (low.to(like.device).unsqueeze(-1) if isinstance(low, Tensor) else low)
        lower = -math.inf if source.lower is None else source.lower
        first = low if isinstance(low, int) and low <= lower else None
        # a single atom carries everything, with a gradient, zero, where there is one
        logits = source.log_clipped(k, first) if n > 1 else source.log_pmf(k).nan_to_num() * 0.0
        if validate:
            _check(source, window, k, logits.detach(), first is None and n > 1)
            if not source.normalised:
                _refuse_moving_mass(source.q, logits)
        self.source, self.window = source, window
        self.made_from = _again, (type(source), source.q, window, validate), {}
        atoms = k.to(torch.promote_types(like.dtype, torch.float32))
        self.set_table(atoms, logits, 0, like.dtype, validate)
        if source.data_dependent:
            self.given_probs = source.clipped_pmf(atoms, logits)

    @property
    def probs(self) -> Tensor:
        r"""The probabilities :math:`\pi`, of shape ``(*batch, n)``."""
        if self.given_probs is not None:
            return self.given_probs
        return self.source.clipped_pmf(self.atoms, self.logits)

    @cached_property
    def certificate(self) -> Certificate:  # type: ignore[override]
        """What the truncation lost: it reports, and decides nothing."""
        return Certificate(self.source, self.window)

    @property
    def reachable(self) -> Tensor | None:
        return None if self.source.upper is None else self.source.inside(self.atoms)

    def boundary(self) -> Tensor | None:
        return self.source.boundary()

    def in_order(self) -> tuple[Tensor, Tensor]:
        return self.atoms, self.probs

    def has_atoms_of(self, other: Finite) -> bool:
        if not isinstance(other, Truncated):
            return super().has_atoms_of(other)
        ours, theirs = self.window, other.window
        one_for_all = isinstance(ours.low, int) and isinstance(theirs.low, int)
        return one_for_all and (ours.low, ours.size) == (theirs.low, theirs.size)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Truncated:
        law = self._get_checked_instance(Truncated, _instance)
        shape = (*batch_shape, self.num_atoms)
        law.source, law.window = self.source, self.window
        law.set_table(self.atoms, self.logits.expand(shape), 0, self.dtype, self._validate_args)
        law.given_probs = self.probs.expand(shape)
        law.made_from = Truncated.expand, (self, batch_shape), {}
        return law


def _again(kind: type[PMF], q: Distribution, window: Window, validate: bool) -> Truncated:
    """The distribution of the same rule, from the distribution's parameters as they are now."""
    return Truncated(kind(q), window, validate)


def _refuse_moving_values(source: PMF) -> None:
    """Raise where a parameter with a gradient moves the values, which a table keeps."""
    for learned, what in (
        (source.learned_total, "a number of trials (total_count), which requires"),
        (source.learned_transforms, "its transforms, which require"),
    ):
        if learned:
            raise TypeError(
                f"a table of {type(source.q).__name__} has no gradient in {what} one; draw by "
                "gengs.rsample or MidCDF, or detach."
            )


def _check(source: PMF, window: Window, k: Tensor, logits: Tensor, below: bool) -> None:
    """One host sync: for invalid parameters, for lost mass, and for unnormalised PMFs."""
    ends, at = logits[..., -1:], k[..., -1:]
    if below:
        ends, at = torch.cat([logits[..., :1], ends], -1), torch.cat([k[..., :1], at], -1)
    held = ends.exp().sum(-1)  # an end atom holds its own probability and what lies beyond
    unnormalised = held.new_zeros(()).bool()
    if not source.normalised:  # its log_prob is the user's
        unnormalised = (logits.logsumexp(-1).exp() - 1).abs() > 1e-3
    if not any_of(*parameter_faults(source.q), held > window.allowed, unnormalised):
        return
    check_parameters(source.q)
    if any_of(unnormalised):
        total = logits.logsumexp(-1).exp()
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        raise ValueError(
            f"truncate expects a normalised `log_prob`, but the probabilities of "
            f"{type(source.q).__name__} sum to {worst:.4g}."
        )
    if window.size > 1:
        lost = held - source.log_pmf(at).exp().sum(-1)
    else:  # the one atom holds all
        lost = (source.log_at_least(at + 1).exp() + source.log_at_most(at - 1).exp()).sum(-1)
    if any_of(lost.detach() > window.allowed):
        # no number that changes from call to call: Python shows the same sentence once only
        warnings.warn(
            f"truncation to {window.size} atom{'s'[: window.size > 1]} loses more than "
            f"{window.allowed:.3g} of the mass of some {type(source.q).__name__}: the end atom "
            "holds it, and the gradient vanishes there. Widen the window (level=, tolerance=) or "
            "choose it anew; certificate.lost_mass has the numbers.",
            TruncationWarning,
            stacklevel=4,
        )


def _refuse_moving_mass(q: Distribution, logits: Tensor) -> None:
    """Raise where the total mass has a derivative: a ``log_prob`` is masked somewhere.

    A table's gradient is right only if its probabilities keep their sum as parameters move.
    """
    learned = [
        (law.arg_constraints[name], tensor)
        for law, name, tensor in tensors_of(q)
        if name in law.arg_constraints and tensor.requires_grad and _was_given(law, name)
    ]
    if not learned or not logits.requires_grad or not is_eager(logits, *(t for _, t in learned)):
        return
    total = logits.exp().sum(-1)
    # elements that share a parameter must not cancel
    weights = 1 + torch.arange(total.numel(), device=total.device).remainder(7).view_as(total)
    slopes = torch.autograd.grad(
        *(total, [tensor for _, tensor in learned], weights.to(total.dtype)),
        retain_graph=True,
        allow_unused=True,
    )
    moves = []
    for slope, (constraint, tensor) in zip(slopes, learned, strict=True):
        if slope is not None:
            # torch normalises vectors of probabilities and logits, which keep their total
            if constraint is constraints.simplex:
                along = slope - slope.mean(-1, keepdim=True)
            elif constraint.event_dim == 1:
                along = slope - tensor.detach().softmax(-1) * slope.sum(-1, keepdim=True)
            else:
                along = slope
            moves.append((along.abs() * tensor.detach().abs().clamp_min(1e-3) > 0.05).any())
    if moves and any_of(*moves):
        raise ValueError(
            f"the probabilities of {type(q).__name__} have a total that changes with a parameter, "
            "so their derivatives are wrong (is its `log_prob` masked, or not normalised?); "
            "detach that parameter, or register a record for it (gengs.register)."
        )


def _was_given(law: Distribution, name: str) -> bool:
    """Whether a parameter is no lazy function of another: of probs and logits, the first."""
    either = [key for key in vars(law) if key in ("probs", "logits")]
    return name not in either[1:]
