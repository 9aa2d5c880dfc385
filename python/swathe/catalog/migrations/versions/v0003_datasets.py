"""Datasets, the copies of their objects, their images, and the images' footprints in the sky."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the four tables."""
    op.create_table(
        "datasets",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("store_id", ID, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("pattern", sa.Text, nullable=True),
        sa.Column("added_at", TIME, nullable=False),
        sa.Column("synced_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", name="uq_datasets_name"),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_datasets_store_id"),
    )
    op.create_index("ix_datasets_store_id", "datasets", ["store_id"])
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
        sa.PrimaryKeyConstraint("id", name="pk_replicas"),
        sa.UniqueConstraint(
            "dataset_id",
            "object_path",
            "store_id",
            name="uq_replicas_dataset_id_object_path_store_id",
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_replicas_dataset_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name="fk_replicas_store_id"),
    )
    op.create_index("ix_replicas_store_id", "replicas", ["store_id"])
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
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_granules"),
        sa.UniqueConstraint("dataset_id", "path", "hdu", name="uq_granules_dataset_id_path_hdu"),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_granules_dataset_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_granules_t_min", "granules", ["t_min"])
    op.create_index("ix_granules_em_min", "granules", ["em_min"])
    op.create_table(
        "footprints",
        sa.Column("level", sa.SmallInteger, nullable=False, autoincrement=False),
        sa.Column("first", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("last", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("granule_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("level", "first", "last", "granule_id", name="pk_footprints"),
        sa.ForeignKeyConstraint(
            ["granule_id"], ["granules.id"], name="fk_footprints_granule_id", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_footprints_granule_id", "footprints", ["granule_id"])
