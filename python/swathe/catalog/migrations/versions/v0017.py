"""Libraries of users, and environments of the operator."""

import sqlalchemy as sa
from alembic import op

revision = "v0017"
down_revision = "v0016"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "libraries",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("language", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("added_at", TIME, nullable=False),
        sa.Column("removed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_libraries"),
        sa.UniqueConstraint("owner", "name", "version", name="uq_libraries_owner_name_version"),
    )
    op.create_table(
        "environments",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("python", sa.Text(), nullable=False),
        sa.Column("python_version", sa.String(32), nullable=False),
        sa.Column("lock_sha256", sa.String(64), nullable=False),
        sa.Column("folders", sa.JSON(), nullable=False),
        sa.Column("packages", sa.JSON(), nullable=False),
        sa.Column("added_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("name", name="uq_environments_name"),
    )
