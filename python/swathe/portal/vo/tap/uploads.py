"""Tables that a user sends with a query: UPLOAD, in a form or at an allowed server."""

from __future__ import annotations

import io
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from swathe.core.errors import TargetsError
from swathe.files.targets.table_files import FULL_NAME
from swathe.portal.http.long_responses import while_there
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import RequestParameters, from_query, quote_value, read_form
from swathe.portal.vo.tap.sources import Upload
from swathe.portal.vo.tap.tables import UPLOAD_SCHEMA, TapColumn, TapTable
from swathe.portal.whole_file import open_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astropy.table import Table
    from starlette.requests import Request

    from swathe.portal.vo.parameters import Part
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.tap.tables import Kind

INLINE = "param:"
MOST_UPLOADS = 5
MOST_CELLS = 2_000_000
"""Maximum number of cells of all tables of a query."""
ABOUT = ("ucd", "utype", "xtype")
SMALL_TYPES = {"u1": "short", "i1": "short", "i2": "short", "i4": "int", "f4": "float"}
"""Types of VOTable by those of NumPy, if they are smaller than those of queries."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


async def read_query(service: Service, request: Request) -> tuple[RequestParameters, list[Upload]]:
    """Read the parameters of a query, and the tables that are sent with it.

    Raises:
        VoError: If a parameter is invalid, or a table is somewhere else.
        TargetsError: If a table cannot be read.
        LimitError: If it is too large.
    """
    pairs = from_query(request.scope["query_string"]).pairs
    if request.method != "POST":
        parts: list[Part] = []
    else:
        parts = await read_form(request, round(service.portal.config.limits.body_mb * 1e6))
    values = [value for name, value in pairs if name.upper() == "UPLOAD"]
    values += [part.text for part in parts if part.name.upper() == "UPLOAD"]
    places = _places(values)
    tables = {place.removeprefix(INLINE) for place in places.values()}
    short = [(part.name, part.text) for part in parts if part.content is None]
    parameters = RequestParameters(
        [*pairs, *((name, value) for name, value in short if name not in tables)]
    )
    uploads: list[Upload] = []
    cells = 0
    for name, place in places.items():
        try:
            with await service.workers.run(partial(_open, service, parts, place)) as file:
                reading = service.portal.uploads.table(file, f"{name}.xml")
                table = await while_there(request, reading)
        except TargetsError as error:
            raise usage(f"UPLOAD: {name}: {error}") from error
        cells += len(table) * len(table.columns)
        if cells > MOST_CELLS:
            raise usage(f"UPLOAD: expected at most {MOST_CELLS:,} cells, found {cells:,}", 413)
        uploads.append(upload_of(name, table))
    return parameters, uploads


def _places(values: Sequence[str]) -> dict[str, str]:
    """Return where tables are: `param:` and a part of the form, or a URL; by their names."""
    places: dict[str, str] = {}
    for each in (pair for value in values for pair in value.split(";") if pair.strip()):
        name, _, place = (word.strip() for word in each.partition(","))
        if not NAME.fullmatch(name):
            raise usage(f"UPLOAD: expected a name of letters and digits, found {quote_value(name)}")
        if not place.startswith((INLINE, "http://", "https://")):
            raise usage(
                f"UPLOAD: {name}: expected param:NAME, and the table sent as NAME in a form of "
                f"multipart/form-data, or a URL, found {quote_value(place)}"
            )
        if name.lower() in {other.lower() for other in places}:
            raise usage(f"UPLOAD: expected tables of different names, found {name} twice")
        places[name] = place
        if len(places) > MOST_UPLOADS:
            raise usage(f"UPLOAD: expected at most {MOST_UPLOADS} tables, found more")
    return places


def _open(service: Service, parts: Sequence[Part], place: str) -> BinaryIO:
    """Open a table: a part of the form, or a file of a server that users may read from."""
    portal = service.portal
    if not place.startswith(INLINE):
        portal.sources.check(place)
        return open_table(place, round(portal.config.limits.body_mb * 1e6))
    source = place.removeprefix(INLINE)
    contents = [part for part in parts if part.name == source]
    if len(contents) != 1:
        raise usage(f"UPLOAD: expected one part {source[:80]!r} of the form, found {len(contents)}")
    content = contents[0].content
    return io.BytesIO(contents[0].text.encode() if content is None else content)


def upload_of(name: str, table: Table) -> Upload:
    """Return a table as the rows of an upload. Values that are masked or NaN are missing.

    Raises:
        VoError: If a number is infinite, or no column is left.
    """
    columns: list[TapColumn] = []
    cells: list[list[Any]] = []
    for column_name in table.colnames:
        column = table[column_name]
        data = np.ma.asarray(column)
        if data.ndim != 1:
            continue  # an array in each cell
        kind = _kind(data.dtype)
        values = [_value(kind, value) for value in data.tolist()]
        if any(isinstance(value, float) and math.isinf(value) for value in values):
            raise usage(f"UPLOAD: {name}: {column_name[:80]}: expected finite numbers")
        about: dict[str, Any] = {
            key: str(column.meta[key]) for key in ABOUT if key in (column.meta or {})
        }
        if column.unit is not None:
            about["unit"] = str(column.unit)
        datatype = SMALL_TYPES.get(data.dtype.kind + str(data.dtype.itemsize))
        full_name = (column.meta or {}).get(FULL_NAME, column_name)
        columns.append(TapColumn(full_name, kind, "", datatype=datatype, **about))
        cells.append(values)
    if not columns:
        raise usage(f"UPLOAD: {name}: expected columns of numbers or texts, found none")
    rows = list(zip(*cells, strict=True))
    return Upload(TapTable(UPLOAD_SCHEMA, name, "A table that you sent", tuple(columns)), rows)


def _kind(dtype: np.dtype[Any]) -> Kind:
    if dtype.kind in "iub":
        return "long"
    return "double" if dtype.kind == "f" else "text"


def _value(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case "long":
            return int(value)
        case "double":
            return None if math.isnan(value) else float(value)
    return str(value).replace("\x00", "")
