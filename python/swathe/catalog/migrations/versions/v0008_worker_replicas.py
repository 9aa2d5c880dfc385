"""Cached objects of pool workers, by their portals' latest reports."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "pools",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workers", sa.Integer(), nullable=False),
        sa.Column("held", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pools"),
    )
    op.create_table(
        "worker_replicas",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("pool", sa.String(16), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pool"], ["pools.id"], name="fk_worker_replicas_pool", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_worker_replicas"),
    )
    op.create_index("ix_worker_replicas_pool", "worker_replicas", ["pool"])
