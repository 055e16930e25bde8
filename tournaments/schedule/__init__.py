"""Schedules: the pairings of tournaments, computed from the results so far (pure).

Begin at ``pairing``, the interface between formats and the runner; ``formats`` has one module for each
format; ``plan`` is a format with its parameters, as stored.  May import the layers up to ``database``,
without a clock, a file or a process.
"""
