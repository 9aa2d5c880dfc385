"""The longest exposure of a dataset: searches by time need not look further back."""

import sqlalchemy as sa
from alembic import op

revision = "v0014"
down_revision = "v0013"


def upgrade() -> None:
    """Add the column, with its value for the datasets that are there."""
    longest: sa.Column[float] = sa.Column(
        "longest_d", sa.Double(), nullable=False, server_default="0"
    )
    op.add_column("datasets", longest)
    op.execute(
        "UPDATE datasets SET longest_d = COALESCE((SELECT MAX(granules.t_max - granules.t_min) "
        "FROM granules WHERE granules.dataset_id = datasets.id), 0)"
    )
