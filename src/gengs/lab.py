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

Bias and error are different questions: an unbiased estimator may have the largest error. The
exact gradient comes from enumeration where the law is small enough, from the caller, or from a
large reference sample, and the result says which.

Example:
    >>> import gengs
    >>> from torch.distributions import Poisson
    >>> rate = torch.tensor(3.0, requires_grad=True)
    >>> result = measure(lambda z: (z - 2.6) ** 2, gengs.truncate(Poisson(rate), 12),
    ...                  [gengs.RLOO(4), gengs.GenGS(0.5)], replicates=4000)
    >>> round(float(result.exact), 1), result["GenGS"].bias < -0.2
    (1.8, True)
"""

from __future__ import annotations

__all__ = ["Measurement", "Row", "measure"]

import math
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from .estimators.base import Cost, Estimator
from .estimators.exact import Exact
from .estimators.reinforce import RLOO
from .parameters import leaves_of, split_parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_REFERENCE_DRAWS = 1_000_000


@dataclass(frozen=True)
class Row:
    """What was measured of one estimator."""

    estimator: str
    """Its name and settings."""
    bias: float
    """Distance of the mean gradient from the exact one; signed where there is one parameter."""
    bias_error: float
    """The standard error of ``bias``: within two of them of 0 nothing has been found."""
    variance: float
    """The trace of the covariance of a gradient."""
    error: float
    """The mean distance of a single gradient from the exact one."""
    cosine: float
    """The mean cosine between a single gradient and the exact one."""
    evaluations: int
    """How often a gradient evaluates the cost."""
    milliseconds: float
    """The time of one ``expect`` and ``backward``."""


@dataclass(frozen=True)
class Measurement:
    """The rows of a measurement; prints as a table, ``result["RLOO"]`` finds a row."""

    rows: tuple[Row, ...]
    exact: Tensor
    """The gradient that all are compared with, flattened over the law's parameters."""
    source: str
    """Where the exact gradient comes from."""
    replicates: int
    """The number of gradients per estimator."""

    def __getitem__(self, name: str) -> Row:
        whole = [row for row in self.rows if row.estimator == name]
        head = [row for row in self.rows if row.estimator.partition("(")[0] == name]
        for found in (whole, head):
            if len(found) == 1:
                return found[0]
        raise KeyError(f"expected one of {[row.estimator for row in self.rows]}, got {name!r}")

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return {
            "exact": self.exact.tolist(),
            "source": self.source,
            "replicates": self.replicates,
            # JSON has no NaN: what has no value is null
            "rows": [
                {k: None if v != v else v for k, v in asdict(row).items()} for row in self.rows
            ],
        }

    def to_dataframe(self) -> DataFrame:
        """The rows as a pandas data frame."""
        import pandas

        return pandas.DataFrame([asdict(row) for row in self.rows])

    def plot(self) -> Figure:
        """Absolute bias against variance, one point per estimator."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        shown = [row for row in self.rows if math.isfinite(row.bias) and row.variance > 0]
        centre = math.exp(sum(math.log(row.variance) for row in shown) / max(len(shown), 1))
        for row in shown:
            bias, right = max(abs(row.bias), 1e-12), row.variance > centre
            bars = axes.errorbar(row.variance, bias, 2 * row.bias_error, fmt="o", capsize=3)
            axes.annotate(
                row.estimator,
                (row.variance, bias),
                xytext=(-7 if right else 7, 4),
                textcoords="offset points",
                ha="right" if right else "left",  # towards the middle, where there is room
                fontsize=8,
                color=bars.lines[0].get_color(),
            )
        axes.set(xscale="log", yscale="log", xlabel="variance of a gradient", ylabel="|bias|")
        axes.margins(0.12)
        axes.set_title(f"{self.replicates} gradients each; bars: two standard errors", fontsize=9)
        axes.grid(alpha=0.3)
        return figure

    def __str__(self) -> str:
        head = ("estimator", "bias", "± s.e.", "variance", "error", "cosine", "evals", "ms")
        lines = [head] + [
            (
                row.estimator,
                f"{row.bias:+.4g}",
                f"{row.bias_error:.2g}",
                f"{row.variance:.4g}",
                f"{row.error:.4g}",
                f"{row.cosine:.3f}",
                str(row.evaluations),
                f"{row.milliseconds:.2f}",
            )
            for row in self.rows
        ]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        table = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        size = float(self.exact.norm())
        exact = f"{self.exact.item():.6g}" if self.exact.numel() == 1 else f"of norm {size:.6g}"
        return "\n".join([f"exact gradient {exact} ({self.source})", *table])


def measure(
    cost: Cost,
    q: Distribution,
    estimators: Sequence[Estimator] | Estimator,
    *,
    replicates: int = 10_000,
    exact: Tensor | None = None,
    warm_up: int = 0,
    vectorise: bool = True,
    seed: int = 0,
) -> Measurement:
    """Measure estimators of the gradient of ``E_q[cost]`` with respect to the law's parameters.

    Args:
        cost: As for :meth:`~gengs.Estimator.expect`. Unless ``vectorise=False``, it must also take
            values with further batch dimensions in front, as replicates run side by side.
        q: The law, built from tensors that require a gradient. All leaves it was built from are
            the parameters; the gradient is that of the sum over the batch.
        estimators: The estimators, in training mode; copies are measured, they stay as they are.
        replicates: The number of independent gradients per estimator.
        exact: The exact gradient, where you know it: flattened over the parameters.
        warm_up: Steps in which an estimator with parts of its own (a baseline) may train them.
        vectorise: Whether replicates may run side by side.
        seed: Of torch's generator; its state is put back afterwards.
    """
    parameters = leaves_of(q)
    if not parameters:
        raise ValueError("measure expects a law `q` built from tensors that require a gradient.")
    if replicates < 2:
        raise ValueError(f"measure expects at least two `replicates`, but got {replicates}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if exact is None:
            exact, source = _exact_gradient(cost, q, parameters)
        else:
            exact, source = exact.detach().flatten().double(), "given"
            _require_size(exact, parameters)
        rows = []
        for given in [estimators] if isinstance(estimators, Estimator) else estimators:
            estimator = deepcopy(given).train()
            _warm_up(estimator, cost, q, warm_up)
            gradients = _gradients(estimator, cost, q, parameters, replicates, vectorise)
            elapsed = _milliseconds(estimator, cost, q, parameters)
            rows.append(
                _row(estimator, gradients, exact, elapsed, _evaluations(estimator, cost, q))
            )
    return Measurement(tuple(rows), exact, source, replicates)


def _row(
    estimator: Estimator, gradients: Tensor, exact: Tensor, elapsed: float, evaluations: int
) -> Row:
    mean, variance = gradients.mean(0), gradients.var(0)
    bias_error = float((variance / len(gradients)).sum().sqrt())
    off = mean - exact
    bias = float(off) if exact.numel() == 1 else float(off.norm())
    if estimator.objective != "expectation":
        bias = bias_error = math.nan  # it aims at another target: a distance would mislead
    error = float((gradients - exact).norm(dim=-1).mean())
    cosine = float(torch.cosine_similarity(gradients, exact.unsqueeze(0), dim=-1).mean())
    return Row(
        estimator=_short(estimator),
        bias=bias,
        bias_error=bias_error,
        variance=float(variance.sum()),
        error=error,
        cosine=cosine,
        evaluations=evaluations,
        milliseconds=elapsed,
    )


def _short(estimator: Estimator) -> str:
    """``RLOO(samples=4)`` rather than the listing of a module with children."""
    settings = estimator.extra_repr()
    return f"{type(estimator).__name__}({settings})" if settings else type(estimator).__name__


def _gradients(
    estimator: Estimator,
    cost: Cost,
    q: Distribution,
    parameters: Sequence[Tensor],
    replicates: int,
    vectorise: bool,
) -> Tensor:
    """Independent gradients, one per row: (replicates, number of parameters)."""
    rows: list[Tensor] = []
    done = 0
    # side by side as many as keep a table of a few million entries
    at_once = max(1, min(replicates, 2_000_000 // _table_size(q)))
    while done < replicates:
        if not vectorise:
            value = estimator.expect(cost, q).sum()
            rows.append(_gradient(value, parameters).unsqueeze(0))
            done += 1
            continue
        now = min(at_once, replicates - done)
        split = split_parameters(q, now)
        value = estimator.expect(cost, split.law).sum()
        tensors = torch.autograd.grad(value, split.tensors, retain_graph=True, allow_unused=True)
        if done == 0:
            _require_separate_cost(value, parameters)
        rows.append(split.pull_back(tensors, parameters))
        done += now
    return torch.cat(rows).double()


def _require_separate_cost(value: Tensor, parameters: Sequence[Tensor]) -> None:
    """Replicates have copies of the law's tensors: what the cost takes from them is not seen."""
    direct = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
    if any(gradient is not None for gradient in direct):
        raise ValueError(
            "measure expects a `cost` that depends on the law's parameters through its draws only; "
            "detach them in the cost, or measure with vectorise=False."
        )


def _exact_gradient(
    cost: Cost, q: Distribution, parameters: Sequence[Tensor]
) -> tuple[Tensor, str]:
    try:
        value, source = Exact().expect(cost, q), "by enumeration"
    except ValueError:
        estimator = RLOO(1000)
        means = [
            _gradient(estimator.expect(cost, q).sum(), parameters)
            for _ in range(_REFERENCE_DRAWS // 1000)
        ]
        stacked = torch.stack(means)
        spread = float((stacked.var(0) / len(stacked)).sum().sqrt())
        source = f"from {_REFERENCE_DRAWS} draws of RLOO(1000), s.e. {spread:.2g}"
        return stacked.mean(0), source
    return _gradient(value.sum(), parameters), source


def _warm_up(estimator: Estimator, cost: Cost, q: Distribution, steps: int) -> None:
    if not steps or not estimator.learns:
        return
    parameters = leaves_of(q)
    own: list[torch.nn.Parameter] = []
    optimiser: torch.optim.Optimizer | None = None
    for _ in range(steps):
        value = estimator.train().expect(cost, q).sum()
        if optimiser is None:  # lazy parts exist only after the first call
            own = list(estimator.parameters())
            if not own:  # running averages alone: the calls themselves train them
                continue
            optimiser = torch.optim.Adam(own, lr=1e-2)
        targets = [*own, *parameters]
        gradients = torch.autograd.grad(value, targets, retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(own, gradients, strict=False):
            parameter.grad = gradient
        optimiser.step()


def _milliseconds(
    estimator: Estimator, cost: Cost, q: Distribution, parameters: Sequence[Tensor]
) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        value = estimator.expect(cost, q).sum()
        torch.autograd.grad(value, list(parameters), retain_graph=True, allow_unused=True)
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[3]


def _evaluations(estimator: Estimator, cost: Cost, q: Distribution) -> int:
    """How many draws one ``expect`` shows to the cost, counted."""
    shown = 0

    def counted(z: Tensor) -> Tensor:
        nonlocal shown
        shown += z.shape[0]
        return cost(z)

    estimator.expect(counted, q)
    return shown


def _table_size(q: Distribution) -> int:
    while isinstance(q, Independent):
        q = q.base_dist
    atoms = getattr(q, "num_atoms", None)
    if atoms is None:  # what a truncation on the way would keep
        try:
            atoms = 12 * float(q.stddev.detach().max()) + 32
        except (NotImplementedError, RuntimeError):
            atoms = 1000
    return max(q.batch_shape.numel() * int(atoms), 1)


def _gradient(value: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The gradient in all parameters, flattened; zero where one takes no part."""
    found = torch.autograd.grad(value, list(parameters), retain_graph=True, allow_unused=True)
    parts = [
        torch.zeros_like(parameter) if gradient is None else gradient
        for gradient, parameter in zip(found, parameters, strict=True)
    ]
    return torch.cat([part.flatten() for part in parts]).double()


def _require_size(exact: Tensor, parameters: Sequence[Tensor]) -> None:
    expected = sum(parameter.numel() for parameter in parameters)
    if exact.numel() != expected:
        raise ValueError(
            f"measure expects `exact` with {expected} entries, one per parameter, "
            f"but got {exact.numel()}."
        )
