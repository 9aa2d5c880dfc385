"""What a store costs as seen from this host: samples, costs, and the time they predict.

The model of `requests` requests of `bytes` bytes in all, `streams` of them in flight::

    T = connect + open + max( rounds * t(0) + line - hidden,
                              rounds * t(size),
                              rounds * own + (last - 1 + idle * before) * s(size),
                              own + (requests - 1) * s(size),
                              t(largest) )

with size = bytes / requests, t() the time of one request on an idle open connection, line =
bytes / total_bytes_per_s, rounds = ceil(requests / streams), and last requests in the last of them.
Answers that share a line evenly end about together, so that each round first waits and then is
sent: of the shorter of these, a part is hidden behind the longer; see `line_s`. Where a server does
one after the other, each that was asked for at the same time waits for those before it: s(size) =
1 / requests_per_s + size / served_bytes_per_s for each of them, beside its own = t(size). Where it
takes time for bytes it is a busy computer, and works at all it was asked for at once: each round
but the last makes its requests wait too, before = (rounds - 1) * (streams - 1) of them, for most of
that (`IDLE`). It works on while the streams carry what it has served: own = t(0) + size /
served_bytes_per_s.
The model has bandwidth twice, of a stream (the slope of t) and of all together, because neither can
stand for the other: where all streams share a thin line, splitting a read gains nothing, whatever
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
"""Requests per second of a server that was not seen to make one wait for another."""

IDLE = 0.75
"""The part that is not hidden, between rounds of requests, of the wait and of what is sent to
others, whichever is shorter: 0.72 to 0.96 through nginx and XRootD, 0.5 to 1 in simulated stores,
less the noisier they are (docs/design/007)."""

Kind = Literal["connect", "open", "read", "write"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement.

    Attributes:
        kind: `connect`: a connection was opened; `open`: an object's size and version were
            learned; `read`: requests were answered on open connections; `write`: an object was
            put.
        bytes: moved, by all requests together.
        seconds: from the first request made to the last answer complete.
        requests, streams: how many requests, of equal size but for the last, and how many were in
            flight.
        first_byte_s: until the first byte of the first answer.
        asked_bytes: what should have been moved, where that is known.
        at: when, seconds since 1970.
        in_memory: whether the bytes of a local file were in the page cache, where that is known.
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
    """The parameters of the model.

    Attributes:
        connect_s: opening one connection.
        open_s: learning an object's size and version, beyond an ordinary request.
        request: the curve t(): (bytes, seconds), ascending in both, at least two points. Beyond
            the last it goes on with the slope of the last two; before the first it is level.
        total_bytes_per_s: all streams together.
        requests_per_s: most requests served, whatever the streams; `UNLIMITED` where no limit
            was reached.
        streams: more requests in flight were not measured to help.
        buffer_bytes: that are best read at a time, one request after the other, where that was
            studied.
        served_bytes_per_s: of a server that makes one request wait for another, the bytes it
            serves in a second, beside what each request takes it; None where its time was not
            seen to go by bytes.
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
        """The curve t(), seconds, for sizes in bytes."""
        sizes, seconds = np.array(self.request, dtype=float).T
        wanted = np.asarray(size, dtype=float)
        slope = (seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2])
        beyond = np.maximum(wanted - sizes[-1], 0)
        return np.asarray(np.interp(wanted, sizes, seconds) + slope * beyond)

    def read_s(
        self,
        size: ArrayLike,
        requests: ArrayLike = 1,
        streams: ArrayLike = 1,
        largest: ArrayLike = 0,
    ) -> NDArray[np.float64]:
        """Seconds for `requests` of `size` bytes in all on open connections; arrays are welcome."""
        size, requests = np.asarray(size, dtype=float), np.asarray(requests, dtype=float)
        rounds = np.ceil(requests / np.asarray(streams))
        line = line_s(self.request_s(0), size / self.total_bytes_per_s, requests, streams)
        each, own_s = self.request_s(size / requests), size / requests * self.byte_s()
        own = self.request_s(0) + own_s if self.served_bytes_per_s else each
        queue = queue_s(rounds, each, own, self.others_s(size / requests, requests, streams))
        slowest = np.maximum(np.maximum(line, queue), self.request_s(largest))
        return np.asarray(slowest, dtype=np.float64)

    def byte_s(self) -> float:
        """Seconds that the server takes for a byte; 0 where that was not seen."""
        return 1 / self.served_bytes_per_s if self.served_bytes_per_s else 0.0

    def others_s(
        self, size: ArrayLike, requests: ArrayLike, streams: ArrayLike
    ) -> NDArray[np.float64]:
        """Seconds that the last request waits for others of its size; see `waited_for`."""
        each = 1 / self.requests_per_s + np.asarray(size) * self.byte_s()
        works = self.served_bytes_per_s is not None
        return np.asarray(waited_for(requests, streams, works) * each, dtype=np.float64)

    def stream_bytes_per_s(self) -> float:
        """Bandwidth of one stream, from the end of the curve."""
        (size, seconds), (larger, longer) = self.request[-2:]
        return (larger - size) / (longer - seconds)

    def as_dict(self) -> dict[str, Any]:
        """The costs under the names that the native half knows."""
        return {**asdict(self), "request": [list(point) for point in self.request]}

    @classmethod
    def from_dict(cls, costs: Mapping[str, Any]) -> Costs:
        """Take what `as_dict` gave."""
        request = tuple((int(size), float(seconds)) for size, seconds in costs["request"])
        return cls(**{**costs, "request": request})


def line_s(
    wait_s: ArrayLike, sending_s: ArrayLike, requests: ArrayLike, streams: ArrayLike
) -> NDArray[np.float64]:
    """Seconds of requests on a line that their answers share: each round waits, and is sent.

    Args:
        wait_s: until the first byte of an answer comes.
        sending_s: of all answers, one after the other. After the first round, what is sent to
            others hides a part of the wait, or that a part of what is sent: 1 - `IDLE` of the
            shorter.
        requests: how many.
        streams: how many of them at a time.
    """
    wait_s, sending_s = np.asarray(wait_s, dtype=float), np.asarray(sending_s, dtype=float)
    later = np.ceil(np.asarray(requests) / streams) - 1
    others_s = (np.asarray(streams) - 1) * sending_s / requests
    hidden_s = (1 - IDLE) * later * np.minimum(wait_s, others_s)
    return np.asarray((1 + later) * wait_s + sending_s - hidden_s, dtype=np.float64)


def waited_for(requests: ArrayLike, streams: ArrayLike, works: bool) -> NDArray[np.float64]:
    """How many requests the last waits for: in rounds, and in all; shape (2, ...).

    `works`: the server is a busy computer, so that those of former rounds were waited for too.
    """
    requests, streams = np.broadcast_arrays(requests, streams)
    before = np.ceil(requests / streams) - 1
    in_rounds = requests - before * streams - 1 + IDLE * works * before * (streams - 1)
    return np.asarray([in_rounds, requests - 1.0], dtype=np.float64)


def queue_s(
    rounds: ArrayLike, each_s: ArrayLike, own_s: ArrayLike, others_s: ArrayLike
) -> NDArray[np.float64]:
    """Seconds of rounds of requests to a server that makes one wait for another.

    Args:
        rounds: how many.
        each_s: of one request on an idle connection, which each round takes at least.
        own_s: the part of it that goes by before or after others were served, not meanwhile.
        others_s: that others are waited for, in rounds and in all; shape (2, ...).
    """
    others_s = np.asarray(others_s)
    served_s = np.maximum(rounds * np.asarray(own_s) + others_s[0], own_s + others_s[1])
    return np.asarray(np.maximum(rounds * np.asarray(each_s), served_s), dtype=np.float64)


@dataclass(frozen=True)
class Profile:
    """Costs, and how well they are known.

    Attributes:
        spread: for each parameter that could be identified, half the range of the middle 80 % of
            its samples, relative to their median; `model` is that of measured over predicted time.
        notes: what could not be identified, and what stands in its place.
        rejected: how many samples were impossible, by reason.
    """

    costs: Costs
    spread: dict[str, float]
    notes: tuple[str, ...] = ()
    rejected: dict[str, int] = field(default_factory=dict)
