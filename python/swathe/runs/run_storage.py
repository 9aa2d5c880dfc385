"""Where a run writes: its record in the catalogue, its groups in stores, and its threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog import Catalog
from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord, RunState
from swathe.runs.collective import agreement
from swathe.runs.object_writer import Content, ObjectWriter, write_object
from swathe.runs.placement import Placement, place
from swathe.runs.run_settings import ArraySettings, RunSettings
from swathe.runs.store_rooms import store_rooms
from swathe.runs.zarr_group import SLOTS, ZarrGroup

if TYPE_CHECKING:
    from swathe.runs.ranks import Ranks

FOLDER = "runs"
"""Folder of a store that has the runs."""


@dataclass
class Dump:
    """An array at one iteration that is being written.

    Attributes:
        iteration, slot: which one, and its place along the first axis of the stored array.
        store: name of the store.
        began_s: when writing began (`time.perf_counter`).
        written: futures of this rank's objects: when each was durable.
    """

    iteration: int
    slot: int
    store: str
    began_s: float
    written: list[Future[float]] = field(default_factory=list)

    @property
    def is_written(self) -> bool:
        """Check whether no object of this rank is being written any more."""
        return all(each.done() for each in self.written)

    def wait(self) -> None:
        """Wait for the objects of this rank.

        Raises:
            OutputError, AccessError, SourceError: The first error of a write.
        """
        for each in self.written:
            each.result()

    @property
    def seconds(self) -> float:
        """Return the time until the last object of this rank was durable."""
        return max((each.result() - self.began_s for each in self.written), default=0.0)


def group_folder(run: RunRecord, store: str) -> str:
    """Return the folder of a run in a store, `STORE:runs/NAME-NUMBER.zarr`."""
    return f"{store}:{FOLDER}/{run.name}-{run.number}.zarr"


class RunStorage:
    """Where a run writes. Rank 0 has the catalogue, and writes metadata for all.

    Attributes:
        ranks: the processes that share each array.
        record: the run in the catalogue.
    """

    def __init__(self, settings: RunSettings, ranks: Ranks, default: str | None) -> None:
        """Begin a run: it gets a number in the catalogue.

        Args:
            settings: name and iterations of the run.
            ranks: the processes that share each array.
            default: store of arrays without a location.

        Raises:
            CatalogError: If the catalogue cannot be written.
        """
        self.ranks, self._default = ranks, default
        self._groups: dict[str, ZarrGroup] = {}
        self._reservations: dict[str, int] = {}
        self._open = ExitStack()
        self._writer = self._open.enter_context(ObjectWriter())
        self._catalog: Catalog | None = None
        with agreement(ranks) as answer:
            if ranks.rank == 0:
                self._catalog = self._open.enter_context(Catalog.open())
                answer.value = self._catalog.begin_run(
                    settings.name, settings.iterations, ranks.size
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
        with agreement(self.ranks) as answer:
            if self._catalog is not None:
                answer.value = self._place(self._catalog, name, array)
        record, placements = answer.values[0]
        with agreement(self.ranks):
            for placement in placements:
                if placement.store not in self._groups:
                    group = ZarrGroup(self.record.label, self.record.iterations)
                    self._groups[placement.store] = group
                self._put(placement.store, self._groups[placement.store].add(name, array))
        return record, placements

    def write(self, objects: Iterable[tuple[str, Content]]) -> list[Future[float]]:
        """Write objects by threads; return futures of the times when they were durable."""
        return self._writer.write(objects)

    def forget(self, array: RunArrayRecord, iteration: int) -> None:
        """Forget a dump, since its place is about to be written."""
        if self._catalog is not None:
            self._catalog.remove_dump(array.id, iteration)

    def keep(self, array: RunArrayRecord, dump: Dump, size: int) -> None:
        """Record that a dump is durable; `size`: its bytes, over all ranks."""
        if self._catalog is None:
            return
        now = datetime.now(UTC)
        record = DumpRecord(dump.iteration, dump.slot, dump.store, size, dump.seconds, now)
        self._catalog.put_dump(array.id, record)
        self._reservations[dump.store] = max(self._reservations.get(dump.store, 0) - size, 0)

    def tell_iterations(self, name: str, store: str, iterations: Sequence[int | None]) -> None:
        """Write of which iterations the places of an array of mode `overwrite` are."""
        group = self._groups[store]
        group.set_iterations(name, iterations)
        self._put(store, group.update(name))

    def end(self, state: RunState) -> None:
        """Wait for the threads, and record the end of the run."""
        with self._open:
            self._writer.close()
            if self._catalog is not None:
                self._catalog.end_run(self.record.id, state)

    def _place(
        self, catalog: Catalog, name: str, array: ArraySettings
    ) -> tuple[RunArrayRecord, Sequence[Placement]]:
        run = RunSettings("run", self.record.iterations, self.ranks.size, {name: array})
        rooms = [
            room
            if room.room_bytes is None
            else replace(room, room_bytes=room.room_bytes - self._reservations.get(room.name, 0))
            for room in store_rooms(catalog)
        ]
        placements = place(run, rooms, self._default)[name]
        record = catalog.add_run_array(self.record.id, name, asdict(array))
        for each in placements:
            dumps = SLOTS if array.mode == "overwrite" else each.dumps
            size = self._reservations.get(each.store, 0) + dumps * array.dump_bytes
            self._reservations[each.store] = size
        return record, placements

    def _put(self, store: str, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write metadata. All ranks keep the group, one writes it."""
        folder = group_folder(self.record, store)
        for path, content in objects:
            if self.ranks.rank == 0:
                write_object(f"{folder}/{path}", [content])
