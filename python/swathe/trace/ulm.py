"""Reader of events: lines of ULM as columns.

`DATE` becomes the times, `NL.EVNT` the names, every other key a column. Ids (`JOB`, `TARGET`, `PID`
...) are always words. Any other key is a column of numbers if all its values are numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from swathe import _swathe
from swathe.core.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
"""A column of numbers, NaN if an event has none."""


@dataclass(frozen=True)
class CodedColumn:
    """A column of words.

    Attributes:
        codes: index of each event's word; -1 if it has none.
        words: distinct words.
    """

    codes: NDArray[np.int32]
    words: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<CodedColumn of {len(self.codes):,}, {len(self.words):,} words>"


@dataclass(frozen=True)
class DamagedLine:
    """A line that is not an event.

    Attributes:
        line: line number in its file, from 1.
        reason: what is wrong, with the file name if several were read.
    """

    line: int
    reason: str


@dataclass(frozen=True)
class Events:
    """Events sorted by time; those of equal time in line order.

    Attributes:
        time_ns: nanoseconds since 1970.
        event: names.
        fields: all other columns by key.
        damaged: the first 100 lines that were left out.
        damaged_count: number of lines left out.
    """

    time_ns: NDArray[np.int64]
    event: CodedColumn
    fields: Mapping[str, CodedColumn | Numbers]
    damaged: tuple[DamagedLine, ...]
    damaged_count: int

    def __repr__(self) -> str:
        return (
            f"<Events: {len(self.time_ns):,}, fields {', '.join(self.fields)}, "
            f"{self.damaged_count:,} damaged lines>"
        )


def read(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Events:
    """Read events from a file, or from several such as rotated ones.

    Damaged lines are left out and counted.

    Raises:
        NotFoundError: If there is no such file.
        FormatError: If it is compressed, or a folder, or a pipe.
    """
    import numpy as np

    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    names = [os.fspath(path) for path in paths]
    for name in names:
        if not os.path.exists(name):
            raise NotFoundError(f"{name}: no such file")
    times, (codes, words), columns, damaged_lines, damaged_count = _swathe.read_ulm(names)

    def column(values: _swathe.Column, words: tuple[str, ...] | None) -> CodedColumn | Numbers:
        if words is None:
            return np.frombuffer(memoryview(values), np.float64)
        return CodedColumn(np.frombuffer(memoryview(values), np.int32), words)

    return Events(
        np.frombuffer(memoryview(times), np.int64),
        CodedColumn(np.frombuffer(memoryview(codes), np.int32), words or ()),
        {key: column(*values) for key, values in columns},
        tuple(DamagedLine(line, reason) for line, reason in damaged_lines),
        damaged_count,
    )


def read_trace(paths: Iterable[str | os.PathLike[str]]) -> Events:
    """Read events from files that must be a trace.

    Raises:
        NotFoundError: If there is no such file.
        FormatError: If there are lines and none is an event; or as `read`.
    """
    names = [os.fspath(path) for path in paths]
    events = read(names)
    if not len(events.time_ns) and events.damaged_count:
        raise FormatError(
            f"{', '.join(names)}: expected a trace, lines that begin with DATE=; found no event in "
            f"{events.damaged_count:,} lines"
        )
    return events
