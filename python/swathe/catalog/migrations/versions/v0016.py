"""Orbits of granules, changes of objects in datasets, and subscriptions to them."""

import sqlalchemy as sa
from alembic import op

revision = "v0016"
down_revision = "v0015"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
SUBSCRIPTION = "subscriptions.number"


def upgrade() -> None:
    """Add the tables; the objects that are there get a number in the log of changes.

    Orbits of granules that are there are not known until they are read again.
    """
    op.add_column("granules", sa.Column("orbit", sa.Integer(), nullable=True))
    op.create_table(
        "change_counters",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("cursor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_change_counters"),
    )
    op.create_table(
        "object_changes",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("dataset", sa.String(100), nullable=False),
        sa.Column("path", sa.String(1000), nullable=False),
        sa.Column("version", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_object_changes"),
        sa.UniqueConstraint("dataset", "path", name="uq_object_changes_dataset_path"),
    )
    op.execute(
        "INSERT INTO object_changes (number, dataset, path, version) "
        "SELECT ROW_NUMBER() OVER (ORDER BY replicas.id), datasets.name, replicas.object_path, "
        "replicas.version FROM replicas JOIN datasets ON datasets.id = replicas.dataset_id "
        "AND datasets.store_id = replicas.store_id "
        "WHERE replicas.state = 'ok' AND replicas.version IS NOT NULL"
    )
    op.execute(
        "INSERT INTO change_counters (id, last, cursor) SELECT 1, COALESCE(MAX(number), 0), "
        "COALESCE(MAX(number), 0) FROM object_changes"
    )
    op.create_table(
        "subscriptions",
        sa.Column("number", ID, nullable=False),
        sa.Column("id", sa.String(22), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("dataset", sa.String(100), nullable=False),
        sa.Column("search", sa.JSON(), nullable=False),
        sa.Column("lon", sa.Double(), nullable=False),
        sa.Column("half_lon", sa.Double(), nullable=False),
        sa.Column("south", sa.Double(), nullable=False),
        sa.Column("north", sa.Double(), nullable=False),
        sa.Column("t_min", sa.Double(), nullable=False),
        sa.Column("t_max", sa.Double(), nullable=False),
        sa.Column("job_options", sa.JSON(), nullable=False),
        sa.Column("grouping", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("until", TIME, nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("behind_from", sa.BigInteger(), nullable=True),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=True),
        sa.Column("webhook_fault", sa.Text(), nullable=False),
        sa.Column("webhook_event", sa.BigInteger(), nullable=False),
        sa.Column("webhook_tries", sa.Integer(), nullable=False),
        sa.Column("webhook_due_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_subscriptions"),
        sa.UniqueConstraint("id", name="uq_subscriptions_id"),
    )
    op.create_index("ix_subscriptions_owner", "subscriptions", ["owner"])
    op.create_index(
        "ix_subscriptions_search",
        "subscriptions",
        ["dataset", "state", "behind_from", "t_min", "t_max", "south", "north", "lon", "half_lon"],
    )
    op.create_index("ix_subscriptions_webhook_due_at", "subscriptions", ["webhook_due_at"])
    op.create_table(
        "subscription_granules",
        _subscription(),
        sa.Column("path", sa.String(1000), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("group_name", sa.String(1000), nullable=False),
        sa.Column("t_min", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("subscription", "path", name="pk_subscription_granules"),
        _foreign("subscription_granules"),
    )
    op.create_index("ix_subscription_granules_path", "subscription_granules", ["path"])
    op.create_index(
        "ix_subscription_granules_subscription_group_name",
        "subscription_granules",
        ["subscription", "group_name"],
    )
    op.create_table(
        "subscription_groups",
        _subscription(),
        sa.Column("name", sa.String(1000), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("versions", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("subscription", "name", name="pk_subscription_groups"),
        _foreign("subscription_groups"),
    )
    op.create_index("ix_subscription_groups_due_at", "subscription_groups", ["due_at"])
    op.create_table(
        "subscription_runs",
        sa.Column("id", ID, nullable=False),
        _subscription(),
        sa.Column("signature", sa.String(64), nullable=False),
        sa.Column("group_name", sa.String(1000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(22), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_subscription_runs"),
        sa.UniqueConstraint(
            "subscription", "signature", name="uq_subscription_runs_subscription_signature"
        ),
        _foreign("subscription_runs"),
    )
    op.create_index("ix_subscription_runs_state", "subscription_runs", ["state"])
    op.create_table(
        "subscription_events",
        _subscription(),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("subscription", "number", name="pk_subscription_events"),
        _foreign("subscription_events"),
    )


def _subscription() -> sa.Column[int]:
    return sa.Column("subscription", ID, autoincrement=False, nullable=False)


def _foreign(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["subscription"], [SUBSCRIPTION], name=f"fk_{table}_subscription", ondelete="CASCADE"
    )
