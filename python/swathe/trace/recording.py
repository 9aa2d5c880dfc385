"""Recording events: from this program, and all that Swathe does in it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Self

from swathe import _swathe
from swathe.environment import this_host

VARIABLE = "SWATHE_TRACE"
"""Where commands and workers record to, if it is set."""
TOKEN_VARIABLE = "SWATHE_TRACE_TOKEN"
"""What a collector is told."""

Value = str | int | float | None
"""Of a field. `None`: the event has no such field."""


@dataclass(frozen=True)
class Counts:
    """How many events there were.

    Attributes:
        recorded: found room.
        dropped: are lost: they found no room, or could not be written.
        written: were written.
    """

    recorded: int = 0
    dropped: int = 0
    written: int = 0


def start(place: str | os.PathLike[str], *, prog: str = "swathe", host: str | None = None) -> None:
    """Record all events of this process from now on.

    Nothing that happens to the place later fails or delays the work: what cannot be written is
    dropped and counted.

    Args:
        place: a file, which is appended to; `FILE?rotate_mb=100&keep=5`; `memory:FILE?mb=64`, which
            keeps the newest and writes them at the end; `stderr`; `syslog`; `tcp://HOST:PORT` of
            a collector, which is told `$SWATHE_TRACE_TOKEN`. `{pid}` and `{host}` stand for those.
        prog: name of the program.
        host: name of this machine.

    Raises:
        TraceError: events are recorded already, or `place` is none.
        OutputError: it cannot be written to.
    """
    host = host or this_host()
    place = os.fspath(place).replace("{pid}", str(os.getpid())).replace("{host}", host)
    _prepare()
    _swathe.trace_start(place, prog, host, os.environ.get(TOKEN_VARIABLE))


def stop() -> Counts:
    """Record no more, and write what is left; give how many events there were."""
    return Counts(*_swathe.trace_stop())


@contextmanager
def recording(
    place: str | os.PathLike[str], *, prog: str = "swathe", host: str | None = None
) -> Iterator[None]:
    """Record the events of a block."""
    start(place, prog=prog, host=host)
    try:
        yield
    finally:
        stop()


def point(name: str, **fields: Value) -> None:
    """Record that something happened.

    Args:
        name: of upper-case letters, digits, `.`, `_` and `-`.
        fields: what belongs to it. Keys are written in upper case.

    Raises:
        ValueError: a name or key is none.
    """
    _swathe.trace_event(name, fields)


class event:  # noqa: N801, used as a function
    """Record that a block begins, `NAME_START`, and ends, `NAME_END` with how.

    `RESULT` is `ok`, or `error` with the exception as `REASON`, or `cancelled`.

    Raises:
        ValueError: a name or key is none.
    """

    def __init__(self, name: str, **fields: Value) -> None:
        self._name, self._fields = name, fields

    def add(self, **fields: Value) -> None:
        """Give fields that only the end has, `bytes` for instance."""
        self._fields = {**self._fields, **fields}

    def __enter__(self) -> Self:
        _swathe.trace_event(self._name + "_START", self._fields)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        fields = self._fields
        if error is None:
            if not any(key.upper() == "RESULT" for key in fields):
                fields = {**fields, "RESULT": "ok"}
        elif isinstance(error, Exception):
            reason = f"{type(error).__name__}: {error}"
            fields = {**fields, "RESULT": "error", "REASON": reason}
        else:
            fields = {**fields, "RESULT": "cancelled"}
        _swathe.trace_event(self._name + "_END", fields)


class scope:  # noqa: N801, used as a function
    """Give all events of this thread ids, such as `job` and `worker`, also those of native code.

    Ids that are there already stay, or are replaced until the block ends.

    Raises:
        ValueError: a key is none, or one that events have of themselves.
    """

    def __init__(self, **ids: Value) -> None:
        self._ids = ids

    def __enter__(self) -> Self:
        self._before = _swathe.trace_scope(self._ids)
        return self

    def __exit__(self, *_: object) -> None:
        self._before.enter()


def from_environment() -> bool:
    """Start recording where the environment says so; tell whether it does.

    Raises:
        TraceError: what it says is no place.
        OutputError: it cannot be written to.
    """
    if place := os.environ.get(VARIABLE, "").strip():
        start(place)
        return True
    return False


@cache
def _prepare() -> None:
    # The thread that writes is not in a forked child.
    os.register_at_fork(after_in_child=_swathe.trace_forget)
    atexit.register(_swathe.trace_stop)
