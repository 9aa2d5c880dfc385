"""The dumps of a run that are being written: which are durable, and which must go elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import TYPE_CHECKING, NamedTuple

from swathe.core.errors import NotFoundError
from swathe.runs.storage.object_writer import MOST_WAITING, ObjectWrite, ObjectWriter
from swathe.runs.storage.zarr_group import group_folder
from swathe.runs.writing.dump import (
    STORE_FAULTS,
    Dump,
    DumpState,
    Fault,
    Objects,
    PlacedArray,
    store_of,
)
from swathe.runs.writing.run_head import Departure, RunHead, error_of
from swathe.runs.writing.store_watch import LEAST_S

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.writing.rank_group import RankGroup

WAIT_S = 0.1
"""How long a rank waits for its objects before all say again how far they are, so that a slow store
is left in time."""


class Report(NamedTuple):
    """What a rank says before all write a dump.

    Attributes:
        states: of the dumps in the queue, in order.
        has_room: whether its shards of the next dump have room in memory.
        is_near: whether the near store has room for it; said by rank 0.
        rows: rows of its block, of mode `append`.
    """

    states: list[DumpState]
    has_room: bool = True
    is_near: bool = False
    rows: int = 0


class Decision(NamedTuple):
    """What rank 0 has decided for all.

    Attributes:
        durable: places in the queue of the dumps that the catalogue has now.
        strays: places of those that stay in their near store, and why that cannot be read.
        departure: what becomes of arrays whose stores are left.
        fault: an error to raise.
    """

    durable: Sequence[int]
    strays: Mapping[int, Fault] = {}
    departure: Departure | None = None
    fault: Fault | None = None


class Turn(NamedTuple):
    """Which dumps had a store last.

    Attributes:
        iteration: their iteration.
        before_s: when those of the iterations before were durable (`time.perf_counter`).
        end_s: when the last was durable.
    """

    iteration: int = -1
    before_s: float = 0.0
    end_s: float = 0.0


class DumpQueue:
    """Dumps that are not durable yet, of all arrays, in the order in which they were written.

    It is the same on all ranks: each says what it knows of its objects, rank 0 decides, and all do
    the same. The shards of a dump stay in memory until it is durable on all ranks, so that they can
    be written to another store.

    Attributes:
        arrays: the arrays by name.
    """

    def __init__(
        self, record: RunRecord, group: RankGroup, writer: ObjectWriter, head: RunHead | None
    ) -> None:
        """Set the run, its ranks, and this rank's threads.

        Args:
            record: the run in the catalogue.
            group: the ranks.
            writer: threads that write objects.
            head: what rank 0 has; `None` on others.
        """
        self.arrays: dict[str, PlacedArray] = {}
        self._record, self._group, self._writer, self._head = record, group, writer, head
        self._dumps: list[Dump] = []
        self._leftovers: list[ObjectWrite] = []
        self._strays: list[tuple[Dump, Fault]] = []
        self._turns: dict[str, Turn] = {}

    def report(self, size: int = 0) -> Report:
        """Return what this rank knows of its objects.

        Args:
            size: bytes of its shards of the dump that is written next.
        """
        return Report([self._state(dump) for dump in self._dumps], self._has_room(size))

    def advance(self, reports: Sequence[Report]) -> None:
        """Record the dumps that are durable on all ranks, and write elsewhere what has failed.

        Args:
            reports: of all ranks.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written, nor elsewhere.
            CatalogError: If the catalogue cannot be written.
        """
        states = [
            _merge(of_ranks) for of_ranks in zip(*(each.states for each in reports), strict=True)
        ]
        if not any(
            each.fault or each.seconds is not None or each.alone_s > LEAST_S for each in states
        ):
            return
        with self._group.step("record") as step:
            if self._head is not None:
                step.value = self._decide(self._head, states)
        self._follow(step.values[0])

    def finish(self, what: str, is_due: Callable[[Dump], bool]) -> None:
        """Wait until dumps are durable, and the catalogue says so.

        Args:
            what: what the ranks do.
            is_due: whether a dump is waited for.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written, nor elsewhere.
            CatalogError: If the catalogue cannot be written.
        """
        while True:
            with self._group.step(what) as step:
                due = [dump for dump in self._dumps if is_due(dump)]
                self._wait(write for dump in due for write in dump.writes or ())
                step.value = self.report()
            self.advance(step.values)
            if not any(map(is_due, self._dumps)):
                return

    def check_rest(self) -> None:
        """Check that no near store had dumps that cannot be read, and moved on.

        Raises:
            NotFoundError: If there are such dumps.
        """
        if self._strays:
            dump, fault = self._strays[0]
            raise NotFoundError(
                f"{self._record.label}: expected all dumps to be moved on, found "
                f"{len(self._strays)} in near stores that cannot be read, the first of array "
                f"{dump.array.name}, iteration {dump.iteration}: {fault.reason}; see: swathe run "
                f"drain {self._record.label}"
            )

    def make_room(self, what: str, size: int) -> None:
        """Wait until the shards of a dump have room in the memory of each rank.

        Args:
            what: what the ranks do.
            size: bytes of the shards of a rank, at most.
        """
        while True:
            with self._group.step(what) as step:
                if not self._has_room(size):
                    first = next((each for each in self._dumps if each.size), None)
                    self._wait(self._leftovers if first is None else first.writes or ())
                step.value = self.report(size)
            self.advance(step.values)
            if all(each.has_room for each in step.values):
                return

    def write(self, dump: Dump, objects: Objects, is_large: bool) -> None:
        """Write this rank's objects of a dump.

        Args:
            dump: the dump.
            objects: function that yields them.
            is_large: whether they are too large to stay in memory: then they are durable on return,
                and `objects` is called again if they have to be written elsewhere.
        """
        # Appended first, so that `finish` raises errors, and that it was interrupted.
        self._dumps.append(dump)
        if is_large:
            dump.objects = objects
            self._submit(dump)
            self.finish(f"{dump.array.name}: write {dump.iteration}", lambda each: each is dump)
            return
        shards = list(objects())
        dump.objects = lambda: shards
        dump.size = sum(len(part) for _, content in shards for part in content)
        self._submit(dump)

    def keep_at_end(self) -> None:
        """Record what is durable on all ranks after an error. All call it, also a failed one."""
        for dump in self._dumps:
            if dump.near is not None:
                self._writer.abandon(dump.writes or ())
        writes = [write for dump in self._dumps for write in dump.writes or ()]
        wait(write.future for write in writes)
        report = {dump.key: self._state(dump) for dump in self._dumps}
        reports = self._group.gather_at_end(report)
        if self._head is None:
            return
        for dump in self._dumps:
            # A rank in a step of the application's own says something else.
            of_ranks = [each.get(dump.key) if isinstance(each, dict) else None for each in reports]
            seconds = [each.seconds for each in of_ranks if each is not None]
            known_s = [each for each in seconds if each is not None]
            if len(known_s) == len(reports) and dump.near is None:
                self._head.keep(dump, max(known_s), self._target(dump))

    def _state(self, dump: Dump) -> DumpState:
        fault = dump.fault()
        turn = self._turns.get(dump.store, Turn())
        begin_s = max(dump.began_s, turn.end_s)
        if fault is not None or dump.is_pending or dump.writes is None:
            return DumpState(None, time.perf_counter() - begin_s, fault)
        end_s = max((each.future.result() for each in dump.writes), default=dump.began_s)
        if not dump.alone_s:
            dump.alone_s = max(end_s - begin_s, 1e-9)
            if dump.iteration > turn.iteration:
                turn = Turn(dump.iteration, turn.end_s, turn.end_s)
            dump.seconds = max(end_s - max(dump.began_s, turn.before_s), 0.0)
            self._turns[dump.store] = turn._replace(end_s=max(turn.end_s, end_s))
        return DumpState(dump.seconds, dump.alone_s)

    def _has_room(self, size: int) -> bool:
        self._leftovers = [each for each in self._leftovers if not each.future.done()]
        waiting = sum(each.size for each in self._dumps)
        waiting += sum(each.size for each in self._leftovers)
        return not waiting or waiting + size <= MOST_WAITING

    def _wait(self, writes: Iterable[ObjectWrite]) -> None:
        wait([each.future for each in writes], WAIT_S, FIRST_EXCEPTION)

    def _decide(self, head: RunHead, states: Sequence[DumpState]) -> Decision:
        """Record what is durable, and choose other stores for what cannot be written."""
        faults: dict[str, Fault] = {}
        durable: dict[int, Dump] = {}
        strays: dict[int, Fault] = {}
        for number, (dump, state) in enumerate(zip(self._dumps, states, strict=True)):
            fault = state.fault
            if fault is not None and _is_stray(dump, fault):
                strays[number] = fault
                head.pass_by(dump, fault)
                continue
            if fault is not None and fault.kind not in STORE_FAULTS:
                return Decision(list(durable), strays, fault=fault)
            if fault is None and state.seconds is not None:
                # What a move took says nothing of writing to the store.
                seconds = state.seconds if dump.near is None else 0.0
                fault = head.keep(dump, seconds, self._target(dump))
                if fault is None:
                    durable[number] = dump
                    dump.array.durable[dump.number] = dump
            if fault is not None:
                faults.setdefault(dump.store, fault)
        times = [
            (dump, state.alone_s, state.seconds is not None)
            for dump, state in zip(self._dumps, states, strict=True)
        ]
        slow = {} if faults else head.watch.faults(times)
        if not faults and not slow:
            return Decision(list(durable), strays)
        fault, departure = head.leave(faults or slow, self.arrays.values(), must=bool(faults))
        for number, dump in enumerate(self._dumps):
            placements = departure.placements.get(dump.array.name, dump.array.placements)
            stays = store_of(placements, dump.number) == dump.store
            if number not in durable and stays and dump.store in faults:
                # It would be written there again, for ever.
                fault = fault or faults[dump.store]
        return Decision(list(durable), strays, departure, fault)

    def _target(self, dump: Dump) -> str | None:
        """Return the store that a dump is to be moved on to, once it is durable where it is."""
        if dump.near is not None or dump.store != dump.array.settings.via:
            return None
        target = dump.array.store_of(dump.number)
        return None if target == dump.store else target

    def _follow(self, decision: Decision) -> None:
        """Do what rank 0 has decided.

        Raises:
            SwatheError: If it is an error.
        """
        dumps, self._dumps = self._dumps, []
        for number, dump in enumerate(dumps):
            if number in decision.strays:
                self._leave_near(dump, decision.strays[number])
                continue
            if number not in decision.durable:
                self._dumps.append(dump)
                continue
            dump.array.durable[dump.number] = dump
            dump.array.length = max(dump.array.length, dump.slot + dump.rows)
            self._end(dump)
        if decision.departure is not None:
            for name, placements in decision.departure.placements.items():
                self.arrays[name].placements = list(placements)
            for dump in self._dumps:
                if dump.store in decision.departure.stores:
                    self._move(dump)
        if decision.fault is not None:
            raise error_of(decision.fault)

    def _end(self, dump: Dump) -> None:
        """Free the memory of a dump that is durable, or move it on."""
        target, near = self._target(dump), dump.near
        dump.objects, dump.size = None, 0
        if near is not None:
            folder = group_folder(self._record, near)
            self._writer.remove(f"{folder}/{name}" for name in dump.names)
            dump.near = None
        elif target is not None:
            dump.near, dump.store = dump.store, target
            dump.began_s, dump.alone_s = time.perf_counter(), 0.0
            self._submit(dump)
            self._dumps.append(dump)

    def _leave_near(self, dump: Dump, fault: Fault) -> None:
        """Leave a dump in its near store, which cannot be read; the catalogue has it there."""
        assert dump.near is not None
        self._writer.abandon(dump.writes or ())
        dump.store, dump.near = dump.near, None
        self._strays.append((dump, fault))

    def _move(self, dump: Dump) -> None:
        """Write a dump to another store than the one that it is written to."""
        store = dump.array.store_of(dump.number)
        if store == dump.store:
            return
        writes = dump.writes or []
        self._writer.abandon(writes)
        self._leftovers += [each for each in writes if not each.future.done()]
        dump.store, dump.writes, dump.alone_s = store, None, 0.0
        dump.began_s = time.perf_counter()
        if store == dump.near:
            # It is whole there: only its entry is to change.
            dump.near, dump.writes = None, []
            return
        self._submit(dump)

    def _submit(self, dump: Dump) -> None:
        """Give this rank's objects of a dump to the threads."""
        folder = group_folder(self._record, dump.store)
        if dump.near is not None:
            near = group_folder(self._record, dump.near)
            pairs = [(f"{near}/{name}", f"{folder}/{name}") for name in dump.names]
            dump.writes = self._writer.copy(pairs)
            return
        assert dump.objects is not None
        dump.names, writes = [], []
        for place, content in dump.objects():
            dump.names.append(dump.name_of(place))
            name = f"{folder}/{dump.names[-1]}"
            writes += self._writer.write([(name, content)], dump.has_older_rows(place))
        dump.writes = writes


def _is_stray(dump: Dump, fault: Fault) -> bool:
    """Check whether a dump cannot be moved on since its near store cannot be read."""
    return dump.near is not None and fault.kind == NotFoundError.__name__


def _merge(states: Sequence[DumpState]) -> DumpState:
    """Return what all ranks together know of a dump."""
    faults = [(rank, each.fault) for rank, each in enumerate(states) if each.fault is not None]
    alone_s = max(each.alone_s for each in states)
    if faults:
        rank, fault = faults[0]
        text = f"rank {rank}: {fault.reason}" if len(states) > 1 else fault.reason
        return DumpState(None, alone_s, Fault(fault.kind, text))
    seconds = [each.seconds for each in states]
    known_s = [each for each in seconds if each is not None]
    return DumpState(max(known_s) if len(known_s) == len(seconds) else None, alone_s)
