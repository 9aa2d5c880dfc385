"""Number of runners that died while they had a chunk."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column."""
    deaths = sa.Column("deaths", sa.Integer, nullable=False, server_default="0")
    op.add_column("job_chunks", deaths)
