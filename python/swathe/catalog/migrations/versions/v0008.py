"""Stores that runs have left, stores that dumps are to be moved to, and who works on a run."""

import sqlalchemy as sa
from alembic import op

revision = "v0008"
down_revision = "v0007"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the table and the columns."""
    op.create_table(
        "run_failovers",
        sa.Column("id", ID, nullable=False),
        sa.Column("array_id", ID, nullable=False),
        sa.Column("store", sa.String(100), nullable=False),
        sa.Column("next_stores", sa.JSON(), nullable=False),
        sa.Column("iteration", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["array_id"], ["run_arrays.id"], name="fk_run_failovers_array_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_run_failovers"),
    )
    op.create_index("ix_run_failovers_array_id", "run_failovers", ["array_id"])
    op.add_column("runs", sa.Column("process_space", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("holder", sa.Text(), nullable=True))
    op.add_column("run_dumps", sa.Column("target", sa.String(100), nullable=True))
