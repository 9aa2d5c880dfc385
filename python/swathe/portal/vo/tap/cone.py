"""`/vo/conesearch`: Simple Cone Search 1.1, images by their centres.

Also an error has the status 200, as version 1.03 demands; clients find it in the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.responses import Response

from swathe.catalog.read_only import ReadLimit
from swathe.core.errors import SwatheError
from swathe.portal.vo import parameters
from swathe.portal.vo.discovery.votable import MEDIA_TYPE, document, info, results, table
from swathe.portal.vo.errors import to_vo_error, usage
from swathe.portal.vo.tap.answers import answer_rows
from swathe.portal.vo.tap.query_request import QueryRequest
from swathe.portal.vo.tap.sources import Sources
from swathe.portal.vo.tap.sync import run_query
from swathe.portal.vo.tap.tables import OBSCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from swathe.portal.vo.discovery.votable import Field
    from swathe.portal.vo.parameters import RequestParameters
    from swathe.portal.vo.service import Service

LONGEST_S = 60.0
MAIN_UCDS = {
    "obs_publisher_did": "ID_MAIN",
    "s_ra": "POS_EQ_RA_MAIN",
    "s_dec": "POS_EQ_DEC_MAIN",
}
"""UCDs of version 1.0, by which clients find the columns; the others have those of 1.1."""
COLUMNS = {
    "1": (*MAIN_UCDS, "access_url"),
    "2": (
        *(*MAIN_UCDS, "access_url", "access_format", "access_estsize"),
        *("obs_collection", "obs_id", "dataproduct_type", "calib_level", "target_name"),
        *("s_fov", "s_region", "t_min", "t_max", "em_min", "em_max", "instrument_name"),
    ),
    "3": tuple(column.name for column in OBSCORE.columns),
}
"""Columns of the answer by VERB."""


async def cone_search(service: Service, request: Request) -> Response:
    """Return the images whose centres are in a circle."""
    try:
        query_parameters = await parameters.read_parameters(request)
        content = await run_query(
            service,
            request,
            lambda should_stop: _document(service, request, query_parameters, should_stop),
        )
    except SwatheError as error:
        line = to_vo_error(error).line
        content = document(results(info("QUERY_STATUS", "ERROR", line), info("Error", line)))
    return Response(content, 200, media_type=MEDIA_TYPE)


def _document(
    service: Service,
    request: Request,
    query_parameters: RequestParameters,
    should_stop: Callable[[], bool],
) -> bytes:
    ra, dec, radius = (_number(query_parameters, name) for name in ("RA", "DEC", "SR"))
    circle = parameters.circle("RA, DEC, SR", f"{ra} {dec} {radius}")
    verb = (query_parameters.one("VERB") or "2").strip()
    if verb not in COLUMNS:
        raise usage(f"VERB: expected 1, 2 or 3, found {parameters.quote_value(verb)}")
    text = (
        f"SELECT {', '.join(COLUMNS[verb])} FROM ivoa.obscore "
        f"WHERE 1 = CONTAINS(POINT(s_ra, s_dec), CIRCLE({circle.ra_deg!r}, {circle.dec_deg!r}, "
        f"{circle.radius_deg!r})) ORDER BY obs_publisher_did"
    )
    query_request = QueryRequest.of(text, query_parameters)
    if query_request.media_type != MEDIA_TYPE:
        raise usage(f"RESPONSEFORMAT: expected {MEDIA_TYPE}, found another format")
    # A radius of 0 asks for the columns alone.
    most = query_request.most if radius else 0
    catalog = service.portal.catalog
    sources = Sources(
        on_sqlite=catalog.is_sqlite,
        authority=service.authority,
        links_url=service.url(request, "links"),
        owner="",
        job_rows=lambda _job_id: [],
    )
    limit = ReadLimit.of(LONGEST_S, should_stop)
    with answer_rows(catalog, sources, text, most + 1, limit) as (outputs, rows):
        fields = [_with_main_ucd(output.column.field) for output in outputs]
        cells = [cell for number, cell in enumerate(rows) if number <= most]
    status = "OVERFLOW" if radius and len(cells) > most else "OK"
    note = info("QUERY_STATUS", status)
    return document(results(note, table(fields, cells[:most])))


def _with_main_ucd(field: Field) -> Field:
    return replace(field, ucd=MAIN_UCDS.get(field.name, field.ucd))


def _number(query_parameters: RequestParameters, name: str) -> float:
    text = query_parameters.one(name)
    if text is None:
        raise usage(f"{name}: expected a number of degrees, found none")
    numbers = parameters.numbers(name, text)
    if len(numbers) != 1:
        raise usage(f"{name}: expected one number, found {parameters.quote_value(text)}")
    return numbers[0]
