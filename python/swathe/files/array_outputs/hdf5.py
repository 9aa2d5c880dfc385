"""Write a cut as HDF5 that is also NetCDF4: axes are dimension scales."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError, OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.files.variable import VariableSet

INTERNAL = frozenset(
    {
        "CLASS",
        "NAME",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "_NCProperties",
        "_Netcdf4Coordinates",
        "_Netcdf4Dimid",
        "_nc3_strict",
    }
)
"""Attributes that the libraries keep for themselves."""
ONLY_DIMENSION = "This is a netCDF dimension but not a netCDF variable. {:10d}"
LEAST_PACKED_BYTES = 1024
"""Smaller arrays are not compressed."""


def axis_lengths(cutout: VariableSet) -> dict[str, int]:
    """Return the length of each axis of all variables.

    Raises:
        OutputError: If an axis has two lengths.
    """
    lengths: dict[str, int] = {}
    for name, variable in cutout.variables.items():
        for axis, length in zip(variable.dims, variable.data.shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                raise OutputError(
                    f"{cutout.url}, {name}: expected axis {axis} of {lengths[axis]}, found {length}"
                )
    return lengths


def hdf5_bytes(cutout: VariableSet) -> bytes:
    """Return a NetCDF4 file with the elements as stored and what belongs to them.

    Raises:
        OptionError: If h5py is not installed.
        OutputError: If HDF5 cannot hold the elements.
    """
    try:
        import h5py
    except ImportError:
        raise OptionError("NetCDF4 and HDF5 need h5py; try: pip install 'swathe[hdf]'") from None
    import numpy as np

    content = BytesIO()
    lengths = axis_lengths(cutout)
    with h5py.File(content, "w", track_order=True) as file:
        _set_attributes(file, cutout.attrs_with_history())
        scales = {}
        variables = cutout.variables
        for number, (axis, length) in enumerate(lengths.items()):
            variable = variables.get(axis)
            if variable is not None and variable.dims == (axis,):
                scale = _add(file, axis, variable.data, variable.attrs)
                scale.make_scale(axis)
            elif variable is not None:
                raise OutputError(
                    f"{cutout.url}: expected {axis} along itself, found it along {variable.dims}; "
                    "write .npy or .tif"
                )
            else:
                scale = file.create_dataset(axis, (length,), ">f4", track_order=True)
                scale.make_scale(ONLY_DIMENSION.format(length))
            scale.attrs["_Netcdf4Dimid"] = np.int32(number)
            scales[axis] = scale
        for name, variable in variables.items():
            if name in scales:
                continue
            dataset = _add(file, name, variable.data, variable.attrs)
            for at, axis in enumerate(variable.dims):
                dataset.dims[at].attach_scale(scales[axis])
    return content.getvalue()


def _add(file: Any, name: str, data: Any, attrs: Mapping[str, Any]) -> Any:
    """Write an array with its attributes; return its dataset."""
    import numpy as np

    options: dict[str, Any] = {}
    if data.ndim and data.nbytes >= LEAST_PACKED_BYTES:
        options = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    fill = attrs.get("_FillValue")
    if fill is not None and np.size(fill) == 1 and data.dtype.kind in "iuf":
        options["fillvalue"] = np.asarray(fill).astype(data.dtype).ravel()[0]
    try:
        dataset = file.create_dataset(name, data=data, track_order=True, **options)
        _set_attributes(dataset, attrs)
    except (TypeError, ValueError) as error:
        raise OutputError(f"{name}: HDF5 cannot hold it: {error}") from error
    return dataset


def _set_attributes(of: Any, attrs: Mapping[str, Any]) -> None:
    """Write attributes as NetCDF has them: characters, and vectors of numbers.

    A new object has none of these names, so that they are created without the checks of `attrs`.
    """
    import h5py
    import numpy as np

    for name, value in attrs.items():
        if name in INTERNAL:
            continue
        if isinstance(value, str) and value:
            # Characters in ASCII are the plain text of NetCDF; others are a string of UTF-8.
            if value.isascii():
                _create(of, name, np.array(value.encode()))
            else:
                of.attrs[name] = value
        elif isinstance(value, str):
            of.attrs[name] = h5py.Empty("S1")
        elif np.asarray(value).dtype.kind == "O":
            of.attrs.create(
                name, [str(each) for each in np.ravel(value)], dtype=h5py.string_dtype()
            )
        else:
            _create(of, name, np.atleast_1d(value))


def _create(of: Any, name: str, value: NDArray[Any]) -> None:
    """Write an attribute that an object does not have yet."""
    from h5py import h5a, h5s, h5t

    dtype = h5t.py_create(value.dtype, logical=True)
    h5a.create(of.id, name.encode(), dtype, h5s.create_simple(value.shape)).write(value)
