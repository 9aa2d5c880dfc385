"""Study the read buffer: the time to read an object against the size of a request.

Sizes take turns in a random order, so that a slow minute affects all of them. If the whole object
would take too long with small buffers, a part is read and the time is scaled.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.catalog import this_host
from swathe.core.errors import ChangedError, NotFoundError
from swathe.core.format import KIB, MIB, size_text
from swathe.costs.cost_model import Sample
from swathe.costs.fit.robust_stats import TIE
from swathe.costs.probing.page_cache import cache_state, in_memory
from swathe.costs.probing.probe_schedule import OPENING_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe.costs.probing.reader_protocol import Reader
    from swathe.costs.probing.resolve_target import ProbeTarget

SIZES = tuple(KIB << power for power in range(15))
REPEATS = 7


@dataclass
class BufferStudy:
    """Result of a study.

    Attributes:
        object: object as users may see it.
        sizes: buffer sizes in bytes.
        seconds: time to read the whole object, shape (repeats, sizes); NaN if there was no time.
        parts: part of the object that was actually read, for each size.
        low, high: range of sizes around the best that are within 5 % of it, or within the noise
            if that is larger.
        choice: size for planners: the smallest in this range.
        cache: `warm`, `cold`, `mixed`, `unknown` or `remote`, as in a probe.
        stored_bytes: size recorded for later reads; `None` if none was.
    """

    object: str
    object_bytes: int
    sizes: NDArray[np.int64]
    seconds: NDArray[np.float64]
    parts: NDArray[np.float64]
    samples: list[Sample]
    took_s: float
    bytes_moved: int
    seed: int
    cache: str
    host: str = field(default_factory=this_host)
    stored_bytes: int | None = None

    def __post_init__(self) -> None:
        has_times = np.isfinite(self.seconds).any(axis=0)
        self.sizes, self.parts = self.sizes[has_times], self.parts[has_times]
        self.seconds = self.seconds[:, has_times]
        if not len(self.sizes):
            raise ValueError("a study needs one measurement at least")
        self.median = np.nanmedian(self.seconds, axis=0)
        count = np.isfinite(self.seconds).sum(axis=0)
        scale = 1.4826 * np.nanmedian(np.abs(self.seconds - self.median), axis=0) / self.median
        self.error = 1.25 * scale / np.sqrt(count)
        best = int(np.argmin(self.median))
        doubt = np.maximum(TIE, 2 * np.hypot(self.error, self.error[best]))
        alike = self._around(best, self.median <= self.median[best] * (1 + doubt))
        self.best = int(self.sizes[best])
        self.low, self.high = int(self.sizes[alike[0]]), int(self.sizes[alike[-1]])
        self.choice = self.low

    @staticmethod
    def _around(best: int, alike_sizes: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the run of good sizes that contains `best`."""
        run = np.cumsum(np.append(True, np.diff(alike_sizes.astype(int)) != 0))
        return np.flatnonzero(run == run[best])

    def table(self) -> Table:
        """Return a table with one row per buffer size."""
        from astropy.table import Table

        low, high = np.nanquantile(self.seconds, (0.1, 0.9), axis=0)
        return Table(
            {
                "buffer": self.sizes,
                "median_s": self.median,
                "low": low,
                "high": high,
                "rate": self.object_bytes / self.median,
                "part": self.parts,
                "within": (self.sizes >= self.low) & (self.sizes <= self.high),
            },
            units={"buffer": "byte", "median_s": "s", "low": "s", "high": "s", "rate": "byte / s"},
            meta=self.summary(),
        )

    def summary(self) -> dict[str, Any]:
        """Return all single values."""
        names = ("object", "object_bytes", "best", "low", "high", "choice", "cache", "host")
        more = ("took_s", "bytes_moved", "seed", "stored_bytes")
        return {name: getattr(self, name) for name in names + more}


def study_buffer(
    place: ProbeTarget,
    *,
    repeats: int = REPEATS,
    max_time_s: float = 30.0,
    max_bytes: int = 1024 * MIB,
    seed: int | None = None,
    tell: Callable[[str], None] | None = None,
    reader: Reader = _swathe,
    clock: Callable[[], float] = time.perf_counter,
) -> BufferStudy:
    """Read an object with buffers of 1 KiB to 16 MiB, one request at a time.

    Args:
        place: store and objects; the first object is read.
        repeats: number of measurements of each size, if the budget allows.
        max_time_s: time limit in seconds.
        max_bytes: limit of bytes moved.
        seed: seed of the order; by default another one each time.
        tell: function called with the plan of the study before it begins.
        reader: reader to measure with.
        clock: clock of the reader, in seconds.

    Raises:
        NotFoundError: If there is nothing to read.
        ChangedError: If fewer bytes came than were requested.
    """
    name = place.objects[0]
    seed = seed if seed is not None else int.from_bytes(os.urandom(4), "big")
    rng = np.random.default_rng(seed)
    length = reader.measure_open(name, place.stores)[1]
    if length < 1:
        raise NotFoundError(f"{_swathe.redact_url(name)}: is empty; nothing to measure")
    sizes = np.array([size for size in SIZES if size <= length] or [length])
    if tell:
        most = min(max_bytes, repeats * len(sizes) * length)
        tell(
            f"at most {size_text(most)} and {max_time_s:g} s: buffers of {sizes[0]} to "
            f"{sizes[-1]} bytes, {repeats} times each"
        )
    # The engine opens the object first, each time.
    opening = 0 if place.is_local else min(OPENING_BYTES, length)
    start_s, bytes_moved = clock(), opening
    resident: list[bool] = []
    samples: list[Sample] = []
    seconds = np.full((repeats, len(sizes)), np.nan)
    parts = np.zeros(len(sizes))
    # Time limit of one read with any buffer.
    share_s, share_bytes = max_time_s / repeats / len(sizes), max_bytes // repeats // len(sizes)
    request_s = np.full(len(sizes), np.nan)
    path = place.file(name)
    for turn, column in _turns(repeats, len(sizes), rng):
        size, remaining_s = int(sizes[column]), max_time_s - (clock() - start_s)
        each_s = request_s[column] if turn else 2 * request_s[max(column - 1, 0)]
        affordable = 4 if math.isnan(each_s) else int(min(share_s, remaining_s) / each_s)
        request_count = -(-length // size)
        requests = max(min(affordable, share_bytes // size, request_count), 1)
        # The time of a first read is unknown.
        late = remaining_s <= 0 or requests * each_s > remaining_s
        if samples and (late or bytes_moved + requests * size + opening > max_bytes):
            continue
        first = int(rng.integers(request_count))
        ranges = [_range((first + step) % request_count, size, length) for step in range(requests)]
        if path is not None:
            resident.extend(in_memory(path, [offset for offset, _ in ranges[:8]]))
        length_sum, took = _read(reader, place, ranges, length)
        if took <= 0:
            continue
        bytes_moved += length_sum + opening
        request_s[column] = np.fmin(request_s[column], took / requests)
        seconds[turn, column] = took * length / length_sum
        parts[column] = max(parts[column], length_sum / length)
        samples.append(
            Sample("read", length_sum, took, requests, 1, asked_bytes=length_sum, at=time.time())
        )
    return BufferStudy(
        _swathe.redact_url(name),
        length,
        sizes,
        seconds,
        parts,
        samples,
        clock() - start_s,
        bytes_moved,
        seed,
        cache_state(resident) if place.is_local else "remote",
    )


def _range(slot: int, size: int, length: int) -> tuple[int, int]:
    return slot * size, min(size, length - slot * size)


def _turns(repeats: int, sizes: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield the next measurement: its repeat, and its index among the sizes."""
    for turn in range(repeats):
        # At first in ascending order: a size tells how many requests of the next there is time for.
        order = range(sizes) if turn == 0 else rng.permutation(sizes).tolist()
        for column in order:
            yield turn, column


def _read(
    reader: Reader, place: ProbeTarget, ranges: list[tuple[int, int]], length: int
) -> tuple[int, float]:
    """Read ranges of the object in order; return their bytes, and the seconds."""
    name = place.objects[0]
    timings = reader.measure(name, ranges, 1, stores=place.stores)
    range_sum = sum(range_bytes for _, range_bytes in ranges)
    answer_bytes = sum(timing.bytes for timing in timings)
    if answer_bytes != range_sum:
        raise ChangedError(
            f"{_swathe.redact_url(name)}: {answer_bytes} bytes came of {range_sum} requested "
            f"within its {length} bytes; was it changed while it was read?"
        )
    return range_sum, max(timing.end_s for timing in timings) - min(t.start_s for t in timings)
