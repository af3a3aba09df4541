"""The record of k-subsets: the swap rule, real differences, the relaxation, KL."""

__all__ = ["SubsetLaw", "attach_gradient", "swaps"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions.kl import register_kl

from ..numerics.autograd_function import AutogradFunction
from ..numerics.gumbel_softmax import Temperature
from ..numerics.tails import widen
from ..numerics.tracing import any_of
from ..tables.finite import Finite
from .law import Law, Spec, register
from .normal_scores import normal_scores
from .subset import Subset
from .subset_relaxed import relax_subset
from .subset_swaps import conditional_logits, move_subset, swap_subset


def attach_gradient(law: Subset, z: Tensor) -> Tensor:
    """A draw ``(*sample, *batch, n)`` of ``law``, however made, with the swap rule's gradient."""
    q, k, *_ = law.table
    y = law._in(z.detach())
    decisions = conditional_logits(law._table_logits, y, q, k)
    return law._out(move_subset(y, decisions, q, k)).reshape(z.shape)


def swaps(law: Subset, z: Tensor, number: int | None = None) -> tuple[Tensor, Tensor]:
    r"""Random swaps of draws ``(*sample, *batch, n)``, for exact differences of the cost.

    Returns:
        M swapped draws of each, ``(M, *sample, *batch, n)``, and weights ``(M, *sample, *batch)``
        whose gradient makes :math:`\sum_m w_m (f(z'_m) - f(z))` an unbiased gradient of the
        expectation.
    """
    q, k, *_ = law.table
    y = law._in(z.detach())
    there, picked, weight = swap_subset(y, q, k, number)
    decisions = conditional_logits(law._table_logits, y, q, k)
    logit = _only_gradient(decisions.gather(0, picked))
    many = picked.shape[0]
    values = law._out(there).reshape(many, *z.shape)
    return values, (logit * weight).reshape(many, *z.shape[:-1]).to(z.dtype)


def _only_gradient(x: Tensor) -> Tensor:
    """Zero, with the gradient of ``x``, which may be infinite."""
    value: Tensor = _Zero.apply(x)
    return value


class _Zero(AutogradFunction):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


@register_kl(Subset, Subset)
def _subset_subset(q: Subset, p: Subset) -> Tensor:
    if q.event_shape != p.event_shape:
        raise ValueError(
            "kl_divergence of two Subsets expects the same n, but got "
            f"{q.event_shape[0]} and {p.event_shape[0]}."
        )
    fixed = isinstance(q.k, int) and isinstance(p.k, int)
    looks = fixed or (q._validate_args and p._validate_args)
    if looks and any_of(torch.as_tensor(q.k) != torch.as_tensor(p.k)):
        raise ValueError(f"kl_divergence of two Subsets expects the same k, but got {q.k}, {p.k}.")
    mean = q.mean.to(torch.float64) if q.table.q.dtype == torch.float64 else q.mean
    ours, theirs = (law.logits.to(mean.dtype) for law in (q, p))
    both = (ours.detach() > -torch.inf) & (theirs.detach() > -torch.inf)
    apart = torch.where(both, ours.where(both, 0.0) - theirs.where(both, 0.0), 0.0)
    kl = (mean * apart).sum(-1) - q._log_partition() + p._log_partition()
    outside = (mean.detach() * (theirs.detach() == -torch.inf)).sum(-1) > 0
    return kl.clamp_min(0).masked_fill(outside, torch.inf).to(q._dtype)


# ------------------------------------------------------------------------------------ the record


def _named(n: Tensor, k: Tensor, validate_args: bool) -> Subset:
    if int(k) != k:
        raise ValueError(f"expected an integer k, but got {k.item()}.")
    return Subset(int(k), normal_scores(n, "elements"), validate_args)


@register(Subset)
class SubsetLaw(Law):
    """The record of :class:`Subset`."""

    q: Subset
    spec = Spec("subset", ("n", "k"), "integers 0 <= k <= n", _named, constant=("n", "k"))
    wide_draws = True
    several_neighbours = True

    @property
    def numbers(self) -> int:  # type: ignore[override]
        return 4 * self.q.event_shape[0] * (self.q.columns + 1)

    def whole_table(self, validate: bool) -> Finite:
        atoms = self.q.outcomes()
        values = atoms.reshape(-1, *(1,) * len(self.batch_shape), atoms.shape[-1])
        logits = self.q.log_prob(values).movedim(0, -1)
        return Finite(atoms, logits=logits, event_dim=1, validate_args=validate)

    @property
    def zero_one_type(self) -> torch.dtype:
        return self.q.logits.dtype

    def draw(self, shape: torch.Size) -> Tensor:
        return widen(self.q.sample(shape))

    def attach(self, z: Tensor) -> Tensor:
        return attach_gradient(self.q, z)

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        there, weight = swaps(self.q, z, 1)
        return there.squeeze(0), weight.squeeze(0)

    def relax(
        self,
        temperature: Temperature,
        shape: torch.Size,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        law = self.q
        if isinstance(temperature, Tensor) and temperature.dim():
            law = law.expand(torch.broadcast_shapes(law.batch_shape, temperature.shape))
        y = relax_subset(
            law._table_logits,
            *law.table[:2],
            law.table.weights,
            temperature,
            shape.numel(),
            hard,
            generator,
        )
        return law._out(y).reshape(shape + law.batch_shape + law.event_shape)

    def boundary(self) -> Tensor | None:
        return None
