"""Alembic's entry point, which runs the migrations on the connection of the course."""

from alembic import context

from tournaments.course.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter a table in place
)
with context.begin_transaction():
    context.run_migrations()
