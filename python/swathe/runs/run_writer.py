"""A run of an application that writes its arrays to stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.collective import agreement
from swathe.runs.run_array import RunArray
from swathe.runs.run_settings import ArraySettings, RunSettings
from swathe.runs.run_storage import RunStorage

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.ranks import Ranks


class Run:
    """A run of an application. The end of `with` waits until all dumps are durable.

    Each method is called by all ranks in the same order. An error of one rank is raised on all.

    Attributes:
        iterations: number of the last iteration; the first is 0.
        arrays: the arrays by name.
    """

    def __init__(self, settings: RunSettings, ranks: Ranks, default: str | None = None) -> None:
        """Begin a run: it gets a number in the catalogue.

        Args:
            settings: name, iterations, and settings of arrays that take the place of those in the
                program.
            ranks: the processes that share each array.
            default: store of arrays without a location.

        Raises:
            CatalogError: If the catalogue cannot be written.
        """
        self.iterations = settings.iterations
        self.arrays: dict[str, RunArray] = {}
        self._settings, self._ranks = settings, ranks
        self._storage = RunStorage(settings, ranks, default)

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
        purpose: str | None = None,
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
            mode: `create`, `overwrite` (only the last dump is kept) or `append`.
            purpose: `analyse`, `visualise`, `checkpoint` or `archive`.
            within_s: time for writing all its dumps, seconds.
            dims: names of the axes.

        Raises:
            SettingsError, OptionError: If an argument is invalid, or the run has such an array.
            NoSuchStoreError: If a location is no store that can be written to.
            LimitError: If its stores have too little room.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        with agreement(self._ranks, f"array {name}"):
            values: dict[str, Any] = {"every": every, "pattern": pattern, "mode": mode}
            values |= {"shape": list(shape), "dtype": np.dtype(dtype).str, "dims": list(dims)}
            values["location"] = location if isinstance(location, str) else list(location)
            values |= {"purpose": purpose} if purpose is not None else {}
            values |= {"within_s": within_s} if within_s is not None else {}
            settings = self._merge(name, values)
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
        """End the run. After an error of the program, what is durable is recorded."""
        is_whole = False
        try:
            if error is None:
                self.sync()
                is_whole = True
            elif self._ranks.size == 1:
                for array in self.arrays.values():
                    array.keep_durable()
        finally:
            self._storage.end("complete" if is_whole else "failed")

    def _merge(self, name: str, values: Mapping[str, Any]) -> ArraySettings:
        """Return the settings of an array: those of the file take the place of those given."""
        if name in self.arrays:
            raise OptionError(f"array {name}: the run has one of this name already")
        run = RunSettings.from_mapping({"name": "run", "iterations": 0, "arrays": {name: values}})
        settings = run.arrays[name]
        ours = self._settings.arrays.get(name)
        if ours is None:
            return settings
        for key in ("shape", "dtype"):
            if getattr(ours, key) != getattr(settings, key):
                raise OptionError(
                    f"array {name}: expected {key} {getattr(settings, key)} as in the program, "
                    f"found {getattr(ours, key)} in the settings of the run"
                )
        return ours
