"""NDCG on the test queries while networks learn to rank, against time and against drawn orders.

python -m benchmarks.sets_ranking_figure results/sets/ranking.json -o results/sets/ranking.svg
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

COLOURS = {
    "swap rule, 1 draw": "#c0392b",
    "score to go, 2 draws": "#85c1e9",
    "score to go, 8 draws": "#2471a3",
    "PL-Rank, 1 draw": "#a9dfbf",
    "PL-Rank, 8 draws": "#229954",
    "ListNet": "#7d3c98",
    "LambdaRank": "#d68910",
}


def mean_curve(rows: list[dict[str, Any]], method: str) -> list[dict[str, float]]:
    """The mean over seeds, step by step."""
    curves = [row["curve"] for row in rows if row["method"] == method]
    return [
        {key: sum(point[key] for point in points) / len(points) for key in points[0]}
        for points in zip(*curves, strict=True)
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Above NDCG@5, below NDCG@10; on the left against time, on the right against draws."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "gengs", "font.size": 10}
    figure = Figure((9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row", sharex="col")
    many = {row["method"]: row["draws"] for row in rows}
    best = [row["best"] for row in rows if row["method"].startswith("LightGBM")]
    for line, metric in zip(axes, ("test@5", "test@10"), strict=True):
        for method, colour in COLOURS.items():
            curve = mean_curve(rows, method)
            values = [point[metric] for point in curve]
            style = {"color": colour, "label": method, "linewidth": 1.6}
            line[0].plot([point["seconds"] for point in curve], values, **style)
            if many[method]:
                draws = [many[method] * point["step"] for point in curve[1:]]
                line[1].plot(draws, values[1:], **style)
        for axis in line:
            if best:
                level = sum(row[metric] for row in best) / len(best)
                axis.axhline(level, color="#999999", linestyle=":", label="LightGBM, at its end")
            axis.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel(f"NDCG@{metric.partition('@')[2]}, test queries")
        line[0].set_ylim(bottom=line[0].get_ylim()[1] - 0.09)
    axes[1, 0].set_xlabel("seconds of one core")
    axes[1, 1].set(xlabel="drawn orders for each query", xscale="log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right", frameon=False)
    figure.savefig(
        path, **({"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 110})
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    config = parser.parse_args()
    draw(json.loads(config.rows.read_text())["rows"], config.out)


if __name__ == "__main__":
    main()
