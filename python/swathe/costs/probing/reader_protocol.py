"""What measuring reads with: the native half, or a stand-in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe._swathe import Stores


class Timing(Protocol):
    """One request; times in seconds since the call."""

    @property
    def bytes(self) -> int:
        """Received."""

    @property
    def start_s(self) -> float:
        """When it was made."""

    @property
    def first_byte_s(self) -> float:
        """When its answer began."""

    @property
    def end_s(self) -> float:
        """When its answer was complete."""


class Reader(Protocol):
    """The module `swathe._swathe` is one."""

    def measure(
        self,
        url: str,
        requests: Sequence[tuple[int, int]],
        streams: int,
        *,
        fresh: bool = False,
        stores: Stores | None = None,
    ) -> Sequence[Timing]:
        """Read ranges (offset, length), so many in flight; `fresh`: on a new connection each."""

    def measure_open(self, url: str, stores: Stores | None = None) -> tuple[float, int]:
        """Learn what is needed to read an object; seconds, and its size in bytes."""
