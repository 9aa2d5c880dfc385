"""`/vo/links`: DataLink 1.1, the files and services of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from swathe.core.errors import SwatheError
from swathe.portal.vo.discovery.descriptors import DATALINK, DATALINK_TYPE, soda
from swathe.portal.vo.discovery.votable import Field, document, info, results, table
from swathe.portal.vo.errors import VoError, to_vo_error, usage
from swathe.portal.vo.parameters import read_parameters
from swathe.portal.whole_file import FITS, is_served, media_type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from swathe.catalog import Match
    from swathe.portal.vo.service import Service

MOST_IDS = 100
"""Maximum number of IDs in one response; clients request the rest again."""
FORMATS = ("application/x-votable+xml", DATALINK_TYPE, "text/xml", "votable", "datalink")
FIELDS = (
    Field("ID", ucd="meta.id;meta.main"),
    Field("access_url", ucd="meta.ref.url"),
    Field("service_def", ucd="meta.ref"),
    Field("error_message", ucd="meta.code.error"),
    Field("description", ucd="meta.note"),
    Field("semantics", ucd="meta.code"),
    Field("content_type", ucd="meta.code.mime"),
    Field("content_length", "long", None, "byte", "phys.size;meta.file"),
    Field("content_qualifier", ucd="meta.code"),
    Field("local_semantics", ucd="meta.id.assoc"),
    Field("link_auth", ucd="meta.code"),
    Field("link_authorized", "boolean", ucd="meta.code"),
)


async def links(service: Service, request: Request) -> Response:
    """Return the links of images, and an error for each ID that names none."""
    query_parameters = await read_parameters(request)
    response_format = query_parameters.one("RESPONSEFORMAT")
    if response_format is not None and response_format.strip().lower() not in FORMATS:
        raise usage(f"RESPONSEFORMAT: expected {DATALINK_TYPE}, found {response_format[:80]!r}")
    # Rows of one ID follow each other, even if the ID was given twice.
    ids = list(dict.fromkeys(query_parameters.all("ID")))
    content = await service.workers.run(lambda: _document(service, request, ids))
    return Response(content, 200, media_type=DATALINK_TYPE)


def _document(service: Service, request: Request, ids: Sequence[str]) -> bytes:
    rows: list[tuple[Any, ...]] = []
    services: list[str] = []
    for did in ids[:MOST_IDS]:
        try:
            match = service.images.match(did)
        except VoError as error:
            rows.append(_row(did, error=f"NotFoundFault: {error}", semantics="#this"))
            continue
        except SwatheError as error:
            rows.append(_row(did, error=f"TransientFault: {to_vo_error(error)}", semantics="#this"))
            continue
        rows += _rows(service, request, did, match, f"soda-{len(services)}")
        states = _states(service, did, match)
        url = service.url(request, "sync")
        services.append(soda(f"soda-{len(services)}", url, "ID", match, states))
    status = "OVERFLOW" if len(ids) > MOST_IDS else "OK"
    facts = [info("QUERY_STATUS", status), info("standardID", DATALINK)]
    if not ids:
        services.append(soda("soda-0", service.url(request, "sync"), "ID"))
    return document(results(*facts, table(FIELDS, rows)), *services)


def _rows(
    service: Service, request: Request, did: str, match: Match, descriptor: str
) -> list[tuple[Any, ...]]:
    granule = match.granule
    rows = []
    if is_served(match.file):
        rows.append(
            _row(
                did,
                url=service.url(request, "file", did),
                about=f"the file; the image is its HDU {granule.hdu}",
                semantics="#this",
                media_type=media_type_of(granule.path, FITS),
                size=granule.size,
            )
        )
    rows.append(
        _row(
            did,
            service=descriptor,
            about="a region of the image, as FITS",
            semantics="#cutout",
            media_type="application/fits",
        )
    )
    if len(granule.shape) >= 2:
        rows.append(
            _row(
                did,
                url=service.url(request, "preview", did),
                about="a small picture",
                semantics="#preview",
                media_type="image/png",
            )
        )
    return rows


def _row(
    did: str,
    *,
    url: str | None = None,
    service: str | None = None,
    error: str | None = None,
    about: str | None = None,
    semantics: str,
    media_type: str | None = None,
    size: int | None = None,
) -> tuple[Any, ...]:
    is_authorized = None if error else True
    return (
        did,
        url,
        service,
        error,
        about,
        semantics,
        media_type,
        size,
        None,
        None,
        None if error else "optional",
        is_authorized,
    )


def _states(service: Service, did: str, match: Match) -> Sequence[str]:
    """Return the states of polarization of a cube; empty if it cannot be read."""
    if len(match.granule.shape) < 3:
        return ()
    try:
        stokes = service.images.get(did).stokes
    except SwatheError:
        return ()
    return () if stokes is None else stokes.states
