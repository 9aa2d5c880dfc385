"""Move dumps of a run to another store: each is in one place that the catalogue knows, always.

An array's metadata is written to the other store first. Then, dump by dump: its shards are copied
and verified, the catalogue says that it lies there, and the old shards are removed. What a move
leaves behind that was ended in between is removed by the next one. Dumps of an array that grows
share shards: they are moved together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TYPE_CHECKING

from swathe.core import errors
from swathe.core.errors import (
    LimitError,
    NoSuchRunError,
    NotFoundError,
    OptionError,
    OutputError,
)
from swathe.core.format import size_text
from swathe.core.zarr_names import NODE
from swathe.runs.definition.run_settings import ArraySettings, plain_number
from swathe.runs.planning.store_rooms import store_rooms
from swathe.runs.reading.stored_run import remove_objects_below
from swathe.runs.storage.object_writer import write_object
from swathe.runs.storage.zarr_group import (
    ZarrGroup,
    dump_paths,
    group_folder,
    list_paths,
    shard_name,
)
from swathe.stores.copies import THREADS, CopyPair, CopyReport, copy_pairs
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpRecord, RunArrayRecord

BATCH = 256
"""Shards that are copied by one call, at most."""


@dataclass
class MoveReport:
    """What was moved.

    Attributes:
        run: full label of the run.
        store: where it went.
        dumps, objects, bytes: numbers of dumps and shards, and their bytes.
        by_servers: number of shards that servers copied from one to the other.
    """

    run: str
    store: str
    dumps: int = 0
    objects: int = 0
    bytes: int = 0
    by_servers: int = 0


class RunMove:
    """A move of dumps of one run to one store.

    Attributes:
        report: what was moved until now.
    """

    def __init__(self, catalog: Catalog, label: str, store: str, force: bool) -> None:
        """Set the run and the store.

        Args:
            catalog: catalogue of the run.
            label: `NAME@NUMBER`, or `NAME` for the newest.
            store: name of the store.
            force: whether a run is moved that is being written.

        Raises:
            NoSuchRunError: If there is no such run.
            OptionError: If it is being written, and `force` is false.
            NoSuchStoreError: If there is no such store.
            OutputError: If the store cannot be written to.
        """
        self._catalog, self._run, self._store = catalog, catalog.run(label), store
        if self._run.state == "running" and not force:
            raise OptionError(
                f"{self._run.label}: process {self._run.pid} of {self._run.host} is writing it; "
                "move it with force if that process is gone"
            )
        if not catalog.store(store).kind.is_writable:
            raise OutputError(f"{store}: cannot be written to")
        self.report = MoveReport(self._run.label, store)

    def move(self, array: str | None = None, iterations: slice = slice(None)) -> None:
        """Move the dumps of one array, or of all.

        Args:
            array: name of the array; all if `None`.
            iterations: those to move, from `start` up to, not including, `stop`.

        Raises:
            NoSuchRunError: If the run has no such array.
            OptionError: If only some dumps of an array of mode `append` are to be moved, or
                `iterations` has a step, or a number that is negative or not whole.
            LimitError: If the store has too little room.
            NotFoundError, AccessError, SourceError, FormatError: If a dump cannot be read.
            OutputError: If it cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        arrays = self._catalog.run_arrays(self._run.id)
        selection = [each for each in arrays if array in (None, each.name)]
        if array is not None and not selection:
            raise NoSuchRunError(f"{self._run.label}: there is no array {array[:80]!r}")
        numbers = _numbers(iterations, self._run.iterations)
        dumps = {
            each.id: [dump for dump in self._catalog.dumps(each.id) if dump.iteration in numbers]
            for each in selection
        }
        for each in selection:
            count = len(self._catalog.dumps(each.id))
            if _grows(each) and len(dumps[each.id]) not in (0, count):
                raise OptionError(
                    f"{self._run.label}, {each.name}: expected all iterations of an array of mode "
                    f"append, whose dumps share objects, found {len(dumps[each.id])} of {count}"
                )
        self._check_room(
            sum(one.bytes for some in dumps.values() for one in some if one.store != self._store)
        )
        for each in selection:
            if dumps[each.id]:
                self._move_array(each, dumps[each.id])

    def _check_room(self, size: int) -> None:
        rooms = {each.name: each.room_bytes for each in store_rooms(self._catalog)}
        room = rooms.get(self._store)
        if room is not None and room < size:
            raise LimitError(
                f"{self._store}: expected room for {size_text(size)}, found {size_text(room)}"
            )

    def _move_array(self, array: RunArrayRecord, dumps: Iterable[DumpRecord]) -> None:
        stores, dumps = list(array.stores), list(dumps)
        if any(each.store != self._store for each in dumps):
            # Known before anything is there: what is left by a crash is removed with the run.
            stores = list(dict.fromkeys([*stores, self._store]))
            self._catalog.set_array_stores(array.id, stores)
            self._write_metadata(array, self._store)
            if _grows(array):
                self._move_rows(array, dumps)
            else:
                for dump in dumps:
                    if dump.store != self._store:
                        self._move_dump(array, dump)
        self._remove_rest(array, stores, dumps)
        if self._run.state != "running":
            self._leave_stores(array, stores)

    def _move_dump(self, array: RunArrayRecord, dump: DumpRecord) -> None:
        settings = ArraySettings.of_record(array.settings)
        folder, count = group_folder(self._run, dump.store), settings.sharding.count
        shards = dump_paths(folder, array.name, dump.iteration, dump.slot, count)
        for first in range(0, len(shards), BATCH):
            self._copy(dump.store, shards[first : first + BATCH])
        # What the move took says nothing of writing there.
        dump_there = replace(dump, store=self._store, seconds=0.0, target=None)
        if settings.mode == "overwrite":
            self._write_metadata(array, self._store, dump_there)
        self._catalog.put_dump(array.id, dump_there)
        if settings.mode == "overwrite":
            self._write_metadata(array, dump.store)
        self._remove(dump.store, shards)
        self.report.dumps += 1

    def _move_rows(self, array: RunArrayRecord, dumps: Sequence[DumpRecord]) -> None:
        """Move an array that grows. A shard in several stores has all its rows in the last one."""
        settings, stores = ArraySettings.of_record(array.settings), dict[int, str]()
        height, grid = settings.sharding.shard_shape[0], settings.sharding.grid[1:]
        for dump in sorted(dumps, key=_last_row):
            first, stop = dump.slot, dump.slot + dump.bytes // settings.row_bytes
            if first < stop:
                stores |= dict.fromkeys(range(first // height, -(-stop // height)), dump.store)
        for store in dict.fromkeys(stores.values()):
            folder = group_folder(self._run, store).partition(":")[2]
            rows = [at for at, of_row in stores.items() if of_row == store != self._store]
            places = product(rows, *map(range, grid))
            while batch := list(islice(places, BATCH)):
                self._copy(store, [f"{folder}/{shard_name(array.name, *each)}" for each in batch])
        self._write_metadata(array, self._store, max(dumps, key=_last_row))
        for dump in dumps:
            if dump.store != self._store:
                there = replace(dump, store=self._store, seconds=0.0, target=None)
                self._catalog.put_dump(array.id, there)
                self.report.dumps += 1

    def _copy(self, store: str, paths: Iterable[str]) -> None:
        """Copy shards, by their paths in stores; they are verified, and durable."""
        engine, report = native_stores(), CopyReport()
        pairs = [CopyPair(f"{store}:{path}", f"{self._store}:{path}") for path in paths]
        copy_pairs(engine, pairs, True, THREADS, report, progress=False)
        for fault in report.faults:
            raise getattr(errors, fault.kind)(fault.reason)
        self.report.objects += report.copied
        self.report.bytes += report.bytes
        self.report.by_servers += report.by_servers

    def _write_metadata(
        self, array: RunArrayRecord, store: str, coming: DumpRecord | None = None
    ) -> None:
        """Write what a group says of an array, with a dump that the catalogue has not there yet."""
        group, folder = self._group(store, array.name, coming), group_folder(self._run, store)
        root = group.pop(NODE)
        for path, content in group.items():
            if path.startswith((f"{array.name}/", "iteration_")):
                write_object(f"{folder}/{path}", [content])
        # Last, as it names the others.
        write_object(f"{folder}/{NODE}", [root])

    def _group(
        self, store: str, name: str, coming: DumpRecord | None = None, *, is_left: bool = False
    ) -> dict[str, bytes]:
        """Return the metadata of the run in a store, by path.

        Args:
            store: the store.
            name: an array that is moved.
            coming: a dump of it that the catalogue has not there yet.
            is_left: whether the array is left out.
        """
        group = ZarrGroup(self._run.label, self._run.iterations)
        objects: dict[str, bytes] = {}
        for array in self._catalog.run_arrays(self._run.id):
            if store not in array.stores or (is_left and array.name == name):
                continue
            settings = ArraySettings.of_record(array.settings)
            objects.update(group.add(array.name, settings))
            dumps = [each for each in self._catalog.dumps(array.id) if each.store == store]
            dumps += [coming] if coming is not None and array.name == name else []
            if settings.mode == "append":
                stops = (each.slot + each.bytes // settings.row_bytes for each in dumps)
                objects.update(group.set_length(array.name, max(stops, default=0)))
            elif settings.mode == "overwrite":
                slots = {each.slot: each.iteration for each in dumps}
                objects.update(group.set_iterations(array.name, slots))
        return objects

    def _remove_rest(
        self, array: RunArrayRecord, stores: Iterable[str], dumps: Iterable[DumpRecord]
    ) -> None:
        """Remove shards of dumps that lie in the store now: a move was ended before it did."""
        slots = {dump.slot for dump in dumps}
        for store in stores:
            if store != self._store:
                own = {each.slot for each in self._catalog.dumps(array.id) if each.store == store}
                rest = self._slots(store, array)
                if _grows(array):
                    # By row of shards: of a store that has no dump, all are copies of what moved.
                    slots = set() if own else set(rest)
                for slot in rest.keys() & slots - own:
                    self._remove(store, rest[slot])

    def _slots(self, store: str, array: RunArrayRecord) -> Mapping[int, list[str]]:
        """Return the shards of an array in a store by the slot of their dump."""
        slots: dict[int, list[str]] = {}
        folder = f"{group_folder(self._run, store)}/{array.name}/c/"
        prefix = folder.partition(":")[2]
        for path in list_paths(folder):
            slot = path.removeprefix(prefix).partition("/")[0]
            if slot.isascii() and slot.isdigit():
                slots.setdefault(int(slot), []).append(path)
        return slots

    def _remove(self, store: str, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(NotFoundError):
                native_stores().remove(f"{store}:{path}")

    def _leave_stores(self, array: RunArrayRecord, stores: Iterable[str]) -> None:
        """Remove the array from groups that have no dump of it any more."""
        own_stores = {dump.store for dump in self._catalog.dumps(array.id)}
        last = [each for each in stores if each in own_stores or each == self._store]
        for store in stores:
            if store not in last:
                self._leave_store(array, store)
        self._catalog.set_array_stores(array.id, last)

    def _leave_store(self, array: RunArrayRecord, store: str) -> None:
        folder = group_folder(self._run, store)
        before, after = (self._group(store, array.name, is_left=each) for each in (False, True))
        if NODE not in after:
            remove_objects_below(f"{folder}/")
            return
        write_object(f"{folder}/{NODE}", [after[NODE]])
        names = [{path.partition("/")[0] for path in group} for group in (before, after)]
        for name in names[0] - names[1]:
            remove_objects_below(f"{folder}/{name}/")


def _grows(array: RunArrayRecord) -> bool:
    return ArraySettings.of_record(array.settings).mode == "append"


def _last_row(dump: DumpRecord) -> tuple[int, int]:
    """Return a key that orders dumps of an array that grows by their rows."""
    return dump.slot, dump.bytes


def _numbers(iterations: slice, last: int) -> range:
    """Return the iterations up to the last one that a slice names.

    Raises:
        OptionError: If it has a step, or a number that is negative or not whole.
    """
    bounds = [plain_number(each) for each in (iterations.start, iterations.stop)]
    is_plain = all(each is None or (type(each) is int and each >= 0) for each in bounds)
    if not is_plain or iterations.step is not None:
        raise OptionError(
            f"iterations: expected a slice of numbers from 0 on, without a step, found "
            f"{iterations!r:.80}"
        )
    return range(*slice(*bounds).indices(last + 1))
