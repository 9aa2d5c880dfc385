"""Read lists of targets: regions of files.

A list is a table with a column `file` and one of these sets; `id` and `hdu` are optional:

- `x`, `y`, `height`, `width`: centre (zero-based pixels) and size, as in `Cutout2D`;
- `x0`, `y0`, `width`, `height`: zero-based lower-left pixel and size;
- a sky position and a size, as `swathe.files.targets.columns` finds them; or lines of text, as
  `swathe.files.targets.text_line` reads them.

An error in one row is recorded in the manifest and does not stop the others.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import combining, normalize

from swathe.core.angles import Size
from swathe.core.box import LIMIT, box_around, validated_box
from swathe.core.errors import NoOverlapError, NotFoundError, RegionError, SwatheError, TargetsError
from swathe.core.sky import SkyMapping, coordinates
from swathe.files.targets.cells import floats, is_missing, text_of, texts
from swathe.files.targets.columns import BOX, CENTER, InvalidCell, ListOptions, standard_columns
from swathe.files.targets.frames import frame_named
from swathe.files.targets.positions import is_equatorial, size_of
from swathe.files.targets.table_files import READERS, TargetTable, read_listing, table_of_lines
from swathe.stores.registry import is_named, with_store_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe._swathe import HduKey
    from swathe.core.box import Box

__all__ = ["BOX", "CENTER", "READERS", "SKY", "ListOptions", "Targets", "read_targets"]

SKY = ("ra", "dec", "size_deg")
NAME_BYTES = 60
"""Longest name in characters: with a number added it fits into an EXTNAME (68 characters)."""
LARGEST = (1 << 63) - 1

T = TypeVar("T")


@dataclass
class Targets:
    """A parsed list of targets.

    Attributes:
        ids: ids of the user, or row numbers.
        names: file name of each target, without suffix: unique, of safe characters.
        files: objects.
        file: number of each target's object in `files`.
        hdus: HDUs.
        hdu: number of each target's HDU in `hdus`.
        boxes: x0, y0, width, height, `(n, 4)`.
        faults: status and reason of targets that cannot be cut.
        unplaced: sky targets whose boxes are not computed yet.
        combined: further values, if results are made from several targets.
    """

    ids: list[str]
    names: list[str]
    files: list[str]
    file: NDArray[np.int32]
    hdus: list[HduKey | None]
    hdu: NDArray[np.int32]
    boxes: NDArray[np.int64]
    faults: dict[int, tuple[str, str]] = field(default_factory=dict)
    unplaced: list[int] = field(default_factory=list)
    combined: CombinedTargets | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def of_rows(self, rows: list[int]) -> Targets:
        """Return the targets of some rows."""
        ids = [self.ids[row] for row in rows]
        faults = {at: self.faults[row] for at, row in enumerate(rows) if row in self.faults}
        combined = None if self.combined is None else self.combined.of_rows(rows)
        return replace(
            self,
            ids=ids,
            names=unique_names(ids),
            file=self.file[rows],
            hdu=self.hdu[rows],
            boxes=self.boxes[rows],
            faults=faults,
            combined=combined,
        )


@dataclass
class CombinedTargets:
    """Further values of targets of stacks, or of pictures of three bands.

    Attributes:
        sky: right ascension, declination and size in degrees, `(n, 3)`.
        groups: group of each target, empty if it has none.
        bands: band of each image, empty if it has none.
        has_bands: whether there is a column of bands.
    """

    sky: NDArray[np.float64]
    groups: list[str]
    bands: list[str]
    has_bands: bool

    def of_rows(self, rows: list[int]) -> CombinedTargets:
        """Return the values of some rows."""
        groups, bands = ([each[row] for row in rows] for each in (self.groups, self.bands))
        return CombinedTargets(self.sky[rows], groups, bands, self.has_bands)


def read_targets(
    given: Any,
    sky_of: Callable[[str, HduKey | None], SkyMapping],
    store: str | None = None,
    most_images: int | None = None,
    choices: ListOptions | None = None,
    *,
    combined: bool = False,
) -> Targets:
    """Read a list: a table, a mapping of columns, lines of text, or the path of a table.

    Relative file names in a table file are relative to its folder; with a `store` all are paths in
    it. `sky_of` returns the sky mapping of an HDU, and is called for at most `most_images` images.
    `choices` fill in what the list lacks. With `combined`, results are made from several targets,
    which must be sky positions.

    Raises:
        TargetsError: if the table cannot be read or lacks columns.
    """
    import numpy as np

    can_add_size = choices is not None
    choices = choices or ListOptions()
    table, folder, wrong = read_list(given, choices)
    columns = standard_columns(table, choices)
    if "file" not in columns:
        raise TargetsError(
            f"the targets need a column 'file'; found: {_names_text(table.colnames)}; or give "
            "one file for all: --file, file= in Python"
        )
    if combined:
        columns = one_angle(columns, "a stack or rgb")
    way = _way(columns, table, can_add_size=can_add_size)
    if combined and way != SKY:
        raise TargetsError(
            f"a stack or rgb needs targets in the sky: {', '.join(SKY)}; "
            f"found: {_names_text(table.colnames)}"
        )
    count = len(table)
    named_files, number = numbered(texts(columns["file"]))
    # Once per file: what a name means depends on the file system and the stores.
    if store is not None:
        named_files = [_in_store(name, store) for name in named_files]
    elif folder is not None:
        # A file for all rows comes from the user, not from the table.
        named_files = [
            name if name == choices.file else _beside(name, folder) for name in named_files
        ]
    files, which = numbered(named_files)
    file = np.array(which, np.int32)[number]
    faults = {row: ("error", fault) for row, fault in wrong.items()}
    keys = _hdus(columns["hdu"], faults) if "hdu" in columns else [None] * count
    hdus, hdu = numbered(keys)
    given_ids = texts(columns["id"]) if "id" in columns else [""] * count
    ids = [name or str(row) for row, name in enumerate(given_ids)]

    targets = Targets(
        ids=ids,
        names=unique_names(ids),
        files=files,
        file=file,
        hdus=hdus,
        hdu=np.array(hdu, np.int32),
        boxes=np.zeros((count, 4), np.int64),
        faults=faults,
    )
    for unnamed in (at for at, name in enumerate(files) if not name):
        for row in np.flatnonzero(file == unnamed).tolist():
            targets.faults.setdefault(row, ("error", "file is missing"))
    if way == SKY:
        _place_in_sky(targets, columns, sky_of, most_images)
    else:
        _place(targets, way, [columns[name] for name in way])
    if combined:
        groups, bands = (
            texts(columns[name]) if name in columns else [""] * count for name in ("group", "band")
        )
        sky = np.array([floats(columns[name]) for name in SKY]).T.reshape(count, 3)
        targets.combined = CombinedTargets(sky, groups, bands, "band" in columns)
    return targets


def one_angle(columns: dict[str, Any], whole: str) -> dict[str, Any]:
    """Return sizes in degrees; one that is not a single angle is a fault of its target."""
    import numpy as np

    if "size" not in columns:
        return columns
    cells = columns.pop("size")
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, Size):
            fault = f"size: expected one angle for a target of {whole}, found {cell}"
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
        RegionError: if the size or the frame is invalid.
    """
    if frame is not None:
        frame_named(frame)
    sides = None if size is None else size_of(size)
    return ListOptions(None if file is None else os.fsdecode(file), sides, frame, ra, dec)


def read_list(targets: Any, choices: ListOptions | None = None) -> TargetTable:
    """Return a list of targets as a table, with its folder if it is a file, and its faults.

    Raises:
        TargetsError: if the list cannot be read.
    """
    from astropy.table import Table

    frame = choices.frame if choices is not None else None
    if isinstance(targets, Table):
        return TargetTable(targets, None, {})
    try:
        hours = frame is None or is_equatorial(frame)
        if isinstance(targets, str | os.PathLike):
            return read_listing(Path(targets), hours=hours)
        if isinstance(targets, list | tuple) and targets and set(map(type, targets)) == {str}:
            table, faults = table_of_lines(targets, hours=hours)
            return TargetTable(table, None, faults)
        if hasattr(targets, "transform_to"):
            return TargetTable(Table({"sky": targets.reshape(-1)}), None, {})
        if hasattr(targets, "to_dict") and hasattr(targets, "columns"):
            return TargetTable(Table.from_pandas(targets), None, {})
        if isinstance(targets, Mapping):
            return TargetTable(
                Table({name: _values(each) for name, each in targets.items()}), None, {}
            )
    except RegionError as error:
        raise TargetsError(str(error)) from error
    except (TypeError, ValueError) as error:
        if isinstance(error, SwatheError):
            raise
        raise TargetsError(f"the targets cannot be made into a table: {error}") from error
    raise TargetsError(
        "targets must be an astropy Table, a pandas DataFrame, a mapping of columns, a SkyCoord, a "
        f"list of lines or the path of a table, not {type(targets).__name__}"
    )


def _values(column: Any) -> Any:
    """Return a column of a mapping in its fastest form: lists of one type as an array."""
    import numpy as np

    if hasattr(column, "unit") or hasattr(column, "transform_to"):
        return column
    values = list(column)
    kinds = set(map(type, values))
    if kinds & {Size, InvalidCell}:
        cells = np.empty(len(values), object)
        cells[:] = values
        return cells
    if kinds == {str}:
        # As objects: in an array of text, one long value would make all as long.
        return np.array(values, object)
    if kinds == {float} or (kinds == {int} and -LARGEST <= min(values) <= max(values) <= LARGEST):
        return np.array(values)
    return values


def read_table(path: Path) -> Table:
    """Read a file of targets, in the format given by its suffix.

    Raises:
        NotFoundError: if the file does not exist.
        TargetsError: if the file, or a line of it, cannot be read.
    """
    table, _, faults = read_listing(path)
    if faults:
        raise TargetsError(f"{path}: {next(iter(faults.values()))}")
    return table


def _way(columns: Mapping[str, Any], table: Table, *, can_add_size: bool) -> tuple[str, ...]:
    shown: dict[tuple[str, ...], tuple[str, ...]] = {
        CENTER: CENTER,
        BOX: BOX,
        SKY: ("ra", "dec", "size"),
    }
    has: dict[tuple[str, ...], bool] = {
        way: all(name in columns for name in way) for way in (CENTER, BOX)
    }
    has[SKY] = "ra" in columns and "dec" in columns and ("size_deg" in columns or "size" in columns)
    ways = [way for way, is_there in has.items() if is_there]
    if len(ways) != 1:
        expected = " or ".join(f"({', '.join(shown[way])})" for way in (ways or shown))
        what = "have more than one of" if ways else "need the columns"
        hint = "; or give one size for all: --size, size= in Python"
        raise TargetsError(
            f"the targets {what} {expected}; found: {_names_text(table.colnames)}"
            + (hint if can_add_size and not ways and "ra" in columns and "dec" in columns else "")
        )
    return ways[0]


def _names_text(names: Any) -> str:
    return ", ".join(map(str, names)) or "none"


def _hdus(column: Any, faults: dict[int, tuple[str, str]]) -> list[HduKey | None]:
    keys: list[HduKey | None] = []
    for row, value in enumerate(column):
        try:
            keys.append(_hdu(value))
        except RegionError as error:
            keys.append(None)
            faults[row] = ("error", str(error))
    return keys


def _hdu(value: Any) -> HduKey | None:
    if isinstance(value, bytes | str):
        text = text_of(value)
        return parse_hdu(text) if text else None
    if is_missing(value):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= LARGEST or number != value:
        raise RegionError(f"hdu must be a number from 0, a name or NAME,VERSION, not {value}")
    return number


def parse_hdu(text: str) -> HduKey:
    """Parse an HDU: a number, a name, or `NAME,2` for a name and its EXTVER."""
    text = text.strip()
    if _is_whole(text):
        return int(text)
    name, comma, version = text.rpartition(",")
    return (name, int(version)) if comma and _is_whole(version.strip()) else text


def hdu_text(hdu: HduKey | None) -> str | None:
    """Return the text of an HDU that `parse_hdu` reads back."""
    if hdu is None:
        return None
    return f"{hdu[0]},{hdu[1]}" if isinstance(hdu, tuple) else str(hdu)


def _is_whole(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


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


def numbered(values: Sequence[T]) -> tuple[list[T], list[int]]:
    """Return the distinct values, and for each value its number among them."""
    numbers: dict[T, int] = {}
    result = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), result


_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
DEVICE = r"(?ai:(?:con|prn|aux|nul|conin|conout|com[0-9]|lpt[0-9])(?:\.|$))"
"""Names of devices on Windows, with any suffix."""
_DEVICE = re.compile(DEVICE)
_HARMLESS = re.compile(rf"(?!{DEVICE})[A-Za-z0-9_+][A-Za-z0-9._+-]{{0,{NAME_BYTES - 1}}}")


def unique_names(ids: list[str]) -> list[str]:
    """Return a file name for each id, without suffix: unique, of safe characters.

    Letters lose their accents; names of devices get a `_` in front.
    """
    if len(set(map(str.lower, ids))) == len(ids) and all(map(_HARMLESS.fullmatch, ids)):
        return list(ids)
    used: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for user_id in ids:
        clean = _clean(user_id)
        key = lower = clean.lower()
        name, copies = clean, counts.get(key, 1)
        while lower in used:
            copies += 1
            name, lower = f"{clean}-{copies}", f"{key}-{copies}"
        counts[key] = copies
        used.add(lower)
        names.append(name)
    return names


def _clean(user_id: str) -> str:
    """Return an id as a file name in ASCII, valid in all file systems, archives and FITS."""
    letters = "".join(each for each in normalize("NFKD", user_id) if not combining(each))
    clean = _UNSAFE.sub("_", letters).lstrip(".-") or "target"
    return f"{'_' if _DEVICE.match(clean) else ''}{clean}"[:NAME_BYTES]


def _number(value: Any, name: str) -> float:
    if isinstance(value, InvalidCell):
        raise RegionError(value.fault)
    if is_missing(value):
        raise RegionError(f"{name} is missing")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise RegionError(f"{name} must be a number, not {text_of(value)[:40]!r}") from None


def _place(targets: Targets, way: tuple[str, ...], columns: list[Any]) -> None:
    """Compute the boxes of targets in pixels, all at once if all are valid."""
    import numpy as np

    numbers = _float_columns(columns)
    make = box_around if way == CENTER else validated_box
    if numbers is None:
        good = np.zeros(len(targets), bool)
    else:
        a, b, c, d = numbers
        width, height = (d, c) if way == CENTER else (c, d)
        x0, y0 = a, b
        if way == CENTER:
            with np.errstate(invalid="ignore"):  # infinities; such rows are invalid
                x0, y0 = np.ceil(a - width / 2), np.ceil(b - height / 2)
        boxes = np.column_stack([x0, y0, width, height])
        whole = (np.abs(boxes) <= LIMIT) & (boxes == np.floor(boxes))  # both false for NaN
        whole[:, 2:] &= boxes[:, 2:] >= 1
        good = np.logical_and.reduce(whole, axis=1)
        targets.boxes[good] = boxes[good].astype(np.int64)
    for row in np.flatnonzero(~good).tolist():
        # Again one by one, to get the error of each.
        values = {name: column[row] for name, column in zip(way, columns, strict=True)}
        _set_box(targets, row, partial(_one_box, make, values))


def _one_box(make: Callable[..., Box], values: Mapping[str, Any]) -> Box:
    return make(*(_number(value, name) for name, value in values.items()))


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


def _set_box(targets: Targets, row: int, make: Callable[[], Box]) -> None:
    try:
        targets.boxes[row] = make()
    except NoOverlapError as error:
        targets.faults.setdefault(row, ("no-overlap", str(error)))
    except SwatheError as error:
        targets.faults.setdefault(row, ("error", str(error)))


def _place_in_sky(
    targets: Targets,
    columns: Mapping[str, Any],
    sky_of: Callable[[str, HduKey | None], SkyMapping],
    most_images: int | None,
) -> None:
    """Compute the boxes of sky targets, those of one image together."""
    import numpy as np

    sizes = columns["size_deg"] if "size_deg" in columns else columns["size"]
    for row, values in enumerate(zip(columns["ra"], columns["dec"], sizes, strict=True)):
        if row not in targets.faults:
            _set_box(targets, row, partial(check_sky_box, *values))
    images: dict[tuple[int, int], list[int]] = {}
    for row, image in enumerate(zip(targets.file.tolist(), targets.hdu.tolist(), strict=True)):
        if row not in targets.faults:
            images.setdefault(image, []).append(row)
    for number, ((file, hdu), rows) in enumerate(images.items()):
        if number == most_images:
            targets.unplaced = [row for later in list(images.values())[number:] for row in later]
            return
        try:
            sky = sky_of(targets.files[file], targets.hdus[hdu])
            ra, dec = (np.array([float(columns[name][row]) for row in rows]) for name in SKY[:2])
            x, y = sky.world_to_pixel(coordinates(ra, dec))
        except SwatheError as error:
            status = "missing" if isinstance(error, NotFoundError) else "error"
            targets.faults.update(dict.fromkeys(rows, (status, str(error))))
            continue
        for at, row in enumerate(rows):
            place = float(x[at]), float(y[at])
            _set_box(targets, row, partial(sky.box_at, *place, _size(sizes[row])))


def _size(cell: Any) -> float | Size:
    return cell if isinstance(cell, Size) else float(cell)


def check_sky_box(ra: Any, dec: Any, size: Any) -> Box:
    """Raise an error if a sky target is invalid; its box is computed later.

    Raises:
        RegionError: with the reason.
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
