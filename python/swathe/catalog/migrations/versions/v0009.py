"""Objects that are staged from tape: requests, objects and who needs them."""

import sqlalchemy as sa
from alembic import op

revision = "v0009"
down_revision = "v0008"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "stage_requests",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("began_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_stage_requests_store_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_stage_requests"),
    )
    op.create_index("ix_stage_requests_store_id", "stage_requests", ["store_id"])
    op.create_table(
        "stage_files",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("request_id", ID, nullable=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("medium", sa.Text(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("place", sa.BigInteger(), nullable=True),
        sa.Column("began_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("progress_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_stage_files_store_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["stage_requests.id"],
            name="fk_stage_files_request_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_stage_files"),
        sa.UniqueConstraint("store_id", "path", name="uq_stage_files_store_id_path"),
    )
    op.create_index("ix_stage_files_request_id", "stage_files", ["request_id"])
    op.create_table(
        "stage_pins",
        sa.Column("file_id", ID, autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["stage_files.id"], name="fk_stage_pins_file_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("file_id", "owner", name="pk_stage_pins"),
    )
    op.create_table(
        "stage_outcomes",
        sa.Column("id", ID, nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media", sa.BigInteger(), nullable=False),
        sa.Column("first_s", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name="fk_stage_outcomes_store_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_stage_outcomes"),
    )
    op.create_index("ix_stage_outcomes_store_id", "stage_outcomes", ["store_id"])
