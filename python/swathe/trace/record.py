"""Recording of events, from this program and from Swathe."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from swathe import _swathe
from swathe.core.host import this_host
from swathe.core.outputs import check_trace, reserve_for_trace

VARIABLE = "SWATHE_TRACE"
"""Variable with the destination of events for commands and workers."""
TOKEN_VARIABLE = "SWATHE_TRACE_TOKEN"
"""Variable with the token for a collector."""

_places: list[str] = []
"""Destinations of the running recording."""

Value = str | int | float | None
"""Value of a field. `None`: the event has no such field."""


@dataclass(frozen=True)
class RecordingCounts:
    """Number of events.

    Attributes:
        recorded: events accepted by the buffer.
        dropped: lost events: the buffer was full, or they could not be written.
        written: events written.
    """

    recorded: int = 0
    dropped: int = 0
    written: int = 0


def start(place: str | os.PathLike[str], *, prog: str = "swathe", host: str | None = None) -> None:
    """Record all events of this process from now on.

    Later errors of the destination neither fail nor delay the work: events that cannot be written
    are dropped and counted.

    Args:
        place: destination: a file to append to; `FILE?rotate_mb=100&keep=5`; `memory:FILE?mb=64`,
            which keeps the newest events and appends them at the end; `stderr`; `syslog`; or
            `tcp://HOST:PORT` of a collector, with the token `$SWATHE_TRACE_TOKEN`. `{pid}` and
            `{host}` are replaced.
        prog: name of the program.
        host: name of this machine.

    Raises:
        TraceError: If events are recorded already, or `place` is invalid.
        OutputError: If it cannot be written to, or contains something else than events.
    """
    host = host or this_host()
    place = os.fspath(place).replace("{pid}", str(os.getpid())).replace("{host}", host)
    path = Path(place.removeprefix("memory:").partition("?")[0])
    if place not in ("stderr", "syslog"):
        check_trace(path, rotates="rotate_mb=" in place.rpartition("?")[2])
    _prepare()
    _swathe.trace_start(place, prog, host, os.environ.get(TOKEN_VARIABLE))
    _places[:] = [place]
    is_file = place not in ("stderr", "syslog") and not place.startswith(("tcp://", "syslog:"))
    reserve_for_trace(*([path] if is_file else []))


def for_children(place: str) -> str:
    """Return the destination for child processes.

    A destination that is written only at the end becomes one file per process and host: they may
    share the folder.
    """
    path, mark, options = place.partition("?")
    own = place.startswith("memory:") and "{pid}" not in path
    return f"{path}.{{host}}.{{pid}}{mark}{options}" if own else place


def stop() -> RecordingCounts:
    """Stop recording, and write the rest; return the number of events."""
    _places.clear()
    reserve_for_trace()
    return RecordingCounts(*_swathe.trace_stop())


def recorded_file() -> Path | None:
    """Return the file that events of this process are written to, if it is a file."""
    place = _places[0] if _places else "stderr"
    if place in ("stderr", "syslog") or place.startswith(("tcp://", "memory:", "syslog:")):
        return None
    return Path(place.partition("?")[0])


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
    """Record an event without duration.

    Args:
        name: upper-case letters, digits, `.`, `_` and `-`.
        fields: fields of the event. Keys are written in upper case.

    Raises:
        ValueError: If a name or key is invalid.
    """
    _swathe.trace_event(name, fields)


class event:  # noqa: N801, used as a function
    """Record the beginning of a block, `NAME_START`, and its end, `NAME_END`, with the result.

    `RESULT` is `ok`, or `error` with the exception as `REASON`, or `cancelled`.

    Raises:
        ValueError: If a name or key is invalid.
    """

    def __init__(self, name: str, **fields: Value) -> None:
        self._name, self._fields = name, _upper(fields)

    def add(self, **fields: Value) -> None:
        """Add fields for the end event only, for instance `bytes`."""
        self._fields = {**self._fields, **_upper(fields)}

    def __enter__(self) -> Self:
        _swathe.trace_event(self._name + "_START", self._fields)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            _swathe.trace_event(self._name + "_END", {"RESULT": "ok", **self._fields})
            return
        # The block's own exception must be raised, even if recording it fails.
        with suppress(Exception):
            fields: dict[str, Value] = {"RESULT": "cancelled"}
            if isinstance(error, Exception):
                fields = {"RESULT": "error", "REASON": f"{type(error).__name__}: {error}"}
            _swathe.trace_event(self._name + "_END", {**self._fields, **fields})


def _upper(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Return fields with their keys in upper case.

    Raises:
        ValueError: If a key occurs twice.
    """
    upper = {key.upper(): value for key, value in fields.items()}
    if len(upper) < len(fields):
        raise ValueError(f"one of {', '.join(fields)} occurs twice")
    return upper


class scope:  # noqa: N801, used as a function
    """Add ids, such as `job` and `worker`, to all events of a block, also those of native code.

    They belong to the Python context (`contextvars`). Tasks started in the block have them, and so
    has `asyncio.to_thread`; another thread has them if it runs in the context. Existing ids stay,
    or are replaced until the block ends.

    Raises:
        ValueError: If a key is invalid, or one that every event has.
    """

    def __init__(self, **ids: Value) -> None:
        self._ids, self._keep = ids, False

    @classmethod
    def where_none(cls, **ids: Value) -> Self:
        """Add only ids of kinds that are not set yet."""
        new = cls(**ids)
        new._keep = True
        return new

    def __enter__(self) -> Self:
        self._before = _swathe.trace_scope(self._ids, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        self._before.enter()


def from_environment() -> bool:
    """Start recording if the environment asks for it; return whether it does.

    Used by workers, of which there are several.

    Raises:
        TraceError: If the destination is invalid.
        OutputError: If it cannot be written to.
    """
    if place := os.environ.get(VARIABLE, "").strip():
        start(for_children(place))
        return True
    return False


@cache
def _prepare() -> None:
    # A forked child does not have the writing thread.
    os.register_at_fork(after_in_child=_swathe.trace_forget)
    atexit.register(_swathe.trace_stop)
