"""Routes of part 2: algorithms are deployed, replaced and undeployed as processes."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from swathe.algorithms.header import Source
from swathe.algorithms.named_algorithms import add_source
from swathe.algorithms.read_definition import read_definition
from swathe.catalog.records.algorithms import AlgorithmRecord
from swathe.core.errors import NoSuchAlgorithmError
from swathe.portal.access import Reader, Submitter
from swathe.portal.api.algorithms import BODY as SOURCE_BODY
from swathe.portal.api.algorithms import source_response
from swathe.portal.context import Portal, portal_of
from swathe.portal.processes.packages import PACKAGE, package_of, source_of
from swathe.portal.processes.problems import (
    DUPLICATED_PROCESS,
    IMMUTABLE_PROCESS,
    ProblemError,
    no_such_process,
)
from swathe.portal.processes.processes import built_in_processes, find_process
from swathe.portal.processes.routes import Identifier, url_of

router = APIRouter(tags=["processes"])
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An algorithm: its file or tar, or an OGC application package with it.",
        "content": {
            **SOURCE_BODY["requestBody"]["content"],
            PACKAGE: {"schema": {"type": "object"}},
        },
    }
}


@router.post("/processes", status_code=201, openapi_extra=BODY)
async def deploy(request: Request, user: Submitter) -> Response:
    """Add an algorithm as a new process."""
    portal, source = portal_of(request), await source_of(request)
    name = await run_in_threadpool(_name_of, source)
    if name in built_in_processes() or await run_in_threadpool(_exists, portal, name):
        raise ProblemError(
            409,
            f"{name}: expected the name of a new process, found one that is there; replace it "
            "with PUT",
            DUPLICATED_PROCESS,
        )
    await run_in_threadpool(_add, portal, source, user.name)
    process = await run_in_threadpool(find_process, portal.catalog, name)
    summary = process.summary(url_of(request))
    return JSONResponse(summary, 201, {"Location": summary["links"][0]["href"]})


@router.put("/processes/{identifier}", status_code=204, openapi_extra=BODY)
async def replace(request: Request, user: Submitter, identifier: Identifier) -> Response:
    """Add a new version of an algorithm, which is the process from now on.

    Jobs keep the version that they were accepted with. A version never changes.
    """
    portal = portal_of(request)
    _check_mutable(identifier)
    if not await run_in_threadpool(_exists, portal, identifier):
        raise no_such_process(identifier)
    source = await source_of(request)
    if (name := await run_in_threadpool(_name_of, source)) != identifier:
        raise ProblemError(409, f"the algorithm: expected the name {identifier}, found {name}")
    await run_in_threadpool(_add, portal, source, user.name)
    return Response(status_code=204)


@router.delete("/processes/{identifier}", status_code=204)
def undeploy(request: Request, user: Submitter, identifier: Identifier) -> Response:
    """Remove an algorithm of one's own; by NAME@VERSION one version, else all."""
    _check_mutable(identifier)
    portal_of(request).catalog.remove_algorithm(identifier, user.sees)
    return Response(status_code=204)


@router.get("/processes/{identifier}/package", response_class=Response)
def package(request: Request, _user: Reader, identifier: Identifier) -> Response:
    """Return the file of an algorithm; as an application package if the client accepts that."""
    _check_mutable(identifier)
    catalog = portal_of(request).catalog
    record, content = catalog.algorithm(identifier)
    if PACKAGE not in request.headers.get("accept", ""):
        return source_response(record, content)
    process = find_process(catalog, identifier)
    body = json.dumps(package_of(process.describe(url_of(request)), content))
    return Response(body, 200, {}, PACKAGE)


def _check_mutable(identifier: str) -> None:
    if identifier in built_in_processes():
        raise ProblemError(
            403, f"{identifier}: expected an algorithm, found a built-in process", IMMUTABLE_PROCESS
        )


def _exists(portal: Portal, name: str) -> bool:
    try:
        portal.catalog.algorithm(name)
    except NoSuchAlgorithmError:
        return False
    return True


def _name_of(source: Source) -> str:
    return read_definition(source).name


def _add(portal: Portal, source: Source, user: str) -> AlgorithmRecord:
    return add_source(portal.catalog, source, user, portal.uploads.launcher)[0]
