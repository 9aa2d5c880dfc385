"""Write a cut as TIFF: GeoTIFF keys, with the transform of the part."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from swathe.arrays.gdal_metadata import ROLES
from swathe.core.errors import OptionError, OutputError
from swathe.files.array_outputs.even_steps import step_of
from swathe.files.places.coordinates import sureness_by
from swathe.files.variable import (
    Variable,
    fill_value,
    masked_values,
    number_of,
    physical_values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.variable import VariableSet

SCALE, TIEPOINT, TRANSFORM = 33550, 33922, 34264
PLACES = {"ModelPixelScale": SCALE, "ModelTiepoint": TIEPOINT, "ModelTransformation": TRANSFORM}
"""Tags by the names of attributes."""
KEYS, DOUBLES, TEXTS = 34735, 34736, 34737
METADATA, NODATA = 42112, 42113
BYTE_STRING, SHORT, DOUBLE = 2, 3, 12
"""Types of tags."""
DEGREES = {"GTModelTypeGeoKey": 2, "GTRasterTypeGeoKey": 1, "GeographicTypeGeoKey": 4326}
"""Keys of a grid of longitudes and latitudes: WGS 84, pixels are areas."""
HALF_TURN = 180.0
"""Degrees of the meridian where maps of EPSG:4326 end."""
MASK = 4
"""Bit of `NewSubfileType`."""
MOST_BYTES = 8
"""Of a number: readers know none that is longer."""


def geotiff_bytes(cutout: VariableSet) -> bytes:
    """Return a TIFF file of the elements as stored; bands stay interleaved or planar.

    Raises:
        OptionError: If tifffile is not installed.
        OutputError: If TIFF cannot hold the elements.
    """
    try:
        import tifffile
    except ImportError:
        raise OptionError("TIFF needs tifffile; try: pip install 'swathe[geotiff]'") from None

    import numpy as np

    data, dims = cutout.data, cutout.dims
    is_number = data.dtype.kind in "iuf" and data.dtype.itemsize <= MOST_BYTES
    if data.ndim not in (2, 3) or not is_number or not data.size:
        raise OutputError(
            f"{cutout.url}, array {cutout.path}: expected two or three axes of numbers for TIFF, "
            f"found {cutout.shape}, {cutout.dtype}: choose with index= (--index)"
        )
    options: dict[str, Any] = {}
    bands_axis = -1 if dims[-1] == "band" else 0
    mask = cutout.mask
    if mask is not None and data.ndim == 3:
        mask = np.take(mask, 0, bands_axis)
    if data.ndim == 3 and data.shape[bands_axis] == 1:
        # A single band has no arrangement.
        data = np.squeeze(data, bands_axis)
        dims = dims[:-1] if bands_axis else dims[1:]
    if data.ndim == 3:
        options["planarconfig"] = "contig" if dims[-1] == "band" else "separate"
    bands = 1 if data.ndim == 2 else data.shape[-1 if dims[-1] == "band" else 0]
    is_colour = cutout.attrs.get("PhotometricInterpretation") == 2 and bands >= 3
    content = BytesIO()
    try:
        order: Any = ">" if data.dtype.str.startswith(">") else "<"
        with tifffile.TiffWriter(content, byteorder=order) as file:
            file.write(
                _without_sign(_with_fill(data, cutout), cutout.attrs),
                photometric="rgb" if is_colour else "minisblack",
                metadata=None,
                software=False,
                compression="zlib",
                extratags=_tags(cutout, bands),
                **options,
            )
            if mask is not None:
                # As GDAL writes it, of 1 bit: the pixels that have a value.
                file.write(
                    ~mask,
                    photometric="mask",
                    subfiletype=MASK,
                    metadata=None,
                    software=False,
                    compression="zlib",
                )
    except ValueError as error:
        raise OutputError(f"{cutout.url}: TIFF cannot hold {data.shape}: {error}") from error
    return content.getvalue()


def _without_sign(data: NDArray[Any], attrs: Mapping[str, Any]) -> NDArray[Any]:
    """Return elements as the attribute `_Unsigned` says: TIFF has unsigned integers."""
    if str(attrs.get("_Unsigned", "")).lower() == "true" and data.dtype.kind == "i":
        return data.view(data.dtype.str.replace("i", "u"))
    return data


def _tags(cutout: VariableSet, bands: int) -> list[tuple[int, int, int, Any, bool]]:
    """Return the tags of GeoTIFF and GDAL, as tifffile takes them."""
    attrs = _packing(cutout, bands) | cutout.attrs
    tags: list[tuple[int, int, int, Any, bool]] = []
    for name, code in (("GDAL_METADATA", METADATA), ("GDAL_NODATA", NODATA)):
        if name in attrs:
            # As GDAL writes and reads them.
            tags.append((code, BYTE_STRING, 0, str(attrs[name]).encode(), True))
    if _has_place(attrs) and not {"y", "x"} <= set(cutout.dims):
        # What is left of a map has other axes.
        return tags
    grid = {} if _has_place(attrs) else _grid_place(cutout)
    for code, numbers in (grid or placement(cutout)).items():
        tags.append((code, DOUBLE, len(numbers), tuple(map(float, numbers)), True))
    return tags + _key_tags(attrs | (DEGREES if grid else {}))


def _packing(cutout: VariableSet, bands: int) -> dict[str, str]:
    """Return scale, offset, unit and fill value of the CF conventions as GDAL writes them."""
    import numpy as np

    attrs, items = cutout.attrs, []
    for role, name in ROLES.items():
        value = number_of(attrs.get(name))
        if value is None or np.size(value) != 1:
            continue
        text = value if isinstance(value, str) else repr(float(value))
        items += [
            f'<Item name="{role.upper()}" sample="{band}" role="{role}">{escape(text)}</Item>'
            for band in range(bands)
        ]
    tags = {"GDAL_METADATA": f"<GDALMetadata>{''.join(items)}</GDALMetadata>"} if items else {}
    fill = fill_value(attrs, cutout.dtype)
    if fill is not None:
        one = _without_sign(np.asarray(fill, cutout.dtype).reshape(1), attrs)[0]
        tags["GDAL_NODATA"] = str(one)
    return tags


def _with_fill(data: NDArray[Any], cutout: VariableSet) -> NDArray[Any]:
    """Return the elements, with the fill value in the place of each that has no value."""
    import numpy as np

    mask = np.ma.getmaskarray(masked_values(Variable(data, cutout.dims, cutout.attrs)))
    if not mask.any():
        return data
    fill = fill_value(cutout.attrs, data.dtype)
    if fill is not None:
        return np.where(mask, fill, data)
    warnings.warn(
        f"{cutout.url}, array {cutout.path}: {np.count_nonzero(mask)} elements without a value "
        "have one in TIFF, as the array names no fill value of its type",
        stacklevel=3,
    )
    return data


def _has_place(attrs: Mapping[str, Any]) -> bool:
    """Check whether attributes of a GeoTIFF place the pixels."""
    return "ModelTiepoint" in attrs or "ModelTransformation" in attrs


def _grid_place(cutout: VariableSet) -> dict[int, NDArray[np.float64]]:
    """Return the tags that place a regular grid of latitudes and longitudes; empty if it is none.

    Pixels are areas around the coordinates. Rows stay in their order. A grid that lies east of 180
    degrees gets western longitudes: maps of EPSG:4326 end there.
    """
    import numpy as np

    axes = []
    for name, quantity in zip(cutout.dims[-2:], ("latitude", "longitude"), strict=False):
        variable = cutout.variables.get(name)
        if variable is None or variable.dims != (name,) or variable.data.dtype.kind not in "iuf":
            return {}
        if not sureness_by(name, variable.attrs, quantity):  # type: ignore[arg-type]
            return {}
        values = physical_values(variable).astype("f8")
        step = step_of(values)
        if step is None:
            return {}
        axes.append((step, values[0] - step / 2))
    if len(axes) != 2 or cutout.dims[-1] == "band":
        return {}
    (y_step, y), (x_step, x) = axes
    # Of centres: a pixel at 180 degrees has its western edge before them.
    if min(x + x_step / 2, x + x_step * (cutout.shape[-1] - 0.5)) >= HALF_TURN:
        x -= 2 * HALF_TURN
    if x_step > 0 > y_step:
        return {
            SCALE: np.array([x_step, -y_step, 0]),
            TIEPOINT: np.array([0, 0, 0, x, y, 0]),
        }
    matrix = np.array([[x_step, 0, 0, x], [0, y_step, 0, y], [0, 0, 0, 0], [0, 0, 0, 1]])
    return {TRANSFORM: matrix.ravel()}


def placement(cutout: VariableSet) -> dict[int, NDArray[np.float64]]:
    """Return the tags that place the part on the ground: those of the source, moved.

    Tie points move in the picture by the start of the part. A transform moves its origin.
    """
    import numpy as np

    x0, y0 = (0, 0) if cutout.box is None else cutout.box[:2]
    attrs, tags = cutout.attrs, {}
    if "ModelPixelScale" in attrs:
        tags[SCALE] = np.ravel(attrs["ModelPixelScale"]).astype(float)
    if "ModelTiepoint" in attrs:
        points = np.array(attrs["ModelTiepoint"], float).reshape(-1, 6)
        if len(points) == 1 and SCALE in tags:
            # Readers expect the tie point of a grid at its first pixel.
            points[0, 3] += (x0 - points[0, 0]) * tags[SCALE][0]
            points[0, 4] -= (y0 - points[0, 1]) * tags[SCALE][1]
            points[0, :2] = 0
        else:
            points[:, 0] -= x0
            points[:, 1] -= y0
        tags[TIEPOINT] = points.ravel()
    if "ModelTransformation" in attrs:
        matrix = np.array(attrs["ModelTransformation"], float).reshape(4, 4)
        matrix[:, 3] += matrix[:, 0] * x0 + matrix[:, 1] * y0
        tags[TRANSFORM] = matrix.ravel()
    return tags


def attributes_of_part(cutout: VariableSet) -> dict[str, Any]:
    """Return the attributes of a cut for files that keep them as they are: the place is the part's.

    Without the axis y or x it has none.
    """
    if not _has_place(cutout.attrs):
        return cutout.attrs
    tags = placement(cutout) if {"y", "x"} <= set(cutout.dims) else {}
    rest = {name: value for name, value in cutout.attrs.items() if name not in PLACES}
    return rest | {name: tags[code] for name, code in PLACES.items() if code in tags}


def _key_tags(attrs: Mapping[str, Any]) -> list[tuple[int, int, int, Any, bool]]:
    """Return the directory of GeoTIFF keys, with its numbers and texts."""
    import numpy as np
    from tifffile.geodb import GeoKeys

    codes = {key.name: key.value for key in GeoKeys}
    version = [int(attrs.get(name, 1)) for name in ("KeyDirectoryVersion", "KeyRevision")]
    rows: list[tuple[int, int, int, int]] = []
    doubles: list[float] = []
    text = ""
    for name in sorted(set(attrs) & set(codes), key=lambda each: codes[each]):
        value = attrs[name]
        if isinstance(value, str):
            rows.append((codes[name], TEXTS, len(value.encode()) + 1, len(text.encode())))
            text += f"{value}|"
        elif np.asarray(value).dtype.kind in "iu":
            rows.append((codes[name], 0, 1, int(value)))
        else:
            numbers = np.ravel(value).astype(float).tolist()
            rows.append((codes[name], DOUBLES, len(numbers), len(doubles)))
            doubles += numbers
    if not rows:
        return []
    head = (*version, int(attrs.get("KeyRevisionMinor", 0)), len(rows))
    directory = [*head, *(number for row in rows for number in row)]
    tags: list[tuple[int, int, int, Any, bool]] = [
        (KEYS, SHORT, len(directory), tuple(directory), True)
    ]
    if doubles:
        tags.append((DOUBLES, DOUBLE, len(doubles), tuple(doubles), True))
    if text:
        tags.append((TEXTS, BYTE_STRING, 0, text.encode(), True))
    return tags
