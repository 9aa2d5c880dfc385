"""Progress of a repair or rebalance, in the catalogue for other processes to see."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Self

from swathe import _swathe
from swathe.core.errors import SwatheError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swathe.catalog.records.stripes import WorkKind

INTERVAL_S = 1.5
"""Time from one record to the next, while there is progress."""
IDLE_S = 10.0
"""The same without progress; each record makes other processes read the catalogue again."""

RATE_S = 60.0
"""Time of which the present rate is the mean."""


class Progress(NamedTuple):
    """How far work is.

    Attributes:
        done: number of objects that are done.
        failed: number of those that failed.
        written_bytes: bytes written to servers; `None` if that is not known.
        done_bytes: bytes of objects that are done, also those of objects in work.
    """

    done: int
    failed: int
    written_bytes: int | None
    done_bytes: int


class RepairBytes:
    """Bytes of the objects of a repair that are done, also of those in work."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._done_bytes = 0
        self._running: dict[str, tuple[int, _swathe.RepairProgress]] = {}

    def begin(self, name: str, size: int) -> _swathe.RepairProgress:
        """Add an object of a size in bytes, which is repaired now."""
        progress = _swathe.RepairProgress()
        with self._lock:
            self._running[name] = size, progress
        return progress

    def end(self, name: str) -> None:
        """Count an object as done."""
        with self._lock:
            self._done_bytes += self._running.pop(name, (0, None))[0]

    @property
    def done_bytes(self) -> int:
        """Return the bytes of objects that are done, with the same share of those in work."""
        with self._lock:
            shares = [(size, *progress.counts) for size, progress in self._running.values()]
            return self._done_bytes + sum(
                size * done // total for size, done, total in shares if total
            )

    @property
    def written_bytes(self) -> int:
        """Return the bytes written for the objects in work."""
        with self._lock:
            return sum(progress.written_bytes for _, progress in self._running.values())


class ProgressRecord:
    """The record of work in the catalogue, written within `with` every 1.5 s, if there is progress.

    Without progress it is written every 10 s, to show that the work goes on.

    If the block raises, the work counts as stopped. If the catalogue cannot be written, the work
    goes on.

    Attributes:
        notes: why the catalogue could not be written; empty if it could, else the last reason.
    """

    def __init__(
        self,
        store: str,
        kind: WorkKind,
        place: str,
        sizes: Sequence[int],
        progress: Callable[[], Progress],
    ) -> None:
        """Prepare the record.

        Args:
            store: name of the striped store.
            kind: `repair` or `rebalance`.
            place: the store, or a folder of it.
            sizes: size of each object in bytes; 0 if it is unknown.
            progress: function that returns the progress now.
        """
        from swathe.catalog import Catalog

        self.notes: list[str] = []
        self._catalog = Catalog.open()
        self._store, self._kind, self._place, self._sizes = store, kind, place, sizes
        self._past: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._progress = progress
        self._number: int | None = None
        self._last: Progress | None = None
        self._last_s = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="swathe-progress", daemon=True)

    def __enter__(self) -> Self:
        """Begin the record."""
        self._attempt(self._begin)
        if self._number is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the record, or mark the work as stopped if the block raised."""
        self._ending.set()
        if self._number is not None:
            self._thread.join()
            self._attempt(self._remove if kind is None else self._stop)
        self._catalog.close()

    def _run(self) -> None:
        while not self._ending.wait(INTERVAL_S):
            self._attempt(self._tell)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SwatheError as error:
            self.notes = [f"status could not always show its progress: {error}"]

    def _begin(self) -> None:
        self._number = self._catalog.begin_stripe_work(
            self._store,
            self._kind,
            self._place,
            os.getpid(),
            len(self._sizes),
            sum(self._sizes),
        )

    def _tell(self, *, is_stopped: bool = False) -> None:
        assert self._number is not None
        progress, now_s = self._progress(), time.monotonic()
        if not is_stopped and progress == self._last and now_s - self._last_s < IDLE_S:
            return
        self._catalog.tell_stripe_work(
            self._number,
            progress.done,
            progress.failed,
            progress.written_bytes,
            done_bytes=progress.done_bytes,
            bytes_per_s=self._rate(progress.done_bytes),
            is_stopped=is_stopped,
        )
        self._last, self._last_s = progress, now_s

    def _rate(self, done_bytes: int) -> float | None:
        """Return the rate of the last minute, in bytes per second; `None`: nothing was done."""
        now_s = time.monotonic()
        self._past.append((now_s, done_bytes))
        while len(self._past) > 2 and self._past[1][0] <= now_s - RATE_S:
            self._past.popleft()
        began_s, before_bytes = self._past[0]
        elapsed_s, more_bytes = now_s - began_s, done_bytes - before_bytes
        return more_bytes / elapsed_s if elapsed_s > 0 and more_bytes > 0 else None

    def _stop(self) -> None:
        self._tell(is_stopped=True)

    def _remove(self) -> None:
        assert self._number is not None
        self._catalog.end_stripe_work(self._number)
