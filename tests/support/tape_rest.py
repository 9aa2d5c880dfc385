"""A stub of the WLCG Tape REST API, version 1, written from its text; with faults of real ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_servers import Handler, serving

TOKEN = "t0ken-hush"


@dataclass
class TapeSite:
    """State of a site, and how it answers.

    Attributes:
        locality: locality by full path.
        polls: number of polls after which an object has come.
        form: `state` or `onDisk`: how a request tells of its files.
        prefix: part cut from the beginning of paths in answers.
        most: number of paths that archiveinfo answers; the others are left out.
        busy: statuses of the next answers, in place of the right ones.
        lies: objects that are COMPLETED and stay on tape.
        id_form: form of names of requests; a blank is to be quoted in URLs.
        calls: number of requests by method and first part of the path.
    """

    locality: dict[str, str]
    polls: int = 1
    form: str = "state"
    prefix: str = ""
    most: int = 1000
    busy: list[int] = field(default_factory=list)
    lies: set[str] = field(default_factory=set)
    id_form: str = "r {}"
    calls: Counter[str] = field(default_factory=Counter)
    requests: dict[str, dict[str, int]] = field(default_factory=dict)
    lifetimes: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    url: str = ""

    def shown(self, path: str) -> str:
        """A path as answers have it."""
        return path.removeprefix(self.prefix).replace("//", "/")

    def entry(self, request: str, path: str) -> dict[str, Any]:
        """A file of a request, as it is after one more poll."""
        if path not in self.locality:
            error = {"path": self.shown(path), "error": "no such file"}
            return error | ({"state": "FAILED"} if self.form == "state" else {"onDisk": False})
        polls = self.requests[request][path] = self.requests[request][path] + 1
        is_here = polls > self.polls or self.locality[path] != "TAPE"
        if is_here and path not in self.lies and self.locality[path] == "TAPE":
            self.locality[path] = "DISK_AND_TAPE"
        if self.form == "onDisk":
            return {"path": self.shown(path), "onDisk": is_here}
        state = "COMPLETED" if is_here else "STARTED" if polls > 1 else "SUBMITTED"
        # Milliseconds, as dCache has them.
        return {"path": self.shown(path), "state": state, "startedAt": 1764000000000}


class _Door(Handler):
    """The HTTP door of a site."""

    site: TapeSite

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        self._answer("POST", json.loads(self.taken()))

    def _answer(self, method: str, content: Any) -> None:
        site = self.site
        # gfal2 has a slash at the end.
        parts = self.path.removeprefix("/api/v1/").rstrip("/").split("/")
        site.calls[f"{method} {parts[0]}"] += 1
        if site.busy:
            self.answer(site.busy.pop(0), headers={"Retry-After": "0"})
        elif self.path == "/.well-known/wlcg-tape-rest-api":
            ends = [
                {"uri": f"{site.url}/api/v{number}", "version": f"v{number}"} for number in (0, 1)
            ]
            self._json(200, {"sitename": "stub", "endpoints": ends})
        elif self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._json(401, {"status": "401", "title": "no token"})
        else:
            self._json(*self._act(method, parts, content))

    def _act(self, method: str, parts: list[str], content: Any) -> tuple[int, Any]:
        site = self.site
        known = {request.replace(" ", "%20") for request in site.requests}
        match method, parts:
            case "POST", ["archiveinfo"]:
                return 200, [
                    {"path": site.shown(path), "locality": site.locality[path]}
                    if path in site.locality
                    else {"path": site.shown(path), "error": "no such file"}
                    for path in content["paths"][: site.most]
                ]
            case "POST", ["stage"]:
                request = site.id_form.format(len(site.requests))
                site.requests[request] = {file["path"]: 0 for file in content["files"]}
                # Optional, as the text has it.
                site.lifetimes += {file.get("diskLifetime", "") for file in content["files"]}
                site.sizes.append(len(content["files"]))
                return 201, {"requestId": request}
            case "GET", ["stage", request] if request in known:
                request = request.replace("%20", " ")
                files = [site.entry(request, path) for path in site.requests[request]]
                # Order is not kept.
                return 200, {"id": request, "createdAt": 1764000000000, "files": files[::-1]}
            case "POST", ["stage", request, "cancel"] | ["release", request] if request in known:
                polls = site.requests[request.replace("%20", " ")]
                if not set(content["paths"]) <= set(polls):
                    return 400, {"status": "400", "title": "unknown path"}
                for path in content["paths"]:
                    del polls[path]
                return 200, {}
        return 404, {"status": "404", "title": "not found", "detail": "no such request"}

    def _json(self, status: int, value: Any) -> None:
        self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


@contextmanager
def tape_site(locality: dict[str, str]) -> Iterator[TapeSite]:
    """Run the door of a site until the end of the block."""
    site = TapeSite(dict(locality))
    with serving(type("Door", (_Door,), {"site": site})) as url:
        site.url = url
        yield site
