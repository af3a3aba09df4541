r"""From any discrete law to a law on finitely many atoms, with the tails lumped.

.. math::
    \pi_k = p(k) \text{ inside}, \qquad
    \pi_{\mathrm{high}} = P(X \ge \mathrm{high}), \qquad
    \pi_{\mathrm{low}} = P(X \le \mathrm{low})

so that :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})` exactly. Lumping is not
renormalising: the end atom carries the whole tail.
"""

__all__ = ["as_finite", "truncate"]

import math
import operator
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    MixtureSameFamily,
    Multinomial,
    OneHotCategorical,
    constraints,
)

from ..laws.law import Family, family_of
from .finite import Finite
from ..laws.multinomial import (
    OneHot,
    enumerate_multinomial,
    multinomial_log_pmf,
    multinomial_logits,
    multinomial_probs,
)
from ..numerics.tails import was_given
from ..numerics.tracing import any_of, not_finite, require_finite, require_memory, tensors_of, validates
from .windows import (
    DEFAULT_ALLOWED,
    Certificate,
    TruncationWarning,
    Window,
    window_for_all,
    window_of_mass,
    window_of_support,
    window_of_tolerance,
)


def truncate(
    law: Distribution,
    level: int | None = None,
    *,
    low: int | None = None,
    high: int | None = None,
    mass: float | None = None,
    tolerance: float | None = None,
    window: Window | None = None,
    validate_args: bool | None = None,
) -> Finite:
    r"""Cut a discrete law to finitely many atoms; what lies outside is lumped on the end atoms.

    Give one rule: ``level``, or ``low`` and/or ``high``, or ``mass``, or ``tolerance``, or a
    ``window`` that was computed before. A law with finitely many values (Bernoulli, Categorical,
    OneHotCategorical, Binomial, Multinomial) needs none: all its values become atoms.

    Args:
        law: Any law with a PMF: torch's own, another library's, or yours (it needs ``log_prob`` on
            integers and a discrete ``support``).
        level: Keep the integers 0 … level - 1.
        low: Keep the integers from ``low`` on.
        high: Keep the integers up to ``high``.
        mass: Keep 0, 1, … until their mass reaches this, then one more atom with the rest.
        tolerance: Keep the smallest window, for each element, that loses at most this mass.
        window: Keep the integers of this window; warn when the law has drifted out of it.
        validate_args: Whether to check parameters; on by default.

    Example:
        >>> q = truncate(torch.distributions.Poisson(torch.tensor(7.0)), 12)
        >>> q.num_atoms, q.probs[-1]  # the last atom holds P(X >= 11)
        (12, tensor(0.0985))
        >>> truncate(torch.distributions.Poisson(torch.tensor(1e6)), tolerance=1e-6).num_atoms
        9784
    """
    if not isinstance(law, Distribution):
        raise TypeError(f"truncate expects a torch distribution, but got {type(law).__name__}.")
    validate = validates(validate_args)
    if isinstance(law, Independent):
        raise TypeError(
            "truncate expects the law of one coordinate; call truncate(law.base_dist, ...) and "
            "wrap the result in Independent again."
        )
    rules: dict[str, object] = {
        "level": level,
        "low/high": low if high is None else high,
        "mass": mass,
        "tolerance": tolerance,
        "window": window,
    }
    given = [name for name, value in rules.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"truncate expects one rule, but got {' and '.join(given)}.")
    if not isinstance(window, Window | None):
        raise TypeError(f"truncate expects a Window as `window`, but got {window!r}.")
    if window and (torch.as_tensor(window.low).is_floating_point() or window.size < 1):
        raise ValueError(f"truncate expects one integer or more, but got {window}.")
    mixture = isinstance(law, MixtureSameFamily)
    table = None if mixture and given else _as_table(law, validate)
    if table is not None:
        if given:
            raise ValueError(
                f"truncate keeps all values of a {type(law).__name__}; it takes no {given[0]}."
            )
        return table
    family = family_of(law)
    if validate and type(family) is Family:  # whose log_prob may say something else about them
        _check_parameters(family)
    if level is not None:
        if _integer("level", level) < 1:
            raise ValueError(f"truncate expects at least one atom, but got level={level}.")
        window = Window(0, _integer("level", level), allowed=DEFAULT_ALLOWED)
    elif window is None:  # it depends on the parameters, which are looked at before
        if validate:
            _check_parameters(family)
        if low is not None or high is not None:
            window = _window_between(family, low, high)
        elif mass is not None:
            window = window_of_mass(family, mass)
        elif tolerance is not None:
            window = window_of_tolerance(family.for_window(), tolerance)
        else:
            window = window_of_support(family)
    return _cut(family, window, validate)


def as_finite(law: Distribution, tolerance: float = 1e-6) -> Finite:
    """A law as a :class:`Finite`: itself, all its values, or cut with ``tolerance`` outside."""
    if isinstance(law, Independent | OneHotCategorical | Multinomial | Bernoulli | Categorical):
        return truncate(law)
    validate = validates(vars(law).get("_validate_args"))
    table = _as_table(law, validate)
    if table is not None:
        return table
    family = family_of(law)
    _check_parameters(family)  # to choose a window is to look at them anyway
    return _cut(family, window_for_all(family.for_window(), tolerance), validate)


def _as_table(law: Distribution, validate: bool) -> Finite | None:
    """Laws that are tables already, numbers or vectors; ``None`` for the others."""
    if isinstance(law, Finite):
        return law
    if isinstance(law, OneHotCategorical):
        if was_given(law._categorical, "logits"):
            return OneHot(multinomial_logits(law._categorical), None, validate)
        probs, log_probs = multinomial_probs(law)
        return OneHot(log_probs, probs, validate)
    if isinstance(law, Multinomial):
        atoms, log_pmf = enumerate_multinomial(law)
        table = Finite(atoms, logits=log_pmf, event_dim=1, validate_args=validate)
        if was_given(law._categorical, "probs"):
            # of an impossible box the products themselves, whose derivative is one-sided
            p = multinomial_probs(law)[0].unsqueeze(-2)
            ways = multinomial_log_pmf(atoms, torch.zeros_like(p.squeeze(-2)), law.total_count)
            direct = ways.exp() * p.pow(atoms).prod(-1)
            table.given_probs = torch.where((p == 0).any(-1), direct, table.probs)
        return table
    if isinstance(law, MixtureSameFamily) and isinstance(law.component_distribution, Finite):
        parts = law.component_distribution
        if parts.atoms.dim() > 1 + parts.event_dim:
            raise TypeError(
                "truncate expects a mixture of laws on the same atoms; cut its components by one "
                "level= or one range, not each by its own."
            )
        weights = law.mixture_distribution.probs.unsqueeze(-1)
        probs = (weights * parts.probs).sum(-2)
        return Finite(parts.atoms, probs=probs, event_dim=parts.event_dim, validate_args=validate)
    return None


def _cut(family: Family, window: Window, validate: bool) -> Finite:
    """The law of ``clip(X, low, high)``: the PMF inside, and a tail on each end atom."""
    low, n, like = window.low, window.size, family.like
    require_memory(family.batch_shape, n, torch.float64, like.device)  # what formulas run in
    k = torch.arange(n, device=like.device)
    k = k + (low.to(like.device).unsqueeze(-1) if isinstance(low, Tensor) else low)
    lower = -math.inf if family.lower is None else family.lower
    first = low if isinstance(low, int) and low <= lower else None
    # a single atom carries everything, with a gradient, zero, where there is one
    logits = family.log_clipped(k, first) if n > 1 else family.log_pmf(k).nan_to_num() * 0.0
    if validate:
        _check_cut(family, window, k, logits.detach(), first is None)
    law = Finite.__new__(Finite)
    law.made_from = truncate, (family.law,), {"window": window, "validate_args": validate}
    law.certificate = Certificate(family, window)
    atoms = k.to(torch.promote_types(like.dtype, torch.float32))
    law.set_table(atoms, logits, 0, like.dtype, validate)
    if family.looks:
        law.given_probs = family.clipped_pmf(atoms, logits)
    return law


# ------------------------------------------------------------------------------------- the windows


def _window_between(family: Family, low: int | None, high: int | None) -> Window:
    first = family.lower if low is None else _integer("low", low)
    last = None if high is None else _integer("high", high)
    if last is None and family.upper is not None:
        last = int(family.upper.max())
    if first is None or last is None:
        raise ValueError(
            f"truncate expects both low= and high= for {type(family.law).__name__}, whose support "
            "is infinite there."
        )
    if last < first:
        raise ValueError(
            f"truncate expects at least one atom, but got low={low} and high={high}, "
            f"which leaves the integers from {first} to {last}."
        )
    return Window(first, last - first + 1, allowed=DEFAULT_ALLOWED)


def _integer(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"truncate expects an integer `{name}`, but got {value!r}.") from None


# -------------------------------------------------------------------------------------- the checks


def _check_cut(family: Family, window: Window, k: Tensor, logits: Tensor, below: bool) -> None:
    """One look: at parameters that are no parameters, at lost mass, and at unnormalised PMFs."""
    ends, at = logits[..., -1:], k[..., -1:]
    if below:
        ends, at = torch.cat([logits[..., :1], ends], -1), torch.cat([k[..., :1], at], -1)
    held = ends.exp().sum(-1)  # an end atom holds its own probability and what lies beyond
    unnormalised = held.new_zeros(()).bool()
    if type(family) is Family:  # whose log_prob is somebody else's
        unnormalised = (logits.logsumexp(-1).exp() - 1).abs() > 1e-3
    if not any_of(*_faults(family), held > window.allowed, unnormalised):
        return
    _check_parameters(family)
    if any_of(unnormalised):
        total = logits.logsumexp(-1).exp()
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        raise ValueError(
            f"truncate expects a normalised `log_prob`, but the probabilities of "
            f"{type(family.law).__name__} sum to {worst:.4g}."
        )
    lost = held - family.log_pmf(at).detach().exp().sum(-1) > window.allowed
    if window.size > 1 and any_of(lost):
        # no number that changes from call to call: Python shows the same sentence once only
        warnings.warn(
            f"truncation to {window.size} atoms loses more than {window.allowed:.3g} of the "
            f"mass of some {type(family.law).__name__}: the end atom holds it, and the gradient "
            "there dies. Widen the window (level=, tolerance=) or choose it anew; "
            "certificate.lost_mass has the numbers.",
            TruncationWarning,
            stacklevel=4,
        )


def _faults(family: Family) -> list[Tensor]:
    """For each parameter, whether it is NaN, infinite or against the law's own constraint."""
    faults = []
    for _, name, value, constraint in _constrained(family):
        if name != "logits":  # ±inf logits are point masses
            faults.append(not_finite(value))
        faults.append(~constraint.check(value.detach()))
    return faults


def _constrained(family: Family) -> Iterator[tuple[str, str, Tensor, constraints.Constraint]]:
    """The parameters with a constraint that can be checked: owner, name, value, constraint."""
    for law, name, value in tensors_of(family.law):
        constraint = law.arg_constraints.get(name)
        # torch's checks cannot take an empty tensor
        if constraint is None or constraints.is_dependent(constraint) or not value.numel():
            continue
        if constraint is constraints.simplex and value.dtype.itemsize < 4:
            constraint = constraints.nonnegative  # halves sum to 1 up to three digits, torch's six
        yield type(law).__name__, name, value, constraint


def _check_parameters(family: Family) -> None:
    """Raise where a parameter is NaN, infinite or against the law's own constraint.

    torch lets ``Poisson(inf)`` through, and everything else while its validation is off.
    """
    faults = _faults(family)
    if not faults or not any_of(*faults):
        return
    for owner, name, value, constraint in _constrained(family):
        if name != "logits":
            require_finite(name, value, owner)
        good = constraint.check(value)
        if not good.all():
            raise ValueError(
                f"{owner} expects `{name}` (shape {tuple(value.shape)}) to satisfy {constraint}, "
                f"but {int((~good).sum())} of {good.numel()} do not; "
                f"the first is {value[~good][0].tolist()}."
            )
