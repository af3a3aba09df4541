r"""What a truncation asks of a law: its log-PMF on integers and the logarithms of its two tails.

==================  =================================  ==========================================
law                 log PMF                            :math:`P(X \ge a)`
==================  =================================  ==========================================
Poisson             k log λ - λ - lnΓ(k + 1)           incomplete gamma function
Geometric           k log(1 - p) + log p               (1 - p)^a
Binomial            log C(N, k) + ...                  incomplete beta function
NegativeBinomial    log C(r + k - 1, k) + ...          incomplete beta function
anything else       the law's own ``log_prob``         sum of its terms (see ``summation.py``)
==================  =================================  ==========================================

:func:`family_of` finds the row for a law. All shapes have one trailing dimension for the integers:
parameters are ``(*batch, 1)``, ``k`` is ``(n,)`` or ``(*batch, n)``. Formulas that cancel in
``float32`` (log-gammas of large numbers) run in ``float64`` inside.
"""

from __future__ import annotations

__all__ = ["Family", "family_of", "register_family"]

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    Geometric,
    NegativeBinomial,
    Poisson,
    constraints,
)
from torch.distributions.utils import lazy_property
from torch.nn.functional import linear, logsigmoid

from .special import log_beta_tail, log_poisson_tail, safe_log, safe_log1p
from .summation import log_sum_above, log_sum_below
from .validation import inspectable, require_finite

_LARGEST_IN_FLOAT32 = 64
"""Past this integer, ``k log λ`` loses more than four digits of the PMF in ``float32``."""


class Family:
    """A law on integers. This class asks the law itself; subclasses know closed forms.

    Args:
        law: Any distribution with a ``log_prob`` on integers and a scalar event.
        lower: The smallest possible integer, ``None`` where there is none.
        upper: The largest possible integers, ``(*batch, 1)``, ``None`` where there is none.
    """

    def __init__(self, law: Distribution, lower: int | None = None, upper: Tensor | None = None):
        self.law, self.lower, self.upper = law, lower, upper
        self.batch_shape = torch.Size(law.batch_shape)  # other libraries' laws may have a tuple

    @lazy_property
    def like(self) -> Tensor:
        """A tensor with the floating type and the device of the log-probabilities."""
        device = next((tensor.device for _, _, tensor in tensors_of(self.law)), None)
        lowest = float(self.lower or 0)
        at = torch.full(self.batch_shape, lowest, dtype=torch.float32, device=device)
        return _widen(self.law.log_prob(at).detach())

    def log_pmf(self, k: Tensor) -> Tensor:
        """``log P(X = k)``, ``-inf`` outside the support."""
        inside = self._inside(k)
        # in the law's own precision: the log-gamma of a float32 count is a float32 number
        values = k.to(self.like.dtype).where(inside, float(self.lower or 0))
        values = values.expand(*self.batch_shape, k.shape[-1])
        log_pmf = self.law.log_prob(values.movedim(-1, 0)).movedim(0, -1)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        """``log P(X >= a)``."""
        return log_sum_above(self.log_pmf, a, self.lower)

    def log_at_most(self, a: Tensor) -> Tensor:
        """``log P(X <= a)``."""
        return log_sum_below(self.log_pmf, a, self.lower)

    def clipped_log_pmf(self, k: Tensor, nothing_below: bool) -> Tensor:
        """The log-PMF of ``clip(X, k[0], k[-1])``: a tail on each end atom, ``(*batch, n)``.

        Args:
            k: At least two consecutive integers, ``(n,)`` or ``(*batch, n)``.
            nothing_below: Whether ``k[0]`` is the law's own smallest value: no tail there.
        """
        parts = [self.log_at_least(k[..., -1:])]
        if k.shape[-1] > 2 or nothing_below:
            parts.insert(0, self.log_pmf(k[..., (0 if nothing_below else 1) : -1]))
        if not nothing_below:
            parts.insert(0, self.log_at_most(k[..., :1]))
        batch = self.batch_shape
        return torch.cat([part.expand(*batch, part.shape[-1]) for part in parts], -1)

    def centre_and_spread(self) -> tuple[Tensor, Tensor]:
        """Where to start to look for the bulk of the mass, and with which step; ``(*batch, 1)``."""
        at = torch.zeros(*self.batch_shape, 1, dtype=torch.float64, device=self.like.device)
        try:
            mean, spread = self.law.mean.unsqueeze(-1) + at, self.law.stddev.unsqueeze(-1) + at
        except NotImplementedError:
            return at + (self.lower or 0), at + 1
        usable = torch.isfinite(mean) & torch.isfinite(spread)
        return mean.detach().where(usable, 0.0).round(), spread.detach().where(usable, 1.0) + 1

    def _inside(self, k: Tensor) -> Tensor:
        inside = k == k.round()
        if self.lower is not None:
            inside = inside & (k >= self.lower)
        return inside if self.upper is None else inside & (k <= self.upper)


class _Poisson(Family):
    def __init__(self, law: Poisson) -> None:
        super().__init__(law, lower=0)
        self.rate = self.like = _widen(law.rate).unsqueeze(-1)

    def log_pmf(self, k: Tensor) -> Tensor:
        rate = self.rate if _known_to_be_small(k) else self.rate.double()
        k = k.to(rate.dtype)
        log_power = (k * safe_log(rate)).where(k != 0, 0.0)
        log_pmf = log_power - rate - torch.lgamma(k.clamp_min(0) + 1)
        return log_pmf.where(self._inside(k), -torch.inf).to(self.rate.dtype)

    def clipped_log_pmf(self, k: Tensor, nothing_below: bool) -> Tensor:
        simple = k.dim() == 1 and nothing_below and _known_to_be_small(k)
        if not (simple and inspectable(self.rate) and bool((self.rate > 0).all())):
            return super().clipped_log_pmf(k, nothing_below)
        # The usual case, as one matrix product instead of a dozen passes over the table: row k is
        # k · log rate - rate - lnΓ(k + 1), and the last row is the tail.
        features = torch.cat([self.rate.log(), self.rate, self.log_at_least(k[-1:])], -1)
        weight = torch.zeros(len(k), 3, dtype=self.rate.dtype, device=k.device)
        weight[:-1, 0], weight[:-1, 1], weight[-1, 2] = k[:-1].to(weight.dtype), -1.0, 1.0
        bias = -torch.lgamma(k.to(weight.dtype) + 1)
        bias[-1] = 0.0
        return linear(features, weight, bias)

    def log_at_least(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a, self.rate, True)

    def log_at_most(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a + 1, self.rate, False)


class _Geometric(Family):
    def __init__(self, law: Geometric) -> None:
        super().__init__(law, lower=0)
        self.log_p, self.log_1mp = _log_success_and_failure(law)
        self.like = self.log_p

    def log_pmf(self, k: Tensor) -> Tensor:
        k = k.to(self.log_p.dtype)
        log_pmf = (k * self.log_1mp).where(k != 0, 0.0) + self.log_p
        return log_pmf.where(self._inside(k), -torch.inf)

    def log_at_least(self, a: Tensor) -> Tensor:
        a = a.to(self.log_p.dtype).clamp_min(0)
        return (a * self.log_1mp).where(a != 0, 0.0)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_above = self.log_at_least(a + 1)
        surely = log_above == -torch.inf
        log_below = safe_log(-torch.expm1(log_above.where(~surely, -1.0)))
        return log_below.where(~surely, 0.0)


class _Binomial(Family):
    def __init__(self, law: Binomial) -> None:
        self.total = law.total_count.double().unsqueeze(-1)
        super().__init__(law, lower=0, upper=self.total)
        # a million times a logarithm: its rounding to float32 would show in the PMF
        self.log_p, self.log_1mp = _log_success_and_failure(law, torch.float64)
        self.like = _widen(law._param)

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self._inside(k)
        k = k.double().where(inside, 0.0)
        rest = self.total - k
        choose = torch.lgamma(self.total + 1) - torch.lgamma(k + 1) - torch.lgamma(rest + 1)
        log_pmf = choose + _times(k, self.log_p) + _times(rest, self.log_1mp)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        log_above = log_beta_tail(a.double(), self.total - a + 1, self.log_p, self.log_1mp)
        return log_above.to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_below = log_beta_tail(self.total - a, a.double() + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)


class _NegativeBinomial(Family):
    def __init__(self, law: NegativeBinomial) -> None:
        super().__init__(law, lower=0)
        self.total = law.total_count.double().unsqueeze(-1)
        # a million times a logarithm: its rounding to float32 would show in the PMF
        self.log_p, self.log_1mp = _log_success_and_failure(law, torch.float64)
        self.like = _widen(law._param)

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self._inside(k)
        k, r = k.double().where(inside, 0.0), self.total
        choose = torch.lgamma(r + k) - torch.lgamma(r) - torch.lgamma(k + 1)
        choose = choose.where((k != 0) | (r > 0), 0.0)
        log_pmf = choose + _times(k, self.log_p) + _times(r, self.log_1mp)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        if self.total.requires_grad:  # the beta tail has no derivative in r; its terms have
            return super().log_at_least(a)
        log_above = log_beta_tail(a.double(), self.total, self.log_p, self.log_1mp)
        return log_above.to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        if self.total.requires_grad:
            return super().log_at_most(a)
        log_below = log_beta_tail(self.total, a.double() + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)


class _Bernoulli(Family):
    def __init__(self, law: Bernoulli) -> None:
        log_p, log_1mp = _log_success_and_failure(law)
        super().__init__(law, lower=0, upper=torch.ones_like(log_p))
        self.log_pmf_table = self.like = torch.cat([log_1mp, log_p], -1)

    def log_pmf(self, k: Tensor) -> Tensor:
        return _look_up(self.log_pmf_table, k)


class _Categorical(Family):
    def __init__(self, law: Categorical) -> None:
        given = _gave(law, "logits")
        table = _widen(law.logits) if given else safe_log(_widen(law.probs))
        if table.dtype != law._param.dtype:  # half precision was normalised to three digits only
            table = table.log_softmax(-1)
        n = torch.full_like(table[..., :1], table.shape[-1] - 1)
        super().__init__(law, lower=0, upper=n)
        self.log_pmf_table = self.like = table

    def log_pmf(self, k: Tensor) -> Tensor:
        return _look_up(self.log_pmf_table, k)


def _look_up(table: Tensor, k: Tensor) -> Tensor:
    n = table.shape[-1]
    inside = (k >= 0) & (k < n) & (k == k.round())
    index = k.where(inside, 0).long().expand(*table.shape[:-1], k.shape[-1])
    return table.gather(-1, index).where(inside, -torch.inf)


_FAMILIES: dict[type[Distribution], Callable[..., Family]] = {
    Poisson: _Poisson,
    Geometric: _Geometric,
    Binomial: _Binomial,
    NegativeBinomial: _NegativeBinomial,
    Bernoulli: _Bernoulli,
    Categorical: _Categorical,
}


def register_family(law: type[Distribution], family: Callable[..., Family]) -> None:
    """Let :func:`family_of` know the closed forms of one more law."""
    _FAMILIES[law] = family


def family_of(law: Distribution) -> Family:
    """The family of a law; a law without a row of its own is asked for its ``log_prob``.

    So is a subclass with a ``log_prob`` of its own: it may be another law.
    """
    for known, family in _FAMILIES.items():
        if isinstance(law, known) and type(law).log_prob is known.log_prob:
            return family(law)
    return Family(law, *_integer_support(law))


def tensors_of(law: Distribution) -> Iterator[tuple[Distribution, str, Tensor]]:
    """The tensors a law holds, with owner and name; also those of the laws it is made of."""
    for name, value in vars(law).items():
        if isinstance(value, Tensor):
            yield law, name, value
        elif isinstance(value, Distribution):
            yield from tensors_of(value)


def check_parameters(family: Family) -> None:
    """Raise where a parameter is NaN, infinite or against the law's own constraint.

    torch lets ``Poisson(inf)`` through, and everything else while its validation is off.
    """
    if not inspectable():
        return
    for law, name, value in tensors_of(family.law):
        constraint = law.arg_constraints.get(name)
        if constraint is None or constraints.is_dependent(constraint) or not inspectable(value):
            continue
        if value.numel() == 0:  # torch's checks cannot take it
            continue
        if constraint is constraints.simplex and value.dtype.itemsize < 4:
            continue  # half precision sums to 1 up to three digits, torch asks for six
        owner = type(law).__name__
        if name != "logits":  # ±inf logits are point masses
            require_finite(name, value, owner)
        good = constraint.check(value)
        if not good.all():
            raise ValueError(
                f"{owner} expects `{name}` (shape {tuple(value.shape)}) to satisfy {constraint}, "
                f"but {int((~good).sum())} of {good.numel()} do not; "
                f"the first is {value[~good][0].tolist()}."
            )


def _integer_support(law: Distribution) -> tuple[int | None, Tensor | None]:
    """The first and the last integer of a law's support; ``TypeError`` where it has no integers."""
    name = type(law).__name__
    if law.event_shape:
        raise TypeError(
            f"truncate expects a law with scalar events, but {name} has event_shape "
            f"{tuple(law.event_shape)}; treat its coordinates one by one, or enumerate its atoms "
            "and build a Finite."
        )
    try:
        support = law.support
    except (NotImplementedError, AttributeError):
        support = None
    if support is None or not getattr(support, "is_discrete", False):
        raise TypeError(
            f"truncate expects a law with a PMF on integers, but {name} has support {support}; "
            "give it `support = torch.distributions.constraints.nonnegative_integer` (or another "
            "integer constraint) and a `log_prob`."
        )
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    lower, upper = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if support is constraints.boolean:
        lower, upper = 0, 1
    if upper is not None:
        upper = torch.as_tensor(upper, dtype=torch.float64).expand(law.batch_shape).unsqueeze(-1)
    return None if lower is None else int(torch.as_tensor(lower).min()), upper


def _widen(parameter: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    return parameter.to(torch.promote_types(parameter.dtype, dtype))


def _known_to_be_small(k: Tensor) -> bool:
    """Whether every integer is small enough for float32; a trace cannot know."""
    return inspectable(k) and k.numel() > 0 and bool(k.max() <= _LARGEST_IN_FLOAT32)


def _times(k: Tensor, log_p: Tensor) -> Tensor:
    """``k · log p`` with ``0 · (-inf) = 0``, and no NaN in the gradient of either."""
    never = log_p == -torch.inf
    return (k * log_p.masked_fill(never, 0.0)).masked_fill(never & (k != 0), -torch.inf)


def _gave(law: Distribution, name: str) -> bool:
    """Whether the user built the law from ``name``: the other parameter is lazy, and clamped."""
    if hasattr(law, "_param"):
        return vars(law).get(name) is law._param
    # Geometric does not note it, but its attributes are in the order of their making
    return name == next(key for key in vars(law) if key in ("probs", "logits"))


def _log_success_and_failure(
    law: Distribution, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 - p)``, ``(*batch, 1)``, without the clamp torch puts on logits."""
    if _gave(law, "logits"):
        logits = _widen(law.logits, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
        return logsigmoid(logits), logsigmoid(-logits)
    probs = _widen(law.probs, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
    # 1 - p rounds: in float32, log(1 - p) of p = 1e-6 would be off by 1 %
    return safe_log(probs), safe_log1p(-probs)
