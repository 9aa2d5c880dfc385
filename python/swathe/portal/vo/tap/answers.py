"""Answers to queries: rows of the database, written to a file as they come."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from swathe.core.errors import QueryError
from swathe.portal.vo.discovery import descriptors
from swathe.portal.vo.discovery.votable import (
    HEAD,
    TABLE_END,
    Field,
    info,
    table_row,
    table_start,
)
from swathe.portal.vo.tap.adql import functions
from swathe.portal.vo.tap.adql.translate import Translator
from swathe.portal.vo.tap.footprints import Footprints
from swathe.portal.vo.tap.query_request import CSV

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.read_only import ReadLimit
    from swathe.portal.vo.tap.adql.translate import Output
    from swathe.portal.vo.tap.query_request import QueryRequest
    from swathe.portal.vo.tap.sources import Sources

MOST_BYTES = 1_000_000_000
"""Maximum size of an answer."""
DID = "obs_publisher_did"


@dataclass(frozen=True)
class Answer:
    """An answer in a file.

    Attributes:
        rows: Number of rows.
        is_cut: Whether there are more rows than MAXREC.
    """

    rows: int
    is_cut: bool


def write_answer(
    catalog: Catalog, sources: Sources, request: QueryRequest, limit: ReadLimit, file: IO[bytes]
) -> Answer:
    """Answer a query, into a file.

    Raises:
        VoError: If the query is not valid.
        QueryError: If it takes too long, or its values do not fit.
    """
    # One more row shows whether there are more.
    with answer_rows(catalog, sources, request.text, request.most + 1, limit) as (outputs, rows):
        if request.media_type == CSV:
            return _write_csv(outputs, rows, request.most, file)
        links = descriptors.links("links", sources.links_url, DID)
        return _write_votable(outputs, rows, request, file, links)


@contextmanager
def answer_rows(
    catalog: Catalog, sources: Sources, text: str, most: int, limit: ReadLimit
) -> Iterator[tuple[list[Output], Iterator[list[Any]]]]:
    """Yield the columns of an answer, and its rows.

    Raises:
        VoError: If the query is not valid.
        QueryError: If it takes too long, or its values do not fit.
    """
    translation = Translator(sources, Footprints(catalog, limit)).translate(text, most)
    outputs = translation.outputs
    with catalog.limited_rows(translation.statement, limit, functions.register) as rows:
        yield outputs, (_cells(outputs, row) for row in rows)


def _cells(outputs: Sequence[Output], row: Sequence[Any]) -> list[Any]:
    cells: list[Any] = []
    at = 0
    for output in outputs:
        if output.width > 1:
            numbers = tuple(_cell(output, value) for value in row[at : at + output.width])
            cells.append(None if None in numbers else numbers)
        else:
            cells.append(_cell(output, row[at]))
        at += output.width
    return cells


def _cell(output: Output, value: Any) -> Any:
    if value is None:
        return None
    match output.column.kind:
        case "double":
            number = float(value)
            if not math.isfinite(number):
                raise QueryError(f"{output.column.name}: a number is out of range")
            return number
        case "int" | "long":
            if int(value) != value or not -(2**63) <= value < 2**63:
                raise QueryError(f"{output.column.name}: an integer is out of range")
            return int(value)
        case "region":
            corners = json.loads(value)
            return "POLYGON ICRS " + " ".join(f"{number:.8f}" for number in corners)
    return str(value)


def _parts(rows: Iterable[Any], most: int, file: IO[bytes]) -> Iterator[Any]:
    """Yield rows, and None in place of the first one too many.

    Raises:
        QueryError: If the file becomes too large.
    """
    for number, row in enumerate(rows):
        if number == most:
            yield None
            return
        if number % 1000 == 0 and file.tell() > MOST_BYTES:
            raise QueryError(
                f"the answer: expected at most {MOST_BYTES:,} bytes, found more; ask for less"
            )
        yield row


def _write_votable(
    outputs: Sequence[Output],
    rows: Iterable[Any],
    request: QueryRequest,
    file: IO[bytes],
    links: str,
) -> Answer:
    def write(text: str) -> None:
        file.write(text.encode("ascii", "xmlcharrefreplace"))

    fields = [_field(output) for output in outputs]
    names = [field.name for field in fields]
    has_links = names.count(DID) == 1
    write(HEAD + '<RESOURCE type="results">\n' + info("QUERY_STATUS", "OK"))
    write(info("QUERY", request.text))
    write(table_start(fields, [DID if has_links and name == DID else None for name in names]))
    count, is_cut = 0, False
    for row in _parts(rows, request.most, file):
        if row is None:
            is_cut = True
            break
        write(table_row(row))
        count += 1
    write(TABLE_END)
    if is_cut:
        write(info("QUERY_STATUS", "OVERFLOW"))
    write("</RESOURCE>\n" + (links if has_links else "") + "</VOTABLE>\n")
    return Answer(count, is_cut)


def _field(output: Output) -> Field:
    field = output.column.field
    if output.width == 1:
        return field
    size = str(output.width)
    return Field(field.name, "double", size, field.unit, field.ucd, None, field.xtype, field.about)


def _write_csv(
    outputs: Sequence[Output], rows: Iterable[Any], most: int, file: IO[bytes]
) -> Answer:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow([output.column.name for output in outputs])
    count, is_cut = 0, False
    for row in _parts(rows, most, file):
        if row is None:
            is_cut = True
            break
        writer.writerow(
            [" ".join(map(repr, cell)) if isinstance(cell, tuple) else cell for cell in row]
        )
        count += 1
    text.detach()
    return Answer(count, is_cut)
