"""What a WebDAV server says of a folder (PROPFIND, RFC 4918)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from swathe.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = b"""<?xml version="1.0" encoding="utf-8"?>
<propfind xmlns="DAV:"><prop>
<resourcetype/><getcontentlength/><getlastmodified/><getetag/>
</prop></propfind>
"""
"""What is asked of a folder and of each that is in it."""
HEADERS = {"Depth": "1", "Content-Type": 'application/xml; charset="utf-8"'}

Found = tuple[str, bool, int | None, str | None, str | None]
"""Name, whether it is a folder, bytes, time, ETag."""


def found_in(url: str, content: bytes) -> Iterator[Found]:
    """Give what is in a folder, of the answer to `QUESTION`.

    Raises:
        SourceError: where the answer is none, or about another folder.
    """
    try:
        # What declares entities could grow without bounds.
        if b"<!" in content.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
            raise ValueError("it has a document type")
        responses = ET.fromstring(content).findall("{DAV:}response")
    except (ET.ParseError, ValueError) as error:
        raise SourceError(
            f"{url}: expected what is in the folder, as XML: {error}; found {content[:60]!r}"
        ) from error
    folder = _path(url)
    named = [(_path(response.findtext("{DAV:}href", "")), response) for response in responses]
    if all(path != folder for path, _ in named):
        # Of an answer about another one, all that is in it would be taken to have vanished.
        raise SourceError(f"{url}: expected an answer about {folder}/; found {len(named)} others")
    for path, response in named:
        below = path.removeprefix(f"{folder}/")
        if path != folder and below != path and "/" not in below:
            yield (below, *_properties(response))


def _path(href: str) -> str:
    # Those of XRootD are not encoded, and begin with two slashes in its root.
    path = urlsplit(href).path if "://" in href else href
    return re.sub("/+", "/", unquote(path.strip())).rstrip("/")


def _properties(response: ET.Element) -> tuple[bool, int | None, str | None, str | None]:
    told: dict[str, ET.Element] = {}
    for group in response.findall("{DAV:}propstat"):
        status = group.findtext("{DAV:}status", "").split()
        if len(status) > 1 and status[1] == "200":
            told.update((each.tag, each) for each in group.findall("{DAV:}prop/*"))

    def text(name: str) -> str | None:
        element = told.get(f"{{DAV:}}{name}")
        return (element.text or "").strip() or None if element is not None else None

    kind, size, tag = told.get("{DAV:}resourcetype"), text("getcontentlength"), text("getetag")
    is_folder = kind is not None and kind.find("{DAV:}collection") is not None
    # A weak ETag is not that of every byte.
    etag = tag.strip('"') if tag and not tag.startswith("W/") else None
    bytes_ = int(size) if size and size.isdecimal() else None
    return is_folder, bytes_, text("getlastmodified"), etag
