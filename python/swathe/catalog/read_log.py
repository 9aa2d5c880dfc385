"""Timings of real reads that wait beside a catalogue file until they are entered into it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog.line_log import NO_RECORD, LineLog
from swathe.catalog.records.checks import count, finite, plain_text
from swathe.catalog.records.measurements import SampleRecord
from swathe.catalog.store_urls import root_url

if TYPE_CHECKING:
    from collections.abc import Iterable

LONE = b', "lone"]'

log = logging.getLogger(__name__)


class ReadLog(LineLog):
    """A file of reads, one line of JSON each."""

    SUFFIX = "-reads"

    def append(self, root: str, host: str, samples: Iterable[SampleRecord]) -> None:
        """Append the reads of a store by a host.

        Raises:
            CatalogError: If they cannot be written.
        """
        lines = [_line(root, host, sample) for sample in samples]
        if lines:
            self.append_lines(b"".join(lines))

    def is_due(self, enough: int) -> bool:
        """Check whether to enter the lines: they are many, or this many reads were alone.

        Raises:
            CatalogError: If the log cannot be read.
        """
        if self.is_full():
            return True
        lines, _ = self.lines_from(0)
        return sum(line.endswith(LONE) for line in lines) >= enough

    def parse(self, lines: Iterable[bytes]) -> dict[tuple[str, str], list[SampleRecord]]:
        """Return the reads in some lines by store and host; an invalid line is left out."""
        reads: dict[tuple[str, str], list[SampleRecord]] = {}
        for line in lines:
            try:
                root, host, size, streams, elapsed_s, first_byte_s, at, _ = json.loads(line)
                sample = SampleRecord(
                    "read",
                    *(count(size), count(streams), finite(elapsed_s), finite(first_byte_s)),
                    datetime.fromtimestamp(at, UTC),
                    "read",
                )
                if not min(size, streams, elapsed_s, first_byte_s) >= 0:
                    raise ValueError(f"expected numbers from 0, found {line[:200]!r}")
                if not 0 < len(host) < 256 or plain_text(host, 255) != host:
                    raise ValueError(f"expected the name of a host, found {host[:200]!r}")
                reads.setdefault((root_url(root), host), []).append(sample)
            except NO_RECORD as error:
                # The power failed while it was written, or another program wrote it.
                log.warning("%s: expected a read in each line: %s", self.path, error)
        return reads


def _line(root: str, host: str, sample: SampleRecord) -> bytes:
    """Return a read as a line; its end says whether the read was alone at the store."""
    numbers = sample.bytes, sample.streams, sample.elapsed_s, sample.first_byte_s
    others = "lone" if sample.streams == 1 else "shared"
    return json.dumps([root, host, *numbers, sample.at.timestamp(), others]).encode() + b"\n"
