"""Objects that are staged from tape, as the catalogue has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

StageState: TypeAlias = Literal["waiting", "queued", "active", "disk", "failed", "released"]
IN_PROGRESS: tuple[StageState, ...] = ("waiting", "queued", "active")
"""States of objects that are to come: claimed but not sent yet, in the queue, being read."""


@dataclass(frozen=True)
class StageFile:
    """An object that was asked for.

    Attributes:
        store: name of its store.
        path: its path in the store.
        state: `waiting` (not sent yet), `queued`, `active`, `disk`, `failed` or `released`.
        token: name of its request at the staging service; `None` until it is sent.
        bytes: its size, if known.
        medium: name of its cartridge, or of a family of them, if known.
        position: its position on the medium, if known; any unit.
        place: its place in the queue, if known.
        began_at: time since when it is queued.
        ended_at: time when it came or failed.
        progress_at: time of the last change.
        expires_at: end of its time on disk, as the service was asked.
        pins: number of those that need it.
        reason: why it failed.
    """

    store: str
    path: str
    state: StageState
    token: str | None
    bytes: int | None
    medium: str | None
    position: int | None
    place: int | None
    began_at: datetime
    ended_at: datetime | None
    progress_at: datetime
    expires_at: datetime
    pins: int
    reason: str | None


@dataclass(frozen=True)
class StagePin:
    """An object that somebody needs.

    Attributes:
        owner: name of who needs it.
        expires_at: end of the pin.
        file: the object.
    """

    owner: str
    expires_at: datetime
    file: StageFile


@dataclass(frozen=True)
class StageClaim:
    """What a call has to send to the staging service, as others have not.

    Attributes:
        request: number of the request in the catalogue; `None` if nothing is to be sent.
        paths: the objects to send.
    """

    request: int | None
    paths: list[str]


@dataclass(frozen=True)
class StageChange:
    """What is new of an object: its state, place in the queue and the reason of a failure."""

    path: str
    state: StageState
    place: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class StageOutcome:
    """A request that has ended, as it was measured.

    Attributes:
        files: number of objects that came.
        bytes: their size.
        media: number of media they were on; 1 if unknown.
        first_s: seconds until the first came.
        seconds: seconds until the last came.
    """

    files: int
    bytes: int
    media: int
    first_s: float
    seconds: float
