"""An S3 archive: moto, and before it a proxy that adds what moto lacks of restoring."""

from __future__ import annotations

import http.client
import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.support.scripted_servers import Handler, serving
from tests.support.servers import s3_server

ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Glacier:
    """An archive.

    Attributes:
        url: its endpoint.
        upstream: that of moto.
        restores: what was asked for: key, days and tier.
        refusals: status and code of the next answers to restores.
        heads: number of HEAD requests.
    """

    url: str = ""
    upstream: str = ""
    restores: list[tuple[str, int, str]] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    heads: int = 0

    def refusal(self, path: str, body: bytes) -> tuple[int, str] | None:
        """Why a restore is refused, if it is."""
        days, tier = (
            match[1] if (match := re.search(f"<{name}>(.*?)</{name}>".encode(), body)) else b""
            for name in ("Days", "Tier")
        )
        self.restores.append((path.split("/", 2)[2], int(days), tier.decode()))
        if tier == b"Expedited":
            return 503, "GlacierExpeditedRetrievalNotAvailable"
        return self.refusals.pop(0) if self.refusals else None


class _Proxy(Handler):
    """Passes requests on, except those that it answers itself."""

    glacier: Glacier
    upstream: str

    def _pass(self) -> None:
        body = self.taken()
        path, _, query = self.path.partition("?")
        self.glacier.heads += self.command == "HEAD"
        if self.command == "POST" and query == "restore":
            refusal = self.glacier.refusal(path, body)
            if refusal is not None:
                self.answer(refusal[0], ERROR.format(code=refusal[1]).encode())
                return
        with closing(http.client.HTTPConnection(self.upstream, timeout=60)) as server:
            server.request(self.command, self.path, body, dict(self.headers))
            answer = server.getresponse()
            content = answer.read()
            headers = {
                name: value for name, value in answer.getheaders() if name.lower() not in HOP
            }
            if self.command == "HEAD":
                headers["Content-Length"] = answer.headers["Content-Length"] or "0"
            self.answer(answer.status, content, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _pass


@contextmanager
def glacier(monkeypatch: Any) -> Iterator[Glacier]:
    """Run an archive whose objects come at the third look, with credentials of the environment."""
    archive = Glacier()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with s3_server() as upstream:
        archive.upstream = upstream
        transition = {"progression": "manual", "times": 2}
        change = {"model_name": "s3::keyrestore", "transition": transition}
        request = urllib.request.Request(
            f"{upstream}/moto-api/state-manager/set-transition",
            json.dumps(change).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()
        names = {"glacier": archive, "upstream": urlsplit(upstream).netloc}
        with serving(type("Proxy", (_Proxy,), names)) as archive.url:
            yield archive
