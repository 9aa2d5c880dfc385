"""Objects that a store of kind `cache:` keeps near, as the catalogue has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

NearState: TypeAlias = Literal["fetching", "writing", "cached", "unwritten", "stale", "leaving"]
READABLE: tuple[NearState, ...] = ("cached", "unwritten")
"""States of objects that are read: equal to their source, or not yet written to it."""
IN_WORK: tuple[NearState, ...] = ("fetching", "writing", "leaving")
"""States of objects that a process works on. If it has ended, what is left of them is removed."""


@dataclass(frozen=True)
class NearObject:
    """A near copy of an object.

    Attributes:
        id: its number.
        path: path of the object in the store.
        token: the folder of the copy, of its own.
        state: `fetching` or `writing` (not whole yet), `cached`, `unwritten` (not written to its
            source yet), `stale` (an older version) or `leaving` (being removed).
        bytes: its size.
        version: version of the source that it is a copy of; empty if it is not written yet.
        near_version: version of the copy itself; `None` if it is not whole.
        owner: process that works on it.
        used_at: time of the last use.
        uses: number of uses.
        fetch_s: seconds that it took to come; `None` if it was written here.
        checked_at: time when the source was last seen to have this version.
        pins: number of those that need it, readers included.
    """

    id: int
    path: str
    token: str
    state: NearState
    bytes: int
    version: str
    near_version: str | None
    owner: str | None
    used_at: datetime
    uses: int
    fetch_s: float | None
    checked_at: datetime | None
    pins: int


@dataclass(frozen=True)
class NearPin:
    """A readable copy that somebody needs.

    Attributes:
        owner: name of who needs it.
        name: the object, as `NAME:path` of the cache.
        expires_at: end of the pin.
    """

    owner: str
    name: str
    expires_at: datetime


@dataclass(frozen=True)
class RoomClaim:
    """Outcome of a claim of room for an object.

    Attributes:
        id: number of the new copy; `None` if there is no room, or another reader fetches it.
        has_rival: whether another reader fetches it, or has just done so.
        lacking_bytes: bytes that have to leave first.
    """

    id: int | None = None
    has_rival: bool = False
    lacking_bytes: int = 0


@dataclass(frozen=True)
class CacheUsage:
    """What a cache has, and what it did.

    Attributes:
        objects: number of objects that are kept, or on their way.
        bytes: their size.
        unwritten_objects: number of those that are not written to their source yet.
        unwritten_bytes: their size.
        pinned_bytes: size of those that are pinned or being read.
        hits: number of opens that found a copy.
        misses: number of opens that did not.
        fetched_bytes: bytes that came from the source.
        evictions: number of copies that were evicted.
    """

    objects: int = 0
    bytes: int = 0
    unwritten_objects: int = 0
    unwritten_bytes: int = 0
    pinned_bytes: int = 0
    hits: int = 0
    misses: int = 0
    fetched_bytes: int = 0
    evictions: int = 0
