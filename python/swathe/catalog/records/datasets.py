"""What the catalogue keeps of datasets, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

State = Literal["ok", "damaged", "failed", "vanished", "stale"]
"""Of a replica: catalogued; no FITS file, or a broken one; could not be read or written, which may
pass; no longer there; a copy of what the object was before."""
CALIBRATED = 2
"""Calibration level of what is not said to be of another."""
CALIB_LEVELS = range(5)
"""ObsCore 1.1, 4.1: 0 as the instrument gave it, 1 in a standard format, 2 calibrated, 3 made of
several, 4 the result of an analysis."""
ORDER = 29
"""Of the HEALPix cells that footprints are ranges of: the finest that 64 bits hold."""
ALL_CELLS = 12 * 4**ORDER
LEVELS = range(0, 33, 2)
"""Ranges of one level are at most `4 ** level` cells long; the whole sky is 12 * 4 ** 29."""


@dataclass(frozen=True)
class Dataset:
    """A named collection of objects.

    Attributes:
        name: letters, digits, `_`, `.` and `-`, as of stores.
        store: name of the store it was found in.
        prefix: the folder there, without a slash at the end; empty for all of the store.
        pattern: of the names taken, as a shell's; `None` for all.
        calib_level: how far its images are calibrated, see `CALIB_LEVELS`.
        added_at: when it was added, UTC.
        synced_at: when all of it was last seen; `None` while the first scan is not done.
        objects: how many objects are catalogued.
        granules: how many images they hold.
        states: how many replicas there are of each state, by store.
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


@dataclass(frozen=True)
class Replica:
    """A copy of an object.

    Attributes:
        object_path: its path in the first store of the dataset.
        path: its path in this store.
        size: bytes, where known.
        modified: what the listing says of the time, or its ETag.
        version: the engine's; `None` where it was never read.
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
    """Which part of the sky an image covers, ICRS.

    Attributes:
        s_ra: right ascension of its centre, degrees.
        s_dec: declination of its centre, degrees.
        s_fov: diameter of the circle around that centre which holds it, degrees.
        s_pixel_scale: arc seconds a pixel.
        ranges: HEALPix cells of order 29 that it may touch, nested, `(first, last)`, last included.
        outline: corners of the polygon it is, to a small part of a pixel: ra, dec, ra, dec, ...,
            with great circles between; `None` where no polygon can be it.
        wcs: cards of its WCS, where there is no outline.
    """

    s_ra: float
    s_dec: float
    s_fov: float
    s_pixel_scale: float
    ranges: list[tuple[int, int]]
    outline: list[float] | None = None
    wcs: str | None = None


@dataclass(frozen=True)
class Granule:
    """An image of a dataset.

    Attributes:
        path: of its object, in the first store of the dataset.
        hdu: number of the HDU, from 0.
        name: its EXTNAME.
        shape: in NumPy order.
        t_min: when it began, MJD, UTC.
        t_max: when it ended, MJD, UTC.
        band: name of the filter, as the header has it.
        em_min: shortest wavelength, metres.
        em_max: longest wavelength, metres.
        footprint: where in the sky it is.
        note: why it has no footprint, where that is no matter of course.
        facility: the telescope, as the header has it.
        instrument: as the header has it.
        target: what was looked at, as the header has it.
        pol: states of polarization, by the words of ObsCore.
        size: bytes of the object.
        version: of the object.
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


@dataclass(frozen=True)
class Match:
    """A granule that a search found, and where to read it.

    Attributes:
        dataset: name of its dataset.
        calib_level: of its dataset.
        file: `STORE:path`.
        granule: the image; without the ranges of its footprint.
    """

    dataset: str
    calib_level: int
    file: str
    granule: Granule
