"""A run of an application that writes its arrays to stores."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.run_array import RunArray
from swathe.runs.run_settings import ArraySettings, RunSettings, plain_number, read_arrays
from swathe.runs.run_storage import RunStorage

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.rank_group import RankGroup


log = logging.getLogger(__name__)


class Run:
    """A run of an application. The end of `with` waits until all dumps are durable.

    Each method is called by all ranks in the same order. An error of one rank is raised on all.

    Attributes:
        iterations: number of the last iteration; the first is 0.
        arrays: the arrays by name.
    """

    def __init__(
        self,
        settings: RunSettings,
        group: RankGroup,
        default: str | None = None,
        overrides: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Begin a run: it gets a number in the catalogue.

        Args:
            settings: name and iterations of the run.
            group: the processes that share each array.
            default: store of arrays without a location.
            overrides: for arrays by name, settings that take the place of those in the program.

        Raises:
            CatalogError: If the catalogue cannot be written.
        """
        self.iterations = settings.iterations
        self.arrays: dict[str, RunArray] = {}
        self._overrides, self._group = dict(overrides or {}), group
        self._lengths: dict[str, int] = {}
        self._storage = RunStorage(settings, group, default)

    @property
    def record(self) -> RunRecord:
        """Return the run as the catalogue has it: its number and label."""
        return self._storage.record

    def array(
        self,
        name: str,
        shape: Sequence[int],
        dtype: Any = "f4",
        *,
        every: int = 1,
        pattern: str = "",
        location: str | Sequence[str] = "default",
        mode: str = "create",
        within_s: float | None = None,
        dims: Sequence[str] = (),
    ) -> RunArray:
        """Add an array to the run, and choose its stores.

        Args:
            name: its name.
            shape: lengths of its axes, over all ranks.
            dtype: type of the elements.
            every: iterations from one dump to the next, from 0 on.
            pattern: how its axes are divided over ranks, as `BBB`; by default the first by blocks.
            location: a store, a hint or a list of them; see `ArraySettings`.
            mode: `create`, or `overwrite`: only the last dump is kept.
            within_s: time for writing all its dumps, seconds.
            dims: names of the axes.

        Raises:
            SettingsError, OptionError: If an argument is invalid, or the run has such an array.
            NoSuchStoreError: If a location is no store that can be written to.
            LimitError: If its stores have too little room.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        self._storage.check_open()
        with self._group.step() as step:
            values = {"every": plain_number(every), "pattern": pattern, "mode": mode}
            values |= {"shape": _plain_list(shape), "dtype": _type_text(dtype)}
            values |= {"dims": _plain_list(dims), "location": location}
            values |= {"within_s": within_s} if within_s is not None else {}
            settings = self._merge(name, values)
            step.what = f"array {name}: {settings}"
        array = self.arrays[name] = RunArray(self._storage, name, settings)
        return array

    def sync(self) -> None:
        """Wait until all that was written is durable, and the catalogue says so.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        for array in self.arrays.values():
            array.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run. After an error, what is durable on all ranks is recorded."""
        is_whole = False
        try:
            if error is None:
                self.sync()
                is_whole = True
            else:
                self._group.leave(error)
        finally:
            try:
                self._keep_at_end()
            finally:
                self._storage.end("complete" if is_whole else "failed")
        for name in self._overrides.keys() - self.arrays.keys():
            log.warning(
                "%s: the settings have an array %s, the program none", self.record.label, name
            )

    def _keep_at_end(self) -> None:
        """Record the dumps that are durable on all ranks, but not recorded: after an error."""
        seconds = {name: array.end_seconds() for name, array in self.arrays.items()}
        of_ranks = self._group.gather_at_end(seconds)
        for name, array in self.arrays.items():
            if all(name in each for each in of_ranks):
                array.keep([each[name] for each in of_ranks])

    def _merge(self, name: str, values: Mapping[str, Any]) -> ArraySettings:
        """Return the settings of an array: those of the file take the place of those given."""
        if name in self.arrays:
            raise OptionError(f"array {name}: the run has one of this name already")
        overrides = self._overrides.get(name, {})
        settings = self._read(name, values)
        result = self._read(name, {**values, **overrides})
        for key in ("shape", "dtype"):
            if getattr(result, key) != getattr(settings, key):
                raise OptionError(
                    f"array {name}: expected {key} {getattr(settings, key)} as in the program, "
                    f"found {getattr(result, key)} in the settings of the run"
                )
        for axis, length in zip(result.dims, result.shape, strict=False):
            if self._lengths.setdefault(axis, length) != length:
                raise OptionError(
                    f"array {name}: expected axis {axis} of length {self._lengths[axis]}, as in an "
                    f"array before, found {length}"
                )
        return result

    def _read(self, name: str, values: Mapping[str, Any]) -> ArraySettings:
        return dict(read_arrays({name: values}, self.iterations))[name]


def _plain_list(values: Any) -> Any:
    """Return a sequence as a list with Python's numbers; what is none is refused later."""
    return [plain_number(each) for each in values] if isinstance(values, Iterable) else values


def _type_text(dtype: Any) -> Any:
    """Return the text of a type of NumPy; what is none is refused later."""
    try:
        return dtype if isinstance(dtype, str) else np.dtype(dtype).str
    except TypeError:
        return dtype
