"""Cost model of a store as seen from this host: samples, costs, and predicted times.

The formula is in `crates/plan/src/costs.rs`, where plans are made from it; here it is called on
arrays. `docs/concepts/cost-model.md` explains it.

The model has two bandwidths, of one stream (the slope of t) and of all together, because neither
can replace the other: if all streams share a narrow line, splitting a read gains nothing, whatever
one stream could carry.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from swathe import _swathe
from swathe.core.stored_record import stored_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

NO_LIMIT = 1e9
"""Requests per second of a server that does not make one request wait for another."""

Kind = Literal["connect", "open", "read", "write"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement.

    Attributes:
        kind: `connect`: a connection was opened; `open`: an object's size and version were read;
            `read`: requests were answered on open connections; `write`: an object was written.
        bytes: bytes moved by all requests.
        elapsed_s: time from the first request to the end of the last answer.
        requests, streams: number of requests, of equal size but for the last, and number in flight.
        first_byte_s: time to the first byte of the first answer.
        asked_bytes: bytes requested, if known.
        at: time of the measurement, in seconds since 1970.
        in_memory: whether the bytes of a local file were in the page cache, if known.
    """

    kind: Kind
    bytes: int
    elapsed_s: float
    requests: int = 1
    streams: int = 1
    first_byte_s: float | None = None
    asked_bytes: int | None = None
    at: float = 0.0
    in_memory: bool | None = None


@dataclass(frozen=True)
class MultiRange:
    """How a server answers a request for many ranges.

    Attributes:
        ranges: most ranges of one request.
        header_bytes: length of the longest `Range` header.
        range_s: the server's time for each range after the first.
        part_bytes: bytes of each part beside its data: boundary and headers.
        gap_bytes: ranges with a gap up to this are answered as one part.
    """

    ranges: int
    header_bytes: int
    range_s: float
    part_bytes: int
    gap_bytes: int = 0


@dataclass(frozen=True)
class MultiplexCosts:
    """How a server answers requests that share one connection of HTTP/2.

    Attributes:
        requests: most requests in flight on the connection.
        latency_s: time to the first byte of an answer, if nothing else is on the connection.
        request_s: the server's time for each further request.
        bytes_per_s: bandwidth of the connection.
        header_bytes: bytes of each answer beside its data: headers and frames.
    """

    requests: int
    latency_s: float
    request_s: float
    bytes_per_s: float
    header_bytes: int


@dataclass(frozen=True)
class Costs:
    """Parameters of the cost model.

    Attributes:
        connect_s: time to open one connection.
        open_s: time to read an object's size and version, beyond an ordinary request.
        request: curve t() as (bytes, seconds), ascending in both, at least two points. Beyond the
            last point it has the slope of the last two; before the first it is constant.
        total_bytes_per_s: bandwidth of all streams together.
        requests_per_s: highest request rate, with any number of streams; `NO_LIMIT` if no limit
            was reached.
        streams: number of requests in flight beyond which no gain was measured.
        buffer_bytes: best read size for one request after the other, if it was studied.
        served_bytes_per_s: throughput of a server that makes one request wait for another, beside
            its time per request; None if its time was not seen to depend on bytes.
        multi_range: how requests for many ranges are answered; None if no probe saw them honoured.
        multiplexed: how requests on one connection of HTTP/2 are answered; None if no probe saw the
            server speak it.
    """

    connect_s: float
    open_s: float
    request: tuple[tuple[int, float], ...]
    total_bytes_per_s: float
    requests_per_s: float
    streams: int
    buffer_bytes: int | None = None
    served_bytes_per_s: float | None = None
    multi_range: MultiRange | None = None
    multiplexed: MultiplexCosts | None = None

    def request_s(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return the curve t() in seconds for sizes in bytes.

        Raises:
            ValueError: If no store can have these costs.
        """
        return _each(lambda *arrays: _swathe.request_s(self._json, *arrays), size)

    def read_s(
        self,
        size: ArrayLike,
        requests: ArrayLike = 1,
        streams: ArrayLike = 1,
        largest: ArrayLike = 0,
    ) -> NDArray[np.float64]:
        """Return the seconds of `requests` requests of `size` bytes in all; accepts arrays.

        Raises:
            ValueError: If no store can have these costs.
        """
        inputs = (size, requests, streams, largest)
        return _each(lambda *arrays: _swathe.requests_s(self._json, *arrays), *inputs)

    def byte_s(self) -> float:
        """Return the server's seconds per byte; 0 if its time does not depend on bytes."""
        return 1 / self.served_bytes_per_s if self.served_bytes_per_s else 0.0

    def stream_bytes_per_s(self) -> float:
        """Return the bandwidth of one stream, from the end of the curve."""
        (size, seconds), (larger, longer) = self.request[-2:]
        return (larger - size) / (longer - seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return the costs under the names that the engine uses."""
        return {**asdict(self), "request": [list(point) for point in self.request]}

    @cached_property
    def _json(self) -> str:
        return json.dumps(self.as_dict())

    @classmethod
    def from_dict(cls, costs: Mapping[str, Any]) -> Costs:
        """Return the costs from the result of `as_dict`, of this version or another.

        Raises:
            CatalogError: If a cost is missing.
        """
        values = {name: value for name, value in costs.items() if value is not None}
        if "request" in values:
            values["request"] = tuple((int(size), float(s)) for size, s in values["request"])
        for name, kind in (("multi_range", MultiRange), ("multiplexed", MultiplexCosts)):
            if name in values:
                values[name] = stored_record(kind, values[name], f"costs of a store, {name}")
        return stored_record(cls, values, "costs of a store")


def line_s(
    requests: ArrayLike, streams: ArrayLike, wait_s: ArrayLike, sending_s: ArrayLike
) -> NDArray[np.float64]:
    """Return the seconds of requests whose answers share a line: each round waits, then transfers.

    Args:
        requests: number of requests, for each place of the first axis of the others.
        streams: number of requests in flight, as well.
        wait_s: time to the first byte of an answer.
        sending_s: time to transfer all answers, one after the other.
    """
    batches = np.atleast_1d(_doubles(requests)), np.atleast_1d(_doubles(streams))
    return _each(lambda out, *arrays: _swathe.line_s(out, *batches, *arrays), wait_s, sending_s)


def queue_s(
    requests: ArrayLike,
    streams: ArrayLike,
    each_s: ArrayLike,
    own_s: ArrayLike,
    serve_s: ArrayLike,
    works: bool,
) -> NDArray[np.float64]:
    """Return the seconds of requests to a server that makes one wait for another.

    Args:
        requests: number of requests, for each place of the first axis of the others.
        streams: number of requests in flight, as well.
        each_s: time of one request on an idle connection; each round takes at least this.
        own_s: part of `each_s` that does not overlap with serving others.
        serve_s: time to serve one request.
        works: whether the server's time depends on bytes: requests of earlier rounds count, too.
    """
    batches = np.atleast_1d(_doubles(requests)), np.atleast_1d(_doubles(streams))
    return _each(
        lambda out, *arrays: _swathe.queue_s(works, out, *batches, *arrays), each_s, own_s, serve_s
    )


def _each(formula: Callable[..., None], *inputs: ArrayLike) -> NDArray[np.float64]:
    """Return what a native formula says of each element of the inputs, broadcast to one shape."""
    arrays = np.broadcast_arrays(*map(_doubles, inputs))
    result = np.empty(arrays[0].shape)
    formula(np.atleast_1d(result), *map(np.ascontiguousarray, arrays))
    return result


def _doubles(numbers: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(numbers, dtype=np.float64)


@dataclass(frozen=True)
class Profile:
    """Costs and their uncertainty.

    Attributes:
        spread: half the range of the middle 80 % of samples relative to their median, for each
            parameter that could be identified; `model`: the same of measured over predicted time.
        notes: parameters that could not be identified, and the values used instead.
        rejections: number of impossible samples by reason.
    """

    costs: Costs
    spread: dict[str, float]
    notes: tuple[str, ...] = ()
    rejections: dict[str, int] = field(default_factory=dict)
