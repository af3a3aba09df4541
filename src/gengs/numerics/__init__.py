"""Formulas that hold in the tails, noise, and what every tensor operation here relies on."""
