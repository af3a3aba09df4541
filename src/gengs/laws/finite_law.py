r"""The record of a table: ordered numbers on a line, vectors on a complete graph.

Numbers have an order, and move between neighbouring atoms (:mod:`gengs.laws.ordered_table`).
Vectors :math:`c_k` have none: probability flows from every atom to every other. With the cotangent
:math:`G`, the drawn atom :math:`b`, and :math:`a_k = G \cdot c_k`,
:math:`\bar a = \sum_k \pi_k a_k`, the trapezoid rule along the straight lines between atoms is

.. math::
    \frac{dL}{d\pi_i} = (1 - w)\, (a_i - \bar a) + w\, \frac{1[i = b]}{\pi_b} (a_b - \bar a)

up to a constant in i, with :math:`w = 1/2`: one product of the cotangent with the matrix of atoms.
For one-hot vectors that is ReinMax. Of many atoms the second term is mostly noise, and gets less
weight (:mod:`gengs.laws.inflow_weight`). A difference of the cost is taken to an independent draw
:math:`i`, with the weight :math:`\tfrac12 \nabla (\log \pi_i - \log \pi_b)`.
"""

__all__ = ["FiniteLaw"]

from typing import Any

import torch
from torch import Tensor

from ..numerics.attach import nonzero
from ..numerics.autograd_function import AutogradFunction
from ..numerics.inverse_cdf import antithetic_uniforms, inverse_cdf_index, pick
from ..numerics.once_differentiable import refuse_derivative
from ..tables.finite import Finite
from .boxes import new_box
from .inflow_weight import inflow_weight
from .law import Law, register
from .ordered_table import NOT_TWICE, attach_in_table, draw_from_table, step_in_table


@register(Finite)
class FiniteLaw(Law):
    """The record of a :class:`gengs.Finite`."""

    q: Finite

    @property
    def takes_weight(self) -> bool:  # type: ignore[override]
        return self.q.event_dim > 0

    def whole_table(self, validate: bool) -> Finite:
        return self.q

    def table(self, tolerance: float = 1e-6) -> Finite:
        return self.q

    def boundary(self) -> Tensor | None:
        return self.q.boundary()

    def draw(self, shape: torch.Size) -> Tensor:
        return self.q.sample(shape)  # a gradient reaches learned atoms

    def log_prob(self, value: Tensor) -> Tensor:
        # the values are its own draws, which need no check
        return pick(self.q.logits, self.q.index_of(value)[0])

    def attach(self, z: Tensor) -> Tensor:
        if not self.q.event_dim:
            return attach_in_table(self.q, z)
        return self._attach_atom(self.q.index_of(z)[0])

    def rsample(
        self,
        shape: torch.Size,
        *,
        bridge: bool = True,
        antithetic: bool = False,
        weight: float | None = None,
    ) -> Tensor:
        if not self.q.event_dim:
            return draw_from_table(self.q, shape, bridge=bridge, antithetic=antithetic)
        weight = weight if bridge else 0.5  # whose error is measured
        return self._attach_atom(self._index(shape, antithetic), weight)

    def _index(self, shape: torch.Size, antithetic: bool) -> Tensor:
        if not antithetic:
            return self.q.sample_index(shape)
        probs = self.q.probs.detach()
        uniforms = antithetic_uniforms(shape, self.q.batch_shape, probs.device)
        return inverse_cdf_index(probs, shape, uniforms=uniforms)

    def _attach_atom(self, index: Tensor, weight: float | None = None) -> Tensor:
        q = self.q
        weight = inflow_weight(q.num_atoms) if weight is None else weight
        result: Tensor = _AttachAtom.apply(q.at(index), q.probs, index, q.atoms.detach(), weight)
        return result

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        if not self.q.event_dim:
            return step_in_table(self.q, z)
        here = self.q.index_of(z)[0]
        there, weight = new_box(here, self.q.logits, self.q.given_probs)
        return self.q.at(there).detach(), weight


class _AttachAtom(AutogradFunction):
    """The atom that was drawn, moving with the probabilities; learned atoms move with it."""

    @staticmethod
    def forward(z: Tensor, probs: Tensor, index: Tensor, atoms: Tensor, weight: float) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, *tensors, ctx.weight = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (probs, index, atoms), w = ctx.saved_tensors, ctx.weight
        event = grad.dim() - index.dim()
        index = index.unsqueeze(-1)
        matrix = atoms.flatten(atoms.dim() - event)  # (*batch or nothing, n, E)
        flat = grad.flatten(grad.dim() - event).to(matrix.dtype)  # (*sample, *batch, E)
        shared = matrix.dim() == 2
        along = flat @ matrix.mT if shared else (matrix @ flat.unsqueeze(-1)).squeeze(-1)
        along = along - (probs * along).sum(-1, keepdim=True)
        # an atom of probability 0 is never drawn: what its draws would have is given here
        slope = torch.where(probs == 0, along, (1 - w) * along)
        chance = probs.expand_as(along).gather(-1, index)
        drawn = w * along.gather(-1, index) / nonzero(chance)
        slope = slope.scatter_add(-1, index, drawn)
        slope = slope.sum_to_size(probs.shape).to(probs.dtype)
        if torch.is_grad_enabled():
            slope = refuse_derivative(slope, NOT_TWICE, probs)
            if ctx.needs_input_grad[0]:  # which atom has the gradient depends on the table
                grad = refuse_derivative(grad, NOT_TWICE, probs)
        return grad, slope, None, None, None
