"""Runs that survive: what an experiment writes, how it resumes, how many are repeated."""
