"""Applications for people with data rather than with a paper."""
