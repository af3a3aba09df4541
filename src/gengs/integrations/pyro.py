r"""Distributions for Pyro's models and guides, whose draws carry a gradient.

Pyro trains a discrete guide by the score function, or enumerates it. With the distributions of this
module a guide's discrete draw is differentiable instead, so that SVI takes the pathwise gradient:

- :class:`MidCDFLaw` draws exactly and moves the draw by the mid-CDF gradient, or by that of another
  estimator (:func:`gengs.rsample`);
- :class:`Finite` and :func:`truncate` make distributions on finitely many atoms, for models and
  guides.

**Use** ``TraceMeanField_ELBO``. The bound is

.. math:: E_q[\log p(x \mid z)] - \mathrm{KL}(q(z) \,\|\, p(z))

whose divergence is analytic here (all pairs of distributions that
:func:`torch.distributions.kl_divergence` knows). ``Trace_ELBO`` would put :math:`\log p(z) - \log
q(z)` at the draw in its place, and differentiate it along :math:`z`. For Poisson and other families
with a smooth log-PMF that works, up to the trapezoid rule's error; a table of atoms has no
derivative along :math:`z`, and rather than silently dropping that gradient these distributions
raise an error on the way back.

Example:
    >>> import pyro, torch
    >>> from pyro.distributions import Normal, Poisson
    >>> from pyro.infer import SVI, TraceMeanField_ELBO
    >>> pyro.clear_param_store(); pyro.set_rng_seed(0)
    >>> def model(x):                                      # how many photons, given the current?
    ...     count = pyro.sample("count", Poisson(torch.tensor(4.0)))
    ...     pyro.sample("x", Normal(count, 1.0), obs=x)
    >>> def guide(x):
    ...     logits = pyro.param("logits", torch.zeros(16))
    ...     pyro.sample("count", MidCDFLaw(Finite(torch.arange(16.0), logits=logits)))
    >>> svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), TraceMeanField_ELBO())
    >>> x = torch.tensor(6.3)
    >>> losses = [svi.step(x) for _ in range(400)]
    >>> int(pyro.param("logits").argmax())                 # 6 is the most likely count
    6
"""

__all__ = ["Finite", "MidCDFLaw", "truncate"]

from typing import Any

import torch
from pyro.distributions import TorchDistribution
from pyro.distributions.torch_distribution import TorchDistributionMixin
from torch import Tensor
from torch.distributions import Distribution, Independent, constraints, kl_divergence, register_kl
from torch.types import _size

from ..distributions import Finite as CoreFinite
from ..distributions import Truncated
from ..distributions import truncate as core_truncate
from ..estimators.checked_cost import leads_to
from ..gradients import rsample
from ..laws.finite_law import FiniteLaw
from ..laws.law import register
from ..numerics.tracing import validates


class PyroFinite(CoreFinite, TorchDistributionMixin):  # type: ignore[misc]
    """:class:`gengs.Finite`, with what Pyro asks of a distribution."""

    event_dim: int = 0  # an attribute of the law itself; Pyro's is a read-only property

    @staticmethod
    def infer_shapes(  # type: ignore[override]
        atoms: _size, logits: _size | None = None, probs: _size | None = None, event_dim: int = 0
    ) -> tuple[torch.Size, torch.Size]:
        """The batch and the event shape, from the shapes of the arguments."""
        table = logits if probs is None else probs
        if table is None:
            raise ValueError("infer_shapes of a Finite expects the shape of `logits` or `probs`.")
        batch, event = atoms[: len(atoms) - 1 - event_dim], atoms[len(atoms) - event_dim :]
        return torch.broadcast_shapes(batch, table[:-1]), torch.Size(event)

    def log_prob(self, value: Tensor) -> Tensor:
        return _honest(super().log_prob(value), value, self)


class PyroTruncated(Truncated, TorchDistributionMixin):  # type: ignore[misc]
    """:class:`gengs.Truncated`, with what Pyro asks of a distribution."""

    event_dim: int = 0

    def log_prob(self, value: Tensor) -> Tensor:
        return _honest(super().log_prob(value), value, self)


register(PyroFinite, PyroTruncated)(FiniteLaw)


def truncate(
    law: Distribution, level: int | None = None, **rule: Any
) -> PyroFinite | PyroTruncated:
    """:func:`gengs.truncate`, whose result Pyro takes; the distribution may be one of Pyro's own.

    Example:
        >>> from pyro.distributions import Poisson
        >>> truncate(Poisson(torch.tensor([2.0, 7.0])), 12).to_event(1).event_shape
        torch.Size([2])
    """
    table = core_truncate(law, level, **rule)
    made: PyroFinite | PyroTruncated
    made = _as(PyroTruncated if isinstance(table, Truncated) else PyroFinite, table)
    return made


# in a model or a guide it is called like the law it is
Finite = PyroFinite


class MidCDFLaw(TorchDistribution):
    """A discrete distribution whose exact draws move with its parameters.

    Args:
        law: Any discrete distribution, as for :func:`gengs.rsample`: a count family, a multinomial,
            one of Pyro's compound laws, a :class:`Finite`, or any that can be truncated to one.
        validate_args: Whether to check values; on by default.
        by: Whose gradient, as for :func:`gengs.rsample`; ``MidCDF()`` by default.

    Example:
        >>> from pyro.distributions import Poisson
        >>> rate = torch.tensor([0.5, 3.0], requires_grad=True)
        >>> z = MidCDFLaw(Poisson(rate)).to_event(1).rsample()
        >>> bool((z == z.round()).all()), z.requires_grad
        (True, True)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = True

    @staticmethod
    def infer_shapes(**shapes: _size) -> Any:
        """Unknown: the argument is a distribution, and no tensor."""
        raise NotImplementedError(
            "MidCDFLaw is made of a distribution, whose shapes are its own: call infer_shapes of "
            "its class."
        )

    def __init__(
        self, law: Distribution, validate_args: bool | None = None, *, by: Any = None
    ) -> None:
        if not isinstance(law, Distribution):
            raise TypeError(f"MidCDFLaw expects a distribution, but got {type(law).__name__}.")
        if isinstance(law, Independent):
            raise TypeError(
                "MidCDFLaw expects the distribution of one draw, but got an Independent of event "
                f"shape {tuple(law.event_shape)}; call .to_event() on the result instead."
            )
        self.law, self.by = law, by
        super().__init__(law.batch_shape, law.event_shape, validate_args=False)
        self.has_enumerate_support = law.has_enumerate_support
        self._validate_args = validates(validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint | None:
        """That of the distribution."""
        return self.law.support

    def rsample(self, sample_shape: _size = torch.Size()) -> Tensor:
        """Draws that carry the gradient."""
        return rsample(self.law, sample_shape, self.by)

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self.law.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _honest(self.law.log_prob(value), value, self)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self.law.enumerate_support(expand)

    def entropy(self) -> Tensor:
        return self.law.entropy()

    @property
    def mean(self) -> Tensor:
        return self.law.mean

    @property
    def variance(self) -> Tensor:
        return self.law.variance

    def expand(self, batch_shape: _size, _instance: Any = None) -> "MidCDFLaw":
        law = self.law.expand(torch.Size(batch_shape))
        return MidCDFLaw(law, self._validate_args, by=self.by)

    def __repr__(self) -> str:
        return f"MidCDFLaw({self.law})"


def _as(kind: type[Any], law: Distribution) -> Any:
    """A distribution of another class with the same tensors: nothing is computed anew."""
    result = object.__new__(kind)
    result.__dict__.update(vars(law))
    return result


@register_kl(MidCDFLaw, Distribution)
def _midcdf_any(q: MidCDFLaw, p: Distribution) -> Tensor:
    return kl_divergence(q.law, p.law if isinstance(p, MidCDFLaw) else p)


def _honest(log_prob: Tensor, value: Tensor, law: Distribution) -> Tensor:
    """``log_prob``, whose way back to ``value`` raises an error where there is none."""
    if not value.requires_grad or leads_to(log_prob, value):
        return log_prob

    def refuse(_: Tensor) -> None:
        raise RuntimeError(
            f"the log-probability of a table of atoms ({type(law).__name__}) has no derivative "
            "along the value; use TraceMeanField_ELBO, which takes the divergence of both, "
            "in place of Trace_ELBO."
        )

    nothing = value.flatten()[:0].sum()  # 0, whatever the value: there for the way back alone
    nothing.register_hook(refuse)
    return log_prob + nothing.to(log_prob.dtype)
