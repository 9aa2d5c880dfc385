"""The settings of a run: how long it goes on, and which arrays it writes when and where."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from swathe.core.errors import SettingsError, SwatheError
from swathe.core.toml_settings import (
    SettingsErrors,
    read_toml,
    refuse_unknown,
    section,
    value_error,
)
from swathe.core.value_errors import short_text
from swathe.runs.definition.pattern import MOST_RANKS, Pattern
from swathe.runs.definition.shards import Sharding

if TYPE_CHECKING:
    from pathlib import Path

MOST_ITERATIONS = 10**12
MOST_BYTES = 1 << 50
"""Largest array at one iteration, in bytes."""
MOST_ARRAYS = 1000
NAMES_OF_GROUP = re.compile(r"zarr\.json|iteration_.*")
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
MOST_DUMPS = 1_000_000
"""Dumps of an array in one run, at most."""
SLOTS = 2
"""Places of an array of mode `overwrite`: the dump before stays until the next one is durable."""
Mode: TypeAlias = Literal["create", "overwrite", "append"]
"""Whether an array has all its dumps, the last one only, or grows along its first axis."""
Purpose: TypeAlias = Literal["analyse", "visualise", "checkpoint", "archive"]
"""What an array is for."""
WriteMethod: TypeAlias = Literal["auto", "collective", "independent", "subfile"]
"""How ranks write an array; see `swathe.runs.planning.write_method`."""
ATTRIBUTES = ("units", "long_name", "standard_name")
"""Settings that are attributes of the stored array."""
LONGEST_TEXT = 200
"""Characters of an attribute, at most."""
MOST_OBJECTS = 1_000_000
"""Objects of a dump, if the settings say how it is cut."""
MOST_CHUNKS = 1 << 16
"""Chunks of a shard, at most: its index is read at once."""
SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
"""Bytes of elements that Zarr knows, by the kind of NumPy."""


def _plain_type(text: str) -> str:
    import numpy as np

    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"expected a NumPy type such as f4 or u1, found {text!r:.40}") from error
    if dtype.itemsize not in SIZES.get(dtype.kind, ()):
        raise ValueError(f"expected a type of numbers such as f4 or u1, found {text!r:.40}")
    return str(dtype.newbyteorder("<").str)


def _as_places(raw: object) -> tuple[str, ...]:
    places = (raw,) if isinstance(raw, str) else tuple(raw) if isinstance(raw, list | tuple) else ()
    if not places or not all(isinstance(place, str) and place for place in places):
        raise ValueError(f"expected a store, a hint or a list of them, found {short_text(raw)}")
    return places


def _as_failover(raw: object) -> bool | tuple[str, ...]:
    return raw if isinstance(raw, bool) else _as_places(raw)


def _plain_line(text: str) -> str:
    if len(text) > LONGEST_TEXT or not text.isprintable():
        raise ValueError(
            f"expected one line of up to {LONGEST_TEXT} characters, found {short_text(text)}"
        )
    return text


Length = Annotated[int, Field(ge=1, le=1 << 40)]
Name = Annotated[str, Field(pattern=rf"^{NAME}$")]
Text = Annotated[str, AfterValidator(_plain_line)]
Count = Annotated[int, Field(ge=1, le=MOST_ITERATIONS)]
Seconds = Annotated[float, Field(gt=0, le=1e12)]


@dataclass(frozen=True)
class ArraySettings:
    """An array that a run writes.

    Attributes:
        shape: Lengths of the axes.
        dtype: Type of the elements, as NumPy names it.
        every: Iterations from one dump to the next; the first dump is at iteration 0.
        pattern: How the axes are divided over ranks, as `BBB` or `BLOCK,*,CYCLIC(4)`; by default
            the first by blocks.
        location: A store, a hint (`localdisk`, `remotedisk`, `remotetape`, `default`, `auto`,
            `disable`), or a list: the first that has room; with `auto` in it, the others are the
            stores to choose from.
        mode: `create`; `overwrite`: only the last dump is kept; or `append`: the array grows along
            its first axis. The first length of `shape` is what a dump is expected to add then.
        within_s: Time for writing all its dumps, seconds.
        dims: Names of the axes.
        purpose: What it is for: `analyse`, `visualise`, `checkpoint` or `archive`.
        reads: How often it is read; by default as its purpose says.
        read_within_s: Time for reading it once, seconds.
        failover: Stores that dumps go to if a store fails in mid-run, after the rest of `location`:
            a store or a list; true for all of the same or a nearer tier, false for none.
        via: A near store that dumps are written to first.
        drain: `end`: the end of the run waits until they are moved on; or `later`.
        write: How ranks write it: `collective`, `independent`, `subfile`, or `auto`: the method
            that is predicted to cost least.
        chunks: Lengths of a chunk, which is what a section reads at least; by default of 1 MiB.
        shards: Lengths of a shard, which is an object; whole chunks.
        units: Unit of the elements, as `K` or `m s-1`; the stored array has it as its attribute.
        long_name: What they are, in words; an attribute, too.
        standard_name: Their name in the CF conventions; an attribute, too.
    """

    shape: Annotated[tuple[Length, ...], Field(min_length=1, max_length=32)]
    dtype: Annotated[str, AfterValidator(_plain_type)] = "<f4"
    every: Count = 1
    pattern: str = ""
    location: Annotated[tuple[str, ...], BeforeValidator(_as_places)] = ("default",)
    mode: Mode = "create"
    within_s: Seconds | None = None
    dims: tuple[Name, ...] = ()
    purpose: Purpose | None = None
    reads: Annotated[float, Field(ge=0, le=1e9)] | None = None
    read_within_s: Seconds | None = None
    failover: Annotated[bool | tuple[str, ...], BeforeValidator(_as_failover)] = True
    via: Annotated[str, Field(min_length=1)] | None = None
    drain: Literal["end", "later"] = "end"
    write: WriteMethod = "auto"
    chunks: tuple[Length, ...] = ()
    shards: tuple[Length, ...] = ()
    units: Text = ""
    long_name: Text = ""
    standard_name: Text = ""

    def __post_init__(self) -> None:
        """Check what concerns more than one field.

        Raises:
            OptionError: If the pattern is not one of the shape.
            SettingsError: If names of axes, chunks or shards do not fit, or a dump is too large.
        """
        ndim = len(self.shape)
        text = self.pattern or "B" + "*" * (ndim - 1)
        pattern = Pattern.parse(text, ndim)
        object.__setattr__(self, "pattern", str(pattern))
        if self.dims and (len(self.dims) != ndim or len(set(self.dims)) != ndim):
            raise SettingsError(f"dims: expected {ndim} different names, found {self.dims!r:.80}")
        if self.via is not None and self.mode != "create":
            raise SettingsError(f"via: expected mode create with it, found {self.mode}")
        if self.mode == "append" and any(axis.kind != "whole" for axis in pattern.axes[1:]):
            raise SettingsError(
                f"pattern: expected that only the first axis is divided in mode append, found "
                f"{self.pattern}"
            )
        if self.dump_bytes > MOST_BYTES:
            raise SettingsError(
                f"shape: expected at most {MOST_BYTES} bytes at one iteration, found "
                f"{self.dump_bytes}"
            )
        if self.mode == "append" and (
            self.chunks or self.shards or self.write not in ("auto", "collective")
        ):
            raise SettingsError("write: expected collective with mode append, without chunks")
        if self.chunks or self.shards or self.write == "subfile":
            self._check_objects()

    def _check_objects(self) -> None:
        """Check how a dump is cut into objects.

        Raises:
            SettingsError: If it cannot be cut so, or into too many.
        """
        for key, lengths in (("chunks", self.chunks), ("shards", self.shards)):
            if lengths and len(lengths) != len(self.shape):
                raise SettingsError(
                    f"{key}: expected {len(self.shape)} lengths, found {list(lengths)!r:.80}"
                )
        sharding = self.sharding
        chunk, shard = sharding.chunk_shape, sharding.shard_shape
        if self.write == "subfile" and self.shards not in ((), chunk):
            raise SettingsError(
                f"shards: expected those of a subfile to be as its chunks, {list(chunk)}, found "
                f"{list(self.shards)}"
            )
        for length, inner, outer in zip(self.shape, chunk, shard, strict=True):
            if inner > length or outer % inner or outer >= length + inner:
                raise SettingsError(
                    f"shards: expected whole chunks within {list(self.shape)}, found chunks of "
                    f"{list(chunk)} in shards of {list(shard)}"
                )
        if sharding.count > MOST_OBJECTS or sharding.chunks_of_shard > MOST_CHUNKS:
            raise SettingsError(
                f"shards: expected at most {MOST_OBJECTS} of a dump, each with at most "
                f"{MOST_CHUNKS} chunks, found {sharding.count} with {sharding.chunks_of_shard}"
            )

    @classmethod
    def of_record(cls, values: Mapping[str, Any]) -> ArraySettings:
        """Return the settings that the catalogue has of an array.

        Raises:
            SettingsError: If they are invalid.
        """
        return section(
            "array", cls, {key: each for key, each in values.items() if each is not None}
        )

    @property
    def attributes(self) -> dict[str, str]:
        """Return the attributes that the stored array has by the CF conventions."""
        values = {key: str(getattr(self, key)) for key in ATTRIBUTES}
        return {key: value for key, value in values.items() if value}

    @property
    def dump_bytes(self) -> int:
        """Return the size of one dump in bytes."""
        return math.prod(self.shape) * self.itemsize

    @property
    def itemsize(self) -> int:
        """Return the size of an element in bytes."""
        import numpy as np

        return np.dtype(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Return the size of what one index of the first axis has, in bytes."""
        return self.dump_bytes // self.shape[0]

    @property
    def sharding(self) -> Sharding:
        """Return how one dump is cut into shards."""
        import numpy as np

        has_index = self.write != "subfile"
        return Sharding(self.shape, np.dtype(self.dtype), self.chunks, self.shards, has_index)

    def shards_of(self, dump_bytes: int) -> int:
        """Return the number of shards of a dump; one of mode `append` may have any size."""
        sharding = self.sharding
        if self.mode != "append":
            return sharding.count
        rows = -(-dump_bytes // self.row_bytes)
        return max(-(-rows // sharding.shard_shape[0]), 1) * math.prod(sharding.grid[1:])

    def stored_dumps(self, iterations: int) -> int:
        """Return for how many dumps there must be room."""
        dumps = self.dumps(iterations)
        return min(dumps, SLOTS) if self.mode == "overwrite" else dumps

    def dumps_to_read(self, dumps: int) -> int:
        """Return how many of its dumps are read at once: of checkpoints, the last."""
        return min(dumps, 1) if self.mode == "overwrite" else dumps

    @property
    def is_disabled(self) -> bool:
        """Check whether it is not to be written."""
        return tuple(place.lower() for place in self.location) == ("disable",)

    def dumps(self, iterations: int) -> int:
        """Return the number of dumps of a run: at 0, `every`, 2 `every` ... to its end."""
        return 0 if self.is_disabled else iterations // self.every + 1


@dataclass(frozen=True)
class RunSettings:
    """An application's run.

    Attributes:
        name: Name of the application.
        iterations: Number of the last iteration; the first is 0.
        ranks: Number of processes that share each array.
        compute_s: Seconds of computing from one iteration to the next, for predictions.
        arrays: The arrays by name.
    """

    name: Name
    iterations: Annotated[int, Field(ge=0, le=MOST_ITERATIONS)]
    ranks: Annotated[int, Field(ge=1, le=MOST_RANKS)] = 1
    compute_s: Annotated[float, Field(ge=0, le=1e9)] | None = None
    arrays: Mapping[str, ArraySettings] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> RunSettings:
        """Read a file of settings, `run.toml`.

        Raises:
            SettingsError: If it is invalid; the key is named.
        """
        return cls._of_file(path, read_toml(path))

    @classmethod
    def _of_file(cls, path: Path, values: Mapping[str, Any]) -> RunSettings:
        try:
            return cls.from_mapping(values)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> RunSettings:
        """Return the run of a mapping as in a file: `name`, `iterations`, `ranks` and `arrays`.

        Raises:
            SettingsError: If it is invalid; the key is named.
        """
        errors, keys = SettingsErrors(), {each.name: None for each in fields(cls)}
        for key in values:
            with errors.collect():
                refuse_unknown("key of a run", [key], keys)
        raw_arrays = values.get("arrays", {})
        if not isinstance(raw_arrays, Mapping):
            raise value_error("arrays", "a section [arrays.NAME] for each array", raw_arrays)
        if len(raw_arrays) > MOST_ARRAYS:
            raise SettingsError(f"arrays: expected at most {MOST_ARRAYS}, found {len(raw_arrays)}")
        own = {key: value for key, value in values.items() if key in keys and key != "arrays"}
        for key in ("name", "iterations"):
            with errors.collect():
                if key not in own:
                    raise SettingsError(f"{key}: is missing")
        run, iterations = None, 0
        with errors.collect():
            if own.keys() >= {"name", "iterations"}:
                run = section("run", cls, own)
                iterations = run.iterations
        arrays: dict[str, ArraySettings] = {}
        with errors.collect():
            arrays |= read_arrays(raw_arrays, iterations)
        errors.check()
        assert run is not None
        return replace(run, arrays=arrays)


def plain_number(number: Any) -> Any:
    """Return a number of NumPy as one of Python; others as they are."""
    return operator.index(number) if hasattr(number, "__index__") else number


def arrays_for(run: RunSettings, path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return what a file of settings says of the arrays of a run, as it is in the file.

    Raises:
        SettingsError: If the file is invalid, or another run's.
    """
    values = read_toml(path)
    settings = RunSettings._of_file(path, values)
    for key in ("name", "iterations"):
        ours, theirs = getattr(run, key), getattr(settings, key)
        if ours != theirs:
            raise SettingsError(f"{path}: {key}: expected {ours} as in the program, found {theirs}")
    arrays: Mapping[str, Mapping[str, Any]] = values.get("arrays", {})
    return arrays


def read_arrays(
    raw_arrays: Mapping[str, Any], iterations: int
) -> Iterator[tuple[str, ArraySettings]]:
    """Yield names and settings of arrays, from what a file or a program says.

    Args:
        raw_arrays: their settings by name.
        iterations: number of the last iteration of the run.

    Raises:
        SettingsError: If some are invalid; the keys are named.
    """
    errors = SettingsErrors()
    for name, raw in raw_arrays.items():
        array = None
        with errors.collect():
            array = _read_array(name, raw, iterations)
        if array is not None:
            yield name, array
    errors.check()


def _read_array(name: Any, raw: Any, iterations: int) -> ArraySettings:
    if not isinstance(name, str) or not re.fullmatch(NAME, name) or NAMES_OF_GROUP.fullmatch(name):
        raise SettingsError(
            f"arrays: expected names of letters, digits, '_', '.' and '-', not zarr.json or "
            f"iteration_..., found {name!r:.60}"
        )
    label = f"arrays.{name}"
    if isinstance(raw, Mapping) and "shape" not in raw:
        raise SettingsError(f"{label}.shape: is missing")
    try:
        array = section(label, ArraySettings, raw)
    except SwatheError as error:
        text = str(error)
        raise SettingsError(text if label in text else f"{label}.{text}") from None
    if (dumps := array.dumps(iterations)) > MOST_DUMPS:
        raise SettingsError(f"{label}: expected at most {MOST_DUMPS} dumps, found {dumps}")
    return array
