r"""One-hot vectors, on logits: exact draws where ``F.gumbel_softmax`` has relaxed ones.

torch's ``OneHotCategorical`` checks that probabilities sum to 1 within 1e-6, which the rounding of
``float32`` breaks for a thousand categories and more. This distribution takes logits as they are.
How draws move with the parameters: :mod:`gengs.laws.one_hot_mid`.
"""

from __future__ import annotations

__all__ = ["OneHot", "OneHotCategoricalLaw", "OneHotLaw"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, OneHotCategorical
from torch.distributions.kl import kl_divergence, register_kl
from torch.distributions.utils import lazy_property
from torch.types import _size

from ..numerics.inverse_cdf import antithetic_uniforms, inverse_cdf_index
from ..numerics.tails import safe_log, was_given, widen
from ..numerics.tracing import any_of, set_shapes, validates
from ..tables.finite import Finite
from .boxes import move_ball
from .finite_law import FiniteLaw
from .law import Law, law_of, register
from .one_hot_mid import attach_one_hot, one_hot_vectors


class OneHot(Finite):
    """One-hot vectors of K categories, ``(*batch, K)``.

    Args:
        logits: Unnormalised log-probabilities, ``(*batch, K)``; ``-inf`` forbids a category.
        probs: Unnormalised probabilities, or counts, instead of ``logits``.
        validate_args: Whether to check the arguments; on by default.

    Draws have the type of the logits or probabilities, half precision too.

    Example:
        >>> q = OneHot(logits=torch.tensor([[0.0, 1.0, -torch.inf]]))
        >>> q.event_shape, q.probs
        (torch.Size([3]), tensor([[0.2689, 0.7311, 0.0000]]))
    """

    def __init__(
        self,
        logits: Tensor | None = None,
        probs: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = logits if probs is None else probs
        if given is None or (logits is not None and probs is not None):
            raise ValueError("OneHot expects exactly one of `logits` and `probs`.")
        name, validate = "logits" if probs is None else "probs", validates(validate_args)
        if not isinstance(given, Tensor):
            raise TypeError(f"OneHot expects a tensor as `{name}`, but got {type(given).__name__}.")
        if probs is None and not given.is_floating_point():
            raise ValueError(f"OneHot expects floating-point `logits`, but got {given.dtype}.")
        if given.dim() == 0 or given.shape[-1] == 0:
            raise ValueError(
                f"OneHot expects at least one category in the last dimension of `{name}`, but got "
                f"shape {tuple(given.shape)}."
            )
        self.made_from = OneHot, (logits, probs, validate_args), {}
        wide = widen(given) if given.is_floating_point() else given.to(torch.get_default_dtype())
        self.raw = wide if probs is None else wide / wide.sum(-1, keepdim=True)
        self.given_probs = None if probs is None else self.raw
        self.event_dim = 1
        self.dtype = given.dtype if given.is_floating_point() else wide.dtype
        set_shapes(self, wide.shape[:-1], wide.shape[-1:], validate)
        if validate:
            largest = self.raw.detach().amax(-1)
            least = torch.zeros_like(largest) if probs is None else wide.detach().amin(-1)
            if any_of(~(largest.isfinite() & (least >= 0) & ((largest > 0) | (probs is None)))):
                raise ValueError(
                    f"OneHot expects `{name}` without NaN{'' if probs is None else ', < 0'} or "
                    "+inf and with at least one possible category in each row, but one of the "
                    f"{largest.numel()} rows (shape {tuple(given.shape)}) is invalid."
                )

    @lazy_property
    def logits(self) -> Tensor:
        """The normalised log-probabilities, ``(*batch, K)``."""
        return self.raw.log_softmax(-1) if self.given_probs is None else safe_log(self.raw)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities, ``(*batch, K)``."""
        return self.raw.softmax(-1) if self.given_probs is None else self.raw

    @property
    def num_atoms(self) -> int:
        return self.raw.shape[-1]

    @property
    def atoms(self) -> Tensor:  # type: ignore[override]  # made when asked for: n × n numbers
        return torch.eye(self.num_atoms, dtype=self.raw.dtype, device=self.raw.device)

    def has_atoms_of(self, other: Finite) -> bool:
        return isinstance(other, OneHot) and self.num_atoms == other.num_atoms

    def mix(self, weights: Tensor, fixed_atoms: bool = False) -> Tensor:
        return weights

    def at(self, index: Tensor) -> Tensor:
        return one_hot_vectors(index, self.raw)

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return super().sample(sample_shape).to(self.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def index_of(self, value: Tensor) -> tuple[Tensor, Tensor]:
        if value.shape[-1:] != self.event_shape:
            raise ValueError(
                f"expected one-hot vectors of length {self.num_atoms}, "
                f"but got shape {tuple(value.shape)}."
            )
        index = value.argmax(-1)
        return index, (self.at(index) == value).all(-1)

    def expand(self, batch_shape: _size, _instance: Any = None) -> OneHot:
        raw = self.raw.expand(*batch_shape, self.num_atoms)
        given = {"logits": raw} if self.given_probs is None else {"probs": raw}
        law = OneHot(**given, validate_args=False)
        law._validate_args, law.dtype = self._validate_args, self.dtype
        return law


class _OneHotRules(Law):
    """What both distributions of one-hot vectors share."""

    takes_weight = True

    @property
    def zero_one_type(self) -> torch.dtype:
        return self.q.dtype if isinstance(self.q, OneHot) else self.q._categorical._param.dtype

    def parameter(self) -> dict[str, Tensor]:
        """``{"logits": ...}`` or ``{"probs": ...}``, as the distribution was given."""
        raise NotImplementedError

    def rsample(
        self,
        shape: torch.Size,
        *,
        bridge: bool = True,
        antithetic: bool = False,
        weight: float | None = None,
    ) -> Tensor:
        ((name, given),) = self.parameter().items()
        probs = given.detach().softmax(-1) if name == "logits" else given.detach()
        uniforms = None
        if antithetic:
            uniforms = antithetic_uniforms(shape, self.batch_shape, probs.device)
        index = inverse_cdf_index(probs, shape, uniforms=uniforms)
        weight = weight if bridge else 0.5  # whose error is measured
        if name == "logits":
            return attach_one_hot(index, probs, logits=given, weight=weight)
        return attach_one_hot(index, probs, probs=given, weight=weight)

    def attach(self, z: Tensor) -> Tensor:
        ((name, given),) = self.parameter().items()
        probs = given.detach().softmax(-1) if name == "logits" else given.detach()
        if name == "logits":
            return attach_one_hot(z.argmax(-1), probs, logits=given)
        return attach_one_hot(z.argmax(-1), probs, probs=given)

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        ((name, given),) = self.parameter().items()
        log_p = given.log_softmax(-1) if name == "logits" else safe_log(given)
        return move_ball(z, z.new_ones(()), log_p, given if name == "probs" else None)


@register(OneHot)
class OneHotLaw(_OneHotRules, FiniteLaw):
    """The record of :class:`OneHot`."""

    q: OneHot

    def parameter(self) -> dict[str, Tensor]:
        return {"logits" if self.q.given_probs is None else "probs": self.q.raw}

    def draw(self, shape: torch.Size) -> Tensor:
        return self.q.at(self.q.sample_index(shape))


@register(OneHotCategorical, "pyro.OneHotCategorical")
class OneHotCategoricalLaw(_OneHotRules):
    """The record of torch's ``OneHotCategorical``."""

    def parameter(self) -> dict[str, Tensor]:
        inner = self.q._categorical
        if was_given(inner, "logits"):
            return {"logits": widen(inner.logits)}
        probs = widen(inner.probs)
        return {"probs": probs if probs.dtype == inner.probs.dtype else _normalised(probs)}

    def whole_table(self, validate: bool) -> Finite:
        table = OneHot(**self.parameter(), validate_args=False)
        table._validate_args = validate
        return table

    def boundary(self) -> Tensor | None:
        probs = self.parameter().get("probs")
        return None if probs is None else probs == 0

    def draw(self, shape: torch.Size) -> Tensor:
        return self.table().sample(shape).detach()


@register_kl(OneHot, OneHotCategorical)
@register_kl(OneHotCategorical, OneHot)
def _between_both(q: Distribution, p: Distribution) -> Tensor:
    records = law_of(q), law_of(p)
    for record in records:
        if not isinstance(record, _OneHotRules):
            name = type(record.q).__name__
            raise NotImplementedError(f"no divergence of a {name} from one-hot vectors is known.")
    return kl_divergence(*(record.table() for record in records))


def _normalised(probs: Tensor) -> Tensor:
    return probs / probs.sum(-1, keepdim=True)
