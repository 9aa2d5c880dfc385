"""Granules: values with the place of each, from files of arrays or from memory.

Values are masked and scaled by the CF conventions (sections 2.5.1 and 8.1) before any mean.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import FormatError, NoSuchArrayError, RegionError
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any
from swathe.files.variable import masked_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from swathe.files.array import Array

UNITS = {
    "latitude": ("degrees_north", "degree_north", "degreesN", "degree_N", "degrees_N"),
    "longitude": ("degrees_east", "degree_east", "degreesE", "degree_E", "degrees_E"),
}
NAMES = {"latitude": ("latitude", "lat", "nav_lat"), "longitude": ("longitude", "lon", "nav_lon")}


@dataclass
class Granule:
    """Values with the place of each.

    Attributes:
        data: values of any shape; masked elements and NaN are fill.
        latitude: degrees, of a shape that broadcasts to that of `data`; masked or NaN if unknown.
        longitude: degrees, in the same way.
        fields: other arrays for `where`, by name.
        attrs: attributes of the values, such as `units`.
    """

    data: Any
    latitude: Any
    longitude: Any
    fields: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)


def granule_of(path: Any, array: str | None, names: Iterable[str]) -> Granule:
    """Read the granule of a file.

    Args:
        path: path or URL.
        array: path of the variable; by default the only one with two axes or more.
        names: names of the other arrays that are needed.

    Raises:
        NoSuchArrayError: If the file has no such array, or no coordinates for it.
        FormatError: If it is a FITS file, or damaged.
    """
    with open_any(path, fresh=True) as file:
        if not isinstance(file, ArrayFile):
            raise FormatError(f"{path}: expected a file of arrays with coordinates, found FITS")
        variable = file.array(array)
        latitude, longitude = (
            _on_axes_of(masked_values(other), variable, other)
            for other in (_coordinate(file, variable, kind) for kind in NAMES)
        )
        fields = {name: _field(file, variable, name) for name in names}
        return Granule(masked_values(variable), latitude, longitude, fields, variable.attrs)


def _field(file: ArrayFile, variable: Array, name: str) -> Any:
    """Read an array of a condition: integers as stored, others with NaN for fill."""
    other = _near(file, variable, name)
    if other is None:
        raise NoSuchArrayError(f"{file.url}: expected an array {name!r:.60} for where, found none")
    values = masked_values(other)
    data = values.filled(np.nan) if values.dtype.kind == "f" else values.data
    return _on_axes_of(data, variable, other)


def _coordinate(file: ArrayFile, variable: Array, kind: str) -> Array:
    """Return the latitude or longitude of an array: by units, standard name, or name."""
    for other in variable.coords.values():
        attrs = other.attrs
        if attrs.get("units") in UNITS[kind] or attrs.get("standard_name") == kind:
            return other
    for path in file:
        name = posixpath.basename(path).lower()
        if name in NAMES[kind] and _fits(file[path], variable):
            return file[path]
    raise NoSuchArrayError(
        f"{file.url}, array {variable.path}: expected an array of the {kind} "
        "with its axes, found none"
    )


def _fits(other: Array, variable: Array) -> bool:
    if other.dims and variable.dims:
        return set(other.dims) <= set(variable.dims)
    return other.shape == variable.shape[-other.ndim :]


def _near(file: ArrayFile, variable: Array, name: str) -> Array | None:
    """Return an array by name: of the variable's group or one around it, or the only one."""
    group = posixpath.dirname(variable.path)
    while True:
        path = posixpath.join(group, name)
        if path in file:
            return file[path]
        if group in ("/", ""):
            break
        group = posixpath.dirname(group)
    paths = [path for path in file if posixpath.basename(path) == name]
    return file[paths[0]] if len(paths) == 1 else None


def _on_axes_of(values: Any, variable: Array, array: Array) -> Any:
    """Return values whose axes stand where the variable has the axes of the same names."""
    if array.dims and variable.dims and set(array.dims) <= set(variable.dims):
        at = [variable.dims.index(name) for name in array.dims]
        shape = [1] * variable.ndim
        for axis, length in zip(at, array.shape, strict=True):
            shape[axis] = length
        return values.transpose(np.argsort(at)).reshape(shape)
    if array.shape == variable.shape[-array.ndim :]:
        return values
    raise RegionError(
        f"{variable.url}, array {array.path}: expected axes of {variable.path}, "
        f"{variable.dims or variable.shape}, found {array.dims or array.shape}"
    )
