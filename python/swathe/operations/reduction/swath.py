"""Swaths: values with the place of each, from granules or from memory.

Values are masked and scaled by the CF conventions (sections 2.5.1 and 8.1) before any mean.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import (
    FormatError,
    LimitError,
    NoSuchArrayError,
    OptionError,
    RegionError,
)
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any
from swathe.files.places.regions import geolocation
from swathe.files.variable import SCALING, masked_values
from swathe.operations.reduction.pixels import Pixels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from swathe.files.array import Array
    from swathe.operations.reduction.condition import Condition

FLOAT_BYTES = 8
"""Bytes of an element to which a scale or an offset is applied, at most."""


@dataclass
class Swath:
    """Values with the place of each.

    Attributes:
        data: values of any shape; masked elements and NaN are fill.
        latitude: degrees, of a shape that broadcasts to that of `data`; masked or NaN if unknown.
        longitude: degrees, in the same way.
        fields: other arrays for `where`, by name.
        attrs: attributes of the values, such as `units`.
        url: path or URL of its file, if it has one.
    """

    data: Any
    latitude: Any
    longitude: Any
    fields: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None


def swath_of(
    path: Any,
    array: str | None,
    condition: Condition | None,
    count: Callable[[Mapping[str, Any]], None],
    most_bytes: int | None = None,
) -> Swath:
    """Read a granule whole.

    Args:
        path: path or URL.
        array: path of the variable; by default the only one with two axes or more.
        condition: condition on other arrays, which are read, too.
        count: function that is called with the traffic of the file, also after an error.
        most_bytes: largest size of its values and places in memory; `None`: any.

    Raises:
        LimitError: If these have more than `most_bytes`.
        NoSuchArrayError: If the file has no such array.
        RegionError: If the array has no latitude and longitude, or several.
        FormatError: If it is a FITS file, or damaged.
    """
    with open_granule(path, fresh=True, alone=True) as file:
        try:
            variable, pair, others = granule_arrays(file, array, condition)
            _check_size(file, (variable, *pair, *others.values()), most_bytes)
            latitude, longitude = (
                _on_axes_of(masked_values(each), variable, each) for each in pair
            )
            fields = {name: _field_values(variable, other) for name, other in others.items()}
            values = masked_values(variable)
        finally:
            count(file.traffic)
        return Swath(values, latitude, longitude, fields, variable.attrs, file.url)


def open_granule(path: Any, fresh: bool = False, alone: bool = False) -> ArrayFile:
    """Open the file of a granule, as `open_any` does.

    Raises:
        FormatError: If it is a FITS file, or damaged.
    """
    file = open_any(path, fresh, alone)
    if not isinstance(file, ArrayFile):
        raise FormatError(f"{path}: expected a file of arrays with coordinates, found FITS")
    return file


def granule_arrays(
    file: ArrayFile, array: str | None, condition: Condition | None
) -> tuple[Array, tuple[Array, Array], dict[str, Array]]:
    """Return the variable of a granule, its latitudes and longitudes, and others by name.

    Raises:
        NoSuchArrayError: If the file has no such array.
        RegionError: If the variable has no latitude and longitude, or several.
    """
    variable = file.array(array)
    names = frozenset() if condition is None else condition.names
    others = {name: _field(file, variable, name) for name in names}
    return variable, geolocation(variable), others


def pixels_of(swath: Any, condition: Condition | None) -> Pixels:
    """Return the pixels of a swath, those that a condition leaves out as fill.

    Args:
        swath: a `Swath`, or an object with `data`, `latitude` and `longitude`.
        condition: condition on its fields.

    Raises:
        OptionError: If it lacks a field, or its values are no real numbers.
        RegionError: If shapes differ.
    """
    mask = None
    if condition is not None:
        fields = {**getattr(swath, "fields", {})}
        missing = sorted(condition.names - fields.keys())
        if missing:
            raise OptionError(f"where: expected arrays of the source, found {missing!r:.60}")
        mask = condition.mask({name: np.asarray(fields[name]) for name in condition.names})
    attrs = dict(getattr(swath, "attrs", {}))
    return Pixels.of(swath.data, swath.latitude, swath.longitude, mask, attrs)


def _check_size(file: ArrayFile, arrays: Iterable[Array], most_bytes: int | None) -> None:
    """Check what arrays take in memory, with their masks, before they are read.

    A small file can have large arrays: a chunk that is not stored has the fill value.
    """
    size = 0
    for each in arrays:
        is_scaled = any(name in each.attrs for name in SCALING)
        size += each.size * (1 + max(each.dtype.itemsize, FLOAT_BYTES if is_scaled else 0))
    if most_bytes is not None and size > most_bytes:
        raise LimitError(
            f"{file.url}: expected values and places of up to {most_bytes:,} bytes "
            f"(limits.cutout_mb), found {size:,}"
        )


def _field(file: ArrayFile, variable: Array, name: str) -> Array:
    """Return an array of a condition.

    Raises:
        NoSuchArrayError: If there is none, or several.
    """
    others = [path for path in file if posixpath.basename(path) == name]
    other = file.near(variable.path, name) or (file[others[0]] if len(others) == 1 else None)
    if other is None:
        raise NoSuchArrayError(f"{file.url}: expected an array {name!r:.60} for where, found none")
    return other


def _field_values(variable: Array, other: Array) -> Any:
    """Read an array of a condition: integers as stored, others with NaN for fill."""
    values = masked_values(other)
    data = values.filled(np.nan) if values.dtype.kind == "f" else values.data
    return _on_axes_of(data, variable, other)


def _on_axes_of(values: Any, variable: Array, array: Array) -> Any:
    """Return values whose axes stand where the variable has the axes of the same names."""
    has_names = array.dims and len(set(variable.dims)) == variable.ndim
    if has_names and set(array.dims) <= set(variable.dims):
        at = [variable.dims.index(name) for name in array.dims]
        shape = [1] * variable.ndim
        for axis, length in zip(at, array.shape, strict=True):
            shape[axis] = length
            if length != variable.shape[axis]:
                raise RegionError(
                    f"{variable.url}, array {array.path}: axis {variable.dims[axis]}: expected "
                    f"{variable.shape[axis]} elements as {variable.path} has, found {length}"
                )
        return values.transpose(np.argsort(at)).reshape(shape)
    if array.shape == variable.shape[-array.ndim :]:
        return values
    raise RegionError(
        f"{variable.url}, array {array.path}: expected axes of {variable.path}, "
        f"{variable.dims or variable.shape}, found {array.dims or array.shape}"
    )
