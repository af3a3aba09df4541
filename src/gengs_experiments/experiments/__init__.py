"""Experiments: each a frozen dataclass, whose fields are its command line and its record."""
