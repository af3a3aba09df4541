"""What measures the library: data sets, VAEs, experiments, studies, reports, the command line.

It imports :mod:`gengs`, which imports nothing of it.
"""
