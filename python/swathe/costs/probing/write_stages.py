"""Measure the parts of a write apart: connection, open, elements, close.

Equation 1 of Shen, Choudhary, Matarazzo and Sinha, Cluster Computing 6 (2003), adds them up: `T =
T_conn + T_open + T_seek + T_rw(size) + T_close + T_connclose`. A write of no byte has all but
`T_rw`, so `T_rw(size)` is what a write of `size` bytes takes more.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swathe.core.format import KIB, MIB

SIZES = (0, 64 * KIB, MIB, 16 * MIB)
STREAMS = (1, 8)
ROUNDS = 3

StageTimes = Mapping[str, float]
"""Seconds of each part of a write, in the order in which they come."""
StagedWrites = Callable[[Sequence[str], bytes], Sequence[StageTimes]]
"""Writes objects of these names and one content at the same time; returns what parts of each took.
"""
OPENINGS = ("connect", "open")
"""Parts before the first byte of content. Without content, all others are the close."""


@dataclass(frozen=True)
class StagedSize:
    """What writes of one size take.

    Attributes:
        size: bytes of each object.
        streams: number of objects written at the same time.
        seconds: time until all were written.
        stages: median seconds of each part, of one object.
        rounds: number of times that it was measured.
    """

    size: int
    streams: int
    seconds: float
    stages: StageTimes
    rounds: int = 1

    @property
    def after_opening_s(self) -> float:
        """Return the seconds of all parts but connecting and opening."""
        stages = self.stages.items()
        return math.fsum(seconds for name, seconds in stages if name not in OPENINGS)


@dataclass(frozen=True)
class WriteStages:
    """The parts of a write.

    Attributes:
        sizes: what was measured, by size and number of streams.
        notes: parts that could not be measured apart, and why.
        folder_s: seconds that the first object in a new folder takes more than others, the folder
            two below one that is there; `None` if that was not measured.
    """

    sizes: tuple[StagedSize, ...]
    notes: tuple[str, ...] = ()
    folder_s: float | None = None

    @property
    def connect_s(self) -> float:
        """Return the seconds to open a connection; 0 if there is none."""
        return self._empty.stages.get("connect", 0.0)

    @property
    def open_s(self) -> float:
        """Return the seconds to open an object, until its first byte can be sent.

        It is 0 if the name of the object and its content are one request: then `close_s` has it.
        """
        return self._empty.stages.get("open", 0.0)

    @property
    def close_s(self) -> float:
        """Return the seconds from the last byte until an object without content is durable."""
        return self._empty.after_opening_s

    @property
    def rates(self) -> dict[tuple[int, int], float]:
        """Return the bytes per second by size and number of streams, without opening and closing.

        What took no longer than writes without content is left out.
        """
        empty = {each.streams: each for each in self.sizes if not each.size}
        rates = {}
        for each in self.sizes:
            base = empty[each.streams]
            content_s = each.seconds - base.seconds
            if each.streams == 1:
                content_s = each.after_opening_s - base.after_opening_s
            if each.size and content_s > 0:
                rates[each.size, each.streams] = each.size * each.streams / content_s
        return rates

    @property
    def objects(self) -> int:
        """Return the number of objects that were written."""
        return sum(each.streams * each.rounds for each in self.sizes)

    @property
    def bytes_moved(self) -> int:
        """Return the bytes that were written."""
        return sum(each.size * each.streams * each.rounds for each in self.sizes)

    @property
    def _empty(self) -> StagedSize:
        return next(each for each in self.sizes if not each.size and each.streams == 1)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        sizes = [asdict(each) for each in self.sizes]
        return {"sizes": sizes, "notes": list(self.notes), "folder_s": self.folder_s}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> WriteStages:
        """Return the parts from the result of `as_dict`."""
        sizes = tuple(StagedSize(**each) for each in values["sizes"])
        return cls(sizes, tuple(values["notes"]), values.get("folder_s"))


def measure_stages(
    write: StagedWrites,
    prefix: str,
    max_time_s: float,
    max_bytes: int,
    notes: Sequence[str] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> WriteStages:
    """Write objects of several sizes, alone and at the same time, within limits.

    Those without content are written in any case.

    Args:
        write: writes objects.
        prefix: begin of the names of objects.
        max_time_s: time limit, seconds; no write begins that is likely to exceed it.
        max_bytes: limit of bytes written.
        notes: parts that `write` cannot measure apart, and why.
        clock: clock in seconds.

    Raises:
        OutputError, AccessError, SourceError: If an object cannot be written.
    """
    until = clock() + max_time_s
    trials: dict[tuple[int, int], list[tuple[float, Sequence[StageTimes]]]] = {}
    contents: dict[int, bytes] = {}
    likely_s = 0.0
    cells = sorted(((size, streams) for size in SIZES for streams in STREAMS), key=math.prod)
    for turn in range(ROUNDS):
        for size, streams in cells:
            is_needed = not size and not turn
            if size * streams > max_bytes or (clock() + likely_s > until and not is_needed):
                continue
            names = [f"{prefix}{size}-{streams}-{number}" for number in range(streams)]
            if size not in contents:
                contents[size] = os.urandom(size)
            began_s = clock()
            stages = write(names, contents[size])
            likely_s = clock() - began_s
            trials.setdefault((size, streams), []).append((likely_s, stages))
            max_bytes -= size * streams
    return WriteStages(tuple(_staged_sizes(trials)), tuple(notes))


def _staged_sizes(
    trials: Mapping[tuple[int, int], Sequence[tuple[float, Sequence[StageTimes]]]],
) -> Iterator[StagedSize]:
    """Yield the medians of all trials of a size and a number of streams."""
    for (size, streams), rounds in sorted(trials.items()):
        objects = [each for _, stages in rounds for each in stages]
        medians = {name: statistics.median(each[name] for each in objects) for name in objects[0]}
        seconds = statistics.median(each for each, _ in rounds)
        yield StagedSize(size, streams, seconds, medians, len(rounds))
