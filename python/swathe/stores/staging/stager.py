"""What every staging service does: say where objects are, bring them to disk, let them go.

Paths are those of objects in the store, as in `NAME:path`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from swathe.core.errors import (
    AccessError,
    NotFoundError,
    OptionError,
    SourceError,
    StoreSettingsError,
)

SERVICE_FAULTS = (AccessError, NotFoundError, OptionError, SourceError, StoreSettingsError)
"""What a staging service may raise: others are asked nevertheless."""
Locality: TypeAlias = Literal["disk", "nearline", "lost", "unavailable"]
"""On disk and readable; on tape only; nowhere; on tape that cannot be used now."""
FileState: TypeAlias = Literal["queued", "active", "disk", "failed"]


@dataclass(frozen=True)
class ObjectPlace:
    """Where an object is.

    Attributes:
        path: its path in the store.
        locality: where it is.
        bytes: its size, if known.
        medium: name of its cartridge, or of a family of them, if known.
        position: its position on the medium, if known; any unit.
        reason: why it is lost or unavailable.
    """

    path: str
    locality: Locality
    bytes: int | None = None
    medium: str | None = None
    position: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class StageProgress:
    """State of an object of a request.

    Attributes:
        path: its path in the store.
        state: `queued`, `active`, `disk` or `failed`, as the service says.
        place: its place in the queue, if known.
        reason: why it failed.
    """

    path: str
    state: FileState
    place: int | None = None
    reason: str | None = None


class Stager(ABC):
    """A staging service.

    Attributes:
        most_paths: number of objects that a request may have.
        confirms: whether `poll` is the result of looking where the objects are. If not, an object
            that is said to be on disk is looked for there.
    """

    most_paths: ClassVar[int] = 1000
    confirms: ClassVar[bool] = False

    @abstractmethod
    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are.

        Raises:
            StagingError: If the service fails.
        """

    @abstractmethod
    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        """Ask for objects, in this order, at most `most_paths`; return the name of the request.

        Objects on disk stay there for this time from now on, seconds.

        Raises:
            StagingError: If the service fails or refuses.
        """

    @abstractmethod
    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        """Return the states of objects of a request, as far as the service says.

        Raises:
            StagingError: If the service fails.
        """

    def renew(self, token: str, paths: Sequence[str], lifetime_s: float) -> str:
        """Let objects stay on disk for this time from now on, seconds.

        Returns:
            The request that keeps them there: a new one, if the service cannot extend the old one.

        Raises:
            StagingError: If the service fails or refuses.
        """
        del token
        return self.stage(paths, lifetime_s)

    @abstractmethod
    def release(self, token: str, paths: Sequence[str]) -> None:
        """Say that objects of a request are needed no more; those to come are cancelled.

        Raises:
            StagingError: If the service fails or refuses.
        """

    @abstractmethod
    def evict(self, paths: Sequence[str]) -> None:
        """Remove objects from disk; their copies on tape stay.

        Raises:
            StagingError: If the service fails or cannot do it.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close connections."""


def divide(paths: Sequence[str], most: int) -> list[Sequence[str]]:
    """Return paths in parts of at most this number, in their order."""
    return [paths[at : at + most] for at in range(0, len(paths), most)]


def in_tape_order(places: Mapping[str, ObjectPlace]) -> list[str]:
    """Return paths in an order that mounts each medium once and reads it forwards.

    Objects of one medium stand together, by position where that is known, else by name. Media have
    the order of their names; objects of unknown media come last, by name.
    """

    def key(path: str) -> tuple[bool, str, bool, int, str]:
        place = places[path]
        position = place.position
        return (place.medium is None, place.medium or "", position is None, position or 0, path)

    return sorted(places, key=key)
