"""Work on striped stores as other processes see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

WorkKind: TypeAlias = Literal["repair", "rebalance"]


@dataclass(frozen=True)
class StripeWork:
    """A repair or rebalance of a striped store that runs, or was stopped before its end.

    Attributes:
        kind: `repair` or `rebalance`.
        place: the store, or `NAME:folder` of it.
        host: machine that it runs on.
        pid: its process there.
        began_at: when it began, UTC.
        told_at: when it last told its progress, UTC.
        objects: number of its objects.
        done: number of those that are done.
        failed: number of those that could not be done.
        written_bytes: bytes written to servers; `None` for a rebalance.
        total_bytes: size of its objects; `None` if it is unknown.
        done_bytes: bytes of objects that are done, also of those in work; `None`: not told yet.
        bytes_per_s: rate of these bytes in the last minute; `None` if it is unknown.
        is_running: whether it runs; else it was stopped.
    """

    kind: WorkKind
    place: str
    host: str
    pid: int
    began_at: datetime
    told_at: datetime
    objects: int
    done: int
    failed: int
    written_bytes: int | None
    total_bytes: int | None
    done_bytes: int | None
    bytes_per_s: float | None
    is_running: bool

    @property
    def left_s(self) -> float | None:
        """Return the time left by the rate, in seconds; `None` if it is unknown, or is stopped."""
        if not self.is_running or self.total_bytes is None or self.done_bytes is None:
            return None
        left_bytes = max(self.total_bytes - self.done_bytes, 0)
        return left_bytes / self.bytes_per_s if self.bytes_per_s else None
