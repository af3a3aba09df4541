"""A distribution that gengs knows nothing of but its own methods.

Which of them say what it is follows from where they are written:

- a ``log_prob`` that is at least as new as ``sample`` is its PMF: its probabilities are a table
  like any other. Where ``sample`` is an ancestor's with another ``log_prob``, draws are made from
  the table;
- a ``sample`` that is newer than ``log_prob`` is a small program, and nothing else is known.
"""

__all__ = ["ByLogProb"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..numerics.tracing import any_of, validates
from ..tables.finite import Finite
from ..tables.parameter_checks import check_parameters
from ..tables.total_mass import require_total_mass
from ..tables.truncated import Truncated
from ..tables.windows import window_of_support
from .law import Law, register

_SMALL = 256
"""With so many values or fewer, all of them are in the table."""


@register(Distribution)
class ByLogProb(Law):
    """The record of a distribution that no other record is for."""

    @property
    def has_pmf(self) -> bool:  # type: ignore[override]
        """Whether ``log_prob`` belongs to this distribution: no later class redraws."""
        weighs, draws = (_age(type(self.q), name) for name in ("log_prob", "sample"))
        return weighs <= draws and type(self.q).log_prob is not Distribution.log_prob

    @property
    def has_sample(self) -> bool:
        """Whether ``sample`` belongs to it: it was not written for another ``log_prob``."""
        kind = type(self.q)
        if kind.sample is Distribution.sample and kind.rsample is Distribution.rsample:
            return False
        weighs, draws = (_age(kind, name) for name in ("log_prob", "sample"))
        owner: Any = kind.__mro__[draws]
        return draws <= weighs or owner.log_prob is Distribution.log_prob

    @property
    def traces_sample(self) -> bool:  # type: ignore[override]
        return not self.has_pmf and not self.q.has_rsample

    def draw(self, shape: torch.Size) -> Tensor:
        if self.has_sample:
            return super().draw(shape)
        return self.table().sample(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self.require_pmf()
        return super().log_prob(value)

    @property
    def mean(self) -> Tensor:
        # an inherited mean may be another distribution's
        mean, *others = (_age(type(self.q), name) for name in ("mean", "log_prob", "sample"))
        own = mean <= min(others)
        return super().mean if own else self.table().mean

    def table(self, tolerance: float = 1e-6) -> Finite:
        self.require_pmf()
        name = type(self.q).__name__
        if not self._on_a_lattice():
            raise TypeError(
                f"{name} is continuous: the mid-CDF rule needs a distribution with a PMF. Draw by "
                "its own rsample where it has one; RLOO and REINFORCE need its log_prob only."
            )
        if self.q.event_shape:
            raise TypeError(
                f"{name} draws vectors of shape {tuple(self.q.event_shape)}, and has no record "
                "that enumerates them; make it a gengs.Finite on its vectors, register a record "
                "(gengs.register), or use RLOO."
            )
        if self._values() is not None:  # all of its values: no window has to be searched for
            validate = validates(vars(self.q).get("_validate_args"))
            if validate:
                check_parameters(self.q)
            return Truncated(self, window_of_support(self), validate)
        require_total_mass(self)
        return super().table(tolerance)

    def _values(self) -> int | None:
        """How many values it has, between a smallest and a largest one; ``None`` if many."""
        if self.lower is None or self.upper is None or not self.upper.numel():
            return None
        values = int(self.upper.max()) - self.lower + 1
        return values if values <= _SMALL else None

    def log_clipped(self, k: Tensor, first: int | None) -> Tensor:
        values = self._values()
        if first is None or values is None or k.shape[-1] < values:
            return super().log_clipped(k, first)
        logits = self.log_pmf(k)  # nothing lies beyond
        if any_of(logits.detach().logsumexp(-1).abs() > 1e-3):
            require_total_mass(self)
            return super().log_clipped(k, first)
        return self.join([logits])

    def _on_a_lattice(self) -> bool:
        """Whether draws are discrete, as far as the distribution says."""
        try:
            return bool(getattr(self.q.support, "is_discrete", True))
        except NotImplementedError:
            return True


def _age(kind: type, method: str) -> int:
    return next(i for i, cls in enumerate(kind.__mro__) if method in vars(cls))
