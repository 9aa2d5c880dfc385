"""Read lists of targets of any length, a number of rows at a time.

A file is read in pieces if it has more than PIECE_ROWS targets: Parquet, FITS, CSV, ECSV and text.
A VOTable is read whole, by astropy, and then divided. An iterator gives dicts (column: value),
tuples (`file, x, y, height, width` or `file, ra, dec, size`) or lines of text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.errors import TargetsError
from swathe.files.targets.columns import CENTER, ListOptions
from swathe.files.targets.list_tables import read_list
from swathe.files.targets.parquet_files import count_parquet, read_parquet_pieces
from swathe.files.targets.positions import is_equatorial
from swathe.files.targets.table_files import (
    TargetTable,
    count_fits,
    kind_of,
    read_fits_piece,
    table_of_lines,
    text_pieces,
)
from swathe.files.targets.text_list import header_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.core.row_table import RowTable

PIECE_ROWS = 100_000
"""Number of targets that are planned and cut together. A longer list is cut in such parts."""
TUPLES = {5: ("file", *CENTER), 4: ("file", "ra", "dec", "size")}
"""Columns of targets that are tuples, by length."""


class TablePiece(NamedTuple):
    """Some targets of a list.

    Attributes:
        table: the targets.
        first: number of the first of them in the list.
        is_last: whether no others follow. An iterator may still raise an error.
    """

    table: TargetTable
    first: int
    is_last: bool


def read_pieces(targets: Any, choices: ListOptions | None = None) -> Iterator[TablePiece]:
    """Yield a list of targets in pieces of at most PIECE_ROWS.

    Raises:
        TargetsError: If the list cannot be read, or an iterator raises an error. The targets
            before it are yielded first.
    """
    hours = is_equatorial(choices.frame if choices is not None else None)
    rows = PIECE_ROWS
    if isinstance(targets, Iterator):
        return _of_iterator(targets, choices, rows)
    if isinstance(targets, str | os.PathLike):
        pieces = _of_file(Path(targets), hours, rows)
        if pieces is not None:
            return pieces
    return _of_table(read_list(targets, choices), rows)


def _of_table(all_targets: TargetTable, rows: int) -> Iterator[TablePiece]:
    """Yield the pieces of a table in memory."""
    count = len(all_targets.table)
    if count <= rows:
        yield TablePiece(all_targets, 0, True)
        return
    for first in range(0, count, rows):
        end = min(first + rows, count)
        faults = {
            row - first: all_targets.faults[row]
            for row in range(first, end)
            if row in all_targets.faults
        }
        table = TargetTable(all_targets.table[first:end], all_targets.folder, faults)
        yield TablePiece(table, first, end == count)


def _of_file(path: Path, hours: bool, rows: int) -> Iterator[TablePiece] | None:
    """Return the pieces of a file, or `None` if it is read whole."""
    reader = kind_of(path)
    if not path.exists():
        return None
    if reader == "parquet":
        count = count_parquet(path)
        if count <= rows:
            return None
        tables = (TargetTable(table, path.parent, {}) for table in read_parquet_pieces(path, rows))
        return _number_pieces(tables, count)
    if reader == "fits":
        count = count_fits(path)
        if count <= rows:
            return None
        tables = (
            TargetTable(read_fits_piece(path, first, rows), path.parent, {})
            for first in range(0, count, rows)
        )
        return _number_pieces(tables, count)
    if reader == "votable":
        return None
    return text_pieces(path, reader, hours, rows, TablePiece)


def _number_pieces(tables: Iterator[TargetTable], count: int) -> Iterator[TablePiece]:
    first = 0
    for table in tables:
        end = first + len(table.table)
        yield TablePiece(table, first, end >= count)
        first = end


def _of_iterator(
    targets: Iterator[Any], choices: ListOptions | None, rows: int
) -> Iterator[TablePiece]:
    """Yield the targets of an iterator; if it raises, those before the error come first."""
    first, failure = 0, None
    ahead: list[Any] = []
    while True:
        piece = ahead
        try:
            # One more is taken, to know whether this is the last piece.
            for target in islice(targets, rows + 1 - len(piece)):
                piece.append(target)
        except Exception as error:  # of the user's iterator
            failure = error
        piece, ahead = piece[:rows], piece[rows:]
        if piece or first == 0:
            is_last = not ahead
            if piece or failure is None:
                yield TablePiece(_table_of(piece, first, choices), first, is_last)
            first += len(piece)
        if failure is not None and not ahead:
            raise TargetsError(
                f"target {first} of the list: the iterator ended with "
                f"{type(failure).__name__}: {failure}"
            ) from failure
        if not ahead:
            return


def _table_of(targets: list[Any], first: int, choices: ListOptions | None) -> TargetTable:
    """Return targets of an iterator as a table.

    Raises:
        TargetsError: If they are not dicts, tuples or text, all of one kind.
    """
    if not targets or isinstance(targets[0], str):
        kind: type = str
    else:
        kind = Mapping if isinstance(targets[0], Mapping) else Sequence
    for row, target in enumerate(targets, first):
        if not isinstance(target, kind) or (kind is Sequence and isinstance(target, str)):
            raise TargetsError(
                f"target {row} of the list: expected {kind.__name__.lower()}, as before, or text, "
                f"a dict or a tuple; found {type(target).__name__}"
            )
    if kind is str:
        return _table_of_lines(targets, first, choices)
    if kind is Mapping:
        names = dict.fromkeys(chain.from_iterable(targets))
        return read_list({name: [each.get(name) for each in targets] for name in names}, choices)
    columns = getattr(targets[0], "_fields", None) or TUPLES.get(len(targets[0]))
    for row, target in enumerate(targets, first):
        if columns is None or len(target) != len(columns):
            forms = " or ".join(f"({', '.join(names)})" for names in TUPLES.values())
            raise TargetsError(
                f"target {row} of the list: expected {forms}, found {len(target)} values"
            )
    assert columns is not None
    return read_list(
        dict(zip(columns, map(list, zip(*targets, strict=True)), strict=True)), choices
    )


def _table_of_lines(lines: list[str], first: int, choices: ListOptions | None) -> TargetTable:
    """Return lines of an iterator as a table; their ids are line numbers of the whole list."""
    if not lines:
        return read_list({"file": []}, choices)
    if not first and header_of(lines[0]) is not None:
        raise TargetsError(
            f"target 0 of the list: expected a target, found column names "
            f"({lines[0].strip()[:80]}); "
            "give dicts, or a list of lines"
        )
    hours = is_equatorial(choices.frame if choices is not None else None)
    numbers = range(first + 1, first + len(lines) + 1)
    table, faults = table_of_lines(lines, hours=hours, numbers=numbers)
    return TargetTable(table, None, faults)


class RowPiece(NamedTuple):
    """Rows of a list that are planned together.

    Attributes:
        rows: the rows.
        is_last: whether no others follow.
        next_rows: rows that were read already, and are in the next piece.
        later: objects that are to be brought to disk; their rows cannot be cut yet.
        read_again: function that returns all rows, with the regions of those of some objects.
    """

    rows: RowTable
    is_last: bool
    next_rows: RowTable | None = None
    later: frozenset[str] = frozenset()
    read_again: Callable[[frozenset[str]], RowTable] | None = None


def whole_objects(
    pieces: Iterator[TablePiece], read: Callable[[TablePiece], RowTable]
) -> Iterator[RowPiece]:
    """Yield pieces as rows; the last object of a piece goes whole into the next one.

    So all targets of an object are in one piece, if the list is sorted by object. An object with
    more than half of a piece's targets is divided.
    """
    import numpy as np

    from swathe.core.row_table import RowTable

    remainder: RowTable | None = None
    try:
        for piece in pieces:
            rows = read(piece)
            if remainder is not None:
                rows, remainder = RowTable.concatenate([remainder, rows]), None
            if not piece.is_last:
                if not len(rows):  # only empty lines
                    continue
                others = np.flatnonzero(rows.source.codes != rows.source.codes[-1])
                start = int(others[-1]) + 1 if len(others) else 0
                if start > 0 and len(rows) - start <= len(rows) // 2:
                    rows, remainder = rows[:start], rows[start:]
            yield RowPiece(rows, piece.is_last, remainder)
    except TargetsError:
        if remainder is not None:
            yield RowPiece(remainder, True)
        raise
