"""Cut one region out of an array, as `swathe.cut` does."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError, RegionError
from swathe.files.array_companions import quality_planes
from swathe.files.array_cutout import cut_region
from swathe.files.array_region import ArrayRegion, region_of
from swathe.files.array_sides import join_sides
from swathe.files.recent_files import array_windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astropy.coordinates import SkyCoord
    from numpy.typing import NDArray

    from swathe.core.angles import Size
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box, Mode
    from swathe.files.array import Array
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.array_file import ArrayFile

ADVICE = "give index= or box= (--index, --box)"
"""What gives a region of an array without places or times."""


@dataclass(frozen=True)
class RegionOptions:
    """What gives the region of an array; each may be left out.

    Attributes:
        index: number or slice by the name of the axis.
        box: `(x0, y0, width, height)` on the axes y and x.
        section: NumPy slices, one for each axis.
        bounds: `(west, south, east, north)` in degrees.
        time: `(from, to)`.
        sky: position on the sky, and size.
    """

    index: Mapping[str, int | slice] | None = None
    box: Box | None = None
    section: Any = None
    bounds: tuple[float, float, float, float] | None = None
    time: tuple[Any, Any] | None = None
    sky: tuple[SkyCoord, Size] | None = None

    @property
    def is_empty(self) -> bool:
        """Check whether nothing gives a region; an index without names gives none."""
        has_place = self.box is not None or self.section is not None or self.sky is not None
        return not (has_place or self.index or self.bounds is not None or self.time is not None)

    def parts(self, array: Array) -> list[dict[int, tuple[int, int]]]:
        """Return `(start, stop)` of the bounds and times, by the number of the axis.

        There are two parts where the bounds cross the edge of a grid.

        Raises:
            SwatheError: As `region_of_bounds` and `region_of_time` do.
        """
        parts: list[dict[int, tuple[int, int]]] = [{}]
        if self.bounds is not None:
            from swathe.files.places.regions import region_of_bounds

            parts = region_of_bounds(array, self.bounds, ADVICE)
        if self.time is not None:
            from swathe.files.places.times import region_of_time

            times = region_of_time(array, self.time, ADVICE)
            parts = [part | times for part in parts]
        return parts


def cut_array(
    file: ArrayFile,
    path: str | None,
    options: RegionOptions,
    mode: Mode,
    with_quality: bool,
    objective: Objective,
) -> ArrayCutout:
    """Cut a region out of an array of an open file.

    Bounds that cross the edge of a global grid give one cut of both sides.

    Args:
        file: the open file.
        path: path of the array, or its last name; by default the only one with two axes or more.
        options: what gives the region.
        mode: `trim`, `partial` or `strict`.
        with_quality: whether the quality planes that `ancillary_variables` names come too; a
            warning says that there are none.
        objective: what plans of reads keep small.

    Raises:
        NoSuchArrayError: If there is no such array, or there are several.
        FormatError: If the array is refused.
        RegionError: If the region is invalid or outside the array.
    """
    if options.is_empty:
        raise RegionError(
            f"{file.url}: give one of box, section, center, sky, bounds, index and time"
        )
    array = file.array(path)
    array.check_readable()
    if with_quality and not quality_planes(file, array):
        warnings.warn(
            f"{file.url}, array {array.path}: with_quality: expected quality planes in "
            "ancillary_variables, found none",
            stacklevel=4,
        )
    parts, box = options.parts(array), options.box
    if options.sky is not None:
        from swathe.files.places.sky import sky_box

        box = sky_box(array, *options.sky)
    cuts = [
        cut_region(
            file,
            array,
            region_of(array, options.index, box, options.section, part, mode),
            with_quality=with_quality,
            objective=objective,
        )
        for part in parts
    ]
    if len(cuts) == 1:
        return cuts[0]
    (axis,) = (axis for axis in parts[0] if parts[0][axis] != parts[1][axis])
    return join_sides(cuts[0], cuts[1], axis)


def cut_window(name: str, path: str, box: Any, objective: Objective) -> ArrayCutout | None:
    """Cut a small box that lies in an array of a local file that is open.

    It is the way of most cuts: what `cut_array` asks for, such a cut has not. All that
    needs no Python is one call, so that threads seldom wait for each other.

    Returns:
        `None` if the file is not open or has changed, or the box is another.
    """
    import numpy as np

    windows = array_windows(name, path)
    window = None if windows is None else windows.reader.cut(box, objective)
    if windows is None or window is None:
        return None
    file, array, _ = windows
    pixels, start, stop, shape = window
    elements: NDArray[Any] = np.ndarray(shape, array.dtype, memoryview(pixels))
    region = ArrayRegion(start, stop)
    return cut_region(file, array, region, objective=objective, elements=elements)


def refuse_options(what: str, kind: str, options: Mapping[str, Any]) -> None:
    """Refuse options that belong to files of the other kind.

    Raises:
        OptionError: If one is given; names all of them.
    """
    names = [name for name, value in options.items() if value not in (None, False)]
    if names:
        hint = "; hdu= names an HDU" if "array" in names else ""
        raise OptionError(f"{what}: expected options of {kind}, found {', '.join(names)}{hint}")
