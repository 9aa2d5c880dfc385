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
from swathe.files.places.regions import geolocation
from swathe.files.variable import masked_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from swathe.files.array import Array


@dataclass
class Granule:
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


def granule_of(path: Any, array: str | None, names: Iterable[str]) -> Granule:
    """Read the granule of a file.

    Args:
        path: path or URL.
        array: path of the variable; by default the only one with two axes or more.
        names: names of the other arrays that are needed.

    Raises:
        NoSuchArrayError: If the file has no such array.
        RegionError: If the array has no latitude and longitude, or several.
        FormatError: If it is a FITS file, or damaged.
    """
    with open_any(path, fresh=True) as file:
        if not isinstance(file, ArrayFile):
            raise FormatError(f"{path}: expected a file of arrays with coordinates, found FITS")
        variable = file.array(array)
        latitude, longitude = (
            _on_axes_of(masked_values(other), variable, other) for other in geolocation(variable)
        )
        fields = {name: _field(file, variable, name) for name in names}
        return Granule(
            masked_values(variable), latitude, longitude, fields, variable.attrs, file.url
        )


def _field(file: ArrayFile, variable: Array, name: str) -> Any:
    """Read an array of a condition: integers as stored, others with NaN for fill."""
    others = [path for path in file if posixpath.basename(path) == name]
    other = file.near(variable.path, name) or (file[others[0]] if len(others) == 1 else None)
    if other is None:
        raise NoSuchArrayError(f"{file.url}: expected an array {name!r:.60} for where, found none")
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
        return values.transpose(np.argsort(at)).reshape(shape)
    if array.shape == variable.shape[-array.ndim :]:
        return values
    raise RegionError(
        f"{variable.url}, array {array.path}: expected axes of {variable.path}, "
        f"{variable.dims or variable.shape}, found {array.dims or array.shape}"
    )
