"""What files of this host cost, read from a catalogue in a file without SQLAlchemy.

To import that takes a third of a second: more than many a cut.
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
    """Return the newest profile of a root and what computing costs, as a host has them, as JSON.

    Both are `None` if there is no catalogue, or none that can be read: whoever needs one is told so
    elsewhere, and to cut plain files it is not needed.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as database:
            costs = database.execute(PROFILE, (root, host)).fetchone()
            compute = database.execute(COMPUTE, (host,)).fetchone()
    except sqlite3.Error:
        return None, None
    return costs and costs[0], compute and compute[0]
