r"""The exponential tilt of a distribution on atoms: moved by a slope, narrowed by a curvature.

.. math::
    \log q_k = \log p_k + a\, t_k - b\, t_k^2 - \log Z, \qquad t_k = \frac{c_k - E_p}{\sigma_p}

with the mean :math:`E_p` and the standard deviation :math:`\sigma_p` of the distribution itself.
Two numbers reach from it (a = b = 0) to any single atom (b large, a = 2 b t there). With b = 0 the
tilt of a Poisson is a Poisson; the tilt of a Gaussian would be a Gaussian, of precision 1 + 2b and
mean a / (1 + 2b) in units of :math:`\sigma_p`. A log-concave distribution stays so for b >= 0: one
mode, and no valley for the mid-CDF gradient to bridge.
"""

__all__ = ["standardised_atoms", "tilt"]

import torch
from torch import Tensor
from torch.distributions import Distribution

from .finite import Finite
from .truncation import truncate


def tilt(
    law: Distribution,
    slope: Tensor | float,
    curvature: Tensor | float = 0.0,
    *,
    validate_args: bool | None = None,
) -> Finite:
    r"""A distribution on the same atoms, tilted by :math:`a t - b t^2`.

    Args:
        law: A distribution on numbers: a :class:`Finite`, or one with finitely many values.
            Truncate others.
        slope: :math:`a`, of a shape that broadcasts with the distribution's batch.
        curvature: :math:`b`; negative values widen the distribution.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> prior = truncate(torch.distributions.Poisson(2.0), 12)
        >>> q = tilt(prior, slope=torch.tensor([0.0, 4.0]), curvature=torch.tensor([0.0, 2.0]))
        >>> q.mean, q.stddev  # the prior itself, and one to its right, half as wide
        (tensor([2.0000, 3.1235]), tensor([1.4142, 0.6602]))
    """
    law = law if isinstance(law, Finite) else truncate(law)
    if law.event_dim:
        raise TypeError(f"tilt expects numbers as atoms, but these have event_dim={law.event_dim}.")
    a, b = (torch.as_tensor(x, dtype=law.logits.dtype) for x in (slope, curvature))
    t = standardised_atoms(law)
    logits = law.logits + t * (a.unsqueeze(-1) - b.unsqueeze(-1) * t)
    return Finite(law.atoms, logits=logits, validate_args=validate_args)


def standardised_atoms(law: Finite) -> Tensor:
    """Atoms less the mean in units of the standard deviation, ``(*batch, n)``; 0 for one atom."""
    deviation = law.atoms - law.mean.unsqueeze(-1)
    variance = (law.probs * deviation.square()).sum(-1, keepdim=True)
    return deviation / variance.where(variance > 0, 1.0).sqrt()
