"""What measuring reads with: the native half, or a stand-in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Timing(Protocol):
    """One request; times in seconds from the call."""

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

    @property
    def connect_s(self) -> float | None:
        """Time to open the connection, of fresh ones."""


class Reader(Protocol):
    """`swathe._swathe` is one."""

    def measure(
        self,
        url: str,
        requests: list[tuple[int, int]],
        streams: int,
        *,
        fresh: bool = False,
        stores: Any = None,
    ) -> Sequence[Timing]:
        """Read ranges (offset, length) of an object, in order, `streams` of them in flight."""

    def measure_open(self, url: str, stores: Any = None) -> tuple[float, int]:
        """Learn what is needed to read an object; seconds, and its size in bytes."""
