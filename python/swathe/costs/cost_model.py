"""Cost model of a store as seen from this host: samples, costs, and predicted times.

The model of `requests` requests of `bytes` bytes in all, `streams` of them in flight::

    T = connect + open + max( rounds * t(0) + line - hidden,
                              rounds * t(size),
                              rounds * own + (last - 1 + idle * before) * s(size),
                              own + (requests - 1) * s(size),
                              t(largest) )

with size = bytes / requests, t() the time of one request on an idle open connection, line =
bytes / total_bytes_per_s, rounds = ceil(requests / streams), and last the number of requests in the
last round.

Answers that share a line evenly end at about the same time, so each round first waits and then
transfers. A part of the shorter of the two is hidden behind the longer; see `line_s`.

If a server handles one request after the other, a request waits for those sent at the same time:
s(size) = 1 / requests_per_s + size / served_bytes_per_s for each of them, plus its own = t(size).
If the server's time depends on bytes, it is a busy computer that works on all its requests at once.
Each round but the last then makes its requests wait, too: before = (rounds - 1) * (streams - 1) of
them, for most of that time (`IDLE`). The server works on while the streams carry what it has
served: own = t(0) + size / served_bytes_per_s.

The model has two bandwidths, of one stream (the slope of t) and of all together, because neither
can replace the other: if all streams share a narrow line, splitting a read gains nothing, whatever
one stream could carry.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

UNLIMITED = 1e9
"""Requests per second of a server that does not make one request wait for another."""

IDLE = 0.75
"""Part of the shorter of waiting and transfer that is not hidden, between rounds of requests:
0.72 to 0.96 through nginx and XRootD, 0.5 to 1 in simulated stores, less if they are noisier
(docs/design/007)."""

Kind = Literal["connect", "open", "read", "write"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement.

    Attributes:
        kind: `connect`: a connection was opened; `open`: an object's size and version were read;
            `read`: requests were answered on open connections; `write`: an object was written.
        bytes: bytes moved by all requests.
        seconds: time from the first request to the end of the last answer.
        requests, streams: number of requests, of equal size but for the last, and number in flight.
        first_byte_s: time to the first byte of the first answer.
        asked_bytes: bytes requested, if known.
        at: time of the measurement, in seconds since 1970.
        in_memory: whether the bytes of a local file were in the page cache, if known.
    """

    kind: Kind
    bytes: int
    seconds: float
    requests: int = 1
    streams: int = 1
    first_byte_s: float | None = None
    asked_bytes: int | None = None
    at: float = 0.0
    in_memory: bool | None = None


@dataclass(frozen=True)
class Costs:
    """Parameters of the cost model.

    Attributes:
        connect_s: time to open one connection.
        open_s: time to read an object's size and version, beyond an ordinary request.
        request: curve t() as (bytes, seconds), ascending in both, at least two points. Beyond the
            last point it has the slope of the last two; before the first it is constant.
        total_bytes_per_s: bandwidth of all streams together.
        requests_per_s: highest request rate, with any number of streams; `UNLIMITED` if no limit
            was reached.
        streams: number of requests in flight beyond which no gain was measured.
        buffer_bytes: best read size for one request after the other, if it was studied.
        served_bytes_per_s: throughput of a server that makes one request wait for another, beside
            its time per request; None if its time was not seen to depend on bytes.
    """

    connect_s: float
    open_s: float
    request: tuple[tuple[int, float], ...]
    total_bytes_per_s: float
    requests_per_s: float
    streams: int
    buffer_bytes: int | None = None
    served_bytes_per_s: float | None = None

    def request_s(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return the curve t() in seconds for sizes in bytes."""
        sizes, seconds = np.array(self.request, dtype=float).T
        sizes_wanted = np.asarray(size, dtype=float)
        slope = (seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2])
        beyond = np.maximum(sizes_wanted - sizes[-1], 0)
        return np.asarray(np.interp(sizes_wanted, sizes, seconds) + slope * beyond)

    def read_s(
        self,
        size: ArrayLike,
        requests: ArrayLike = 1,
        streams: ArrayLike = 1,
        largest: ArrayLike = 0,
    ) -> NDArray[np.float64]:
        """Return the seconds of `requests` requests of `size` bytes in all; accepts arrays."""
        size, requests = np.asarray(size, dtype=float), np.asarray(requests, dtype=float)
        rounds = np.ceil(requests / np.asarray(streams))
        line = line_s(self.request_s(0), size / self.total_bytes_per_s, requests, streams)
        each, own_s = self.request_s(size / requests), size / requests * self.byte_s()
        own = self.request_s(0) + own_s if self.served_bytes_per_s else each
        queue = queue_s(rounds, each, own, self.others_s(size / requests, requests, streams))
        slowest = np.maximum(np.maximum(line, queue), self.request_s(largest))
        return np.asarray(slowest, dtype=np.float64)

    def byte_s(self) -> float:
        """Return the server's seconds per byte; 0 if its time does not depend on bytes."""
        return 1 / self.served_bytes_per_s if self.served_bytes_per_s else 0.0

    def others_s(
        self, size: ArrayLike, requests: ArrayLike, streams: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the time that the last request waits for others of its size; see `count_waits`."""
        each = 1 / self.requests_per_s + np.asarray(size) * self.byte_s()
        works = self.served_bytes_per_s is not None
        return np.asarray(count_waits(requests, streams, works) * each, dtype=np.float64)

    def stream_bytes_per_s(self) -> float:
        """Return the bandwidth of one stream, from the end of the curve."""
        (size, seconds), (larger, longer) = self.request[-2:]
        return (larger - size) / (longer - seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return the costs under the names that the engine uses."""
        return {**asdict(self), "request": [list(point) for point in self.request]}

    @classmethod
    def from_dict(cls, costs: Mapping[str, Any]) -> Costs:
        """Return the costs from the result of `as_dict`."""
        request = tuple((int(size), float(seconds)) for size, seconds in costs["request"])
        return cls(**{**costs, "request": request})


def line_s(
    wait_s: ArrayLike, sending_s: ArrayLike, requests: ArrayLike, streams: ArrayLike
) -> NDArray[np.float64]:
    """Return the seconds of requests whose answers share a line: each round waits, then transfers.

    Args:
        wait_s: time to the first byte of an answer.
        sending_s: time to transfer all answers, one after the other. After the first round,
            transfers to other requests hide a part of the wait, or the wait hides a part of
            them: 1 - `IDLE` of the shorter.
        requests: number of requests.
        streams: number of requests in flight.
    """
    wait_s, sending_s = np.asarray(wait_s, dtype=float), np.asarray(sending_s, dtype=float)
    later = np.ceil(np.asarray(requests) / streams) - 1
    others_s = (np.asarray(streams) - 1) * sending_s / requests
    hidden_s = (1 - IDLE) * later * np.minimum(wait_s, others_s)
    return np.asarray((1 + later) * wait_s + sending_s - hidden_s, dtype=np.float64)


def count_waits(requests: ArrayLike, streams: ArrayLike, works: bool) -> NDArray[np.float64]:
    """Return how many requests the last one waits for: by rounds, and in all; shape (2, ...).

    `works`: whether the server is a busy computer, so that requests of earlier rounds count, too.
    """
    requests, streams = np.broadcast_arrays(requests, streams)
    before = np.ceil(requests / streams) - 1
    in_rounds = requests - before * streams - 1 + IDLE * works * before * (streams - 1)
    return np.asarray([in_rounds, requests - 1.0], dtype=np.float64)


def queue_s(
    rounds: ArrayLike, each_s: ArrayLike, own_s: ArrayLike, others_s: ArrayLike
) -> NDArray[np.float64]:
    """Return the seconds of rounds of requests to a server that makes one wait for another.

    Args:
        rounds: number of rounds.
        each_s: time of one request on an idle connection; each round takes at least this.
        own_s: part of `each_s` that does not overlap with serving others.
        others_s: time to wait for others, by rounds and in all; shape (2, ...).
    """
    others_s = np.asarray(others_s)
    served_s = np.maximum(rounds * np.asarray(own_s) + others_s[0], own_s + others_s[1])
    return np.asarray(np.maximum(rounds * np.asarray(each_s), served_s), dtype=np.float64)


@dataclass(frozen=True)
class Profile:
    """Costs and their uncertainty.

    Attributes:
        spread: half the range of the middle 80 % of samples relative to their median, for each
            parameter that could be identified; `model`: the same of measured over predicted time.
        notes: parameters that could not be identified, and the values used instead.
        rejected: number of impossible samples by reason.
    """

    costs: Costs
    spread: dict[str, float]
    notes: tuple[str, ...] = ()
    rejected: dict[str, int] = field(default_factory=dict)
