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
from swathe.core.toml_settings import read_toml, refuse_unknown, section, value_error
from swathe.core.value_errors import short_text
from swathe.runs.pattern import MOST_RANKS, Pattern
from swathe.runs.shards import Sharding

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
Mode: TypeAlias = Literal["create", "overwrite"]
"""Whether an array has all its dumps, or the last one only."""
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


Length = Annotated[int, Field(ge=1, le=1 << 40)]
Name = Annotated[str, Field(pattern=rf"^{NAME}$")]
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
        location: A store, a hint (`localdisk`, `remotedisk`, `remotetape`, `default`, `disable`),
            or a list: the first that has room.
        mode: `create`, or `overwrite`: only the last dump is kept.
        within_s: Time for writing all its dumps, seconds.
        dims: Names of the axes.
    """

    shape: Annotated[tuple[Length, ...], Field(min_length=1, max_length=32)]
    dtype: Annotated[str, AfterValidator(_plain_type)] = "<f4"
    every: Count = 1
    pattern: str = ""
    location: Annotated[tuple[str, ...], BeforeValidator(_as_places)] = ("default",)
    mode: Mode = "create"
    within_s: Seconds | None = None
    dims: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        """Check what concerns more than one field.

        Raises:
            OptionError: If the pattern is not one of the shape.
            SettingsError: If names of axes do not fit, or a dump is too large.
        """
        ndim = len(self.shape)
        text = self.pattern or "B" + "*" * (ndim - 1)
        object.__setattr__(self, "pattern", str(Pattern.parse(text, ndim)))
        if self.dims and (len(self.dims) != ndim or len(set(self.dims)) != ndim):
            raise SettingsError(f"dims: expected {ndim} different names, found {self.dims!r:.80}")
        if self.dump_bytes > MOST_BYTES:
            raise SettingsError(
                f"shape: expected at most {MOST_BYTES} bytes at one iteration, found "
                f"{self.dump_bytes}"
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
    def dump_bytes(self) -> int:
        """Return the size of one dump in bytes."""
        import numpy as np

        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def sharding(self) -> Sharding:
        """Return how one dump is cut into shards."""
        import numpy as np

        return Sharding(self.shape, np.dtype(self.dtype))

    def stored_dumps(self, iterations: int) -> int:
        """Return for how many dumps there must be room."""
        dumps = self.dumps(iterations)
        return min(dumps, SLOTS) if self.mode == "overwrite" else dumps

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
        arrays: The arrays by name.
    """

    name: Name
    iterations: Annotated[int, Field(ge=0, le=MOST_ITERATIONS)]
    ranks: Annotated[int, Field(ge=1, le=MOST_RANKS)] = 1
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
        refuse_unknown("key of a run", values, {each.name: None for each in fields(cls)})
        raw_arrays = values.get("arrays", {})
        if not isinstance(raw_arrays, Mapping):
            raise value_error("arrays", "a section [arrays.NAME] for each array", raw_arrays)
        if len(raw_arrays) > MOST_ARRAYS:
            raise SettingsError(f"arrays: expected at most {MOST_ARRAYS}, found {len(raw_arrays)}")
        own = {key: value for key, value in values.items() if key != "arrays"}
        for key in ("name", "iterations"):
            if key not in own:
                raise SettingsError(f"{key}: is missing")
        run = section("run", cls, own)
        return replace(run, arrays=dict(read_arrays(raw_arrays, run.iterations)))


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
        SettingsError: If one is invalid; the key is named.
    """
    for name, raw in raw_arrays.items():
        if (
            not isinstance(name, str)
            or not re.fullmatch(NAME, name)
            or NAMES_OF_GROUP.fullmatch(name)
        ):
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
        yield name, array
