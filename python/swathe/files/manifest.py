"""Files of manifests: their names, their columns, and how they are read."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from astropy.table import Table

    from swathe._swathe import OutputKind

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a spreadsheet cell that is a formula."""
PART = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r])")
"""Start of a part of a cell. With decimal commas, semicolons separate cells, and quotes count only
at the beginning of one."""
MANIFEST = "manifest.ecsv"
ARCHIVES = (".zip", ".tar", ".fits", ".fit", ".fts")
"""Suffixes of outputs that have their manifest beside them."""
EXTENSION = "MANIFEST"
"""Name of the last extension of a FITS file of cutouts."""
COLUMNS = ("id", "status", "reason", "path", "bytes", "source", "source_version", "sha256")
INTEGERS = frozenset({"bytes"})
"""Columns of integers; the others are text."""


def columns_as_table(columns: Mapping[str, Sequence[Any]], meta: Mapping[str, Any]) -> Table:
    """Return columns of a manifest as an astropy table."""
    import numpy as np
    from astropy.table import Table

    arrays = {
        name: np.array(column, np.int64 if name in INTEGERS else str)
        for name, column in columns.items()
    }
    return Table(arrays, meta=dict(meta), copy=False)


def rows_as_tables(
    rows: Iterator[Sequence[str]], most: int, meta: Mapping[str, Any]
) -> Iterator[Table]:
    """Yield rows of a manifest as tables of at most `most` rows."""
    while some := list(islice(rows, most)):
        columns = dict(zip(COLUMNS, zip(*some, strict=True), strict=True))
        yield columns_as_table(columns, meta)


def spreadsheet(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Return an ECSV manifest as CSV for spreadsheets: without its head, and without formulas.

    Spreadsheets run cells that begin with one of `FORMULA`. Such a cell gets an apostrophe in
    front, also after a semicolon, tab or line end, where some programs split a cell.
    """
    for part in parts:
        text = io.StringIO()
        source = io.StringIO(part.decode(), newline="")
        lines = (line for line in source if not line.startswith("#"))
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerows([harmless_cell(cell) for cell in row] for row in csv.reader(lines))
        yield text.getvalue().encode()


def harmless_cell(cell: str) -> str:
    """Return a cell that a spreadsheet does not run as a formula."""
    return PART.sub(r"\1'", cell)


def read_manifest(path: Path) -> Table | None:
    """Return the manifest of an earlier run; `None` if there is none.

    Raises:
        OutputError: If the file is not a manifest.
    """
    if not path.exists():
        return None
    from astropy.table import Table

    try:
        table = Table.read(path, format="ascii.ecsv", fill_values=[])
    except Exception as error:  # the reader raises many kinds of errors
        raise OutputError(f"{path}: is not a manifest of Swathe: {error}") from error
    missing = [name for name in COLUMNS if name not in table.colnames]
    if missing:
        raise OutputError(f"{path}: is not a manifest of Swathe: it has no column {missing[0]!r}")
    return table


def manifest_path(output: Path, kind: OutputKind) -> Path:
    """Return the path of the manifest of an output.

    In a folder it is `manifest.ecsv`. For `o.zip` it is `o.manifest.ecsv`, or
    `o.zip.manifest.ecsv` if the former belongs to an `o.tar`.
    """
    if kind == "folder":
        return output / MANIFEST
    short = output.with_name(f"{output.stem}.{MANIFEST}")
    long = output.with_name(f"{output.name}.{MANIFEST}")
    owner = manifest_meta(short).get("output")
    if owner is None:  # no manifest, or one that was fetched from a portal
        is_of_another = short.exists() and not output.exists() and _has_sibling(output)
    else:
        is_of_another = owner != output.name
    return long if is_of_another or long.exists() else short


def _has_sibling(output: Path) -> bool:
    """Check whether there is an archive whose name differs only in its suffix."""
    others = (output.with_suffix(suffix) for suffix in ARCHIVES)
    return any(other.exists() for other in others if other != output)


def manifest_meta(path: Path) -> dict[str, Any]:
    """Return the metadata of a manifest; empty if there is no manifest."""
    head: list[str] = []
    try:
        with path.open() as file:
            for line in file:
                head.append(line)
                if not line.startswith("#"):
                    break
        from astropy.table import Table

        return dict(Table.read(head, format="ascii.ecsv").meta)
    except Exception:  # the reader raises many kinds of errors; replacing the file reports them
        return {}
