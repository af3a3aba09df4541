r"""The score with a fitted martingale: unbiased for every program, and quiet.

For draws :math:`z_1, \dots, z_T` with means :math:`m_t` given the past, weights :math:`a_t` that
depend on the past only, and :math:`h = \sum_t a_t (z_t - m_t)`,

.. math::
    \nabla E f = E\Big[(f - h) \sum_t \nabla \log p(z_t \mid \text{past})\Big]
    + E\Big[\sum_t a_t \nabla m_t\Big]

exactly, for every cost, steps and branches included: :math:`z_t - m_t` and
:math:`\nabla \log p(z_t)` have mean 0 given the past, so that of all products only
:math:`a_t\, E[(z_t - m_t) \nabla \log p(z_t)] = a_t \nabla m_t` remains. Where :math:`h` predicts
the cost, little noise is left.

The weights are fitted by ridge regression over the replicates, on one half of them for the other,
so that nothing is biased; the ridge is chosen inside the fitting half, and may be infinite: then it
is RLOO with the other half's mean for a baseline. The features need no knowledge of the program
(:mod:`.features`).

A rule that is used again (between steps of an optimiser) remembers its regressions, with a weight
that fades: earlier draws say nothing about the present ones, so that is unbiased, too.

References:
    | Approximating Martingales for Variance Reduction in Markov Process Simulation
    | (Henderson and Glynn, 2002), https://doi.org/10.1287/moor.27.2.253.329
    | Control functionals and regression control variates (Glasserman, Monte Carlo Methods in
    | Financial Engineering, 2003, section 4.1)
    | Q-Prop: Sample-Efficient Policy Gradient with An Off-Policy Critic (Gu et al., 2017),
    | https://arxiv.org/abs/1611.02247 (the same identity with a learned critic)
    | Variance Reduction Techniques for Gradient Estimates in Reinforcement Learning (Greensmith,
    | Bartlett and Baxter, 2004), https://www.jmlr.org/papers/v5/greensmith04a.html
    | Buy 4 REINFORCE Samples, Get a Baseline for Free! (Kool et al., 2019)
"""

from __future__ import annotations

__all__ = ["FittedScore"]

from typing import Any

from torch import Tensor

from .regression import Memory


class FittedScore:
    """A rule of :func:`gengs.differentiable`: the score with a control variate that is fitted.

    Args:
        memory: The weight of what was fitted in earlier blocks, per block; 0 forgets them.

    Example:
        >>> import gengs, torch
        >>> _ = torch.manual_seed(0)
        >>> theta = torch.tensor(0.3, requires_grad=True)
        >>> with gengs.differentiable(by=gengs.FittedScore()) as program:
        ...     infected = torch.full((1000,), 10.0)
        ...     for _ in range(5):
        ...         infected = infected + torch.poisson(theta * infected)
        >>> program.loss(infected).mean().backward()
        >>> bool((theta.grad / (50 * 1.3**4) - 1).abs() < 0.05)
        True
    """

    def __init__(self, memory: float = 0.8) -> None:
        if not 0 <= memory < 1:
            raise ValueError(f"FittedScore expects 0 <= memory < 1, but got {memory}.")
        self.memory = memory
        self._memories: dict[Any, Memory] = {}

    def __repr__(self) -> str:
        return f"FittedScore({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The settings that are not the default."""
        return "" if self.memory == 0.8 else f"memory={self.memory}"

    def recall(self, key: Any) -> Memory | None:
        """What is remembered of programs with these features."""
        return self._memories.get(key)

    def remember(self, key: Any, before: Memory | None, x: Tensor, y: Tensor) -> None:
        """Remember a regression of a block, in which ``before`` was known."""
        if self.memory:
            self._memories[key] = Memory.after(before, x, y, self.memory)
