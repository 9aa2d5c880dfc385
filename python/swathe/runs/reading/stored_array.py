"""Read an array of a run: where each iteration lies is known to the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from swathe.core.errors import (
    ChangedError,
    FormatError,
    NoSuchArrayError,
    NoSuchRunError,
    NotFoundError,
    SourceError,
)
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.storage.zarr_group import group_folder, shard_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from astropy.table import Table
    from numpy.typing import DTypeLike, NDArray

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpRecord, FailoverRecord, RunArrayRecord, RunRecord
    from swathe.files.array import Array

T = TypeVar("T")
Place: TypeAlias = tuple[str, int]
"""Where a dump lies: its group, and its place along the first axis of its array."""
Reopen: TypeAlias = "Callable[[], AbstractContextManager[Catalog]]"
FAULTS = (NotFoundError, NoSuchArrayError, FormatError, SourceError)
"""What reading where a dump no longer lies raises."""
MOST_MOVES = 5
"""How often a dump is looked for anew by one read."""
MOST_NAMES = 12
"""Names or iterations in a message, at most."""


class StoredArray(Mapping[int, "StoredDump"]):
    """The dumps of an array by iteration.

    Attributes:
        name: its name.
        settings: its settings.
        dumps: where its iterations lie.
        failovers: the stores that it has left, and why.
    """

    def __init__(
        self,
        run: RunRecord,
        array: RunArrayRecord,
        dumps: list[DumpRecord],
        failovers: Sequence[FailoverRecord] = (),
        reopen: Reopen | None = None,
    ) -> None:
        """Set the array and where its iterations lie.

        Args:
            run: the run.
            array: the array.
            dumps: where its iterations lie.
            failovers: the stores that it has left.
            reopen: opens the catalogue again, to look where a dump was moved.
        """
        self.failovers = failovers
        self.name = array.name
        self._id, self._reopen = array.id, reopen
        self.settings = ArraySettings.of_record(array.settings)
        self.dumps = {dump.iteration: dump for dump in dumps}
        self._run = run

    def __getitem__(self, iteration: int) -> StoredDump:
        """Return the array at an iteration; nothing is read before its elements are.

        Raises:
            NoSuchRunError: If it was not written.
        """
        if iteration not in self.dumps:
            raise NoSuchRunError(
                f"{self._run.label}, {self.name}: expected an iteration that was written "
                f"({names_text(self.dumps)}), found {iteration!r:.40}"
            )
        dump, find = self.dumps[iteration], partial(self._find, iteration)
        place = self._place(dump)
        return StoredDump(place, self.name, iteration, self.settings, find, dump.target)

    def _find(self, iteration: int) -> Place | None:
        """Return where an iteration lies now; `None` if it is gone, or that is not known."""
        if self._reopen is None:
            return None
        with self._reopen() as catalog:
            dumps = catalog.dumps(self._id)
        return next((self._place(each) for each in dumps if each.iteration == iteration), None)

    def _place(self, dump: DumpRecord) -> Place:
        return group_folder(self._run, dump.store), dump.slot

    def targets(self, together: int = 1) -> Table:
        """Return the dumps as targets of `cut_many` or of a job, as of operation `mse`.

        Args:
            together: dumps of a target: with 2, each is a target with the next.

        Raises:
            OptionError: If there are fewer dumps, the array has one axis or grows, or the dumps of
                a target do not lie side by side.
        """
        from swathe.runs.reading.dump_targets import dump_targets

        dumps = [self.dumps[each] for each in sorted(self.dumps)]
        return dump_targets(self._run, self.name, self.settings, dumps, together)

    def __iter__(self) -> Iterator[int]:
        return iter(self.dumps)

    def __len__(self) -> int:
        return len(self.dumps)


class StoredDump:
    """An array at one iteration. A section reads only the chunks that it touches.

    NumPy, dask (`dask.array.from_array`) and xarray take it as an array.

    Attributes:
        shape: lengths of its axes.
        dtype: type of its elements.
        ndim: number of its axes.
        dims: names of its axes, if the settings have them.
    """

    def __init__(
        self,
        place: Place,
        name: str,
        iteration: int,
        settings: ArraySettings,
        find: Callable[[], Place | None] = lambda: None,
        target: str | None = None,
    ) -> None:
        """Set where it lies.

        Args:
            place: its group, and its place along the first axis of the array.
            name: the array.
            iteration: the iteration.
            settings: those of the array.
            find: returns where it lies now; it may have been moved.
            target: the store that it is being moved to.
        """
        self._iteration, self._settings, self._find = iteration, settings, find
        self.shape, self.dtype = settings.shape, np.dtype(settings.dtype)
        self.ndim, self.dims = len(self.shape), settings.dims
        self._name, self._target = name, target
        self._folder, self._slot = place

    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Return elements, as NumPy would: whole numbers, slices and `...`.

        Raises:
            NotFoundError, AccessError, SourceError: If it cannot be read.
            ChangedError: If it was moved or replaced meanwhile, and is not found again.
            FormatError: If it is damaged.
            RegionError: If an index is out of range.
        """
        indices = index if isinstance(index, tuple) else (index,)
        return self._where_it_lies(lambda: self._read(indices))

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes of the stored array, such as `units`; errors as of elements."""
        return self._where_it_lies(lambda: self._array.attrs)

    def _where_it_lies(self, read: Callable[[], T]) -> T:
        """Return what is read; if it was moved meanwhile, from its new place."""
        for attempt in range(MOST_MOVES):
            try:
                return read()
            except FAULTS as error:
                # Moved away and back, it lies where it did; and what lists a server may find a
                # folder of another dump that is removed then.
                if not self._follow(isinstance(error, ChangedError)) and attempt > 0:
                    raise
        return read()

    def _read(self, indices: tuple[Any, ...]) -> NDArray[Any]:
        array = self._array
        try:
            return np.asarray(array[(self._slot, *indices)])
        except FormatError as error:
            raise FormatError(
                f"{self._label}, iteration {self._iteration}: a shard is damaged or cut short: "
                f"{error}"
            ) from error

    def _follow(self, has_changed: bool) -> bool:
        """Look where it lies now; return whether to read it there.

        Args:
            has_changed: whether it may lie where it was, with other metadata.
        """
        place = self._find()
        is_same = place == (self._folder, self._slot)
        if place is None or (is_same and (self._target is not None or not has_changed)):
            return False
        self._folder, self._slot = place
        self._target = None
        self.__dict__.pop("_array", None)
        return True

    @property
    def _label(self) -> str:
        return f"{self._folder}, array {self._name}"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all elements; each call reads them anew."""
        if copy is False:
            raise ValueError("a stored array is read: there is no array without a copy")
        return self[...].astype(self.dtype if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return f"<StoredDump {self._folder}/{self._name}[{self._slot}] {self.shape} {self.dtype}>"

    @cached_property
    def _array(self) -> Array:
        label = self._label
        array, shards = open_array(self._folder, self._name, self._slot)
        expected_shape = (*array.shape[:1], *self.shape)
        if array.shape != expected_shape or array.dtype != self.dtype or self._slot < 0:
            raise FormatError(
                f"{label}: expected {expected_shape}, {self.dtype}, found {array.shape}, "
                f"{array.dtype}"
            )
        if self._settings.mode == "overwrite":
            iterations = _iterations(array.attrs.get("iterations", ()), label)
            if iterations[self._slot : self._slot + 1] != [self._iteration]:
                raise ChangedError(
                    f"{label}: iteration {self._iteration} was replaced by a later one"
                )
        self._check_shards(len(shards))
        return array

    def _check_shards(self, number: int) -> None:
        """Check that all shards were there: one that was not would be read as fill."""
        count, label = self._settings.sharding.count, f"{self._label}, iteration {self._iteration}"
        if number == count:
            return
        if self._target is not None:
            raise ChangedError(f"{label}: was moved to {self._target}; open the run again")
        raise FormatError(f"{label}: expected {count} shards, found {number}")


def _iterations(value: Any, label: str) -> list[int | None]:
    """Return the iterations of the places of an array, from its attribute.

    Raises:
        FormatError: If it is none.
    """
    try:
        # A list with null, of a place without a dump, is given as its text.
        return list(json.loads(value) if isinstance(value, str) else value)
    except (TypeError, ValueError) as error:
        raise FormatError(f"{label}: expected a list of iterations, found {value!r:.80}") from error


def open_array(folder: str, name: str, *place: int) -> tuple[Array, set[str]]:
    """Return an array of a group, and the names of its shards as the array is read.

    An array stays as it was opened. Reading a shard that was removed or replaced since is an error.

    Args:
        folder: the group.
        name: its array.
        place: where the shards lie along the first axes of their grid; all of them if not given.

    Raises:
        NotFoundError, AccessError, SourceError: If the group cannot be read.
        FormatError: If it is no Zarr.
        NoSuchArrayError: If it has no such array.
    """
    from swathe.files.array_file import ArrayFile
    from swathe.files.file import open as open_file

    # Its own folder: to list those of all arrays takes a request for each, and there are thousands.
    file = open_file(f"{folder.rstrip('/')}/{name}/")
    if not isinstance(file, ArrayFile):
        raise FormatError(f"{folder}, array {name}: expected a Zarr")
    shards = shard_name(name, *place).removeprefix(f"{name}/")
    names = file.member_names(f"{shards}/")
    return file["/"], {f"{name}/{each}" for each in names if "/." not in each}


def names_text(names: Mapping[Any, object]) -> str:
    """Return the first names of arrays or iterations, for a message."""
    text = ", ".join(str(name) for name, _ in zip(names, range(MOST_NAMES), strict=False))
    return f"{text}, ..." if len(names) > MOST_NAMES else text or "there is none"
