"""Telescope, instrument, target, polarization: older images get them when read again."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns."""
    for name in ("facility", "instrument", "target"):
        op.add_column("granules", sa.Column(name, sa.String(100)))
    op.add_column("granules", sa.Column("pol", sa.JSON()))
