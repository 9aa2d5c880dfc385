"""Keep objects on disk while they are read: stage, pin, renew, and release however it ends."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from secrets import token_hex
from types import TracebackType
from typing import TYPE_CHECKING, Self

from swathe.core.errors import SwatheError
from swathe.core.format import count_text
from swathe.stores.registry import caches_of, native_stores, tape_objects
from swathe.stores.staging.on_disk import note_on_disk, uncached_sources
from swathe.stores.staging.stage_wait import StageWait
from swathe.stores.staging.store_staging import StoreStaging

if TYPE_CHECKING:
    from swathe.catalog.records.staging import StageFile
    from swathe.stores.registry import TapeObject

log = logging.getLogger(__name__)
LIFETIME_S = 2 * 3600.0


class TapeHold:
    """Objects that are kept on disk until the end of a `with`.

    Attributes:
        faults: why some objects cannot be had, by name.
        wait_s: seconds that objects were waited for.
    """

    def __init__(
        self,
        lifetime_s: float = LIFETIME_S,
        *,
        patience_s: float | None = None,
        report: Callable[[list[StageFile]], object] | None = None,
    ) -> None:
        """Set up; nothing is asked for yet.

        Args:
            lifetime_s: seconds that objects stay on disk if this process is killed. They are
                renewed before.
            patience_s: seconds without any progress after which to give up.
            report: function that is called after each look, with the objects of a store.
        """
        self._lifetime_s, self._patience_s, self._report = lifetime_s, patience_s, report
        self._owner = f"reader-{token_hex(8)}"
        self._stack = ExitStack()
        self._stores: dict[str, StoreStaging] = {}
        self._paths: dict[str, set[str]] = defaultdict(set)
        self._near: set[str] = set()
        self._names: dict[str, set[str]] = defaultdict(set)
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._keeper: threading.Thread | None = None
        self.faults: dict[str, str] = {}
        self.wait_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the objects. A service that cannot be told is a warning: pins end by time."""
        # First, so that nothing is renewed that is released.
        self._end.set()
        if self._keeper is not None:
            self._keeper.join()
        self._stack.__exit__(kind, error, traceback)
        if self._near:
            from swathe.catalog import Catalog

            with Catalog.open() as catalog:
                catalog.release_near_objects(self._owner)

    def from_tape(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of some objects `arrivals` would ask for or pin; no service is asked."""
        all_names = list(dict.fromkeys(names))
        caches = caches_of(all_names)
        in_caches = {name for name in all_names if name.partition(":")[0] in caches}
        return frozenset(in_caches.union(tape_objects(all_names)))

    def bring(self, names: Iterable[str]) -> None:
        """Wait until objects are on disk, and keep them there, as `arrivals`.

        Raises:
            StagingError: If a staging service fails for long, or nothing happens for long.
        """
        for _ in self.arrivals(names):
            pass

    def arrivals(self, names: Iterable[str]) -> Iterator[frozenset[str]]:
        """Ask for objects, and keep them on disk; yield those that have come, until all have.

        Those that are on disk come first. What comes while the caller is at work is yielded
        together. Objects that cannot be had are yielded, too, and are in `faults`.

        Args:
            names: objects; those that are not in a store whose objects are staged come at once.
                Those of a cache of such a store are fetched, and pinned there instead.

        Raises:
            StagingError: If a staging service fails for long, or nothing happens for long.
        """
        begin_s, is_told = time.monotonic(), False
        left = dict.fromkeys(names)
        sources = uncached_sources(list(left))
        objects = tape_objects([*left, *sources])
        of_cache = {name: source for source, name in sources.items()}
        places = {name: objects.get(of_cache.get(name, name)) for name in left}
        waits = self._ask(objects)
        while True:
            for store, wait in waits.items():
                self._note(store, wait.look()[1])
            pending = {f"{store}:{path}" for store, wait in waits.items() for path in wait.pending}
            news = [name for name in left if (at := places[name]) is None or at.name not in pending]
            for name in news:
                del left[name]
            self._keep(news, of_cache, places)
            self.wait_s += time.monotonic() - begin_s
            if news:
                yield frozenset(news)
            if not left:
                return
            if news or not is_told:
                log.info("%s to come from tape", count_text(len(left), "object"))
                is_told = True
            begin_s = time.monotonic()
            time.sleep(min(wait.pause_s() for wait in waits.values() if wait.pending))

    def _ask(self, objects: Mapping[str, TapeObject]) -> dict[str, StageWait]:
        """Ask for objects that were not asked for before; return what waits for them, by store."""
        by_store: dict[str, list[str]] = defaultdict(list)
        for name, place in objects.items():
            self._names[place.name].add(name)
            if place.name in self.faults:
                self.faults[name] = self.faults[place.name]
            if place.path not in self._paths[place.store]:
                by_store[place.store].append(place.path)
        waits = {}
        for store, paths in by_store.items():
            with self._lock:
                self._paths[store].update(paths)
            staging = self._staging(store)
            self._note(store, staging.stage(paths))
            sound = [path for path in paths if f"{store}:{path}" not in self.faults]
            waits[store] = StageWait(
                staging, sound, patience_s=self._patience_s, report=self._report
            )
        return waits

    def _keep(
        self,
        names: Sequence[str],
        of_cache: Mapping[str, str],
        places: Mapping[str, TapeObject | None],
    ) -> None:
        """Pin copies of what has come in its cache, and release it at its source."""
        for name in names:
            if (fault := self.faults.get(of_cache.get(name, name))) is not None:
                self.faults[name] = fault
        sound = [name for name in names if name not in self.faults]
        note_on_disk(place.name for name in sound if (place := places[name]) is not None)
        self._keep_near(sound)
        near = {of_cache[name] for name in sound if name in self._near and name in of_cache}
        self.release(near.difference(places))

    def _keep_near(self, names: Sequence[str]) -> None:
        """Fetch objects of caches, which are on disk now, and pin those that there is room for."""
        for store in caches_of(names):
            of_store = [name for name in names if name.partition(":")[0] == store]
            for name in of_store:
                native_stores().open(name)
            self._pin_near(store, of_store)

    def _pin_near(self, store: str, names: Sequence[str]) -> None:
        from swathe.catalog import Catalog

        self._start()
        paths = [name.partition(":")[2] for name in names]
        with Catalog.open() as catalog:
            pins = catalog.pin_near_objects(store, paths, self._owner, self._lifetime_s)
        with self._lock:
            self._near.update(f"{store}:{path}" for path in pins)

    def release(self, names: Iterable[str]) -> None:
        """Release objects that came from tape before the end."""
        by_store: dict[str, list[str]] = defaultdict(list)
        for place in tape_objects(names).values():
            by_store[place.store].append(place.path)
        for store, paths in by_store.items():
            with self._lock:
                self._paths[store].difference_update(paths)
            self._release(store, self._stores[store], paths)

    def _start(self) -> None:
        """Renew pins from now on."""
        if self._keeper is None:
            keeper = threading.Thread(target=self._renew, name="swathe-tape-pins", daemon=True)
            keeper.start()
            self._keeper = keeper

    def _staging(self, name: str) -> StoreStaging:
        from swathe.catalog import Catalog

        if name not in self._stores:
            self._start()
            catalog = self._stack.enter_context(Catalog.open())
            staging = StoreStaging(catalog, catalog.store(name), self._owner, self._lifetime_s)
            self._stack.callback(staging.close)
            self._stack.callback(lambda: self._release(name, staging, sorted(self._paths[name])))
            with self._lock:
                self._stores[name] = staging
        return self._stores[name]

    def _note(self, store: str, faults: dict[str, str]) -> None:
        for path, reason in faults.items():
            name = f"{store}:{path}"
            self.faults |= dict.fromkeys({name, *self._names[name]}, reason)

    def _renew(self) -> None:
        """Renew pins until the end, three times in their life."""
        while not self._end.wait(self._lifetime_s / 3):
            with self._lock:
                holds = [(name, self._stores[name]) for name in self._stores]
                paths = {name: sorted(self._paths[name]) for name, _ in holds}
                near = sorted(self._near)
            for store in caches_of(near):
                try:
                    self._pin_near(store, [each for each in near if each.startswith(f"{store}:")])
                except SwatheError as error:
                    warnings.warn(f"{store}: pins could not be renewed: {error}", stacklevel=1)
            for name, staging in holds:
                try:
                    staging.renew(paths[name])
                except SwatheError as error:
                    warnings.warn(f"{name}: pins could not be renewed: {error}", stacklevel=1)

    def _release(self, name: str, staging: StoreStaging, paths: Sequence[str]) -> None:
        try:
            staging.release(paths)
        except SwatheError as error:
            warnings.warn(f"{name}: the staging service was not told: {error}", stacklevel=2)
