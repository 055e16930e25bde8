"""Ratings: the Bradley-Terry model, intervals, and statistics of matches (pure).

Begin at ``ratings``, which fits the model of ``bradley_terry`` to all games; ``pentanomial`` has the
statistics of one match.  May import what ``tournaments.analysis`` may.
"""
