r"""Draws that are the same for all documents of a batch: common random numbers.

What is found for a document must not depend on the documents that happen to be asked for beside it.
So each document's counts are made from the *same* uniforms, by inverting its own CDF,

.. math:: z_d = F_d^{-1}(u), \qquad u \text{ common to all documents } d,

and the gradient is that of the mid-CDF (:mod:`gengs.distributions.midcdf`),
:math:`dz/d\theta = -\partial_\theta F_\mathrm{mid}(z) / p(z)`, here by plain differentiation of
:math:`F_\mathrm{mid} = F - p/2`. Each document's estimate has the law it has with uniforms of its
own; only the errors of different documents now go together.

Both sides of an atom in a valley (:mod:`gengs.distributions.midcdf_table`) outweigh it, and
:math:`1/p(z)` would be huge; it is bounded there.

References:
    | Some Guidelines and Guarantees for Common Random Numbers (Glasserman & Yao, 1992)
"""

from __future__ import annotations

__all__ = ["CommonDraws"]

import torch
from torch import Tensor

from ..distributions.inverse import index_where, wide_cdf
from ..distributions.midcdf_table import VALLEY
from ..distributions.stratified import stratified_uniforms
from ..estimators.base import CheckedCost, Estimator
from ..estimators.latents import Latents


class CommonDraws(Estimator):
    """Exact draws with the mid-CDF gradient, from uniforms that all documents share.

    Documents are the last dimension of the batch, as in counts ``(*, B, D)``.

    Args:
        samples: The number of draws; several are stratified.
    """

    paper_name = "mid-CDF, common random numbers"
    unbiased = False
    needs_cost_gradient = True
    needs = "numbers as atoms"
    year = 2026
    reference = "this library"

    def _estimate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        return cost(self._draws(latents)).mean(0)

    def _evaluate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        return cost(self._draws(latents).detach()).mean(0)

    def _draws(self, latents: Latents) -> Tensor:
        """Draws that move with the law's parameters, ``(S, *, B, D)``."""
        law, shape = latents.finite, torch.Size([self.samples])
        probs = law.probs.expand(*law.batch_shape, law.num_atoms)  # (*, B, D, n)
        cdf = wide_cdf(probs)
        alike = torch.Size([*latents.batch[:-1], 1, *latents.factors])
        # by the processor's generator, whose state the caller can fix without touching others
        uniforms = stratified_uniforms(shape, alike, torch.device("cpu")).to(cdf)
        with torch.no_grad():
            index = index_where(cdf, shape, uniforms.expand(*shape, *law.batch_shape))
            z = law._atoms_at(index)
        at = index.movedim(0, -1)  # (*, B, D, S)
        p, upper = probs.gather(-1, at), cdf.gather(-1, at).to(probs.dtype)
        with torch.no_grad():
            sides = torch.minimum(upper - p, 1 - upper)  # the masses before and beyond
            density = torch.maximum(p, VALLEY * sides).clamp_min(torch.finfo(p.dtype).tiny)
        middle = upper - p / 2
        moved = (middle.detach() - middle) / density  # zero, with the gradient
        return z + moved.movedim(-1, 0)
