"""A law on finitely many atoms, where it comes from, how it relaxes.

A law is *truncated* (:func:`truncate`), *relaxed* (:class:`Relaxed`) and *mapped* to values.
"""

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
    "tilt",
    "truncate",
]

from . import binomials, kl, poisson  # noqa: F401 (they register their formulas)
from ..tables.finite import Finite
from ..tables.relaxed import Relaxed, StraightThrough, gumbel_relax
from .relaxed_multinomial import RelaxedMultinomial
from .skellam import Skellam
from ..tables.tilting import tilt
from ..tables.truncation import truncate
from ..tables.windows import Certificate, TruncationWarning, Window
