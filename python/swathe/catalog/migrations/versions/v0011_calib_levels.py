"""Calibration level of datasets; existing ones count as calibrated, as before."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column."""
    level = sa.Column("calib_level", sa.SmallInteger, nullable=False, server_default="2")
    op.add_column("datasets", level)
