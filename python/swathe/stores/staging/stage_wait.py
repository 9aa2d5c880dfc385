"""Wait for objects of a store: look at them, renew their pins, and know when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from swathe.catalog.records.staging import IN_PROGRESS, StageFile
from swathe.core.errors import StagingError
from swathe.core.format import seconds_text
from swathe.stores.staging.http_service import pause_s

if TYPE_CHECKING:
    from swathe.stores.staging.store_staging import StoreStaging

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 120.0
PATIENCE_S = 24 * 3600.0
"""Seconds that an object may be read from tape without any progress, time in the queue aside."""
FAILURES_S = 600.0
"""Seconds that a service may fail while objects are waited for."""


class StageWait:
    """Waiting for objects, which are pinned. Time in the queue has no limit without patience.

    Attributes:
        pending: paths of objects that are still to come.
    """

    def __init__(
        self,
        staging: StoreStaging,
        paths: Sequence[str],
        *,
        patience_s: float | None = None,
        report: Callable[[list[StageFile]], object] | None = None,
    ) -> None:
        """Set up; nothing is asked yet.

        Args:
            staging: staging of the store.
            paths: the objects.
            patience_s: seconds without any progress after which to give up; the request stays.
            report: function that is called after each look, with the objects.
        """
        self.pending = set(paths)
        self._staging, self._paths = staging, list(paths)
        self._patience_s, self._report = patience_s, report
        self._rng, self._looks = random.Random(), 0
        self._last_change: object = None
        self._fails_since_s: float | None = None
        self._renewed_at_s = self._changed_at_s = time.monotonic()

    def look(self) -> tuple[set[str], dict[str, str]]:
        """Ask the service; return what is on disk since the last look, and why others failed.

        Raises:
            StagingError: If there is no progress for long, or the service fails for long.
        """
        names = set(self._paths)
        try:
            files = [file for file in self._staging.refresh() if file.path in names]
            self._fails_since_s = None
        except StagingError:
            self._fails_since_s = self._fails_since_s or time.monotonic()
            if time.monotonic() - self._fails_since_s > FAILURES_S:
                raise
            files = self._staging.last_files(self._paths)
        if self._report is not None:
            self._report(files)
        still = [file for file in files if file.state in IN_PROGRESS]
        news = self.pending.difference(file.path for file in still)
        faults = _failures(files, news)
        self.pending -= news
        if still:
            self._check_progress(files, still)
        return news.difference(faults), faults

    def pause_s(self) -> float:
        """Return the seconds until the next look: they grow while nothing changes."""
        self._looks += 1
        return pause_s(self._looks - 1, self._rng, FIRST_PAUSE_S, LONGEST_PAUSE_S)

    def _check_progress(self, files: Sequence[StageFile], pending: Sequence[StageFile]) -> None:
        now_s = time.monotonic()
        change = [(file.path, file.state, file.place) for file in files]
        if change != self._last_change:
            self._last_change, self._changed_at_s, self._looks = change, now_s, 0
        name, idle_s = self._staging.store.name, now_s - self._changed_at_s
        _check_patience(name, pending, idle_s, self._patience_s)
        if now_s - self._renewed_at_s > self._staging.lifetime_s / 3:
            self._staging.renew(self._paths)
            self._renewed_at_s = now_s


def wait_for_objects(
    staging: StoreStaging,
    paths: Sequence[str],
    *,
    patience_s: float | None = None,
    report: Callable[[list[StageFile]], object] | None = None,
) -> dict[str, str]:
    """Wait until objects are on disk or have failed; return why some have. Arguments: `StageWait`.

    Raises:
        StagingError: If there is no progress for long, or the service fails for long.
    """
    waiting = StageWait(staging, paths, patience_s=patience_s, report=report)
    _, failures = waiting.look()
    while waiting.pending:
        time.sleep(waiting.pause_s())
        failures |= waiting.look()[1]
    return failures


def _failures(files: Sequence[StageFile], names: set[str]) -> dict[str, str]:
    of_names = {file.path: file for file in files if file.path in names}
    faults = {
        path: file.reason or f"it is {file.state}"
        for path, file in of_names.items()
        if file.state != "disk"
    }
    return faults | dict.fromkeys(names.difference(of_names), "it was not asked for")


def _check_patience(
    store: str, pending: Sequence[StageFile], idle_s: float, patience_s: float | None
) -> None:
    """Check how long nothing has changed.

    Raises:
        StagingError: If an object is read for long, or `patience_s` is over.
    """
    active = [file for file in pending if file.state == "active"]
    late = pending if patience_s is not None else active
    if late and idle_s > (PATIENCE_S if patience_s is None else patience_s):
        reasons = f" ({late[0].reason})" if late[0].reason else ""
        raise StagingError(
            f"{store}:{late[0].path}: expected progress of staging within {seconds_text(idle_s)}, "
            f"found none of {len(late)} objects{reasons}; the request stays: see swathe tape status"
        )
