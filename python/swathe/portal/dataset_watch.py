"""Datasets that the portal keeps up to date: it catalogues what arrives."""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from watchfiles import watch
from watchfiles._rust_notify import WatchfilesRustInternalError

from swathe.core.errors import SourceError
from swathe.core.value_errors import short_text
from swathe.datasets.named_datasets import CHANGING, update
from swathe.workers.restarting_thread import RestartingThread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from swathe.catalog import Catalog, Dataset
    from swathe.portal.config import DatasetSettings

log = logging.getLogger(__name__)

QUIET_S = 2.0
"""Seconds for which a file must not change before it counts as complete."""
LOOK_S = 0.5
"""Seconds between looks at files that are being written, and at the clock."""
STEP_S = 0.1
"""Seconds for which changes that come one after another are collected."""
MOST_FAULTS = 5
"""Objects with errors that are logged after an update; `swathe dataset show` has all."""


class DatasetWatch:
    """A thread for each watched dataset."""

    def __init__(self, catalog: Catalog, settings: DatasetSettings) -> None:
        """Take the catalogue, and which datasets are watched."""
        self._catalog, self._every_s = catalog, settings.every_s
        self._ending = threading.Event()
        self._threads = [
            RestartingThread(f"swathe-watch-{name}", partial(self._follow, name), self._ending)
            for name in settings.watch
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, name: str) -> None:
        """Update a dataset until the end.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
            SwatheError: If its store cannot be listed, or the catalogue not be written.
        """
        earlier: set[str] = set()
        for paths in self._occasions(self._catalog.dataset(name)):
            report = update(self._catalog, self._catalog.dataset(name), changing=paths)
            if report.read or report.vanished or report.returned:
                log.info("dataset %s: %d read, %d vanished", name, report.read, report.vanished)
            faults = {each.path: each.reason for each in report.faults if each.reason != CHANGING}
            for path in [path for path in faults if path not in earlier][:MOST_FAULTS]:
                # Names and reasons are those of files, which anybody may have written.
                log.warning("dataset %s: %s: %s", name, *map(short_text, (path, faults[path])))
            earlier = set(faults)

    def _occasions(self, dataset: Dataset) -> Iterator[Collection[str]]:
        """Yield when the dataset is to be updated: soon, then after changes, and at the interval.

        What is yielded are the objects that are still being written.
        """
        place = self._catalog.store(dataset.store).kind.local_path
        if place is not None:
            folder = place / dataset.prefix
            if not folder.is_dir():
                raise SourceError(
                    f"dataset {dataset.name}: {folder}: expected a folder, found none"
                )
            try:
                for paths in self._changes(folder):
                    yield [Path(each).relative_to(place).as_posix() for each in paths]
            except OSError as error:  # such as too many folders for the system's limit
                text = "dataset %s: %s: cannot be watched, listed every %g s instead: %s"
                log.warning(text, dataset.name, folder, self._every_s, error)
        while not self._ending.is_set():
            yield ()
            self._ending.wait(self._every_s)

    def _changes(self, folder: Path) -> Iterator[Collection[str]]:
        """Yield when files are complete or gone, and at the interval: those still being written.

        Raises:
            OSError: If the system does not tell changes of the folder.
        """
        files, due = _ChangingFiles(), 0.0
        for paths in self._changed_paths(folder):
            is_news = files.look(paths)
            if self._ending.is_set():
                return
            if is_news or time.monotonic() >= due:
                yield files.paths
                due = time.monotonic() + self._every_s

    def _changed_paths(self, folder: Path) -> Iterator[Sequence[str]]:
        """Yield what has changed, often nothing, until the end.

        Raises:
            OSError: If the system does not tell changes of the folder.
        """
        problem = ""
        while not self._ending.is_set():
            try:
                # What changes during an update is reported after it.
                for changes in watch(
                    folder,
                    watch_filter=None,
                    step=round(STEP_S * 1000),
                    rust_timeout=round(LOOK_S * 1000),
                    yield_on_timeout=True,
                    stop_event=self._ending,
                    raise_interrupt=False,
                ):
                    yield [path for _, path in changes]
            except WatchfilesRustInternalError as error:  # such as a name that is not UTF-8
                if str(error) != problem:
                    text = "%s: some changes are seen after %g s only: %s"
                    log.warning(text, folder, self._every_s, short_text(str(error)))
                problem = str(error)
                self._ending.wait(LOOK_S)
                yield []


class _ChangingFiles:
    """Files that have changed lately."""

    def __init__(self) -> None:
        """Begin without any."""
        # The state of each, and since when it has that.
        self._states: dict[str, tuple[tuple[int, int], float]] = {}

    @property
    def paths(self) -> Collection[str]:
        """Return those that are still being written."""
        return self._states.keys()

    def look(self, others: Iterable[str]) -> bool:
        """Look at all, and at others that have changed; return whether any is complete or gone."""
        now, is_news = time.monotonic(), False
        for path in {*self._states, *others}:
            state = _state_of(path)
            before, since = self._states.get(path, (None, now))
            if state is None or (state == before and now - since >= QUIET_S):
                self._states.pop(path, None)
                is_news = True
            elif state != before:
                self._states[path] = state, now
        return is_news


def _state_of(path: str) -> tuple[int, int] | None:
    """Return size and time of a file; `None` if there is none, or something else."""
    with suppress(OSError):
        if os.path.isfile(path):
            status = os.stat(path)
            return status.st_size, status.st_mtime_ns
    return None
