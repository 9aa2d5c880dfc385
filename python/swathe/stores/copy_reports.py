"""What became of copies, and of other work on many objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from swathe import _swathe

MOST_FAULTS = 1_000
"""Objects that a report lists by name as not copied."""
MOST_DETOURS = 100
"""Reasons that a report has why objects passed through this machine."""


class CopyFault(NamedTuple):
    """An object that was not copied.

    Attributes:
        name: name of the object.
        kind: class of the error.
        reason: what went wrong.
    """

    name: str
    kind: str
    reason: str


@dataclass
class FaultReport:
    """What work on many objects could not do.

    Attributes:
        failed: number of objects that it could not be done with.
        faults: why; of the first 1,000.
    """

    failed: int = 0
    faults: list[CopyFault] = field(default_factory=list)

    def add_fault(self, name: str, kind: str, reason: str) -> None:
        """Count an object that it could not be done with."""
        self.failed += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(CopyFault(name, kind, reason))


@dataclass
class CopyReport(FaultReport):
    """What became of copies; with the faults of a `FaultReport`.

    Attributes:
        copied: number of objects copied, and verified.
        bytes: bytes written, by this machine or by servers.
        by_servers: number of those objects that servers copied from one to the other: their bytes
            did not pass through this machine.
        detours: for the objects that did pass through, though both ends are servers: number of
            objects by reason; at most 100 reasons.
        skipped: number of objects that `resume` found complete.
        notes: warnings, as when a striped store could not write all parts; the first 1,000.
        elapsed_s: seconds that it took.
    """

    copied: int = 0
    bytes: int = 0
    by_servers: int = 0
    detours: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    notes: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0

    def add_copy(self, outcome: _swathe.CopyOutcome) -> None:
        """Count an object that was copied."""
        self.copied += 1
        self.by_servers += outcome.by_servers
        if outcome.detour is not None:
            count_detour(self.detours, outcome.detour)
        self.notes.extend(outcome.notes[: MOST_FAULTS - len(self.notes)])


def count_detour(detours: dict[str, int], reason: str) -> None:
    """Count an object that passed through this machine though both ends are servers."""
    if len(detours) >= MOST_DETOURS:
        reason = reason if reason in detours else "other reasons"
    detours[reason] = detours.get(reason, 0) + 1
