r"""A distribution on finitely many atoms, the centre of the library.

.. math:: P(Z = c_k) = \pi_k, \qquad k = 0, \dots, n - 1

The atoms :math:`c_k` are numbers, vectors or matrices; the distribution is its table of ``logits``
:math:`\log \pi_k`, from which ``probs`` :math:`\pi_k` are made when they are asked for. A
truncation produces one, an implicit posterior *is* one (:math:`\hat\pi =
\mathrm{softmax}(\hat\lambda)` of a network's :math:`\hat\lambda`, Algorithm 3 of the GenGS paper),
a PMF that a user owns is one. The linear map (its eq. (3))

.. math:: \mathcal{T}(w) = \sum_k w_k c_k

turns weights on the simplex into values: of a one-hot vector it is the atom, of :math:`\pi` the
mean, of a relaxed one-hot vector the relaxed value.
"""

from __future__ import annotations

__all__ = ["Finite"]

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from ..numerics.inverse_cdf import inverse_cdf_index, pick
from ..numerics.tails import safe_log
from ..numerics.tracing import any_of, not_finite, product, set_shapes, tensors_of, validates
from .discrete import Discrete
from .finite_checks import batch_of, may_repeat, require_values, require_weights
from .supports import OneOf, refuse_table

if TYPE_CHECKING:
    from .windows import Certificate


class Finite(Discrete):
    r"""The distribution that gives the atom :math:`c_k` the probability :math:`\pi_k`.

    Args:
        atoms: What can be drawn, of shape ``(*batch, n, *event)``; the batch part may be missing
            (atoms shared by all elements). Integers become the default floating type, and half
            precision becomes ``float32``: bfloat16 cannot hold 257.
        logits: Unnormalised log-probabilities, of shape ``(*batch, n)``; ``-inf`` forbids an atom.
        probs: Unnormalised probabilities, instead of ``logits``. An atom of probability 0 is not
            forbidden: the derivative of an expectation in that probability is one-sided.
        event_dim: How many trailing dimensions of ``atoms`` belong to one atom: 0 for numbers, 1
            for vectors, 2 for matrices.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> dice = Finite(torch.arange(1, 7), probs=torch.ones(6))
        >>> dice.mean, dice.cdf(torch.tensor(2.0))
        (tensor(3.5000), tensor(0.3333))
    """

    arg_constraints = {"logits": constraints.real_vector, "probs": constraints.simplex}
    has_enumerate_support = True

    logits: Tensor
    r"""The log-probabilities :math:`\log \pi`, of shape ``(*batch, n)``."""
    certificate: Certificate | None = None
    """What a truncation lost (see :class:`gengs.Certificate`); ``None`` if nothing was cut."""
    given_probs: Tensor | None = None
    """The probabilities, where these were given; an atom may have none and get some."""
    made_from: tuple[Callable[..., Finite], tuple[Any, ...], dict[str, Any]]
    """The call that makes this distribution from its parameters, for a deep copy."""

    def __init__(
        self,
        atoms: Tensor,
        logits: Tensor | None = None,
        probs: Tensor | None = None,
        *,
        event_dim: int = 0,
        validate_args: bool | None = None,
    ) -> None:
        if (logits is None) == (probs is None):
            raise ValueError("Finite expects exactly one of `logits` and `probs`.")
        validate = validates(validate_args)
        name, given = ("probs", cast(Tensor, probs)) if logits is None else ("logits", logits)
        require_weights(atoms, name, given)
        self.made_from = (
            *(Finite, (atoms,)),
            {name: given, "event_dim": event_dim, "validate_args": validate_args},
        )
        weights = given.to(_at_least_float32(given.dtype))
        atoms = atoms.to(_at_least_float32(atoms.dtype))
        dtype = given.dtype if given.is_floating_point() else weights.dtype
        if logits is None:
            normalised = weights / weights.sum(-1, keepdim=True)
            self.set_table(atoms, safe_log(normalised), event_dim, dtype, validate)
            self.given_probs = normalised.expand_as(self.logits)
            fault = ~(normalised.detach().sum(-1) > 0) | (weights.detach().amin(-1) < 0)
        else:
            table = weights.movedim(-1, 0).log_softmax(0).movedim(0, -1)
            self.set_table(atoms, table, event_dim, dtype, validate)
            fault = self.logits.detach().amax(-1).isnan()  # NaN, +inf, or every atom forbidden
        if validate and any_of(fault, not_finite(atoms), may_repeat(atoms, event_dim)):
            refuse_table(self, name, weights.detach(), fault)

    def set_table(
        self, atoms: Tensor, logits: Tensor, event_dim: int, dtype: torch.dtype, validate: bool
    ) -> None:
        """Take a normalised table: what every way to make a distribution ends with."""
        # atoms first in memory: sums over a dozen of them run along the batch, five times as fast
        logits = logits.movedim(-1, 0).contiguous().movedim(0, -1)
        batch = batch_of(atoms, logits, event_dim)
        self.atoms = atoms
        self.logits = logits.expand(*batch, logits.shape[-1])
        self.event_dim = event_dim
        self.dtype = dtype
        event = atoms.shape[atoms.dim() - event_dim :]
        set_shapes(self, batch, event, validate)

    # ------------------------------------------------------------------ the PMF and what sums it

    @property
    def probs(self) -> Tensor:
        r"""The probabilities :math:`\pi`, of shape ``(*batch, n)``."""
        if self.given_probs is not None:
            return self.given_probs
        return self.logits.exp()

    @property
    def reachable(self) -> Tensor | None:
        """Which atoms the parameters can give probability, ``(*batch, n)``; ``None`` for all."""
        return self.logits.detach() > -torch.inf if self.given_probs is None else None

    def boundary(self) -> Tensor | None:
        """Which probabilities are 0 and can become positive; ``None`` where none can."""
        return None if self.given_probs is None else self.given_probs == 0

    def in_order(self) -> tuple[Tensor, Tensor]:
        """Scalar atoms from the least on, and their probabilities."""
        atoms, order = self.atoms.sort(-1)
        if order.dim() == 1:
            return atoms, self.probs.movedim(-1, 0).index_select(0, order).movedim(0, -1)
        return atoms, self.probs.gather(-1, order.expand_as(self.probs))

    def has_atoms_of(self, other: Finite) -> bool:
        """Whether both are known to have the same atoms, without reading them."""
        return self.atoms is other.atoms

    @property
    def num_atoms(self) -> int:
        """How many atoms the distribution has."""
        return self.logits.shape[-1]

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """The set of atoms, as a constraint that can be checked."""
        return OneOf(self)

    def mix(self, weights: Tensor, fixed_atoms: bool = False) -> Tensor:
        r"""The linear map :math:`\mathcal{T}(w) = \sum_k w_k c_k`: weights to values.

        Args:
            weights: Weights ``(*sample, *batch, n)``.
            fixed_atoms: Whether atoms that are learned get no gradient from it.
        """
        atoms = self.atoms.detach() if fixed_atoms else self.atoms
        wide = torch.promote_types(atoms.dtype, weights.dtype)
        weights, atoms = weights.to(wide), atoms.to(wide)
        if atoms.dim() > 1 + self.event_dim:  # each element has its own
            weights = weights.reshape(weights.shape + (1,) * self.event_dim)
            return (weights * atoms).sum(-1 - self.event_dim)
        value = product(weights, atoms.reshape(self.num_atoms, -1))
        return value.reshape(weights.shape[:-1] + self.event_shape)

    @property
    def mean(self) -> Tensor:
        return self.mix(self.probs)

    @property
    def variance(self) -> Tensor:
        deviation = self.atoms - self.mean.unsqueeze(-1 - self.event_dim)
        probs = self.probs.reshape(self.probs.shape + (1,) * self.event_dim)
        return (probs * deviation.square()).sum(-1 - self.event_dim)

    @property
    def mode(self) -> Tensor:
        return self.at(self.logits.argmax(-1))

    def entropy(self) -> Tensor:
        return -(self.probs * self.logits.masked_fill(self.logits == -torch.inf, 0.0)).sum(-1)

    def index_of(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """For each value the index of its atom, and whether there is one."""
        event = value.shape[value.dim() - self.event_dim :]
        if value.dim() < self.event_dim or event != self.event_shape:
            raise ValueError(
                f"Finite expects values that end in the shape of an atom, "
                f"{tuple(self.event_shape)}, but got shape {tuple(value.shape)}."
            )
        hits = value.unsqueeze(-1 - self.event_dim) == self.atoms
        for _ in range(self.event_dim):
            hits = hits.all(-1)
        return hits.to(torch.int8).argmax(-1), hits.any(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        index, found = self.index_of(value)
        require_values(self, value, index, found)
        return pick(self.logits, index).where(found, -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        r""":math:`P(Z \le v)`, for scalar atoms."""
        atoms, cdf = self._cumulative("cdf")
        below = (atoms <= value.unsqueeze(-1)).sum(-1)
        padded = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
        return pick(padded, below)

    def icdf(self, value: Tensor) -> Tensor:
        r"""The smallest atom :math:`c` with :math:`P(Z \le c) \ge v`, for scalar atoms."""
        atoms, cdf = self._cumulative("icdf")
        # rounding may leave the whole sum below 1: the quantile of 1 is the last possible atom
        reached = cdf >= value.unsqueeze(-1).minimum(cdf[..., -1:])
        return pick(atoms, reached.to(torch.int8).argmax(-1))

    def _cumulative(self, what: str) -> tuple[Tensor, Tensor]:
        """The atoms in order, and their cumulative probabilities: summed the same way for all."""
        if self.event_dim:
            raise NotImplementedError(
                f"Finite.{what} needs scalar atoms; these have event_dim={self.event_dim}."
            )
        atoms, order = self.atoms.expand_as(self.probs).sort(-1)
        return atoms, self.probs.gather(-1, order).cumsum(-1)

    # ------------------------------------------------------------------------------- drawing

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self.at(self.sample_index(sample_shape))

    def sample_index(
        self, sample_shape: _size = torch.Size(), generator: torch.Generator | None = None
    ) -> Tensor:
        """Exact draws, as indices of atoms; impossible atoms are never drawn."""
        return inverse_cdf_index(self.probs.detach(), torch.Size(sample_shape), generator)

    def at(self, index: Tensor) -> Tensor:
        """The atoms at indices ``(*sample, *batch)``."""
        if self.atoms.dim() == 1 + self.event_dim:
            # not self.atoms[index]: under vmap a single index would have to become a Python number
            drawn = self.atoms.index_select(0, index.reshape(-1))
            return drawn.reshape(index.shape + self.event_shape)
        where_n = -1 - self.event_dim
        atoms = self.atoms.expand(*self.batch_shape, self.num_atoms, *self.event_shape)
        atoms = atoms.movedim(where_n, -1)  # (*batch, *event, n)
        index = index.reshape(index.shape + (1,) * (self.event_dim + 1))
        index = index.expand(*index.shape[: index.dim() - self.event_dim - 1], *self.event_shape, 1)
        return atoms.expand(*index.shape[:-1], self.num_atoms).gather(-1, index).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        first = self.atoms.movedim(-1 - self.event_dim, 0)  # (n, *batch or nothing, *event)
        missing = len(self.batch_shape) - (first.dim() - 1 - self.event_dim)
        first = first.reshape(first.shape[:1] + (1,) * missing + first.shape[1:])
        if not expand:
            return first.clone()  # laws on the same atoms may share them
        return first.expand(self.num_atoms, *self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Finite:
        law = self._get_checked_instance(Finite, _instance)
        shape = (*batch_shape, self.num_atoms)
        table = self.logits.expand(shape)
        law.set_table(self.atoms, table, self.event_dim, self.dtype, self._validate_args)
        if self.given_probs is not None:
            law.given_probs = self.probs.expand(shape)
        law.made_from = Finite.expand, (self, batch_shape), {}
        return law

    def __deepcopy__(self, memo: dict[int, Any]) -> Finite:
        """A copy from copied parameters: a table that was computed from them cannot be copied.

        Parameters that were computed themselves keep their gradient to what they come from.
        """
        make, args, options = self.made_from
        for part in (*args, *options.values()):
            held = tensors_of(part) if isinstance(part, Distribution) else [(None, "", part)]
            memo |= {id(t): t.clone() for *_, t in held if isinstance(t, Tensor) and not t.is_leaf}
        return make(*deepcopy(args, memo), **deepcopy(options, memo))

    def __repr__(self) -> str:
        shapes = f"batch {tuple(self.batch_shape)}, event {tuple(self.event_shape)}"
        return f"{type(self).__name__}({self.num_atoms} atoms, {shapes})"


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: half precision is too coarse for normalising, integers too."""
    wide = torch.promote_types(dtype, torch.float32)
    return wide if dtype.is_floating_point else torch.get_default_dtype()
