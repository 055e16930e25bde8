"""Steps of the course's database, each from the schema of the step before; a released step never changes.

Begin at ``0001_course``.  May import ``tournaments.database``, but not the schema of today.
"""
