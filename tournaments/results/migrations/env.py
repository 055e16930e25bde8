"""Alembic's entry point: runs the migrations on the connection that the store hands over."""

from alembic import context

from tournaments.results.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter a table in place
)
with context.begin_transaction():
    context.run_migrations()
