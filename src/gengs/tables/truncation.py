"""From any discrete distribution to finitely many atoms: a rule makes a window, which cuts it.

What a cut distribution is: :mod:`gengs.tables.truncated`. The rules: :mod:`gengs.tables.windows`.
"""

__all__ = ["as_finite", "truncate"]

import operator
from typing import Any

import torch
from torch.distributions import Distribution, Independent

from ..laws.law import law_of
from ..laws.pmf import PMF
from ..numerics.tracing import validates
from .finite import Finite
from .parameter_checks import check_parameters
from .total_mass import require_total_mass
from .truncated import Truncated
from .windows import (
    DEFAULT_ALLOWED,
    Window,
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
    r"""Cut a distribution to finitely many atoms; what lies outside is lumped on the end atoms.

    Give one rule: ``level``, or ``low`` and/or ``high``, or ``mass``, or ``tolerance``, or a
    ``window`` that was computed before. A distribution with finitely many values (Bernoulli,
    Categorical, OneHotCategorical, Binomial, Multinomial) needs none: all its values become atoms.

    Args:
        law: Any distribution with a PMF: torch's own, another library's, or yours (it needs
            ``log_prob`` on integers and a discrete ``support``). Of ``Independent``, the
            coordinates are cut, and the result is ``Independent`` again.
        level: Keep the integers 0 … level - 1.
        low: Keep the integers from ``low`` on.
        high: Keep the integers up to ``high``.
        mass: Keep 0, 1, … until their mass reaches this, then one more atom with the rest.
        tolerance: Keep the smallest window, for each element, that loses at most this mass.
        window: Keep the integers of this window; warn when the distribution has drifted out of it.
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
    if not (window is None or isinstance(window, Window)):
        raise TypeError(f"truncate expects a Window as `window`, but got {window!r}.")
    if window and (torch.as_tensor(window.low).is_floating_point() or window.size < 1):
        raise ValueError(f"truncate expects one integer or more, but got {window}.")
    if isinstance(law, Independent):
        options: dict[str, Any] = {"low": low, "high": high, "mass": mass, "tolerance": tolerance}
        inner = truncate(
            law.base_dist, level, **options, window=window, validate_args=validate_args
        )
        return Independent(inner, law.reinterpreted_batch_ndims, validate_args=False)  # type: ignore[return-value]
    record = law_of(law)
    record.require_pmf()
    table = None if given and record.cuts_table else record.whole_table(validate)
    if table is not None:
        if given:
            raise ValueError(
                f"truncate keeps all values of a {type(law).__name__}; it takes no {given[0]}."
            )
        return table
    if validate and not record.normalised:  # whose log_prob may say something else about them
        check_parameters(law)
        require_total_mass(record)
    if level is not None:
        if _integer("level", level) < 1:
            raise ValueError(f"truncate expects at least one atom, but got level={level}.")
        window = Window(0, _integer("level", level), allowed=DEFAULT_ALLOWED)
    elif window is None:  # it depends on the parameters, which are looked at before
        if validate:
            check_parameters(law)
        if low is not None or high is not None:
            window = _window_between(record, low, high)
        elif mass is not None:
            window = window_of_mass(record, mass)
        elif tolerance is not None:
            window = window_of_tolerance(record.for_window(), tolerance)
        else:
            window = window_of_support(record)
    return Truncated(record, window, validate)


def as_finite(law: Distribution, tolerance: float = 1e-6) -> Finite:
    """As a :class:`Finite`: itself, all its values, or cut with ``tolerance`` outside."""
    return law_of(law).table(tolerance)


# ------------------------------------------------------------------------------------- the windows


def _window_between(law: PMF, low: int | None, high: int | None) -> Window:
    first = law.lower if low is None else _integer("low", low)
    last = None if high is None else _integer("high", high)
    if last is None and law.upper is not None:
        last = int(law.upper.max())
    if first is None or last is None:
        raise ValueError(
            f"truncate expects both low= and high= for {type(law.q).__name__}, whose support "
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
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise ValueError(f"truncate expects an integer `{name}`, but got {value!r}.")
