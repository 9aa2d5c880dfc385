"""Stores of kind cache: their near copies, who needs them, and counts of uses."""

import sqlalchemy as sa
from alembic import op

revision = "v0012"
down_revision = "v0011"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "near_objects",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("token", sa.String(40), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("near_version", sa.Text(), nullable=True),
        sa.Column("owner", sa.String(200), nullable=True),
        sa.Column("lease_at", TIME, nullable=True),
        sa.Column("used_at", TIME, nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.Column("fetch_s", sa.Double(), nullable=True),
        sa.Column("checked_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_near_objects_store_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_near_objects"),
        sa.UniqueConstraint("store_id", "token", name="uq_near_objects_store_id_token"),
    )
    op.create_index("ix_near_objects_store_id_path", "near_objects", ["store_id", "path"])
    op.create_table(
        "near_pins",
        sa.Column("object_id", ID, autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["object_id"], ["near_objects.id"], name="fk_near_pins_object_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("object_id", "owner", name="pk_near_pins"),
    )
    op.create_table(
        "cache_counts",
        sa.Column("store_id", ID, autoincrement=False, nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.Column("misses", sa.BigInteger(), nullable=False),
        sa.Column("fetched_bytes", sa.BigInteger(), nullable=False),
        sa.Column("evictions", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_cache_counts_store_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("store_id", name="pk_cache_counts"),
    )
