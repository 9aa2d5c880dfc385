"""Outcomes have the time predicted by the model, and the parts of the time of the call."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"

COLUMNS = ("model_s", "engine_s", "before_s", "after_s")


def upgrade() -> None:
    """Add the columns."""
    for name in COLUMNS:
        op.add_column("outcomes", sa.Column(name, sa.Double, nullable=False, server_default="0"))
