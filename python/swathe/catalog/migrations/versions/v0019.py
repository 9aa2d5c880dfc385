"""Callbacks of jobs: what is to be sent when they run and when they end."""

import sqlalchemy as sa
from alembic import op

revision = "v0019"
down_revision = "v0018"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "job_callbacks",
        sa.Column("job", ID, autoincrement=False, nullable=False),
        sa.Column("success", sa.Text(), nullable=False),
        sa.Column("in_progress", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_callbacks_job", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", name="pk_job_callbacks"),
    )
    op.create_index("ix_job_callbacks_due_at", "job_callbacks", ["due_at"])
