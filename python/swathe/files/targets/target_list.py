"""Read lists of targets: regions of files.

A list is a table with a column `file` and one of these sets; `id` and `hdu` (or `array`) are
optional:

- `x`, `y`, `height`, `width`: centre (zero-based pixels) and size, as in `Cutout2D`;
- `x0`, `y0`, `width`, `height`: zero-based lower-left pixel and size;
- a sky position and a size, as `swathe.files.targets.columns` finds them; or lines of text, as
  `swathe.files.targets.text_line` reads them.

An error in one row is recorded in the manifest and does not stop the others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from swathe.core.angles import Size
from swathe.core.box import LIMIT, box_around, validated_box
from swathe.core.errors import RegionError, SwatheError, TargetsError
from swathe.core.row_record import fault_of
from swathe.core.sky import SkyBoxes, coordinates
from swathe.files.targets.arrays import with_arrays
from swathe.files.targets.bounds import BOUNDS, place_by_bounds
from swathe.files.targets.cells import InvalidCell, float_column, is_missing, text_of, texts
from swathe.files.targets.columns import (
    BOX,
    CENTER,
    ListOptions,
    standard_columns,
)
from swathe.files.targets.frames import frame_by_name
from swathe.files.targets.hdus import hdu_key, hdus_of, is_array_path
from swathe.files.targets.list_tables import read_list
from swathe.files.targets.positions import size_of
from swathe.files.targets.result_names import unique_names
from swathe.files.targets.table_files import READERS
from swathe.stores.registry import is_named, with_store_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe._swathe import HduKey
    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.box import Box
    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable

__all__ = ["BOX", "CENTER", "READERS", "SKY", "ListOptions", "read_targets"]

SKY = ("ra", "dec", "size_deg")
PLACED_ROWS = 100_000
"""Rows whose boxes are computed at once."""
LONGEST_TEXT = 100_000
"""Longest id or name of a file: readers of manifests take cells of up to 131,072 characters."""


def read_targets(
    target_list: Any,
    sky_of: Callable[[str, HduKey | None], SkyBoxes],
    store: str | None = None,
    most_images: int | None = None,
    choices: ListOptions | None = None,
    *,
    planes: tuple[int, ...] | None = None,
    is_combined: bool = False,
    first: int = 0,
    names: Callable[[list[str]], list[str]] = unique_names,
    tree_of: Callable[[str], ArrayTree | None] | None = None,
    faults_of: Callable[[Sequence[str]], Mapping[str, str]] | None = None,
) -> RowTable:
    """Read a list: a table, a mapping of columns, lines of text, or the path of a table.

    Relative file names in a table file are relative to its folder; with a `store` all are paths in
    it. `sky_of` returns what makes boxes on an HDU or array; it is called for at most
    `most_images` images. `choices` have values for columns that the list lacks. With
    `is_combined`, results are made from several targets, which must be sky positions; then the
    table has their groups and bands. For a piece of a list, `first` is the number of its first
    target, and `names` returns the names of results from ids. `tree_of` returns the arrays of a
    file that is not FITS, and keeps its chunk index; without it no such file is opened.
    `faults_of` returns which files cannot be read, and why, before any is opened.

    Raises:
        TargetsError: If the table cannot be read or lacks columns.
    """
    import numpy as np

    from swathe.core.row_table import DictColumn

    can_add_size = choices is not None
    choices = choices or ListOptions()
    table, folder, wrong = read_list(target_list, choices)
    columns = standard_columns(table, choices)
    if "file" not in columns:
        raise TargetsError(
            f"the targets need a column 'file'; found: {_names_text(table.colnames)}; or give "
            "one file for all: --file, file= in Python"
        )
    if is_combined:
        columns = one_angle(columns, "a stack or rgb")
    way = _way(columns, table, can_add_size=can_add_size)
    if is_combined and way != SKY:
        raise TargetsError(
            f"a stack or rgb needs targets in the sky: {', '.join(SKY)}; "
            f"found: {_names_text(table.colnames)}"
        )
    rows = rows_of_columns(
        columns, len(table), _file_name(store, folder, choices.file), first, wrong
    )
    if faults_of is not None:
        rows = rows.with_status(_faults(rows, faults_of(rows.source.values)))
    rows.name, rows.planes = names(rows.id), DictColumn.same(planes, len(rows))
    if tree_of is not None:
        rows = with_arrays(rows, columns, tree_of)
    if is_combined:
        groups = texts(columns["group"]) if "group" in columns else [""] * len(rows)
        rows.group = DictColumn.of(groups)
        rows.band = DictColumn.of(texts(columns["band"])) if "band" in columns else None
    if way == BOUNDS:
        return _with_boxes(*place_by_bounds(rows, columns, tree_of))
    if way != SKY:
        return _place(rows, way, [columns[name] for name in way])
    sizes = columns["size_deg"] if "size_deg" in columns else columns["size"]
    rows.sky = np.column_stack([*map(float_column, (columns["ra"], columns["dec"], sizes))])
    rows = _check_sky(rows, [columns["ra"], columns["dec"], sizes])
    if tree_of is None:
        rows = _without_arrays(rows)
    return place_in_sky(rows, sky_of, most_images, sizes.tolist())


def rows_of_columns(
    columns: Mapping[str, Any],
    count: int,
    file_name: Callable[[str], str] = str,
    first: int = 0,
    wrong: Mapping[int, str] = MappingProxyType({}),
) -> RowTable:
    """Return the rows of a list with their ids, files and HDUs, without regions.

    Args:
        columns: columns of the list.
        count: number of its rows.
        file_name: function that turns a name in the list into the name of an object.
        first: number of its first row.
        wrong: reason for each row that could not be read.

    Raises:
        TargetsError: If a text is too long.
    """
    import numpy as np

    from swathe.core.row_table import DIGEST_BYTES, DictColumn, RowTable

    # Once per file: what a name means depends on the file system and the stores.
    source = DictColumn.of(texts(columns["file"])).map(file_name)
    given_ids = texts(columns["id"]) if "id" in columns else [""] * count
    ids = [name or str(row) for row, name in enumerate(given_ids, first)]
    _check_length("id", ids, first)
    _check_length("file", source.values, None)
    faults: dict[int, Fault] = {row: ("error", fault) for row, fault in wrong.items()}
    hdu: DictColumn[str | None] = DictColumn.same(None, count)
    if "hdu" in columns:
        hdu = DictColumn.of(hdus_of(columns["hdu"], faults))
    if "" in source.values:
        missing = np.flatnonzero(source.codes == source.values.index("")).tolist()
        faults = dict.fromkeys(missing, ("error", "file is missing")) | faults
    return RowTable(
        number=np.arange(count),
        position=np.arange(count),
        # Without memory for each row: they are the same in all rows of a new list.
        result=np.broadcast_to(np.int64(-1), count),
        id=ids,
        name=ids,
        source=source,
        hdu=hdu,
        box=np.zeros((count, 4), np.int64),
        has_box=np.zeros(count, bool),
        planes=DictColumn.same(None, count),
        sky=np.broadcast_to(np.nan, (count, 3)),
        status=np.zeros(count, np.uint8),
        reason=DictColumn.same("", count),
        bytes=np.broadcast_to(np.int64(0), count),
        version=DictColumn.same("", count),
        sha256=np.broadcast_to(np.uint8(0), (count, DIGEST_BYTES)),
        granule=DictColumn.same(None, count),
    ).with_status(faults)


def _check_length(name: str, texts: list[str], first: int | None) -> None:
    """Check that texts are short enough for the readers of a manifest.

    Raises:
        TargetsError: If one is not; with its row, if `first` is that of the first one.
    """
    if len(max(texts, key=len, default="")) <= LONGEST_TEXT:
        return
    at, text = next((at, text) for at, text in enumerate(texts) if len(text) > LONGEST_TEXT)
    where = "" if first is None else f"row {first + at:,}: "
    raise TargetsError(
        f"{where}{name}: expected up to {LONGEST_TEXT:,} characters, found {len(text):,} "
        f"({text[:40]!r}...)"
    )


def _faults(rows: RowTable, by_file: Mapping[str, str]) -> dict[int, Fault]:
    """Return the faults of sound rows whose file cannot be read."""
    if not by_file:
        return {}
    sources, sound = rows.source.list(), rows.sound.tolist()
    return {
        row: ("error", by_file[file])
        for row, file in enumerate(sources)
        if sound[row] and file in by_file
    }


def _file_name(store: str | None, folder: Path | None, file: str | None) -> Callable[[str], str]:
    """Return the function that turns a name in the list into the name of an object."""
    if store is not None:
        return partial(_in_store, store=store)
    if folder is None:
        return str
    # A file for all rows comes from the user, not from the table.
    return lambda name: name if name == file else _beside(name, folder)


def one_angle(columns: dict[str, Any], name: str) -> dict[str, Any]:
    """Return sizes in degrees; one that is not a single angle is a fault of its target."""
    import numpy as np

    if "size" not in columns:
        return columns
    cells = columns.pop("size")
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, Size):
            fault = f"size: expected one angle for a target of {name}, found {cell}"
            cells[row] = cell.square_deg or InvalidCell(fault, str(cell))
    sound = all(isinstance(cell, float) for cell in cells)
    columns["size_deg"] = np.array(cells, float) if sound else cells
    return columns


def choices_of(
    *,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> ListOptions:
    """Check the user's options for a list of targets.

    Raises:
        RegionError: If the size or the frame is invalid.
    """
    if frame is not None:
        frame_by_name(frame)
    sides = None if size is None else size_of(size)
    return ListOptions(None if file is None else os.fsdecode(file), sides, frame, ra, dec)


def _way(columns: Mapping[str, Any], table: Table, *, can_add_size: bool) -> tuple[str, ...]:
    column_names: dict[tuple[str, ...], tuple[str, ...]] = {
        CENTER: CENTER,
        BOX: BOX,
        SKY: ("ra", "dec", "size"),
        BOUNDS: BOUNDS,
    }
    has: dict[tuple[str, ...], bool] = {
        way: all(name in columns for name in way) for way in (CENTER, BOX, BOUNDS)
    }
    has[SKY] = "ra" in columns and "dec" in columns and ("size_deg" in columns or "size" in columns)
    ways = [way for way, is_there in has.items() if is_there]
    if len(ways) != 1:
        choices = " or ".join(f"({', '.join(column_names[way])})" for way in (ways or column_names))
        what = "have more than one of" if ways else "need the columns"
        hint = "; or give one size for all: --size, size= in Python"
        raise TargetsError(
            f"the targets {what} {choices}; found: {_names_text(table.colnames)}"
            + (hint if can_add_size and not ways and "ra" in columns and "dec" in columns else "")
        )
    return ways[0]


def _names_text(names: Any) -> str:
    return ", ".join(map(str, names)) or "none"


def _in_store(name: str, store: str) -> str:
    """Return the name of an object in the given store, also from a path or another store's name."""
    is_in_store = is_named(name)
    if not is_in_store and ("://" in name or os.path.isabs(name)):
        place = with_store_names(name if "://" in name else os.path.normpath(name))
        if not is_named(place):
            raise TargetsError(f"{name}: is not a path in the store {store}, nor in any other")
        name, is_in_store = place, True
    if is_in_store:
        # Found in one store, to be read from another with the same objects.
        name = name.partition(":")[2]
    return name and f"{store}:{name}"


def _beside(name: str, folder: Path) -> str:
    return name if not name or "://" in name or is_named(name) else str(folder / name)


def _number(value: Any, name: str) -> float:
    import numpy as np

    if isinstance(value, InvalidCell):
        raise RegionError(value.fault)
    if is_missing(value):
        raise RegionError(f"{name} is missing")
    try:
        if not np.iscomplexobj(value):  # NumPy would drop the imaginary part
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise RegionError(f"{name} must be a number, not {text_of(value)[:40]!r}")


def _place(rows: RowTable, way: tuple[str, ...], columns: list[Any]) -> RowTable:
    """Compute the boxes of targets in pixels, many at once if they are valid."""
    import numpy as np

    make = box_around if way == CENTER else validated_box
    good, sound = np.zeros(len(rows), bool), rows.sound
    for first in range(0, len(rows), PLACED_ROWS):
        part = slice(first, first + PLACED_ROWS)
        numbers = _float_columns([column[part] for column in columns])
        if numbers is None:
            continue
        a, b, c, d = numbers
        width, height = (d, c) if way == CENTER else (c, d)
        x0, y0 = a, b
        if way == CENTER:
            with np.errstate(invalid="ignore"):  # infinities; such rows are invalid
                x0, y0 = np.ceil(a - width / 2), np.ceil(b - height / 2)
        boxes = np.column_stack([x0, y0, width, height])
        is_integer = (np.abs(boxes) <= LIMIT) & (boxes == np.floor(boxes))  # both false for NaN
        is_integer[:, 2:] &= boxes[:, 2:] >= 1
        good[part] = fits = np.logical_and.reduce(is_integer, axis=1) & sound[part]
        rows.box[part][fits], rows.has_box[part][fits] = boxes[fits], True

    def one_box(row: int) -> Box:
        values = ((column[row], name) for name, column in zip(way, columns, strict=True))
        return make(*(_number(value, name) for value, name in values))

    # Again one by one, to get the error of each.
    return _with_boxes(rows, *_try_each(np.flatnonzero(sound & ~good).tolist(), one_box))


def _float_columns(columns: list[Any]) -> list[NDArray[np.float64]] | None:
    """Return columns as floats, NaN if masked; `None` if one holds anything but numbers."""
    import numpy as np

    floats = []
    for column in columns:
        values = np.ma.asarray(column)
        if values.dtype.kind not in "iuf":
            return None
        floats.append(np.ma.filled(values.astype(float), np.nan))
    return floats


def _try_each(
    rows: Iterable[int], make: Callable[[int], Box]
) -> tuple[dict[int, Box], dict[int, Fault]]:
    """Return the boxes of rows, and the faults of those without one."""
    boxes: dict[int, Box] = {}
    faults: dict[int, Fault] = {}
    for row in rows:
        try:
            boxes[row] = make(row)
        except SwatheError as error:
            faults[row] = fault_of(error)
    return boxes, faults


def _with_boxes(rows: RowTable, boxes: Mapping[int, Box], faults: Mapping[int, Fault]) -> RowTable:
    """Return the rows with the boxes of some and the faults of others."""
    if not boxes:
        return rows.with_status(faults)
    box, has_box = rows.box.copy(), rows.has_box.copy()
    which = list(boxes)
    box[which], has_box[which] = list(boxes.values()), True
    return replace(rows, box=box, has_box=has_box).with_status(faults)


def _check_sky(rows: RowTable, columns: list[Any]) -> RowTable:
    """Record the faults of sky targets that are invalid."""
    import numpy as np

    ra, dec, size = rows.sky.T
    good = np.isfinite(ra) & (np.abs(dec) <= 90) & np.isfinite(size) & (size > 0)
    # The others one by one, to get the error of each; a size may be two sides, or pixels.
    doubtful = np.flatnonzero(rows.sound & ~good).tolist()
    _, faults = _try_each(doubtful, lambda row: check_sky_box(*(each[row] for each in columns)))
    return rows.with_status(faults)


def _without_arrays(rows: RowTable) -> RowTable:
    """Return rows in the sky with faults of those of arrays."""
    if not any(map(is_array_path, rows.hdu.few().values)):
        return rows
    rest = "expected an image of FITS, found an array"
    columns = zip(rows.source.list(), rows.hdu.list(), rows.sound.tolist(), strict=True)
    faults: dict[int, Fault] = {
        row: ("error", f"{source}, array {hdu}: {rest}")
        for row, (source, hdu, is_sound) in enumerate(columns)
        if is_sound and is_array_path(hdu)
    }
    return rows.with_status(faults)


def place_in_sky(
    rows: RowTable,
    sky_of: Callable[[str, HduKey | None], SkyBoxes],
    most_images: int | None = None,
    sizes: Sequence[float | Size] | None = None,
) -> RowTable:
    """Return rows with the boxes of those in the sky, computed for one image at a time.

    Args:
        rows: rows; those that are not in the sky, or cannot be cut, stay as they are.
        sky_of: function that returns what makes boxes on an HDU or array.
        most_images: number of images for which it is called; rows of others get no box.
        sizes: size of each row, if some are not one angle.
    """
    import numpy as np

    sizes = rows.sky[:, 2].tolist() if sizes is None else sizes
    later = np.flatnonzero(rows.lacks_box)
    images: dict[tuple[int, int], list[int]] = {}
    columns = (later, rows.source.codes[later], rows.hdu.codes[later])
    for row, file, hdu in zip(*(column.tolist() for column in columns), strict=True):
        images.setdefault((file, hdu), []).append(row)
    boxes: dict[int, Box] = {}
    faults: dict[int, Fault] = {}
    for (file, hdu), here in islice(images.items(), most_images):
        try:
            sky = sky_of(rows.source.values[file], hdu_key(rows.hdu.values[hdu]))
            good, wrong = _place_on(sky, rows, here, sizes)
        except SwatheError as error:
            faults.update(dict.fromkeys(here, fault_of(error)))
            continue
        boxes |= good
        faults |= wrong
    return _with_boxes(rows, boxes, faults)


def _place_on(
    sky: SkyBoxes, rows: RowTable, here: list[int], sizes: Sequence[float | Size]
) -> tuple[dict[int, Box], dict[int, Fault]]:
    """Return the boxes on one image, and the faults of rows without one."""
    box = sky.boxes(coordinates(*rows.sky[here, :2].T))
    numbers = {row: number for number, row in enumerate(here)}
    return _try_each(here, lambda row: box(numbers[row], sizes[row]))


def check_sky_box(ra: Any, dec: Any, size: Any) -> Box:
    """Raise an error if a sky target is invalid; its box is computed later.

    Raises:
        RegionError: With the reason.
    """
    ra, dec = _number(ra, "ra"), _number(dec, "dec")
    if not (math.isfinite(ra) and abs(dec) <= 90):
        coordinates(ra, dec)  # Raises the error; too slow to call for every row.
    if isinstance(size, Size):
        return 0, 0, 1, 1
    number = _number(size, "size")
    if not math.isfinite(number) or number <= 0:
        raise RegionError(f"size must be a positive angle, not {number}")
    return 0, 0, 1, 1
