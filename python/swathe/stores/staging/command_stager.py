"""Staging by a site's own program: `PROGRAM locate|stage|poll|release|evict`, with JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from swathe.core.errors import StagingError
from swathe.stores.staging.answers import parse_objects, place_of, progress_of, text_of
from swathe.stores.staging.programs import run_program
from swathe.stores.staging.stager import ObjectPlace, StageProgress, Stager

TIMEOUT_S = 120.0
"""Seconds that a call may take. No call waits for tape."""


class CommandStager(Stager):
    """Staging by a program. See docs/tape.md for what it reads and writes."""

    def __init__(self, program: str, timeout_s: float = TIMEOUT_S) -> None:
        """Set up; nothing is called yet."""
        self._program, self._timeout_s = program, timeout_s

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are.

        Raises:
            StagingError: If the program fails, gives a wrong answer, or leaves out an object.
        """
        names = set(paths)
        lines = self._call("locate", [{"path": path} for path in paths])
        places = [place_of(self._who("locate"), line, names) for line in lines]
        if missing := names - {place.path for place in places}:
            raise StagingError(
                f"{self._who('locate')}: expected an answer for each object, found none for "
                f"{min(missing)}"
            )
        return {place.path: place for place in places}

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        """Ask for objects; return the name of the request."""
        lines = self._call("stage", [{"path": path, "lifetime_s": lifetime_s} for path in paths])
        if len(lines) != 1:
            raise StagingError(
                f"{self._who('stage')}: expected one line with a request, found {len(lines)}"
            )
        return text_of(self._who("stage"), lines[0], "request")

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        """Return the states of objects of a request."""
        lines = self._call("poll", _of_request(token, paths))
        states = (progress_of(self._who("poll"), line, set(paths)) for line in lines)
        return {state.path: state for state in states}

    def release(self, token: str, paths: Sequence[str]) -> None:
        """Say that objects of a request are needed no more."""
        self._call("release", _of_request(token, paths))

    def evict(self, paths: Sequence[str]) -> None:
        """Remove objects from disk."""
        self._call("evict", [{"path": path} for path in paths])

    def _call(self, action: str, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        answer = run_program([self._program, action], content, timeout_s=self._timeout_s)
        return parse_objects(self._who(action), answer, len(lines))

    def _who(self, action: str) -> str:
        return f"{self._program} {action}"


def _of_request(token: str, paths: Sequence[str]) -> list[dict[str, Any]]:
    return [{"request": token}, *({"path": path} for path in paths)]
