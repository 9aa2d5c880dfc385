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
        written_bytes: bytes written to servers for objects that are done; `None` for a rebalance.
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
    is_running: bool
