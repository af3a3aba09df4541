r"""From any discrete law to a law on finitely many atoms, with the tails lumped.

.. math::
    \pi_k = p(k) \text{ inside}, \qquad
    \pi_{\mathrm{high}} = P(X \ge \mathrm{high}), \qquad
    \pi_{\mathrm{low}} = P(X \le \mathrm{low})

so that :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})` exactly. Lumping is not
renormalising: the end atom carries the whole tail.
"""

from __future__ import annotations

__all__ = ["as_finite", "cut_to", "truncate"]

import operator

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    Multinomial,
    OneHotCategorical,
)

from .certificate import warn_if_drifted
from .families import Family, check_parameters, family_of
from .finite import Finite
from .memory import require_memory
from .multinomial import enumerate_multinomial
from .truncated import Truncated
from .truncation import (
    DEFAULT_ALLOWED,
    Window,
    window_for_all,
    window_of_mass,
    window_of_tolerance,
)
from .validation import inspectable, ordinary, validates


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
    if isinstance(law, Finite | OneHotCategorical | Multinomial):
        if given:
            raise ValueError(
                f"truncate keeps all values of a {type(law).__name__}; it takes no {given[0]}."
            )
        if isinstance(law, Finite):
            return law
        if isinstance(law, OneHotCategorical):
            return _one_hot(law, validate)
        return _counts(law, validate)

    family = family_of(law)
    if validate:
        check_parameters(family)
    if level is not None:
        if _integer("level", level) < 1:
            raise ValueError(f"truncate expects at least one atom, but got level={level}.")
        window = Window(0, _integer("level", level), allowed=DEFAULT_ALLOWED)
    elif low is not None or high is not None:
        window = _window_between(family, low, high)
    elif mass is not None:
        window = window_of_mass(family, mass)
    elif tolerance is not None:
        window = window_of_tolerance(family, tolerance)
    elif window is None:
        window = _window_of_support(family)
    return _cut(family, window, validate)


def cut_to(law: Distribution, like: Truncated) -> Truncated:
    """``law`` cut to the window of ``like``, whose atoms it shares, without ado."""
    family = family_of(law)
    check_parameters(family)
    cut = _cut(family, like.window, validate=True)
    atoms = like.atoms
    if cut.dtype == like.dtype and family.like.device == atoms.device:
        cut.atoms = atoms
    return cut


def _cut(family: Family, window: Window, validate: bool) -> Truncated:
    require_memory(family.batch_shape, window.size, family.like.dtype, family.like.device)
    law = Truncated(family, window, validate)
    if not ordinary(family.like):  # a table that is made later must not belong to a transform
        law.make_table()
    if validate and type(family) is Family:
        _require_normalised(family, law.logits.detach())
    if validate and window.size > 1:
        warn_if_drifted(law, stacklevel=4)
    return law


def _require_normalised(family: Family, log_pmf: Tensor) -> None:
    """A law that was only asked for its ``log_prob`` may have given unnormalised numbers."""
    total = log_pmf.logsumexp(-1).exp()
    if inspectable(total) and bool(((total - 1).abs() > 1e-3).any()):
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        raise ValueError(
            f"truncate expects a normalised `log_prob`, but the probabilities of "
            f"{type(family.law).__name__} sum to {worst:.4g}."
        )


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


def _window_of_support(family: Family) -> Window:
    if family.lower is None or family.upper is None:
        raise ValueError(
            f"truncate expects a rule (level=, low=/high=, mass= or tolerance=) for "
            f"{type(family.law).__name__}, which has infinitely many values."
        )
    if isinstance(family.law, Bernoulli):
        return Window(0, 2, allowed=1.0)
    if isinstance(family.law, Categorical):
        return Window(0, family.law._num_events, allowed=1.0)
    last = int(family.upper.max()) if family.upper.numel() else family.lower
    return Window(family.lower, last - family.lower + 1, allowed=1.0)


def _one_hot(law: OneHotCategorical, validate: bool) -> Finite:
    n = law.event_shape[-1]
    table = family_of(law._categorical).log_pmf(torch.arange(n, device=law.logits.device))
    atoms = torch.eye(n, dtype=table.dtype, device=table.device)
    return Finite(atoms, logits=table, event_dim=1, validate_args=validate)


def _counts(law: Multinomial, validate: bool) -> Finite:
    atoms, log_pmf = enumerate_multinomial(law)
    return Finite(atoms, logits=log_pmf, event_dim=1, validate_args=validate)


def as_finite(law: Distribution, tolerance: float = 1e-6) -> Finite:
    """A law as a :class:`Finite`: itself, all its values, or cut with ``tolerance`` outside."""
    if isinstance(law, Finite):
        return law
    if isinstance(law, OneHotCategorical | Multinomial | Bernoulli | Categorical):
        return truncate(law)
    if isinstance(law, Independent):
        return truncate(law)  # says what to do instead
    family = family_of(law)
    check_parameters(family)
    return _cut(family, window_for_all(family, tolerance), validate=True)
