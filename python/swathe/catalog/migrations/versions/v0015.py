"""What became of groups of granules on which algorithms ran, and how long versions take."""

import sqlalchemy as sa
from alembic import op

revision = "v0015"
down_revision = "v0014"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "group_runs",
        sa.Column("job", ID, nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("algorithm", sa.String(100), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("log", sa.LargeBinary(), nullable=False),
        *_measurements(),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_group_runs_job", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "row", name="pk_group_runs"),
    )
    op.create_table(
        "algorithm_timings",
        sa.Column("id", ID, nullable=False),
        sa.Column("algorithm", sa.String(100), nullable=False),
        *_measurements(),
        sa.PrimaryKeyConstraint("id", name="pk_algorithm_timings"),
    )
    op.create_index("ix_algorithm_timings_algorithm", "algorithm_timings", ["algorithm"])


def _measurements() -> list[sa.Column[object]]:
    return [
        sa.Column("input_bytes", sa.BigInteger(), nullable=False),
        sa.Column("output_bytes", sa.BigInteger(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=False),
        sa.Column("cpu_s", sa.Double(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", TIME, nullable=False),
    ]
