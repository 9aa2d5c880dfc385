"""Runs of applications, their arrays, and where each of their iterations lies."""

import sqlalchemy as sa
from alembic import op

revision = "v0007"
down_revision = "v0006"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("folder", sa.String(150), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("iterations", sa.BigInteger, nullable=False),
        sa.Column("ranks", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("began_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("name", "number", name="uq_runs_name_number"),
    )
    op.create_table(
        "run_arrays",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("stores", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_run_arrays_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_run_arrays"),
        sa.UniqueConstraint("run_id", "name", name="uq_run_arrays_run_id_name"),
    )
    op.create_table(
        "run_dumps",
        sa.Column("array_id", ID, autoincrement=False, nullable=False),
        sa.Column("iteration", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("slot", sa.BigInteger, nullable=False),
        sa.Column("store", sa.String(100), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["array_id"], ["run_arrays.id"], name="fk_run_dumps_array_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("array_id", "iteration", name="pk_run_dumps"),
    )
