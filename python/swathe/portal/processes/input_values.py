"""Values of inputs: as they are, qualified (`value`, `mediaType`), or by reference (`href`)."""

from __future__ import annotations

import base64
import binascii
import io
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi.concurrency import run_in_threadpool

from swathe.core.errors import JobError
from swathe.core.value_errors import short_text
from swathe.files.targets.target_list import READERS
from swathe.portal.http.long_responses import while_there
from swathe.portal.uploads import columns_of
from swathe.portal.whole_file import open_table

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.context import Portal

QUALIFIERS = frozenset({"value", "mediaType", "encoding", "schema"})
TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,99}"
MEDIA_TYPE = re.compile(f"{TOKEN}/{TOKEN}")
ENCODINGS = ("", "base64", "utf-8", "UTF-8")
TABLES = {
    "text/csv": ".csv",
    "text/plain": ".txt",
    "application/x-votable+xml": ".vot",
    "application/vnd.apache.parquet": ".parquet",
}
"""Suffixes of the media types of tables."""


class PlainValue(NamedTuple):
    """The value of an input, with its media type and encoding if it was qualified."""

    value: Any
    media_type: str = ""
    encoding: str = ""


def is_reference(value: Any) -> bool:
    """Return whether a value is a link."""
    return isinstance(value, dict) and "href" in value


def href_of(portal: Portal, name: str, value: dict[str, Any]) -> str:
    """Return the target of a link: `STORE:path`, or a URL of an allowed server.

    Raises:
        JobError: If it is not a text.
        AccessError: If users may not read it.
    """
    href = value["href"]
    if not isinstance(href, str):
        raise JobError(f"input {name}: expected href with a text, found {short_text(href)}")
    portal.sources.check(href)
    return href


def plain_value(portal: Portal, name: str, value: Any) -> PlainValue:
    """Return the value of an input that is no reference.

    Raises:
        JobError: If it is one, or its qualifiers are invalid.
        AccessError: If it is one that users may not read.
    """
    if is_reference(value):
        href_of(portal, name, value)
        raise JobError(f"input {name}: expected a value, found a reference")
    if not isinstance(value, dict) or "value" not in value or value.keys() - QUALIFIERS:
        return PlainValue(value)
    kind, encoding = value.get("mediaType", ""), value.get("encoding", "")
    if not isinstance(kind, str) or (kind and not MEDIA_TYPE.fullmatch(kind)):
        raise JobError(f"input {name}: expected a media type, found {short_text(kind)}")
    if encoding not in ENCODINGS:
        raise JobError(
            f"input {name}: expected encoding {' or '.join(ENCODINGS[1:])}, "
            f"found {short_text(encoding)}"
        )
    return PlainValue(value["value"], kind, encoding)


async def read_targets(request: Request, portal: Portal, value: Any) -> Any:
    """Return the targets that an input gives as a qualified value or by reference.

    Raises:
        JobError: If the value is no table.
        AccessError: If users may not read the reference.
        LimitError: If the table is too large.
        SwatheError: If the table cannot be read.
    """
    if is_reference(value):
        href = await run_in_threadpool(href_of, portal, "targets", value)
        kind = value.get("type")
        suffix = TABLES.get(kind, "") if isinstance(kind, str) else ""
        name = href.rpartition("/")[2].partition("?")[0]
        if PurePosixPath(name).suffix.lower() not in READERS:
            name += suffix
        file = await run_in_threadpool(open_table, href, round(portal.config.limits.body_mb * 1e6))
        with file:
            return await while_there(request, portal.uploads.table(file, name))
    plain = plain_value(portal, "targets", value)
    if plain.media_type in ("", "application/json"):
        return await run_in_threadpool(columns_of, plain.value, portal.jobs.limits.rows_per_job)
    if plain.media_type not in TABLES or not isinstance(plain.value, str):
        raise JobError(
            f"input targets: expected a text of media type {', '.join(TABLES)}, or JSON, found "
            f"{short_text(plain.media_type)}"
        )
    content = plain.value.encode()
    if plain.encoding == "base64":
        try:
            content = base64.b64decode(content, validate=True)
        except (ValueError, binascii.Error) as error:
            raise JobError(f"input targets: expected base64: {error}") from error
    name = f"targets{TABLES[plain.media_type]}"
    return await while_there(request, portal.uploads.table(io.BytesIO(content), name))
