"""Queries that users run as jobs."""

import sqlalchemy as sa
from alembic import op

revision = "v0023"
down_revision = "v0022"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "queries",
        sa.Column("number", ID, nullable=False),
        sa.Column("id", sa.String(22), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(10), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("context", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("duration_s", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.String(100), nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_queries"),
        sa.UniqueConstraint("id", name="uq_queries_id"),
    )
    op.create_index("ix_queries_owner_phase", "queries", ["owner", "phase"])
    op.create_index("ix_queries_phase", "queries", ["phase"])
    op.create_index("ix_queries_expires_at", "queries", ["expires_at"])
