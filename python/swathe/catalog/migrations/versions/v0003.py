"""Outcomes say what writing the results took, and where they were written."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"

COLUMNS: dict[str, Any] = {
    "output": (sa.Text, sa.text("''")),
    "write_s": (sa.Double, "0"),
    "written_bytes": (sa.BigInteger, "0"),
}


def upgrade() -> None:
    """Add the columns."""
    for name, (kind, default) in COLUMNS.items():
        op.add_column("outcomes", sa.Column(name, kind, nullable=False, server_default=default))
