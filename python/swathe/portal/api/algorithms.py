"""Endpoints on algorithms: the list, one version, its source; adding and removing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.cwl_document import is_cwl, is_json
from swathe.algorithms.header import Source, parse_cwl, parse_source
from swathe.algorithms.named_algorithms import add_source
from swathe.algorithms.read_definition import LONGEST_NAME
from swathe.algorithms.tar_files import GZIP as MAGIC
from swathe.algorithms.tar_files import is_tar
from swathe.catalog.records.algorithms import AlgorithmRecord
from swathe.core.errors import AlgorithmError
from swathe.portal.access import Reader, Submitter
from swathe.portal.api import models
from swathe.portal.context import portal_of

router = APIRouter(tags=["algorithms"])

PYTHON, TAR, GZIP = "text/x-python", "application/x-tar", "application/gzip"
CWL, CWL_JSON, CWL_YAML = "application/cwl", "application/cwl+json", "application/cwl+yaml"
SUFFIXES = {PYTHON: "py", TAR: "tar", GZIP: "tar.gz", CWL_JSON: "cwl", CWL_YAML: "cwl"}
PYTHON_TYPES = (PYTHON, "application/x-python")
CWL_TYPES = (CWL, CWL_JSON, CWL_YAML)
TYPES = (*PYTHON_TYPES, *CWL_TYPES, TAR, GZIP, "application/octet-stream")
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "The source: a file of Python with a header (PEP 723), a document of CWL, or a package."
        ),
        "content": {
            **{kind: {"schema": {"type": "string"}} for kind in (PYTHON, *CWL_TYPES)},
            **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in (TAR, GZIP)},
        },
    }
}
Name = Annotated[str, Path(max_length=LONGEST_NAME, description="Name of the algorithm.")]
Version = Annotated[str | None, Query(max_length=32, description="Version; by default the newest.")]


@router.get("/algorithms", response_model=models.AlgorithmList)
def algorithms(request: Request, _user: Reader) -> Any:
    """List all versions of algorithms, by name, the newest of each first."""
    return {"algorithms": portal_of(request).catalog.algorithms()}


@router.get("/algorithms/{name}", response_model=models.AlgorithmDetail)
def algorithm(request: Request, _user: Reader, name: Name, version: Version = None) -> Any:
    """Return a version of an algorithm: what it reads, writes and may use."""
    content = algorithm_version(portal_of(request).catalog, version_label(name, version))
    return {**asdict(content.record), "definition": asdict(content.definition)}


@router.get(
    "/algorithms/{name}/source",
    response_class=Response,
    responses={
        200: {
            "description": "The source.",
            "content": {kind: {} for kind in (PYTHON, CWL_JSON, CWL_YAML, TAR, GZIP)},
        }
    },
)
def source(request: Request, _user: Reader, name: Name, version: Version = None) -> Response:
    """Return the source of a version, as it was sent."""
    return source_response(*portal_of(request).catalog.algorithm(version_label(name, version)))


@router.post(
    "/algorithms",
    response_model=models.AlgorithmModel,
    status_code=201,
    responses={200: {"model": models.AlgorithmModel, "description": "It was there already."}},
    openapi_extra=BODY,
)
async def add(request: Request, response: Response, user: Submitter) -> Any:
    """Check an algorithm and add it. A version never changes; the same source is the same version.

    All errors of its header are reported at once.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise AlgorithmError(
            f"expected {PYTHON}, {CWL}, {TAR} or {GZIP}, found {kind[:100] or 'nothing'!r}"
        )
    content = await run_in_threadpool(parse_body, await request.body(), kind)
    portal = portal_of(request)
    launcher = portal.uploads.launcher
    record, is_new = await run_in_threadpool(
        add_source, portal.catalog, content, user.name, launcher
    )
    if not is_new:
        response.status_code = 200
    return record


@router.delete("/algorithms/{name}", status_code=204)
def remove(request: Request, user: Submitter, name: Name, version: Version = None) -> None:
    """Remove a version of an algorithm of one's own, or by default all of its versions."""
    portal_of(request).catalog.remove_algorithm(version_label(name, version), user.sees)


def parse_body(body: bytes, kind: str) -> Source:
    """Parse a source that was sent with a media type.

    Raises:
        AlgorithmError: If it is damaged, or no CWL although its type says so.
    """
    parse = parse_cwl if kind in CWL_TYPES else parse_source
    return parse(body, "the algorithm")


def type_of(source: bytes) -> str:
    """Return the media type of a source: a file of Python, a document of CWL, or a package."""
    if not is_tar(source):
        kind = CWL_JSON if is_json(source) else CWL_YAML
        return kind if is_cwl(source) else PYTHON
    return GZIP if source.startswith(MAGIC) else TAR


def source_response(record: AlgorithmRecord, source: bytes) -> Response:
    """Return the source of a version as a file."""
    kind = type_of(source)
    headers = {
        "Content-Disposition": (
            f'attachment; filename="{record.name}-{record.version}.{SUFFIXES[kind]}"'
        ),
        "X-Content-Type-Options": "nosniff",
    }
    return Response(source, 200, headers, kind)


def version_label(name: str, version: str | None) -> str:
    """Return NAME@VERSION, or NAME for the newest."""
    return name if version is None else f"{name}@{version}"
