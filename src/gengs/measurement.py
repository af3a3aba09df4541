"""What the laboratory found: a row for each estimator, as a table, a figure or plain data."""

from __future__ import annotations

__all__ = ["Measurement", "Row"]

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


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
