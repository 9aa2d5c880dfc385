"""The latest outcomes of a host, read without SQLAlchemy if the catalogue is a file.

Its import takes a third of a second: more than many cuts.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from swathe.catalog.records.measurements import Outcome

RECENT = 1_000
"""Outcomes that are read."""
NAMES = [field.name for field in fields(Outcome)]
OUTCOMES = f"""
    SELECT {", ".join(NAMES)} FROM outcomes WHERE host = ? AND model_s > 0
    ORDER BY id DESC LIMIT {RECENT}
"""
PROBE_TIMES = """
    SELECT links.root, MAX(probes.at) FROM probes JOIN links ON links.id = probes.link_id
    WHERE links.host = ? GROUP BY links.root
"""


def recent_outcomes(path: str, host: str) -> tuple[list[Outcome], dict[str, datetime]]:
    """Return the outcomes in a catalogue file that say something of the model, oldest first.

    Also returns when each store was last probed. Both are empty if the file cannot be read: other
    code reports the error.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as database:
            rows = database.execute(OUTCOMES, (host,)).fetchall()[::-1]
            probe_times = dict(database.execute(PROBE_TIMES, (host,)).fetchall())
    except sqlite3.Error:
        return [], {}
    outcomes = [_outcome(dict(zip(NAMES, row, strict=True))) for row in rows]
    return outcomes, {root: _moment(at) for root, at in probe_times.items()}


def _outcome(values: dict[str, Any]) -> Outcome:
    return Outcome(**{**values, "at": _moment(values["at"])})


def _moment(text: str) -> datetime:
    """Return a time as SQLAlchemy stores it."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
