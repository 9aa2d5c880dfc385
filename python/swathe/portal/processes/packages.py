"""Algorithms in bodies: a file of Python or CWL, a tar, or an OGC application package with one."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from fastapi.concurrency import run_in_threadpool

from swathe.algorithms.header import Source
from swathe.algorithms.read_definition import read_definition
from swathe.algorithms.tar_files import MOST_PACKAGE_BYTES
from swathe.core.errors import AlgorithmError, LimitError
from swathe.core.value_errors import short_text
from swathe.portal.api.algorithms import (
    CWL,
    CWL_JSON,
    CWL_TYPES,
    CWL_YAML,
    GZIP,
    PYTHON,
    PYTHON_TYPES,
    TAR,
    TYPES,
    parse_body,
    type_of,
)
from swathe.portal.processes.problems import UNSUPPORTED_MEDIA_TYPE, ProblemError
from swathe.portal.strict_json import parse_strict

if TYPE_CHECKING:
    from starlette.requests import Request

PACKAGE = "application/ogcapppkg+json"
PACKAGE_TYPES = (PACKAGE, "application/json")
BASE64 = "base64"
VERSION = "cwlVersion"
"""Key of a unit that is a document of CWL itself."""
LARGEST = MOST_PACKAGE_BYTES * 4 // 3 + 100_000
"""Most bytes of a package: its source as base64 or JSON, and its description."""
MOST_VALUES = 1_000_000


async def source_of(request: Request) -> Source:
    """Return the algorithm of a body.

    Raises:
        ProblemError: If the body has another media type.
        AlgorithmError: If it is no algorithm, or a package that does not fit its algorithm.
        JobError: If it is no strict JSON.
        LimitError: If it is too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind in TYPES:
        return await run_in_threadpool(parse_body, body, kind)
    if kind not in PACKAGE_TYPES:
        raise _wrong_type("the body", kind)
    if len(body) > LARGEST:
        raise LimitError(f"the package: expected at most {LARGEST:,} bytes, found {len(body):,}")
    return await run_in_threadpool(_unwrap, body)


def _unwrap(body: bytes) -> Source:
    content = parse_strict(body, "the package", MOST_VALUES)
    unit = content.get("executionUnit") if isinstance(content, dict) else None
    if isinstance(unit, list) and len(unit) == 1:
        unit = unit[0]
    if not isinstance(unit, dict):
        raise AlgorithmError(f"executionUnit: expected one object, found {short_text(unit)}")
    if VERSION in unit:
        unit = {"value": unit, "mediaType": CWL_JSON}
    is_cwl = unit.get("mediaType") in CWL_TYPES
    if not isinstance(unit.get("value"), (str, dict) if is_cwl else str):
        raise _wrong_type(
            "executionUnit: a value", ", ".join(map(str, unit))[:100], "the file of the algorithm"
        )
    source = parse_body(_content_of(unit), unit.get("mediaType", PYTHON))
    _check_description(content.get("processDescription"), source)
    return source


def _content_of(unit: dict[str, Any]) -> bytes:
    """Return the file of a unit: Python as text, CWL as text or JSON, or a tar as base64."""
    kind, text = unit.get("mediaType", PYTHON), unit["value"]
    if isinstance(text, dict):
        return json.dumps(text, ensure_ascii=False).encode()
    if kind in (*PYTHON_TYPES, *CWL_TYPES):
        return str(text).encode()
    if kind not in (TAR, GZIP):
        raise _wrong_type("executionUnit", str(kind), f"{PYTHON}, {CWL}, {TAR} or {GZIP}")
    if unit.get("encoding") != BASE64:
        encoding = short_text(unit.get("encoding"))
        raise AlgorithmError(f"executionUnit: expected encoding {BASE64}, found {encoding}")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise AlgorithmError(f"executionUnit: expected base64: {error}") from error


def _check_description(description: Any, source: Source) -> None:
    """Check that a package describes its algorithm: id and version are those of the header."""
    if not isinstance(description, dict | None):
        raise AlgorithmError(
            f"processDescription: expected an object, found {short_text(description)}"
        )
    process = (description or {}).get("process", description) or {}
    definition = read_definition(source)
    for name, value in (("id", definition.name), ("version", definition.version)):
        if isinstance(process, dict) and process.get(name, value) != value:
            raise AlgorithmError(
                f"processDescription: expected the {name} of the header, {value}, found "
                f"{short_text(process[name])}"
            )


def package_of(description: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return the package of an algorithm."""
    kind = type_of(content)
    unit = (
        {"value": content.decode(), "mediaType": kind}
        if kind in (PYTHON, CWL_JSON, CWL_YAML)
        else {
            "value": base64.b64encode(content).decode(),
            "encoding": BASE64,
            "mediaType": kind,
        }
    )
    return {"processDescription": {"process": description}, "executionUnit": unit}


def _wrong_type(what: str, kind: str, choice: str = f"{PYTHON}, {CWL}") -> ProblemError:
    return ProblemError(
        415,
        f"{what}: expected {choice}, found {kind[:100] or 'nothing'!r}",
        UNSUPPORTED_MEDIA_TYPE,
    )
