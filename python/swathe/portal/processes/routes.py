"""Routes on the interface and its processes: landing page, conformance, descriptions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.processes.processes import find_process, summaries
from swathe.portal.stac.items import link
from swathe.portal.stac.routes import OPENAPI

router = APIRouter(tags=["processes"])
_PROCESSES, _DEPLOY = (
    f"http://www.opengis.net/spec/ogcapi-processes-{part}/1.0/conf" for part in (1, 2)
)
CONFORMANCE = (
    "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/core",
    *(
        f"{_PROCESSES}/{name}"
        for name in ("core", "ogc-process-description", "json", "job-list", "callback", "dismiss")
    ),
    *(f"{_DEPLOY}/{name}" for name in ("deploy-replace-undeploy", "ogcapppkg", "cwl")),
)
_REL = "http://www.opengis.net/def/rel/ogc/1.0"
Identifier = Annotated[str, Path(max_length=20_000)]
"""Id of a process; that of one that exists is much shorter."""


def url_of(request: Request) -> str:
    """Return the URL of this interface, without a slash at the end."""
    return f"{portal_of(request).url(request)}/ogc"


@router.get("/")
def landing_page(request: Request, _user: Reader) -> Any:
    """Return the title of the archive, and links."""
    portal, url = portal_of(request), url_of(request)
    title = portal.config.vo.title
    return {
        "title": title,
        "description": f"Processes of the portal {title}: OGC API Processes, parts 1 and 2.",
        "links": [
            link("self", f"{url}/"),
            link("service-desc", f"{url}/openapi.json", OPENAPI),
            *(
                link(rel, f"{url}/{name}")
                for name, word in (
                    ("conformance", "conformance"),
                    ("processes", "processes"),
                    ("jobs", "job-list"),
                )
                for rel in (f"{_REL}/{word}", word)
            ),
            link("related", f"{portal.url(request)}/stac/", title="STAC API"),
        ],
    }


@router.get("/openapi.json")
def openapi(request: Request, _user: Reader) -> Response:
    """Return the description of this interface."""
    content = {**request.app.openapi(), "servers": [{"url": url_of(request)}]}
    return JSONResponse(content, media_type=OPENAPI)


@router.get("/conformance")
def conformance(_user: Reader) -> Any:
    """Return the conformance classes."""
    return {"conformsTo": CONFORMANCE}


@router.get("/processes")
def processes(
    request: Request,
    _user: Reader,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Any:
    """List the processes, by pages."""
    url = url_of(request)
    every = summaries(portal_of(request).catalog, url)
    links = [link("self", f"{url}/processes"), link("up", f"{url}/")]
    if len(every) > offset + limit:
        more = f"limit={limit}&offset={offset + limit}"
        links.append(link("next", f"{url}/processes?{more}"))
    return {"processes": every[offset : offset + limit], "links": links}


@router.get("/processes/{identifier}")
def process(request: Request, _user: Reader, identifier: Identifier) -> Any:
    """Return the description of a process: its inputs and outputs."""
    of = find_process(portal_of(request).catalog, identifier)
    return of.describe(url_of(request))
