"""Traces as they were recorded, and as a job of cuts leaves them, made up."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from swathe import trace
from swathe._swathe import ulm_line
from swathe.trace import CodedColumn, Events

BEGAN_NS = 1_795_224_638_000_000_000
"""Of runs that are made up: 2026-11-21 01:30:38 UTC."""


def line(at_us: int, event: str, host: str = "node7", **fields: Any) -> str:
    """One line, so many microseconds after BEGAN_NS."""
    return ulm_line(BEGAN_NS + 1000 * at_us, host, event, fields)


def job(
    objects: int, targets: int, *, threads: int = 4, seed: int = 1, hosts: int = 1
) -> list[str]:
    """A job: some targets of each object, a stall of the store in its middle, some that fail."""
    draw = random.Random(seed)
    lines: list[tuple[int, str]] = []
    free: list[tuple[float, int]] = [(n * 137, n) for n in range(threads)]
    stall = objects // 2

    def put(at: float, event: str, thread: int, **fields: object) -> None:
        host = f"node{thread % hosts + 1}"
        values = {"PID": 4711, "THREAD": thread, "JOB": "ab12", **fields}
        lines.append((round(at), line(round(at), event, host, **values)))

    number = request = 0
    for which in range(objects):
        at, thread = min(free)
        name = f"sdss:run{which // 100}/frame-{which:06}.fits"
        for stage, mean in (("OPEN", 900.0), ("PLAN", 120.0)):
            put(at, f"{stage}_START", thread, OBJECT=name)
            at += draw.lognormvariate(0, 0.4) * mean
            put(at, f"{stage}_END", thread, OBJECT=name, RESULT="ok")
        for _ in range(1 + which % 3):
            request += 1
            values: dict[str, Any] = {"OBJECT": name, "REQUEST": request, "STORE": "sdss"}
            put(at, "FETCH_START", thread, **values)
            at += draw.lognormvariate(0, 0.5) * 1500
            if stall <= which < stall + threads:
                at += 40_000
            size = draw.randrange(60_000, 900_000)
            put(at, "FETCH_END", thread, **values, BYTES=size, RESULT="ok")
        for _ in range(targets):
            values = {"TARGET": f"star-{number}", "OBJECT": name}
            number += 1
            put(at, "CUT_START", thread, **values)
            at += 8
            broken = number % 997 == 500
            for stage, mean in (("READ", 180), ("DECODE", 90), ("ASSEMBLE", 25), ("WRITE", 60)):
                put(at, f"{stage}_START", thread, **values)
                at += draw.lognormvariate(0, 0.6) * mean
                if broken and stage == "DECODE":
                    outcome = {"RESULT": "error", "REASON": "tile 7: short"}
                    put(at, f"{stage}_END", thread, **values, **outcome)
                    break
                put(at, f"{stage}_END", thread, **values, RESULT="ok")
                at += 6
            values["BYTES"] = 25920
            put(at, "CUT_END", thread, **values, RESULT="error" if broken else "ok")
            at += 20
        free[free.index(min(free))] = (at, thread)
    end = max(lines)[0]
    for at in range(0, end, 100_000):
        for host in range(hosts):
            busy = 55 + 30 * draw.random()
            lines.append(
                (
                    at,
                    line(
                        at,
                        "CPU",
                        f"node{host + 1}",
                        USER_PERCENT=f"{busy:.1f}",
                        SYSTEM_PERCENT=f"{busy / 5:.1f}",
                        IDLE_PERCENT=f"{100 - 1.2 * busy:.1f}",
                    ),
                )
            )
    lines.sort(key=lambda each: each[0])
    return [
        line(0, "JOB_START", "node1", PID=4711, JOB="ab12"),
        *(text for _, text in lines),
        line(end + 500, "JOB_END", "node1", PID=4711, JOB="ab12", RESULT="ok"),
    ]


def _value(events: Events, row: int, key: str) -> Any:
    column = events.fields.get(key)
    if isinstance(column, CodedColumn):
        code = column.codes[row]
        return None if code < 0 else column.words[code]
    return None if column is None or np.isnan(column[row]) else column[row]


def rows(path: Path) -> list[dict[str, Any]]:
    """Each event as a mapping, in the order of time."""
    events = trace.read(path)
    assert events.damaged_count == 0, events.damaged
    found = []
    for row, code in enumerate(events.event.codes):
        fields = {key: _value(events, row, key) for key in events.fields}
        values = {key: each for key, each in fields.items() if each is not None}
        found.append({"event": events.event.words[code], "ns": int(events.time_ns[row]), **values})
    return found


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in events if row["event"] == name]
