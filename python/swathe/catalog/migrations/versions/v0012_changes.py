"""Number of changes of each dataset: counts of it are valid while the number is unchanged."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column."""
    changes = sa.Column("changes", sa.Integer, nullable=False, server_default="0")
    op.add_column("datasets", changes)
