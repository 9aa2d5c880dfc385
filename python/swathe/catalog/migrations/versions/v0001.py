"""All tables, as of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    _make_stores()
    _make_links()
    _make_probes()
    _make_samples()
    _make_profiles()
    _make_hosts()
    _make_outcomes()
    _make_datasets()
    _make_replicas()
    _make_granules()
    _make_footprints()
    _make_jobs()
    _make_job_blocks()
    _make_job_chunks()
    _make_deleted_jobs()
    _make_reservations()
    _make_pools()
    _make_worker_replicas()
    _make_tokens()


def _make_stores() -> None:
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


def _make_links() -> None:
    op.create_table(
        "links",
        sa.Column("id", ID, nullable=False),
        sa.Column("root", sa.String(2000), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("root", "host", name="uq_links_root_host"),
    )


def _make_probes() -> None:
    op.create_table(
        "probes",
        sa.Column("id", ID, nullable=False),
        sa.Column("link_id", ID, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("elapsed_s", sa.Double, nullable=False),
        sa.Column("bytes_moved", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_probes_link_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_probes"),
    )
    op.create_index("ix_probes_link_id", "probes", ["link_id"])


def _make_samples() -> None:
    op.create_table(
        "samples",
        sa.Column("id", ID, nullable=False),
        sa.Column("link_id", ID, nullable=False),
        sa.Column("probe_id", ID, nullable=True),
        sa.Column("source", sa.String(10), nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("streams", sa.Integer, nullable=False),
        sa.Column("elapsed_s", sa.Double, nullable=False),
        sa.Column("first_byte_s", sa.Double, nullable=True),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_samples_link_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["probe_id"], ["probes.id"], name="fk_samples_probe_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
    )
    op.create_index("ix_samples_link_id_source_at", "samples", ["link_id", "source", "at"])
    op.create_index("ix_samples_probe_id", "samples", ["probe_id"])


def _make_profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("id", ID, nullable=False),
        sa.Column("link_id", ID, nullable=False),
        sa.Column("fitted_at", TIME, nullable=False),
        sa.Column("costs", sa.JSON, nullable=False),
        sa.Column("spread", sa.JSON, nullable=False),
        sa.Column("notes", sa.JSON, nullable=True),
        sa.ForeignKeyConstraint(
            ["link_id"], ["links.id"], name="fk_profiles_link_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_profiles"),
    )
    op.create_index("ix_profiles_link_id_fitted_at", "profiles", ["link_id", "fitted_at"])


def _make_hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", ID, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("compute", sa.JSON, nullable=False),
        sa.Column("fitted_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
        sa.UniqueConstraint("host", name="uq_hosts_host"),
    )


def _make_outcomes() -> None:
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


def _make_datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("pattern", sa.Text, nullable=True),
        sa.Column("calib_level", sa.SmallInteger, server_default="2", nullable=False),
        sa.Column("changes", sa.Integer, server_default="0", nullable=False),
        sa.Column("added_at", TIME, nullable=False),
        sa.Column("synced_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_datasets_store_id"),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", name="uq_datasets_name"),
    )
    op.create_index("ix_datasets_store_id", "datasets", ["store_id"])


def _make_replicas() -> None:
    op.create_table(
        "replicas",
        sa.Column("id", ID, nullable=False),
        sa.Column("dataset_id", ID, nullable=False),
        sa.Column("object_path", sa.String(1000), nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=True),
        sa.Column("modified", sa.String(100), nullable=True),
        sa.Column("version", sa.Text, nullable=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("seen_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_replicas_dataset_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_replicas_store_id"),
        sa.PrimaryKeyConstraint("id", name="pk_replicas"),
        sa.UniqueConstraint(
            "dataset_id",
            "object_path",
            "store_id",
            name="uq_replicas_dataset_id_object_path_store_id",
        ),
    )
    op.create_index("ix_replicas_store_id", "replicas", ["store_id"])


def _make_granules() -> None:
    op.create_table(
        "granules",
        sa.Column("id", ID, nullable=False),
        sa.Column("dataset_id", ID, nullable=False),
        sa.Column("path", sa.String(1000), nullable=False),
        sa.Column("hdu", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=True),
        sa.Column("shape", sa.JSON, nullable=False),
        sa.Column("t_min", sa.Double, nullable=True),
        sa.Column("t_max", sa.Double, nullable=True),
        sa.Column("band", sa.String(100), nullable=True),
        sa.Column("em_min", sa.Double, nullable=True),
        sa.Column("em_max", sa.Double, nullable=True),
        sa.Column("s_ra", sa.Double, nullable=True),
        sa.Column("s_dec", sa.Double, nullable=True),
        sa.Column("s_fov", sa.Double, nullable=True),
        sa.Column("s_pixel_scale", sa.Double, nullable=True),
        sa.Column("outline", sa.JSON, nullable=True),
        sa.Column("wcs", sa.Text, nullable=True),
        sa.Column("note", sa.Text, nullable=True),
        sa.Column("facility", sa.String(100), nullable=True),
        sa.Column("instrument", sa.String(100), nullable=True),
        sa.Column("target", sa.String(100), nullable=True),
        sa.Column("pol", sa.JSON, nullable=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_granules_dataset_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_granules"),
        sa.UniqueConstraint("dataset_id", "path", "hdu", name="uq_granules_dataset_id_path_hdu"),
    )
    op.create_index("ix_granules_em_min", "granules", ["em_min"])
    op.create_index("ix_granules_t_min", "granules", ["t_min"])


def _make_footprints() -> None:
    op.create_table(
        "footprints",
        sa.Column("level", sa.SmallInteger, autoincrement=False, nullable=False),
        sa.Column("first", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("granule_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["granule_id"], ["granules.id"], name="fk_footprints_granule_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("level", "first", "last", "granule_id", name="pk_footprints"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_footprints_granule_id", "footprints", ["granule_id"])


def _make_jobs() -> None:
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
        sa.Column("work_s", sa.Double, nullable=False),
        sa.Column("bytes_moved", sa.BigInteger, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=True),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("changes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
    )
    op.create_index("ix_jobs_expires_at", "jobs", ["expires_at"])
    op.create_index("ix_jobs_owner_phase", "jobs", ["owner", "phase"])
    op.create_index("ix_jobs_phase", "jobs", ["phase"])


def _make_job_blocks() -> None:
    op.create_table(
        "job_blocks",
        sa.Column("job", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("statuses", sa.Integer, nullable=False),
        sa.Column("places", sa.LargeBinary, nullable=False),
        sa.Column("names", sa.LargeBinary, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("became", sa.LargeBinary, nullable=True),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_blocks_job", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "number", name="pk_job_blocks"),
    )


def _make_job_chunks() -> None:
    op.create_table(
        "job_chunks",
        sa.Column("job", ID, autoincrement=False, nullable=False),
        sa.Column("first", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("runner", sa.Text, nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("deaths", sa.Integer, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_chunks_job", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "first", name="pk_job_chunks"),
    )
    op.create_index("ix_job_chunks_state", "job_chunks", ["state"])


def _make_deleted_jobs() -> None:
    op.create_table(
        "deleted_jobs",
        sa.Column("id", sa.String(22), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", TIME, nullable=False),
        sa.Column("removed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_jobs"),
    )
    op.create_index("ix_deleted_jobs_owner", "deleted_jobs", ["owner"])


def _make_reservations() -> None:
    op.create_table(
        "reservations",
        sa.Column("number", ID, nullable=False),
        sa.Column("starts_at", TIME, nullable=False),
        sa.Column("ends_at", TIME, nullable=False),
        sa.Column("workers", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_reservations"),
    )


def _make_pools() -> None:
    op.create_table(
        "pools",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("told_at", TIME, nullable=False),
        sa.Column("workers", sa.Integer, nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pools"),
    )


def _make_worker_replicas() -> None:
    op.create_table(
        "worker_replicas",
        sa.Column("id", ID, nullable=False),
        sa.Column("pool", sa.String(16), nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["pool"], ["pools.id"], name="fk_worker_replicas_pool", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_worker_replicas"),
    )
    op.create_index("ix_worker_replicas_pool", "worker_replicas", ["pool"])


def _make_tokens() -> None:
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
