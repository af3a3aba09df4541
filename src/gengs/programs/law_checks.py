"""What a draw asks of its law: is it in its domain, does it carry a gradient."""

__all__ = [
    "base_of",
    "depends_on_parameters",
    "is_continuous",
    "require_domain",
    "require_reverse_mode",
]

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.distributions import Binomial, Distribution, Independent, constraints

from ..numerics.tracing import inside_transform, inside_vmap, parameters_of
from .sample_site import Site

_POSITIVE = ("rate", "total_count", "concentration", "concentration0", "concentration1")
_HIGHEST = dict.fromkeys(_POSITIVE, math.inf) | {"probs": 1.0}
"""Parameters that are at least 0, and what they are at most."""


def base_of(law: Any) -> Any:
    """The law itself, without the dimensions that ``Independent`` declares as an event."""
    while isinstance(law, Independent):
        law = law.base_dist
    return law


def require_domain(law: Any, site: Site, relaxed: bool, known: dict[Any, bool]) -> None:
    """Raise a ``ValueError`` that names the line where a parameter has left its domain.

    Where draws are ``relaxed``, one may have been taken for a number of trials. A parameter that is
    the same as before is ``known``, with whether it lies on a boundary.
    """
    site.may_be_sure = "logits" in vars(law)
    for name, value in vars(law).items():
        top = _HIGHEST.get(name)
        if top is None or not isinstance(value, Tensor) or not value.numel():
            continue
        value = value.detach()
        key = None if inside_transform() else (name, value.data_ptr(), value.shape, value._version)
        if key is None or (sure := known.get(key)) is None:
            ends = value.aminmax()  # NaN if there is one
            low, high = map(float, ends) if value.is_cpu else torch.stack(ends).tolist()
            if not (low >= 0 and high <= top and high < math.inf) and not _may_be_negative(
                law, name
            ):
                wrong = value[~((value >= 0) & (value <= top) & (value < math.inf))]
                raise ValueError(
                    f"{site.place}: {site.law} expects `{name}` of at least 0"
                    f"{' and at most 1' if top == 1 else ''}, but {wrong.numel()} of "
                    f"{value.numel()} are not; the first is {wrong.flatten()[0].item():.6g}."
                )
            sure = known[key] = low == 0 or high == top
        site.may_be_sure |= sure
    trials = law.total_count.detach() if relaxed and isinstance(law, Binomial) else None
    if trials is not None and not torch.equal(trials, trials.round()):
        raise ValueError(
            f"{site.place}: {site.law} expects a whole number of trials, but got a relaxed draw; "
            "take a rule whose draws are whole: MidCDF(), GenGS(..., hard=True), ReinMax()."
        )


def _may_be_negative(law: Any, name: str) -> bool:
    """Whether a parameter of this name is another thing here: the shape of a tail, for one."""
    known = getattr(type(law), "arg_constraints", None)
    return isinstance(known, dict) and known.get(name) is constraints.real


def require_reverse_mode() -> None:
    """Raise a ``RuntimeError`` under transforms through which a draw does not see its parameters.

    Forward mode (``torch.func.jvp``) asks for tangents, which a draw does not have. Under
    ``torch.vmap`` a tensor does not show whether it requires a gradient.
    """
    if forward_ad._current_level >= 0:
        raise RuntimeError(
            "gengs.differentiable has reverse-mode gradients only, and a draw in forward mode "
            "(torch.func.jvp, jacfwd, a dual level) would have a tangent of 0; use backward() "
            "or torch.func.grad."
        )
    if inside_vmap():
        raise RuntimeError(
            "a draw in torch.vmap does not see whether its parameters require a gradient, which "
            "would be lost; gengs.differentiable draws all replicates side by side: give the draw "
            "a first dimension that counts them."
        )


def depends_on_parameters(law: Any) -> bool:
    """Whether anything that the law is made of requires a gradient."""
    return any(tensor.requires_grad for tensor in parameters_of(law))


def is_continuous(law: Distribution) -> bool:
    """Whether the law has draws of its own that carry a gradient, on a continuum."""
    if not law.has_rsample:
        return False
    try:
        return not getattr(law.support, "is_discrete", False)
    except NotImplementedError:
        return True
