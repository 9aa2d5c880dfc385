"""Staging by `prepare` of XRootD, through `xrdfs`, the client of its distribution.

A server stages by a plug-in for prepare; or a redirector hands requests to the File Residency
Manager (FRM) of its data servers. FRM answers no queries: where it could not copy an object, it
leaves a file `PATH.fail`. What it copied it removes by its own rules.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from swathe.core.errors import OptionError, StagingError
from swathe.core.value_errors import short_text
from swathe.stores.staging.programs import run_program
from swathe.stores.staging.stager import ObjectPlace, StageProgress, Stager

TIMEOUT_S = 120.0
PROGRAM = "xrdfs"
_FLAGS = re.compile(rb"^Flags:\s*\d+ \(([\w|]*)\)", re.MULTILINE)
_SIZE = re.compile(rb"^Size:\s*(\d{1,19})\s*$", re.MULTILINE)
_SERVER = re.compile(r"(?<!\S)(\S+:\d{1,5}) Server", re.ASCII)
_NO_ANSWER = b"No information found"
_NOT_ITS_REQUEST = "owned by an unknown server"
"""What servers without a plug-in for prepare say of a request: of their own, and of any other."""


class XrootdPrepare(Stager):
    """Staging by an XRootD server."""

    most_paths: ClassVar[int] = 500
    confirms: ClassVar[bool] = True

    def __init__(self, root_url: str, timeout_s: float = TIMEOUT_S) -> None:
        """Set up; nothing is called yet.

        Raises:
            OptionError: If `xrdfs` is not installed.
        """
        program = shutil.which(PROGRAM)
        if program is None:
            raise OptionError(
                f"{root_url}: expected the program {PROGRAM} for staging=xrootd-prepare, found "
                "none: install xrootd-client"
            )
        parts = urlsplit(root_url)
        self._program, self._scheme = program, parts.scheme
        self._server = f"{parts.scheme}://{parts.netloc}"
        self._root = "/" + unquote(parts.path).strip("/")
        self._timeout_s = timeout_s

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are, one `stat` for each: the flag Offline is that of tape."""
        return {path: self._stat(path) for path in paths}

    def _stat(self, path: str) -> ObjectPlace:
        try:
            answer = self._call("stat", self._full(path))
        except StagingError as error:
            if "[3011]" in str(error):
                return ObjectPlace(path, "lost", reason="no such object")
            raise
        flags, size = _FLAGS.search(answer), _SIZE.search(answer)
        if flags is None or size is None:
            raise StagingError(
                f"{self._who('stat')}: expected size and flags, found {short_text(answer)}"
            )
        is_offline = b"Offline" in flags[1].split(b"|")
        return ObjectPlace(path, "nearline" if is_offline else "disk", int(size[1]))

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        """Ask for objects; XRootD has no time that they stay on disk.

        Raises:
            StagingError: If the server fails, or would do nothing.
        """
        del lifetime_s
        full = [self._full(path) for path in paths]
        if not self._has_plugin() and self._call("query", "config", "role").strip() == b"server":
            raise StagingError(
                f"{self._who('prepare')}: expected a plug-in for prepare (ofs.preplib) or a "
                "redirector, found a data server with neither, which would do nothing: if its "
                "files are brought by FRM, set the store's URL to that of the redirector"
            )
        words = self._call("prepare", "-s", *full).decode(errors="replace").split()
        if len(words) != 1:
            answer = short_text(" ".join(words))
            raise StagingError(f"{self._who('prepare')}: expected a request id, found {answer}")
        return words[0]

    def renew(self, token: str, paths: Sequence[str], lifetime_s: float) -> str:
        """Do nothing: objects stay on disk until the server needs the room."""
        del paths, lifetime_s
        return token

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        """Return the states of objects, by `stat`; the server's own answer tells failures."""
        errors, is_frm = self._errors_of(token, paths)
        states = {}
        for path, place in self.locate(paths).items():
            if is_frm and place.locality == "nearline" and self._has_mark(path):
                errors[path] = (
                    f"a copy from tape failed: {self._full(path)}.fail is on the server, and no "
                    "other copy is tried until it is removed or old (frm.xfr.fail)"
                )
            if place.locality == "disk":
                states[path] = StageProgress(path, "disk")
            elif place.locality == "lost" or path in errors:
                reason = errors.get(path) or place.reason
                states[path] = StageProgress(path, "failed", reason=reason)
            else:
                states[path] = StageProgress(path, "queued")
        return states

    def _errors_of(self, token: str, paths: Sequence[str]) -> tuple[dict[str, str], bool]:
        """Return errors of objects, if the server answers `query prepare` as most tape systems do.

        A server without a plug-in for it, or whose plug-in answers otherwise, tells none.

        Returns:
            The errors, and whether there is no plug-in.
        """
        full = {self._full(path): path for path in paths}
        text = b""
        answer: Any = None
        with suppress(StagingError, ValueError, RecursionError):
            text = self._call("query", "prepare", token, *full)
            answer = json.loads(text)
        entries = answer.get("responses") if isinstance(answer, dict) else None
        errors = {
            full[entry["path"]]: short_text(entry["error_text"])
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and entry.get("error_text") and entry.get("path") in full
        }
        return errors, _NO_ANSWER in text

    def _has_mark(self, path: str) -> bool:
        """Check whether FRM has marked an object as failed.

        The data server is asked: a redirector remembers that there was no mark.
        """
        full = self._full(path)
        with suppress(StagingError):
            answer = self._call("locate", full).decode(errors="replace")
            if (server := _SERVER.search(answer)) is not None:
                self._call("stat", f"{full}.fail", server=f"{self._scheme}://{server[1]}")
                return True
        return False

    def _has_plugin(self) -> bool:
        """Check whether a plug-in handles prepare: it takes names of requests of any form."""
        try:
            self._call("query", "prepare", "*", self._root)
        except StagingError as error:
            if _NOT_ITS_REQUEST in str(error):
                return False
        return True

    def release(self, token: str, paths: Sequence[str]) -> None:
        """Cancel objects that are to come; those on disk stay until the server needs the room."""
        states = self.poll(token, paths)
        pending = [path for path in paths if states[path].state == "queued"]
        if pending:
            self._call("prepare", "-a", token, *map(self._full, pending))

    def evict(self, paths: Sequence[str]) -> None:
        """Remove objects from disk.

        Raises:
            StagingError: If the server fails, or would do nothing.
        """
        if not self._has_plugin():
            raise StagingError(
                f"{self._who('prepare')}: expected a plug-in for prepare that evicts, found none: "
                "FRM removes objects from disk by its own rules (frm_purged)"
            )
        self._call("prepare", "-e", *map(self._full, paths))

    def _full(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    def _who(self, action: str) -> str:
        return f"{self._server} {action}"

    def _call(self, *words: str, server: str | None = None) -> bytes:
        command = [self._program, server or self._server, *words]
        return run_program(command, timeout_s=self._timeout_s)
