"""Parameters that are NaN, infinite or outside their constraint, named in a sentence.

torch lets ``Poisson(inf)`` through, and everything else while its validation is off.
"""

__all__ = ["check_parameters", "parameter_faults"]

from collections.abc import Iterator

from torch import Tensor
from torch.distributions import Distribution, constraints

from ..numerics.tracing import any_of, not_finite, require_finite, tensors_of


def parameter_faults(q: Distribution) -> list[Tensor]:
    """For each parameter, whether it is NaN, infinite or against the law's own constraint."""
    faults = []
    for _, name, value, constraint in _constrained(q):
        if name != "logits":  # ±inf logits are point masses
            faults.append(not_finite(value))
        faults.append(~constraint.check(value.detach()))
    return faults


def check_parameters(q: Distribution) -> None:
    """Raise a ``ValueError`` that names the first parameter with a fault."""
    faults = parameter_faults(q)
    if not faults or not any_of(*faults):
        return
    for owner, name, value, constraint in _constrained(q):
        if name != "logits":
            require_finite(name, value, owner)
        good = constraint.check(value)
        if not good.all():
            raise ValueError(
                f"{owner} expects `{name}` (shape {tuple(value.shape)}) to satisfy {constraint}, "
                f"but {int((~good).sum())} of {good.numel()} do not; "
                f"the first is {value[~good][0].tolist()}."
            )


def _constrained(q: Distribution) -> Iterator[tuple[str, str, Tensor, constraints.Constraint]]:
    """The parameters with a constraint that can be checked: owner, name, value, constraint."""
    for law, name, value in tensors_of(q):
        constraint = law.arg_constraints.get(name)
        # torch's checks cannot take an empty tensor
        if constraint is None or constraints.is_dependent(constraint) or not value.numel():
            continue
        if constraint is constraints.simplex and value.dtype.itemsize < 4:
            constraint = constraints.nonnegative  # halves sum to 1 up to three digits, torch's six
        yield type(law).__name__, name, value, constraint
