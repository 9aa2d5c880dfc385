"""Runs of applications, as the catalogue has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

RunState: TypeAlias = Literal["running", "complete", "failed", "stopped"]


@dataclass(frozen=True)
class RunRecord:
    """A run of an application.

    Attributes:
        id: its number in the catalogue.
        name: name of the application.
        number: which run of this application, from 1.
        folder: name of its folder in stores.
        host, pid: machine and process that began it.
        iterations: number of its last iteration.
        ranks: number of processes that share each array.
        state: `running`, `complete`, `failed`, or `stopped`: its process is gone.
        began_at, ended_at: times in UTC; the second is `None` until it ends.
    """

    id: int
    name: str
    number: int
    folder: str
    host: str
    pid: int
    iterations: int
    ranks: int
    state: RunState
    began_at: datetime
    ended_at: datetime | None

    @property
    def label(self) -> str:
        """Return its name for users: `NAME@NUMBER`."""
        return f"{self.name}@{self.number}"


@dataclass(frozen=True)
class RunArrayRecord:
    """An array of a run.

    Attributes:
        id: its number in the catalogue.
        name: its name.
        settings: its settings, as in a file of settings.
        stores: names of the stores that its dumps go to.
    """

    id: int
    name: str
    settings: dict[str, Any]
    stores: list[str]


@dataclass(frozen=True)
class DumpRecord:
    """An array at one iteration, whole and durable in a store.

    Attributes:
        iteration: the iteration.
        slot: its place along the first axis of the stored array.
        store: name of the store.
        bytes: bytes written.
        seconds: time from the begin of writing until it was durable.
        at: that time, UTC.
    """

    iteration: int
    slot: int
    store: str
    bytes: int
    seconds: float
    at: datetime
