"""Outcomes of predictions that wait beside a catalogue file until they are entered into it.

The catalogue enters the lines when its outcomes are read, or when they are many.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from swathe.catalog.line_log import FULL_BYTES, NO_RECORD, LineLog
from swathe.catalog.records.checks import count, finite, plain_text
from swathe.catalog.records.measurements import Outcome
from swathe.catalog.store_urls import root_url
from swathe.core.stored_record import stored_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_SUMMARY = 1_000
# Types in dataclasses are text there.
COUNTS = [field.name for field in fields(Outcome) if field.type == "int"]
SECONDS = [field.name for field in fields(Outcome) if field.type == "float"]

log = logging.getLogger(__name__)


class OutcomeLog(LineLog):
    """A file of outcomes, one line of JSON each."""

    SUFFIX = "-outcomes"

    def append(self, outcome: Outcome) -> bool:
        """Append an outcome; return whether the log should be entered into the catalogue.

        Raises:
            CatalogError: If it cannot be written.
            ValueError, StoreSettingsError: As `valid_fields`.
        """
        line = json.dumps(valid_fields(outcome), default=datetime.isoformat).encode() + b"\n"
        return self.append_lines(line) > FULL_BYTES

    @contextmanager
    def draining(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes, oldest first; they are removed if the caller's block succeeds.

        A block that succeeds and is killed before they are removed gets them again.

        Raises:
            CatalogError: If the log cannot be read.
        """
        with self.draining_lines() as lines:
            yield self.parse(lines)

    def parse(self, lines: Iterable[bytes]) -> list[Outcome]:
        """Return the outcomes in some lines; an invalid line is left out with a warning."""
        outcomes = []
        for line in lines:
            try:
                values = json.loads(line)
                values["at"] = datetime.fromisoformat(values["at"])
                outcome = stored_record(Outcome, values, "an outcome")
                valid_fields(outcome)
                outcome.at.astimezone(UTC)  # as the database stores it, which has no year 0
                outcomes.append(outcome)
            except (*NO_RECORD, KeyError) as error:
                # The power failed while it was written, or another program wrote it.
                log.warning("%s: expected an outcome in each line: %s", self.path, error)
        return outcomes


def valid_fields(outcome: Outcome) -> dict[str, Any]:
    """Return the fields of an outcome as a catalogue stores them.

    Raises:
        ValueError: If its time has no zone, or a number is negative or not finite.
        StoreSettingsError: If its root is not the URL of a store, or contains credentials.
    """
    if outcome.at.tzinfo is None:
        raise ValueError("a time needs a time zone: datetime.now(UTC)")
    return {
        "at": outcome.at,
        "host": plain_text(outcome.host, 255),
        "summary": plain_text(outcome.summary, LONGEST_SUMMARY),
        "root": root_url(outcome.root) if outcome.root else "",
        "output": plain_text(outcome.output, LONGEST_SUMMARY),
        **{name: count(getattr(outcome, name)) for name in COUNTS},
        **{name: finite(getattr(outcome, name)) for name in SECONDS},
    }
