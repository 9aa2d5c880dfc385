"""Recording events: from this program, and all that Swathe does in it."""

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
from swathe.core.outputs import check_trace

VARIABLE = "SWATHE_TRACE"
"""Where commands and workers record to, if it is set."""
TOKEN_VARIABLE = "SWATHE_TRACE_TOKEN"
"""What a collector is told."""

_places: list[str] = []
"""Where events are recorded to."""

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
            keeps the newest and appends them at the end; `stderr`; `syslog`; `tcp://HOST:PORT` of
            a collector, which is told `$SWATHE_TRACE_TOKEN`. `{pid}` and `{host}` stand for those.
        prog: name of the program.
        host: name of this machine.

    Raises:
        TraceError: events are recorded already, or `place` is none.
        OutputError: it cannot be written to, or holds something else than events.
    """
    host = host or this_host()
    place = os.fspath(place).replace("{pid}", str(os.getpid())).replace("{host}", host)
    path = Path(place.removeprefix("memory:").partition("?")[0])
    if place not in ("stderr", "syslog"):
        check_trace(path, rotates="rotate_mb=" in place.rpartition("?")[2])
    _prepare()
    _swathe.trace_start(place, prog, host, os.environ.get(TOKEN_VARIABLE))
    _places[:] = [place]


def for_children(place: str) -> str:
    """Give where processes that this one starts record to.

    What is written only at the end has a file of each process, on whatever host: they may share
    the folder.
    """
    path, mark, options = place.partition("?")
    own = place.startswith("memory:") and "{pid}" not in path
    return f"{path}.{{host}}.{{pid}}{mark}{options}" if own else place


def stop() -> Counts:
    """Record no more, and write what is left; give how many events there were."""
    _places.clear()
    return Counts(*_swathe.trace_stop())


def recorded_file() -> Path | None:
    """Give the file that events of this process are being written to, if it is one."""
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
        self._name, self._fields = name, _upper(fields)

    def add(self, **fields: Value) -> None:
        """Give fields that only the end has, `bytes` for instance."""
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
        # What failed is what is to be raised, whatever can be told of it.
        with suppress(Exception):
            told: dict[str, Value] = {"RESULT": "cancelled"}
            if isinstance(error, Exception):
                told = {"RESULT": "error", "REASON": f"{type(error).__name__}: {error}"}
            _swathe.trace_event(self._name + "_END", {**self._fields, **told})


def _upper(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Give fields with their keys in upper case.

    Raises:
        ValueError: one is there twice.
    """
    upper = {key.upper(): value for key, value in fields.items()}
    if len(upper) < len(fields):
        raise ValueError(f"one of {', '.join(fields)} is there twice")
    return upper


class scope:  # noqa: N801, used as a function
    """Give all events of a block ids, such as `job` and `worker`, also those of native code.

    They are of the context of Python (`contextvars`): tasks that are begun in the block have them,
    and `asyncio.to_thread`; another thread has them where it is given the context. Ids that are
    there already stay, or are replaced until the block ends.

    Raises:
        ValueError: a key is none, or one that events have of themselves.
    """

    def __init__(self, **ids: Value) -> None:
        self._ids, self._keep = ids, False

    @classmethod
    def where_none(cls, **ids: Value) -> Self:
        """Give ids of kinds that are not there yet."""
        made = cls(**ids)
        made._keep = True
        return made

    def __enter__(self) -> Self:
        self._before = _swathe.trace_scope(self._ids, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        self._before.enter()


def from_environment() -> bool:
    """Start recording where the environment says so; tell whether it does.

    For workers, of which there are several.

    Raises:
        TraceError: what it says is no place.
        OutputError: it cannot be written to.
    """
    if place := os.environ.get(VARIABLE, "").strip():
        start(for_children(place))
        return True
    return False


@cache
def _prepare() -> None:
    # The thread that writes is not in a forked child.
    os.register_at_fork(after_in_child=_swathe.trace_forget)
    atexit.register(_swathe.trace_stop)
