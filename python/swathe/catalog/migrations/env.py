"""Entry point of Alembic: the remaining steps, in the transaction of the connection."""

from alembic import context

from swathe.catalog.revisions import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
