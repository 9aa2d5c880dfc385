"""Where a run writes: its record in the catalogue, its groups in stores, and its threads."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from swathe.catalog import Catalog
from swathe.core.errors import OptionError
from swathe.runs.definition.run_settings import ArraySettings, RunSettings
from swathe.runs.storage.object_writer import ObjectWriter
from swathe.runs.writing.dump import Dump, PlacedArray
from swathe.runs.writing.dump_queue import DumpQueue
from swathe.runs.writing.run_head import RunHead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog.records.runs import RunRecord, RunState
    from swathe.runs.writing.rank_group import RankGroup


class RunStorage:
    """Where a run writes. Rank 0 has the catalogue, and writes metadata for all.

    Attributes:
        group: the processes that share each array.
        record: the run in the catalogue.
        queue: the dumps that are being written.
    """

    def __init__(self, settings: RunSettings, group: RankGroup, default: str | None) -> None:
        """Begin a run: it gets a number in the catalogue.

        Args:
            settings: name and iterations of the run, and arrays that are to come: the stores of
                those with the hint `auto` are chosen together.
            group: the processes that share each array.
            default: store of arrays without a location.

        Raises:
            CatalogError: If the catalogue cannot be written.
        """
        self.group = group
        self._is_ended = False
        self._open = ExitStack()
        self._writer = self._open.enter_context(ObjectWriter())
        self._catalog: Catalog | None = None
        self._head: RunHead | None = None
        with group.step("begin") as step:
            if group.rank == 0:
                self._catalog = self._open.enter_context(Catalog.open())
                step.value = self._catalog.begin_run(settings.name, settings.iterations, group.size)
        self.record: RunRecord = step.values[0]
        self._writer.label = self.record.label
        if self._catalog is not None:
            head = RunHead(self._catalog, self.record, self._writer, default, settings.arrays)
            self._head = head
        self.queue = DumpQueue(self.record, group, self._writer, self._head)

    def add(self, name: str, settings: ArraySettings) -> PlacedArray:
        """Add an array, choose its stores, and write its metadata there.

        Raises:
            NoSuchStoreError: If a store of `location`, `failover` or `via` cannot be written to.
            OptionError: If there is no store for a hint, or the run has such an array, or it cannot
                be written as its settings say.
            LimitError: If its stores have too little room.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        with self.group.step() as step:
            if self._head is not None:
                step.value = self._head.add(name, settings)
        record, placements, choice = step.values[0]
        last_number = settings.dumps(self.record.iterations) - 1
        array = PlacedArray(
            name, choice.array, record, list(placements), last_number, choice.writers
        )
        self.queue.arrays[name] = array
        return array

    def has_near_room(self, array: ArraySettings) -> bool:
        """Check on rank 0 whether a dump has room in the near store of its array."""
        if self._head is None or array.via is None:
            return False
        return self._head.has_room(array.via, 2 * array.dump_bytes)

    def check_open(self) -> None:
        """Check that the run has not ended.

        Raises:
            OptionError: If it has.
        """
        if self._is_ended:
            raise OptionError(f"{self.record.label}: the run has ended")

    def forget(self, dump: Dump, others: Sequence[Dump]) -> None:
        """Forget a dump, since its place is about to be written."""
        with self.group.step():
            if self._head is not None:
                self._head.forget(dump, others)

    def end(self, state: RunState) -> None:
        """Wait for the threads, and record the end of the run."""
        self._is_ended = True
        self._open.callback(self.group.close)
        with self._open:
            self._writer.close()
            if self._catalog is not None:
                self._catalog.end_run(self.record.id, state)
