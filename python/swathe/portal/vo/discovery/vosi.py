"""Self-description of the services: VOSI capabilities and availability, DALI examples."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from starlette.responses import HTMLResponse, Response

from swathe.portal.vo.discovery import descriptors
from swathe.portal.vo.discovery.votable import plain
from swathe.portal.vo.identifiers import did_of
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.catalog import Match
    from swathe.portal.vo.service import Service

XML = "text/xml"
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
CAPABILITIES = f"""<?xml version="1.0" encoding="UTF-8"?>
<vosi:capabilities xmlns:vosi="http://www.ivoa.net/xml/VOSICapabilities/v1.0"
    xmlns:vs="http://www.ivoa.net/xml/VODataService/v1.1" {XSI}>
"""
TAP = "ivo://ivoa.net/std/TAP"
STANDARDS = (
    ("ivo://ivoa.net/std/VOSI#capabilities", "capabilities"),
    ("ivo://ivoa.net/std/VOSI#availability", "availability"),
    ("ivo://ivoa.net/std/SIA#query-2.0", "query"),
    ("ivo://ivoa.net/std/SIA", "sia1?"),
    ("ivo://ivoa.net/std/ConeSearch", "conesearch"),
    (descriptors.DATALINK, "links"),
    (descriptors.SODA, "sync"),
    (descriptors.SODA_ASYNC, "async"),
    ("ivo://ivoa.net/std/DALI#examples", "examples"),
    (TAP, "tap"),
)
"""The services. TAP describes itself below its own URL, `tap`."""
VERSIONS = {TAP: "1.1"}
"""Versions that the identifier does not have."""


async def capabilities(service: Service, request: Request) -> Response:
    """Return the capabilities of the services."""
    parts = [CAPABILITIES]
    for standard, path in STANDARDS:
        use = "full" if path in ("capabilities", "availability", "examples") else "base"
        url = escape(service.url(request, path))
        version = f' version="{VERSIONS[standard]}"' if standard in VERSIONS else ""
        parts.append(
            f"<capability standardID={quoteattr(standard)}>\n"
            f'<interface xsi:type="vs:ParamHTTP" role="std"{version}>\n'
            f'<accessURL use="{use}">{url}</accessURL>\n'
            "</interface>\n</capability>\n"
        )
    parts.append("</vosi:capabilities>\n")
    return Response("".join(parts), 200, media_type=XML)


async def availability(service: Service, _request: Request) -> Response:
    """Return the availability: whether the catalogue responds and jobs are running."""
    trouble = await service.workers.run(lambda: _trouble(service))
    note = f"<vosi:note>{plain(trouble)}</vosi:note>\n" if trouble else ""
    return Response(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<vosi:availability xmlns:vosi="http://www.ivoa.net/xml/VOSIAvailability/v1.0">\n'
        f"<vosi:available>{'false' if trouble else 'true'}</vosi:available>\n{note}"
        "</vosi:availability>\n",
        200,
        media_type=XML,
    )


async def examples(service: Service, request: Request) -> Response:
    """Return example requests on an image of the catalogue."""
    match = await service.workers.run(lambda: _some(service))
    url = service.url
    parts = []
    if match is not None:
        place = match.granule.footprint
        assert place is not None
        did = did_of(service.authority, match.dataset, match.granule)
        circle = f"{place.s_ra:.6f} {place.s_dec:.6f} {place.s_fov / 8:.6f}"
        for number, (title, text) in enumerate(
            (
                ("Images at a position", f"{url(request, 'query')}?POS=CIRCLE {circle}"),
                ("Links of an image", url(request, "links", did)),
                ("A cut", f"{url(request, 'sync', did)}&CIRCLE={circle}"),
                ("A cut in pixels", f"{url(request, 'sync', did)}&SUB=[1:100,1:100]"),
            )
        ):
            link = text.replace(" ", "+").replace("[", "%5B").replace("]", "%5D")
            parts.append(
                f'<div typeof="example" id="e{number}" resource="#e{number}">\n'
                f'<h2 property="name">{plain(title)}</h2>\n'
                f'<p><a property="query" href={quoteattr(link)}>{plain(text)}</a></p>\n</div>\n'
            )
    return page(service, "Examples", "".join(parts) or "<p>There are no images yet.</p>\n")


async def root(service: Service, request: Request) -> Response:
    """Return a list of the services."""
    lines = "".join(
        f"<li><a href={quoteattr(service.url(request, path))}>{path.rstrip('?')}</a>: "
        f"{plain(standard)}</li>\n"
        for standard, path in STANDARDS
    )
    return page(service, "Virtual Observatory services", f"<ul>\n{lines}</ul>\n")


def _trouble(service: Service) -> str:
    """Return the last error that keeps jobs from running, without private details; else empty."""
    portal = service.portal
    portal.catalog.stores()
    return with_store_names(portal.pool_status(None).trouble)


def _some(service: Service) -> Match | None:
    from swathe.catalog import GranuleQuery

    for match in service.portal.catalog.each_granule(GranuleQuery(limit=100, is_hdu=True)):
        if match.granule.footprint is not None:
            return match
    return None


def page(service: Service, title: str, body: str) -> Response:
    """Return a page of HTML that a program can read as XML."""
    name = plain(service.portal.config.vo.title)
    return HTMLResponse(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml">\n'
        f'<head><meta charset="utf-8"/><title>{name}: {title}</title></head>\n'
        '<body vocab="http://www.ivoa.net/rdf/examples#">\n'
        f"<h1>{name}: {title}</h1>\n{body}</body>\n</html>\n"
    )
