"""A WebDAV server for the tests that answers as Apache's mod_dav does."""

from __future__ import annotations

import email.utils
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.scripted_servers import Handler, serving

RESPONSE = """<D:response><D:href>{href}</D:href><D:propstat><D:prop>{told}</D:prop>
<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"""
REFUSED = "<D:response><D:href>{href}</D:href><D:status>HTTP/1.1 {status}</D:status></D:response>"


@dataclass
class Dav:
    """A running server over `folder`.

    Attributes:
        server: what it says it is.
        young: whether what it has is so young that its ETags are weak, when it is asked for; in a
            listing they never are.
        refused: names of which a listing tells a status only.
        crc32: what it says is the CRC-32 of what it wrote; by default nothing.
        sent_on: where all questions about folders are sent on to.
        asked: methods, paths and tokens of what was asked so far.
        lock: who has it changes what is in the folder.
    """

    folder: Path
    url: str = ""
    server: str = "Apache"
    young: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    crc32: Callable[[bytes], int] | None = None
    sent_on: tuple[int, str] | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


Answer = tuple[int, bytes, dict[str, str]]


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    dav: Dav

    def _do(self) -> None:
        """Do what is asked: one thing at a time, so that each finds what the last has left."""
        content = self.taken()
        with self.dav.lock:
            answer = getattr(self, f"_{self.command.lower()}")(content)
            self.dav.asked.append((self.command, self.path, self.headers["Authorization"]))
        self.answer(*answer)

    do_PROPFIND = do_GET = do_PUT = do_MOVE = do_MKCOL = do_DELETE = _do

    def _propfind(self, question: bytes) -> Answer:
        assert b"resourcetype" in question
        if self.dav.sent_on:
            status, url = self.dav.sent_on
            return status, b"", {"Location": f"{url}{self.path}"}
        at = self._at(self.path)
        if not at.exists():
            return 404, b"", {}
        inside = sorted(at.iterdir()) if self.headers["Depth"] == "1" and at.is_dir() else []
        responses = "".join(self._told(each) for each in (at, *inside))
        return 207, f'<D:multistatus xmlns:D="DAV:">{responses}</D:multistatus>'.encode(), {}

    def _get(self, _: bytes) -> Answer:
        at = self._at(self.path)
        if not at.is_file():
            return 404, b"", {}
        content = at.read_bytes()
        when = email.utils.formatdate(at.stat().st_mtime, usegmt=True)
        tag = f"W/{_tag(at)}" if self.dav.young else _tag(at)
        headers = {"ETag": tag, "Last-Modified": when}
        if not (range_text := self.headers["Range"]) or not content:
            return 200, content, headers
        first, last = range_text.removeprefix("bytes=").split("-")
        end = min(int(last) + 1, len(content))
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
        return 206, content[int(first) : end], headers

    def _put(self, content: bytes) -> Answer:
        at = self._at(self.path)
        if at.is_dir() or not at.parent.is_dir():
            return 409, b"", {}
        at.write_bytes(content)
        crc32 = self.dav.crc32
        return 201, b"", {"Swathe-Crc32": f"{crc32(content):08x}"} if crc32 else {}

    def _move(self, _: bytes) -> Answer:
        at, to = self._at(self.path), self._at(self.headers["Destination"])
        if not at.exists():
            return 404, b"", {}
        if not to.parent.is_dir():
            return 409, b"", {}
        at.replace(to)
        return 201, b"", {}

    def _mkcol(self, _: bytes) -> Answer:
        at = self._at(self.path)
        if at.exists():
            return 405, b"", {}
        if not at.parent.is_dir():
            return 409, b"", {}
        at.mkdir()
        return 201, b"", {}

    def _delete(self, _: bytes) -> Answer:
        """Some servers delete folders with all that is in them, whatever the depth."""
        at = self._at(self.path)
        if not at.exists():
            return 404, b"", {}
        if at.is_dir():
            shutil.rmtree(at)
        else:
            at.unlink()
        return 204, b"", {}

    def _told(self, at: Path) -> str:
        href = quote("/" + str(at.relative_to(self.dav.folder)).removeprefix("."))
        if status := self.dav.refused.get(at.name):
            return REFUSED.format(href=href, status=status)
        if at.is_dir():
            kind = "<D:resourcetype><D:collection/></D:resourcetype>"
        else:
            when = email.utils.formatdate(at.stat().st_mtime, usegmt=True)
            kind = (
                f"<D:resourcetype/><D:getcontentlength>{at.stat().st_size}</D:getcontentlength>"
                f"<D:getlastmodified>{when}</D:getlastmodified>"
                f"<D:getetag>{escape(_tag(at))}</D:getetag>"
            )
        return RESPONSE.format(href=href, told=kind)

    def _at(self, url: str) -> Path:
        return self.dav.folder / unquote(urlsplit(url).path).strip("/")

    def version_string(self) -> str:
        return self.dav.server


def _tag(at: Path) -> str:
    stat = at.stat()
    return f'"{stat.st_size:x}-{stat.st_mtime_ns:x}"'


@contextmanager
def webdav(folder: Path) -> Iterator[Dav]:
    """Run the server over a folder until the end of the block."""
    folder.mkdir(exist_ok=True)
    dav = Dav(folder)
    with serving(type("Of", (_Handler,), {"dav": dav})) as dav.url:
        yield dav
