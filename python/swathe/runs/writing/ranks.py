"""The processes or threads that share the arrays of a run, whatever starts them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.writing.node_ranks import NodeRanks

if TYPE_CHECKING:
    from numpy.typing import NDArray


LINE_BYTES, LENGTH_BYTES = 1024, 8
"""What a process of MPI says at once: a length, and a value. A longer value is sent besides."""
POLLS = 20
"""How often a process of MPI asks whether the others have come, before it pauses between."""
PAUSE_PART = 0.1
"""Its pauses, relative to the time that it has waited."""
LONGEST_PAUSE_S = 1e-3


class Ranks(Protocol):
    """What a run needs of its processes. Each call is made by all of them, in the same order.

    Attributes:
        rank: number of this one, from 0.
        size: how many there are.
    """

    rank: int
    size: int

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""

    def close(self) -> None:
        """Free what it holds, such as a communicator of MPI. It is the last call."""

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank, and return those that came from each, in the order of ranks.

        Args:
            outgoing: the bytes for rank 0, then those for rank 1, and so on.
            sizes: number of bytes for each rank.
            incoming_sizes: number of bytes that come from each rank.
        """


class OneRank:
    """A process that has its arrays alone."""

    rank, size = 0, 1

    def gather(self, value: Any) -> list[Any]:
        """Return the value."""
        return [value]

    def close(self) -> None:
        """Do nothing."""

    def exchange(
        self, outgoing: NDArray[np.uint8], _sizes: Sequence[int], _incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Return the bytes."""
        return outgoing


class MpiRanks:
    """The processes of an MPI communicator of mpi4py.

    A process that waits in a call of MPI keeps its core busy, which its own threads, that write, or
    other ranks may need: so it waits for the others with pauses, before elements are sent.
    """

    def __init__(self, communicator: Any) -> None:
        """Duplicate the communicator, so that messages of the application are never mixed in."""
        self._comm = communicator.Dup()
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        from mpi4py import MPI

        content = MPI.pickle.dumps(value)
        line = len(content).to_bytes(LENGTH_BYTES, "little") + content
        lines = np.empty((self.size, LINE_BYTES), np.uint8)
        first = np.frombuffer(line[:LINE_BYTES].ljust(LINE_BYTES), np.uint8)
        _wait(self._comm.Iallgather(first, lines))
        sizes = [int.from_bytes(each[:LENGTH_BYTES].tobytes(), "little") for each in lines]
        values = list(lines[:, LENGTH_BYTES:])
        if max(sizes) > LINE_BYTES - LENGTH_BYTES:
            contents = np.empty(sum(sizes), np.uint8)
            own = np.frombuffer(content, np.uint8)
            self._comm.Allgatherv(own, [contents, sizes])
            values = np.split(contents, np.cumsum(sizes)[:-1])
        return [MPI.pickle.loads(each[:size]) for each, size in zip(values, sizes, strict=True)]

    def close(self) -> None:
        """Free the copy of the communicator."""
        self._comm.Free()

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank by `MPI_Alltoallv`; see `Ranks`."""
        from mpi4py import MPI

        incoming = np.empty(sum(incoming_sizes), np.uint8)
        self._comm.Alltoallv(
            [outgoing, list(sizes), MPI.BYTE], [incoming, list(incoming_sizes), MPI.BYTE]
        )
        return incoming


def _wait(request: Any) -> None:
    """Wait for a request of MPI; other threads and processes get the core meanwhile."""
    began_s = time.perf_counter()
    for _ in range(POLLS):
        if request.Test():
            return
    while not request.Test():
        time.sleep(min(PAUSE_PART * (time.perf_counter() - began_s), LONGEST_PAUSE_S))


class ThreadRanks:
    """One of several threads of this process that share arrays."""

    def __init__(self, group: _ThreadGroup, rank: int) -> None:
        """Set the group and the number of this thread."""
        self._group, self.rank, self.size = group, rank, group.size

    @classmethod
    def make(cls, size: int) -> list[ThreadRanks]:
        """Return the ranks of a new group of threads, one for each.

        Raises:
            OptionError: If the number is invalid.
        """
        if not 1 <= size <= 1024:
            raise OptionError(f"threads: expected 1 to 1024, found {size}")
        group = _ThreadGroup(size, _ThreadFamily())
        return [cls(group, rank) for rank in range(size)]

    def duplicate(self) -> ThreadRanks:
        """Return ranks of the same threads whose steps are not mixed with these; all call it."""
        first = self.rank == 0
        group = self.gather(_ThreadGroup(self.size, self._group.family) if first else None)[0]
        return ThreadRanks(group, self.rank)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        return self._group.gather(self.rank, value)

    def close(self) -> None:
        """Forget the group."""
        self._group.close()

    def abort(self) -> None:
        """End all groups of these threads: who waits gets a `threading.BrokenBarrierError`."""
        self._group.abort()

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], _incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank; see `Ranks`."""
        ends = np.cumsum(sizes)
        parts = [outgoing[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        incoming = np.concatenate([row[self.rank] for row in self.gather(parts)])
        self.gather(None)  # nobody changes its bytes before all have them
        return incoming


class _ThreadFamily:
    """Groups of the same threads: that of the application, and one for each of its runs.

    Attributes:
        changed: condition that guards all groups.
        groups: the groups, that of the application first.
        waiting: number of threads that wait in any of them.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.groups: list[_ThreadGroup] = []
        self.waiting = 0


class _ThreadGroup:
    """Values that threads give each other, all at the same time.

    If all threads wait, some of them elsewhere, a thread has left: the oldest group that is waited
    for is broken then, so that none waits for ever.
    """

    def __init__(self, size: int, family: _ThreadFamily) -> None:
        self.size, self.family = size, family
        self._entries: list[Any] = [None] * size
        self._values: list[Any] = []
        self._count = self._round = 0
        self._is_broken = False
        with family.changed:
            family.groups.append(self)

    def gather(self, rank: int, value: Any) -> list[Any]:
        with self.family.changed:
            if self._is_broken:
                raise threading.BrokenBarrierError
            self._entries[rank] = value
            self._count += 1
            number = self._round
            if self._count == self.size:
                # Those who wait take them before anyone gives another value.
                self._values = list(self._entries)
                self._round += 1
                self._wake(self._count - 1)
                return self._values
            self.family.waiting += 1
            if self.family.waiting == self.size:
                next(each for each in (*self.family.groups, self) if each._count)._break()
            while self._round == number and not self._is_broken:
                self.family.changed.wait()
            if self._round == number:
                raise threading.BrokenBarrierError
            return self._values

    def abort(self) -> None:
        """Break all groups of these threads."""
        with self.family.changed:
            for group in self.family.groups:
                group._break()

    def close(self) -> None:
        """Forget the group, which nobody uses any more."""
        with self.family.changed, suppress(ValueError):  # another thread has
            self.family.groups.remove(self)

    def _break(self) -> None:
        self._is_broken = True
        self._wake(self._count)

    def _wake(self, count: int) -> None:
        self._count = 0
        self.family.waiting -= count
        self.family.changed.notify_all()


def ranks_of(communicator: Any) -> Ranks:
    """Return the ranks of a communicator of mpi4py, of a `Ranks`, or of this process alone.

    Those of MPI and of threads are copies, so that steps of the application are never mixed in.

    Raises:
        OptionError: If it is none of these.
    """
    if communicator is None:
        return OneRank()
    if hasattr(communicator, "Alltoallv"):
        return NodeRanks.connect(communicator) or MpiRanks(communicator)
    if isinstance(communicator, ThreadRanks):
        return communicator.duplicate()
    if all(hasattr(communicator, name) for name in ("rank", "size", "gather", "exchange", "close")):
        ranks: Ranks = communicator
        return ranks
    raise OptionError(
        f"comm: expected a communicator of mpi4py, or ranks of swathe.runs, found "
        f"{type(communicator).__name__}"
    )
