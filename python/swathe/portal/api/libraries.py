"""Endpoints on libraries of users: each sees, adds and removes those of its own alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from swathe.algorithms.libraries import add_library
from swathe.algorithms.library import parse_library
from swathe.algorithms.read_definition import LONGEST_NAME
from swathe.portal.access import Reader, Submitter
from swathe.portal.api import models
from swathe.portal.api.algorithms import version_label
from swathe.portal.context import portal_of

router = APIRouter(tags=["algorithms"])

TYPES = ("application/octet-stream", "application/x-tar", "application/gzip")
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The package: a tar, plain or gzip, with `library.toml`.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in TYPES},
    }
}
Name = Annotated[str, Path(max_length=LONGEST_NAME, description="Name of the library.")]
Version = Annotated[str | None, Query(max_length=32, description="Version; by default the newest.")]


@router.get("/libraries", response_model=models.LibraryList)
def libraries(request: Request, user: Reader) -> Any:
    """List all versions of one's own libraries, by name, the newest of each first."""
    return {"libraries": portal_of(request).catalog.libraries(user.name)}


@router.get("/libraries/{name}", response_model=models.LibraryDetail)
def library(request: Request, user: Reader, name: Name, version: Version = None) -> Any:
    """Return a version of a library of one's own, with the sizes of its files."""
    record, content = portal_of(request).catalog.library(version_label(name, version), user.name)
    return {**parse_library(content, record.label).summary(), **asdict(record)}


@router.post(
    "/libraries",
    response_model=models.LibraryModel,
    status_code=201,
    responses={200: {"model": models.LibraryModel, "description": "It was there already."}},
    openapi_extra=BODY,
)
async def add(request: Request, response: Response, user: Submitter) -> Any:
    """Check a library and add it. It is compiled when an algorithm first uses it."""
    content = await request.body()
    parts = await run_in_threadpool(parse_library, content, "the library")
    catalog = portal_of(request).catalog
    record, is_new = await run_in_threadpool(add_library, catalog, parts, content, user.name)
    if not is_new:
        response.status_code = 200
    return record


@router.delete("/libraries/{name}", status_code=204)
def remove(request: Request, user: Submitter, name: Name, version: Version = None) -> None:
    """Remove a version of a library of one's own, or by default all of its versions."""
    portal_of(request).catalog.remove_library(version_label(name, version), user.name)
