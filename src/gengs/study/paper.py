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

from __future__ import annotations

__all__ = ["CITATION", "ROWS", "TABLE1", "TABLE2", "TABLE2_OTHERS", "Table"]

Table = dict[str, dict[str, dict[str, float | None]]]
"""Numbers by data, row and column."""

CITATION = (
    "Weonyoung Joo, Dongjun Kim, Seungjae Shin, Il-Chul Moon: Generalized Gumbel-Softmax Gradient "
    "Estimator for Generic Discrete Random Variables, arXiv:2003.01847, 2020"
)

ROWS = {
    "Pois(2)": "poisson(2)",
    "Pois(3)": "poisson(3)",
    "Geom(.25)": "geometric(0.25)",
    "Geom(.5)": "geometric(0.5)",
    "NB(3,.5)": "negative-binomial(3,0.5)",
    "NB(5,.3)": "negative-binomial(5,0.3)",
}
"""The priors of Table 1 as the paper writes them, and as ``gengs vae --prior`` takes them."""

_COLUMNS1 = (
    *("RF*", "NVIL", "MuProp", "REBAR", "RELAX", "GenGS", "GenGS Imp", "GenGS NP"),
    *("VIMCO(10)", "StoRB*(10)", "UnOrd(10)", "GenGS(10)", "GenGS Imp(10)", "GenGS NP(10)"),
)
_MNIST = """
122.81 129.34 125.43 123.44 122.71 103.18 96.04 104.98 122.13 122.71 130.95 99.28 94.78 102.59
123.12 130.24 125.92 120.62 119.84 105.15 96.01 104.25 120.93 121.92 119.97 100.17 94.57 105.51
127.90 135.90 137.90 135.12 136.80 98.43 92.52 101.77 126.46 130.96 - 92.59 92.06 100.34
129.20 138.47 136.40 138.37 139.41 100.92 93.81 97.29 128.71 134.10 - 98.27 91.46 96.44
116.67 119.28 131.96 - - 98.58 94.52 107.14 112.11 110.52 - 96.83 93.66 99.85
130.03 133.44 144.05 - - 100.88 95.37 110.41 121.29 127.32 - 97.29 94.29 105.52
"""
_OMNIGLOT = """
139.47 148.01 142.95 138.12 137.56 127.89 118.17 123.40 138.21 137.87 146.60 120.42 116.92 121.81
140.54 148.13 143.85 137.92 137.42 131.53 119.15 126.03 138.84 139.89 147.18 121.93 117.71 124.71
142.68 153.69 152.17 146.78 148.91 115.23 107.79 116.75 142.42 142.54 - 113.49 105.38 115.69
142.70 153.20 149.76 149.63 151.97 115.14 108.48 112.76 141.52 140.68 - 108.91 105.97 112.41
141.44 144.44 147.78 - - 118.57 117.02 123.96 141.22 128.66 - 116.55 114.20 120.92
145.16 159.40 152.81 - - 119.57 117.54 127.46 148.89 - - 118.37 114.77 124.98
"""
# estimator with one layer: 20News, RCV1; estimator with two layers: 20News, RCV1
_LAYERS = """
RF 1227 1182 RF(10) - -
RF* 944 708 RF*(10) 1221 2190
NVIL 1077 1191 NVIL(10) - -
MuProp 1045 935 MuProp(10) - -
VIMCO(10) 958 741 VIMCO(20) - -
REBAR 934 716 REBAR(10) 1136 2075
RELAX 932 717 RELAX(10) 1116 -
StoRB*(10) 919 701 StoRB*(20) 1094 -
UnOrd(10) 1206 1188 UnOrd(20) - -
GenGS 759 562 GenGS(10) 783 576
"""


def _number(word: str) -> float | None:
    return None if word == "-" else float(word)


def _table1(text: str) -> dict[str, dict[str, float | None]]:
    lines = text.strip().splitlines()
    return {
        row: dict(zip(_COLUMNS1, map(_number, line.split()), strict=True))
        for row, line in zip(ROWS, lines, strict=True)
    }


def _table2() -> Table:
    table: Table = {"20news": {}, "rcv1": {}}
    for layer in (1, 2):
        for line in _LAYERS.strip().splitlines():
            name, news, rcv1 = line.split()[3 * layer - 3 : 3 * layer]
            column = "1 layer" if layer == 1 else "2 layers"
            table["20news"][name] = {column: _number(news)}
            table["rcv1"][name] = {column: _number(rcv1)}
    return table


TABLE1: Table = {"mnist": _table1(_MNIST), "omniglot": _table1(_OMNIGLOT)}
"""Negative ELBO by data (``mnist``, ``omniglot``), prior and estimator."""

TABLE2: Table = _table2()
"""Test perplexity by data (``20news``, ``rcv1``), estimator and layers (``1 layer``, ``2 layers``):
the number in an estimator's name, its draws, differs between the two."""

TABLE2_OTHERS: Table = {
    "20news": {
        "LDA": {"1 layer": 1091.0},
        "docNADE": {"1 layer": 896.0},
        "NVDM": {"1 layer": 836.0},
    },
    "rcv1": {
        "LDA": {"1 layer": 1437.0},
        "docNADE": {"1 layer": 742.0},
        "NVDM": {"1 layer": 563.0},
    },
}
"""Published test perplexities of other topic models, in the form of :data:`TABLE2`."""
