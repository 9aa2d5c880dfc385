"""An array of a run that is being written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError, SwatheError
from swathe.runs.pattern import Division, Pattern
from swathe.runs.run_settings import SLOTS
from swathe.runs.run_storage import Dump, RunStorage, group_folder
from swathe.runs.shard_exchange import ShardExchange
from swathe.runs.zarr_group import shard_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from swathe.runs.object_writer import Content
    from swathe.runs.run_settings import ArraySettings


class RunArray:
    """An array of a run.

    Attributes:
        name: its name.
        settings: its settings.
        division: which elements each rank has.
    """

    def __init__(self, storage: RunStorage, name: str, settings: ArraySettings) -> None:
        """Add an array to the run; the errors are those of `RunStorage.add`."""
        self.name, self.settings = name, settings
        self._storage = storage
        self._record, self._placements = storage.add(name, settings)
        pattern = Pattern.parse(settings.pattern, len(settings.shape))
        self.division: Division = pattern.division(settings.shape, storage.group.size)
        self._dumps: list[Dump] = []
        self._slots: list[int | None] = [None] * SLOTS
        self._next_slot = 0
        self._iterations: set[int] = set()

    @cached_property
    def block_shape(self) -> tuple[int, ...]:
        """Return the shape of the block of this rank."""
        return self.division.block_shape(self._storage.group.rank)

    @cached_property
    def _exchange(self) -> ShardExchange:
        return ShardExchange(self.division, self.settings.sharding, self._storage.group)

    def write(self, iteration: int, block: ArrayLike) -> None:
        """Write the block of this rank at an iteration; return when the block may be changed.

        All ranks call it. What is not at an iteration of a dump, or disabled, is not written. It
        is durable after `Run.sync`.

        Args:
            iteration: from 0 to the last of the run.
            block: elements of this rank, of the shape `block_shape` and the type of the array.

        Raises:
            OptionError: If the iteration or the block is invalid, or it was written before, or if
                ranks write different things.
            OutputError, AccessError, SourceError: If a dump before it could not be written.
        """
        self._storage.check_open()
        group, settings = self._storage.group, self.settings
        with group.step(f"{self.name}: write {iteration}") as answer:
            elements = self._check(iteration, block)
            answer.value = self._durable_seconds()
        if all(answer.values):
            with group.step():
                self.keep(answer.values)
        if settings.is_disabled or iteration % settings.every:
            return
        dump = self._next_dump(int(iteration))
        self._iterations.add(dump.iteration)
        # Appended first, so that `sync` raises errors of its objects, and that it was interrupted.
        self._dumps.append(dump)
        dump.objects = self._storage.write(self._objects(dump, elements))

    def sync(self) -> None:
        """Wait until all dumps are durable, and the catalogue says so. All ranks call it.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        self._storage.check_open()
        with self._storage.group.step(f"{self.name}: sync") as answer:
            answer.value = [dump.wait() for dump in self._dumps]
        with self._storage.group.step():
            self.keep(answer.values)

    def end_seconds(self) -> list[float]:
        """Wait for the dumps; return the seconds of those that are durable, up to another one."""
        seconds: list[float] = []
        for dump in self._dumps:
            try:
                seconds.append(dump.wait())
            except SwatheError:
                break
        return seconds

    def _durable_seconds(self) -> list[float]:
        """Return the seconds of the dumps that this rank has written, up to one that it has not."""
        seconds: list[float] = []
        for dump in self._dumps:
            if dump.is_pending:
                break
            seconds.append(dump.wait())
        return seconds

    def keep(self, seconds: Sequence[Sequence[float]]) -> None:
        """Record the first dumps, which are durable on all ranks.

        Args:
            seconds: of each rank, the seconds that it took for each of them.
        """
        for of_ranks in zip(*seconds, strict=False):
            dump = self._dumps[0]
            if self.settings.mode == "overwrite":
                self._slots[dump.slot] = dump.iteration
                self._storage.tell_iterations(self.name, dump.store, self._slots)
            self._storage.keep(self._record, dump, self.settings.dump_bytes, max(of_ranks))
            del self._dumps[0]

    def _check(self, iteration: int, block: ArrayLike) -> NDArray[Any]:
        last, elements = self._storage.record.iterations, np.asarray(block)
        if not isinstance(iteration, int | np.integer) or not 0 <= iteration <= last:
            raise OptionError(
                f"array {self.name}: expected an iteration from 0 to {last}, found "
                f"{iteration!r:.40}"
            )
        if iteration in self._iterations:
            raise OptionError(f"array {self.name}: iteration {iteration} was written before")
        dtype = np.dtype(self.settings.dtype)
        if elements.shape != self.block_shape or elements.dtype != dtype:
            raise OptionError(
                f"array {self.name}: expected a block of {self.block_shape}, {dtype}, found "
                f"{elements.shape}, {elements.dtype}"
            )
        return elements

    def _next_dump(self, iteration: int) -> Dump:
        """Return the dump of an iteration; the place of an older one is free then."""
        number = iteration // self.settings.every
        placement = next(
            each for each in self._placements if each.first <= number < each.first + each.dumps
        )
        if self.settings.mode != "overwrite":
            return Dump(iteration, number, placement.store, time.perf_counter())
        # The dump before stays until this one is durable.
        self.sync()
        slot, self._next_slot = self._next_slot, (self._next_slot + 1) % SLOTS
        oldest, self._slots[slot] = self._slots[slot], None
        if oldest is not None:
            with self._storage.group.step():
                self._storage.forget(self._record, oldest)
                self._storage.tell_iterations(self.name, placement.store, self._slots)
        return Dump(iteration, slot, placement.store, time.perf_counter())

    def _objects(self, dump: Dump, block: NDArray[Any]) -> Iterator[tuple[str, Content]]:
        """Yield the shards that this rank writes: names and contents."""
        folder = group_folder(self._storage.record, dump.store)
        sharding = self.settings.sharding
        for place, elements in self._exchange.collect(block):
            name = f"{folder}/{shard_name(self.name, dump.slot, place)}"
            yield name, sharding.encode(elements)
