"""Runs made up for tests: events at times we choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swathe._swathe import ulm_line
from swathe.trace import CodedColumn, Events
from tests.support.traces import BEGAN_NS

NUMBERS = {"BYTES", "EVENTS", "DROPPED", "LONG", "HALF", "DAMAGED", "CONNECTIONS", "GAIN"}


@dataclass
class EventLog:
    """What happened, in any order.

    Attributes:
        host, pid, thread: of what is told next.
    """

    host: str = "node7"
    pid: int = 4711
    thread: int = 1
    all: list[tuple[float, int, str, dict[str, Any]]] = field(default_factory=list)

    def on(self, host: str = "node7", pid: int = 4711, thread: int = 1) -> EventLog:
        """Go on elsewhere, in the same run."""
        return EventLog(host, pid, thread, self.all)

    def point(self, at_s: float, name: str, **fields: Any) -> EventLog:
        """Tell a point."""
        values = {"HOST": self.host, "PID": self.pid, "THREAD": self.thread, **fields}
        self.all.append((at_s, len(self.all), name, values))
        return self

    def stage(
        self,
        from_s: float,
        until_s: float,
        name: str,
        ended: Mapping[str, Any] | None = None,
        /,
        **ids: Any,
    ) -> EventLog:
        """Tell a stage; of those at one time that which is told first is the outer one."""
        self.point(from_s, f"{name}_START", **ids)
        self.point(until_s, f"{name}_END", **ids, **{"RESULT": "ok", **(ended or {})})
        at_s, number, event, fields = self.all[-1]
        # Of what ends at one time the inner ends first, and all before something else begins.
        self.all[-1] = (at_s, -number, event, fields)
        return self

    def rows(self) -> list[tuple[float, int, str, dict[str, Any]]]:
        """In order of time."""
        return sorted(self.all, key=lambda each: each[:2])

    def events(self, damaged: int = 0) -> Events:
        """As they are read."""
        rows = self.rows()
        names = sorted({name for *_, fields in rows for name in fields})
        columns = {name: [fields.get(name) for *_, fields in rows] for name in names}
        return Events(
            time_ns=np.array([BEGAN_NS + round(at_s * 1e9) for at_s, *_ in rows], np.int64),
            event=coded([name for *_, name, _ in rows]),
            fields={"PROG": coded(["swathe"] * len(rows))}
            | {name: column(name, values) for name, values in columns.items()},
            damaged=(),
            damaged_count=damaged,
        )

    def write(self, path: Path) -> Path:
        """As they are recorded."""
        with path.open("w") as file:
            for at_s, _, name, fields in self.rows():
                others = {key: value for key, value in fields.items() if key != "HOST"}
                at_ns = BEGAN_NS + round(at_s * 1e9)
                file.write(ulm_line(at_ns, fields["HOST"], name, others) + "\n")
        return path


def column(name: str, values: Iterable[Any]) -> CodedColumn | np.ndarray[Any, np.dtype[np.float64]]:
    if name in NUMBERS or name.endswith(("_S", "_PERCENT", "_BYTES")):
        return np.array([np.nan if value is None else float(value) for value in values])
    return coded(values)


def coded(values: Iterable[Any]) -> CodedColumn:
    texts = [None if value is None else str(value) for value in values]
    words = {word: code for code, word in enumerate(dict.fromkeys(filter(None, texts)))}
    return CodedColumn(
        np.array([-1 if text is None else words[text] for text in texts], np.int32), tuple(words)
    )
