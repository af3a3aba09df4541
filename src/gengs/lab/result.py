"""What the laboratory found: a row for each estimator, as a table, a figure or plain data."""

from __future__ import annotations

__all__ = ["Measurement", "Row", "row_of"]

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .palette import full_decades, legend_handles, looks
from .quality import gradient_quality

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Name the extra that brings a package which is not installed."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what} needs more packages ({error.name}): pip install 'gengs[apps]' "
            "(in a clone: pip install '.[apps]')"
        ) from error


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


def row_of(
    estimator: Any,
    gradients: Tensor,
    exact: Tensor,
    evaluations: int,
    milliseconds: float,
    exact_variance: float = 0.0,
) -> Row:
    """What independent gradients of an estimator, one per row, compared with the exact one."""
    name, settings = type(estimator).__name__, estimator.extra_repr()
    found = gradient_quality(gradients, exact)
    bias, variance = found.bias, float(found.variance)
    return Row(
        f"{name}({settings})" if settings else name,
        bias=float(bias) if exact.numel() == 1 else float(bias.norm()),
        bias_error=math.sqrt(variance / len(gradients) + exact_variance),
        variance=variance,
        error=float(found.error),
        cosine=float(torch.cosine_similarity(gradients, exact.unsqueeze(0), dim=-1).mean()),
        evaluations=evaluations,
        milliseconds=milliseconds,
    )


@dataclass(frozen=True)
class Measurement:
    """The rows of a measurement; prints as a table, ``result["RLOO"]`` finds a row."""

    rows: tuple[Row, ...]
    exact: Tensor
    """The gradient that all are compared with, flattened over the law's parameters."""
    source: str
    """Where the exact gradient comes from."""
    gradients: int
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
            "gradients": self.gradients,
            # JSON has no NaN: what has no value is null
            "rows": [
                {k: None if v != v else v for k, v in asdict(row).items()} for row in self.rows
            ],
        }

    def to_dataframe(self) -> DataFrame:
        """The rows as a pandas data frame."""
        with needed_by("to_dataframe()"):
            import pandas

        return pandas.DataFrame([asdict(row) for row in self.rows])

    def plot(self, title: str = "Bias and variance of gradient estimators") -> Figure:
        """Absolute bias against variance, one point per estimator.

        A hollow point is a bias within two standard errors of 0. What has no bias to show (another
        objective) or no variance (an exact gradient) is named below the legend.
        """
        with needed_by("plot()"):
            from matplotlib.figure import Figure

        figure = Figure(figsize=(9.5, 5.5), layout="constrained")
        axes = figure.subplots()
        largest = max((row.variance for row in self.rows), default=0.0)
        least = 1e-9 * largest  # less is rounding
        shown = [row for row in self.rows if math.isfinite(row.bias) and row.variance > least]
        found = looks(row.estimator for row in shown)
        for row in shown:
            look, bar = found[row.estimator], 2 * row.bias_error
            clear = abs(row.bias) > bar
            bias = max(abs(row.bias), row.bias_error / 10)  # 0 has no place on a log scale
            bars = [[bar if clear else 0.0], [bar]]
            style: dict[str, Any] = {"marker": look.marker, "color": look.colour, "capsize": 3}
            face = look.colour if clear else "white"
            axes.errorbar(row.variance, bias, bars, mfc=face, lw=1, **style)
        axes.set(xscale="log", yscale="log", xlabel="variance of a gradient", ylabel="|bias|")
        full_decades(axes)
        axes.grid(alpha=0.3)
        note = "gradients each; bars: two standard errors; hollow: within them of no bias"
        axes.set_title(f"{self.gradients:,} {note}", fontsize=8, color="0.35", loc="left")
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
        absent = [row.estimator for row in self.rows if row not in shown]
        handles = legend_handles(found, points=True, absent=absent)
        figure.legend(handles=handles, loc="outside right upper", fontsize=8, frameon=False)
        return figure

    def __str__(self) -> str:
        head = ("estimator", "bias", "± s.e.", "variance", "error", "cosine", "evals", "ms")
        lines = [head, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        form = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
        table = [form.format(*line) for line in lines] if self.rows else []
        size = float(self.exact.norm())
        exact = f"{self.exact.item():.6g}" if self.exact.numel() == 1 else f"of norm {size:.6g}"
        others = [row.estimator for row in self.rows if row.bias != row.bias]
        note = [f"— {', '.join(others)}: of another objective, so no bias is measured"]
        return "\n".join([f"exact gradient {exact} ({self.source})", *table, *note * bool(others)])


def _cells(row: Row) -> tuple[str, ...]:
    known = row.bias == row.bias
    bias = (f"{row.bias:+.4g}", f"{row.bias_error:.2g}") if known else ("—", "—")
    numbers = f"{row.variance:.4g} {row.error:.4g} {row.cosine:.3f} {row.evaluations}".split()
    return row.estimator, *bias, *numbers, f"{row.milliseconds:.2f}"
