"""Tables of targets that users send: read within bounds, and without fetching anything else."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.parsers import expat

from swathe.core.lists import parse_lines
from swathe.errors import LimitError, TargetsError
from swathe.sizes import size_text
from swathe.targets import READERS, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astropy.table import Table

SCALARS = {str, int, float, bool, type(None)}
LONGEST_NAME = 200
MOST_COLUMNS = 200
COMPRESSED = (b"\x1f\x8b", b"\x1f\x9d", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
LARGEST_PARQUET_BYTES = 256 << 20


def table_of_file(file: IO[bytes], name: str, most_rows: int) -> Table:
    """Read a table whose kind the suffix of its name tells, as `cut_many` reads files.

    Raises:
        TargetsError: where it cannot be read.
        LimitError: where it has more rows than are allowed.
    """
    suffix = Path(name[-LONGEST_NAME:]).suffix.lower()
    if suffix not in READERS:
        raise TargetsError(
            f"{name[-LONGEST_NAME:]!r}: a table of targets ends in one of {', '.join(READERS)}"
        )
    with tempfile.TemporaryDirectory(prefix="swathe-upload-") as folder:
        path = Path(folder) / f"targets{suffix}"
        with path.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        if READERS[suffix] == "parquet":
            _check_parquet(path, most_rows)
        else:
            _refuse_compressed(path)
        if READERS[suffix] == "votable":
            refuse_references(path)
        try:
            table = read_table(path)
        except TargetsError as error:
            # Users know the file by another name.
            raise TargetsError(str(error).replace(str(path), name[-LONGEST_NAME:])) from error
    _check_rows(len(table), most_rows)
    return table


def refuse_references(path: Path) -> None:
    """Refuse a VOTable whose data lie elsewhere: readers fetch them, from this machine.

    Raises:
        TargetsError: where it has such, a document type, or is no XML.
    """
    parser = expat.ParserCreate()

    def no_types(*_: Any) -> None:
        raise TargetsError("the VOTable has a document type, which is not taken")

    def no_references(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2].upper() == "STREAM" and "href" in map(str.lower, attributes):
            raise TargetsError("the VOTable has a STREAM with href: data elsewhere are not taken")

    parser.StartDoctypeDeclHandler = no_types
    parser.StartElementHandler = no_references
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise TargetsError(f"the VOTable cannot be read: {error}") from error


def _refuse_compressed(path: Path) -> None:
    """Refuse what readers would inflate, perhaps to a thousand times its size."""
    with path.open("rb") as file:
        if file.read(8).startswith(COMPRESSED):
            raise TargetsError("the table is compressed: send it as it is")


def _check_parquet(path: Path, most_rows: int) -> None:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise TargetsError("Parquet tables are not taken here: pyarrow is not installed") from error
    try:
        told = parquet.ParquetFile(path).metadata
        size = sum(told.row_group(number).total_byte_size for number in range(told.num_row_groups))
    except (ArrowException, OSError) as error:
        raise TargetsError(f"the Parquet table cannot be read: {error}") from error
    _check_rows(told.num_rows, most_rows)
    if size > LARGEST_PARQUET_BYTES:
        raise LimitError(f"the Parquet table has {size_text(size)} when it is inflated")


def columns_of(given: Mapping[str, Any] | Sequence[Any], most_rows: int) -> dict[str, list[Any]]:
    """Give columns of a table as JSON has it: `{column: [values]}`, `[{column: value}]` or lines.

    Raises:
        TargetsError: where it is neither.
        LimitError: where it has more rows than are allowed.
    """
    if isinstance(given, list) and given and all(isinstance(line, str) for line in given):
        return _of_lines(given, most_rows)
    if isinstance(given, list):
        return _turned(given, most_rows)
    if not isinstance(given, dict):
        raise TargetsError(
            "targets: expected columns {name: [values]} or rows [{name: value}], found "
            f"{type(given).__name__}"
        )
    lengths = set()
    for name, values in given.items():
        if not isinstance(values, list):
            raise TargetsError(
                f"targets: column {name[:LONGEST_NAME]!r}: expected a list, found "
                f"{type(values).__name__}"
            )
        _check_rows(len(values), most_rows)
        _check_scalars(name, values)
        lengths.add(len(values))
    if len(lengths) > 1:
        raise TargetsError(f"targets: columns differ in length: {sorted(lengths)}"[:LONGEST_NAME])
    return given


def _of_lines(lines: list[str], most_rows: int) -> dict[str, list[Any]]:
    """Give the columns of lines, as the portal's form takes them."""
    _check_rows(len(lines), most_rows)
    read = parse_lines(lines)
    if read.faults:
        number, fault = read.faults[0]
        raise TargetsError(f"targets: line {number}: {fault}")
    return {name: list(column) for name, column in read.columns.items()}


def _turned(rows: list[Any], most_rows: int) -> dict[str, list[Any]]:
    _check_rows(len(rows), most_rows)
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise TargetsError(
                f"targets: row {number}: expected {{name: value}}, found {type(row).__name__}"
            )
        names |= dict.fromkeys(row)
        if len(names) > MOST_COLUMNS:
            raise TargetsError(f"targets: more than {MOST_COLUMNS} columns")
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        _check_scalars(name, values)
    return columns


def _check_scalars(name: str, values: list[Any]) -> None:
    kinds = list(map(type, values))
    if wrong := set(kinds) - SCALARS:
        number = next(number for number, kind in enumerate(kinds) if kind in wrong)
        raise TargetsError(
            f"targets: row {number}: column {name[:LONGEST_NAME]!r}: expected a number or text, "
            f"found {kinds[number].__name__}"
        )


def _check_rows(rows: int, most_rows: int) -> None:
    if rows > most_rows:
        raise LimitError(f"the table has {rows:,} rows; at most {most_rows:,} are taken at once")
