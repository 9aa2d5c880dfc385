"""Read files of targets: FITS, VOTable, Parquet and text tables."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, overload

from swathe.core.errors import NotFoundError, TargetsError
from swathe.files.targets.parquet_files import read_parquet
from swathe.files.targets.text_list import LONGEST_ROW, TextList, header_of, parse_lines

if TYPE_CHECKING:
    from astropy.table import Table
    from numpy.typing import NDArray

T = TypeVar("T")

FULL_NAME = "votable_name"
"""Key of the meta of a column of a VOTable, if its name is not its ID."""
READERS = {
    ".csv": "ascii.csv",
    ".ecsv": "ascii.ecsv",
    ".xml": "votable",
    ".vot": "votable",
    ".votable": "votable",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".fits": "fits",
    ".fit": "fits",
    ".tsv": "text",
    ".txt": "text",
    ".dat": "text",
}
OPENING_QUOTES = {
    "": re.compile('(?:^|[ ,]) *"'),
    ",": re.compile('(?:^|,) *"'),
    ";": re.compile('(?:^|;) *"'),
    "\t": re.compile('(?:^|\t) *"'),
}
"""What begins a cell within quotes, by the separator of a CSV; of other tables under ""."""
PACKED_SUFFIX = ".gz"
BLOCK_BYTES = 1 << 20
LARGEST_TEXT_BYTES = 1 << 30
"""Limit of a text list after decompression; larger lists should be Parquet or FITS."""


class PlainTable:
    """Columns without units, read as those of an astropy table, whose import takes 0.2 s."""

    def __init__(self, columns: dict[str, NDArray[Any]]) -> None:
        self.colnames = list(columns)
        self.meta: dict[str, Any] = {}
        self._columns = columns

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: slice) -> PlainTable: ...
    def __getitem__(self, key: str | slice) -> NDArray[Any] | PlainTable:
        if isinstance(key, str):
            return self._columns[key]
        return PlainTable({name: column[key] for name, column in self._columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))


class TargetTable(NamedTuple):
    """A list of targets as a table.

    Attributes:
        table: one row per target.
        folder: folder to which file names are relative, if the list is a file.
        faults: reason for each row that could not be read.
    """

    table: Table | PlainTable
    folder: Path | None
    faults: dict[int, str]


def kind_of(path: Path) -> str:
    """Return the reader of a file from its suffix; `.gz` at the end is ignored.

    Raises:
        TargetsError: If the suffix is unknown.
    """
    suffix = path.suffix.lower()
    if suffix == PACKED_SUFFIX:
        suffix = Path(path.stem).suffix.lower()
    reader = READERS.get(suffix)
    packs = reader in ("fits", "text", "votable", "ascii.csv", "ascii.ecsv")
    if reader is None or (path.suffix.lower() == PACKED_SUFFIX and not packs):
        raise TargetsError(
            f"{path}: a table ends in one of {', '.join(READERS)}, or in that and {PACKED_SUFFIX}"
        )
    return reader


def read_listing(path: Path, *, hours: bool = True) -> TargetTable:
    """Read a file of targets, in the format given by its suffix.

    Args:
        path: file to read.
        hours: whether sexagesimal longitudes of lines are in hours.

    Raises:
        NotFoundError: If the file does not exist.
        TargetsError: If it cannot be read.
    """
    reader = kind_of(path)
    if not path.exists():
        raise NotFoundError(f"{path}: no such table of targets")
    try:
        if reader == "text":
            table, faults = table_of_lines(_text(path).splitlines(), hours=hours)
        else:
            table, faults = _read(path, reader), {}
    except ImportError as error:
        raise TargetsError(f"{path}: {error}; try: pip install swathe[parquet]") from error
    except TargetsError as error:
        raise TargetsError(f"{path}: {error}") from error
    except Exception as error:  # each reader has errors of its own
        raise TargetsError(f"{path}: cannot be read as {reader}: {error}") from error
    return TargetTable(table, path.parent, faults)


def text_pieces(
    path: Path, reader: str, hours: bool, rows: int, piece: Callable[[TargetTable, int, bool], T]
) -> Iterator[T] | None:
    """Return the pieces of a text table, each with its first row and whether it is the last.

    Returns `None` if the file has at most `rows` lines.

    Raises:
        TargetsError: If a line is too long.
    """
    with _lines(path) as lines:
        if sum(1 for _ in islice(lines, rows + 1)) <= rows:
            return None
    return _text_pieces(path, reader, hours, rows, piece)


def _text_pieces(
    path: Path, reader: str, hours: bool, rows: int, piece: Callable[[TargetTable, int, bool], T]
) -> Iterator[T]:
    mark = _csv_mark(path) if reader == "ascii.csv" else ","
    opening = OPENING_QUOTES[mark if reader == "ascii.csv" else ""]
    with _lines(path) as lines:
        head, rest = _head(lines, reader)
        is_text = reader == "text"
        numbered_lines = (
            (number, line)
            for number, line in enumerate(rest, len(head) + 1)
            if not is_text or (line.strip() and line[0] != "#")
        )
        first, (number, line) = 0, next(numbered_lines, (0, ""))
        kinds: dict[str, str] = {}
        while line:
            block: list[str] = []
            numbers: list[int] = []
            # A cell within quotes may hold line ends.
            is_open, open_number, open_size = False, 0, 0
            while line and (len(block) < rows or is_open):
                block.append(line)
                numbers.append(number)
                if not is_text and (is_open or '"' in line):
                    was_open, is_open = is_open, _is_open_after(line, opening, is_open)
                    open_number, open_size = (open_number, open_size) if was_open else (number, 0)
                    open_size += len(line)
                if is_open and open_size > LONGEST_ROW:
                    raise TargetsError(
                        f"{path}: line {open_number:,}: expected the end of a cell within quotes "
                        f"after up to {LONGEST_ROW:,} characters, found none"
                    )
                number, line = next(numbered_lines, (0, ""))
            try:
                table = _text_table(head, block, numbers, reader, mark, hours)
                if reader == "ascii.csv":
                    _check_kinds(table.table, kinds, numbers)
            except TargetsError as error:
                raise TargetsError(f"{path}: {error}") from error
            except Exception as error:  # each reader has errors of its own
                raise TargetsError(f"{path}: cannot be read as {reader}: {error}") from error
            yield piece(table._replace(folder=path.parent), first, not line)
            first += len(table.table)


def _is_open_after(line: str, opening: re.Pattern[str], is_open: bool) -> bool:
    """Check whether a cell within quotes goes on in the next line.

    A quote opens a cell only at its beginning; within it, two quotes are one of its characters.
    """
    at = 0
    while True:
        if is_open:
            while (at := line.find('"', at)) >= 0 and line[at + 1 : at + 2] == '"':
                at += 2
            if at < 0:
                return True
            at += 1
        start = opening.search(line, at)
        if start is None:
            return False
        at, is_open = start.end(), True


def _check_kinds(table: Any, kinds: dict[str, str], numbers: list[int]) -> None:
    """Refuse ids and files of another type than in the pieces before, whose `kinds` these are.

    Read as a whole, `007` would be text beside `x1`; in a piece of numbers it is 7.

    Raises:
        TargetsError: If they are of another type.
    """
    for name in table.colnames if len(table) else ():
        kind = "text" if table[name].dtype.kind in "US" else str(table[name].dtype)
        if name.lower() in ("id", "file") and kinds.setdefault(name, kind) != kind:
            raise TargetsError(
                f"column {name}: expected {kinds[name]} as in the lines before, found {kind} in "
                f"lines {numbers[0]:,} to {numbers[-1]:,}; in a long list all are to be of one type"
            )


def _text_table(
    head: list[str], block: list[str], numbers: list[int], reader: str, mark: str, hours: bool
) -> TargetTable:
    """Return some lines of a text table, below the lines of its head."""
    from astropy.table import Table

    if reader == "text":
        all_numbers = [*range(1, len(head) + 1), *numbers]
        table, faults = table_of_lines([*head, *block], hours=hours, numbers=all_numbers)
        return TargetTable(table, None, faults)
    text = "".join([*head, *block])
    if reader == "ascii.csv":
        return TargetTable(Table.read(text, format=reader, delimiter=mark), None, {})
    return TargetTable(Table.read(text, format=reader), None, {})


def _head(lines: Iterator[str], reader: str) -> tuple[list[str], Iterator[str]]:
    """Return the lines that belong to every piece of a text table, and those after them."""
    head: list[str] = []
    line = next(lines, "")
    while line and (not line.strip() or (line.startswith("#") and reader != "ascii.csv")):
        head.append(line)
        line = next(lines, "")
    if reader == "text" and header_of(line) is None:
        return head, chain([line], lines)
    head.append(line)
    after = list(islice(lines, 2))
    # VizieR writes units and dashes below the names.
    is_vizier = len(after) == 2 and after[1].strip() and not set(after[1]) - set("-\t \r\n")
    if reader == "text" and "\t" in line and is_vizier:
        return head + after, lines
    return head, chain(after, lines)


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text and yield its lines, with their ends."""
    with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:

        def each() -> Iterator[str]:
            while line := text.readline(LONGEST_ROW + 1):
                if len(line) > LONGEST_ROW:
                    raise TargetsError(
                        f"{path}: expected lines of up to {LONGEST_ROW:,} characters, found more"
                    )
                yield line

        yield each()


def count_fits(path: Path) -> int:
    """Return the number of rows of the first table of a FITS file.

    Raises:
        TargetsError: If there is none.
    """
    from astropy.io import fits

    try:
        with fits.open(path) as hdus:
            return int(_first_table(hdus).header["NAXIS2"])
    except TargetsError as error:
        raise TargetsError(f"{path}: {error}") from error
    except Exception as error:  # astropy has many kinds of errors
        raise TargetsError(f"{path}: cannot be read as fits: {error}") from error


def read_fits_piece(path: Path, first: int, rows: int) -> Table:
    """Read some rows of the first table of a FITS file."""
    from astropy.io import fits
    from astropy.table import Table

    with fits.open(path, memmap=path.suffix.lower() != PACKED_SUFFIX) as hdus:
        hdu = _first_table(hdus)
        part = type(hdu)(hdu.data[first : first + rows], hdu.header)
        return Table.read(part, format="fits", character_as_bytes=False).copy()


def _first_table(hdus: Any) -> Any:
    from astropy.io import fits

    tables = [hdu for hdu in hdus if isinstance(hdu, fits.BinTableHDU | fits.TableHDU)]
    if not tables or isinstance(tables[0], fits.CompImageHDU):
        raise TargetsError("expected a table, found no HDU with one")
    return tables[0]


def _read(path: Path, reader: str) -> Table:
    from astropy.table import Table

    if reader == "parquet":
        return read_parquet(path)
    if reader == "fits":
        return _read_fits(path)
    if reader == "votable":
        return _read_votable(path)
    if reader == "ascii.csv":
        return Table.read(path, format=reader, delimiter=_csv_mark(path))
    return Table.read(path, format=reader)


def table_of(columns: dict[str, Any]) -> Table | PlainTable:
    """Return columns as a table: a plain one if all are arrays of one length.

    Raises:
        TypeError, ValueError: If astropy cannot make a table of them.
    """
    import numpy as np

    arrays = [column for column in columns.values() if type(column) is np.ndarray]
    if len(arrays) == len(columns) and len({column.shape for column in arrays}) == 1:
        is_plain = arrays[0].ndim == 1 and all(isinstance(name, str) for name in columns)
        if is_plain:
            return PlainTable(columns)
    from astropy.table import Table

    return Table(columns)


def table_of_lines(
    lines: Sequence[str],
    make: Callable[[dict[str, Any]], Any] | None = None,
    *,
    hours: bool = True,
    numbers: Sequence[int] | None = None,
) -> tuple[Any, dict[int, str]]:
    """Return lines of text as a table, and the reasons why some rows could not be read.

    Args:
        lines: lines of text.
        make: function that makes the table if no column has a unit; by default astropy's `Table`.
        hours: whether sexagesimal longitudes are in hours.
        numbers: line number of each line, by default from 1.

    Raises:
        TargetsError: If no line is a target.
    """
    return table_of_list(parse_lines(lines, hours=hours, numbers=numbers), make)


def table_of_list(
    read: TextList, make: Callable[[dict[str, Any]], Any] | None = None
) -> tuple[Any, dict[int, str]]:
    """Return a list as a table; lines that are not targets become rows with faults."""
    numbers = sorted([*read.numbers, *(number for number, _ in read.faults)])
    row_of = {number: row for row, number in enumerate(numbers)}
    faults = {row_of[number]: f"line {number}: {fault}" for number, fault in read.faults}
    columns: dict[str, Any] = {}
    for name, column in read.columns.items():
        cells = dict(zip(read.numbers, column, strict=True))
        columns[name] = _column([cells.get(number) for number in numbers])
    if faults:
        ids = dict(zip(read.numbers, read.columns["id"], strict=True))
        columns["id"] = _column([ids.get(number, f"{number}") for number in numbers])
    if make is not None and not read.units:
        return make(columns), faults
    from astropy.table import Table

    table = Table(columns)
    for name, unit in read.units.items():
        _set_unit(table, name, unit)
    return table, faults


def _column(cells: list[Any]) -> Any:
    """Return cells as floats if all are numbers or empty (NaN), else as objects."""
    import numpy as np

    if all(cell is None or isinstance(cell, float) for cell in cells):
        return np.array([np.nan if cell is None else cell for cell in cells], float)
    column = np.empty(len(cells), object)
    column[:] = cells
    return column


def _set_unit(table: Table, name: str, unit: str) -> None:
    """Set a unit of a text table; an unknown one is kept as written."""
    from astropy.units import Unit

    table[name].unit = Unit(unit.strip('"'), parse_strict="silent")


def is_packed(path: Path) -> bool:
    """Check whether a file is packed, by its name."""
    return path.suffix.lower() == PACKED_SUFFIX


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if is_packed(path) else path.open("rb")


def _text(path: Path) -> str:
    """Read a text of at most LARGEST_TEXT_BYTES.

    Raises:
        TargetsError: If the text is larger.
    """
    with _open(path) as file:
        content = bytearray()
        # Reading all at once would allocate memory for the largest text.
        while block := file.read(BLOCK_BYTES):
            content += block
            if len(content) > LARGEST_TEXT_BYTES:
                raise TargetsError(
                    f"expected up to {LARGEST_TEXT_BYTES:,} bytes of text, found more"
                )
    return content.decode("utf-8-sig")


def _csv_mark(path: Path) -> str:
    """Return the separator of a CSV: comma, or semicolon as in some languages."""
    with _open(path) as file:
        first = file.readline(LONGEST_ROW).decode("utf-8-sig", "replace")
    if "," in first or header_of(first) is None:
        return ","
    return next((mark for mark in ";\t" if mark in first), ",")


def _read_fits(path: Path) -> Table:
    """Read the first table of a FITS file, with the UCDs of its columns in its meta."""
    from astropy.io import fits
    from astropy.table import Table

    with fits.open(path) as hdus:
        table = Table.read(_first_table(hdus), format="fits", character_as_bytes=False)
        # Copy, so that nothing refers to the file when it is closed.
        return table.copy()


def _read_votable(path: Path) -> Table:
    """Read a VOTable, with frames (COOSYS) and full names of its columns in their meta.

    Columns are called by their IDs, which are unique.
    """
    from astropy.io.votable import parse
    from astropy.table import Table

    votable = parse(str(path))
    table = Table.read(votable, format="votable")
    systems = {system.ID: system for system in votable.iter_coosys()}
    for each in votable.iter_tables():
        for one in each.iter_fields_and_params():
            if one.name != one.ID and one.ID in table.colnames:
                meta = table[one.ID].info.meta or {}
                table[one.ID].info.meta = {**meta, FULL_NAME: one.name}
            system = systems.get(getattr(one, "ref", None))
            if system is not None and system.system and one.ID in table.colnames:
                equinox = f"@{system.equinox}" if system.equinox else ""
                table[one.ID].info.meta = {
                    **(table[one.ID].info.meta or {}),
                    "coosys": f"{system.system}{equinox}",
                }
    return table
