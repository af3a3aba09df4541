"""Figures, tables and pages."""
