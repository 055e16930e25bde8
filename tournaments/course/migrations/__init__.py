"""Migrations of the course's database, which ``tournaments.database.migrations`` runs.

Begin at ``env``, the entry point of Alembic.  May import ``tournaments.course.schema`` and
``tournaments.database``.
"""
