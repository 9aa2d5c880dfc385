"""Pixels that wait for the combined results of a job count as its results do."""

import sqlalchemy as sa
from alembic import op

revision = "v0010"
down_revision = "v0009"


def upgrade() -> None:
    """Add the column."""
    column = sa.Column("scratch_bytes", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("jobs", column)
