"""What a cut needs of a catalogue in a file, read without SQLAlchemy.

Importing SQLAlchemy takes a third of a second: more than many cuts. Whatever is unusual, such as an
older or damaged catalogue, is left to `Catalog`, which migrates it or reports the error.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.catalog.revisions import REVISIONS, VERSION_TABLE
from swathe.catalog.store_settings import Store, no_such_store, store_of_row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

WAIT_S = 5.0
"""Seconds to wait for a lock; then `Catalog` waits for it."""
PROFILE = """
    SELECT costs FROM profiles JOIN links ON links.id = profiles.link_id
    WHERE links.root = ? AND links.host = ?
    ORDER BY profiles.fitted_at DESC, profiles.id DESC LIMIT 1
"""
PROFILES = """
    SELECT links.root, links.host, profiles.costs, profiles.spread
    FROM links JOIN profiles ON profiles.id = (
        SELECT id FROM profiles WHERE link_id = links.id ORDER BY fitted_at DESC, id DESC LIMIT 1
    )
"""
COMPUTE = "SELECT compute FROM hosts WHERE host = ?"
COMPUTES = "SELECT host, compute FROM hosts"
STORES = "SELECT name, url, tier, options FROM stores"
TAPES = "SELECT count(*) FROM stores WHERE tier = 'tape'"


@dataclass(frozen=True)
class StoresAndCosts:
    """Stores and what was measured of them.

    Attributes:
        stores: all stores, by name.
        profiles: root, host, costs and spread of the latest profile of each link.
        compute: costs of computing by host.
    """

    stores: list[Store]
    profiles: list[tuple[str, str, dict[str, Any], dict[str, Any]]]
    compute: dict[str, dict[str, Any]]


def read_local_costs(path: str, root: str, host: str) -> tuple[str | None, str | None, bool]:
    """Return the newest profile of a root, the compute costs of a host, and whether tape is there.

    Profile and costs are JSON. All are `None` or false if there is no readable catalogue. Cutting
    plain files does not need one, and other code reports the error.
    """
    import sqlite3

    try:
        with closing(_connect(path)) as database:
            costs = database.execute(PROFILE, (root, host)).fetchone()
            compute = database.execute(COMPUTE, (host,)).fetchone()
            (tapes,) = database.execute(TAPES).fetchone()
    except sqlite3.Error:
        return None, None, False
    return costs and costs[0], compute and compute[0], tapes > 0


def read_stores(path: str) -> StoresAndCosts | None:
    """Return the stores of a catalogue, and what was measured; all as of one moment.

    `None` if the file cannot be read in this way, or its tables are not of today's version.

    Raises:
        NoSuchStoreError: If a striped store lies over one that is missing.
    """
    import sqlite3

    try:
        with closing(_connect(path)) as database:
            database.execute("BEGIN")
            versions = database.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall()
            if versions != [(REVISIONS[-1],)]:
                return None
            rows = {row[0]: row for row in _rows_with_json(database, STORES, 3)}
            profiles = sorted(_rows_with_json(database, PROFILES, 2), key=lambda row: row[:2])
            compute = dict(_rows_with_json(database, COMPUTES, 1))
    except (sqlite3.Error, ValueError):
        return None

    def find(name: str) -> Store:
        if name not in rows:
            raise no_such_store(name)
        url, tier, options = rows[name][1:]
        return store_of_row(name, url, tier, options, find)

    return StoresAndCosts([find(name) for name in sorted(rows)], profiles, compute)


def _connect(path: str) -> sqlite3.Connection:
    import sqlite3

    address = f"file:{quote(path)}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=WAIT_S, isolation_level=None)


def _rows_with_json(database: sqlite3.Connection, query: str, first: int) -> Iterator[Any]:
    """Yield the rows of a query, with the JSON of the columns from `first` on parsed."""
    for row in database.execute(query):
        yield *row[:first], *map(json.loads, row[first:])
