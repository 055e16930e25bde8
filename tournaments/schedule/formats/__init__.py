"""Formats of tournaments, one module each; ``plan.FORMATS`` lists them by name (pure).

Begin at ``round_robin``, the simplest one.  May import what ``tournaments.schedule`` may.
"""
