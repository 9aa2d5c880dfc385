"""A dump that is being written, and an array with the stores that its dumps go to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from swathe.core.errors import AccessError, OutputError, SourceError
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.storage.zarr_group import shard_name

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunArrayRecord
    from swathe.runs.definition.run_settings import ArraySettings
    from swathe.runs.definition.shards import Place
    from swathe.runs.storage.object_writer import Content, ObjectWrite

STORE_FAULTS = (OutputError.__name__, AccessError.__name__, SourceError.__name__)
"""Errors for which a store is left: it is down, full, or lets nobody in."""
Objects = Callable[[], "Iterable[tuple[Place, Content]]"]
"""Function that yields the shards of a rank: places and contents."""


class Fault(NamedTuple):
    """Why a dump was not written.

    Attributes:
        kind: class of the error.
        reason: its text.
    """

    kind: str
    reason: str


class DumpState(NamedTuple):
    """What a rank knows of its objects of a dump.

    Attributes:
        seconds: from the begin until they were durable, without the time that dumps of an iteration
            before had the store; `None` as long as they are not.
        alone_s: seconds since the dump before it in the same store was durable, until now or until
            these were: the time that this dump had the store.
        fault: why they cannot be written.
    """

    seconds: float | None
    alone_s: float
    fault: Fault | None = None


@dataclass
class PlacedArray:
    """An array of a run, and where its dumps go. It is the same on all ranks.

    Attributes:
        name: its name.
        settings: its settings.
        record: the array in the catalogue.
        placements: stores of its dumps by their number; of those with a number the first counts.
        last_number: number of the last dump.
        writers: number of ranks that write, of a method that sends elements to them.
        durable: by number, the dumps that the catalogue has.
        former: numbers of dumps of mode `overwrite` whose place another one has.
        length: rows that are durable, of mode `append`.
    """

    name: str
    settings: ArraySettings
    record: RunArrayRecord
    placements: list[Placement]
    last_number: int
    writers: int
    durable: dict[int, Dump] = field(default_factory=dict)
    former: set[int] = field(default_factory=set)
    length: int = 0

    def store_of(self, number: int) -> str:
        """Return the store of a dump."""
        return store_of(self.placements, number)

    def numbers_in(self, store: str) -> list[int]:
        """Return the numbers of dumps that are to go to a store, and are not durable there."""
        if all(each.store != store for each in self.placements):
            return []
        return [
            number
            for number in range(self.last_number + 1)
            if self._is_to_come(number) and self.store_of(number) == store
        ]

    def _is_to_come(self, number: int) -> bool:
        """Check whether a dump is not durable, or is still to be moved on from its near store."""
        if number in self.former:
            return False
        dump = self.durable.get(number)
        if dump is None or dump.near is not None:
            return True
        return dump.store == self.settings.via and dump.store != self.store_of(number)


@dataclass
class Dump:
    """An array at one iteration that is being written.

    Attributes:
        array: the array.
        iteration, slot: which one, and its place along the first axis of the stored array; of mode
            `append`, its first row.
        store: name of the store that it is written to.
        began_s: when writing began (`time.perf_counter`).
        rows: number of rows, of mode `append`.
        objects: the shards of this rank, as long as they may have to be written again.
        writes: this rank's objects; `None` as long as not all of them wait to be written.
        names: their names below the group.
        size: bytes of this rank that wait in memory.
        near: the near store that has it, while it is moved on from there.
        alone_s, seconds: see `DumpState`; 0 as long as the objects of this rank are not durable.
    """

    array: PlacedArray
    iteration: int
    slot: int
    store: str
    began_s: float
    rows: int = 0
    objects: Objects | None = None
    writes: list[ObjectWrite] | None = None
    names: list[str] = field(default_factory=list)
    size: int = 0
    near: str | None = None
    alone_s: float = 0.0
    seconds: float = 0.0

    @property
    def number(self) -> int:
        """Return its number, from 0."""
        return self.iteration // self.array.settings.every

    @property
    def key(self) -> tuple[str, int]:
        """Return what names it in a run."""
        return self.array.name, self.iteration

    @property
    def bytes(self) -> int:
        """Return its size over all ranks."""
        settings = self.array.settings
        if settings.mode == "append":
            return settings.row_bytes * self.rows
        return settings.dump_bytes

    @property
    def is_pending(self) -> bool:
        """Check whether the threads have objects of this rank that are not durable."""
        return self.writes is not None and not all(each.future.done() for each in self.writes)

    @property
    def is_begun(self) -> bool:
        """Check whether the threads have begun to write objects of this rank."""
        futures = [each.future for each in self.writes or ()]
        return any(each.running() or each.done() for each in futures)

    def name_of(self, place: Sequence[int]) -> str:
        """Return the name of a shard below the group."""
        if self.array.settings.mode == "append":
            return shard_name(self.array.name, *place)
        return shard_name(self.array.name, self.slot, *place)

    def has_older_rows(self, place: Sequence[int]) -> bool:
        """Check whether a shard also has rows of a dump before, of mode `append`."""
        settings = self.array.settings
        return settings.mode == "append" and place[0] * settings.sharding.shard_shape[0] < self.slot

    def fault(self) -> Fault | None:
        """Return why this rank's objects cannot be written; `None` as long as nothing failed."""
        if self.writes is None:
            return Fault("InterruptedError", f"{self.array.name}: its writing was interrupted")
        for write in self.writes:
            if write.future.cancelled():
                return Fault("InterruptedError", f"{write.name}: its writing was given up")
            if write.future.done() and (error := write.future.exception()) is not None:
                return Fault(type(error).__name__, str(error))
        return None


def store_of(placements: Sequence[Placement], number: int) -> str:
    """Return the store of a dump by its number; of several placements the first counts."""
    return next(each.store for each in placements if each.first <= number < each.first + each.dumps)
