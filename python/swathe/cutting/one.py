"""Cut one region: `swathe.cut`."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any

from swathe._swathe import trace_is_on
from swathe.core.argument_checks import check_fill, check_objective, check_text
from swathe.core.box import MODES, box_around, box_from_section, height_width, validated_box
from swathe.core.errors import CatalogError, ChangedError, NoOverlapError, RegionError, SwatheError
from swathe.cutting.one_array import RegionOptions, cut_array, cut_window, refuse_options
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any, with_external
from swathe.files.source_name import name_of
from swathe.files.targets.positions import position, size_of
from swathe.stores.registry import is_named
from swathe.trace import point

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astropy.coordinates import SkyCoord

    from swathe._swathe import HduKey
    from swathe.core.angles import Size
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box, Mode
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.cutout import Cutout
    from swathe.files.file import File
    from swathe.files.planes import Planes
    from swathe.files.slices import Slices
    from swathe.files.source_name import Source

BOX = "x0, y0, width, height"
NONE = {NoneType}


def cut(
    path: Source,
    *,
    box: tuple[int, int, int, int] | None = None,
    section: str | Slices | None = None,
    center: tuple[float, float] | None = None,
    shape: int | tuple[int, int] | None = None,
    sky: tuple[Any, Any] | str | SkyCoord | None = None,
    size: Any = None,
    size_deg: float | tuple[float, float] | None = None,
    frame: str | None = None,
    hdu: HduKey | None = None,
    mode: Mode = "trim",
    fill: float | None = None,
    planes: Planes | None = None,
    array: str | None = None,
    index: Mapping[str, int | slice] | None = None,
    bounds: tuple[float, float, float, float] | None = None,
    time: tuple[Any, Any] | None = None,
    with_quality: bool = False,
    objective: Objective = "auto",
    allow_external: bool = False,
) -> Cutout | Any:
    """Cut one region out of an image of FITS, or out of an array of another format.

    The region is one of `box`, `section`, `center` with `shape`, `sky` with `size` or `size_deg`.
    Of arrays, `bounds` is another, and `index` and `time` give a region too, alone or with one of
    the others; `sky` needs a WCS of FITS or a GWCS of ASDF, `fill` is for FITS. A `box`, a
    `center` and a FITS section act on the axes y and x, else on the last two.

    Example:
        >>> swathe.cut("frame.fits", box=(700, 600, 100, 80)).shape  # x0, y0, width, height
        (80, 100)
        >>> swathe.cut("frame.fits", section=numpy.s_[600:680, 700:800]).box  # y, x
        (700, 600, 100, 80)

    Args:
        path: file by path or URL, as in `swathe.open`; any compression.
        box: `(x0, y0, width, height)` in pixels; x0 and y0 are zero-based, x along NAXIS1.
        section: a FITS section, `"[x1:x2,y1:y2]"`, one-based and inclusive; or NumPy slices in the
            order of the axes of `Image.shape`, `(..., y, x)`, with step 1: the cutout is
            `image[section]`. Slices beyond the image are trimmed.
        center: `(x, y)`, zero-based pixel position, rounded as in `astropy.nddata.Cutout2D`.
        shape: `(height, width)` in pixels, or one number for both.
        sky: right ascension and declination (ICRS), each in degrees, as an angle or as text; one
            text, `"10:00:28.6 +02:12:21"`; or a `SkyCoord` in any frame.
        size: side, or `(height, width)`: an angle, `3 * u.arcmin` or `"30arcsec"`, or pixels,
            `100 * u.pixel` or `"100pix"`.
        size_deg: side, or `(height, width)`, in degrees.
        frame: frame of `sky`, if not ICRS, such as `galactic`, `fk5`, `fk4`, `ecliptic`.
        hdu: number from 0 (-1: the last), EXTNAME, or `(EXTNAME, EXTVER)`; else the first image.
        mode: `trim` to the image, `partial`: fill outside the image, `strict`: refuse it.
        fill: physical value outside an image of FITS; by default NaN, BLANK, or 0. Outside of an
            array is the fill value of its file.
        planes: planes of a cube to keep along NAXIS3 (zero-based): one, a slice, `(first, last)`
            without the last, or a list of consecutive planes; by default all.
        array: path of an array in a file that is not FITS, or its last name if no other array has
            it; by default the only array with two axes or more.
        index: number or slice (step 1) by the name of an axis of the array, such as
            `{"time": 3, "lat": slice(10, 20)}`. A number drops the axis, as in NumPy.
        bounds: `(west, south, east, north)` in degrees, for an array with longitudes and latitudes
            (CF coordinates, a swath, or a geographic GeoTIFF): of a grid the pixels whose centres
            lie in it, of a swath the smallest box of indices with all of these.
        time: `(from, to)` for an array with CF times, such as `("2005-05-01", "2005-05-07")`; both
            ends belong to it, a date alone is the whole day, in UTC.
        with_quality: whether the quality planes that the attribute `ancillary_variables` names
            come with the array; a warning says that there are none.
        objective: what plans of reads from servers keep small. `auto` (default): the time of the
            read while the line is idle, and what it takes of the line while other reads of this
            process fill it. `latency`: always the time. `throughput`: always what it takes of the
            line and the server; a read alone then takes longer.
        allow_external: whether the array may lie in other files of the folder, as in `swathe.open`.

    Returns:
        A `Cutout` of a FITS file, an `ArrayCutout` of another one.

    Raises:
        OptionError: If there is no such objective, or an option is not for this kind of file.
        NoSuchArrayError: If the file has no such array, or several and none is named.
        NotFoundError, AccessError, SourceError: If the file cannot be read.
        FormatError: If the file is damaged.
        NoSuchHduError: If the file has no such HDU, or the HDU holds no image (NotAnImageError).
        NoOverlapError, PartialOverlapError, RegionError: If the region is outside or invalid.
    """
    fill, objective = check_fill(fill), check_objective(objective)
    if not isinstance(mode, str) or mode not in MODES:
        check_text("mode", mode)
    name = name_of(path)
    places = (section, center, shape, sky, size, size_deg, frame, index, bounds, time)
    has_more = with_quality or allow_external or {*map(type, (*places, hdu, fill, planes))} != NONE
    if isinstance(array, str) and mode in MODES and not has_more:
        with suppress(ChangedError):  # it is opened anew below
            window = cut_window(name, array, box, objective)
            if window is not None:
                return window
    ways = {"box": box, "section": section, "center": center, "sky": sky, "bounds": bounds}
    names = [name for name, value in ways.items() if value is not None]
    if len(names) != 1 and (names or (index is None and time is None)):
        raise RegionError(
            f"give one of box, section, center, sky and bounds, not {names or 'none'}; of an array "
            "index or time"
        )
    if (shape is None) != (center is None):
        raise RegionError("give center and shape together")
    center_box = _box_of_center(center, shape)
    if isinstance(section, str):
        box, section = box_from_section(section), None
    if section is not None and planes is not None:
        raise RegionError("give slices or planes: slices choose planes too")
    place, side = _in_sky(sky, size, size_deg, frame)

    def cut_from(file: File | ArrayFile) -> Cutout | ArrayCutout:
        if allow_external:
            file = with_external(file)
        if isinstance(file, ArrayFile):
            refuse_options(name, "arrays", {"hdu": hdu, "fill": fill, "planes": planes})
            pixels = center_box if box is None else validated_box(*_as("box", BOX, box))
            at = None if place is None or side is None else (place, side)
            region = RegionOptions(index, pixels, section, bounds, time, at)
            return cut_array(file, array, region, mode, with_quality, objective)
        of_arrays = {"array": array, "index": index, "bounds": bounds, "time": time}
        refuse_options(name, "FITS", of_arrays | {"with_quality": with_quality})
        try:
            image = file.image(hdu)
            if section is not None:
                start, stop = image.slice_ends(section)
                return image.cut_all_axes(start, stop, mode, fill, objective)
            if box is not None:
                pixels = validated_box(*_as("box", BOX, box))
            elif center_box is not None:
                pixels = center_box
            else:
                assert place is not None and side is not None
                pixels = image.sky.box(place, side)
            start, stop = image.ends(pixels, planes)
        except SwatheError as error:
            _tell(file, name, error)
            raise
        return image.cut_all_axes(start, stop, mode, fill, objective)

    def cut_with_notes(file: File | ArrayFile) -> Cutout | ArrayCutout:
        cutout = cut_from(file)
        cutout.notes = file.notes
        return cutout

    try:
        return cut_with_notes(open_any(name))
    except ChangedError:
        # The index entry of an object on a server may be out of date.
        return cut_with_notes(open_any(name, fresh=True))


def _tell(file: File, name: str, error: SwatheError) -> None:
    """Record an event for a cut that failed before the engine began; the engine records others."""
    # The cut's own error must be raised, whatever happens here.
    with suppress(CatalogError):
        if trace_is_on():
            about = {"object": name if is_named(name) else file.url}
            result = "no-overlap" if isinstance(error, NoOverlapError) else "error"
            point("CUT_START", **about)
            point("CUT_END", **about, result=result, reason=str(error))


def _box_of_center(
    center: tuple[float, float] | None, shape: int | tuple[int, int] | None
) -> Box | None:
    if center is None or shape is None:
        return None
    x_y = _as("center", "x, y", center)
    return box_around(*x_y, *_as("shape", "height, width", height_width(shape)))


def _as(what: str, names: str, numbers: Any) -> Any:
    """Return the numbers unchanged if their count is right."""
    count = names.count(",") + 1
    if not isinstance(numbers, Sized) or len(numbers) != count:
        raise RegionError(f"{what}: expected {count} numbers, ({names}), found {numbers!r:.100}")
    return numbers


def _in_sky(
    sky: Any, size: Any, size_deg: Any, frame: str | None
) -> tuple[SkyCoord | None, Size | None]:
    """Return position and size of a sky region; `None` if the region is in pixels."""
    if sky is None:
        if size is not None or size_deg is not None or frame is not None:
            raise RegionError("size, size_deg and frame need sky; center needs shape")
        return None, None
    if (size is None) == (size_deg is None):
        raise RegionError("sky needs one of size and size_deg")
    side = size_of(size) if size_deg is None else size_of(size_deg, "size_deg", bare_deg=1.0)
    return position(sky, frame), side
