"""World coordinate systems of ASDF files, by the packages asdf and gwcs, in a confined process.

asdf imports the code of every installed package that offers a tag of the file. Here only the
packages in `PACKAGES` may: values with other tags stay plain, and a file cannot choose code.
"""

from __future__ import annotations

import io
import json
import warnings
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import asdf
import gwcs
import numpy as np
from astropy import units
from astropy.coordinates import ICRS, SkyCoord
from astropy.modeling.models import (
    Mapping,
    Pix2Sky_TAN,
    Polynomial2D,
    RotateNative2Celestial,
    Scale,
    Shift,
)
from astropy.utils import iers
from gwcs.coordinate_frames import CelestialFrame, Frame2D

from swathe.arrays.readers.limits import BoundedFile, typed_errors
from swathe.core.errors import FormatError, RegionError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = {"asdf", "asdf-astropy", "asdf-standard", "gwcs"}


@contextmanager
def _system(file: IO[bytes], path: str) -> Iterator[Any]:
    """Open the world coordinate system at a path of the tree.

    Raises:
        FormatError: If the file is damaged, or has none there.
    """
    with asdf.config_context() as config, typed_errors("gwcs"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions, and tags that stay plain
        for extension in config.extensions:
            if extension.package_name not in PACKAGES:
                config.remove_extension(extension)
        source = io.BufferedReader(BoundedFile(file))
        with asdf.open(source, memmap=False, lazy_load=True) as tree:
            node: Any = tree.tree
            for part in path.split("/")[1:]:
                key = part.replace("~1", "/").replace("~0", "~")
                node = node[int(key) if isinstance(node, list) else key]
            if not isinstance(node, gwcs.WCS):
                raise FormatError(f"{path}: expected a gwcs, found {type(node).__name__}")
            yield node


def sample() -> bytes:
    """Return an ASDF file with a system as cameras have it, as `wcs`: a distortion, TAN, ICRS.

    Its pixel (200, 150) shows 30, 10 degrees. The costs of this host are measured by it.
    """
    bend = Polynomial2D(3, c1_0=1.0, c2_0=1e-5) & Polynomial2D(3, c0_1=1.0, c0_2=1e-5)
    bend.inverse = Mapping((0, 1, 0, 1)) | (Polynomial2D(3, c1_0=1.0) & Polynomial2D(3, c0_1=1.0))
    distortion = Mapping((0, 1, 0, 1)) | bend
    distortion.inverse = bend.inverse
    centre = Shift(-200.0) & Shift(-150.0)
    sky = (Scale(3e-5) & Scale(3e-5)) | Pix2Sky_TAN() | RotateNative2Celestial(30.0, 10.0, 180.0)
    pixels = Frame2D(name="detector", unit=(units.pix, units.pix))
    frame = CelestialFrame(name="icrs", reference_frame=ICRS(), unit=(units.deg, units.deg))
    system = gwcs.WCS([(pixels, centre | distortion | sky), (frame, None)])
    content = io.BytesIO()
    asdf.AsdfFile({"wcs": system}).write_to(content, all_array_storage="inline")
    return content.getvalue()


def load() -> None:
    """Load what asdf and gwcs read from their own files at their first use.

    Schemas and converters take half a second; a process forked later has them.
    """
    content = io.BytesIO(sample())
    locate(content, "/wcs", [30.0], [10.0])
    shift(content, "/wcs", [1, 1])


def shift(file: IO[bytes], path: str, start: list[int]) -> bytes:
    """Return an ASDF file with the system of a part of the pixels, as `wcs`, without blocks.

    Args:
        file: the file, for reading at any position.
        path: path of the system in its tree.
        start: first pixel of the part, along x and y.

    Raises:
        FormatError: If the file is damaged.
        RegionError: If the system has another number of pixel axes.
    """
    with _system(file, path) as system:
        content = io.BytesIO()
        part = _system_of_part(system, path, start)
        asdf.AsdfFile({"wcs": part}).write_to(content, all_array_storage="inline")
        return content.getvalue()


def _system_of_part(system: Any, path: str, start: list[int]) -> Any:
    """Return the system of a part of the pixels; its bounding box moves, too."""
    _check_pixel_axes(system, path)
    steps = system.pipeline
    first = steps[0].transform.copy()
    box = system.bounding_box
    if box is not None:
        del first.bounding_box
    offsets = [each * units.pix for each in start] if first.uses_quantity else start
    transform = (Shift(offsets[0]) & Shift(offsets[1])) | first
    transform.name = first.name
    rest = [(step.frame, step.transform) for step in steps[1:]]
    part = gwcs.WCS([(steps[0].frame, transform), *rest], name=system.name)
    if box is not None:
        ranges = [box.intervals[number] for number in range(2)]
        ends = [
            (each.lower - first_pixel, each.upper - first_pixel)
            for each, first_pixel in zip(ranges, start, strict=True)
        ]
        part.bounding_box = tuple(ends)
    return part


def locate(file: IO[bytes], path: str, longitudes: list[float], latitudes: list[float]) -> bytes:
    """Return where positions of ICRS lie, as a JSON list of `x`, `y`, and `scales`.

    `x` and `y` are pixels from 0, null if there is no such place; `scales` are degrees for a pixel
    along x and y there. A position that cannot be computed has a `fault` instead.

    Args:
        file: the file, for reading at any position.
        path: path of the system in its tree.
        longitudes: right ascensions in degrees.
        latitudes: declinations in degrees.

    Raises:
        FormatError: If the file is damaged.
        RegionError: If the system does not map two axes of pixels to the sky.
    """
    iers.conf.auto_download = False
    with _system(file, path) as system:
        _check_pixel_axes(system, path)
        frame = system.output_frame
        if not isinstance(frame, CelestialFrame):
            raise RegionError(f"{path}: expected coordinates of the sky, found {frame}")
        if frame.reference_frame is None:
            raise RegionError(f"{path}: expected a frame of the sky with a reference, found none")
        all_places = SkyCoord(longitudes, latitudes, unit="deg")
        places = all_places.transform_to(frame.reference_frame)
        try:
            pixels = _pixels_of(system, frame, places)
        except Exception:  # of one of them; each says why
            pixels = [_pixel_of(system, frame, place) for place in places]
        return json.dumps(pixels).encode()


def _pixel_of(system: Any, frame: CelestialFrame, place: SkyCoord) -> dict[str, Any]:
    try:
        return _pixels_of(system, frame, place.reshape(1))[0]
    except Exception as error:  # models share no base class of errors
        return {"fault": f"{type(error).__name__}: {error}"[:300]}


def _pixels_of(system: Any, frame: CelestialFrame, places: SkyCoord) -> list[dict[str, Any]]:
    """Return where positions lie, as `locate` does."""
    angles = (places.spherical.lon, places.spherical.lat)
    world = [each.to_value(unit) for each, unit in zip(angles, frame.unit, strict=True)]
    inverse = system.invert(*world, with_bounding_box=False)
    x, y = (np.broadcast_to(np.asarray(each, float), places.shape) for each in inverse)
    is_place = np.isfinite(x) & np.isfinite(y)
    inside_x, inside_y = np.where(is_place, x, 0), np.where(is_place, y, 0)
    scales = []
    for dx, dy in ((1, 0), (0, 1)):
        ends = [
            system(inside_x + sign * dx / 2, inside_y + sign * dy / 2, with_bounding_box=False)
            for sign in (-1, 1)
        ]
        one, other = (SkyCoord(*end, unit=frame.unit) for end in ends)
        scales.append(np.broadcast_to(one.separation(other).deg, places.shape).tolist())
    numbers = zip(x.tolist(), y.tolist(), *scales, is_place.tolist(), strict=True)
    return [
        {"x": east, "y": north, "scales": sides} if is_there else {"x": None, "y": None}
        for east, north, *sides, is_there in numbers
    ]


def _check_pixel_axes(system: Any, path: str) -> None:
    if system.pixel_n_dim != 2:
        raise RegionError(f"{path}: expected two axes of pixels, found {system.pixel_n_dim}")
