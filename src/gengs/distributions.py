"""The public distributions and what is made of them; importing it registers every record.

A distribution is *truncated* (:func:`truncate`), *relaxed* (:class:`Relaxed`) and *mapped* to
values. Everything that is known of one is in its file in ``laws/``.
"""

__all__ = [
    "Certificate",
    "Finite",
    "Law",
    "OneHot",
    "PlackettLuce",
    "Relaxed",
    "Skellam",
    "Spec",
    "Subset",
    "Truncated",
    "TruncationWarning",
    "Window",
    "gumbel_relax",
    "law_of",
    "register",
    "tilt",
    "truncate",
]

from .laws import (  # noqa: F401 (each registers its record)
    binomial,
    by_log_prob,
    categorical,
    finite_law,
    geometric,
    mixtures,
    multinomial,
    negative_binomial,
    poisson,
    pyro_compounds,
    ranking_law,
    subset_law,
)
from .laws.law import Law, Spec, law_of, register
from .laws.one_hot import OneHot
from .laws.ranking import PlackettLuce
from .laws.skellam import Skellam
from .laws.subset import Subset
from .tables import kl  # noqa: F401 (it registers its formulas)
from .tables.finite import Finite
from .tables.relaxed import Relaxed, gumbel_relax
from .tables.tilting import tilt
from .tables.truncated import Truncated
from .tables.truncation import truncate
from .tables.windows import Certificate, TruncationWarning, Window
