"""Name what slows striped reads and writes: a disk, a server, a link or the client.

Servers of a store have equal parts of each object, so what one takes longer than the others is lost
time. The times of its requests are compared with the median of requests of about the same size to
the other servers, separately on the link, at the server and on its disks.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from swathe.trace.analysis.columns import codes_of, event_codes, join_codes, numbers_of, text_of
from swathe.trace.analysis.parents import BESIDE
from swathe.trace.analysis.slow_targets import union_ns
from swathe.trace.analysis.stages import AROUND
from swathe.trace.analysis.stripe_requests import find_requests, time_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.analysis.stripe_requests import StripeRequests
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Seconds = NDArray[np.float64]

Part: TypeAlias = Literal["disk", "server", "link", "client"]
LEAST_SHARE = 0.03
"""Share of the time of all striped reads and writes from which lost time is reported."""
LEAST_FACTOR = 1.5
"""Factor by which a time is above that of others, to be reported."""
FAULT_SHARE = 0.05
"""Share of failed requests of a server from which its failures come before lost time."""
LEAST_BYTES = 65_536
"""Smaller requests take as long as one of this size."""
SIZE_CLASSES = 64
"""More than there are classes of requests by their size."""
BUSY = (429, 503)
DAMAGE_STATUS = 500
DAMAGE = re.compile(
    r": byte \d+: expected .+, found .+"
    r"(?: on disk (?P<one>.+) is damaged|; damaged on disk (?P<other>.+))"
)
"""What a block server answers of a block that is not what was written."""


@dataclass(frozen=True)
class Bottleneck:
    """What slows striped reads or writes.

    Attributes:
        part: `disk`, `server`, `link` (to a server) or `client`.
        server: the server, as STORE of its events, perhaps with its folder there (`lake:parts/`);
            empty for the client.
        disk: folder of the disk on its server; empty if it is none, or unknown.
        symptom: `no answer`, `unavailable`, `refusal`, `damage`, `stall`, `latency`, `bandwidth`,
            `slow`, or `late` (the server does not get to its work).
        lost_s: seconds of the run that were lost by it, roughly.
        why: what was seen.
    """

    part: Part
    server: str
    disk: str
    symptom: str
    lost_s: float
    why: str


@dataclass(frozen=True)
class ServerTimes:
    """Requests of striped reads and writes to a disk of a server.

    Times are medians of requests, in seconds.

    Attributes:
        disk: folder of the disk; empty if the server records no events.
        latency_s: on the link, until the answer begins.
        transfer_s: on the link, after that.
        server_s: at the server, with delays; `None` if it records no events.
        disk_s: waits for the disk; `None` if the server records no events.
    """

    server: str
    disk: str
    requests: int
    bytes: int
    failed: int
    latency_s: float
    transfer_s: float
    server_s: float | None
    disk_s: float | None


def find_bottlenecks(
    events: Events, spans: Spans, time_ns: Rows
) -> tuple[list[ServerTimes], list[Bottleneck]]:
    """Return the servers of striped reads and writes, and what slows these.

    First damage, then other failures, then what takes longer than elsewhere; of each, what costs
    most time first.
    """
    requests = find_requests(events, spans, time_ns)
    # Folders record no requests, but damage.
    damage = list(_damage_at_client(events))
    if not len(requests):
        return [], damage
    study = _Study(events, spans, time_ns, requests)
    # Damage causes other failures, and they may cost more time.
    damage = _by_loss([*study.damage(), *damage])
    slow = _by_loss([*study.slow_parts(), *study.client()])
    return study.servers(), [*damage, *_by_loss(study.failures()), *slow]


def _by_loss(bottlenecks: Iterable[Bottleneck]) -> list[Bottleneck]:
    return sorted(bottlenecks, key=lambda each: each.lost_s, reverse=True)


def _damage_at_client(events: Events) -> Iterator[Bottleneck]:
    """Yield damage that the client saw: of servers that do not verify what they send."""
    rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, ["STRIPE_DAMAGE"])))
    rows_by_server: dict[str, list[int]] = {}
    for row in rows.tolist():
        rows_by_server.setdefault(text_of(events, "SERVER", row), []).append(row)
    for server, mine in rows_by_server.items():
        why = (
            f"{len(mine)} ranges of its parts are not what was written: "
            f"{text_of(events, 'OBJECT', mine[0])}, {text_of(events, 'WHY', mine[0])}"
        )
        yield Bottleneck("disk", server.removesuffix(":"), "", "damage", 0.0, why)


class _Study:
    """Requests in groups: of a server, and of a disk of a server."""

    def __init__(
        self, events: Events, spans: Spans, time_ns: Rows, requests: StripeRequests
    ) -> None:
        self.events, self.spans, self.requests = events, spans, requests
        self.time_ns = time_ns
        self.names = codes_of(events, "STORE")[1]
        disk, self.disk_names = codes_of(events, "DISK")
        self.disk = np.where(requests.server_row >= 0, disk[requests.server_row], -1)
        self.places = join_codes([requests.store, self.disk])
        results, words = codes_of(events, "RESULT")
        wrong = words.index("error") if "error" in words else -2
        self.failed: Mask = (results[requests.end] == wrong) | requests.is_open
        size_class = np.round(np.log2(np.maximum(requests.asked_bytes, LEAST_BYTES)) / 2)
        # Those of one method only are alike.
        self.size_class = size_class + (requests.method + 1) * SIZE_CLASSES
        self.elapsed_s = (requests.end_ns.max() - requests.start_ns.min()) / 1e9

    def server(self, rows: Rows) -> str:
        code = int(self.requests.store[rows[0]])
        return self.names[code] if code >= 0 else ""

    def disk_name(self, row: int) -> str:
        code = int(self.disk[row])
        return self.disk_names[code] if code >= 0 else ""

    def servers(self) -> list[ServerTimes]:
        """Return a row for each disk."""
        requests, sizes = self.requests, np.nan_to_num(numbers_of(self.events, "BYTES"))
        rows = []
        for mine in _groups(self.places):
            counts = mine[~self.failed[mine]]
            has_server = bool((requests.server_row[mine] >= 0).any())
            server_s = requests.server_s + requests.late_s
            rows.append(
                ServerTimes(
                    server=self.server(mine),
                    disk=self.disk_name(int(mine[0])),
                    requests=len(mine),
                    bytes=int(sizes[requests.end[mine]].sum()),
                    failed=int(self.failed[mine].sum()),
                    latency_s=_median(requests.latency_s[counts]),
                    transfer_s=_median(requests.transfer_s[counts]),
                    server_s=_median(server_s[counts]) if has_server else None,
                    disk_s=_median(requests.disk_s[counts]) if has_server else None,
                )
            )
        return sorted(rows, key=lambda row: (row.server, row.disk))

    # Failures -----------------------------------------------------------------------------------

    def failures(self) -> Iterator[Bottleneck]:
        """Yield the servers and links of which many requests fail. Damage does not count."""
        damages = self._damages()
        for mine in _groups(self.requests.store):
            wrong = mine[self.failed[mine] & ~damages[mine]]
            if len(wrong) < FAULT_SHARE * len(mine) or not len(wrong):
                continue
            causes = Counter(self._cause(int(row)) for row in wrong)
            (part, symptom), count = causes.most_common(1)[0]
            example = next(row for row in wrong if self._cause(int(row)) == (part, symptom))
            reason = text_of(self.events, "REASON", int(self.requests.end[example]))
            reason = reason or "no end recorded"
            yield Bottleneck(
                part=part,
                server=self.server(mine),
                disk="",
                symptom=symptom,
                lost_s=self._wall_s(wrong),
                why=f"{count} of {len(mine)} requests failed: {reason}",
            )

    def _cause(self, row: int) -> tuple[Part, str]:
        status = int(self.requests.status[row])
        if not status:
            return "server", "no answer"
        if status in BUSY:
            return "server", "unavailable"
        return ("link", "stall") if status < 400 else ("server", "refusal")

    def _damages(self) -> Mask:
        """Return the mask of requests whose bytes the server found damaged.

        Its events tell, or the text of its answer in those of the client.
        """
        events = self.events
        lifeline = codes_of(events, "LIFELINE")[0]
        rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, ["VERIFY_END"])))
        results, words = codes_of(events, "RESULT")
        wrong = words.index("error") if "error" in words else -2
        codes = lifeline[rows[results[rows] == wrong]]
        own = lifeline[self.requests.start]
        damages: Mask = (own >= 0) & np.isin(own, codes)
        for row in np.flatnonzero(self.failed & (self.requests.status == DAMAGE_STATUS)).tolist():
            damages[row] |= DAMAGE.search(self._reason(row)) is not None
        return damages

    def _reason(self, row: int) -> str:
        """Return why a request failed, as its server says, else as the client does."""
        server_row, end = int(self.requests.server_row[row]), int(self.requests.end[row])
        reason = text_of(self.events, "REASON", server_row) if server_row >= 0 else ""
        return reason or text_of(self.events, "REASON", end)

    def _damaged_disk(self, row: int) -> str:
        """Return the disk on which a request met damage; empty if nothing names it."""
        words = None if self.disk[row] >= 0 else DAMAGE.search(self._reason(row))
        return self.disk_name(row) if words is None else words["one"] or words["other"]

    def damage(self) -> Iterator[Bottleneck]:
        """Yield the disks on which servers found damage."""
        damages = self._damages()
        for mine in _groups(self.places):
            rows_by_disk: dict[str, list[int]] = {}
            for row in mine[damages[mine]].tolist():
                rows_by_disk.setdefault(self._damaged_disk(row), []).append(row)
            for disk, wrong in rows_by_disk.items():
                reason = self._reason(wrong[0])
                yield Bottleneck(
                    part="disk",
                    server=self.server(mine),
                    disk=disk,
                    symptom="damage",
                    lost_s=self._wall_s(np.array(wrong)),
                    why=f"{len(wrong)} of {len(mine)} requests met damage: {reason}",
                )

    # Lost time ----------------------------------------------------------------------------------

    def slow_parts(self) -> Iterator[Bottleneck]:
        """Yield the disks, servers and links that take longer than the others."""
        requests = self.requests
        # What a late server never began has no times there but its delay.
        is_late = np.isnan(requests.server_s) & (requests.late_s > 0)
        server_s = np.where(is_late, 0.0, requests.server_s) + requests.late_s
        link_s = requests.latency_s + requests.transfer_s
        for mine in _groups(self.places):
            if self.disk[mine[0]] >= 0 and (excess := self._excess(mine, requests.disk_s)):
                name = self.disk_name(int(mine[0]))
                yield self._slow("disk", mine, excess, "slow", "waited for the disk", name)
        for mine in _groups(requests.store):
            if excess := self._excess(mine, server_s):
                late = requests.late_s[mine].sum() > np.nansum(requests.server_s[mine]) / 2
                text = "were at the server"
                yield self._slow("server", mine, excess, "late" if late else "slow", text)
            if excess := self._excess(mine, link_s):
                yield self._slow_link(mine, excess)

    def _slow_link(self, mine: Rows, excess: _Excess) -> Bottleneck:
        requests = self.requests
        latency = self._sums(mine, requests.latency_s)
        transfer = self._sums(mine, requests.transfer_s)
        if latency.lost_s >= transfer.lost_s:
            symptom = "latency"
        else:
            symptom = "stall" if transfer.is_rare else "bandwidth"
        if (requests.server_row[mine] >= 0).any():
            return self._slow("link", mine, excess, symptom, "were on the link")
        text = "were on the link or at the server, which records no events,"
        return self._slow("server", mine, excess, symptom, text)

    def _excess(self, mine: Rows, seconds: Seconds) -> _Excess | None:
        """Return by how much requests took longer than others, if that is worth a report."""
        sums = self._sums(mine, seconds)
        total_s = float(self.requests.total_s[mine].sum())
        if not total_s:
            return None
        # Requests are side by side: of the time they take together, only this is the run's.
        lost_s = sums.lost_s * self._wall_s(mine) / total_s
        if lost_s < LEAST_SHARE * self.elapsed_s or sums.own_s < LEAST_FACTOR * sums.usual_s:
            return None
        return _Excess(sums.own_s, sums.usual_s, lost_s, sums.is_rare)

    def _sums(self, mine: Rows, seconds: Seconds) -> _Excess:
        """Return the seconds of requests together, and what the same of other groups take."""
        valid = np.isfinite(seconds) & ~self.failed
        others = valid.copy()
        others[mine] = False
        mine = mine[valid[mine]]
        if not len(mine) or not others.any():
            return _Excess(0.0, 0.0, 0.0, False)
        bytes_ = np.maximum(self.requests.asked_bytes, LEAST_BYTES)
        is_write = self.requests.method >= 0
        # What nobody else does has nothing to be compared with.
        usual_s = seconds[mine].copy()
        for writes in (False, True):
            those, own = others & (is_write == writes), is_write[mine] == writes
            if those.any():
                usual_s[own] = np.median(seconds[those] / bytes_[those]) * bytes_[mine][own]
        for each in np.unique(self.size_class[mine]).tolist():
            alike = others & (self.size_class == each)
            if alike.any():
                usual_s[self.size_class[mine] == each] = np.median(seconds[alike])
        own_s = seconds[mine]
        # By their bytes: a write has many requests with none.
        mine_bytes = bytes_[mine]
        slow_bytes = mine_bytes[own_s >= LEAST_FACTOR * usual_s].sum()
        is_rare = bool(slow_bytes < mine_bytes.sum() / 2)
        lost_s = float((own_s - usual_s).sum())
        return _Excess(float(own_s.sum()), float(usual_s.sum()), lost_s, is_rare)

    def _slow(
        self, part: Part, mine: Rows, excess: _Excess, symptom: str, text: str, disk: str = ""
    ) -> Bottleneck:
        why = (
            f"{len(mine)} requests {text} for {excess.own_s:.3g} s together, "
            f"usually {excess.usual_s:.3g} s"
        )
        return Bottleneck(part, self.server(mine), disk, symptom, excess.lost_s, why)

    def _wall_s(self, rows: Rows) -> float:
        return union_ns(self.requests.start_ns[rows], self.requests.end_ns[rows]) / 1e9

    # The client ---------------------------------------------------------------------------------

    def client(self) -> Iterator[Bottleneck]:
        """Yield the clients that leave their servers idle between their striped reads."""
        spans = self.spans
        process = join_codes([codes_of(self.events, name)[0] for name in ("HOST", "PID")])
        is_read, is_part = (
            np.array([name == stage for name in spans.names])[spans.stage]
            for stage in ("STRIPE", "PART")
        )
        own = process[self.requests.start]
        for code in np.unique(own).tolist():
            reads = np.flatnonzero(is_read & (process[spans.start] == code))
            mine = np.flatnonzero(own == code)
            if not len(reads):
                continue
            first_ns = int(min(spans.start_ns[reads].min(), self.requests.start_ns[mine].min()))
            last_ns = int(spans.end_ns[reads].max())
            # Parts wait also between requests: to try again.
            parts = np.flatnonzero(is_part & (process[spans.start] == code))
            start_ns = np.concatenate([self.requests.start_ns[mine], spans.start_ns[parts]])
            end_ns = np.concatenate([self.requests.end_ns[mine], spans.end_ns[parts]])
            order = np.argsort(start_ns, kind="stable")
            idle = _gaps(start_ns[order], end_ns[order], first_ns, last_ns)
            idle_s = float((idle[1] - idle[0]).sum()) / 1e9
            elapsed_s = (last_ns - first_ns) / 1e9
            if idle_s < max(LEAST_SHARE * elapsed_s, 1e-9):
                continue
            stages = self._stages_in(idle, process, code)
            why = f"no request was in flight for {idle_s:.3g} s of {elapsed_s:.3g} s"
            name, seconds = max(stages.items(), key=lambda item: item[1], default=("", 0.0))
            if seconds > idle_s / 2:
                why += f"; it was in {name} for {seconds:.3g} s of these"
            yield Bottleneck("client", "", "", "slow", idle_s, why)

    def _stages_in(self, idle: tuple[Rows, Rows], process: Rows, code: int) -> dict[str, float]:
        """Return what a process did in some intervals: seconds by stage, without inner stages."""
        spans = self.spans
        works = np.array([name not in (*AROUND, *BESIDE) for name in spans.names])[spans.stage]
        rows = np.flatnonzero(works & (process[spans.start] == code))
        over_ns = time_inside(idle, spans.end_ns[rows]) - time_inside(idle, spans.start_ns[rows])
        seconds = np.bincount(
            spans.stage[rows], np.minimum(over_ns, spans.own_ns[rows]) / 1e9, len(spans.names)
        )
        return {spans.names[n]: float(each) for n, each in enumerate(seconds) if each > 0}


@dataclass(frozen=True)
class _Excess:
    """Seconds of requests together, what others take, and what was lost.

    `is_rare`: most of the bytes take no longer than those of others.
    """

    own_s: float
    usual_s: float
    lost_s: float
    is_rare: bool


def _groups(codes: Rows) -> Iterator[Rows]:
    for code in np.unique(codes).tolist():
        yield np.flatnonzero(codes == code)


def _median(values: Seconds) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else 0.0


def _gaps(start_ns: Rows, end_ns: Rows, first_ns: int, last_ns: int) -> tuple[Rows, Rows]:
    """Return the intervals in which none of some intervals is open; `start_ns` is sorted."""
    latest_ns = np.maximum.accumulate(end_ns)
    begin_ns = np.concatenate([[first_ns], latest_ns]).clip(first_ns, last_ns)
    over_ns = np.concatenate([start_ns, [last_ns]]).clip(first_ns, last_ns)
    return begin_ns, np.maximum(over_ns, begin_ns)
