"""The laboratory: bias, variance and cost of estimators against the exact gradient."""

from ._measure import measure
from ._measure_program import measure_program
from .result import Measurement, Row

__all__ = ["Measurement", "Row", "measure", "measure_program"]
