"""An array of a run that is being written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError, SwatheError
from swathe.runs.collective import agreement, collect_shards
from swathe.runs.pattern import Division, Pattern
from swathe.runs.run_storage import Dump, RunStorage, group_folder
from swathe.runs.zarr_group import SLOTS, shard_name

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
        self.division: Division = pattern.division(settings.shape, storage.ranks.size)
        self._dumps: list[Dump] = []
        self._slots: list[int | None] = [None] * SLOTS
        self._iterations: set[int] = set()

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Return the shape of the block of this rank."""
        return self.division.block_shape(self._storage.ranks.rank)

    @property
    def is_durable(self) -> bool:
        """Check whether the catalogue has all dumps that were written."""
        return not self._dumps

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
        ranks, settings = self._storage.ranks, self.settings
        with agreement(ranks, f"{self.name} {iteration}") as answer:
            elements = self._check(iteration, block)
            answer.value = self._count_durable()
        if settings.is_disabled or iteration % settings.every:
            return
        with agreement(ranks):
            self._keep(min(answer.values))
        dump = self._next_dump(int(iteration))
        self._iterations.add(dump.iteration)
        # Before its objects are written: an error of one is raised by `sync`.
        self._dumps.append(dump)
        dump.written = self._storage.write(self._objects(dump, elements))

    def sync(self) -> None:
        """Wait until all dumps are durable, and the catalogue says so. All ranks call it.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        with agreement(self._storage.ranks, f"{self.name} sync"):
            for dump in self._dumps:
                dump.wait()
        with agreement(self._storage.ranks):
            self._keep(len(self._dumps))

    def keep_durable(self) -> None:
        """Record the dumps that are durable, up to the first that is not, in a run that failed."""
        whole = 0
        for dump in self._dumps:
            try:
                dump.wait()
            except SwatheError:
                break
            whole += 1
        self._keep(whole)

    def _count_durable(self) -> int:
        """Return how many dumps this rank has written, up to the first that it has not."""
        for number, dump in enumerate(self._dumps):
            if not dump.is_written:
                return number
            dump.wait()
        return len(self._dumps)

    def _keep(self, count: int) -> None:
        """Record that the first dumps are durable."""
        for dump in self._dumps[:count]:
            if self.settings.mode == "overwrite":
                self._slots[dump.slot] = dump.iteration
                self._storage.tell_iterations(self.name, dump.store, self._slots)
            self._storage.keep(self._record, dump, self.settings.dump_bytes)
        del self._dumps[:count]

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
        ages = [-1 if each is None else each for each in self._slots]
        slot = ages.index(min(ages))
        oldest, self._slots[slot] = self._slots[slot], None
        if oldest is not None:
            with agreement(self._storage.ranks):
                self._storage.forget(self._record, oldest)
                self._storage.tell_iterations(self.name, placement.store, self._slots)
        return Dump(iteration, slot, placement.store, time.perf_counter())

    def _objects(self, dump: Dump, block: NDArray[Any]) -> Iterator[tuple[str, Content]]:
        """Yield the shards that this rank writes: names and contents."""
        folder = group_folder(self._storage.record, dump.store)
        sharding: Any = self.settings.sharding
        for place, elements in collect_shards(self.division, sharding, self._storage.ranks, block):
            name = f"{folder}/{shard_name(self.name, dump.slot, place)}"
            yield name, sharding.encode(elements)
