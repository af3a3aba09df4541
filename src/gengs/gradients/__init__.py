"""Exact draws that carry a gradient in every parameter of their law."""

__all__ = ["midcdf_sample", "rsample"]

from . import compounds, vectors  # noqa: F401 (they register their laws)
from .draws import midcdf_sample, rsample
