"""Arrays of files that are not FITS are catalogued, with their place on the Earth."""

import sqlalchemy as sa
from alembic import op

revision = "v0006"
down_revision = "v0005"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns and the table."""
    for name, kind in (
        ("array", sa.Text()),
        ("lon", sa.Double()),
        ("lat", sa.Double()),
        ("fov", sa.Double()),
        ("outlines", sa.JSON(none_as_null=True)),
    ):
        op.add_column("granules", sa.Column(name, kind, nullable=True))
    op.create_table(
        "earth_footprints",
        sa.Column("level", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("first", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("granule_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["granule_id"],
            ["granules.id"],
            name="fk_earth_footprints_granule_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("level", "first", "last", "granule_id", name="pk_earth_footprints"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_earth_footprints_granule_id", "earth_footprints", ["granule_id"])
