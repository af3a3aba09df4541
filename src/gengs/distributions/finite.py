r"""A law on finitely many atoms, the centre of the library.

.. math:: P(Z = c_k) = \pi_k, \qquad k = 0, \dots, n - 1

The atoms :math:`c_k` are numbers, vectors or matrices; the law is its ``logits``
:math:`\log \pi_k`. A truncation produces one, an implicit posterior *is* one (logits straight from
a network), a PMF that a user owns is one. The linear map

.. math:: \mathcal{T}(w) = \sum_k w_k c_k

turns weights on the simplex into values: of a one-hot vector it is the atom, of :math:`\pi` the
mean, of a relaxed one-hot vector the relaxed value.

References:
    | Generalized Gumbel-Softmax Gradient Estimator for Generic Discrete Random Variables
    | (Joo et al., 2020), https://arxiv.org/abs/2003.01847
"""

from __future__ import annotations

__all__ = ["Finite"]

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property
from torch.types import _size

from .inverse import inverse_cdf_index
from .one_of import OneOf
from .sums import product
from .validation import inspectable, require_finite, validates
from .weights import at_least_float32, log_of_weights, normalise

if TYPE_CHECKING:
    from .certificate import Certificate


class Finite(Distribution):
    r"""The law that gives the atom :math:`c_k` the probability :math:`\pi_k`.

    Args:
        atoms: What can be drawn, of shape ``(*batch, n, *event)``; the batch part may be missing
            (atoms shared by all elements). Integers become the default floating type, and half
            precision becomes ``float32``: bfloat16 cannot hold 257.
        logits: Unnormalised log-probabilities, of shape ``(*batch, n)``; ``-inf`` forbids an atom.
        probs: Unnormalised probabilities, instead of ``logits``.
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

    all_possible = False
    """Whether it is known, without a look, that no atom has probability zero."""

    consecutive = False
    """Whether the atoms are known, without a look, to be integers in a row."""

    certificate: Certificate | None = None
    """What a truncation lost (see :class:`gengs.Certificate`); ``None`` for a law of its own."""

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
        given = cast(Tensor, logits if logits is not None else probs)
        if given.dim() == 0 or given.shape[-1] == 0:
            raise ValueError(
                "Finite expects at least one atom in the last dimension of "
                f"`{'logits' if probs is None else 'probs'}`, but got shape {tuple(given.shape)}."
            )
        weights = given.to(at_least_float32(given.dtype))
        log_weights = weights if probs is None else log_of_weights(weights, validate)
        name = "logits" if probs is None else "probs"
        log_pmf, self.all_possible = normalise(log_weights, name, validate)
        atoms = atoms.to(at_least_float32(atoms.dtype))
        if validate:
            require_finite("atoms", atoms, "Finite")
        dtype = given.dtype if given.is_floating_point() else weights.dtype
        self._build(atoms, log_pmf, event_dim, dtype, validate)
        if validate:
            self._require_distinct_atoms()

    @classmethod
    def _of_log_pmf(
        cls, atoms: Tensor, log_pmf: Tensor, event_dim: int, dtype: torch.dtype, validate: bool
    ) -> Finite:
        """A law whose log-probabilities are already normalised: no second pass over the table."""
        law = cls.__new__(cls)
        law._build(atoms, log_pmf, event_dim, dtype, validate)
        return law

    def _build(
        self, atoms: Tensor, log_pmf: Tensor, event_dim: int, dtype: torch.dtype, validate: bool
    ) -> None:
        n = log_pmf.shape[-1]
        where_n = -1 - event_dim
        if atoms.dim() < 1 + event_dim or atoms.shape[where_n] != n:
            raise ValueError(
                f"Finite expects `atoms` of shape (*batch, {n}, *event) with event_dim={event_dim}"
                f" beside {n} probabilities, but got {tuple(atoms.shape)};"
                " for vector atoms pass event_dim=1."
            )
        try:
            batch, own = log_pmf.shape[:-1], atoms.shape[:where_n]
            if own:  # else a look at the shapes is half the cost of a small law
                batch = torch.broadcast_shapes(batch, own)
        except RuntimeError:
            raise ValueError(
                "Finite expects the batch shapes of `atoms` and of the probabilities to broadcast, "
                f"but got {tuple(atoms.shape[:where_n])} and {tuple(log_pmf.shape[:-1])}."
            ) from None
        self.atoms = atoms
        self.logits = log_pmf.expand(*batch, n)
        self.event_dim = event_dim
        self.dtype = dtype
        event = atoms.shape[atoms.dim() - event_dim :]
        # our own flag, and our own checks: torch's would refuse -inf logits under `simplex`
        super().__init__(batch, event, validate_args=False)
        self._validate_args = validate

    # ------------------------------------------------------------------ the PMF and what sums it

    @property
    def num_atoms(self) -> int:
        """How many atoms the law has."""
        return self.atoms.shape[-1 - self.event_dim]

    @lazy_property
    def probs(self) -> Tensor:
        r"""The probabilities :math:`\pi`, of shape ``(*batch, n)``."""
        return self.logits.exp()

    @lazy_property
    def fixed_probs(self) -> Tensor:
        """The probabilities without a gradient, made once for all who need numbers only."""
        return self.logits.detach().exp()

    def softmax_scores(self, temperature: float) -> Tensor:
        """Log-probabilities up to a constant of each row, for a softmax at this temperature."""
        return self.logits

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """The set of atoms, as a constraint that can be checked."""
        return OneOf(self)

    def mix(self, weights: Tensor, atoms: Tensor | None = None) -> Tensor:
        r"""The linear map :math:`\mathcal{T}(w) = \sum_k w_k c_k`: weights to values.

        Args:
            weights: Weights ``(*sample, *batch, n)``.
            atoms: Other values of the same shape in place of the atoms.
        """
        atoms = self.atoms if atoms is None else atoms
        weights = weights.to(torch.promote_types(atoms.dtype, weights.dtype))
        atoms = atoms.to(weights.dtype)
        if atoms.dim() == 1:
            return product(weights, atoms)
        return (weights.reshape(weights.shape + (1,) * self.event_dim) * atoms).sum(
            -1 - self.event_dim
        )

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
        return self._atoms_at(self.logits.argmax(-1))

    def entropy(self) -> Tensor:
        possible = self.probs > 0
        return -(self.probs * self.logits.where(possible, 0.0)).sum(-1)

    def index_of(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """For each value the index of its atom, and whether there is one."""
        hits = value.unsqueeze(-1 - self.event_dim) == self.atoms
        for _ in range(self.event_dim):
            hits = hits.all(-1)
        return hits.to(torch.int8).argmax(-1), hits.any(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        index, found = self.index_of(value)
        if self._validate_args and inspectable(found) and not found.all():
            raise ValueError(
                f"Finite.log_prob expects values among the {self.num_atoms} atoms, but "
                f"{int((~found).sum())} of {found.numel()} in `value` (shape {tuple(value.shape)})"
                " are not; pass validate_args=False to give them probability zero."
            )
        shape = torch.broadcast_shapes(index.shape, self.batch_shape)
        logits = self.logits.expand(*shape, self.num_atoms)
        found_log = logits.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)
        return found_log.where(found, -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        r""":math:`P(Z \le v)`, for scalar atoms."""
        self._require_scalar_atoms("cdf")
        below = self.atoms <= value.unsqueeze(-1)
        return (self.probs * below).sum(-1)

    def icdf(self, value: Tensor) -> Tensor:
        r"""The smallest atom :math:`c` with :math:`P(Z \le c) \ge v`, for scalar atoms."""
        self._require_scalar_atoms("icdf")
        atoms, order = self.atoms.expand_as(self.probs).sort(-1)
        cdf = self.probs.gather(-1, order).cumsum(-1)
        # rounding may leave the whole sum below 1: the quantile of 1 is the last possible atom
        reached = cdf >= value.unsqueeze(-1).minimum(cdf[..., -1:])
        index = reached.to(torch.int8).argmax(-1)
        atoms = atoms.expand(*index.shape, self.num_atoms)
        return atoms.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    # ------------------------------------------------------------------------------- drawing

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self._atoms_at(self.sample_index(sample_shape))

    def sample_index(
        self, sample_shape: _size = torch.Size(), generator: torch.Generator | None = None
    ) -> Tensor:
        """Exact draws, as indices of atoms; impossible atoms are never drawn."""
        return inverse_cdf_index(self.probs.detach(), torch.Size(sample_shape), generator)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        first = self.atoms.movedim(-1 - self.event_dim, 0)  # (n, *batch or nothing, *event)
        missing = len(self.batch_shape) - (first.dim() - 1 - self.event_dim)
        first = first.reshape(first.shape[:1] + (1,) * missing + first.shape[1:])
        if not expand:
            return first.clone()  # laws on the same atoms may share them
        return first.expand(self.num_atoms, *self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Finite:
        law = self._get_checked_instance(Finite, _instance)
        logits = self.logits.expand(*batch_shape, self.num_atoms)
        law._build(self.atoms, logits, self.event_dim, self.dtype, self._validate_args)
        law.certificate, law.consecutive = self.certificate, self.consecutive
        law.all_possible = self.all_possible
        return law

    def __repr__(self) -> str:
        shapes = f"batch {tuple(self.batch_shape)}, event {tuple(self.event_shape)}"
        return f"Finite({self.num_atoms} atoms, {shapes})"

    def _atoms_at(self, index: Tensor) -> Tensor:
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

    def _require_distinct_atoms(self) -> None:
        """Two atoms of one value would share its probability, and ``log_prob`` knows one index."""
        shared = self.atoms.dim() == 1 + self.event_dim  # others are made by rules, not by hand
        if shared and inspectable(self.atoms) and self.num_atoms <= 10_000:
            if not self.event_dim and bool((self.atoms.detach().diff() > 0).all()):
                return  # in order, as most are: no need to sort them
            distinct = len(self.atoms.detach().unique(dim=0))
            if distinct < self.num_atoms:
                raise ValueError(
                    f"Finite expects distinct `atoms`, but only {distinct} of the {self.num_atoms} "
                    "are; add up the probabilities of those that are equal."
                )

    def _require_scalar_atoms(self, what: str) -> None:
        if self.event_dim:
            raise TypeError(
                f"Finite.{what} needs scalar atoms; these have event_dim={self.event_dim}."
            )
