"""Migrations of a tournament's store, which ``tournaments.database.migrations`` runs.

Begin at ``env``, the entry point of Alembic.  May import ``tournaments.results`` and
``tournaments.database``.
"""
