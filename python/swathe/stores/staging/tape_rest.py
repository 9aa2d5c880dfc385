"""Staging by the WLCG Tape REST API, version 1.

Servers differ from its text in ways that are tolerated here: paths come back normalised or without
a prefix, a file has `onDisk` or `state`, and a state COMPLETED may be of a file on tape only.
Times of answers (seconds or milliseconds) are not used.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from swathe.core.errors import NotFoundError, StagingError
from swathe.core.value_errors import short_text
from swathe.stores.staging.answers import text_of
from swathe.stores.staging.http_service import HttpService, host_of
from swathe.stores.staging.stager import (
    FileState,
    Locality,
    ObjectPlace,
    StageProgress,
    Stager,
)

WELL_KNOWN_PATH = "/.well-known/wlcg-tape-rest-api"
LOCALITIES: dict[str, Locality] = {
    "DISK": "disk",
    "DISK_AND_TAPE": "disk",
    "NONE": "disk",  # a file of 0 bytes
    "TAPE": "nearline",
    "LOST": "lost",
    "UNAVAILABLE": "unavailable",
}
STATES: dict[str, FileState] = {
    "SUBMITTED": "queued",
    "STARTED": "active",
    "COMPLETED": "disk",
    "SKIPPED": "disk",
    "FAILED": "failed",
    "CANCELLED": "failed",
}


class TapeRest(Stager):
    """Staging by the Tape REST API of the server of a store."""

    most_paths: ClassVar[int] = 200

    def __init__(self, root_url: str, endpoint: str | None, service: HttpService) -> None:
        """Set up; nothing is sent yet.

        Args:
            root_url: URL of the root of the store, as WebDAV has it: http or https.
            endpoint: URL of version 1 of the API; by default as the server says.
            service: connection to the server.
        """
        parts = urlsplit(root_url)
        self._server = f"{parts.scheme}://{parts.netloc}"
        self._root = unquote(parts.path).rstrip("/")
        self._endpoint, self._service = endpoint, service

    def close(self) -> None:
        """Close connections."""
        self._service.close()

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are."""
        places: dict[str, ObjectPlace] = {}
        left = list(paths)
        while left:
            part = left[: self.most_paths]
            answers = self._archive_info(part)
            if not answers:
                raise StagingError(
                    f"{self._url()}/archiveinfo: expected an answer for each object, found none "
                    f"for {part[0]}"
                )
            # Of too many paths servers answer some, without an error.
            places |= answers
            left = [path for path in left if path not in answers]
        return places

    def _archive_info(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        url = f"{self._url()}/archiveinfo"
        answer = self._service.request("POST", url, {"paths": [self._full(path) for path in paths]})
        places = {}
        for path, entry in self._entries(url, answer, paths):
            if error := entry.get("error"):
                places[path] = ObjectPlace(path, "lost", reason=short_text(error))
            elif (locality := LOCALITIES.get(str(entry.get("locality")))) is not None:
                places[path] = ObjectPlace(path, locality)
            else:
                raise StagingError(
                    f"{url}: expected a locality of {', '.join(LOCALITIES)}, found "
                    f"{short_text(entry)}"
                )
        return places

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        """Ask for objects; return the name of the request."""
        url = f"{self._url()}/stage"
        life = f"PT{max(1, round(lifetime_s))}S"
        files = [{"path": self._full(path), "diskLifetime": life} for path in paths]
        answer = self._service.request("POST", url, {"files": files})
        if not isinstance(answer, dict):
            raise StagingError(f"{url}: expected an object, found {short_text(answer)}")
        return text_of(url, answer, "requestId")

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        """Return the states of objects of a request; all have failed if it is forgotten."""
        url = f"{self._url()}/stage/{quote(token, safe='')}"
        try:
            answer = self._service.request("GET", url)
        except NotFoundError as error:
            reason = f"the service has forgotten the request: {error}"
            return {path: StageProgress(path, "failed", reason=reason) for path in paths}
        if not isinstance(answer, dict):
            raise StagingError(f"{url}: expected an object, found {short_text(answer)}")
        states = {}
        for path, entry in self._entries(url, answer.get("files"), paths):
            states[path] = _progress_of(url, path, entry)
        return states

    def release(self, token: str, paths: Sequence[str]) -> None:
        """Cancel what is to come, and release what came."""
        states = self.poll(token, paths)
        pending = [path for path in paths if path in states and _is_pending(states[path])]
        name = quote(token, safe="")
        if pending:
            full = [self._full(path) for path in pending]
            self._service.request("POST", f"{self._url()}/stage/{name}/cancel", {"paths": full})
        rest = [
            self._full(path) for path in paths if path in states and states[path].state == "disk"
        ]
        if rest:
            self._service.request("POST", f"{self._url()}/release/{name}", {"paths": rest})

    def evict(self, paths: Sequence[str]) -> None:
        """Fail: the API has no way to remove an object from disk.

        Raises:
            StagingError: Always.
        """
        raise StagingError(
            f"{self._server}: expected a service that evicts, found the Tape REST API: "
            f"release {len(paths)} objects instead"
        )

    def _url(self) -> str:
        if self._endpoint is None:
            self._endpoint = self._discover()
        return self._endpoint.rstrip("/")

    def _discover(self) -> str:
        url = f"{self._server}{WELL_KNOWN_PATH}"
        try:
            answer = self._service.request("GET", url)
        except NotFoundError as error:
            # Not that of a request, which may be forgotten.
            raise StagingError(str(error)) from error
        endpoints = answer.get("endpoints") if isinstance(answer, dict) else None
        for entry in endpoints if isinstance(endpoints, list) else ():
            if isinstance(entry, dict) and entry.get("version") == "v1":
                endpoint = text_of(url, entry, "uri")
                if endpoint.startswith(("https://", f"{self._server}/")):
                    return self._on_host(url, endpoint)
        raise StagingError(
            f"{url}: expected an endpoint of version v1 over https, found {short_text(answer)}"
        )

    def _on_host(self, url: str, endpoint: str) -> str:
        """Return an endpoint on the host of the store: the token must go to no other."""
        host = host_of(self._server)
        other = host_of(endpoint)
        if other != host:
            raise StagingError(
                f"{url}: expected an endpoint on the host of the store, {host}, found "
                f"{short_text(other)}: if it may have the token, set the option staging_endpoint"
            )
        return endpoint

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _entries(
        self, url: str, entries: Any, paths: Sequence[str]
    ) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """Yield entries of an answer with the objects they are of; those of no object are left out.

        A request may have objects that this call does not ask about.
        """
        if not isinstance(entries, list):
            raise StagingError(f"{url}: expected a list of files, found {short_text(entries)}")
        by_full = {_normal(self._full(path)): path for path in paths}
        by_path = {_normal(path): path for path in paths}
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
                raise StagingError(f"{url}: expected files with a path, found {short_text(entry)}")
            name = _normal(entry["path"])
            path = by_full.get(name) or by_path.get(name) or self._without_prefix(name, by_full)
            if path is not None:
                yield path, entry

    @staticmethod
    def _without_prefix(name: str, by_full: Mapping[str, str]) -> str | None:
        """Return the one object whose full path ends in a path; `None` if there are more."""
        ends = [path for full, path in by_full.items() if full.endswith(name)]
        return ends[0] if len(ends) == 1 else None


def _normal(path: str) -> str:
    return posixpath.normpath(f"/{path.lstrip('/')}")


def _progress_of(url: str, path: str, entry: Mapping[str, Any]) -> StageProgress:
    """Return the state of a file, in either of the two forms."""
    reason = short_text(entry["error"]) if entry.get("error") else None
    if "state" not in entry and isinstance(entry.get("onDisk"), bool):
        if reason is not None:
            return StageProgress(path, "failed", reason=reason)
        return StageProgress(path, "disk" if entry["onDisk"] else "queued")
    state = STATES.get(str(entry.get("state")))
    if state is None:
        raise StagingError(
            f"{url}: expected a state of {', '.join(STATES)}, found {short_text(entry)}"
        )
    if entry["state"] == "CANCELLED" and reason is None:
        reason = "the request was cancelled"
    return StageProgress(path, state, reason=reason)


def _is_pending(progress: StageProgress) -> bool:
    return progress.state in ("queued", "active")
