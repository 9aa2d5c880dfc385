"""Offset of a sender's clock, from four times as in NTP."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = 8
"""The best of this many latest exchanges counts."""

QUOTED = rb'(?:"(?:[^"\\]|\\.)*"|[^ "]*)'
REPLY = re.compile(
    rb"DATE=(\d{14})\.(\d{6}) HOST=%b PROG=%b LVL=\w+ NL\.EVNT=CLOCK_REPLY( .*)" % (QUOTED, QUOTED)
)
NUMBER = re.compile(rb" (ECHO|RECEIVED)=(\d{1,19})(?= |$)")


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
    """Parse a line CLOCK_REPLY, without its end; `None` if it is another line, or damaged."""
    match = REPLY.fullmatch(line)
    if match is None:
        return None
    numbers = {key: int(digits) for key, digits in NUMBER.findall(match[3])}
    if len(numbers) != 2:
        return None
    try:
        seconds = datetime.strptime(match[1].decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    sent_ns = round(seconds.timestamp()) * 1_000_000_000 + int(match[2]) * 1000
    return Reply(numbers[b"ECHO"], numbers[b"RECEIVED"], sent_ns)


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
        self._questions: deque[int] = deque(maxlen=KEPT)
        self._exchanges: deque[tuple[Reply, int]] = deque(maxlen=KEPT)

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
