"""The revisions of the schema, without SQLAlchemy."""

from __future__ import annotations

REVISIONS = (
    *("v0001", "v0002", "v0003", "v0004", "v0005", "v0006", "v0007"),
    *("v0008", "v0009", "v0010", "v0011", "v0012", "v0013", "v0014"),
    *("v0015", "v0016", "v0017", "v0018", "v0019", "v0020", "v0021"),
    *("v0022", "v0023"),
)
"""All revisions of the schema, oldest first. This code works with the last."""
DEVELOPMENT_REVISIONS = frozenset(f"{number:04}" for number in range(1, 14))
"""Revisions of the schema before the first version. Catalogues that have one are refused."""
VERSION_TABLE = "swathe_schema"
