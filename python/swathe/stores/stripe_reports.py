"""What is found of striped stores: their servers, the state of objects, repairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from swathe.catalog.records.stripes import StripeWork
from swathe.stores.copies import MOST_FAULTS, FaultReport

if TYPE_CHECKING:
    from collections.abc import Mapping

ServerState: TypeAlias = Literal["reachable", "missing", "no answer", "unreachable"]
State: TypeAlias = Literal["whole", "missing", "damaged", "outdated", "unreachable"]


@dataclass(frozen=True)
class PieceStatus:
    """The state of a part or of a record on one server.

    Attributes:
        server: the server, as `NAME:prefix`.
        state: `whole`, `missing`, `damaged`, `outdated` (of an earlier version) or `unreachable`.
        why: reason, if it is not whole.
        damage_starts: bytes of a part at which damaged ranges begin, at most 100. A range is what
            one checksum is of, 512 bytes to 1 MiB; `why` says how many.
    """

    server: str
    state: State
    why: str | None = None
    damage_starts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ObjectCheck:
    """The state of one object.

    Attributes:
        path: its name, `NAME:path`.
        size: size in bytes.
        generation: number of its version.
        writer: who wrote this version.
        block_bytes: size of a block.
        data: number of servers whose parts suffice to read it.
        parity: number of further servers.
        parts: its parts.
        records: its records.
        is_readable: whether it can be read as it is.
    """

    path: str
    size: int
    generation: int
    writer: str
    block_bytes: int
    data: int
    parity: int
    parts: list[PieceStatus]
    records: list[PieceStatus]
    is_readable: bool

    @property
    def is_whole(self) -> bool:
        """Check whether all parts and records are whole."""
        return not self.faults

    @property
    def faults(self) -> list[PieceStatus]:
        """Return the parts and records that are not whole."""
        return [each for each in (*self.parts, *self.records) if each.state != "whole"]

    def reason(self) -> str:
        """Return what is not whole, as text."""
        texts = []
        for kind, pieces in (("part", self.parts), ("record", self.records)):
            for each in pieces:
                if each.state != "whole":
                    why = f" ({each.why})" if each.why else ""
                    texts.append(f"{kind} on {each.server} {each.state}{why}")
        return "; ".join(texts)


@dataclass(frozen=True)
class Leftover:
    """A part that belongs to no record.

    Attributes:
        server: the server.
        path: its path there.
        bytes: its size; `None` if the listing does not give it.
        is_replaced: whether it is of a version that was replaced or removed; else it is of a write
            that did not end.
        is_removed: whether it was removed now.
    """

    server: str
    path: str
    bytes: int | None
    is_replaced: bool
    is_removed: bool


@dataclass
class CheckReport(FaultReport):
    """What a check saw; with the faults of a `FaultReport`, objects that could not be checked.

    Attributes:
        objects: number of objects, with those that could not be checked or listed.
        whole: number of those that are whole.
        incomplete: number of those that are not whole, but readable.
        lost: number of those that cannot be read now.
        checks: those that are not whole; the first 1,000.
        leftovers: parts that belong to no object.
        elapsed_s: seconds that it took.
        notes: what else there is to say, as of servers that were left out of the listing.
        moves: number of objects with parts on other servers than they were written to.
        first_move: where a part of the first of them is.
    """

    objects: int = 0
    whole: int = 0
    incomplete: int = 0
    lost: int = 0
    checks: list[ObjectCheck] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    elapsed_s: float = 0.0
    notes: list[str] = field(default_factory=list)
    moves: int = 0
    first_move: str = ""

    @property
    def is_whole(self) -> bool:
        """Check whether all objects were checked and are whole."""
        return self.whole == self.objects

    def add_check(self, check: ObjectCheck) -> None:
        """Count an object that was checked."""
        self.objects += 1
        moves = [each.why for each in check.parts if each.state == "whole" and each.why]
        if moves:
            self.moves += 1
            self.first_move = self.first_move or moves[0]
        if check.is_whole:
            self.whole += 1
            return
        if check.is_readable:
            self.incomplete += 1
        else:
            self.lost += 1
        if len(self.checks) < MOST_FAULTS:
            self.checks.append(check)


@dataclass
class RepairReport(FaultReport):
    """What a repair did; with the faults of a `FaultReport`, objects that are not whole.

    Attributes:
        skipped: number of objects that were whole.
        repairs: number of objects that are whole now.
        parts: number of parts made again.
        records: number of records written again.
        bytes_read: bytes read.
        written_bytes: bytes written.
        leftovers: parts that belonged to no object, and whether each was removed.
        elapsed_s: seconds that it took.
        notes: what else there is to say.
    """

    skipped: int = 0
    repairs: int = 0
    parts: int = 0
    records: int = 0
    bytes_read: int = 0
    written_bytes: int = 0
    leftovers: list[Leftover] = field(default_factory=list)
    elapsed_s: float = 0.0
    notes: list[str] = field(default_factory=list)


MOST_DISK_BYTES = 1 << 60
"""Sizes above it are no sizes: servers without a limit tell such numbers."""


def space_of(values: Mapping[str, Any]) -> Space:
    """Return the room on a server from what it tells.

    Numbers are impossible if more is free than there is, or if they are above MOST_DISK_BYTES. The
    sum of disks is so, too, if the numbers of one are.

    Args:
        values: fields of `Space`, with disks as mappings.
    """
    disks = [
        DiskSpace(each["name"], each["is_up"], *_room(each["free_bytes"], each["total_bytes"]))
        for each in sorted(values["disks"], key=itemgetter("name"))
    ]
    if any(disk.is_up and disk.free_bytes is None for disk in disks):
        return Space(None, None, disks)
    return Space(*_room(values["free_bytes"], values["total_bytes"]), disks)


def _room(free_bytes: int, total_bytes: int | None) -> tuple[int | None, int | None]:
    """Return free and all bytes if they are possible, else None for both."""
    most = MOST_DISK_BYTES if total_bytes is None else min(total_bytes, MOST_DISK_BYTES)
    is_possible = free_bytes <= most and (total_bytes or 0) <= MOST_DISK_BYTES
    return (free_bytes, total_bytes) if is_possible else (None, None)


@dataclass(frozen=True)
class DiskSpace:
    """Room on one disk of a server.

    Attributes:
        name: name of the disk, as its server has it.
        is_up: whether the disk is there.
        free_bytes: bytes that can be written; `None` if the server tells impossible numbers.
        total_bytes: all its bytes; `None` in the same case.
        id: its number, which no other disk has; empty if its server does not tell.
    """

    name: str
    is_up: bool
    free_bytes: int | None
    total_bytes: int | None
    id: str = ""


@dataclass(frozen=True)
class Space:
    """Room on a server.

    Attributes:
        free_bytes: bytes that can be written; `None` if the server tells impossible numbers.
        total_bytes: all its bytes; `None` in the same case, and if it does not tell.
        disks: its disks, if the server tells them apart.
    """

    free_bytes: int | None
    total_bytes: int | None
    disks: list[DiskSpace] = field(default_factory=list)


@dataclass(frozen=True)
class ServerStatus:
    """A server of a striped store.

    Attributes:
        server: the server, as `NAME:prefix`.
        url: its URL.
        is_reachable: whether it could be listed.
        why: reason, if it could not.
        parts: number of parts on it.
        records: number of records on it.
        bytes: size of both.
        space: room on it; `None` if it does not tell, as buckets.
        space_error: reason, if that could not be asked.
        state: `reachable`, `missing` (its folder does not exist or is empty, and others have
            objects), `no answer` (it said nothing in time) or `unreachable`.
        same_as: another server that is the same place; `None` if none is known to be.
    """

    server: str
    url: str
    is_reachable: bool
    why: str | None
    parts: int
    records: int
    bytes: int
    space: Space | None = None
    space_error: str | None = None
    state: ServerState = "reachable"
    same_as: str | None = None


@dataclass(frozen=True)
class StripeStatus:
    """The servers of a striped store.

    Attributes:
        name: name of the store.
        data: number of servers whose parts suffice to read an object.
        parity: number of servers that may be lost.
        block_bytes: size of a block.
        servers: its servers.
        work: repairs and rebalances that run, or were stopped before their end.
    """

    name: str
    data: int
    parity: int
    block_bytes: int
    servers: list[ServerStatus]
    work: list[StripeWork] = field(default_factory=list)

    @property
    def lost_count(self) -> int:
        """Return the number of servers that cannot be reached."""
        return sum(not each.is_reachable for each in self.servers)
