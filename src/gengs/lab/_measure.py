r"""The laboratory: an estimator's bias, variance and cost, against the exact gradient.

For R independent single-call gradients :math:`g_r` and the exact gradient :math:`g^*`:

=============  =====================================================================
bias           :math:`\|\bar g - g^*\|`, with its standard error; signed for one parameter
variance       :math:`\mathrm{tr}\,\mathrm{Cov}(g)`
error          mean of :math:`\|g_r - g^*\|`: how far a *single* gradient is off
cosine         mean of :math:`\cos(g_r, g^*)`
evaluations    of the cost, per gradient
time           of one ``expect`` and ``backward``, in milliseconds
=============  =====================================================================

Bias and error are different questions: an unbiased estimator may have the largest error. The exact
gradient comes from enumeration where the distribution is small enough, from the caller, or from a
large reference sample, and the result says which.

Example:
    >>> import gengs
    >>> _ = torch.manual_seed(0)
    >>> from torch.distributions import Poisson
    >>> rate = torch.tensor(3.0, requires_grad=True)
    >>> result = measure(lambda z: (z - 2.6) ** 2, gengs.truncate(Poisson(rate), 12),
    ...                  [gengs.RLOO(4), gengs.GenGS(0.5)], gradients=4000)
    >>> round(float(result.exact), 1), result["GenGS"].bias < -0.2
    (1.8, True)
"""

__all__ = ["Measurement", "Row", "measure"]

import math
import timeit
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from ..estimators.base import Cost, Estimator, positive_integer
from ..estimators.checked_cost import CheckedCost, leads_to
from ..estimators.exact import Exact
from ..estimators.factors import Factors
from ..estimators.reinforce import RLOO
from ..laws.law import law_of
from .quality import draws_shown
from .replicates import Replicates, leaves_of
from .result import Measurement, Row, row_of

_REFERENCE_DRAWS = 1_000_000


def measure(
    cost: Cost,
    q: Distribution,
    estimators: Sequence[Estimator] | Estimator,
    *,
    gradients: int = 10_000,
    exact: Tensor | None = None,
    warm_up: int = 0,
    vectorise: bool = True,
    seed: int = 0,
) -> Measurement:
    """Measure estimators of the gradient of ``E_q[cost]`` in its parameters.

    Args:
        cost: As for :meth:`~gengs.Estimator.expect`. Unless ``vectorise=False``, it must also take
            values with further batch dimensions in front, as replicates run side by side.
        q: The distribution, built from tensors that require a gradient. All leaves it was built
            from are the parameters; the gradient is that of the sum over the batch.
        estimators: The estimators, in training mode; copies are measured, they stay as they are.
            An empty list asks for the exact gradient alone.
        gradients: The number of independent gradients per estimator.
        exact: The exact gradient, where you know it: flattened over the parameters.
        warm_up: Steps in which an estimator with parts of its own (a baseline) may train them.
        vectorise: Whether replicates may run side by side.
        seed: Of torch's generator; its state is put back afterwards.
    """
    if not isinstance(q, Distribution) or not callable(cost):
        raise TypeError(
            "measure expects a cost, a distribution and estimators, in this order, but got "
            f"{type(cost).__name__} and {type(q).__name__} first."
        )
    parameters = leaves_of(q)
    if not parameters:
        raise ValueError("measure expects a `q` built from tensors that require a gradient.")
    positive_integer("measure", "gradients", gradients, least=2)
    measured = [estimators] if isinstance(estimators, Estimator) else list(estimators)
    with torch.random.fork_rng(devices=[]):
        _check_cost(cost, q)
        torch.manual_seed(seed)
        if exact is None:
            exact, source = _exact_gradient(cost, q)
        else:
            exact, source = exact.detach().flatten().double(), "given"
            size = sum(parameter.numel() for parameter in parameters)
            if exact.numel() != size:
                raise ValueError(
                    f"measure expects `exact` with {size} entries, one per parameter, but got "
                    f"{exact.numel()}."
                )
        rows = []
        for given in measured:
            if not isinstance(given, Estimator):
                shown = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
                raise TypeError(f"measure expects estimators, such as MidCDF(), but got {shown}.")
            estimator = deepcopy(given).train()
            _warm_up(estimator, cost, q, warm_up)
            found = independent_gradients(estimator, cost, q, gradients, vectorise)
            # under its name as given: not what it learns
            row = row_of(given, found, exact, *_price(estimator, cost, q))
            if estimator.objective != "expectation":
                # it aims at another target: a distance would mislead
                row = replace(row, bias=math.nan, bias_error=math.nan)
            rows.append(row)
    return Measurement(tuple(rows), exact, source, gradients)


def independent_gradients(
    estimator: Estimator, cost: Cost, q: Distribution, number: int, vectorise: bool = True
) -> Tensor:
    """Independent gradients, one per row: (number, parameters)."""
    parameters = leaves_of(q)
    if not vectorise:
        return torch.stack([_gradient(estimator, cost, q, parameters) for _ in range(number)])
    rows: list[Tensor] = []
    # side by side as many as keep a table of a few million entries
    at_once = max(1, min(number, 2_000_000 // _table_size(q)))
    for start in range(0, number, at_once):
        now = min(at_once, number - start)
        copies = Replicates(q, now)
        value = estimator.expect(cost, copies.law).sum()
        if not rows and any(leads_to(value, parameter) for parameter in parameters):
            # replicates have copies of the law's tensors: what the cost takes from them is not seen
            raise ValueError(
                "measure expects a `cost` that depends on the parameters through its draws "
                "only; detach them in the cost, or measure with vectorise=False."
            )
        rows.append(copies.gradients(value))
    return torch.cat(rows).double()


def _check_cost(cost: Cost, q: Distribution) -> None:
    """Two draws: a wrong cost is told before an estimator that nobody passed would blame it."""
    factors = Factors(q, "measure")
    CheckedCost(cost, factors)(factors.sample(2))
    factors.run_checks()


def _exact_gradient(cost: Cost, q: Distribution) -> tuple[Tensor, str]:
    try:
        return _gradient(Exact(), cost, q, leaves_of(q)), "by enumeration"
    except ValueError:
        means = independent_gradients(RLOO(1000), cost, q, _REFERENCE_DRAWS // 1000, False)
        spread = float((means.var(0) / len(means)).sum().sqrt())
        return means.mean(0), f"from {_REFERENCE_DRAWS} draws of RLOO(1000), s.e. {spread:.2g}"


def _warm_up(estimator: Estimator, cost: Cost, q: Distribution, steps: int) -> None:
    optimiser: torch.optim.Optimizer | None = None
    for _ in range(steps if estimator.learns else 0):
        value = estimator.expect(cost, q).sum()
        own = list(estimator.parameters())  # lazy parts exist only after the first call
        if not own:  # running averages alone: the calls themselves train them
            continue
        optimiser = optimiser or torch.optim.Adam(own, lr=1e-2)
        gradients = torch.autograd.grad(value, own, retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(own, gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()


def _price(estimator: Estimator, cost: Cost, q: Distribution) -> tuple[int, float]:
    """How many draws one ``expect`` shows to the cost, and its milliseconds: a median of seven."""
    shown, parameters = draws_shown(estimator, cost, q), leaves_of(q)
    times = timeit.repeat(lambda: _gradient(estimator, cost, q, parameters), number=1, repeat=7)
    return shown, 1e3 * median(times)


def _table_size(q: Distribution) -> int:
    while isinstance(q, Independent):
        q = q.base_dist
    atoms = getattr(q, "num_atoms", law_of(q).numbers)
    if atoms is None:  # what a truncation on the way would keep
        try:
            atoms = 12 * float(q.stddev.detach().max()) + 32
        except (NotImplementedError, RuntimeError):  # no spread is known, or there is no element
            atoms = 1000  # a guess will do: it decides how many gradients are made at once
    atoms = atoms if math.isfinite(atoms) else 1000.0  # a Categorical has no mean
    return max(torch.Size(q.batch_shape).numel() * int(atoms), 1)


def _gradient(
    estimator: Estimator, cost: Cost, q: Distribution, parameters: Sequence[Tensor]
) -> Tensor:
    """The gradient in all parameters, flattened; zero where one takes no part."""
    value = estimator.expect(cost, q).sum()
    gradients = torch.autograd.grad(value, parameters, retain_graph=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients]).double()
