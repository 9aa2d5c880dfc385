"""Make granules from the arrays of a file that is not FITS."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from swathe.catalog.records.datasets import Granule
from swathe.core.errors import FormatError, RegionError, SwatheError
from swathe.datasets.array_metadata import FileMetadata
from swathe.datasets.array_places import Places
from swathe.files.places.attribute_wcs import wcs_cards
from swathe.files.places.coordinates import sureness
from swathe.files.places.sky import gwcs_path

if TYPE_CHECKING:
    from swathe.catalog.records.datasets import EarthFootprint
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

MOST_ARRAYS = 2000
"""Arrays of a file that are catalogued."""
_LOCK = Lock()
"""Footprints of one file at a time: they need some 100 MB."""


def array_granules(path: str, file: ArrayFile, size: int) -> list[Granule]:
    """Return the granules of a file: its arrays with two axes or more, or on a track.

    Args:
        path: path of the object in its store.
        file: the file.
        size: stored size in bytes.

    Raises:
        FormatError: If it has too many arrays, or a coordinate is damaged.
        SwatheError: If coordinates cannot be read.
    """
    arrays = _arrays(file)
    if len(arrays) > MOST_ARRAYS:
        raise FormatError(
            f"{file.url}: expected at most {MOST_ARRAYS} arrays to catalogue, found {len(arrays)}"
        )
    metadata = FileMetadata(file)
    places = Places()
    platform, instrument = metadata.origin()
    orbit = metadata.orbit()
    granules = []
    for number, array in enumerate(arrays):
        place, note = _place(places, array)
        t_min, t_max = metadata.times(array)
        granules.append(
            Granule(
                path=path,
                hdu=number,
                name=array.name,
                shape=array.shape,
                size=size,
                version=file.version,
                t_min=t_min,
                t_max=t_max,
                note=note,
                facility=platform,
                instrument=instrument,
                array=array.path,
                place=place,
                orbit=orbit,
            )
        )
    return granules


def refusals(file: ArrayFile) -> tuple[str, ...]:
    """Return why arrays are not read that may be ones to catalogue: all but those of one axis."""
    return tuple(each.problem or "" for each in file.arrays if each.is_refused and each.ndim != 1)


def _arrays(file: ArrayFile) -> list[Array]:
    """Return the arrays of numbers that are no coordinates and no parameters of a WCS."""
    planes = [file[each.path] for each in file.tree.planes()]
    tracks = [each for each in file.arrays if each.ndim == 1 and _has_places(each)]
    names = {name for each in (*planes, *tracks) for name in each.coords}
    planes += [each for each in tracks if each.name not in names]
    models = [str(each) for each in file.attrs.get("gwcs", ())]
    return [
        each
        for each in planes
        if each.dtype.kind in "biufc"
        and not (sureness(each, "latitude") or sureness(each, "longitude"))
        and not each.is_refused
        and all(each.shape)
        and not any(each.path.startswith(f"{model}/") for model in models)
    ]


def _has_places(array: Array) -> bool:
    """Return whether an array names a latitude and a longitude that lie on its own axes."""
    coordinates = [each for each in array.coords.values() if each.dims == array.dims]
    return all(
        any(sureness(each, quantity) for each in coordinates)
        for quantity in ("latitude", "longitude")
    )


def _sky_note(array: Array) -> str | None:
    """Return that an array has a place in the sky, which is not catalogued; `None` without one."""
    try:
        model = gwcs_path(array)
        if model is None and wcs_cards(array) is None:
            return None
    except RegionError as error:  # several, or an invalid one
        return str(error).removeprefix(f"{array.url}, array {array.path}: ")
    kind = "a WCS in attributes" if model is None else f"a GWCS ({model})"
    return f"its place is in the sky, by {kind}: datasets have that of FITS only; cut it by sky="


def _place(places: Places, array: Array) -> tuple[EarthFootprint | None, str | None]:
    """Return the footprint of an array, or why it has none.

    Raises:
        FormatError: If its coordinates are damaged.
    """
    label = f"{array.url}, array {array.path}: "
    try:
        with _LOCK:
            return places.footprint(array), None
    except FormatError:
        raise
    except RegionError as error:
        return None, _sky_note(array) or str(error).removeprefix(label)
    except SwatheError as error:
        return None, str(error)
