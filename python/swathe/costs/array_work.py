"""What lists of arrays need beside the engine: reads by libraries, and results."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe.core.errors import SwatheError
from swathe.core.row_record import plane_spans
from swathe.core.row_table import RowTable
from swathe.costs.format_costs import AS_SOURCE, ASSUMED_BOUND, BOUND, SOURCE, FormatCosts
from swathe.costs.library_costs import LibraryCosts
from swathe.files.array_outputs import suffix_of
from swathe.files.targets.hdus import is_array_path

if TYPE_CHECKING:
    from collections.abc import Container

    from swathe.core.row_record import RowRecord
    from swathe.costs.prediction import Prediction
    from swathe.files.array import Array

MOST_FILES = 16
"""Files of arrays that are looked into; the others are assumed to be like these."""
MOST_KINDS = 3
"""Kinds of arrays that are told apart in the name of what a call makes."""
ARRAY_BOUND = 1.6
"""Factor of the time to make results of arrays that were measured: their attributes and coordinates
are not those of the probe."""
UNKNOWN_BOUND = 3.0
"""A filter that was not measured takes at least a third and at most three times as long."""


class Kind(NamedTuple):
    """What counts of the array of a row.

    Attributes:
        file_format: format of the file, such as `tiff`.
        filters: filters of its chunks, in the order of writing.
        problem: why the engine does not read it; `None` if it does.
        is_refused: whether nobody reads it.
        is_inline: whether it lies in the index.
        bytes: its size in elements, decoded.
        file_bytes: size of the file as stored.
        item_bytes: bytes of an element.
        requests: reads of the whole file, one after another; 0 for a local file.
        has_gwcs: whether a GWCS of ASDF gives its places on the sky.
    """

    file_format: str
    filters: tuple[str, ...]
    problem: str | None
    is_refused: bool
    is_inline: bool
    bytes: int
    file_bytes: int
    item_bytes: int
    requests: int
    has_gwcs: bool = False

    @classmethod
    def of(cls, array: Array, file_format: str, file_bytes: int, requests: int) -> Kind:
        """Describe an array."""
        return cls(
            file_format,
            array.filters,
            array.problem,
            array.is_refused,
            not array.is_native and array.problem is None,
            math.prod(array.shape) * array.dtype.itemsize,
            file_bytes,
            array.dtype.itemsize,
            requests,
            _has_gwcs(array),
        )

    @property
    def is_apart(self) -> bool:
        """Check whether it can be read, but not by the engine."""
        return self.is_inline or (self.problem is not None and not self.is_refused)

    @property
    def text(self) -> str:
        """Return format and filters, as `hdf5 shuffle+deflate`."""
        how = "library" if self.problem else "+".join(self.filters) or "plain"
        return f"{self.file_format} {how}"


@dataclass
class ArrayWork:
    """What the arrays of a list need beside the engine.

    Attributes:
        is_apart: mask of the rows that the engine does not read, though they can be read.
        suffixes: number of rows of arrays, by suffix of results like their source.
        kinds: number of rows by format and filters.
        library_s: seconds of the libraries.
        bytes: bytes that they read.
        requests: requests to servers for them.
        notes: reasons why the time is not known well.
        is_known: whether all filters were measured on this host.
        systems: files with a GWCS of the sky.
    """

    is_apart: np.ndarray[Any, np.dtype[np.bool_]]
    suffixes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    library_s: float = 0.0
    bytes: int = 0
    requests: int = 0
    notes: dict[str, None] = field(default_factory=dict)
    is_known: bool = True
    systems: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, rows: RowTable, compute: str | None, running: Container[str] = ()) -> ArrayWork:
        """Return the work of a list; up to `MOST_FILES` files of arrays are looked into.

        Args:
            rows: rows of images and of arrays.
            compute: computing costs of this host as JSON; `None` if they were not measured.
            running: formats whose confined process runs already.
        """
        work = cls(np.zeros(len(rows), bool))
        is_array = np.array([is_array_path(each) for each in rows.hdu.values], bool)
        numbers = np.flatnonzero(rows.sound & is_array[rows.hdu.codes])
        if not len(numbers):
            return work
        costs = LibraryCosts.of(compute)
        rates = {} if compute is None else json.loads(compute).get("tile_byte_s", {})
        kind_of = _Kinds(rows, numbers)
        formats = set()
        for number, row in zip(numbers, rows.take(numbers), strict=True):
            kind = kind_of(row)
            if kind is None:
                continue
            work._count(kind, rates)
            if kind.has_gwcs:
                work._open_system(row, costs, "gwcs" in running)
            if not kind.is_apart:
                continue
            work.is_apart[number] = True
            if kind.is_inline:
                continue
            work._read(kind, row, costs)
            if kind.file_format not in formats and kind.file_format not in running:
                work.library_s += costs.start_s
            formats.add(kind.file_format)
        return work

    def _count(self, kind: Kind, rates: Container[str]) -> None:
        """Count a row by its kind, and the filters that were not measured."""
        self.suffixes[suffix_of(kind.file_format)] += 1
        self.kinds[kind.text] += 1
        unknown = [name for name in kind.filters if name not in rates]
        if unknown:
            self.is_known = False
            names = ", ".join(dict.fromkeys(unknown))
            self.notes[f"decoding of {names} was not measured on this host"] = None

    def _open_system(self, row: RowRecord, costs: LibraryCosts, is_running: bool) -> None:
        """Add the time to open the GWCS of a row, and to find its position.

        Args:
            row: a row.
            costs: what libraries cost.
            is_running: whether the process of GWCS runs already.
        """
        if row.sky is not None:
            self.library_s += costs.position_s
        if row.source in self.systems:
            return
        if not self.systems and not is_running:
            self.library_s += costs.gwcs_start_s
        self.systems.add(row.source)
        if row.sky is not None:
            self.library_s += costs.gwcs_s
        self.notes[
            f"{row.source}: its GWCS is evaluated by the package gwcs, whose time depends on its "
            "models"
        ] = None

    def _read(self, kind: Kind, row: RowRecord, costs: LibraryCosts) -> None:
        """Add the read of a row by its library."""
        planes = math.prod(last - first for first, last in plane_spans(row.planes))
        _, _, width, height = row.box or (0, 0, 1, 1)
        part = min(planes * width * height * kind.item_bytes, kind.bytes)
        # Between the region alone and the whole array: the library decides what it decodes.
        size = math.sqrt(max(part, 1) * max(kind.bytes, 1))
        share = size / max(kind.bytes, 1)
        requests = math.ceil(kind.requests * share)
        self.library_s += costs.seconds(size, requests)
        self.bytes += int(kind.file_bytes * share)
        self.requests += requests
        self.notes[
            f"{row.source}, {row.hdu}: read by its library ({kind.problem}), and how much that "
            "decodes is not known"
        ] = None

    def making(
        self,
        compute: str | None,
        name: str,
        results: int,
        pixels: float,
        usual: FormatCosts | None = None,
    ) -> Making:
        """Return the time to make the results of a list.

        Args:
            compute: computing costs of this host as JSON; `None` if they were not measured.
            name: name of the format; `source`: that of each source.
            results: number of results.
            pixels: number of their pixels.
            usual: what the operation says of a format that hosts do not measure.

        Raises:
            OptionError: If nothing is known of the format.
        """
        counts = Counter({name: 1})
        if name == SOURCE and self.suffixes:
            counts = Counter({suffix.removeprefix("."): n for suffix, n in self.suffixes.items()})
        own = {} if compute is None else json.loads(compute).get("formats", {})
        seconds = 0.0
        for each, count in counts.items():
            share = count / counts.total()
            costs = FormatCosts.of(compute, each, usual)
            seconds += costs.seconds(round(results * share), pixels * share)
        if "asdf" in counts and self.systems:
            library, share = LibraryCosts.of(compute), counts["asdf"] / counts.total()
            # A GWCS is opened twice to learn how it moves with its pixels.
            seconds += 2 * len(self.systems) * library.gwcs_s
            seconds += results * share * library.gwcs_result_s
        names = [AS_SOURCE if each == SOURCE else each for each in counts]
        is_measured = all(each in own for each in names)
        bound = ARRAY_BOUND if self.kinds else BOUND
        return Making(seconds, bound if is_measured else ASSUMED_BOUND)

    def product(self, name: str) -> str:
        """Return the name of what a call makes, with the kinds of arrays it is made of.

        Args:
            name: what is made, as `cut as nc`.
        """
        if not self.kinds:
            return name
        kinds = sorted(self.kinds)
        return f"{name} of {', '.join(kinds) if len(kinds) <= MOST_KINDS else 'many kinds'}"

    def widen(self, prediction: Prediction) -> Prediction:
        """Return a prediction of reading and cutting; wide if a filter was not measured."""
        if self.is_known:
            return prediction
        (low_s, high_s), median_s = prediction.interval_s, prediction.median_s
        widest_s = min(low_s, median_s / UNKNOWN_BOUND), max(high_s, median_s * UNKNOWN_BOUND)
        return replace(prediction, interval_s=widest_s)

    def add_to(self, prediction: Prediction) -> Prediction:
        """Return a prediction of reading, cutting and making, with reads by libraries."""
        low_s, high_s = prediction.interval_s
        bound = LibraryCosts.bound
        return replace(
            prediction,
            median_s=prediction.median_s + self.library_s,
            interval_s=(low_s + self.library_s / bound, high_s + self.library_s * bound),
            bytes=prediction.bytes + self.bytes,
            requests=prediction.requests + self.requests,
            compute_s=prediction.compute_s + self.library_s,
            notes=[*dict.fromkeys([*prediction.notes, *self.notes])],
        )

    def plus(self, other: ArrayWork) -> ArrayWork:
        """Return the work of two parts of a list."""
        return ArrayWork(
            np.concatenate([self.is_apart, other.is_apart]),
            self.suffixes + other.suffixes,
            self.kinds + other.kinds,
            self.library_s + other.library_s,
            self.bytes + other.bytes,
            self.requests + other.requests,
            self.notes | other.notes,
            self.is_known and other.is_known,
            self.systems | other.systems,
        )


class Making(NamedTuple):
    """Time to make results.

    Attributes:
        seconds: seconds of all results.
        bound: factor by which it differs at most in 80 of 100 cases.
    """

    seconds: float
    bound: float


class _Kinds:
    """The kinds of the arrays of a list; files that are not looked into are like others."""

    def __init__(self, rows: RowTable, numbers: Any) -> None:
        codes = np.unique(rows.source.codes[numbers])
        sample = codes[
            np.arange(min(MOST_FILES, len(codes))) * len(codes) // min(MOST_FILES, len(codes))
        ]
        stands = sample[np.arange(len(codes)) * len(sample) // len(codes)]
        values = rows.source.values
        self._sample = {values[code]: values[by] for code, by in zip(codes, stands, strict=True)}
        self._kinds: dict[tuple[str, str], Kind | None] = {}

    def __call__(self, row: RowRecord) -> Kind | None:
        """Return the kind of the array of a row; `None` if its file cannot be looked into."""
        key = self._sample[row.source], str(row.hdu)
        if key not in self._kinds:
            self._kinds[key] = _kind_of(*key)
        return self._kinds[key]


def _has_gwcs(array: Array) -> bool:
    """Check whether a GWCS gives the places of an array."""
    from swathe.files.places.sky import gwcs_path

    try:
        return gwcs_path(array) is not None
    except SwatheError:
        return False  # several: none is used


def _kind_of(source: str, path: str) -> Kind | None:
    """Return the kind of an array; `None` if it has an error, which its rows have, too."""
    from swathe.files.array_file import ArrayFile
    from swathe.files.file import open_any

    try:
        file = open_any(source)
        if not isinstance(file, ArrayFile):
            return None
        array = file.array(path)
    except SwatheError:
        return None
    requests = math.ceil(file.size / array.reads.block_bytes) if "://" in file.url else 0
    return Kind.of(array, file.tree.format, file.size, requests)
