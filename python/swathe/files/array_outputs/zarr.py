"""Write a cut as Zarr, version 3: a folder of metadata and chunks."""

from __future__ import annotations

import base64
import gzip
import json
import math
from itertools import product
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError
from swathe.core.zarr_names import EVERY, NODE
from swathe.files.array_outputs.hdf5 import INTERNAL, axis_lengths
from swathe.files.array_outputs.zarr_metadata import array_metadata, group_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.variable import VariableSet

CHUNK_BYTES = 4 << 20
"""Largest size of a chunk, roughly."""
GZIP_LEVEL = 4
VECTORS = ("hdf5", "netcdf3", "hdf4")
"""Formats whose attributes do not tell a number from a vector of one, as readers of JSON do."""
ORDERS = {"<": "little", ">": "big"}


def zarr_members(cutout: VariableSet) -> Iterator[tuple[str, bytes]]:
    """Iterate over the names and contents of the members of a Zarr with a cut.

    Raises:
        OutputError: If Zarr cannot hold the elements.
    """
    axis_lengths(cutout)
    arrays: dict[str, dict[str, Any]] = {}
    numbers = _numbers if cutout.format in VECTORS else dict
    for name, variable in cutout.variables.items():
        data = _plain_data(name, variable.data)
        chunk_shape = _chunk_shape(data.shape, data.itemsize)
        attrs = numbers(variable.attrs)
        meta = _array_metadata(name, data, chunk_shape, variable.dims, attrs)
        arrays[name] = meta
        yield f"{name}/{NODE}", _json(meta)
        for place in product(
            *(range(-(-a // b)) for a, b in zip(data.shape, chunk_shape, strict=True))
        ):
            key = "/".join(map(str, ("c", *place)))
            yield (
                f"{name}/{key}",
                gzip.compress(_chunk(data, place, chunk_shape), GZIP_LEVEL, mtime=0),
            )
    yield NODE, _json(group_metadata(arrays, _attributes(numbers(cutout.attrs_with_history()))))


def _numbers(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with numbers for vectors of one number."""
    import numpy as np

    return {
        name: value.reshape(()) if isinstance(value, np.ndarray) and value.size == 1 else value
        for name, value in attrs.items()
    }


def _plain_data(name: str, data: NDArray[Any]) -> NDArray[Any]:
    """Return the elements as a type of the specification; texts get a width."""
    import numpy as np

    is_bad = "/" in name or name in ("", ".", "..", *EVERY) or name.startswith("__")
    if is_bad or not name.isprintable():
        raise OutputError(f"{name[:100]!r}: Zarr cannot have an array of this name")
    if data.dtype.kind == "O":
        data = np.array([str(each) for each in data.ravel()]).reshape(data.shape)
    if data.dtype.kind not in "biufcUSmM" or data.dtype.itemsize == 0:
        raise OutputError(f"{name}: Zarr cannot hold elements of {data.dtype}; write .nc or .npy")
    return data


def _array_metadata(
    name: str,
    data: NDArray[Any],
    chunk_shape: Sequence[int],
    dims: Sequence[str],
    attrs: Mapping[str, Any],
) -> dict[str, Any]:
    fill = attrs.get("_FillValue")
    is_single = data.dtype.itemsize == 1 or data.dtype.kind == "S"
    order = data.dtype.str[0]
    configuration = {} if is_single else {"configuration": {"endian": ORDERS[order]}}
    return array_metadata(
        shape=data.shape,
        data_type=_data_type(data.dtype),
        chunk_shape=chunk_shape,
        codecs=[
            {"name": "bytes", **configuration},
            {"name": "gzip", "configuration": {"level": GZIP_LEVEL}},
        ],
        fill=_fill_value(name, data.dtype, fill),
        dims=dims,
        attributes=_attributes(attrs, data.dtype),
    )


def _data_type(dtype: np.dtype[Any]) -> Any:
    import numpy as np

    match dtype.kind:
        case "U":
            name, size = "fixed_length_utf32", dtype.itemsize
        case "S":
            name, size = "null_terminated_bytes", dtype.itemsize
        case "m" | "M":
            unit, scale = np.datetime_data(dtype)
            kind = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
            return {"name": kind, "configuration": {"unit": unit, "scale_factor": scale}}
        case _:
            return dtype.name
    return {"name": name, "configuration": {"length_bytes": size}}


def _fill_value(name: str, dtype: np.dtype[Any], fill: Any) -> Any:
    import numpy as np

    if dtype.kind == "U":
        return ""
    if dtype.kind == "S":
        return base64.b64encode(bytes(dtype.itemsize)).decode()
    if dtype.kind in "mM":
        return 0
    if dtype.kind == "b":
        return False
    value = np.zeros((), dtype)
    if fill is not None and np.size(fill) == 1:
        try:
            value = np.asarray(fill).astype(dtype).reshape(())
        except (TypeError, ValueError) as error:
            raise OutputError(
                f"{name}: expected a fill value of {dtype}, found {fill!r:.60}"
            ) from error
    if dtype.kind == "c":
        return [_number(float(value.real)), _number(float(value.imag))]
    return _number(value.item())


def _number(value: Any) -> Any:
    """Return a number for JSON, which has no name for those that are none."""
    if isinstance(value, float) and value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)


def _attributes(attrs: Mapping[str, Any], dtype: np.dtype[Any] | None = None) -> dict[str, Any]:
    """Return attributes for JSON; the fill value of floats as xarray writes it."""
    import numpy as np

    plain = {}
    for name, value in attrs.items():
        if name in INTERNAL:
            continue
        if name == "_FillValue" and dtype is not None and dtype.kind == "f" and np.size(value) == 1:
            plain[name] = base64.b64encode(np.asarray(value, "<f8").tobytes()).decode()
            continue
        if isinstance(value, str):
            plain[name] = value
            continue
        array = np.asarray(value)
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "backslashreplace")
        if array.dtype.kind not in "biufUO":
            array = np.array(str(value))
        if name == "_FillValue" and array.size == 1:
            array = array.reshape(())
        plain[name] = array.tolist()
    return plain


def _chunk_shape(shape: Sequence[int], element_bytes: int) -> tuple[int, ...]:
    """Return the shape of chunks: halves of the longest side until a chunk is small enough."""
    sides = [max(side, 1) for side in shape]
    while sides and element_bytes * math.prod(sides) > CHUNK_BYTES and max(sides) > 1:
        axis = sides.index(max(sides))
        sides[axis] = -(-sides[axis] // 2)
    return tuple(sides)


def _chunk(data: NDArray[Any], place: Sequence[int], chunk_shape: Sequence[int]) -> bytes:
    """Return the elements of a chunk; those at the far edges are padded with zeros."""
    import numpy as np

    corner = [at * side for at, side in zip(place, chunk_shape, strict=True)]
    part = data[tuple(slice(a, a + b) for a, b in zip(corner, chunk_shape, strict=True))]
    if part.shape == tuple(chunk_shape):
        return part.tobytes()
    chunk = np.zeros(chunk_shape, data.dtype)
    chunk[tuple(map(slice, part.shape))] = part
    return chunk.tobytes()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode()
