"""A run of an application that writes its arrays to stores."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.definition.run_settings import (
    ArraySettings,
    RunSettings,
    plain_number,
    read_arrays,
)
from swathe.runs.writing.growing_array import GrowingArray
from swathe.runs.writing.run_array import RunArray
from swathe.runs.writing.run_storage import RunStorage

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.writing.dump import Dump
    from swathe.runs.writing.rank_group import RankGroup


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
        purpose: str | None = None,
        reads: float | None = None,
        read_within_s: float | None = None,
        failover: bool | str | Sequence[str] = True,
        via: str | None = None,
        drain: str = "end",
        write: str = "auto",
        chunks: Sequence[int] = (),
        shards: Sequence[int] = (),
        units: str = "",
        long_name: str = "",
        standard_name: str = "",
    ) -> RunArray:
        """Add an array to the run, and choose its stores.

        Args:
            name: its name.
            shape: lengths of its axes, over all ranks.
            dtype: type of the elements.
            every: iterations from one dump to the next, from 0 on.
            pattern: how its axes are divided over ranks, as `BBB`; by default the first by blocks.
            location: a store, a hint or a list of them; see `ArraySettings`.
            mode: `create`; `overwrite`: only the last dump is kept; or `append`: each dump adds
                rows, of any number, along the first axis.
            within_s: time for writing all its dumps, seconds.
            dims: names of the axes.
            purpose: what it is for: `analyse`, `visualise`, `checkpoint` or `archive`.
            reads: how often it is read; by default as its purpose says.
            read_within_s: time for reading it once, seconds.
            failover: stores that its dumps go to if one fails in mid-run, after the rest of
                `location`; true for all of the same or a nearer tier, false for none.
            via: near store that dumps are written to first; they are moved on in the background.
            drain: whether the end of the run waits for that, `end`, or not, `later`.
            write: how ranks write it: `collective`, `independent`, `subfile`, or `auto`: what is
                predicted to cost least.
            chunks: lengths of a chunk; by default of at most 1 MiB.
            shards: lengths of a shard, which is an object: whole chunks.
            units: unit of the elements, as `K` or `m s-1`; an attribute of the stored array.
            long_name: what they are, in words; an attribute, too.
            standard_name: their name in the CF conventions; an attribute, too.

        Raises:
            SettingsError, OptionError: If an argument is invalid, or the run has such an array, or
                it cannot be written so.
            NoSuchStoreError: If a store of `location`, `failover` or `via` cannot be written to.
            LimitError: If its stores have too little room, or a limit of time cannot be met.
            OutputError, AccessError, SourceError: If its metadata cannot be written.
        """
        self._storage.check_open()
        with self._group.step() as step:
            values = {"every": plain_number(every), "pattern": pattern, "mode": mode}
            values |= {"shape": _plain_list(shape), "dtype": _type_text(dtype)}
            values |= {"dims": _plain_list(dims), "location": location}
            wishes = {"within_s": within_s, "purpose": purpose, "via": via}
            wishes |= {"reads": reads, "read_within_s": read_within_s}
            values |= {key: each for key, each in wishes.items() if each is not None}
            values |= {"failover": _plain_list(failover), "drain": drain}
            values |= {"write": write, "chunks": _plain_list(chunks)}
            values |= {"shards": _plain_list(shards), "units": units}
            values |= {"long_name": long_name, "standard_name": standard_name}
            settings = self._merge(name, values)
            step.what = f"array {name}: {settings}"
        kind = GrowingArray if settings.mode == "append" else RunArray
        array = self.arrays[name] = kind(self._storage, name, settings)
        return array

    def sync(self) -> None:
        """Wait until all that was written is durable, and the catalogue says so.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            CatalogError: If the catalogue cannot be written.
        """
        self._storage.check_open()
        self._storage.queue.finish("sync", lambda dump: dump.near is None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run. After an error, what is durable on all ranks is recorded.

        Raises:
            OutputError, AccessError, SourceError: If a dump cannot be written.
            NotFoundError: If dumps cannot be moved on, since their near store cannot be read.
            CatalogError: If the catalogue cannot be written.
        """
        is_whole = False
        try:
            if error is None:
                self.sync()
                self._storage.queue.finish("drain", _is_drained_at_end)
                self._storage.queue.check_rest()
                is_whole = True
            else:
                self._group.leave(error)
        finally:
            try:
                self._storage.queue.keep_at_end()
            finally:
                self._storage.end("complete" if is_whole else "failed")
        for name in self._overrides.keys() - self.arrays.keys():
            log.warning(
                "%s: the settings have an array %s, the program none", self.record.label, name
            )

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


def _is_drained_at_end(dump: Dump) -> bool:
    return dump.near is not None and dump.array.settings.drain == "end"


def _plain_list(values: Any) -> Any:
    """Return a sequence as a list with Python's numbers; what is none is refused later."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str)
    return [plain_number(each) for each in values] if is_list else values


def _type_text(dtype: Any) -> Any:
    """Return the text of a type of NumPy; what is none is refused later."""
    try:
        return dtype if isinstance(dtype, str) else np.dtype(dtype).str
    except TypeError:
        return dtype
