"""Costs of this host's files, read from a catalogue file without SQLAlchemy.

Importing SQLAlchemy takes a third of a second: more than many cuts.
"""

from __future__ import annotations

from contextlib import closing
from urllib.parse import quote

PROFILE = """
    SELECT costs FROM profiles JOIN links ON links.id = profiles.link_id
    WHERE links.root = ? AND links.host = ?
    ORDER BY profiles.fitted_at DESC, profiles.id DESC LIMIT 1
"""
COMPUTE = "SELECT compute FROM hosts WHERE host = ?"


def read_local_costs(path: str, root: str, host: str) -> tuple[str | None, str | None]:
    """Return the newest profile of a root and the compute costs of a host, as JSON.

    Both are `None` if there is no readable catalogue. Cutting plain files does not need one, and
    other code reports the error.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as database:
            costs = database.execute(PROFILE, (root, host)).fetchone()
            compute = database.execute(COMPUTE, (host,)).fetchone()
    except sqlite3.Error:
        return None, None
    return costs and costs[0], compute and compute[0]
