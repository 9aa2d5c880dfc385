"""Repairs and rebalances of striped stores count bytes."""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"


def upgrade() -> None:
    """Add the columns."""
    for name, kind in (
        ("total_bytes", sa.BigInteger()),
        ("done_bytes", sa.BigInteger()),
        ("bytes_per_s", sa.Double()),
    ):
        op.add_column("stripe_work", sa.Column(name, kind, nullable=True))
