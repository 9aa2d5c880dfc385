"""Progress of a repair or rebalance, in the catalogue for other processes to see."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Self, TypeAlias

from swathe.core.errors import SwatheError

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog.records.stripes import WorkKind

Progress: TypeAlias = tuple[int, int, int | None]
"""Objects that are done, those of them that failed, and bytes written, if that is known."""
INTERVAL_S = 10.0
"""Time from one record to the next; each makes other processes read the catalogue again."""


class ProgressRecord:
    """The record of work in the catalogue, written every 10 s within `with`.

    If the block raises, the work counts as stopped. If the catalogue cannot be written, the work
    goes on.

    Attributes:
        notes: why the catalogue could not be written; empty if it could, else the last reason.
    """

    def __init__(
        self, store: str, kind: WorkKind, place: str, objects: int, progress: Callable[[], Progress]
    ) -> None:
        """Prepare the record.

        Args:
            store: name of the striped store.
            kind: `repair` or `rebalance`.
            place: the store, or a folder of it.
            objects: number of objects.
            progress: function that returns the progress now.
        """
        from swathe.catalog import Catalog

        self.notes: list[str] = []
        self._catalog = Catalog.open()
        self._store, self._kind, self._place, self._objects = store, kind, place, objects
        self._progress = progress
        self._number: int | None = None
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
            self._store, self._kind, self._place, os.getpid(), self._objects
        )

    def _tell(self, *, is_stopped: bool = False) -> None:
        assert self._number is not None
        self._catalog.tell_stripe_work(self._number, *self._progress(), is_stopped=is_stopped)

    def _stop(self) -> None:
        self._tell(is_stopped=True)

    def _remove(self) -> None:
        assert self._number is not None
        self._catalog.end_stripe_work(self._number)
