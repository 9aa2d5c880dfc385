"""Routes of the STAC API."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response

from swathe.catalog.datasets.conditions import PROPERTIES
from swathe.catalog.datasets.object_ids import path_of
from swathe.catalog.datasets.objects import DatasetObject, ObjectQuery
from swathe.core.errors import DatasetError, LimitError, NotFoundError
from swathe.datasets.earth_search import EarthArea
from swathe.files.places.bounds import Bounds
from swathe.portal.access import Reader, downloads_of
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.ranges import answer_with
from swathe.portal.pages.archive_counts import ArchiveCounts
from swathe.portal.stac.items import GEOJSON, OCTETS, STAC_VERSION, Documents, link, with_fields
from swathe.portal.stac.search_request import (
    SearchRequest,
    search_request,
    token_of,
)
from swathe.portal.whole_file import media_type_of, whole_file

router = APIRouter()
Name = Annotated[str, Path(max_length=100)]
Identifier = Annotated[str, Path(max_length=3000)]
OPENAPI = "application/vnd.oai.openapi+json;version=3.0"
SCHEMA = "application/schema+json"
LONGEST_BODY = 1_000_000
LONGEST_S = 20.0
"""Time limit of a search."""
COUNT_LIMIT = 10_000
"""Items that are counted to tell how many match; of more, the number is not told."""
_STAC, _OGC = "https://api.stacspec.org/v1.0.0", "http://www.opengis.net/spec"
CONFORMANCE = (
    *(f"{_STAC}/{name}" for name in ("core", "collections", "ogcapi-features", "item-search")),
    f"{_STAC}-rc.2/children",
    *(f"{_STAC}/item-search#{name}" for name in ("fields", "sort", "filter")),
    *(f"{_STAC}/ogcapi-features#{name}" for name in ("fields", "sort")),
    *(f"{_OGC}/ogcapi-features-1/1.0/conf/{name}" for name in ("core", "geojson")),
    f"{_OGC}/ogcapi-features-3/1.0/conf/features-filter",
    f"{_OGC}/ogcapi-features-3/1.0/conf/filter",
    *(
        f"{_OGC}/cql2/1.0/conf/{name}"
        for name in ("cql2-text", "cql2-json", "basic-cql2", "advanced-comparison-operators")
    ),
)


def counts_of(request: Request) -> ArchiveCounts:
    """Return the counts of the archive, which pages and this interface share."""
    return cast("ArchiveCounts", request.app.state.holdings)


def documents_of(request: Request) -> Documents:
    """Return what makes the documents of this portal."""
    portal = portal_of(request)
    return Documents(portal.url(request), portal.config.vo.authority)


@router.get("/")
def landing_page(request: Request, _user: Reader) -> Any:
    """Return the catalogue: its conformance classes and links."""
    portal, documents = portal_of(request), documents_of(request)
    url = documents.url
    names = [name for name, _, _ in portal.catalog.changes()]
    return {
        "type": "Catalog",
        "stac_version": STAC_VERSION,
        "id": "swathe",
        "title": portal.config.vo.title,
        "description": f"Datasets of the portal {portal.config.vo.title}.",
        "conformsTo": CONFORMANCE,
        "links": [
            link("self", documents.root),
            link("root", documents.root),
            link("service-desc", f"{url}/openapi.json", OPENAPI),
            link("data", f"{url}/collections"),
            link("children", f"{url}/children"),
            link("conformance", f"{url}/conformance"),
            link("search", f"{url}/search", GEOJSON, method="GET"),
            link("search", f"{url}/search", GEOJSON, method="POST"),
            link("http://www.opengis.net/def/rel/ogc/1.0/queryables", f"{url}/queryables", SCHEMA),
            documents.processes,
            *(link("child", documents.collection_url(name), title=name) for name in names),
        ],
    }


@router.get("/openapi.json")
def openapi(request: Request, _user: Reader) -> Response:
    """Return the description of this interface."""
    return JSONResponse(request.app.openapi(), media_type=OPENAPI)


@router.get("/conformance")
def conformance(_user: Reader) -> Any:
    """Return the conformance classes."""
    return {"conformsTo": CONFORMANCE}


@router.get("/collections")
def collections(request: Request, _user: Reader) -> Any:
    """List the datasets as collections."""
    return _collections(request, "collections")


@router.get("/children")
def children(request: Request, _user: Reader) -> Any:
    """List what the catalogue has directly below it: the datasets as collections."""
    return _collections(request, "children")


def _collections(request: Request, name: str) -> Any:
    documents = documents_of(request)
    return {
        name: [
            documents.collection(each.dataset, each.summary) for each in counts_of(request).all()
        ],
        "links": [
            link("self", f"{documents.url}/{name}"),
            link("root", documents.root),
            link("parent", documents.root),
        ],
    }


@router.get("/collections/{name}")
def collection(request: Request, _user: Reader, name: Name) -> Any:
    """Return a dataset as a collection."""
    dataset = portal_of(request).catalog.dataset(name)
    counts = counts_of(request).one(dataset)
    return documents_of(request).collection(dataset, counts.summary)


@router.get("/queryables")
@router.get("/collections/{name}/queryables")
def queryables(request: Request, _user: Reader, name: Name | None = None) -> Response:
    """Return the properties that filters may name, as a JSON schema."""
    if name is not None:
        portal_of(request).catalog.dataset(name)
    kinds = {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "time": {"type": "string", "format": "date-time"},
        "id": {"type": "string"},
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": str(request.url),
        "type": "object",
        "title": "Properties for filters",
        "properties": {
            name: {"description": of.description, **kinds[of.kind]}
            for name, of in PROPERTIES.items()
        },
        "additionalProperties": True,
    }
    return JSONResponse(schema, media_type=SCHEMA)


@router.get("/search")
def search(request: Request, _user: Reader) -> Response:
    """Search for items; the parameters are those of STAC's item search."""
    return _answer(request, _of_url(request), f"{documents_of(request).url}/search")


@router.post("/search")
async def search_by_body(request: Request, _user: Reader) -> Response:
    """Search for items; the body is a JSON object with the same parameters."""
    content = await request.body()
    try:
        if len(content) > LONGEST_BODY:
            raise ValueError(f"expected at most {LONGEST_BODY} bytes")
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"body: expected JSON: {str(error)[:200]}") from error
    if not isinstance(body, dict):
        raise DatasetError("body: expected a JSON object")
    url = f"{documents_of(request).url}/search"
    return await run_in_threadpool(_answer, request, body, url, is_post=True)


@router.get("/collections/{name}/items")
def items(request: Request, _user: Reader, name: Name) -> Response:
    """Return the items of a collection; the parameters are those of a search."""
    values = _of_url(request)
    url = f"{documents_of(request).collection_url(name)}/items"
    return _answer(request, values, url, collection=name)


@router.get("/collections/{name}/items/{identifier}")
def item(request: Request, _user: Reader, name: Name, identifier: Identifier) -> Response:
    """Return an item."""
    of = _object(request, name, identifier)
    return JSONResponse(documents_of(request).item(of), media_type=GEOJSON)


@router.get("/collections/{name}/items/{identifier}/data")
def data(request: Request, _user: Reader, name: Name, identifier: Identifier) -> Response:
    """Return the file of an item, or a range of it. A file on a web server gives a redirect."""
    of = _object(request, name, identifier)
    portal_of(request).sources.check(of.file)
    whole = whole_file(of.file, of.path.rpartition("/")[2], media_type_of(of.path, OCTETS))
    if isinstance(whole, str):
        return RedirectResponse(whole, 303)
    return answer_with(request, downloads_of(request), whole, {})


def _object(request: Request, name: str, identifier: str) -> DatasetObject:
    try:
        path = path_of(identifier)
    except DatasetError as error:
        raise NotFoundError(str(error)) from error
    query = ObjectQuery(datasets=[name], paths=[path])
    objects = portal_of(request).catalog.find_objects(query, 1)
    if not objects:
        raise NotFoundError(f"{name}: there is no item {identifier[:200]!r}")
    return objects[0]


def _of_url(request: Request) -> dict[str, Any]:
    """Return the parameters of a URL; a name that occurs twice is refused."""
    values: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in values:
            raise DatasetError(f"{name[:50]}: expected one value, found two")
        values[name] = value
    return values


def _answer(
    request: Request,
    values: Mapping[str, Any],
    url: str,
    *,
    collection: str | None = None,
    is_post: bool = False,
) -> Response:
    """Return a page of items, with a link to the next."""
    portal, documents = portal_of(request), documents_of(request)
    query = search_request(values, is_post=is_post)
    criteria = _criteria(portal, query)
    if collection is not None:  # one that does not exist is an error here
        criteria = replace(criteria, datasets=[collection])
    # One more shows whether there are more.
    end_s = time.monotonic() + LONGEST_S

    def check() -> None:
        if time.monotonic() > end_s:
            raise LimitError(f"the search takes longer than {LONGEST_S:g} s; narrow it")

    objects = portal.catalog.find_objects(criteria, query.limit + 1, check)
    page = objects[: query.limit]
    links = [link("self", url, GEOJSON), link("root", documents.root)]
    if collection is not None:
        links.append(link("collection", documents.collection_url(collection)))
    if len(objects) > len(page):
        more = {**values, "token": token_of(page[-1].key, query.order)}
        links.append(
            link("next", url, GEOJSON, method="POST", body=more)
            if is_post
            else link("next", f"{url}?{urlencode(more)}", GEOJSON, method="GET")
        )
    count = portal.catalog.count_objects(replace(criteria, after=None), COUNT_LIMIT)
    if count is None and query.after is None and len(objects) == len(page):
        count = len(page)
    answer = {
        "type": "FeatureCollection",
        "features": [with_fields(documents.item(of), query.fields) for of in page],
        "links": links,
        "numberReturned": len(page),
        **({} if count is None else {"numberMatched": count}),
    }
    return JSONResponse(answer, media_type=GEOJSON)


def _criteria(portal: Portal, query: SearchRequest) -> ObjectQuery:
    """Return the criteria as the catalogue has them."""
    datasets = query.collections
    if datasets is not None:
        # One that does not exist has no items.
        names = {name for name, _, _ in portal.catalog.changes()}
        datasets = [name for name in datasets if name in names]
    ranges, touches, latitudes = None, None, None
    if query.bounds is not None:
        area = EarthArea(query.bounds)
        ranges, touches, latitudes = area.ranges, area.touches, area.latitudes
    elif query.area is not None:
        area = EarthArea(Bounds.of(query.area.box))
        ranges, touches, latitudes = area.ranges, query.area.touches, area.latitudes
    return ObjectQuery(
        datasets,
        query.paths,
        ranges,
        touches,
        query.time,
        query.condition,
        query.order,
        query.is_descending,
        query.after,
        latitudes,
    )
