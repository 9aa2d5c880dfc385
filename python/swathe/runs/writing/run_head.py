"""What rank 0 does for all: the catalogue, the metadata in stores, and the choice of stores."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from swathe.catalog.records.runs import DumpRecord, FailoverRecord, RunArrayRecord, RunRecord
from swathe.core.errors import (
    AccessError,
    LimitError,
    NoSuchStoreError,
    OptionError,
    OutputError,
    SourceError,
    SwatheError,
    error_class,
)
from swathe.core.zarr_names import NODE
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.placement import (
    StoreRoom,
    check_failover,
    is_auto,
    near_store,
    place,
)
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.planning.store_rooms import store_rates, store_rooms
from swathe.runs.planning.write_method import WriteChoice, choose_write
from swathe.runs.storage.zarr_group import ZarrGroup, group_folder
from swathe.runs.writing.dump import Dump, Fault, PlacedArray
from swathe.runs.writing.store_watch import StoreWatch

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.runs.storage.object_writer import ObjectWriter

log = logging.getLogger(__name__)

TIERS = ("local", "lan", "wan", "tape")
"""From near to far."""


@dataclass(frozen=True)
class Departure:
    """What becomes of arrays whose stores are left.

    Attributes:
        placements: for arrays by name, where their other dumps go.
        stores: names of all stores that were left in the run.
    """

    placements: Mapping[str, Sequence[Placement]]
    stores: frozenset[str]


class RunHead:
    """Rank 0 of a run.

    Attributes:
        record: the run in the catalogue.
        watch: whether stores are as fast as predicted.
    """

    def __init__(
        self,
        catalog: Catalog,
        record: RunRecord,
        writer: ObjectWriter,
        default: str | None,
        later: Mapping[str, ArraySettings],
    ) -> None:
        """Set the catalogue and the run in it.

        Args:
            catalog: the catalogue.
            record: the run.
            writer: what writes metadata.
            default: store of arrays without a location.
            later: arrays that the settings name, which the program has not added yet.
        """
        self.record = record
        self._later = dict(later)
        self._catalog, self._writer, self._default = catalog, writer, default
        self.watch = StoreWatch(catalog)
        self._groups: dict[str, ZarrGroup] = {}
        # Dumps still to come, and the bytes of one, of each array in each store.
        self._reserve: dict[tuple[int, str], tuple[int, int]] = {}
        self._left: dict[str, Fault] = {}
        # Near stores that dumps could not be read from.
        self._passed_by: set[str] = set()
        # Arrays that stay in a slow store, by name, since there is no other.
        self._staying: set[tuple[str, str]] = set()

    def add(
        self, name: str, array: ArraySettings
    ) -> tuple[RunArrayRecord, list[Placement], WriteChoice]:
        """Add an array, choose its stores and how it is written, and write its metadata there.

        A store that does not answer is passed over, if there is another.

        Raises:
            NoSuchStoreError: If a store of `location`, `failover` or `via` cannot be written to.
            OptionError: If there is no store for a hint, or the run has such an array, or it cannot
                be written as its settings say.
            LimitError: If its stores have too little room.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        rooms = store_rooms(self._catalog)
        check_failover(name, array, rooms)
        store = next((each for each in array.location if each in self._left), None)
        placements = self._place(name, array, self.record.iterations, store)
        via = near_store(name, array, rooms) if placements else None
        near = [] if via is None else [via]
        stores = [*(each.store for each in placements), *near]
        self.watch.add({each.store for each in placements})
        parts = [(self.watch.rates[each.store], each.dumps) for each in placements]
        choice = choose_write(name, array, self.record.ranks, parts)
        array = choice.array
        record = self._catalog.add_run_array(self.record.id, name, asdict(array), stores)
        if store is not None:
            self._note_failover(record, name, store, placements, 0, self._left[store])
        try:
            placements = self._begin(record, array, placements, near)
        except SwatheError:
            # It may be added again, to other stores.
            self._catalog.remove_run_array(record.id)
            raise
        self._set_reserve(record.id, array, placements, self.record.iterations)
        self.watch.add({each.store for each in placements})
        return record, list(placements), choice

    def _begin(
        self,
        record: RunArrayRecord,
        array: ArraySettings,
        placements: Sequence[Placement],
        near: Sequence[str],
    ) -> Sequence[Placement]:
        """Write the metadata of an array; return where its dumps go, if a store was passed over."""
        name, iterations = record.name, self.record.iterations
        while True:
            stores = [*near, *(each.store for each in placements)]
            failure = self._begin_groups(name, array, stores)
            if failure is None:
                return placements
            store, reason = failure
            if store in near:
                raise error_of(reason)
            self._left[store] = reason
            placements = self._place_again(name, array, iterations, store, reason)
            self._note_failover(record, name, store, placements, 0, reason)

    def has_room(self, store: str, size: int) -> bool:
        """Check whether a store has room for bytes, and was not left."""
        room = next((each for each in store_rooms(self._catalog) if each.name == store), None)
        if room is None or store in self._left or store in self._passed_by:
            return False
        return room.room_bytes is None or room.room_bytes >= size

    def pass_by(self, dump: Dump, fault: Fault) -> None:
        """Write no more dumps to a near store from which a dump cannot be moved on."""
        log.warning(
            "%s: array %s at iteration %d stays in its near store: %s",
            *(self.record.label, dump.array.name, dump.iteration, fault.reason),
        )
        if dump.near is not None:
            self._passed_by.add(dump.near)

    def forget(self, dump: Dump, others: Iterable[Dump]) -> None:
        """Forget a dump of mode `overwrite`, since its place is about to be written.

        Args:
            dump: the dump.
            others: those of its array that stay.
        """
        self._catalog.remove_dump(dump.array.record.id, dump.iteration)
        if dump.store not in self._left:
            self._tell_iterations(dump.array.name, dump.store, others)

    def keep(self, dump: Dump, seconds: float, target: str | None = None) -> Fault | None:
        """Record that a dump is durable; return why it could not be published in its store.

        Args:
            dump: the dump.
            seconds: time from the begin of writing until it was durable on all ranks.
            target: the store that it is to be moved on to.
        """
        array = dump.array
        try:
            if array.settings.mode == "overwrite":
                self._tell_iterations(array.name, dump.store, [*array.durable.values(), dump])
            elif array.settings.mode == "append":
                rows = max(dump.slot + dump.rows, array.length)
                objects = self._groups[dump.store].set_length(array.name, rows)
                self._put(dump.store, objects)
        except (OutputError, AccessError, SourceError) as error:
            return Fault(type(error).__name__, str(error))
        now = datetime.now(UTC)
        record = DumpRecord(
            *(dump.iteration, dump.slot, dump.store, dump.bytes, seconds, now), target=target
        )
        self._catalog.put_dump(array.record.id, record)
        if target is None and (array.record.id, dump.store) in self._reserve:
            dumps, dump_bytes = self._reserve[array.record.id, dump.store]
            self._reserve[array.record.id, dump.store] = max(dumps - 1, 0), dump_bytes
        return None

    def leave(
        self, faults: Mapping[str, Fault], arrays: Iterable[PlacedArray], must: bool
    ) -> tuple[Fault | None, Departure]:
        """Leave stores: choose others for the dumps that are not durable there.

        Args:
            faults: why, by store.
            arrays: all arrays of the run.
            must: whether what cannot go elsewhere is an error; else it stays.

        Returns:
            Why an array cannot go elsewhere, if it must, and what becomes of the others.
        """
        self._left |= faults
        if must:
            self._staying = {each for each in self._staying if each[1] not in faults}
        changes: dict[str, list[Placement]] = {}
        refusal = None
        while (next_one := self._next_to_move(arrays, changes)) is not None:
            array, store, numbers = next_one
            name, settings, fault = array.name, array.settings, self._left[store]
            iterations = (len(numbers) - 1) * settings.every
            try:
                placements = self._place_again(name, settings, iterations, store, fault)
            except SwatheError as error:
                refusal = refusal or Fault(fault.kind, str(error))
                self._staying.add((name, store))
                continue
            spread = _spread(placements, numbers)
            stores = [each.store for each in spread]
            failure = self._begin_groups(name, settings, stores)
            if failure is not None:
                self._left[failure[0]] = failure[1]
                continue
            self._reserve.pop((array.record.id, store), None)
            self._set_reserve(array.record.id, settings, placements, iterations)
            self.watch.add(stores)
            first = numbers[0] * settings.every
            self._note_failover(array.record, name, store, spread, first, fault)
            changes[name] = [*spread, *changes.get(name, array.placements)]
        departure = Departure(changes, frozenset(self._left))
        if must and refusal is not None:
            self._staying.clear()
            return refusal, departure
        for _, store in self._staying:
            # It is slow, and still written to.
            self._left.pop(store, None)
        return None, departure

    def _next_to_move(
        self, arrays: Iterable[PlacedArray], changes: Mapping[str, list[Placement]]
    ) -> tuple[PlacedArray, str, list[int]] | None:
        for array in arrays:
            view = replace(array, placements=changes.get(array.name, array.placements))
            for store in self._left:
                is_staying = (array.name, store) in self._staying
                if not is_staying and (numbers := view.numbers_in(store)):
                    return array, store, numbers
        return None

    def _note_failover(
        self,
        record: RunArrayRecord,
        name: str,
        store: str,
        placements: Sequence[Placement],
        iteration: int,
        fault: Fault,
    ) -> None:
        stores = tuple(dict.fromkeys(each.store for each in placements))
        log.warning(
            "%s: array %s leaves the store %s for %s from iteration %d on: %s",
            *(self.record.label, name, store, ", ".join(stores), iteration, fault.reason),
        )
        failover = FailoverRecord(store, stores, iteration, fault.reason, datetime.now(UTC))
        self._catalog.add_failover(record.id, failover)

    def _begin_groups(
        self, name: str, array: ArraySettings, stores: Iterable[str]
    ) -> tuple[str, Fault] | None:
        """Write the metadata of an array to stores; return the first that fails, and why."""
        for store in stores:
            group = self._groups.get(store) or ZarrGroup(self.record.label, self.record.iterations)
            try:
                *parts, root_node = group.add(name, array)
                self._put(store, parts)
                self._put(store, [root_node])
                # That what is written can be read: links may lead out of a store.
                root = f"{group_folder(self.record, store)}/{NODE}"
                self._writer.stores_of(root).open(root)
            except (OutputError, AccessError, SourceError) as error:
                return store, Fault(type(error).__name__, str(error))
            self._groups[store] = group
        return None

    def _tell_iterations(self, name: str, store: str, dumps: Iterable[Dump]) -> None:
        """Write the iterations that the places of an array of mode `overwrite` have now."""
        there = {each.slot: each.iteration for each in dumps if each.store == store}
        self._put(store, self._groups[store].set_iterations(name, there))

    def _put(self, store: str, objects: Iterable[tuple[str, bytes]]) -> None:
        folder = group_folder(self.record, store)
        self._writer.write_now((f"{folder}/{path}", content) for path, content in objects)

    def _place(
        self, name: str, array: ArraySettings, iterations: int, left: str | None
    ) -> Sequence[Placement]:
        """Return where the dumps of an array go; `left`: a store of its locations that was left."""
        self._later.pop(name, None)
        if left is not None:
            return self._place_again(name, array, iterations, left, self._left[left])
        arrays = {name: array, **(self._later if is_auto(array) else {})}
        rates = partial(store_rates, self._catalog)
        ranks = self.record.ranks
        return place(arrays, iterations, self._rooms(), self._default, rates, ranks)[name]

    def _place_again(
        self, name: str, array: ArraySettings, iterations: int, store: str, fault: Fault
    ) -> Sequence[Placement]:
        """Return other stores for an array that leaves one.

        Raises:
            SwatheError: The reason why it leaves it, if there is no other.
        """
        if array.failover is False:
            raise error_of(fault)
        rooms, rates = self._rooms(), partial(store_rates, self._catalog)
        default = None if self._default in self._left else self._default
        others = tuple(each for each in array.location if each not in self._left)
        refusals = []
        for location in (others, self._failover_stores(array, store, rooms)):
            if not location:
                continue
            try:
                choice = {name: replace(array, location=location)}
                ranks = self.record.ranks
                if placements := place(choice, iterations, rooms, default, rates, ranks)[name]:
                    return placements
            except (OptionError, LimitError, NoSuchStoreError) as error:
                refusals.append(str(error))
        raise error_of(
            Fault(fault.kind, f"{fault.reason}; no other store: {'; '.join(refusals) or 'none'}")
        )

    def _failover_stores(
        self, array: ArraySettings, store: str, rooms: Sequence[StoreRoom]
    ) -> tuple[str, ...]:
        """Return the stores for a failure: those of the settings, or of a tier as near or nearer.

        The farthest tier comes first, as the one most alike.
        """
        if not isinstance(array.failover, bool):
            return tuple(each for each in array.failover if each not in self._left)
        tier = self._catalog.store(store).tier
        near = TIERS[: TIERS.index(tier) + 1] if tier in TIERS else TIERS
        candidates = [each for each in rooms if each.tier in near]
        return tuple(
            each.name
            for each in sorted(
                candidates, key=lambda each: (-TIERS.index(each.tier), -(each.room_bytes or 0))
            )
        )

    def _rooms(self) -> list[StoreRoom]:
        """Return the stores, without the room for dumps of arrays that are still to come."""
        rooms = store_rooms(self._catalog)
        disks = {each.name: each.disk_key for each in rooms}
        reserves: Counter[Hashable] = Counter()
        for (_, store), (dumps, dump_bytes) in self._reserve.items():
            if store not in self._left:
                reserves[disks.get(store)] += dumps * dump_bytes
        return [
            replace(each, room_bytes=max(each.room_bytes - reserves[each.disk_key], 0))
            if each.room_bytes is not None
            else each
            for each in rooms
            if each.name not in self._left
        ]

    def _set_reserve(
        self, array_id: int, array: ArraySettings, placements: Iterable[Placement], iterations: int
    ) -> None:
        for each in placements:
            before, _ = self._reserve.get((array_id, each.store), (0, 0))
            dumps = min(each.dumps, array.stored_dumps(iterations))
            self._reserve[array_id, each.store] = before + dumps, array.dump_bytes


def error_of(fault: Fault) -> SwatheError:
    """Return the error of a fault that a rank has told."""
    return (error_class(fault.kind) or OutputError)(fault.reason)


def _spread(placements: Sequence[Placement], numbers: Sequence[int]) -> list[Placement]:
    """Return placements of the first dumps as those of dumps with other numbers, ascending.

    Numbers between them keep their stores.
    """
    result = []
    for each in placements:
        own = numbers[each.first : each.first + each.dumps]
        for _, group in groupby(enumerate(own), lambda pair: pair[1] - pair[0]):
            adjacent = [number for _, number in group]
            result.append(Placement(each.store, adjacent[0], len(adjacent)))
    return result
