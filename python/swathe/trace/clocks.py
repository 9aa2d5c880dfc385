"""Offset of a sender's clock, from four times as in NTP."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe import _swathe

if TYPE_CHECKING:
    from collections.abc import Iterable

EXCHANGES = 8
"""The best of this many latest exchanges counts."""


@dataclass(frozen=True)
class Reply:
    """Answer of a sender, times in ns since 1970.

    Attributes:
        asked_ns: time of the question, by the collector's clock.
        received_ns: time of its arrival, by the sender's clock.
        sent_ns: time of the answer, by the sender's clock.
    """

    asked_ns: int
    received_ns: int
    sent_ns: int


@dataclass(frozen=True)
class ClockEstimate:
    """Offset of a clock, positive if ahead, and its largest possible error."""

    offset_s: float
    spread_s: float


def read_reply(line: bytes) -> Reply | None:
    """Parse a line CLOCK_REPLY, without its end; `None` if it is another event.

    Raises:
        FormatError: If the line is not an event, or a reply without its times.
    """
    times_ns = _swathe.clock_reply(line)
    return Reply(*times_ns) if times_ns else None


def estimate_offset(exchanges: Iterable[tuple[Reply, int]]) -> ClockEstimate:
    """Return the offset by the fastest of some exchanges: answers, and when each arrived here."""
    round_trip_ns, twice_ns = min(
        (
            # DATE has whole microseconds.
            max(now_ns - reply.asked_ns - (reply.sent_ns - reply.received_ns), 0),
            reply.received_ns - reply.asked_ns + reply.sent_ns - now_ns,
        )
        for reply, now_ns in exchanges
    )
    return ClockEstimate(twice_ns / 2e9, round_trip_ns / 2e9)


class SenderClock:
    """Clock of one sender."""

    def __init__(self) -> None:
        self._questions: deque[int] = deque(maxlen=EXCHANGES)
        self._exchanges: deque[tuple[Reply, int]] = deque(maxlen=EXCHANGES)

    def ask(self, now_ns: int) -> None:
        """Note that it was asked."""
        self._questions.append(now_ns)

    def add_reply(self, reply: Reply, now_ns: int) -> ClockEstimate | None:
        """Take an answer; return `None` if there was no such question."""
        if reply.asked_ns not in self._questions:
            return None
        self._questions.remove(reply.asked_ns)
        self._exchanges.append((reply, now_ns))
        return estimate_offset(self._exchanges)
