"""Parse the answer of a WebDAV server about a folder (PROPFIND, RFC 4918)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from swathe.core.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = b"""<?xml version="1.0" encoding="utf-8"?>
<propfind xmlns="DAV:"><prop>
<resourcetype/><getcontentlength/><getlastmodified/><getetag/>
</prop></propfind>
"""
"""Properties requested for a folder and for each entry in it."""
HEADERS = {"Depth": "1", "Content-Type": 'application/xml; charset="utf-8"'}


class WebdavEntry(NamedTuple):
    """An entry of a folder: its name and the server's properties of it.

    `fault` is the reason if it is not known whether the entry is a folder.
    """

    name: str
    is_folder: bool
    size: int | None
    modified: str | None
    etag: str | None = None
    fault: str | None = None


def read_folder(url: str, content: bytes, is_encoded: bool = True) -> Iterator[WebdavEntry]:
    """Yield the entries of a folder from the answer to `QUESTION`.

    Args:
        url: URL of the folder.
        content: body of the answer.
        is_encoded: whether names are encoded as in URLs, with `%20` for a space. XRootD does not
            encode names.

    Raises:
        SourceError: if the answer is invalid, or does not describe that folder.
    """
    try:
        # Entity declarations could expand without bounds. A NUL means UTF-16, in which they would
        # not be found.
        if b"\0" in content:
            raise ValueError("it has null characters")
        if b"<!" in content.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
            raise ValueError("it has a document type")
        responses = ET.fromstring(content).findall("{DAV:}response")
    except (ET.ParseError, ValueError) as error:
        raise SourceError(
            f"{url}: expected the entries of the folder, as XML: {error}; found {content[:60]!r}"
        ) from error
    folder = _path(url, True)
    by_path = [
        (_path(response.findtext("{DAV:}href", ""), is_encoded), response) for response in responses
    ]
    if all(path != folder for path, _ in by_path):
        # An answer about another folder would make all objects of this one look deleted.
        raise SourceError(f"{url}: expected an answer about {folder}/; found {len(by_path)} others")
    for path, response in by_path:
        below = path.removeprefix(f"{folder}/")
        entry = _entry(below, response)
        if path == folder and entry.fault:
            raise SourceError(f"{url}: {entry.fault}")
        if path != folder and below != path and "/" not in below:
            yield entry


def _path(href: str, is_encoded: bool) -> str:
    if is_encoded:
        # A space that belongs to a name must stay.
        href = href.strip()
        href = unquote(urlsplit(href).path if "://" in href else href)
    # In the root, names of XRootD begin with two slashes.
    return re.sub("/+", "/", href).rstrip("/")


def _entry(name: str, response: ET.Element) -> WebdavEntry:
    properties: dict[str, ET.Element] = {}
    # Properties of the whole response, if it is not divided by status.
    refusals = [response.findtext("{DAV:}status", "")]
    for group in response.findall("{DAV:}propstat"):
        status = group.findtext("{DAV:}status", "")
        if status.split()[1:2] == ["200"]:
            properties.update((each.tag, each) for each in group.findall("{DAV:}prop/*"))
        else:
            refusals.append(status)

    def text(name: str) -> str | None:
        element = properties.get(f"{{DAV:}}{name}")
        return (element.text or "").strip() or None if element is not None else None

    kind, size, tag = (
        properties.get("{DAV:}resourcetype"),
        text("getcontentlength"),
        text("getetag"),
    )
    fault = None
    # XRootD gives no resource type for entries that are not folders.
    if kind is None and size is None:
        statuses = "; ".join(filter(None, map(str.strip, refusals))) or "nothing"
        fault = f"cannot tell whether it is a folder: expected its type, found {statuses[:200]}"
    is_folder = kind is not None and kind.find("{DAV:}collection") is not None
    # A weak ETag does not identify every byte.
    etag = tag.strip('"') if tag and not tag.startswith("W/") else None
    bytes_ = int(size) if size and size.isdecimal() else None
    return WebdavEntry(name, is_folder, bytes_, text("getlastmodified"), etag, fault)
