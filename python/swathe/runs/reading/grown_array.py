"""Read an array of mode `append`: the rows of its dumps that are durable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe.core.errors import FormatError, NoSuchRunError
from swathe.files.slices import axis_range, one_per_axis
from swathe.runs.reading.stored_array import FAULTS, MOST_MOVES, Reopen, StoredArray, open_array
from swathe.runs.storage.zarr_group import group_folder, shard_name

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from swathe.catalog.records.runs import DumpRecord, FailoverRecord, RunArrayRecord, RunRecord
    from swathe.files.array import Array


class Segment(NamedTuple):
    """Rows `[first, stop)` that follow each other in one store."""

    store: str
    first: int
    stop: int


class GrownArray(StoredArray):
    """The rows of an array, as one array: `array[...]`, `array[5:9, 2]`.

    NumPy, dask (`dask.array.from_array`) and xarray take it as an array.

    Attributes:
        shape: lengths of its axes; what is written later is not in it.
        dtype: type of its elements.
        ndim: number of its axes.
        dims: names of its axes, if the settings have them.
    """

    def __init__(
        self,
        run: RunRecord,
        array: RunArrayRecord,
        dumps: list[DumpRecord],
        failovers: Sequence[FailoverRecord] = (),
        reopen: Reopen | None = None,
    ) -> None:
        """Set the array and where its rows lie."""
        super().__init__(run, array, dumps, failovers, reopen)
        self._rows, self._segments = self._rows_and_segments(dumps)
        length = self._segments[-1].stop if self._segments else 0
        self.shape = (length, *self.settings.shape[1:])
        self.dtype, self.ndim = np.dtype(self.settings.dtype), len(self.shape)
        self.dims = self.settings.dims
        self._arrays: dict[Segment, Array] = {}

    def _rows_and_segments(
        self, dumps: Sequence[DumpRecord]
    ) -> tuple[dict[int, slice], list[Segment]]:
        """Return the rows of each iteration, and where they lie."""
        rows: dict[int, slice] = {}
        segments: list[Segment] = []
        # The rows of a dump that is not durable end the array.
        length = 0
        for dump in sorted(dumps, key=lambda each: each.slot):
            if dump.slot != length:
                break
            stop = length + dump.bytes // self.settings.row_bytes
            rows[dump.iteration] = slice(length, stop)
            last = segments[-1] if segments else None
            if last is not None and last.store == dump.store:
                segments[-1] = last._replace(stop=stop)
            else:
                segments.append(Segment(dump.store, length, stop))
            length = stop
        return rows, segments

    def rows_of(self, iteration: int) -> slice:
        """Return the rows that were added at an iteration.

        Raises:
            NoSuchRunError: If there are none.
        """
        if iteration not in self._rows:
            raise NoSuchRunError(
                f"{self._run.label}, {self.name}: expected an iteration that was written, found "
                f"{iteration!r:.40}"
            )
        return self._rows[iteration]

    def __getitem__(self, index: Any) -> Any:
        """Return elements, as NumPy would: whole numbers, slices and `...`.

        Raises:
            NotFoundError, AccessError, SourceError: If it cannot be read.
            FormatError: If it is damaged.
            RegionError: If an index is out of range.
        """
        indices = index if isinstance(index, tuple) else (index,)
        spans, within = [], []
        for each, length in zip(one_per_axis(indices, self.ndim), self.shape, strict=True):
            first, stop, rest = axis_range(each, length)
            spans.append(slice(first, stop))
            within.append(rest)
        dots = (Ellipsis,) if Ellipsis in indices else ()
        return self._read(*spans)[(*dots, *within)]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all elements; each call reads them anew."""
        if copy is False:
            raise ValueError("a stored array is read: there is no array without a copy")
        elements: NDArray[Any] = self[...]
        return elements.astype(self.dtype if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return f"<GrownArray {self._run.label}/{self.name} {self.shape} {self.dtype}>"

    def _read(self, rows: slice, *rest: slice) -> NDArray[Any]:
        for attempt in range(MOST_MOVES):
            try:
                return self._read_segments(rows, *rest)
            except FAULTS:
                # Moved away and back, they lie where they did.
                if not self._look_again() and attempt > 0:
                    raise
        return self._read_segments(rows, *rest)

    def _look_again(self) -> bool:
        """Look where the rows lie now; return whether they were moved."""
        if self._reopen is None:
            return False
        with self._reopen() as catalog:
            _, segments = self._rows_and_segments(catalog.dumps(self._id))
        has_moved = segments != self._segments
        self._segments = segments
        self._arrays.clear()
        return has_moved

    def _read_segments(self, rows: slice, *rest: slice) -> NDArray[Any]:
        parts = []
        for segment in self._segments:
            first, stop = max(rows.start, segment.first), min(rows.stop, segment.stop)
            if first < stop:
                parts.append(self._array(segment)[(slice(first, stop), *rest)])
        if not parts:
            shape = [0, *(span.stop - span.start for span in rest)]
            return np.empty(shape, self.dtype)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _array(self, segment: Segment) -> Array:
        if segment not in self._arrays:
            folder = group_folder(self._run, segment.store)
            label = f"{folder}, array {self.name}"
            array, shards = open_array(folder, self.name)
            has = array.shape[0] >= segment.stop if array.shape else False
            if array.shape[1:] != self.shape[1:] or array.dtype != self.dtype or not has:
                raise FormatError(
                    f"{label}: expected {self.shape}, {self.dtype}, found {array.shape}, "
                    f"{array.dtype}"
                )
            self._check_shards(label, shards, segment)
            self._arrays[segment] = array
        return self._arrays[segment]

    def _check_shards(self, label: str, names: Set[str], segment: Segment) -> None:
        """Check that all shards were there: one that was not would be read as fill."""
        sharding = self.settings.sharding
        height = sharding.shard_shape[0]
        places = range(segment.first // height, -(-segment.stop // height))
        for place in product(places, *map(range, sharding.grid[1:])):
            if (name := shard_name(self.name, *place)) not in names:
                raise FormatError(f"{label}: expected the shard {name}, found none")
