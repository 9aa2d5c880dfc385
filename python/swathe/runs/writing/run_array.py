"""An array of a run that is being written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.definition.pattern import Division, Pattern
from swathe.runs.definition.run_settings import SLOTS
from swathe.runs.storage.object_writer import MOST_WAITING
from swathe.runs.writing.dump import Dump
from swathe.runs.writing.run_storage import RunStorage
from swathe.runs.writing.shard_exchange import ShardExchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from swathe.runs.definition.run_settings import ArraySettings
    from swathe.runs.definition.shards import Place
    from swathe.runs.storage.object_writer import Content
    from swathe.runs.writing.dump_queue import Report
    from swathe.runs.writing.shard_exchange import Shards


class RunArray:
    """An array of a run.

    Attributes:
        name: its name.
        settings: its settings, with the method and the shards that were chosen.
        division: which elements each rank has.
    """

    def __init__(self, storage: RunStorage, name: str, settings: ArraySettings) -> None:
        """Add an array to the run; the errors are those of `RunStorage.add`."""
        self.name, self._storage = name, storage
        pattern = Pattern.parse(settings.pattern, len(settings.shape))
        self.division: Division = pattern.division(settings.shape, storage.group.size)
        self._array = storage.add(name, settings)
        self.settings = self._array.settings
        self._iterations: set[int] = set()

    @cached_property
    def block_shape(self) -> tuple[int, ...]:
        """Return the shape of the block of this rank; of mode `append`, one as is expected."""
        return self.division.block_shape(self._storage.group.rank)

    @cached_property
    def _exchange(self) -> ShardExchange:
        sharding, group = self.settings.sharding, self._storage.group
        boxes = [(place, sharding.box(place)) for place in sharding.places()]
        indices = [self.division.indices(rank) for rank in range(group.size)]
        is_local = self.settings.write == "independent"
        return ShardExchange(indices, boxes, self._owners, group, is_local=is_local)

    @cached_property
    def _owners(self) -> list[int]:
        """Return the ranks that write the shards; those that are dealt are spread over all."""
        sharding, size = self.settings.sharding, self._storage.group.size
        if self.settings.write == "independent":
            return [self.division.owner(sharding.box(place)) for place in sharding.places()]
        writers = self._array.writers
        return [number % writers * size // writers for number in range(sharding.count)]

    @cached_property
    def _expected_bytes(self) -> int:
        """Return the bytes of the shards of a rank of a dump, at most."""
        return max(Counter(self._owners).values()) * self.settings.sharding.shard_bytes

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
        group, settings, queue = self._storage.group, self.settings, self._storage.queue
        what = f"{self.name}: write {iteration}"
        with group.step(what) as step:
            elements = self._check(iteration, block)
            report = queue.report(self._expected_bytes)
            is_written = not settings.is_disabled and iteration % settings.every == 0
            is_near = is_written and self._storage.has_near_room(settings)
            rows = len(elements) if settings.mode == "append" else 0
            step.value = report._replace(is_near=is_near, rows=rows)
        reports: Sequence[Report] = step.values
        queue.advance(reports)
        if not is_written:
            return
        size = self._share_bytes(reports)
        is_large = size > MOST_WAITING
        if size > self._expected_bytes or not all(each.has_room for each in reports):
            queue.make_room(what, size)
        dump = self._next_dump(int(iteration), reports)
        self._iterations.add(dump.iteration)
        shards = self._collect(elements, reports)
        queue.write(dump, lambda: self._objects(shards), is_large)

    def sync(self) -> None:
        """Wait until all dumps are durable, and the catalogue says so. All ranks call it.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        self._storage.check_open()
        self._storage.queue.finish(
            f"{self.name}: sync", lambda dump: dump.array is self._array and dump.near is None
        )

    def _check(self, iteration: int, block: ArrayLike) -> NDArray[Any]:
        last, elements = self._storage.record.iterations, np.asarray(block)
        if not isinstance(iteration, int | np.integer) or not 0 <= iteration <= last:
            raise OptionError(
                f"array {self.name}: expected an iteration from 0 to {last}, found "
                f"{iteration!r:.40}"
            )
        if iteration in self._iterations:
            raise OptionError(f"array {self.name}: iteration {iteration} was written before")
        self._check_block(elements)
        return elements

    def _check_block(self, elements: NDArray[Any]) -> None:
        dtype = np.dtype(self.settings.dtype)
        if elements.shape != self.block_shape or elements.dtype != dtype:
            raise OptionError(
                f"array {self.name}: expected a block of {self.block_shape}, {dtype}, found "
                f"{elements.shape}, {elements.dtype}"
            )

    def _share_bytes(self, _reports: Sequence[Report]) -> int:
        """Return the bytes of the shards of a rank of the next dump, at most."""
        return self._expected_bytes

    def _collect(self, elements: NDArray[Any], _reports: Sequence[Report]) -> Shards:
        """Return the shards that this rank writes, once all ranks have sent their elements."""
        return self._exchange.collect(elements)

    def _next_dump(self, iteration: int, reports: Sequence[Report]) -> Dump:
        """Return the dump of an iteration; the place of an older one is free then."""
        number, settings = iteration // self.settings.every, self.settings
        store = self._array.store_of(number)
        is_large = self._expected_bytes > MOST_WAITING
        if settings.via is not None and reports[0].is_near and not is_large:
            store = settings.via
        slot = number
        if settings.mode == "overwrite":
            # The dump before stays until this one is durable.
            self.sync()
            slot = self._free_slot()
        return Dump(self._array, iteration, slot, store, time.perf_counter())

    def _free_slot(self) -> int:
        """Return a place for a dump of mode `overwrite`; forget the older one of two."""
        dumps = self._array.durable
        if len(dumps) < SLOTS:
            return min(set(range(SLOTS)) - {each.slot for each in dumps.values()})
        oldest_number, oldest = next(iter(dumps.items()))
        del dumps[oldest_number]
        self._array.former.add(oldest_number)
        self._storage.forget(oldest, list(dumps.values()))
        return oldest.slot

    def _objects(self, shards: Shards) -> Iterator[tuple[Place, Content]]:
        """Yield the shards that this rank writes: places and contents."""
        for place, elements in shards():
            yield place, self.settings.sharding.encode(elements)
