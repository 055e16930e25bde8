"""Alembic's entry point for the tables of the store."""

from tournaments.database.migrations import run_steps
from tournaments.results.schema import metadata

run_steps(metadata)
