"""Records of datasets as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

State = Literal["ok", "damaged", "failed", "vanished", "stale"]
"""State of a replica: catalogued; of no known format or broken; could not be read or written,
perhaps temporarily; no longer there; a copy of an earlier version of the object."""
USUAL_CALIB_LEVEL = 2
"""Default calibration level."""
OUTPUT_CALIB_LEVEL = 4
"""Calibration level of outputs of algorithms."""
CALIB_LEVELS = range(5)
"""ObsCore 1.1, 4.1: 0 raw instrument data, 1 in a standard format, 2 calibrated, 3 combined from
several, 4 result of an analysis."""
ORDER = 29
"""Order of the HEALPix cells of footprints: the finest that 64 bits hold."""
MOC_ORDER = 10
"""HEALPix order of the smallest cells of a MOC: 3.4 arcminutes."""
MOST_MOC_ORDER = 11
"""Largest order. At most 12 * 4**11 / 2 ranges are held, 0.4 GB, whatever is covered."""
ALL_CELLS = 12 * 4**ORDER
LEVELS = range(0, 33, 2)
"""Ranges of one level are at most `4 ** level` cells long; the whole sky is 12 * 4 ** 29."""


@dataclass(frozen=True)
class Dataset:
    """A named collection of objects.

    Attributes:
        name: letters, digits, `_`, `.` and `-`, as for stores.
        store: name of the store it was found in.
        prefix: folder in the store, without a final slash; empty for the whole store.
        pattern: shell pattern of the file names; `None` for all.
        calib_level: calibration level of its images, 0 to 4 as in ObsCore.
        added_at: time it was added, UTC.
        synced_at: end of the last complete scan; `None` while the first one is unfinished.
        objects: number of catalogued objects.
        granules: number of their images.
        states: number of replicas per state, by store.
        owner: user whose jobs fill it; `None` if it is the operator's.
    """

    name: str
    store: str
    prefix: str
    pattern: str | None
    calib_level: int
    added_at: datetime
    synced_at: datetime | None
    objects: int = 0
    granules: int = 0
    states: dict[str, dict[str, int]] = field(default_factory=dict)
    owner: str | None = None


@dataclass(frozen=True)
class OutputDataset:
    """A dataset that jobs of a user fill with their outputs.

    Attributes:
        name: its name.
        store: name of the store of its objects.
        prefix: folder in the store.
        owner: name of the user.
        is_new: whether there may be none of this name; else the user may have it already.
    """

    name: str
    store: str
    prefix: str
    owner: str
    is_new: bool = True


@dataclass(frozen=True)
class Replica:
    """A copy of an object.

    Attributes:
        object_path: path of the object in the first store of the dataset.
        path: path in this store.
        size: size in bytes, if known.
        modified: time as text in the listing, or the ETag.
        version: version as the engine states it; `None` if it was never read.
        state: see `State`.
        reason: why it is damaged or failed.
    """

    object_path: str
    path: str
    size: int | None
    modified: str | None
    version: str | None
    state: State
    reason: str | None = None


@dataclass(frozen=True)
class Footprint:
    """Part of the sky that an image covers, ICRS.

    Attributes:
        s_ra: right ascension of its centre, degrees.
        s_dec: declination of its centre, degrees.
        s_fov: diameter of the circle around the centre that contains it, degrees.
        s_pixel_scale: arc seconds per pixel.
        ranges: HEALPix cells of order 29 that it may touch, nested, `(first, last)`, last included.
        outline: corners of its polygon, accurate to a small part of a pixel: ra, dec, ra, dec, ...,
            joined by great circles; `None` if it is not a polygon.
        wcs: cards of its WCS, if there is no outline.
    """

    s_ra: float
    s_dec: float
    s_fov: float
    s_pixel_scale: float
    ranges: list[tuple[int, int]]
    outline: list[float] | None = None
    wcs: str | None = None


@dataclass(frozen=True)
class EarthFootprint:
    """Part of the Earth that an array covers.

    Attributes:
        lon: longitude of its centre, 0 to 360 degrees.
        lat: latitude of its centre, degrees.
        fov: diameter of the circle around the centre that contains it, degrees.
        ranges: HEALPix cells of order 29 that it may touch, nested, `(first, last)`, last included.
        outlines: polygons that cover it together, each with the corners lon, lat, lon, lat, ...,
            joined by great circles.
    """

    lon: float
    lat: float
    fov: float
    ranges: list[tuple[int, int]]
    outlines: list[list[float]]


@dataclass(frozen=True)
class Granule:
    """An image, or an array of a file of another format than FITS.

    Attributes:
        path: path of its object, in the first store of the dataset.
        hdu: number of the HDU, from 0; of an array, its number in the file.
        name: its EXTNAME.
        shape: shape in NumPy order.
        t_min: start of the exposure, MJD, UTC.
        t_max: end of the exposure, MJD, UTC.
        band: name of the filter, from the header.
        em_min: shortest wavelength, metres.
        em_max: longest wavelength, metres.
        footprint: its footprint in the sky.
        note: why it has no footprint, if that is unexpected.
        facility: telescope, from the header.
        instrument: instrument, from the header.
        target: target, from the header.
        pol: polarization states, in the words of ObsCore.
        array: path of the array in its file; `None` for an image of FITS.
        place: its footprint on the Earth.
        orbit: number of the orbit, the first of several.
        size: size of the object in bytes.
        version: version of the object.
    """

    path: str
    hdu: int
    name: str | None
    shape: tuple[int, ...]
    size: int
    version: str
    t_min: float | None = None
    t_max: float | None = None
    band: str | None = None
    em_min: float | None = None
    em_max: float | None = None
    footprint: Footprint | None = None
    note: str | None = None
    facility: str | None = None
    instrument: str | None = None
    target: str | None = None
    pol: tuple[str, ...] = ()
    array: str | None = None
    place: EarthFootprint | None = None
    orbit: int | None = None


@dataclass(frozen=True)
class Match:
    """A granule that matches a search, and the copy to read.

    Attributes:
        dataset: name of its dataset.
        calib_level: calibration level of its dataset.
        file: `STORE:path`.
        granule: the image; without the ranges of its footprint.
    """

    dataset: str
    calib_level: int
    file: str
    granule: Granule
