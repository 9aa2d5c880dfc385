"""The processes or threads that share the arrays of a run, whatever starts them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    """The processes of an MPI communicator of mpi4py."""

    def __init__(self, communicator: Any) -> None:
        """Duplicate the communicator, so that messages of the application are never mixed in."""
        self._comm = communicator.Dup()
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        return list(self._comm.allgather(value))

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
        group = _ThreadGroup(size)
        return [cls(group, rank) for rank in range(size)]

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        return self._group.gather(self.rank, value)

    def close(self) -> None:
        """Do nothing."""

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], _incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank; see `Ranks`."""
        ends = np.cumsum(sizes)
        parts = [outgoing[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        incoming = np.concatenate([row[self.rank] for row in self.gather(parts)])
        self.gather(None)  # nobody changes its bytes before all have them
        return incoming


class _ThreadGroup:
    """Values that threads give each other, all at the same time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: list[Any] = [None] * size
        self._barrier = threading.Barrier(size)

    def gather(self, rank: int, value: Any) -> list[Any]:
        self._values[rank] = value
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        return values


def ranks_of(communicator: Any) -> Ranks:
    """Return the ranks of a communicator of mpi4py, of a `Ranks`, or of this process alone.

    Raises:
        OptionError: If it is none of these.
    """
    if communicator is None:
        return OneRank()
    if hasattr(communicator, "Alltoallv"):
        return MpiRanks(communicator)
    if all(hasattr(communicator, name) for name in ("rank", "size", "gather", "exchange", "close")):
        ranks: Ranks = communicator
        return ranks
    raise OptionError(
        f"comm: expected a communicator of mpi4py, or ranks of swathe.runs, found "
        f"{type(communicator).__name__}"
    )
