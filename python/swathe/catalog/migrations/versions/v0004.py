"""Repairs and rebalances of striped stores tell their progress."""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "stripe_work",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("began_at", TIME, nullable=False),
        sa.Column("told_at", TIME, nullable=False),
        sa.Column("objects", sa.BigInteger, nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("written_bytes", sa.BigInteger, nullable=True),
        sa.Column("is_stopped", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_stripe_work_store_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_stripe_work"),
    )
    op.create_index("ix_stripe_work_store_id", "stripe_work", ["store_id"])
