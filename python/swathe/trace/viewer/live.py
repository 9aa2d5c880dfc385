"""Events of files that grow: what is new is read, what was read is kept."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from swathe.core.errors import NotFoundError, OutputError, SwatheError
from swathe.trace import Coded, Damaged, Events, read
from swathe.trace.analysis.align_clocks import on_one_clock
from swathe.trace.viewer.encode import Packed, Parts, packed
from swathe.trace.viewer.lifelines import Traced
from swathe.trace.viewer.tail import Growing

LINE_BYTES = 400
"""No shorter than most lines are: so much is read for each event that is kept."""
MOST_FOLLOWED = 2_000_000
"""Events that are kept of what grows without end."""
DROPPED = 10
"""Such a part of them is dropped where there are more."""
STEPS = 32
"""From one version to the next, that are kept for who has not seen the last ones: so many, and no
more bytes of them than all that is shown has."""
REST = 3
"""So many times as long as a look took nobody looks again, whoever asks: what is new may belong to
any of the lines, so all are found anew (0.3 s for a million events)."""
TOLD = 100
"""So many damaged lines are told one by one."""


class Tail:
    """The events of files, read on whenever it is asked whether there are more."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]], most: int | None = None) -> None:
        """Take the files; one that is not there yet may come.

        Args:
            paths: of the files.
            most: how many events are kept at most: the newest.
        """
        self._most = most
        self._files = Growing(paths, None if most is None else most * LINE_BYTES)
        self._dropped = False
        self.lines = 0
        self.events: Events | None = None

    @property
    def left_out(self) -> bool:
        """Whether there were more events than are kept."""
        return self._dropped or self._files.left_out

    def read_on(self) -> bool:
        """Read what was added; tell whether that was anything.

        Raises:
            SourceError: where a file cannot be read.
            OutputError: where what was added cannot be laid down to be read; it comes again.
        """
        before = self.lines
        self._files.read_on(self._add)
        return self.lines > before

    def _add(self, lines: bytes) -> None:
        fresh = _parsed(lines)
        events, most = fresh, self._most
        if self.events is not None:
            moved = tuple(Damaged(each.line + self.lines, each.reason) for each in fresh.damaged)
            events = joined(self.events, fresh, moved)
        if most is not None and len(events.time_ns) > most:
            # Many at a time: all that is kept is another place then.
            events = _newest(events, most - most // DROPPED)
            self._dropped = True
        self.events = events
        self.lines += lines.count(b"\n")


def _newest(events: Events, most: int) -> Events:
    return replace(
        events,
        time_ns=events.time_ns[-most:],
        event=_used(events.event, most),
        fields={
            name: _used(column, most) if isinstance(column, Coded) else column[-most:]
            for name, column in events.fields.items()
        },
    )


def _used(column: Coded, most: int) -> Coded:
    """Give the end of a column, with the words that are left in it."""
    codes = column.codes[-most:]
    there = np.zeros(len(column.words) + 1, bool)
    there[codes] = True
    moved = np.cumsum(there[:-1], dtype=np.int32) - 1
    words = tuple(word for word, kept in zip(column.words, there, strict=False) if kept)
    return Coded(np.where(codes < 0, np.int32(-1), np.append(moved, np.int32(-1))[codes]), words)


def _parsed(lines: bytes) -> Events:
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


def joined(before: Events, after: Events, damaged: tuple[Damaged, ...] = ()) -> Events:
    """Give the events of both, in order of their times."""
    times = np.concatenate([before.time_ns, after.time_ns])
    order = np.argsort(times, kind="stable")
    sizes = (len(before.time_ns), len(after.time_ns))
    fields: dict[str, Coded | NDArray[np.float64]] = {}
    for name in dict.fromkeys([*before.fields, *after.fields]):
        column = _column(before.fields.get(name), after.fields.get(name), sizes)
        if isinstance(column, Coded):
            fields[name] = Coded(column.codes[order], column.words)
        else:
            fields[name] = column[order]
    event = _words(before.event, after.event)
    return Events(
        times[order],
        Coded(event.codes[order], event.words),
        fields,
        (before.damaged + damaged)[:TOLD],
        before.damaged_count + after.damaged_count,
    )


def _column(
    before: Coded | NDArray[np.float64] | None,
    after: Coded | NDArray[np.float64] | None,
    sizes: tuple[int, int],
) -> Coded | NDArray[np.float64]:
    coded = isinstance(before, Coded) or isinstance(after, Coded)
    first, last = (
        _filled(column, size, coded) for column, size in zip((before, after), sizes, strict=True)
    )
    if isinstance(first, Coded) and isinstance(last, Coded):
        return _words(first, last)
    assert not isinstance(first, Coded) and not isinstance(last, Coded)
    return np.concatenate([first, last])


def _filled(
    column: Coded | NDArray[np.float64] | None, size: int, coded: bool
) -> Coded | NDArray[np.float64]:
    """Give a column of this kind: of nothing where there is none, numbers as words if need be."""
    if column is None:
        return Coded(np.full(size, -1, np.int32), ()) if coded else np.full(size, np.nan)
    if coded and not isinstance(column, Coded):
        there = ~np.isnan(column)
        values, inverse = np.unique(column[there], return_inverse=True)
        codes = np.full(size, -1, np.int32)
        codes[there] = inverse
        return Coded(codes, tuple(f"{value:.17g}" for value in values))
    return column


def _words(before: Coded, after: Coded) -> Coded:
    known = {word: code for code, word in enumerate(before.words)}
    for word in after.words:
        known.setdefault(word, len(known))
    # One more, of none.
    moved = np.array([*(known[word] for word in after.words), -1], np.int32)
    return Coded(np.concatenate([before.codes, moved[after.codes]]), tuple(known))


class Shown:
    """What a page shows: packed anew when there is more, and sent as what is new."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        align: bool = True,
        grows: bool = True,
        most: int = MOST_FOLLOWED,
    ) -> None:
        """Take the files.

        Args:
            paths: of the files.
            align: the times to the clock of a collector.
            grows: look for more each time.
            most: of files that grow, events that are kept.

        Raises:
            NotFoundError: where a file that does not grow is not there.
        """
        for path in () if grows else paths:
            if not os.path.exists(path):
                raise NotFoundError(f"{path}: there is no such file")
        self._tail = Tail(paths, most) if grows else None
        self._paths = paths
        self._align = align
        self._lock = threading.Lock()
        # What was seen of another one, with the same numbers, was of other events.
        self._name = secrets.token_hex(4)
        self._version = 0
        self._packed: Packed | None = None
        # So many lines are in it: more may have been read when something failed.
        self._lines = 0
        self._look_again_s = 0.0
        self._failed: SwatheError | None = None
        self._steps: deque[bytes | memoryview] = deque(maxlen=STEPS)

    def data(self, seen: str) -> tuple[str, Parts | None]:
        """Give the version, and what leads to it from the one seen, or all; nothing if it is that.

        After a look that took long it is that of before for a while, or the same error.

        Raises:
            SwatheError: where a file cannot be read.
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
            assert self._packed is not None
            name, _, number = seen.partition("-")
            known = name == self._name and number.isdecimal() and int(number) <= self._version
            behind = self._version - int(number) if known else len(self._steps) + 1
            version = f"{self._name}-{self._version}"
            if not behind:
                return version, None
            if behind > len(self._steps):
                return version, self._packed.whole()
            return version, list(self._steps)[-behind:]

    def _look(self) -> None:
        tail = self._tail
        if tail is not None:
            tail.read_on()
        if self._packed is None or (tail is not None and tail.lines > self._lines):
            self._pack()

    def traced(self) -> Traced:
        """Give the events as they are read now."""
        if self._tail is None:
            events = read(self._paths)
        else:
            if self._tail.events is None:
                self._tail.read_on()
            events = self._tail.events or _parsed(b"")
        return Traced(on_one_clock(events) if self._align else events)

    def _pack(self) -> None:
        left_out = self._tail is not None and self._tail.left_out
        made = packed(self.traced(), left_out=left_out)
        most = made.arrays.length
        # A copy, as parts would keep the arrays of their version.
        step = b"" if self._packed is None else b"".join(made.since(self._packed))
        if self._packed is None or 2 * len(step) > most:
            self._steps.clear()
        else:
            self._steps.append(step)
        while sum(map(len, self._steps)) > most:
            self._steps.popleft()
        self._packed = made
        self._version += 1
        self._lines = self._tail.lines if self._tail is not None else 0
