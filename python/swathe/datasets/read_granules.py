"""Read the image headers or arrays of an object, and make granules from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from swathe.catalog.records.datasets import Footprint, Granule
from swathe.core.errors import RegionError, SwatheError
from swathe.core.sky import SkyMapping, read_wcs
from swathe.datasets.footprint import footprint
from swathe.datasets.header_metadata import band, origin, polarizations, times
from swathe.datasets.read_arrays import array_granules, refusals
from swathe.files.array_file import ArrayFile, tree_of
from swathe.files.file import open_from_cache

if TYPE_CHECKING:
    from astropy.io.fits import Header
    from astropy.wcs import WCS

    from swathe.files.file import File


@dataclass(frozen=True)
class ImageHeader:
    """An image HDU and its header.

    Attributes:
        hdu: number of the HDU.
        name: EXTNAME.
        shape: shape in NumPy order.
        problem: reason if regions cannot be cut from it.
        cards: header.
        tables: FITS file of the lookup tables that its WCS names.
    """

    hdu: int
    name: str | None
    shape: tuple[int, ...]
    problem: str | None
    cards: bytes
    tables: bytes


@dataclass(frozen=True)
class ObjectHeaders:
    """Headers of an object.

    Attributes:
        size: stored size in bytes.
        version: version as the engine writes it.
        primary: the first header if it has no image of its own, but describes the file.
        images: image headers; `None` if the version is the known one.
        arrays: granules of a file of another format than FITS; `None` for FITS.
        refusals: why arrays of it are not read, for each of them.
    """

    size: int
    version: str
    primary: bytes | None
    images: list[ImageHeader] | None
    arrays: list[Granule] | None = None
    refusals: tuple[str, ...] = ()


def read_headers(path: str, known_version: str | None = None) -> ObjectHeaders:
    """Read the headers or arrays of an object, unless it has the known version; thread-safe.

    The layouts and chunk indexes are stored in the index.

    Raises:
        NotFoundError, AccessError, SourceError: If the object cannot be read.
        FormatError: If it is of no known format, or damaged.
        SettingsError: If the library of its format is not installed.
    """
    file = open_from_cache(path, fresh=True)
    if file.version == known_version:
        return ObjectHeaders(file.size, file.version, None, None)
    tree = tree_of(file._native)
    if tree is not None:
        array_file = ArrayFile(file._native, tree, [], file.name)
        arrays = array_granules("", array_file, file.size)
        why = refusals(array_file)
        return ObjectHeaders(file.size, file.version, None, [], arrays, why)
    return headers_of(file)


def headers_of(file: File) -> ObjectHeaders:
    """Return the headers of an open file.

    Raises:
        SourceError: If the headers cannot be read.
    """
    native = file._native
    images = []
    hdus = file.hdus
    for info in hdus:
        if info.kind not in ("image", "compressed-image"):
            continue
        problem, tables = info.problem, b""
        try:
            tables = native.wcs_hdus(info.index)
        except SwatheError as error:
            problem = problem or str(error)
        cards = native.header(info.index)
        images.append(ImageHeader(info.index, info.name, tuple(info.shape), problem, cards, tables))
    about_all = bool(hdus) and hdus[0].kind == "empty"
    primary = native.header(0) if about_all and images else None
    return ObjectHeaders(file.size, file.version, primary, images)


def granules_of(path: str, headers: ObjectHeaders) -> list[Granule]:
    """Return the granules of an object from its headers; not thread-safe."""
    from astropy.io import fits

    if headers.arrays is not None:
        return [replace(each, path=path) for each in headers.arrays]
    primary = None if headers.primary is None else fits.Header.fromstring(headers.primary)
    return [_granule(path, headers, image, primary) for image in headers.images or ()]


def _granule(
    path: str, headers: ObjectHeaders, image: ImageHeader, primary: Header | None
) -> Granule:
    from astropy.io import fits

    cards = fits.Header.fromstring(image.cards)
    # INHERIT = F means that the first header does not apply to this HDU.
    inherited_cards = None if cards.get("INHERIT") is False else primary
    wcs, place, note = None, None, image.problem
    label = f"{path}, HDU {image.hdu}"
    if len(image.shape) >= 2 and all(image.shape):
        try:
            wcs = _wcs(image, label)
            if wcs.has_celestial:
                place = _footprint(wcs, image, label)
        except RegionError as error:
            note = note or str(error).removeprefix(f"{label}: ")
    t_min, t_max = times(cards, inherited_cards)
    name, em_min, em_max = band(cards, wcs, image.shape, inherited_cards)
    facility, instrument, target = origin(cards, inherited_cards)
    states = None if wcs is None else polarizations(wcs, image.shape[::-1])
    return Granule(
        path=path,
        hdu=image.hdu,
        name=image.name,
        shape=image.shape,
        size=headers.size,
        version=headers.version,
        t_min=t_min,
        t_max=t_max,
        band=name,
        em_min=em_min,
        em_max=em_max,
        footprint=place,
        note=note,
        facility=facility,
        instrument=instrument,
        target=target,
        pol=() if states is None else tuple(state for state in states[1] if state),
    )


def _footprint(wcs: WCS, image: ImageHeader, label: str) -> Footprint:
    sky, lengths = SkyMapping(lambda: wcs, label), image.shape[::-1]
    first, second = sky.axes_among(len(lengths))
    result = footprint(sky, (lengths[second], lengths[first]))
    if result.outline is None and sky.axes != (0, 1):
        # Such images are compared by their WCS, on axes 1 and 2.
        raise RegionError(f"{label}: its sky has no outline, and is not on axes 1 and 2")
    return result


def _wcs(image: ImageHeader, label: str) -> WCS:
    try:
        return read_wcs(image.cards, image.tables)
    except Exception as error:  # wcslib's own classes share no base
        raise RegionError(f"{label}: its WCS cannot be used: {error}") from error
