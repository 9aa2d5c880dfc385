"""Steps to make one result from several images, as `cut_many` and workers take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import RegionError, SwatheError
from swathe.core.row_record import fault_of
from swathe.files.conversion import read_cutout
from swathe.operations.grid import align

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable
    from swathe.operations.grid import Grid


def align_cutout(
    cut: Path,
    grid: Grid | None,
    sky: Sequence[float],
    path: Path,
    check_size: Callable[[int], None] | None = None,
) -> Fault:
    """Replace a cutout by its pixels on the grid of its result; return status and reason.

    Args:
        cut: file of the cutout; it is removed.
        grid: grid of the result; `None` if its size is not known.
        sky: right ascension and declination of the row, in degrees, with its size if it is known.
        path: file of the pixels.
        check_size: function that raises a `RegionError` for too many pixels.
    """
    try:
        if grid is None:
            raise RegionError("the size of its result is not known")
        if check_size is not None:
            check_size(grid.side**2)
        align(read_cutout(cut), grid.at(sky[0], sky[1]), path)
    except SwatheError as error:
        return fault_of(error)
    finally:
        cut.unlink()
    return "ok", ""


def without_images(rows: RowTable) -> Fault:
    """Return status and reason of a result none of whose rows has an image."""
    for row, (status, reason) in rows.faults().items():
        if status != "no-overlap":
            return "error", f"there is no image of it; {rows.id[row]}: {reason}"
    return "no-overlap", "there is no image of it"
