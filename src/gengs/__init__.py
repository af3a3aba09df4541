"""Backpropagate through any discrete distribution, in PyTorch."""

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Finite",
    "Relaxed",
    "RelaxedMultinomial",
    "Skellam",
    "StraightThrough",
    "TruncationWarning",
    "Window",
    "gumbel_relax",
    "temperature",
    "truncate",
]

from .distributions import (
    Certificate,
    Finite,
    Relaxed,
    RelaxedMultinomial,
    Skellam,
    StraightThrough,
    TruncationWarning,
    Window,
    gumbel_relax,
    temperature,
    truncate,
)
