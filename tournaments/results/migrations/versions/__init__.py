"""Steps of a tournament's store, each from the schema of the step before; a released step never changes.

Begin at ``0001_games``.  May import ``tournaments.results`` and ``tournaments.database``, but not the schema
of today.
"""
