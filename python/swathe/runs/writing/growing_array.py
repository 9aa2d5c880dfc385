"""An array of mode `append` that is being written: each dump adds rows along its first axis."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.writing.dump import Dump
from swathe.runs.writing.run_array import RunArray
from swathe.runs.writing.shard_exchange import ShardExchange, Shards

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.runs.definition.run_settings import ArraySettings
    from swathe.runs.definition.shards import Box, Place
    from swathe.runs.writing.dump_queue import Report
    from swathe.runs.writing.run_storage import RunStorage


class GrowingArray(RunArray):
    """An array that grows by the rows of all ranks, in their order, at each dump.

    A shard has as many rows as a dump is expected to add, at most. The last one may be partly full:
    the rank that writes it has its rows in memory, and writes it again with those of the next dump.
    """

    def __init__(self, storage: RunStorage, name: str, settings: ArraySettings) -> None:
        """Add an array to the run; the errors are those of `RunStorage.add`."""
        super().__init__(storage, name, settings)
        self._length = 0
        self._last_shards: dict[Place, NDArray[Any]] = {}

    def _check_block(self, elements: NDArray[Any]) -> None:
        shape, dtype = self.settings.shape[1:], np.dtype(self.settings.dtype)
        has_rows = elements.ndim == len(shape) + 1 and elements.shape[1:] == shape
        if not has_rows or elements.dtype != dtype:
            shape_text = ", ".join(map(str, ("rows", *shape)))
            raise OptionError(
                f"array {self.name}: expected a block of ({shape_text}), {dtype}, found "
                f"{elements.shape}, {elements.dtype}"
            )

    def _share_bytes(self, reports: Sequence[Report]) -> int:
        """Return the bytes of the shards of a rank, at most."""
        sharding = self.settings.sharding
        boxes = len(self._boxes(sum(each.rows for each in reports)))
        return -(-boxes // self._storage.group.size) * sharding.shard_bytes

    def _next_dump(self, iteration: int, reports: Sequence[Report]) -> Dump:
        # The last shard is written again, and may not be overtaken by what it had before.
        self.sync()
        store = self._array.store_of(iteration // self.settings.every)
        rows = sum(each.rows for each in reports)
        return Dump(self._array, iteration, self._length, store, time.perf_counter(), rows=rows)

    def _collect(self, elements: NDArray[Any], reports: Sequence[Report]) -> Shards:
        """Return the shards of this rank, with the rows that they had before."""
        boxes, group = self._boxes(sum(each.rows for each in reports)), self._storage.group
        grid = self.settings.sharding.grid[1:]
        # Numbers in C order of a grid whose first axis has no end: the same in all dumps.
        shards_per_row = math.prod(grid)
        numbers = [
            place[0] * shards_per_row + (int(np.ravel_multi_index(place[1:], grid)) if grid else 0)
            for place, _ in boxes
        ]
        indices, first = [], self._length
        for each in reports:
            whole = [slice(0, length) for length in self.settings.shape[1:]]
            indices.append((slice(first, first + each.rows), *whole))
            first += each.rows
        exchange = ShardExchange(indices, boxes, [each % group.size for each in numbers], group)
        new_rows, before = exchange.collect(elements), self._last_shards

        def shards() -> Iterator[tuple[Place, NDArray[Any]]]:
            for place, rows in new_rows():
                old = before.get(place)
                yield place, rows if old is None else np.concatenate([old, rows])

        height = self.settings.sharding.shard_shape[0]
        self._length = first
        if boxes:
            self._last_shards = {
                place: rows.copy() for place, rows in shards() if len(rows) < height
            }
        return shards

    def _boxes(self, rows: int) -> list[tuple[Place, Box]]:
        """Return the shards that the next rows belong to: their places, and the new elements."""
        sharding, first = self.settings.sharding, self._length
        height, stop = sharding.shard_shape[0], first + rows
        if not rows:
            return []
        boxes = []
        for at in range(first // height, -(-stop // height)):
            span = slice(max(first, at * height), min(stop, (at + 1) * height))
            for rest in product(*map(range, sharding.grid[1:])):
                boxes.append(((at, *rest), (span, *sharding.box((0, *rest))[1:])))
        return boxes
