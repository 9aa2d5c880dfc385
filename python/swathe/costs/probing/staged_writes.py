"""Writes whose parts are timed: of files, of WebDAV, and, as a whole, of other stores."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from swathe.core.errors import OutputError, SourceError
from swathe.core.outputs import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from swathe.costs.probing.write_stages import StagedWrites, StageTimes

PATIENCE_S = 60.0
PART = ".part"
"""End of the name that an object has until it is whole."""


class Stopwatch:
    """Seconds of one step after the other.

    Attributes:
        seconds: seconds by name of the step.
    """

    def __init__(self) -> None:
        """Start."""
        self.seconds: dict[str, float] = {}
        self._last_s = time.perf_counter()

    def restart(self) -> None:
        """Begin a step now."""
        self._last_s = time.perf_counter()

    def lap(self, name: str) -> None:
        """End a step."""
        now = time.perf_counter()
        self.seconds[name], self._last_s = now - self._last_s, now


def write_file_by_parts(path: Path, content: bytes) -> StageTimes:
    """Write a file as a run does: under another name, synced, renamed.

    Raises:
        OutputError: If it cannot be written.
    """
    part, watch = path.with_name(f"{path.name}{PART}"), Stopwatch()
    try:
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                watch.lap("open")
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                watch.lap("write")
                os.fsync(handle)
                watch.lap("fsync")
            finally:
                os.close(handle)
            watch.lap("close")
            part.replace(path)
            watch.lap("rename")
            sync_folder(path.parent)
            watch.lap("folder")
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    return watch.seconds


class WebDavWriter:
    """Writes objects by PUT and MOVE, each on a connection of its own."""

    def __init__(self, token: str | None = None) -> None:
        """Set the bearer token, if the server needs one."""
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def write(self, url: str, content: bytes) -> StageTimes:
        """Write an object at an `http(s)` URL; return the seconds of the parts.

        `write` ends when the system has taken the last byte, `answer` when the server has told that
        it has all.

        Raises:
            OutputError: If the server does not take it, or sends it elsewhere.
            SourceError: If the server does not answer.
        """
        path, watch = urlsplit(url).path, Stopwatch()
        connection = _connection(url)
        try:
            watch.seconds["connect"] = self._connect_s(connection, path)
            watch.restart()
            connection.request("PUT", f"{path}{PART}", content, self._headers)
            watch.lap("write")
            _check_answer(connection, url, "PUT")
            watch.lap("answer")
            names = {"Destination": url, "Overwrite": "T", **self._headers}
            connection.request("MOVE", f"{path}{PART}", headers=names)
            _check_answer(connection, url, "MOVE")
            watch.lap("move")
        except (OSError, http.client.HTTPException) as error:
            with suppress(OSError, http.client.HTTPException):  # it may not be there
                self.remove(f"{url}{PART}")
            if isinstance(error, OutputError):
                raise
            raise SourceError(f"{url}: no answer: {error}") from error
        finally:
            connection.close()
        return watch.seconds

    def _connect_s(self, connection: http.client.HTTPConnection, path: str) -> float:
        """Return what the first request on a connection takes more than the second.

        A server may accept a connection at once, and begin to work at the first request.
        """
        times = []
        for _ in range(2):
            began_s = time.perf_counter()
            connection.request("OPTIONS", path, headers=self._headers)
            connection.getresponse().read()
            times.append(time.perf_counter() - began_s)
        return max(times[0] - times[1], 0.0)

    def remove(self, url: str) -> None:
        """Remove an object, or a folder whose URL ends in a slash; the answer is not checked.

        Raises:
            OSError, http.client.HTTPException: If there is no answer.
        """
        with closing(_connection(url)) as connection:
            connection.request("DELETE", urlsplit(url).path, headers=self._headers)
            connection.getresponse().read(1 << 16)


def _connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=PATIENCE_S)


def _check_answer(connection: http.client.HTTPConnection, url: str, method: str) -> None:
    answer = connection.getresponse()
    while answer.read(1 << 16):
        pass
    if not 200 <= answer.status < 300:
        raise OutputError(f"{url}: expected an answer 2xx to {method}, found {answer.status}")


def at_once(write: Callable[[str, bytes], StageTimes]) -> StagedWrites:
    """Return a function that writes objects by a thread for each.

    Args:
        write: writes one object.
    """

    def write_all(names: Sequence[str], content: bytes) -> Sequence[StageTimes]:
        with ThreadPoolExecutor(len(names)) as threads:
            return list(threads.map(lambda name: write(name, content), names))

    return write_all
