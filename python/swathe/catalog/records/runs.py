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
        slot: its place along the first axis of the stored array; of mode `append`, its first row.
        store: name of the store.
        bytes: bytes written.
        seconds: time until it was durable, from the begin of writing, or from when the dumps of
            the iteration before were durable in this store.
        at: that time, UTC.
        target: the store that it is to be moved to, if it is on its way (`via`).
    """

    iteration: int
    slot: int
    store: str
    bytes: int
    seconds: float
    at: datetime
    target: str | None = None


@dataclass(frozen=True)
class DumpTotals:
    """The dumps of an array in a store, in numbers.

    Attributes:
        array_id: the array.
        store: name of the store.
        dumps: how many.
        bytes: their size.
        seconds: sum of the times of writing, which overlap.
        to_drain: how many of them are to be moved on (`via`).
        first, last: least and largest iteration.
    """

    array_id: int
    store: str
    dumps: int
    bytes: int
    seconds: float
    to_drain: int
    first: int
    last: int


@dataclass(frozen=True)
class RecentDump:
    """A dump that a run wrote.

    Attributes:
        run_id: the run.
        ranks: number of its processes.
        settings: settings of the array.
        dump: the dump.
    """

    run_id: int
    ranks: int
    settings: dict[str, Any]
    dump: DumpRecord


@dataclass(frozen=True)
class FailoverRecord:
    """A store that an array of a run has left.

    Attributes:
        store: name of the store.
        next_stores: names of the stores that its dumps go to from then on.
        iteration: iteration of the first of these dumps.
        reason: why.
        at: when, UTC.
    """

    store: str
    next_stores: tuple[str, ...]
    iteration: int
    reason: str
    at: datetime
