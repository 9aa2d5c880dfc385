"""Events of growing files: only new lines are read."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from swathe.core.errors import NotFoundError, OutputError, SwatheError
from swathe.trace.analysis.align_clocks import on_one_clock
from swathe.trace.ulm import CodedColumn, DamagedLine, Events, read
from swathe.trace.viewer.encode import Parts, ViewData, encode_view
from swathe.trace.viewer.event_parts import choose_events, is_of_job, job_events
from swathe.trace.viewer.lifelines import TracedEvents
from swathe.trace.viewer.tail import GrowingFiles

LINE_BYTES = 400
"""Bytes read per kept event: longer than most lines."""
MOST_EVENTS = 2_000_000
"""Events kept of growing files."""
DROP_PARTS = 10
"""Fraction dropped when there are more: one part in this many."""
STEPS = 32
"""Changes between versions that are kept for slow viewers, at most, and no more bytes of them than
the whole data."""
JOBS = 4
"""Jobs whose data are kept for who asks again."""
REST = 3
"""After a look, no new look for this many times its duration. New events may belong to any line, so
all lines are found anew (0.3 s for a million events)."""
LONGEST_LIST = 100
"""Damaged lines reported one by one."""


class EventTail:
    """Events of files, continued on each read."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]], most: int | None = None) -> None:
        """Take the files; a missing one may appear later.

        Args:
            paths: paths of the files.
            most: largest number of events to keep: the newest.
        """
        self._most = most
        self._files = GrowingFiles(paths, None if most is None else most * LINE_BYTES)
        self._has_dropped = False
        self.lines = 0
        self.events: Events | None = None

    @property
    def left_out(self) -> bool:
        """Whether events were dropped."""
        return self._has_dropped or self._files.left_out

    def read_on(self) -> bool:
        """Read the added data; return whether there was any.

        Raises:
            SourceError: If a file cannot be read.
            OutputError: If the temporary copy cannot be written; the data are read again later.
        """
        before = self.lines
        self._files.read_on(self._add)
        return self.lines > before

    def _add(self, lines: bytes) -> None:
        fresh = _parse(lines)
        events, most = fresh, self._most
        if self.events is not None:
            new_codes = tuple(
                DamagedLine(each.line + self.lines, each.reason) for each in fresh.damaged
            )
            events = merge_events(self.events, fresh, new_codes)
        if most is not None and len(events.time_ns) > most:
            # Many at a time: dropping moves all kept events.
            events = choose_events(events, slice(most // DROP_PARTS - most, None))
            self._has_dropped = True
        self.events = events
        self.lines += lines.count(b"\n")


def _parse(lines: bytes) -> Events:
    try:
        with tempfile.NamedTemporaryFile(prefix="swathe-trace-", suffix=".ulm") as file:
            file.write(lines)
            file.flush()
            return read(file.name)
    except OSError as error:
        if isinstance(error, SwatheError):
            raise
        place = error.filename or tempfile.tempdir or "temporary files"
        raise OutputError(f"{place}: {error.strerror}: new events wait to be shown") from error


def merge_events(
    before: Events, after: Events, damaged_lines: tuple[DamagedLine, ...] = ()
) -> Events:
    """Return the events of both, sorted by time."""
    times = np.concatenate([before.time_ns, after.time_ns])
    order = np.argsort(times, kind="stable")
    sizes = (len(before.time_ns), len(after.time_ns))
    fields: dict[str, CodedColumn | NDArray[np.float64]] = {}
    for name in dict.fromkeys([*before.fields, *after.fields]):
        column = _column(before.fields.get(name), after.fields.get(name), sizes)
        if isinstance(column, CodedColumn):
            fields[name] = CodedColumn(column.codes[order], column.words)
        else:
            fields[name] = column[order]
    event = _words(before.event, after.event)
    return Events(
        times[order],
        CodedColumn(event.codes[order], event.words),
        fields,
        (before.damaged + damaged_lines)[:LONGEST_LIST],
        before.damaged_count + after.damaged_count,
    )


def _column(
    before: CodedColumn | NDArray[np.float64] | None,
    after: CodedColumn | NDArray[np.float64] | None,
    sizes: tuple[int, int],
) -> CodedColumn | NDArray[np.float64]:
    is_coded = isinstance(before, CodedColumn) or isinstance(after, CodedColumn)
    first, last = (
        _with_columns(column, size, is_coded)
        for column, size in zip((before, after), sizes, strict=True)
    )
    if isinstance(first, CodedColumn) and isinstance(last, CodedColumn):
        return _words(first, last)
    assert not isinstance(first, CodedColumn) and not isinstance(last, CodedColumn)
    return np.concatenate([first, last])


def _with_columns(
    column: CodedColumn | NDArray[np.float64] | None, size: int, is_coded: bool
) -> CodedColumn | NDArray[np.float64]:
    """Return a column of this kind: empty if missing, numbers as words if needed."""
    if column is None:
        return CodedColumn(np.full(size, -1, np.int32), ()) if is_coded else np.full(size, np.nan)
    if is_coded and not isinstance(column, CodedColumn):
        is_number = ~np.isnan(column)
        values, inverse = np.unique(column[is_number], return_inverse=True)
        codes = np.full(size, -1, np.int32)
        codes[is_number] = inverse
        return CodedColumn(codes, tuple(f"{value:.17g}" for value in values))
    return column


def _words(before: CodedColumn, after: CodedColumn) -> CodedColumn:
    code_of = {word: code for code, word in enumerate(before.words)}
    for word in after.words:
        code_of.setdefault(word, len(code_of))
    # One extra, for none.
    new_codes = np.array([*(code_of[word] for word in after.words), -1], np.int32)
    return CodedColumn(np.concatenate([before.codes, new_codes[after.codes]]), tuple(code_of))


@dataclass(frozen=True)
class JobData:
    """Data of one job, which serve until a time of the monotonic clock."""

    version: str
    parts: Parts
    look_again_s: float


class LiveView:
    """Data of a page: packed again when there are new events, and sent as changes."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        align: bool = True,
        grows: bool = True,
        most: int = MOST_EVENTS,
    ) -> None:
        """Take the files.

        Args:
            paths: paths of the files.
            align: whether to align times to the collector's clock.
            grows: whether to look for new events each time.
            most: events to keep of growing files.

        Raises:
            NotFoundError: If a file is missing and `grows` is false.
        """
        for path in () if grows else paths:
            if not os.path.exists(path):
                raise NotFoundError(f"{path}: no such file")
        self._tail = EventTail(paths, most) if grows else None
        self._paths = paths
        self._align = align
        self._lock = threading.Lock()
        # Versions of another instance with the same numbers had other events.
        self._name = secrets.token_hex(4)
        self._version = 0
        self._view_data: ViewData | None = None
        # Number of lines in it: more may have been read when an error occurred.
        self._lines = 0
        self._look_again_s = 0.0
        self._failed: SwatheError | None = None
        self._steps: deque[bytes | memoryview] = deque(maxlen=STEPS)
        # Those of the jobs that were asked for last, the last one at the end.
        self._jobs: dict[tuple[str, bool], JobData] = {}

    def data(self, last_version: str) -> tuple[str, Parts | None]:
        """Return the version, and the data changed since `last_version`, or all; `None` if none is.

        For some time after a slow look the previous version, or the same error, is returned.

        Raises:
            SwatheError: If a file cannot be read.
        """
        with self._lock:
            began_s = monotonic()
            if began_s >= self._look_again_s:
                self._failed = None
                try:
                    self._look()
                except SwatheError as error:
                    self._failed = error
                ended_s = monotonic()
                self._look_again_s = ended_s + REST * (ended_s - began_s)
            if self._failed is not None:
                raise self._failed.with_traceback(None)
            assert self._view_data is not None
            name, _, number = last_version.partition("-")
            is_current = name == self._name and number.isdecimal() and int(number) <= self._version
            behind = self._version - int(number) if is_current else len(self._steps) + 1
            version = f"{self._name}-{self._version}"
            if not behind:
                return version, None
            if behind > len(self._steps):
                return version, self._view_data.content()
            return version, list(self._steps)[-behind:]

    def job_data(
        self, job: str, last_version: str, *, has_reasons: bool
    ) -> tuple[str, Parts | None]:
        """Return the version and all data of one job; `None` if `last_version` had them.

        For some time after a slow look the previous version is returned.

        Args:
            job: its name, as events have it.
            last_version: the version that was received before.
            has_reasons: whether to keep the texts of errors; they may have paths of machines.

        Raises:
            SwatheError: If a file cannot be read.
        """
        key = job, has_reasons
        with self._lock:
            data = self._jobs.pop(key, None)
            if data is None or monotonic() >= data.look_again_s:
                data = self._look_at_job(data, job, has_reasons=has_reasons)
            self._jobs[key] = data
            while len(self._jobs) > JOBS:
                self._jobs.pop(next(iter(self._jobs)))
        return data.version, None if data.version == last_version else data.parts

    def _look_at_job(self, last: JobData | None, job: str, *, has_reasons: bool) -> JobData:
        began_s = monotonic()
        if self._tail is not None:
            self._tail.read_on()
        own = is_of_job(self._events(), job)
        # The place of the first one changes when older events are dropped.
        first = np.argmax(own) if own.size else 0
        version = f"{self._name}-{np.count_nonzero(own)}-{first}"
        if last is None or last.version != version:
            events = job_events(self.trace().events, job, has_reasons=has_reasons)
            left_out = self._tail is not None and self._tail.left_out
            parts = encode_view(TracedEvents(events), left_out=left_out).content()
        else:
            parts = last.parts
        ended_s = monotonic()
        return JobData(version, parts, ended_s + REST * (ended_s - began_s))

    def _look(self) -> None:
        tail = self._tail
        if tail is not None:
            tail.read_on()
        if self._view_data is None or (tail is not None and tail.lines > self._lines):
            self._pack()

    def trace(self) -> TracedEvents:
        """Return the events read so far."""
        events = self._events()
        return TracedEvents(on_one_clock(events) if self._align else events)

    def _events(self) -> Events:
        if self._tail is None:
            return read(self._paths)
        if self._tail.events is None:
            self._tail.read_on()
        return self._tail.events or _parse(b"")

    def _pack(self) -> None:
        left_out = self._tail is not None and self._tail.left_out
        data = encode_view(self.trace(), left_out=left_out)
        most = data.arrays.length
        # A copy: views would keep the arrays of their version in memory.
        step = b"" if self._view_data is None else b"".join(data.since(self._view_data))
        if self._view_data is None or 2 * len(step) > most:
            self._steps.clear()
        else:
            self._steps.append(step)
        while sum(map(len, self._steps)) > most:
            self._steps.popleft()
        self._view_data = data
        self._version += 1
        self._lines = self._tail.lines if self._tail is not None else 0
