"""Jobs, their rows, chunks leased to runners; and tokens of users."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the four tables."""
    op.create_table(
        "jobs",
        sa.Column("number", ID, nullable=False),
        sa.Column("id", sa.String(22), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("phase", sa.String(10), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("served_at", TIME, nullable=True),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("inputs", sa.Integer, nullable=False),
        sa.Column("cursor", sa.Integer, nullable=False),
        sa.Column("waiting", sa.Integer, nullable=False),
        sa.Column("ok", sa.Integer, nullable=False),
        sa.Column("no_overlap", sa.Integer, nullable=False),
        sa.Column("missing", sa.Integer, nullable=False),
        sa.Column("error", sa.Integer, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("predicted", sa.JSON, nullable=True),
        sa.Column("busy_s", sa.Double, nullable=False),
        sa.Column("bytes_moved", sa.BigInteger, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=True),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("changes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
    )
    op.create_index("ix_jobs_owner_phase", "jobs", ["owner", "phase"])
    op.create_index("ix_jobs_phase", "jobs", ["phase"])
    op.create_index("ix_jobs_expires_at", "jobs", ["expires_at"])
    op.create_table(
        "job_rows",
        sa.Column("job", ID, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("result", sa.Integer, nullable=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("hdu", sa.Text, nullable=True),
        sa.Column("x0", sa.BigInteger, nullable=True),
        sa.Column("y0", sa.BigInteger, nullable=True),
        sa.Column("width", sa.BigInteger, nullable=True),
        sa.Column("height", sa.BigInteger, nullable=True),
        sa.Column("planes", sa.String(50), nullable=True),
        sa.Column("ra", sa.Double, nullable=True),
        sa.Column("dec", sa.Double, nullable=True),
        sa.Column("size_deg", sa.Double, nullable=True),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("job", "number", name="pk_job_rows"),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_rows_job", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_rows_job_position", "job_rows", ["job", "position"])
    op.create_index("ix_job_rows_job_name", "job_rows", ["job", "name"])
    some = sa.text("result IS NOT NULL")
    op.create_index(
        "ix_job_rows_job_result",
        "job_rows",
        ["job", "result"],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_table(
        "job_chunks",
        sa.Column("job", ID, nullable=False, autoincrement=False),
        sa.Column("first", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("runner", sa.Text, nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.PrimaryKeyConstraint("job", "first", name="pk_job_chunks"),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_chunks_job", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_job_chunks_state", "job_chunks", ["state"])
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_name", sa.String(200), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("hash", sa.String(128), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_index("ix_tokens_user_name", "tokens", ["user_name"])
