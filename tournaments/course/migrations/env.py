"""Alembic's entry point for the tables of the course."""

from tournaments.course.schema import metadata
from tournaments.database.migrations import run_steps

run_steps(metadata)
