"""Where a run writes: its record in the catalogue, its groups in stores, and its threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog import Catalog
from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord, RunState
from swathe.core.errors import CatalogError, OptionError, OutputError
from swathe.core.zarr_names import NODE
from swathe.runs.object_writer import Content, ObjectWriter, write_object
from swathe.runs.placement import Placement, StoreRoom, place
from swathe.runs.run_settings import ArraySettings, RunSettings
from swathe.runs.store_rooms import store_rooms
from swathe.runs.zarr_group import ZarrGroup
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe.runs.rank_group import RankGroup

FOLDER = "runs"
"""Folder of a store that has the runs."""


@dataclass
class Dump:
    """An array at one iteration that is being written.

    Attributes:
        iteration, slot: which one, and its place along the first axis of the stored array.
        store: name of the store.
        began_s: when writing began (`time.perf_counter`).
        objects: futures of this rank's objects: when each was durable; `None` as long as not all
            of them wait to be written.
    """

    iteration: int
    slot: int
    store: str
    began_s: float
    objects: list[Future[float]] | None = None

    @property
    def is_pending(self) -> bool:
        """Check whether the threads have objects of this rank that are not durable."""
        return self.objects is not None and not all(each.done() for each in self.objects)

    def wait(self) -> float:
        """Wait for the objects of this rank; return the seconds until all were durable.

        Raises:
            OutputError, AccessError, SourceError: The first error of a write.
        """
        if self.objects is None:
            raise OutputError(f"iteration {self.iteration}: its writing was interrupted")
        return max((each.result() - self.began_s for each in self.objects), default=0.0)


def group_folder(run: RunRecord, store: str) -> str:
    """Return the folder of a run in a store, `STORE:runs/NAME-NUMBER-xxxxxx.zarr`.

    Raises:
        CatalogError: If the catalogue has no name of a folder.
    """
    if "/" in run.folder or run.folder.startswith("."):
        raise CatalogError(f"run {run.label}: expected the name of a folder, found {run.folder!r}")
    return f"{store}:{FOLDER}/{run.folder}"


class RunStorage:
    """Where a run writes. Rank 0 has the catalogue, and writes metadata for all.

    Attributes:
        group: the processes that share each array.
        record: the run in the catalogue.
    """

    def __init__(self, settings: RunSettings, group: RankGroup, default: str | None) -> None:
        """Begin a run: it gets a number in the catalogue.

        Args:
            settings: name and iterations of the run.
            group: the processes that share each array.
            default: store of arrays without a location.

        Raises:
            CatalogError: If the catalogue cannot be written.
        """
        self.group, self._default = group, default
        self._groups: dict[str, ZarrGroup] = {}
        # Dumps still to come, and the bytes of one, of each array in each store.
        self._reserve: dict[tuple[int, str], tuple[int, int]] = {}
        self._is_ended = False
        self._open = ExitStack()
        self._writer = self._open.enter_context(ObjectWriter())
        self._catalog: Catalog | None = None
        with group.step("begin") as answer:
            if group.rank == 0:
                self._catalog = self._open.enter_context(Catalog.open())
                answer.value = self._catalog.begin_run(
                    settings.name, settings.iterations, group.size
                )
        self.record: RunRecord = answer.values[0]

    def add(self, name: str, array: ArraySettings) -> tuple[RunArrayRecord, Sequence[Placement]]:
        """Add an array, choose its stores, and write its metadata there.

        Raises:
            NoSuchStoreError: If a location is no store that can be written to.
            OptionError: If there is no store for a hint, or the run has such an array.
            LimitError: If its stores have too little room.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        with self.group.step() as answer:
            if self._catalog is not None:
                answer.value = self._place(self._catalog, name, array)
        record, placements = answer.values[0]
        with self.group.step():
            for placement in placements:
                if placement.store not in self._groups:
                    group = ZarrGroup(self.record.label, self.record.iterations)
                    self._groups[placement.store] = group
                self._put(placement.store, self._groups[placement.store].add(name, array))
                if self.group.rank == 0:
                    # That what is written can be read: links may lead out of a store.
                    native_stores().open(f"{group_folder(self.record, placement.store)}/{NODE}")
        return record, placements

    def check_open(self) -> None:
        """Check that the run has not ended.

        Raises:
            OptionError: If it has.
        """
        if self._is_ended:
            raise OptionError(f"{self.record.label}: the run has ended")

    def write(self, objects: Iterable[tuple[str, Content]]) -> list[Future[float]]:
        """Write objects by threads; return futures of the times when they were durable."""
        return self._writer.write(objects)

    def forget(self, array: RunArrayRecord, iteration: int) -> None:
        """Forget a dump, since its place is about to be written."""
        if self._catalog is not None:
            self._catalog.remove_dump(array.id, iteration)

    def keep(self, array: RunArrayRecord, dump: Dump, size: int, seconds: float) -> None:
        """Record that a dump is durable; `size` and `seconds` are those over all ranks."""
        if self._catalog is None:
            return
        now = datetime.now(UTC)
        record = DumpRecord(dump.iteration, dump.slot, dump.store, size, seconds, now)
        self._catalog.put_dump(array.id, record)
        dumps, dump_bytes = self._reserve[array.id, dump.store]
        self._reserve[array.id, dump.store] = max(dumps - 1, 0), dump_bytes

    def tell_iterations(self, name: str, store: str, iterations: Sequence[int | None]) -> None:
        """Write the iterations that the places of an array of mode `overwrite` have now."""
        self._put(store, self._groups[store].set_iterations(name, iterations))

    def end(self, state: RunState) -> None:
        """Wait for the threads, and record the end of the run."""
        self._is_ended = True
        self._open.callback(self.group.close)
        with self._open:
            self._writer.close()
            if self._catalog is not None:
                self._catalog.end_run(self.record.id, state)

    def _place(
        self, catalog: Catalog, name: str, array: ArraySettings
    ) -> tuple[RunArrayRecord, Sequence[Placement]]:
        iterations = self.record.iterations
        rooms = [self._without_reserve(room) for room in store_rooms(catalog)]
        placements = place({name: array}, iterations, rooms, self._default)[name]
        stores = [each.store for each in placements]
        record = catalog.add_run_array(self.record.id, name, asdict(array), stores)
        for each in placements:
            dumps = min(each.dumps, array.stored_dumps(iterations))
            self._reserve[record.id, each.store] = dumps, array.dump_bytes
        return record, placements

    def _without_reserve(self, room: StoreRoom) -> StoreRoom:
        """Return a store without the room for the dumps of other arrays that are still to come."""
        of_store = [each for (_, store), each in self._reserve.items() if store == room.name]
        reserve_bytes = sum(dumps * dump_bytes for dumps, dump_bytes in of_store)
        left = None if room.room_bytes is None else max(room.room_bytes - reserve_bytes, 0)
        return replace(room, room_bytes=left)

    def _put(self, store: str, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write metadata. All ranks keep the group, one writes it."""
        folder = group_folder(self.record, store)
        for path, content in objects:
            if self.group.rank == 0:
                write_object(f"{folder}/{path}", [content])
