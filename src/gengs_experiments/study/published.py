"""The published numbers, to stand beside ours.

Both tables are as printed in the paper. A dash there, "no convergence", is ``None`` here.

- Table 1: the negative ELBO of a VAE on training images, by data, prior and estimator. The GenGS
  columns are most likely values of the *relaxed* objective, which is no bound; the paper does not
  say. Compare them with our relaxed value, and our discrete one with the other columns.
- Table 2: the test perplexity of a Poisson topic model, by data, estimator and number of stochastic
  layers; beside it, topic models of others on the same data.

References:
    | Generalized Gumbel-Softmax Gradient Estimator for Generic Discrete Random Variables
    | (Joo et al., 2020), https://arxiv.org/abs/2003.01847

Example:
    >>> TABLE1["mnist"]["Pois(2)"]["GenGS Imp"], TABLE2["20news"]["RF*"]["1 layer"]
    (96.04, 944.0)
    >>> TABLE1["mnist"]["Geom(.5)"]["UnOrd(10)"] is None
    True
"""

__all__ = ["CITATION", "TABLE1", "TABLE2", "TABLE2_OTHERS", "Table"]

import csv
from importlib.resources import files

Table = dict[str, dict[str, dict[str, float | None]]]
"""Numbers by data, row and column."""

CITATION = (
    "Weonyoung Joo, Dongjun Kim, Seungjae Shin, Il-Chul Moon: Generalized Gumbel-Softmax Gradient "
    "Estimator for Generic Discrete Random Variables, arXiv:2003.01847, 2020"
)


def _published(name: str) -> Table:
    """A table as the paper prints it, ``published/<name>.csv``: a dash is ``None``."""
    table: Table = {}
    text = (files(__package__) / "published" / f"{name}.csv").read_text("utf-8")
    for cells in csv.DictReader(text.splitlines()):
        row = table.setdefault(cells.pop("data"), {}).setdefault(cells.pop("row"), {})
        row |= {name: None if cell == "-" else float(cell) for name, cell in cells.items() if cell}
    return table


TABLE1 = _published("table1")
"""Negative ELBO by data (``mnist``, ``omniglot``), prior and estimator."""

TABLE2 = _published("table2")
"""Test perplexity by data (``20news``, ``rcv1``), estimator and layers (``1 layer``, ``2 layers``):
the number in an estimator's name, its draws, differs between the two."""

TABLE2_OTHERS = _published("table2_others")
"""Published test perplexities of other topic models, in the form of :data:`TABLE2`."""
