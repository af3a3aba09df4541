"""The record of rankings: the swap rule, real differences, the relaxed sort."""

__all__ = ["PlackettLuceLaw", "attach_gradient", "soft_sort", "swaps"]

import torch
from torch import Tensor

from ..numerics.gumbel_softmax import Temperature
from ..tables.finite import Finite
from .law import Law, Spec, register
from .normal_scores import normal_scores
from .ranking import PlackettLuce
from .ranking_log_prob import LAST
from .ranking_swaps import swap_orders


def attach_gradient(law: PlackettLuce, value: Tensor) -> Tensor:
    """A drawn matrix ``(*sample, *batch, k, n)``, however made, with the swap rule's gradient."""
    return law.wide_matrix(law.order_of(value.detach()))


def swaps(law: PlackettLuce, value: Tensor, number: int | None = None) -> tuple[Tensor, Tensor]:
    r"""Random swaps of drawn matrices, for exact differences of the cost.

    Returns:
        M swapped draws of each, ``(M, *sample, *batch, k, n)``, and weights ``(M, *sample,
        *batch)`` whose gradient makes :math:`\sum_m w_m (f(P'_m) - f(P))` an unbiased gradient of
        the expectation.
    """
    there, weight = swap_orders(law.logits, law.order_of(value.detach()), number)
    return law.one_hot(there), weight.to(value.dtype)


# ------------------------------------------------------------------------------------ the record


def _named(n: Tensor, validate_args: bool) -> PlackettLuce:
    return PlackettLuce(normal_scores(n, "items"), validate_args=validate_args)


@register(PlackettLuce)
class PlackettLuceLaw(Law):
    """The record of :class:`PlackettLuce`."""

    q: PlackettLuce
    spec = Spec("ranking", ("n",), "an integer n >= 1", _named, constant=("n",))
    wide_draws = True
    several_neighbours = True

    @property
    def numbers(self) -> int:  # type: ignore[override]
        return 4 * self.q.event_shape.numel()

    def whole_table(self, validate: bool) -> Finite:
        orders = self.q.outcomes()
        shape = (-1, *(1,) * len(self.batch_shape), self.q.k)
        logits = self.q.log_prob_order(orders.reshape(shape)).movedim(0, -1)
        atoms = self.q.one_hot(orders)
        return Finite(atoms, logits=logits, event_dim=2, validate_args=validate)

    @property
    def zero_one_type(self) -> torch.dtype:
        return self.q.logits.dtype

    def draw(self, shape: torch.Size) -> Tensor:
        return self.q.one_hot(self.q.sample_order(shape))

    def attach(self, z: Tensor) -> Tensor:
        return attach_gradient(self.q, z)

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if antithetic:
            self.antithetic(shape)  # which says that an order of orders is missing
        return self.q.wide_matrix(self.q.sample_order(shape))

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
        return soft_sort(self.q, temperature, shape, hard, generator)

    def boundary(self) -> Tensor | None:
        return None


def soft_sort(
    law: PlackettLuce,
    temperature: Temperature,
    shape: torch.Size = torch.Size(),
    hard: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Relaxed orders: SoftSort of the scores plus Gumbel noise, ``(*sample, *batch, k, n)``.

    .. math:: \hat P_{mi} = \mathrm{softmax}_i \big(-|s_{(m)} - s_i| / \tau\big)

    for the sorted scores :math:`s_{(1)} \ge s_{(2)} \ge \dots` Rows lie on the simplex, and as
    :math:`\tau \to 0` the matrix is the exact draw.

    References:
        | SoftSort: A Continuous Relaxation for the argsort Operator (Prillo & Eisenschlos, 2020),
        | https://arxiv.org/abs/2006.16038
        | Stochastic Optimization of Sorting Networks via Continuous Relaxations (Grover et al.,
        | 2019), https://arxiv.org/abs/1903.08850 (relaxed sorts of Plackett-Luce orders)
    """
    if isinstance(temperature, Tensor) and temperature.dim():
        law = law.expand(torch.broadcast_shapes(law.batch_shape, temperature.shape))
        temperature = temperature.reshape(*temperature.shape, 1, 1)
    scores = law.perturbed(shape, generator)
    order = law.best(scores)
    last = torch.linspace(LAST, 2 * LAST, law.items, device=scores.device).to(scores.dtype)
    scores = scores.maximum(last)  # padding has its places
    apart = (scores.gather(-1, order).unsqueeze(-1) - scores.unsqueeze(-2)).abs()
    soft = (-apart / temperature).softmax(-1)
    return law.one_hot(order) + (soft - soft.detach()) if hard else soft
