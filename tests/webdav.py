"""A WebDAV server for the tests that answers as Apache's mod_dav does."""

from __future__ import annotations

import email.utils
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

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
        sent_on: where all questions about folders are sent on to.
        asked: methods, paths and tokens of what was asked so far.
    """

    folder: Path
    url: str = ""
    server: str = "Apache"
    young: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    sent_on: tuple[int, str] | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    dav: Dav

    def do_PROPFIND(self) -> None:
        question, at = self._taken(), self._at(self.path)
        assert b"resourcetype" in question
        if self.dav.sent_on:
            status, url = self.dav.sent_on
            self._answer(status, headers={"Location": f"{url}{self.path}"})
        elif not at.exists():
            self._answer(404)
        else:
            inside = sorted(at.iterdir()) if self.headers["Depth"] == "1" else []
            told = "".join(self._told(each) for each in (at, *inside))
            answer = f'<D:multistatus xmlns:D="DAV:">{told}</D:multistatus>'
            self._answer(207, answer.encode())

    def do_GET(self) -> None:
        at = self._at(self.path)
        if not at.is_file():
            self._answer(404)
            return
        content = at.read_bytes()
        when = email.utils.formatdate(at.stat().st_mtime, usegmt=True)
        tag = f"W/{_tag(at)}" if self.dav.young else _tag(at)
        status, headers = 200, {"ETag": tag, "Last-Modified": when}
        if asked := self.headers["Range"]:
            first, last = asked.removeprefix("bytes=").split("-")
            end = min(int(last) + 1, len(content))
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
            status, content = 206, content[int(first) : end]
        self._answer(status, content, headers)

    def do_PUT(self) -> None:
        content, at = self._taken(), self._at(self.path)
        if at.parent.is_dir():
            at.write_bytes(content)
        self._answer(201 if at.exists() else 409)

    def do_MOVE(self) -> None:
        self._at(self.path).replace(self._at(self.headers["Destination"]))
        self._answer(201)

    def do_MKCOL(self) -> None:
        try:
            self._at(self.path).mkdir()
            self._answer(201)
        except FileExistsError:
            self._answer(405)
        except FileNotFoundError:
            self._answer(409)

    def do_DELETE(self) -> None:
        """Some servers delete folders with all that is in them, whatever the depth."""
        at = self._at(self.path)
        status = 204 if at.exists() else 404
        if at.is_dir():
            shutil.rmtree(at)
        else:
            at.unlink(missing_ok=True)
        self._answer(status)

    def _told(self, at: Path) -> str:
        href = quote("/" + str(at.relative_to(self.dav.folder)).removeprefix("."))
        if status := self.dav.refused.get(at.name):
            return REFUSED.format(href=href, status=status)
        if at.is_dir():
            told = "<D:resourcetype><D:collection/></D:resourcetype>"
        else:
            when = email.utils.formatdate(at.stat().st_mtime, usegmt=True)
            told = (
                f"<D:resourcetype/><D:getcontentlength>{at.stat().st_size}</D:getcontentlength>"
                f"<D:getlastmodified>{when}</D:getlastmodified>"
                f"<D:getetag>{escape(_tag(at))}</D:getetag>"
            )
        return RESPONSE.format(href=href, told=told)

    def _at(self, url: str) -> Path:
        return self.dav.folder / unquote(urlsplit(url).path).strip("/")

    def _taken(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(
        self, status: int, content: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.dav.asked.append((self.command, self.path, self.headers["Authorization"]))
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        return self.dav.server

    def log_message(self, *args: object) -> None:
        pass


def _tag(at: Path) -> str:
    stat = at.stat()
    return f'"{stat.st_size:x}-{stat.st_mtime_ns:x}"'


@contextmanager
def webdav(folder: Path) -> Iterator[Dav]:
    """Run the server over a folder until the end of the block."""
    folder.mkdir(exist_ok=True)
    dav = Dav(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (_Handler,), {"dav": dav}))
    dav.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield dav
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
