r"""Distributions made of others: mixtures and transformed ones, drawn in stages.

A mixture draws a component and a value of each, and takes the component's: one-hot vector times
draws, each stage with a gradient. A transformed distribution draws its base and applies the
transforms. The draw is exact, and its gradient exact for quadratic costs. A shifted count has the
shifted support; torch says that it is real.

**Boundaries.** A mixture is :math:`p(k) = \sum_j w_j\, p_j(k)`, and a component with a rate of 0,
or a weight of 0, moves it:

.. math:: \partial \log p = \frac{1}{p} \sum_j (p_j\, \partial w_j + w_j\, \partial p_j)

where logarithms of :math:`w_j` and :math:`p_j` have no derivative (torch's has NaN).
"""

__all__ = ["MixtureLaw", "TransformedLaw"]

import torch
from torch import Tensor
from torch.distributions import (
    AffineTransform,
    Categorical,
    MixtureSameFamily,
    TransformedDistribution,
)
from torch.distributions.utils import lazy_property

from ..numerics.attach import nonzero
from ..numerics.tails import log_sum, safe_log, was_given, widen
from ..numerics.tracing import carries_gradient, parameters_of
from ..tables.finite import Finite
from ..tables.supports import integer_support
from .law import Law, law_of, register
from .one_hot_mid import attach_one_hot


class _InStages(Law):
    """A compound whose stages jump by more than a neighbour."""

    compound = True

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if antithetic or not bridge:  # no jumps, or one uniform for each draw
            return super().rsample(shape, bridge=bridge, antithetic=antithetic)
        return self.stages(shape)

    def stages(self, shape: torch.Size) -> Tensor:
        """Draws with a gradient, by draws of other distributions."""
        raise NotImplementedError


@register(MixtureSameFamily, "pyro.MixtureSameFamily")
class MixtureLaw(_InStages):
    """The record of a mixture."""

    cuts_table = True

    @property
    def component(self) -> Law:
        """The record of the components, of batch shape ``(*batch, K)``."""
        return law_of(self.q.component_distribution)

    @property
    def learned_total(self) -> bool:  # type: ignore[override]
        return self.component.learned_total

    @property
    def learned_transforms(self) -> bool:  # type: ignore[override]
        return self.component.learned_transforms

    @property
    def normalised(self) -> bool:
        return self.component.normalised

    @lazy_property
    def lower(self) -> int | None:
        _require_scalar(self.q)
        return self.component.lower

    @lazy_property
    def upper(self) -> Tensor | None:
        _require_scalar(self.q)
        ends = self.component.upper
        return None if ends is None else ends.squeeze(-1).amax(-1, keepdim=True)

    # --------------------------------------------------------------------------- the PMF and tails

    @lazy_property
    def weights(self) -> Tensor:
        """The weights of the components, ``(*batch, K, 1)``."""
        probs: Tensor = self.q.mixture_distribution.probs
        return widen(probs).expand(*self.batch_shape, -1).unsqueeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self.q.event_shape:
            return super().log_prob(value)
        parts, value = self.component, value.unsqueeze(-1)  # (*sample, *batch, 1)
        k = value.unsqueeze(-1)
        # a formula of ours has -inf for what another component drew
        ours = parts.normalised
        log_parts = parts.log_pmf(k) if ours else parts.q.log_prob(value).unsqueeze(-1)
        return self._mixed(k, log_parts).squeeze(-1)

    def log_pmf(self, k: Tensor) -> Tensor:
        each = _beside_components(k)
        return self._mixed(each, self.component.log_pmf(each)).to(self.like.dtype)

    def _mixed(self, k: Tensor, log_parts: Tensor) -> Tensor:
        """The log-PMF at ``k``, ``(..., n)``, from those of the components, ``(..., K, n)``."""
        q = self.q.mixture_distribution
        if was_given(q, "logits"):
            log_weights = widen(q.logits).log_softmax(-1).unsqueeze(-1)
        else:
            log_weights = safe_log(self.weights)
        expansion, at_boundary = self.component.boundary_expansion(), self.weights == 0
        if expansion is not None:
            at_boundary = at_boundary | expansion.sure
        if self.component.given_probs is not None:
            at_boundary = at_boundary | (log_parts == -torch.inf)
        terms = log_weights + log_parts
        terms = torch.where(at_boundary, terms.detach(), terms)
        log_pmf = log_sum(terms.movedim(-2, -1)).squeeze(-1)
        pmf = log_pmf.detach().exp()
        moving = self.weights * self.component.to_first_order(k, log_parts.exp())
        moving = moving.where(at_boundary, 0.0).sum(-2) / nonzero(pmf)
        moving = moving.where(pmf > 0, 0.0)
        return log_pmf + (moving - moving.detach())

    def for_window(self) -> "MixtureLaw":
        weights = self.weights.squeeze(-1).detach()
        weights = weights.masked_fill(weights == 0, 1.0)  # what it may be going to draw
        chosen = Categorical(weights, validate_args=False)
        parts = self.component.for_window().q
        return MixtureLaw(MixtureSameFamily(chosen, parts, validate_args=False))

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        each, never = _beside_components(k), clipped == -torch.inf
        ends = each[..., :1], each[..., -1:]
        parts = self.component.to_first_order(each, self.component.log_pmf(each).exp(), ends)
        mixed = (self.weights * parts).sum(-2).to(clipped.dtype)
        pmf = torch.where(never, mixed, clipped.exp())
        # all that moves elsewhere comes from the last atom: no tail has to be summed for it
        moved = pmf[..., :-1].sum(-1, keepdim=True)
        last = torch.where(never[..., -1:], moved.detach() - moved, pmf[..., -1:])
        return torch.cat([pmf[..., :-1], last], -1)

    def boundary(self) -> Tensor | None:
        """Where no component is inside its parameters: what one never draws another does."""
        parts = self.component.boundary()
        return None if parts is None else (parts | (self.weights == 0)).all(-2)

    # ---------------------------------------------------------------------------- table and draws

    def whole_table(self, validate: bool) -> Finite | None:
        parts = self.q.component_distribution
        if not isinstance(parts, Finite):
            return None
        if parts.atoms.dim() > 1 + parts.event_dim:
            raise TypeError(
                "truncate expects a mixture of distributions on the same atoms; cut its components "
                "by one level= or one range, not each by its own."
            )
        probs = (self.q.mixture_distribution.probs.unsqueeze(-1) * parts.probs).sum(-2)
        return Finite(parts.atoms, probs=probs, event_dim=parts.event_dim, validate_args=validate)

    def stages(self, shape: torch.Size) -> Tensor:
        weights = self.q.mixture_distribution.expand(self.batch_shape)
        given = "logits" if was_given(weights, "logits") else "probs"
        with torch.no_grad():  # in the order in which torch draws
            index = weights.sample(shape)
        component = attach_one_hot(  # (*sample, *batch, K)
            index, weights.probs.detach(), **{given: getattr(weights, given)}, weight=0.5
        )
        z = self.component.rsample(shape)  # (*sample, *batch, K, *event)
        event = len(self.q.event_shape)
        return (component.reshape(component.shape + (1,) * event) * z).sum(-1 - event)


@register(TransformedDistribution, "pyro.TransformedDistribution")
class TransformedLaw(_InStages):
    """The record of a transformed distribution."""

    @property
    def learned_total(self) -> bool:  # type: ignore[override]
        return law_of(self.q.base_dist).learned_total

    @property
    def learned_transforms(self) -> bool:  # type: ignore[override]
        tensors = (t for transform in self.q.transforms for t in parameters_of(transform))
        return any(map(carries_gradient, tensors)) or law_of(self.q.base_dist).learned_transforms

    @lazy_property
    def shift(self) -> int | None:
        """The integer that is added; ``None`` for any other transformation."""
        shift = 0
        for transform in self.q.transforms:
            if not isinstance(transform, AffineTransform):
                return None
            loc, scale = (torch.as_tensor(x).detach() for x in (transform.loc, transform.scale))
            if not bool((scale == 1).all() & (loc == loc.round()).all() & (loc == loc.min()).all()):
                return None
            shift += int(loc.min())
        return shift

    @lazy_property
    def lower(self) -> int | None:
        _require_scalar(self.q)
        if self.shift is None:
            return integer_support(self.q)[0]
        lower = law_of(self.q.base_dist).lower
        return None if lower is None else lower + self.shift

    @lazy_property
    def upper(self) -> Tensor | None:
        _require_scalar(self.q)
        if self.shift is None:
            return integer_support(self.q)[1]
        upper = law_of(self.q.base_dist).upper
        return None if upper is None else upper + self.shift

    def stages(self, shape: torch.Size) -> Tensor:
        z = law_of(self.q.base_dist).rsample(shape)
        for transform in self.q.transforms:
            z = transform(z)
        return z


def _beside_components(k: Tensor) -> Tensor:
    """Integers ``(n,)`` or ``(*batch, n)`` as a batch of components takes them."""
    return k if k.dim() == 1 else k.unsqueeze(-2)


def _require_scalar(q: MixtureSameFamily | TransformedDistribution) -> None:
    if q.event_shape:
        integer_support(q)  # which says what is missing
