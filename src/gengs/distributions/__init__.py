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
    "midcdf_sample",
    "temperature",
    "truncate",
]

from . import count_families, kl, skellam_table, temperature  # noqa: F401 (they register)
from .certificate import Certificate, TruncationWarning
from .finite import Finite
from .functional import gumbel_relax
from .midcdf import midcdf_sample
from .relaxed import Relaxed
from .relaxed_multinomial import RelaxedMultinomial
from .skellam import Skellam
from .straight_through import StraightThrough
from .truncate import truncate
from .truncation import Window
