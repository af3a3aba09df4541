"""The conformance kit: run it on a distribution or an estimator of your own.

    >>> from torch.distributions import Poisson
    >>> check_law(Poisson(torch.tensor([0.5, 3.0])))
    >>> import gengs
    >>> check_estimator(gengs.RLOO(4), gradients=2000)

Each check raises an ``AssertionError`` that says what was expected and what was found. Statistical
checks have a fixed seed and a declared false-alarm rate over all comparisons together: 1e-6 unless
told otherwise. With the default 20,000 gradients, a bias of about 5 % of a gradient's standard
deviation is found with near certainty.
"""

__all__ = ["COSTS", "LAWS", "check_estimator", "check_law"]

from collections.abc import Callable
from statistics import NormalDist

import torch
from torch import Tensor
from torch.distributions import (
    Binomial,
    Categorical,
    Distribution,
    Geometric,
    Independent,
    NegativeBinomial,
    Poisson,
)

from ..estimators.base import Cost, Estimator
from ..estimators.exact import Exact
from ..estimators.finite_difference import FiniteDifference
from ..estimators.midcdf import MidCDF
from ..tables.finite import Finite
from ..tables.truncation import as_finite, truncate
from ._measure import independent_gradients
from .replicates import leaves_of


def _parameter(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).requires_grad_()


LAWS: dict[str, Callable[[], Distribution]] = {
    "Poisson": lambda: truncate(Poisson(_parameter(0.7, 3.0, 1.5)), 14),
    "Geometric": lambda: truncate(Geometric(_parameter(0.5, 0.7, 0.4)), 14),
    "Binomial": lambda: truncate(Binomial(5, _parameter(0.3, 0.8, 0.5))),
    "NegativeBinomial": lambda: truncate(NegativeBinomial(3.0, _parameter(0.2, 0.4, 0.3)), 14),
    "Categorical": lambda: truncate(
        Categorical(logits=_parameter(*(0.3 * k for k in range(12))).view(3, 4))
    ),
    "implicit PMF": lambda: Finite(
        torch.tensor([0.0, 1.0, 2.5, 4.0], dtype=torch.float64),
        logits=_parameter(0.1, -1.0, 0.6, 0.2, 0.9, 0.4, -0.3, 0.0, 1.2, -0.2, 0.1, 0.3).view(3, 4),
    ),
}
"""Distributions of three factors each, in double precision, on which estimators are checked."""


def _network(z: Tensor) -> Tensor:
    inner = torch.linspace(-1.0, 1.2, 8, dtype=z.dtype)
    return (torch.tanh(z.unsqueeze(-1) * inner + inner.flip(0)) * inner.cos()).sum(-1)


COSTS: dict[str, Callable[[Tensor], Tensor]] = {
    "quadratic": lambda z: (z - 1.6).square(),
    "exponential": lambda z: torch.exp(-z / 2),
    "steep sigmoid": lambda z: torch.sigmoid(4 * (z - 1.3)),
    "small network": _network,
}
"""Costs of a single number, from the smoothest to the roughest."""


def check_law(law: Distribution, *, draws: int = 100_000, false_alarm: float = 1e-6) -> None:
    """Check the truncation, the draws and the gradients of a discrete distribution.

    Where a parameter requires a gradient, the mid rule and the differences of its record
    (:class:`gengs.Law`) are compared with enumeration.

    Args:
        law: A distribution with a PMF.
        draws: How many draws its frequencies are judged by.
        false_alarm: The probability that a right distribution fails.
    """
    try:
        table = as_finite(law, 1e-9)
    except TypeError as unknown:
        raise AssertionError(str(unknown)) from unknown
    total = table.probs.sum(-1)
    _demand(bool(((total - 1).abs() < 1e-4).all()), f"the PMF sums to {_shown(total)}, not to 1")
    if not table.event_dim and table.num_atoms > 2:
        inner = table.atoms[..., 1:-1].expand(*table.batch_shape, -1)
        own = law.log_prob(inner.movedim(-1, 0)).movedim(0, -1)
        gap = (own.exp() - table.probs[..., 1:-1]).abs().max()
        _demand(bool(gap < 1e-5), f"log_prob differs from the table by {_shown(gap)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = law.sample(torch.Size([draws])).to(table.atoms.dtype)
    error = (table.variance / draws).sqrt().clamp_min(1e-9)
    _demand_near("the mean of the draws", drawn.mean(0), table.mean, error, false_alarm)
    index, found = table.index_of(drawn)
    outside = float((~found).double().mean())
    _demand(outside < 1e-3, f"{outside:.2%} of the draws have no probability")
    frequencies = torch.nn.functional.one_hot(index, table.num_atoms).double().mean(0)
    spread = (table.probs.double() * (1 - table.probs.double()) / draws).sqrt()
    # the count of a rare atom is not normal: a dozen draws more or less are no news
    error = spread + 3 / draws
    _demand_near("the frequency of an atom", frequencies, table.probs, error, false_alarm)
    if any(leaf.requires_grad for leaf in leaves_of(law)):
        _check_edges(law, min(draws, 20_000), false_alarm)


def _check_edges(law: Distribution, gradients: int, false_alarm: float) -> None:
    """The mid rule on a quadratic cost, for which it is exact, and differences on a rough one."""
    weights = torch.linspace(-0.6, 1.1, max(law.event_shape.numel(), 1), dtype=torch.float64)

    def along(z: Tensor) -> Tensor:
        flat = z.flatten(z.dim() - len(law.event_shape)) if law.event_shape else z.unsqueeze(-1)
        return (flat * weights.to(flat)).sum(-1)

    checks: tuple[tuple[str, Estimator, Cost], ...] = (
        ("mid rule", MidCDF(), lambda z: (along(z) - 1.3).square()),
        ("differences", FiniteDifference(), lambda z: torch.sigmoid(6 * along(z)).round() + 0.1),
    )
    for name, estimator, cost in checks:
        exact = torch.autograd.grad(
            Exact().expect(cost, law).sum(), leaves_of(law), retain_graph=True
        )
        truth = torch.cat([gradient.flatten() for gradient in exact]).double()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found = independent_gradients(estimator, cost, law, gradients)
        error = found.std(0) / gradients**0.5 + 1e-6 * (1 + truth.abs())
        what = f"the gradient by the {name} of its record"
        _demand_near(what, found.mean(0), truth, error, false_alarm / 2)


def check_estimator(
    estimator: Estimator, *, gradients: int = 20_000, false_alarm: float = 1e-6
) -> None:
    """Check an estimator against enumeration on all :data:`LAWS` and :data:`COSTS`.

    Its value in evaluation mode, the shape of its result, the gradient of the cost's own
    parameters, its word about wrong costs; and, if it says that it is unbiased, its mean gradient.

    Args:
        estimator: The estimator, as configured.
        gradients: How many gradients its mean is judged by.
        false_alarm: The probability that a right estimator fails one of these checks.
    """
    if estimator.evaluations == 0:  # it draws nothing: one gradient is like the other
        gradients = 2
    comparisons = 2 * len(LAWS) * len(COSTS)
    for law_name, make in LAWS.items():
        q = Independent(make(), 1)  # a vector of three factors
        try:
            estimator.train().expect(lambda z: z.square().sum(-1), q)
        except TypeError:  # the estimator declines this law
            continue
        for cost_name, of_number in COSTS.items():
            where = f"{type(estimator).__name__} on {law_name}, {cost_name} cost"
            _check_one(estimator, q, of_number, where, gradients, false_alarm / comparisons)
    _check_words(estimator)


def _check_one(
    estimator: Estimator,
    q: Distribution,
    of_number: Callable[[Tensor], Tensor],
    where: str,
    number: int,
    false_alarm: float,
) -> None:
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

    def cost(z: Tensor) -> Tensor:
        return scale * of_number(z).sum(-1)

    exact_value = Exact().expect(cost, q)
    exact = torch.autograd.grad(exact_value, leaves_of(q), retain_graph=True)
    truth = torch.cat([gradient.flatten() for gradient in exact])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        value = estimator.train().expect(cost, q)
        _demand(value.shape == q.batch_shape, f"{where}: the result has shape {tuple(value.shape)}")
        found = independent_gradients(estimator, cost, q, number)
    _demand(bool(torch.isfinite(found).all()), f"{where}: a gradient is not finite")
    if estimator.objective != "expectation":
        return
    if estimator.unbiased:
        error = found.std(0) / number**0.5 + 1e-9
        what = f"{where}: unbiased, but the mean gradient"
        _demand_near(what, found.mean(0), truth, error, false_alarm)
    # in evaluation mode the value is the discrete expectation, and so the decoder's gradient
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        values = estimator.eval().expect(cost, q.expand(torch.Size([number])))
    estimator.train()
    mean, error = values.detach().mean(), values.detach().std() / number**0.5 + 1e-9
    _demand_near(f"{where}: in evaluation mode the value", mean, exact_value, error, false_alarm)
    (decoder,) = torch.autograd.grad(values.mean(), scale)
    agrees = torch.allclose(decoder * scale.detach(), mean, rtol=1e-6)
    _demand(agrees, f"{where}: the gradient of the cost's own parameter is wrong")


def _check_words(estimator: Estimator) -> None:
    """A cost of the wrong shape, NaN, or without a gradient gets a clear error."""
    q = truncate(Poisson(_parameter(1.0, 2.0)), 8)
    wrong: dict[type[Exception], Cost] = {
        ValueError: lambda z: z.square().sum(),
        FloatingPointError: lambda z: z * torch.nan,
    }
    for kind, cost in wrong.items():
        try:
            estimator.train().expect(cost, q)
        except kind:
            continue
        except TypeError:  # it declines the law itself
            return
        raise AssertionError(f"{type(estimator).__name__} silently accepts a wrong cost")
    try:
        estimator.expect(lambda z: (z.detach() > 1).to(z.dtype), q)
    except TypeError:
        _demand(estimator.needs_cost_gradient, "a cost without gradient is refused for no reason")
    else:
        _demand(not estimator.needs_cost_gradient, "a cost without gradient passes silently")


def _demand_near(
    what: str, found: Tensor, exact: Tensor, error: Tensor, false_alarm: float
) -> None:
    """Raise if a mean is further from the truth than chance takes it at this rate."""
    off = float(((found - exact).abs() / error).detach().max())
    # how many standard errors a normal variable exceeds, on either side, at the rate of one of them
    limit = -NormalDist().inv_cdf(false_alarm / max(found.numel(), 1) / 2)
    _demand(off < limit, f"{what} {_shown(found)} is {off:.1f} standard errors off {_shown(exact)}")


def _demand(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _shown(x: Tensor) -> str:
    return str([round(number, 5) for number in x.detach().flatten()[:6].tolist()])
