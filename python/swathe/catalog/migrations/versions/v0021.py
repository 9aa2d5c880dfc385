"""Mail and MQTT as hints of subscriptions, and the addresses that users may send mail to."""

import sqlalchemy as sa
from alembic import op

revision = "v0021"
down_revision = "v0020"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the columns and the table. Events that are there are not published."""
    for column in (
        sa.Column("mail", sa.String(254), nullable=True),
        sa.Column("mail_fault", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("mail_event", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("mail_tries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("mail_due_at", TIME, nullable=True),
        sa.Column("mqtt_event", sa.BigInteger(), nullable=False, server_default="0"),
    ):
        op.add_column("subscriptions", column)
    op.execute("UPDATE subscriptions SET mqtt_event = events")
    op.create_index("ix_subscriptions_mail_due_at", "subscriptions", ["mail_due_at"])
    condition = sa.text("events > mqtt_event")
    op.create_index(
        "ix_subscriptions_mqtt",
        "subscriptions",
        ["number"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
    op.create_table(
        "mail_addresses",
        sa.Column("number", ID, nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("address", sa.String(254), nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("requested_at", TIME, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_mail_addresses"),
        sa.UniqueConstraint("key", name="uq_mail_addresses_key"),
        sa.UniqueConstraint("owner", "address", name="uq_mail_addresses_owner_address"),
    )
    op.create_index("ix_mail_addresses_due_at", "mail_addresses", ["due_at"])
