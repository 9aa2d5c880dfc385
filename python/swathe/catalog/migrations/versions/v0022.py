"""The version that the feed of a subscription named last for a group."""

import sqlalchemy as sa
from alembic import op

revision = "v0022"
down_revision = "v0021"


def upgrade() -> None:
    """Add the column. What the feed named is not known: it may name the same version once more."""
    op.add_column("subscription_groups", sa.Column("current_version", sa.Integer(), nullable=True))
