"""Exact draws that carry a gradient in every parameter, and differences between neighbours."""

__all__ = ["rsample"]

from .draws import rsample
