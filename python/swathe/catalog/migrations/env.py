"""What Alembic runs: the steps still to do, in the transaction of the connection given."""

from alembic import context

from swathe.catalog.tables import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
