r"""What gengs knows of a distribution: one record, one registry, one identity test.

A :class:`Law` is the record of one distribution object. Its file, its *room*, holds everything that
is known of that distribution: support, stable log-PMF and tails, how a draw moves with each
parameter, its neighbours, its table, how it relaxes, its name on the command line. The base class
has defaults that need a ``log_prob`` on integers and nothing else.

**Couplings and strategies.** When a parameter :math:`\theta_i` moves, probability flows along edges
from value to value, :math:`\phi_i(z \to z')` per unit of :math:`\theta_i`, and exactly

.. math::
    \partial_i E f = \sum_{z \to z'} \phi_i(z \to z')\, (f(z') - f(z)).

A record is a choice of edges (the coupling): for counts the line, for vectors one ball that changes
its box. What is done with a difference is the strategy. Two need the record:

- **mid** (:meth:`Law.attach`): the trapezoid rule on each edge at the drawn value,
  :math:`dz/d\theta_i = \tfrac12 \sum_{z'} [\mathrm{out}\,(z' - z) + \mathrm{in}\,(z - z')]`, with
  the rates :math:`\mathrm{out} = \phi_i(z \to z') / p(z)`,
  :math:`\mathrm{in} = \phi_i(z' \to z) / p(z)`;
- **differences** (:meth:`Law.neighbour`): one edge of the drawn value with a weight that makes
  :math:`w\,(f(z') - f(z))` an unbiased gradient. Mid plus the error of the trapezoid rule, measured
  on that edge, is unbiased too (``debias=``).

**One identity test.** A subclass of ``Poisson`` with a ``sample`` or a ``log_prob`` of its own is
another distribution: :func:`law_of` gives it the record of its parent only where it inherits both.
Otherwise it is known by its ``log_prob`` (:mod:`gengs.laws.by_log_prob`).

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572 (smoothed couplings)
"""

from __future__ import annotations

__all__ = ["Law", "Spec", "base_of", "law_of", "records", "register"]

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from ..numerics.gumbel_softmax import Temperature, relaxed_value
from ..numerics.inverse_cdf import antithetic_uniforms
from ..numerics.tracing import validates
from ..tables.finite import Finite
from ..tables.parameter_checks import check_parameters
from ..tables.truncated import Truncated
from ..tables.windows import window_for_all, window_of_support
from .pmf import PMF


@dataclass(frozen=True)
class Spec:
    """How a distribution is written on the command line: ``binomial(20, 0.3)``."""

    name: str
    """Its name, in lower case, with hyphens."""
    fields: tuple[str, ...]
    """Its parameters, in order."""
    expects: str
    """What it expects of them, for an error message."""
    make: Callable[..., Distribution]
    """From tensors by field name (and ``validate_args``) to the distribution."""
    constant: tuple[str, ...] = ()
    """Fields that get no gradient."""
    vectors: tuple[str, ...] = ()
    """Fields that are lists of numbers."""


class Law(PMF):
    """What gengs knows of a distribution. Subclass it and :func:`register` it for your own.

    Args:
        q: The distribution, without ``Independent`` around it.
    """

    spec: ClassVar[Spec | None] = None
    """Its name and parameters on the command line."""
    compound: bool = False
    """Whether it is drawn in stages: a plain draw does not tell what they drew."""
    traces_sample: bool = False
    """Whether a :func:`gengs.differentiable` block follows the draws inside ``sample()``."""
    has_pmf: bool = True
    """Whether the probabilities of its draws are known."""
    one_sided_differences: bool = True
    """Whether :meth:`neighbour` has the one-sided derivative at a boundary."""

    takes_weight: bool = False
    """Whether :meth:`rsample` takes ``weight``: of vectors between which all edges exist."""
    wide_draws: bool = False
    """Whether draws are wide enough where the parameters have half precision."""
    several_neighbours: bool = False
    """Whether a draw has many neighbours: asked again, :meth:`neighbour` gives another one."""
    numbers: int | None = None
    """How many numbers a draw and its gradient keep, where that is not about its table."""
    cuts_table: bool = False
    """Whether a truncation may cut it although it is a table already."""

    @property
    def zero_one_type(self) -> torch.dtype | None:
        """Of vectors of 0 and 1, the parameters' type, which holds them exactly."""
        return None

    def narrowed(self, z: Tensor) -> Tensor:
        """Draws for a user: vectors of 0 and 1 in the type of their parameters."""
        return z if self.zero_one_type is None else z.to(self.zero_one_type)

    # ------------------------------------------------------------------------------------- tables

    def whole_table(self, validate: bool) -> Finite | None:
        """All values as atoms, for a law that is a table already; ``None`` for others."""
        return None

    def table(self, tolerance: float = 1e-6) -> Finite:
        """All values as atoms, or a truncation that loses at most ``tolerance`` of the mass."""
        validate = validates(vars(self.q).get("_validate_args"))
        whole = self.whole_table(validate)
        if whole is not None:
            return whole
        if self.size is not None:
            if validate:
                check_parameters(self.q)
            return Truncated(self, window_of_support(self), validate)
        check_parameters(self.q)  # to choose a window is to read them anyway
        return Truncated(self, window_for_all(self.for_window(), tolerance), validate)

    def relax(
        self,
        temperature: Temperature,
        shape: torch.Size,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Relaxed values ``(*shape, *batch, *event)``; by default of its table."""
        table = self.table()
        if isinstance(temperature, Tensor) and temperature.dim():
            batch = torch.broadcast_shapes(table.batch_shape, temperature.shape)
            table = table if batch == table.batch_shape else table.expand(batch)
        return relaxed_value(table, temperature, shape, hard, generator)

    # -------------------------------------------------------------------------------------- draws

    def draw(self, shape: torch.Size) -> Tensor:
        """Exact draws, ``(*shape, *batch, *event)``, without a gradient in the parameters."""
        with torch.no_grad():
            drawn: Tensor = self.q.sample(shape)
        return drawn

    def attach(self, z: Tensor) -> Tensor:
        """The draw ``z`` with the mid-rule gradient in every parameter; by default of its table."""
        return law_of(self.table()).attach(z)

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        """Exact draws that carry the mid-rule gradient.

        Args:
            shape: The sample shape.
            bridge: Whether a draw may move across rare atoms between likely ones. Without it,
                draws move between neighbours only, and so do the stages of a mixture.
            antithetic: Whether draws come in stratified pairs ``(u, 1 - u)``.
        """
        if type(self).attach is Law.attach:
            return law_of(self.table()).rsample(shape, bridge=bridge, antithetic=antithetic)
        return self.attach(self.antithetic(shape) if antithetic else self.draw(shape))

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        """One edge of each draw: the neighbour ``z'``, and the weight of ``f(z') - f(z)``.

        The weight, ``(*shape, *batch)``, is a tensor whose *gradient* is the rate of the edge over
        the chance of choosing it, so that it flows into the parameters.
        """
        return law_of(self.table()).neighbour(z, validate)

    def quantile(self, u: Tensor) -> Tensor:
        """The smallest values with ``P(X <= k) >= u``, ``(*shape, *batch)``; of its table."""
        return self.table(1e-9).icdf(u).detach()

    def antithetic(self, shape: torch.Size) -> Tensor:
        """Exact draws in stratified pairs, ``(*shape, *batch)``, without a gradient."""
        if self.q.event_shape:
            raise TypeError(
                f"antithetic draws need an order of the values, and the vectors of "
                f"{type(self.q).__name__} have none; draw independent ones."
            )
        return self.quantile(antithetic_uniforms(shape, self.batch_shape, self.like.device))

    def require_pmf(self) -> None:
        """Raise a ``TypeError`` where nothing is known of the probabilities of its draws."""
        if not self.has_pmf:
            raise TypeError(
                f"{type(self.q).__name__} has a sample() of its own and no log_prob that belongs "
                "to it, so nothing is known of its probabilities; give it one, or draw in a "
                "gengs.differentiable() block, which follows the draws inside sample()."
            )

    # ---------------------------------------------------------------------------------- estimators

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-probability of draws of this law."""
        return self.q.log_prob(value)

    @property
    def mean(self) -> Tensor:
        """The mean, differentiable; of the table where the law has none."""
        try:
            mean: Tensor = self.q.mean
        except NotImplementedError:
            mean = self.table().mean
        return mean

    @classmethod
    def explicit(cls, prior: Distribution, raw: Tensor, validate: bool | None) -> Any:
        """A distribution of the prior's family whose parameter is made of raw numbers."""
        raise TypeError(
            f"{type(prior).__name__} has no explicit posterior of one number for each latent."
        )


# ----------------------------------------------------------------------------------- the registry

_RECORDS: dict[type | str, type[Law]] = {}
"""By class, or by ``package.Name`` for classes of packages that need not be installed."""

R = TypeVar("R", bound=type[Law])


def register(*kinds: type[Distribution] | str) -> Callable[[R], R]:
    """Let gengs know a distribution: a decorator for its record, as torch's ``register_kl``.

    Args:
        kinds: The classes that the record is for; ``"package.Name"`` for those of a package that
            need not be installed.

    Example:
        >>> from torch.distributions import Poisson
        >>> class Photons(Poisson):  # draws and weighs as its parent does not
        ...     def sample(self, sample_shape=torch.Size()):
        ...         return super().sample(sample_shape)
        >>> @register(Photons)
        ... class PhotonsLaw(type(law_of(Poisson(1.0)))):
        ...     pass
    """
    for kind in kinds:
        if not isinstance(kind, str) and not _is_subclass(kind, Distribution):
            raise TypeError(f"register expects classes of distributions, but got {kind!r}.")

    def enter(record: R) -> R:
        if not _is_subclass(record, Law):
            raise TypeError(f"register expects a subclass of gengs.Law as record, got {record!r}.")
        _RECORDS.update(dict.fromkeys(kinds, record))
        return record

    return enter


def _is_subclass(kind: object, parent: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, parent)


def records() -> Iterator[type[Law]]:
    """All records, each once, in the order of their registration."""
    return iter(dict.fromkeys(_RECORDS.values()))


def base_of(q: Any) -> Any:
    """The distribution without the dimensions that ``Independent`` declares as an event."""
    while isinstance(q, Independent):
        q = q.base_dist
    return q


def law_of(q: Distribution) -> Law:
    """The record of a distribution: the one answer to "is this really a Poisson?".

    The nearest registered class among its ancestors counts if ``sample`` and ``log_prob`` are that
    class's own; the last ancestor, ``Distribution``, is known by its ``log_prob``.
    """
    q = base_of(q)
    kind = type(q)
    for cls in kind.__mro__:
        record = _RECORDS.get(cls)
        if record is None:
            record = _RECORDS.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
        if record is not None and (cls is Distribution or _inherits(kind, cls)):
            return record(q)
    raise TypeError(f"expected a torch distribution, but got {kind.__name__}.")


def _inherits(kind: Any, cls: Any) -> bool:
    return kind.sample is cls.sample and kind.log_prob is cls.log_prob
