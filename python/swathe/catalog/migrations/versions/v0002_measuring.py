"""Samples of several requests, further profile columns, and compute costs of hosts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Extend samples and profiles; create hosts."""
    one = sa.Column("requests", sa.Integer, nullable=False, server_default="1")
    op.add_column("samples", one)
    # Nothing distinguishes None from JSON's null.
    op.add_column("profiles", sa.Column("notes", sa.JSON, nullable=True))
    op.create_table(
        "hosts",
        sa.Column("id", ID, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("compute", sa.JSON, nullable=False),
        sa.Column("fitted_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
        sa.UniqueConstraint("host", name="uq_hosts_host"),
    )
