r"""Better posteriors for given documents, by a few steps of descent from the encoder's.

An encoder writes the posterior of any document in one pass; it was fitted to the training documents
and misses the best posterior of a new one. The bound holds for every posterior, so one may look for
a better one. With the decoder, the prior and the heads fixed, the encoder's features h of each
document are moved downhill,

.. math:: h_d \leftarrow h_d - \eta\, \nabla_{h_d} \big(-\mathrm{ELBO}(d; h_d)\big),

by Adam, with a step that falls to zero. Heads are linear: where they are narrower than the
features, every posterior of the family can be reached. A document whose bound did not get better,
by fresh draws, keeps the encoder's features.

**Common random numbers.** A document's refined posterior is its own: it does not depend on the
documents beside it, on their order, or on the batches they come in. The step is relative to the
document's own features, and the t-th estimate of the bound takes the t-th set of uniforms for every
document and every call, by inverting each document's own CDF,

.. math:: z_d = F_d^{-1}(u), \qquad u \text{ common to all documents } d,

with the gradient of the mid-CDF (:mod:`gengs.laws.line`),
:math:`dz/d\theta = -\partial_\theta F_\mathrm{mid}(z) / p(z)`, here by plain differentiation of
:math:`F_\mathrm{mid} = F - p/2`. Both sides of an atom in a valley outweigh it, and
:math:`1/p(z)` would be huge; it is bounded there.

References:
    | Semi-Amortized Variational Autoencoders (Kim et al., 2018), https://arxiv.org/abs/1802.02550
    | On the Challenges of Learning with Inference Networks on Sparse, High-dimensional Data
    | (Krishnan et al., 2018), https://arxiv.org/abs/1710.06085
    | Some Guidelines and Guarantees for Common Random Numbers (Glasserman & Yao, 1992)
"""

__all__ = ["common_draws", "fold_rng", "refined"]

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.distributions import Distribution

from gengs.tables.finite import Finite
from gengs.tables.truncation import truncate

_STEP = 0.05
"""The first step, relative to the typical feature; twice or half of it does as well on news."""

_COMPARISONS = 3
"""Estimates of the bound before and after, to see whether a document's got better."""

_VALLEY = 0.01
"""An atom's density is at least this share of the lighter side's mass."""


def refined(bound: Callable[[Tensor], Tensor], features: Tensor, steps: int) -> Tensor:
    """Features ``(B, H)`` with a smaller bound, document by document.

    The negative ``bound``, ``(B,)``, is differentiable in the features, and may be an estimate.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise ValueError(f"expected a non-negative integer number of steps, but got {steps!r}.")
    start = features.detach()
    if steps == 0:
        return start
    # moved in units of the document's own typical feature
    unit = start.square().mean(-1, keepdim=True).sqrt()  # (B, 1)
    unit = unit.where(unit > 0, 1.0)
    with torch.inference_mode(False), torch.enable_grad():
        origin, unit = start.clone(), unit.clone()
        way = torch.zeros_like(origin).requires_grad_()
        adam = torch.optim.Adam([way], betas=(0.8, 0.95))
        for step in range(steps):
            adam.param_groups[0]["lr"] = _STEP * (1 - step / steps)
            # of the features alone: the model's parameters keep the gradients they have
            with fold_rng(step):
                (grad,) = torch.autograd.grad(bound(origin + unit * way).sum(), way)
            way.grad = grad.nan_to_num(0.0, 0.0, 0.0)  # of a diverged model nothing is refined
            adam.step()
    moved = start + unit * way.detach()
    gain = torch.zeros(len(start), device=start.device)
    with torch.no_grad():
        for turn in range(steps, steps + _COMPARISONS):
            with fold_rng(turn):
                before = bound(start)
            with fold_rng(turn):
                gain = gain + (before - bound(moved))
    return torch.where((gain > 0).unsqueeze(-1), moved, start)


@contextmanager
def fold_rng(seed: int) -> Iterator[None]:
    """The processor's random numbers from a seed on; torch's generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def common_draws(law: Distribution, samples: int) -> Tensor:
    """Exact draws ``(S, *, B, D)`` with the mid-CDF gradient, from uniforms that documents share.

    The law has batch shape ``(*, B, D)``: documents are the last dimension but one. Several draws
    are stratified, in antithetic pairs.
    """
    law = law if isinstance(law, Finite) else truncate(law, tolerance=1e-6)
    probs = law.probs.expand(*law.batch_shape, law.num_atoms)  # (*, B, D, n)
    cdf = probs.cumsum(-1)
    *outer, _, size = law.batch_shape
    # by the processor's generator, whose state the caller can fix without touching others
    shape = (*outer, 1, size, (samples + 1) // 2)
    half = (torch.rand(shape).argsort(-1) + torch.rand(shape)) / shape[-1]  # one in each stratum
    uniforms = torch.cat([half, 1 - half], -1)[..., :samples].clamp_max(1 - 1e-6).to(cdf)
    with torch.no_grad():
        level = (uniforms * cdf[..., -1:]).expand(*law.batch_shape, samples).contiguous()
        index = torch.searchsorted(cdf, level, right=True).clamp_max(law.num_atoms - 1)
    p, upper = probs.gather(-1, index), cdf.gather(-1, index)  # (*, B, D, S)
    with torch.no_grad():
        sides = torch.minimum(upper - p, 1 - upper)  # the masses before and beyond
        density = torch.maximum(p, _VALLEY * sides).clamp_min(torch.finfo(p.dtype).tiny)
    middle = upper - p / 2
    moved = (middle.detach() - middle) / density  # zero, with the gradient
    return (law.atoms[index] + moved).movedim(-1, 0)
