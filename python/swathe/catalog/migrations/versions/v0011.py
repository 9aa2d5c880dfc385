"""Jobs that wait for objects on tape."""

import sqlalchemy as sa
from alembic import op

revision = "v0011"
down_revision = "v0010"


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("staging", sa.JSON(), nullable=True))
