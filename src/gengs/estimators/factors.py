"""The distribution of a latent vector, as estimators see it: independent factors.

``Independent(Poisson(rate), 1)`` with ``rate`` of shape ``(100, 50)`` is a batch of 100 vectors of
50 factors. :class:`Factors` holds the factors' distribution and knows which dimensions are batch,
which are factors and which belong to one atom (vector atoms), so that no estimator has to.

Shapes: values are ``(S, *batch, *factors, *event)``, costs ``(S, *batch)``, tables of
log-probabilities ``(*batch, *factors, n)``.
"""

__all__ = ["BoundaryWarning", "Factors"]

import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent
from torch.distributions.utils import lazy_property

from ..laws.law import Law, law_of
from ..laws.score_limits import missing_score
from ..numerics.tracing import any_of, carries_gradient, tensors_of, validates
from ..tables.finite import Finite


class BoundaryWarning(UserWarning):
    """A parameter lies on a boundary where the estimator has no one-sided derivative."""


class Factors:
    """A distribution of independent factors.

    Args:
        q: The law: a scalar one, or ``Independent`` of one, whose event is the latent vector.
        owner: The name of the estimator, for messages.
        context: What a learned baseline may see besides the distribution.

    Attributes:
        law: The factors' distribution, of batch shape ``batch + factors``.
        given: The same, as it was given: in half precision ``law`` is its table.
        batch: The shape of the result of an expectation.
        shape: The shape of one latent vector, in factors.
        event: The shape of one atom: empty for numbers.
        validate: Whether costs and gradients are checked.
        deferred_checks: What must not be true of the data, and the error or warning for it, or
            ``None`` if it turns out to be harmless.
    """

    def __init__(self, q: Distribution, owner: str, context: Tensor | None = None) -> None:
        if not isinstance(q, Distribution):
            raise TypeError(
                f"{owner}.expect expects a torch distribution as `q`, but got {type(q).__name__}."
            )
        self.validate = validates(vars(q).get("_validate_args"))
        self.deferred_checks: list[tuple[Tensor, Callable[[], Exception | None]]] = []
        factor_dims = 0
        while isinstance(q, Independent):
            factor_dims += q.reinterpreted_batch_ndims
            q = q.base_dist
            self.validate = self.validate and validates(vars(q).get("_validate_args"))
        # half precision cannot hold a count past 256 (bfloat16) or 2048: a table is wider
        half = any(t.is_floating_point() and t.dtype.itemsize < 4 for _, _, t in tensors_of(q))
        record = law_of(q)
        self.given, self.law = q, record.table() if half and not record.wide_draws else q
        self.owner, self.context = owner, context
        cut = len(q.batch_shape) - factor_dims
        whole = torch.Size(q.batch_shape)  # other libraries' laws may have a tuple
        self.batch, self.shape, self.event = whole[:cut], whole[cut:], q.event_shape
        if 0 in self.shape:
            raise ValueError(
                f"{owner} expects a latent vector of one number or more, but got one of shape "
                f"{tuple(self.shape)}."
            )

    @lazy_property
    def record(self) -> Law:
        """What is known of the factors' distribution."""
        return law_of(self.law)

    @lazy_property
    def finite(self) -> Finite:
        """The factors on finitely many atoms, truncated (1e-6 of the mass) where needed."""
        return self.record.table()

    @lazy_property
    def mean(self) -> Tensor:
        """The factors' mean, differentiable: ``(*batch, *factors, *event)``."""
        return self.record.mean

    def sample(self, samples: int | torch.Size) -> Tensor:
        """Exact draws, ``(S, *batch, *factors, *event)``; a gradient reaches learned atoms only."""
        shape = torch.Size([samples]) if isinstance(samples, int) else samples
        draws = self.record.draw(shape)
        # a cost sees the same kind of number from every law; torch's Categorical draws integers
        return draws if draws.is_floating_point() else draws.to(self._parameter_dtype())

    def run_checks(self) -> None:
        """One host sync for all deferred checks; raise, or warn of, those that fail."""
        checks = self.deferred_checks
        if not self.validate or not checks or not any_of(*(flag for flag, _ in checks)):
            return
        for flag, word in checks:
            if any_of(flag):
                said = word()
                if said is None:
                    continue
                if not isinstance(said, Warning):
                    raise said
                warnings.warn(said, stacklevel=3)

    def check_boundary(self) -> None:
        """Warn, when checks are run, of elements on a boundary of their parameters."""
        boundary = self.boundary()
        if boundary is not None:
            sentence = (
                f"{self.owner}: some parameter of {type(self.law).__name__} lies on a boundary (a "
                "rate of 0, a probability of 0 or 1), from which a draw never leaves: the gradient "
                "there is not the one-sided derivative. Exact has it; MidCDF and FiniteDifference "
                "have it for counts."
            )
            self.deferred_checks.append((boundary, partial(BoundaryWarning, sentence)))

    def boundary(self) -> Tensor | None:
        """Which elements sit on a boundary of their parameters; ``None`` where none can."""
        if not any(tensor.requires_grad for _, _, tensor in tensors_of(self.law)):
            return None
        try:
            return self.record.boundary()
        except TypeError:  # no law of integers
            return None

    def refuse_learned_atoms(self) -> None:
        """Raise where the atoms require a gradient that the estimator does not have."""
        atoms = vars(self.law).get("atoms")  # those of a one-hot law are made when asked for
        if isinstance(self.law, Finite) and atoms is not None and carries_gradient(atoms):
            raise TypeError(
                f"{self.owner} does not differentiate with respect to atoms, but these require a "
                "gradient; detach them, or use GenGS, MidCDF, RLOO or UnOrd."
            )

    def _parameter_dtype(self) -> torch.dtype:
        kinds = [t.dtype for _, _, t in tensors_of(self.law) if t.is_floating_point()]
        return max(kinds, key=lambda kind: kind.itemsize, default=torch.get_default_dtype())

    def log_prob(self, value: Tensor) -> Tensor:
        """The joint log-probability of values, ``(S, *batch)``, as the score needs it."""
        if (why := missing_score(self.law)) is not None:
            raise TypeError(f"{self.owner}: {why}")
        return self.sum_factors(self.record.log_prob(value))

    def sum_factors(self, x: Tensor) -> Tensor:
        """Sum over the factors, which come last in ``x``."""
        return x.flatten(x.dim() - len(self.shape)).sum(-1) if self.shape else x
