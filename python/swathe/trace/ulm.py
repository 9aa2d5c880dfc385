"""Reading ULM lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Coded:
    """A column of words: codes into them, -1 where a line has none."""

    codes: NDArray[np.int32]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Damaged:
    """A line that is no event."""

    line: int
    reason: str


@dataclass(frozen=True)
class Events:
    """Events in order of their times, by columns."""

    time_ns: NDArray[np.int64]
    event: Coded
    fields: Mapping[str, Coded | Numbers]
    damaged: tuple[Damaged, ...]
    damaged_count: int


NUMBERS = re.compile("(.*_(S|BYTES|PERCENT|PER_S)|BYTES|CONNECTIONS)$")


def read(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Events:
    """Read events (for now: without quotes)."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    rows, damaged = [], []
    for line, text in enumerate((t for p in paths for t in Path(p).read_text().splitlines()), 1):
        try:
            found = dict(part.split("=", 1) for part in text.split(" "))
            when = datetime.strptime(found.pop("DATE"), "%Y%m%d%H%M%S.%f").replace(tzinfo=UTC)
            at = (
                round(when.timestamp()) * 10**9
                if not when.microsecond
                else (int(when.replace(microsecond=0).timestamp()) * 10**6 + when.microsecond)
                * 1000
            )
            rows.append((at, found.pop("NL.EVNT"), found))
        except (ValueError, KeyError):
            damaged.append(Damaged(line, "no event"))
    rows.sort(key=lambda row: row[0])
    names = list(dict.fromkeys(name for row in rows for name in row[2]))
    columns: dict[str, Coded | Numbers] = {}
    for name in names:
        values = [row[2].get(name) for row in rows]
        if NUMBERS.match(name):
            columns[name] = np.array([float("nan") if v is None else float(v) for v in values])
        else:
            columns[name] = coded(values)
    return Events(
        np.array([row[0] for row in rows], np.int64),
        coded([row[1] for row in rows]),
        columns,
        tuple(damaged[:100]),
        len(damaged),
    )


def coded(values: list[str | None]) -> Coded:
    """Give a column."""
    words = {
        word: code for code, word in enumerate(dict.fromkeys(v for v in values if v is not None))
    }
    return Coded(np.array([-1 if v is None else words[v] for v in values], np.int32), tuple(words))
