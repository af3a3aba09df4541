r"""Draws of vectors that carry a gradient: counts in boxes, one-hot vectors, tables of vectors.

Vectors have no order, so there is no CDF to take the middle of. The same idea needs none: the
derivative of an expectation is a sum of *differences* of the cost, and each difference is taken by
the trapezoid rule along the straight line between its two ends.

**Multinomial(n, p).** With :math:`y \sim \mathrm{Mult}(n - 1, p)`, from
:math:`\partial E f = n\, E_y[\sum_i \partial p_i\, f(y + e_i)]` and the trapezoid rule along
:math:`e_i - e_j`,

.. math::
    \frac{dz_k}{dp_i} = \tfrac12 \Big[ n \delta_{ik} + \frac{z_i}{p_i} (\delta_{ik} - p_k) \Big],
    \qquad \frac{dz_k}{dn} = \tfrac12 \Big( p_k + \frac{z_k}{n} \Big).

It is exact for quadratic costs, costs O(K) and needs no table of outcomes. For n = 1 (one-hot
vectors) it is ReinMax (Liu et al., 2023), for K = 2 the binomial rule.

**A table of vector atoms** :math:`c_k`: with the cotangent :math:`G`, the drawn atom :math:`b`, and
:math:`a_k = G \cdot c_k`, :math:`\bar a = \sum_k \pi_k a_k`,

.. math::
    \frac{dL}{d\pi_i} = \tfrac12 \Big[ (a_i - \bar a)
    + \frac{1[i = b]}{\pi_b} (a_b - \bar a) \Big]

up to a constant in i: one product of the cotangent with the matrix of atoms.
"""

__all__ = ["draw_counts", "draw_one_hot", "move_counts"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Multinomial, OneHotCategorical

from ..tables.finite import Finite
from ..laws.multinomial import OneHot
from ..numerics.tails import was_given
from ..numerics.attach import moved, nonzero
from ..numerics.once_differentiable import OnceDifferentiable
from .ordered_table import NOT_TWICE
from ..gradients.draws import STAGES, Stages

# -------------------------------------------------------------------------------- counts in boxes


def _by_probs(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    ratio = torch.where(p == 0, n, z / nonzero(p))  # an empty box: the whole one-sided slope
    return (n * g + ratio * (g - (p * g).sum(-1, keepdim=True))) / 2


def _by_logits(g: Tensor, z: Tensor, logits: Tensor, n: Tensor) -> Tensor:
    p = logits.softmax(-1)
    mean = (p * g).sum(-1, keepdim=True)
    return ((n * p + z) * (g - mean) - p * ((z * g).sum(-1, keepdim=True) - n * mean)) / 2


def _by_count(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return g * torch.where(n == 0, p, (p + z / nonzero(n)) / 2)


def _by_count_and_logits(g: Tensor, z: Tensor, logits: Tensor, n: Tensor) -> Tensor:
    return _by_count(g, z, logits.softmax(-1), n)


def move_counts(law: Categorical, n: Tensor, z: Tensor) -> Tensor:
    """Counts ``z`` of ``n`` draws from ``law``, moving with it.

    Args:
        law: The law of one draw, ``(*batch, K)``.
        n: The number of draws, a scalar or ``(*batch, 1)``.
        z: The counts that were drawn, ``(*sample, *batch, K)``.
    """
    if was_given(law, "logits"):
        return moved((_by_logits, _by_count_and_logits), z, law.logits, n)
    return moved((_by_probs, _by_count), z, law.probs, n)


def draw_one_hot(law: Categorical, shape: torch.Size) -> Tensor:
    """One-hot vectors of a categorical law, ``(*sample, *batch, K)``."""
    with torch.no_grad():  # not torch's one_hot, which looks at the indices
        drawn = law.sample(shape).unsqueeze(-1)
        one_hot = drawn == torch.arange(law.logits.shape[-1], device=drawn.device)
    return move_counts(law, law.logits.new_ones(()), one_hot.to(law.logits.dtype))


def draw_counts(n: Tensor, probs: Tensor) -> Tensor:
    """Counts of ``n`` draws, ``(*batch,)``, into boxes of ``probs``, ``(*batch, K)``.

    A chain of conditional binomials: each element may have a total of its own, and the cost does
    not grow with it.
    """
    with torch.no_grad():
        beyond = probs.flip(-1).cumsum(-1).flip(-1)  # the mass from each box on
        share = (probs / nonzero(beyond)).clamp(0.0, 1.0)
        left, counts = n.to(probs.dtype).expand(probs.shape[:-1]), []
        for k in range(probs.shape[-1] - 1):
            counts.append(torch.binomial(left.contiguous(), share[..., k].contiguous()))
            left = left - counts[-1]
        z = torch.stack([*counts, left], -1)
    return moved((_by_probs, _by_count), z, probs, n.unsqueeze(-1))


def _move_multinomial(law: Multinomial, z: Tensor) -> Tensor:
    return move_counts(law._categorical, law.logits.new_tensor(float(law.total_count)), z)


def _draw_multinomial(law: Multinomial, shape: torch.Size) -> Tensor:
    with torch.no_grad():
        z = law.sample(shape)
    return _move_multinomial(law, z)


def _move_one_hot_categorical(law: OneHotCategorical, z: Tensor) -> Tensor:
    return move_counts(law._categorical, law.logits.new_ones(()), z)


def _draw_one_hot_categorical(law: OneHotCategorical, shape: torch.Size) -> Tensor:
    return draw_one_hot(law._categorical, shape)


# ------------------------------------------------------------------------- tables of vector atoms


def _draw_vectors(law: Finite, shape: torch.Size) -> Tensor:
    return _moved_vectors(law, law.sample_index(shape))


def _move_vectors(law: Finite, z: Tensor) -> Tensor:
    return _moved_vectors(law, law.index_of(z)[0])


def _moved_vectors(law: Finite, index: Tensor) -> Tensor:
    if isinstance(law, OneHot):  # no atom is multiplied out
        return moved((_by_probs, _by_count), law.at(index), law.probs, law.probs.new_ones(()))
    result: Tensor = _MovedAtom.apply(law.at(index), law.probs, index, law.atoms.detach())
    return result


class _MovedAtom(torch.autograd.Function):
    """The atom that was drawn, moving with the probabilities; learned atoms move with it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, probs: Tensor, index: Tensor, atoms: Tensor) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        probs, index, atoms = ctx.saved_tensors
        event = grad.dim() - index.dim()
        index = index.unsqueeze(-1)
        matrix = atoms.flatten(atoms.dim() - event)  # (*batch or nothing, n, E)
        flat = grad.flatten(grad.dim() - event).to(matrix.dtype)  # (*sample, *batch, E)
        shared = matrix.dim() == 2
        along = flat @ matrix.mT if shared else (matrix @ flat.unsqueeze(-1)).squeeze(-1)
        along = along - (probs * along).sum(-1, keepdim=True)
        # an atom of probability 0 is never drawn: the half that its draws would have is given here
        slope = torch.where(probs == 0, along, along / 2)
        chance = probs.expand_as(along).gather(-1, index)
        drawn = along.gather(-1, index) / (2 * nonzero(chance))
        slope = slope.scatter_add(-1, index, drawn)
        slope = slope.sum_to_size(probs.shape).to(probs.dtype)
        if torch.is_grad_enabled():
            slope = OnceDifferentiable.apply(slope, NOT_TWICE, grad, probs)
        return grad, slope, None, None


STAGES[Multinomial] = Stages(_draw_multinomial, _move_multinomial)
STAGES[OneHotCategorical] = Stages(_draw_one_hot_categorical, _move_one_hot_categorical)
STAGES[Finite] = Stages(_draw_vectors, _move_vectors)
