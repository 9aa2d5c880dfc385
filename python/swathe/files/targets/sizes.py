"""Read the sizes of targets from their columns: angles or pixels, squares or rectangles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swathe.core.angles import Size
from swathe.core.errors import TargetsError
from swathe.files.targets.cells import (
    InvalidCell,
    degrees_per_unit,
    mask_to_nan,
    numbers_of,
    read_cells,
)
from swathe.files.targets.positions import is_pixel, size_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZES_DEG = {"size_deg": 1.0, "size_arcmin": 1 / 60, "size_arcsec": 1 / 3600}
SIZE_COLUMNS = ("size", *SIZES_DEG, "size_pix")


def has_pixels(sizes: Any) -> bool:
    """Check whether some sizes are in pixels."""
    return any(isinstance(cell, Size) and cell.unit == "pix" for cell in sizes.tolist())


def sizes_of(columns: Mapping[str, Any], usual: Any, count: int, *, in_sky: bool) -> Any:
    """Return the size of every row: degrees of squares, or cells; `None` if there are no sizes."""
    import numpy as np

    fill = None if usual is None else size_of(usual)
    names = [name for name in SIZE_COLUMNS if name in columns]
    if in_sky and not names:
        names = [name for name in ("height", "width") if name in columns and "x" not in columns]
    if len(names) > 1 and "height" not in names:
        raise TargetsError(f"the targets have several sizes: {', '.join(names)}; keep one of them")
    if names == ["height", "width"]:
        sizes = _rectangles(columns)
    elif names and names[0] in SIZE_COLUMNS:
        sizes = _squares(columns[names[0]], names[0])
    elif fill is None:
        return None
    else:
        sizes = np.full(count, np.nan)
    if fill is None:
        return sizes
    if fill.square_deg is not None and sizes.dtype.kind == "f":
        return np.where(np.isnan(sizes), fill.square_deg, sizes)
    cells = sizes.astype(object)
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, float) and np.isnan(cell):
            cells[row] = fill
    return cells


def _squares(column: Any, name: str) -> Any:
    """Return a column of sizes: degrees, or cells if some are not the side of a square."""
    import numpy as np

    unit = getattr(column, "unit", None)
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    has_unit = unit is not None and bool(str(unit))
    bare_deg = SIZES_DEG.get(name)
    if kind in "iuf" or hasattr(column, "to_value"):
        numbers = mask_to_nan(numbers_of(column))
        if (has_unit and is_pixel(unit)) or (not has_unit and name == "size_pix"):
            return _pixel_squares(numbers)
        if not has_unit and bare_deg is None:
            raise TargetsError(
                "column size: expected a unit; set one, or name the column size_deg, size_arcmin, "
                "size_arcsec or size_pix"
            )
        return numbers * (degrees_per_unit(unit, name) if has_unit else bare_deg or 1.0)
    if has_unit and not is_pixel(unit):
        bare_deg = degrees_per_unit(unit, name)

    def parse(cell: Any) -> Size:
        bare = f"{cell}pix" if name == "size_pix" and not has_unit and _is_bare(cell) else cell
        return size_of(bare, name, bare_deg=bare_deg)

    cells = read_cells(column, parse)
    squares = [cell.square_deg if isinstance(cell, Size) else cell for cell in cells.tolist()]
    if all(isinstance(square, float) for square in squares):
        return np.array(squares, float)
    return cells


def _is_bare(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return not hasattr(cell, "unit")


def _pixel_squares(numbers: NDArray[np.float64]) -> Any:
    import numpy as np

    cells = np.empty(len(numbers), object)
    for row, number in enumerate(numbers.tolist()):
        is_size = np.isfinite(number) and number > 0
        wrong = (
            np.nan
            if np.isnan(number)
            else InvalidCell(f"size: expected pixels, found {number}", number)
        )
        cells[row] = Size(number, number, "pix") if is_size else wrong
    return cells


def _rectangles(columns: Mapping[str, Any]) -> Any:
    """Return heights and widths of sky positions, which need a unit."""
    import numpy as np

    sides = []
    for name in ("height", "width"):
        column = columns[name]
        unit = getattr(column, "unit", None)
        kind = getattr(getattr(column, "dtype", None), "kind", "O")
        if kind in "iuf" and (unit is None or not str(unit)):
            raise TargetsError(
                f"column {name}: expected a unit of an angle or pixels for a sky position"
            )
        sides.append(_side_cells(column, name))
    cells = np.empty(len(sides[0]), object)
    for row, (height, width) in enumerate(zip(*sides, strict=True)):
        cells[row] = _rectangle(height, width)
    return cells


def _side_cells(column: Any, name: str) -> list[Any]:
    """Return sides as sizes; invalid ones are as in `_squares`."""
    cells = _squares(column, name).tolist()
    return [
        Size(cell, cell) if isinstance(cell, float) and cell == cell else cell for cell in cells
    ]


def _rectangle(height: Any, width: Any) -> Any:
    for side in (height, width):
        if not isinstance(side, Size):
            return side
    if height.unit != width.unit:
        return InvalidCell(
            f"height and width: expected one unit, found {height.unit} and {width.unit}"
        )
    return Size(height.height, width.width, height.unit)


def enter_pixels(columns: dict[str, Any], sizes: Any) -> None:
    """Replace sizes in pixels by heights and widths, for a centre in pixels."""
    import numpy as np

    height, width = np.empty(len(sizes), object), np.empty(len(sizes), object)
    for row, cell in enumerate(sizes.tolist()):
        is_pixels = isinstance(cell, Size) and cell.unit == "pix"
        if is_pixels:
            height[row], width[row] = cell.height, cell.width
        else:
            height[row] = width[row] = (
                InvalidCell(f"size: expected pixels beside x and y, found {cell}", cell)
                if cell == cell
                else np.nan
            )
    columns.setdefault("height", height)
    columns.setdefault("width", width)
