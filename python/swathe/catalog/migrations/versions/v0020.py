"""Shares of users: what programs of their jobs have taken, and counts of groups."""

import sqlalchemy as sa
from alembic import op

revision = "v0020"
down_revision = "v0019"


def upgrade() -> None:
    """Add the columns.

    Jobs of algorithms that are there have no counts of groups, and their programs take no slots.
    """
    op.add_column("jobs", sa.Column("program_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("groups", sa.JSON(none_as_null=True), nullable=True))
    op.add_column(
        "jobs", sa.Column("group_bytes", sa.BigInteger(), server_default="0", nullable=False)
    )
