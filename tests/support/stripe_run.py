"""A made-up run of reads of a striped store, as events."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from swathe.trace.analysis.report import TraceReport, make_report
from swathe.trace.ulm import read_trace
from tests.support.traces import line


@dataclass
class StripeRun:
    """A run of requests to four servers with two disks, side by side, as events in a file."""

    folder: Path
    lines: list[tuple[int, str]] = field(default_factory=list)
    count: int = 0

    def put(self, at_us: float, event: str, host: str, **fields: object) -> None:
        values = {"PID": 7, "THREAD": 1, **fields}
        self.lines.append((round(at_us), line(round(at_us), event, host, **values)))

    def request(
        self,
        at_us: float,
        server: str,
        disk: str = "/data1",
        *,
        latency_us: float = 500,
        disk_us: float = 1000,
        own_us: float = 100,
        transfer_us: float = 20_000,
        ahead_us: float = 0,
        error: str = "",
    ) -> float:
        """Add a request with its events at the server, whose clock is ahead; return its end."""
        self.count += 1
        ids = {"REQUEST": self.count, "LIFELINE": f"{self.count:016x}"}
        own = {**ids, "STORE": server, "STRIPE": "wide", "OBJECT": f"{server}:x.stripe.1"}
        self.put(at_us, "FETCH_START", "lab", **own, ASKED_BYTES=1 << 20)
        begin_us = at_us + latency_us / 2
        served_us = begin_us + own_us + disk_us
        self.put(begin_us + ahead_us, "SERVE_START", server, **ids, METHOD="GET", PATH="/x")
        self.put(served_us + ahead_us, "SEND_START", server, **ids)
        times = {"QUEUE_S": 0, "DISK_S": disk_us / 1e6, "VERIFY_S": 0, "WAIT_S": disk_us / 1e6}
        # The last bytes are in a buffer when the server is done.
        self.put(
            served_us + 10 + ahead_us, "SERVE_END", server, **ids, **times, DISK=disk, SEND_S=1e-5
        )
        answer_us = served_us + latency_us / 2
        self.put(answer_us, "FETCH_ANSWER", "lab", **own, STATUS=206)
        end_us = answer_us + transfer_us
        result = {"RESULT": "error", "REASON": error} if error else {"RESULT": "ok"}
        self.put(end_us, "FETCH_END", "lab", **own, BYTES=0 if error else 1 << 20, **result)
        return end_us

    def upload(
        self,
        at_us: float,
        server: str,
        *,
        link_us: float = 5000,
        disk_us: float = 1000,
        own_us: float = 100,
        idle_us: float = 0,
    ) -> float:
        """Add a request that writes 1 MiB to a disk /data1; return its end."""
        self.count += 1
        ids = {"REQUEST": self.count, "LIFELINE": f"{self.count:016x}"}
        own = {**ids, "STORE": server, "STRIPE": "wide", "OBJECT": f"{server}:x.stripe.1"}
        own["METHOD"] = "PUT"
        self.put(at_us, "UPLOAD_START", "lab", **own, ASKED_BYTES=1 << 20)
        self.put(at_us + 1, "SERVE_START", server, **ids, METHOD="PUT", PATH="/x")
        end_us = at_us + link_us + idle_us + disk_us + own_us
        times = {"QUEUE_S": 0, "DISK_S": disk_us / 1e6, "VERIFY_S": 0, "WAIT_S": disk_us / 1e6}
        receive_s = (link_us + idle_us) / 1e6
        self.put(
            end_us - 1, "SERVE_END", server, **ids, **times, DISK="/data1", RECEIVE_S=receive_s
        )
        self.put(end_us, "FETCH_ANSWER", "lab", **own, STATUS=201)
        self.put(
            end_us, "UPLOAD_END", "lab", **own, BYTES=1 << 20, RESULT="ok", IDLE_S=idle_us / 1e6
        )
        return end_us

    def failure(self, at_us: float, server: str, status: int, reason: str) -> None:
        self.count += 1
        ids = {"REQUEST": self.count, "LIFELINE": f"{self.count:016x}"}
        own = {**ids, "STORE": server, "STRIPE": "wide", "OBJECT": f"{server}:x.stripe.1"}
        self.put(at_us, "FETCH_START", "lab", **own, ASKED_BYTES=1 << 20)
        if status:
            self.put(at_us + 500, "FETCH_ANSWER", "lab", **own, STATUS=status)
        self.put(at_us + 600, "FETCH_END", "lab", **own, BYTES=0, RESULT="error", REASON=reason)

    def damage(self, server: str) -> None:
        why = "byte 4096 is not what was written"
        self.put(100, "STRIPE_DAMAGE", "lab", OBJECT="wide:x", SERVER=server, PART=1, WHY=why)

    def report(self) -> TraceReport:
        path = self.folder / "run.ulm"
        self.lines.sort(key=lambda each: each[0])
        path.write_text("".join(f"{text}\n" for _, text in self.lines))
        return make_report(read_trace([path]))
