"""Outcomes of predictions that wait beside a catalogue file until they are entered into it.

To enter one takes 10 ms, and the import of SQLAlchemy for it 0.2 s: more than many cuts. A line in
a file takes 0.1 ms. The catalogue enters the lines when its outcomes are read, or when they are
many. A process that is killed loses no line that it has written.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.checks import count, finite, plain_text
from swathe.catalog.records.measurements import Outcome
from swathe.catalog.store_settings import root_url
from swathe.core.errors import CatalogError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL_BYTES = 1 << 18
"""Size from which the lines should be entered: about 700 outcomes."""
LONGEST_SUMMARY = 1_000
# Types in dataclasses are text there.
COUNTS = [field.name for field in fields(Outcome) if field.type == "int"]
SECONDS = [field.name for field in fields(Outcome) if field.type == "float"]

log = logging.getLogger(__name__)


class OutcomeLog:
    """A file of outcomes, one line of JSON each."""

    def __init__(self, database: str) -> None:
        """Name the log of a catalogue in the file `database`."""
        self.path = Path(f"{database}-outcomes")

    @classmethod
    def of(cls, url: str) -> OutcomeLog | None:
        """Return the log of a catalogue by its URL; `None` if it is not a file."""
        kind, _, database = url.partition(":///")
        in_memory = database in ("", ":memory:")
        is_file = kind.startswith("sqlite") and not in_memory and "?" not in database
        return cls(database) if is_file else None

    def append(self, outcome: Outcome) -> bool:
        """Append an outcome; return whether the log should be entered into the catalogue.

        Raises:
            CatalogError: If it cannot be written.
            ValueError, StoreSettingsError: As `valid_fields`.
        """
        line = json.dumps(valid_fields(outcome), default=datetime.isoformat).encode() + b"\n"
        try:
            self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
            with self._locked(os.O_CREAT) as handle:
                size = os.fstat(handle).st_size
                if os.write(handle, line) != len(line):
                    os.ftruncate(handle, size)
                    raise CatalogError(f"{self.path}: expected {len(line)} bytes written; no space")
        except CatalogError:
            raise
        except OSError as error:
            raise CatalogError(f"{self.path}: cannot write: {error.strerror}") from error
        return size + len(line) > FULL_BYTES

    @contextmanager
    def draining(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes, oldest first; they are removed if the caller's block succeeds.

        A block that succeeds and is killed before they are removed gets them again.

        Raises:
            CatalogError: If the log cannot be read.
        """
        if not self._has_lines():
            yield []
            return
        try:
            with self._locked(0) as handle:
                yield self._read(handle)
                os.ftruncate(handle, 0)
        except CatalogError:
            raise
        except OSError as error:
            raise CatalogError(f"{self.path}: cannot read: {error.strerror}") from error

    def _has_lines(self) -> bool:
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False

    def _read(self, handle: int) -> list[Outcome]:
        outcomes = []
        for line in os.pread(handle, os.fstat(handle).st_size, 0).splitlines():
            try:
                values = json.loads(line)
                outcome = Outcome(**{**values, "at": datetime.fromisoformat(values["at"])})
                valid_fields(outcome)
                outcomes.append(outcome)
            except (ValueError, TypeError, KeyError, AttributeError, SwatheError) as error:
                # The power failed while it was written, or another program wrote it.
                log.warning("%s: expected an outcome in each line: %s", self.path, error)
        return outcomes

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """Open the file for reading and appending; no other process has it open so."""
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)


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
        **{name: count(getattr(outcome, name)) for name in COUNTS},
        **{name: finite(getattr(outcome, name)) for name in SECONDS},
    }
