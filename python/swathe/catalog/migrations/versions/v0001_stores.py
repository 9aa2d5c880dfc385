"""Stores, measurements, profiles, predictions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def _link() -> sa.Column[int]:
    return sa.Column("link_id", ID, nullable=False)


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "stores",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("tier", sa.String(10), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("added_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stores"),
        sa.UniqueConstraint("name", name="uq_stores_name"),
    )
    op.create_table(
        "links",
        sa.Column("id", ID, nullable=False),
        sa.Column("root", sa.String(2000), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("root", "host", name="uq_links_root_host"),
    )
    op.create_table(
        "probes",
        sa.Column("id", ID, nullable=False),
        _link(),
        sa.Column("at", TIME, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("bytes_moved", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_probes"),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_probes_link_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_probes_link_id", "probes", ["link_id"])
    op.create_table(
        "samples",
        sa.Column("id", ID, nullable=False),
        _link(),
        sa.Column("probe_id", ID, nullable=True),
        sa.Column("source", sa.String(10), nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("streams", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("first_byte_s", sa.Double, nullable=True),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_samples_link_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["probe_id"], ["probes.id"], name="fk_samples_probe_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_samples_link_id_source_at", "samples", ["link_id", "source", "at"])
    op.create_index("ix_samples_probe_id", "samples", ["probe_id"])
    op.create_table(
        "profiles",
        sa.Column("id", ID, nullable=False),
        _link(),
        sa.Column("fitted_at", TIME, nullable=False),
        sa.Column("costs", sa.JSON, nullable=False),
        sa.Column("spread", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_profiles"),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_profiles_link_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_profiles_link_id_fitted_at", "profiles", ["link_id", "fitted_at"])
    op.create_table(
        "outcomes",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("targets", sa.BigInteger, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("predicted_s", sa.Double, nullable=False),
        sa.Column("low_s", sa.Double, nullable=False),
        sa.Column("high_s", sa.Double, nullable=False),
        sa.Column("actual_s", sa.Double, nullable=False),
        sa.Column("predicted_bytes", sa.BigInteger, nullable=False),
        sa.Column("actual_bytes", sa.BigInteger, nullable=False),
        sa.Column("predicted_requests", sa.BigInteger, nullable=False),
        sa.Column("actual_requests", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
    )
