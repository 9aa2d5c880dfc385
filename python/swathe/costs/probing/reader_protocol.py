"""Protocol of the reader used for measurements: the engine, or a stand-in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe._swathe import Stores


class Timing(Protocol):
    """Times of one request, in seconds since the call."""

    @property
    def bytes(self) -> int:
        """Return the bytes received."""

    @property
    def start_s(self) -> float:
        """Return the time of the request."""

    @property
    def first_byte_s(self) -> float:
        """Return the time of the first byte of the answer."""

    @property
    def end_s(self) -> float:
        """Return the time at which the answer was complete."""


class VectorTiming(Protocol):
    """How one request for many ranges was answered."""

    @property
    def refusal(self) -> str | None:
        """Return why it was of no use; None if all ranges came."""

    @property
    def parts(self) -> int:
        """Return the number of parts."""

    @property
    def is_ordered(self) -> bool:
        """Return whether they came in the order of the request."""

    @property
    def bytes(self) -> int:
        """Return the bytes of the answer."""

    @property
    def seconds(self) -> float:
        """Return the seconds until the last byte."""


class MultiplexTiming(Protocol):
    """How requests that shared one connection of HTTP/2 were answered."""

    @property
    def refusal(self) -> str | None:
        """Return why that was of no use; None if all ranges came."""

    @property
    def bytes(self) -> int:
        """Return the bytes of all ranges."""

    @property
    def header_bytes(self) -> int:
        """Return the bytes of an answer beside its data."""

    @property
    def first_byte_s(self) -> float:
        """Return the seconds until the first answer began."""

    @property
    def seconds(self) -> float:
        """Return the seconds until the last byte of all."""


class OpenedObject(Protocol):
    """An open object, whose reads are measured; `_swathe.Source` is one."""

    @property
    def size(self) -> int:
        """Return its bytes."""

    @property
    def opened_bytes(self) -> int:
        """Return the bytes that came with opening it."""

    def measure(
        self, requests: Sequence[tuple[int, int]], streams: int, *, fresh: bool = False
    ) -> Sequence[Timing]:
        """Read ranges (offset, length), `streams` in flight; `fresh`: each on a new connection."""

    def measure_vector(self, ranges: Sequence[tuple[int, int]], limit_s: float) -> VectorTiming:
        """Read ranges (offset, length), ascending and apart, with one request."""

    def measure_multiplexed(
        self, ranges: Sequence[tuple[int, int]], streams: int, limit_s: float
    ) -> MultiplexTiming:
        """Read ranges (offset, length) with a request each, many in flight on a connection."""


class Reader(Protocol):
    """Functions that measure; the module `swathe._swathe` has them."""

    def measure(
        self,
        url: str,
        requests: Sequence[tuple[int, int]],
        streams: int,
        *,
        fresh: bool = False,
        stores: Stores | None = None,
    ) -> Sequence[Timing]:
        """Open an object and read ranges of it, as `OpenedObject.measure`."""

    def measure_open(self, url: str, stores: Stores | None = None) -> tuple[float, int]:
        """Open an object; return the seconds, and its size in bytes."""

    def open_source(self, url: str, stores: Stores | None = None) -> OpenedObject:
        """Open an object."""
