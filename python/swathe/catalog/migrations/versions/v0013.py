"""Algorithms of users."""

import sqlalchemy as sa
from alembic import op

revision = "v0013"
down_revision = "v0012"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "algorithms",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("added_at", TIME, nullable=False),
        sa.Column("removed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_algorithms"),
        sa.UniqueConstraint("name", "version", name="uq_algorithms_name_version"),
    )
    op.create_index("ix_algorithms_owner", "algorithms", ["owner"])
