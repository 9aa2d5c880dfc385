"""What a WebDAV server says of a folder (PROPFIND, RFC 4918)."""

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
"""What is asked of a folder and of each that is in it."""
HEADERS = {"Depth": "1", "Content-Type": 'application/xml; charset="utf-8"'}


class WebdavEntry(NamedTuple):
    """Something in a folder: its name, and what the server says of it.

    `fault` is why it does not say whether this is a folder.
    """

    name: str
    is_folder: bool
    size: int | None
    modified: str | None
    etag: str | None = None
    fault: str | None = None


def found_in(url: str, content: bytes, is_encoded: bool = True) -> Iterator[WebdavEntry]:
    """Give what is in a folder, of the answer to `QUESTION`.

    Args:
        url: of the folder.
        content: the answer.
        is_encoded: whether names stand there as in URLs, with `%20` for a space; those of XRootD
            stand there as they are.

    Raises:
        SourceError: where the answer is none, or does not say what is in that folder.
    """
    try:
        # What declares entities could grow without bounds. A NUL is of UTF-16, where we would
        # not see it.
        if b"\0" in content:
            raise ValueError("it has null characters")
        if b"<!" in content.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
            raise ValueError("it has a document type")
        responses = ET.fromstring(content).findall("{DAV:}response")
    except (ET.ParseError, ValueError) as error:
        raise SourceError(
            f"{url}: expected what is in the folder, as XML: {error}; found {content[:60]!r}"
        ) from error
    folder = _path(url, True)
    named = [
        (_path(response.findtext("{DAV:}href", ""), is_encoded), response) for response in responses
    ]
    if all(path != folder for path, _ in named):
        # Of an answer about another one, all that is in it would be taken to have vanished.
        raise SourceError(f"{url}: expected an answer about {folder}/; found {len(named)} others")
    for path, response in named:
        below = path.removeprefix(f"{folder}/")
        found = _found(below, response)
        if path == folder and found.fault:
            raise SourceError(f"{url}: {found.fault}")
        if path != folder and below != path and "/" not in below:
            yield found


def _path(href: str, is_encoded: bool) -> str:
    if is_encoded:
        # A space that belongs to a name is none here.
        href = href.strip()
        href = unquote(urlsplit(href).path if "://" in href else href)
    # Those of XRootD begin with two slashes in its root.
    return re.sub("/+", "/", href).rstrip("/")


def _found(name: str, response: ET.Element) -> WebdavEntry:
    told: dict[str, ET.Element] = {}
    # Of all of it, where nothing else is said.
    refusals = [response.findtext("{DAV:}status", "")]
    for group in response.findall("{DAV:}propstat"):
        status = group.findtext("{DAV:}status", "")
        if status.split()[1:2] == ["200"]:
            told.update((each.tag, each) for each in group.findall("{DAV:}prop/*"))
        else:
            refusals.append(status)

    def text(name: str) -> str | None:
        element = told.get(f"{{DAV:}}{name}")
        return (element.text or "").strip() or None if element is not None else None

    kind, size, tag = told.get("{DAV:}resourcetype"), text("getcontentlength"), text("getetag")
    fault = None
    # Of what is no folder, XRootD tells no kind.
    if kind is None and size is None:
        said = "; ".join(filter(None, map(str.strip, refusals))) or "nothing"
        fault = f"expected whether it is a folder; the server says {said[:200]}"
    is_folder = kind is not None and kind.find("{DAV:}collection") is not None
    # A weak ETag is not that of every byte.
    etag = tag.strip('"') if tag and not tag.startswith("W/") else None
    bytes_ = int(size) if size and size.isdecimal() else None
    return WebdavEntry(name, is_folder, bytes_, text("getlastmodified"), etag, fault)
