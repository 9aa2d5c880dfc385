"""The owner of a dataset that jobs of a user fill."""

import sqlalchemy as sa
from alembic import op

revision = "v0018"
down_revision = "v0017"


def upgrade() -> None:
    """Add the column: datasets of the operator have no owner."""
    op.add_column("datasets", sa.Column("owner", sa.String(200), nullable=True))
