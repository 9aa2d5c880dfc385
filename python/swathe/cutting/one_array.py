"""Cut one region out of an array, as `swathe.cut` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError, RegionError
from swathe.files.array_cutout import cut_region
from swathe.files.array_region import region_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box, Mode
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.array_file import ArrayFile


def cut_array(
    file: ArrayFile,
    path: str | None,
    index: Mapping[str, int | slice] | None,
    box: Box | None,
    section: Any,
    mode: Mode,
    with_quality: bool,
    objective: Objective,
) -> ArrayCutout:
    """Cut a region out of an array of an open file.

    Args:
        file: the open file.
        path: path of the array; by default the only one with two axes or more.
        index: number or slice by the name of the axis.
        box: `(x0, y0, width, height)` on the axes y and x.
        section: NumPy slices, one for each axis.
        mode: `trim`, `partial` or `strict`.
        with_quality: whether the quality planes that `ancillary_variables` names come too.
        objective: what plans of reads keep small.

    Raises:
        NoSuchArrayError: If there is no such array, or there are several.
        RegionError: If the region is invalid or outside the array.
    """
    if box is None and section is None and not index:
        raise RegionError(f"{file.url}: give one of box, section, center, or index")
    array = file.array(path)
    region = region_of(array, index, box, section, mode=mode)
    return cut_region(file, array, region, with_quality=with_quality, objective=objective)


def refuse_options(what: str, kind: str, options: Mapping[str, Any]) -> None:
    """Refuse options that belong to files of the other kind.

    Raises:
        OptionError: If one is given; names all of them.
    """
    names = [name for name, value in options.items() if value not in (None, False)]
    if names:
        hint = "; hdu= names an HDU" if "array" in names else ""
        raise OptionError(f"{what}: expected options of {kind}, found {', '.join(names)}{hint}")
