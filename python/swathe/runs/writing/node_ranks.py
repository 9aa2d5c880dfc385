"""Processes of MPI on one machine that share the arrays of a run: sockets and memory of the kernel.

A process that waits in a call of MPI polls. With more processes than cores it takes the time of
those that work, and what it waits for comes in its next turn only. A process that waits for a
socket sleeps, and wakes up when there is something to do. So MPI brings these processes together,
and is not used after that.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OutputError

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

log = logging.getLogger(__name__)

LENGTH_BYTES = 8
"""Bytes of the length that precedes each message."""
RECEIVE_BYTES = 1 << 16
DESCRIPTORS = 200
"""Open files that one message of a socket carries; Linux lets 253."""
MARK = b"m"
"""A message with open files has a byte."""
LOSS = "the run has failed: a rank is gone"


class Connection:
    """A socket to another process; a call goes on with what an interrupt has left half done."""

    def __init__(self, peer: socket.socket) -> None:
        """Set the socket."""
        self.socket = peer
        self._incoming, self._outgoing = bytearray(), bytearray()

    def send(self, content: bytes = b"") -> None:
        """Send a message; without content, only what is left of the messages before."""
        if content:
            self._outgoing += len(content).to_bytes(LENGTH_BYTES, "little") + content
        while self._outgoing:
            count = self.socket.send(self._outgoing)
            del self._outgoing[:count]

    def receive(self) -> bytes:
        """Return the next message.

        Raises:
            EOFError: If the other process is gone.
        """
        end = LENGTH_BYTES
        while len(self._incoming) < end:
            part = self.socket.recv(RECEIVE_BYTES)
            if not part:
                raise EOFError
            self._incoming += part
            if len(self._incoming) >= LENGTH_BYTES:
                end = LENGTH_BYTES + int.from_bytes(self._incoming[:LENGTH_BYTES], "little")
        content = bytes(self._incoming[LENGTH_BYTES:end])
        del self._incoming[:end]
        return content


class NodeRanks:
    """One of several processes of this machine that share arrays; see `Ranks`.

    Values go to rank 0 and from there to all. Elements go through memory that each process has for
    those that it sends, and that the others read.
    """

    def __init__(
        self,
        rank: int,
        connections: Sequence[Connection],
        memories: Sequence[int],
        resources: ExitStack,
    ) -> None:
        """Set what `connect` has made.

        Args:
            rank: number of this one, from 0.
            connections: of rank 0 to the others in their order; of those to rank 0.
            memories: open files in memory, of each rank.
            resources: closes all of these.
        """
        self.rank, self.size = rank, len(memories)
        self._connections, self._memories, self._resources = connections, memories, resources
        self._memory = memories[rank]
        self._has_sent = self._is_waiting = self._is_broken = False
        # Of rank 0: what came in this step, and how many others have got all of it.
        self._contents: list[bytes] = []
        self._replies = 0

    @classmethod
    def connect(cls, communicator: Any) -> Self | None:
        """Return the processes of a communicator of mpi4py, if all are on one machine; else `None`.

        All of them call it, and get the same answer.
        """
        from mpi4py import MPI

        node = communicator.Split_type(MPI.COMM_TYPE_SHARED)
        is_one_machine = node.size == communicator.size
        node.Free()
        if not is_one_machine or communicator.size == 1:
            return None
        rank, size, ranks = communicator.rank, communicator.size, []
        folder, resources = ExitStack(), ExitStack()
        with folder, resources:
            # Only this user may enter the folder.
            own = folder.enter_context(tempfile.TemporaryDirectory(prefix="swathe-run-"))
            path = communicator.bcast(os.path.join(own, "ranks"))
            door = folder.enter_context(socket.socket(socket.AF_UNIX))

            def listen() -> None:
                if rank == 0:
                    door.bind(path)
                    door.listen(size)

            def call() -> None:
                if rank > 0:
                    door.connect(path)

            def meet() -> None:
                make = cls._accept if rank == 0 else cls._join
                ranks.append(make(door, rank, size, resources))

            for step in (listen, call, meet):
                reasons = communicator.allgather(_fault(step))
                if any(reasons):
                    log.info("ranks use MPI, not sockets: %s", next(filter(None, reasons)))
                    return None
            ranks[0]._resources = resources.pop_all()
        return ranks[0]

    @classmethod
    def _accept(cls, door: socket.socket, rank: int, size: int, resources: ExitStack) -> Self:
        """Return rank 0, which the others have called: all get the memories of all."""
        connections, memories = {}, {rank: _new_memory(resources)}
        for _ in range(1, size):
            connection = Connection(resources.enter_context(door.accept()[0]))
            (memory,) = _receive_memories(connection.socket, 1, resources)
            other = int.from_bytes(connection.receive(), "little")
            connections[other], memories[other] = connection, memory
        by_rank = [memories[each] for each in range(size)]
        for connection in connections.values():
            for first in range(0, size, DESCRIPTORS):
                some = by_rank[first : first + DESCRIPTORS]
                socket.send_fds(connection.socket, [MARK], some)
        return cls(rank, [connections[each] for each in range(1, size)], by_rank, resources)

    @classmethod
    def _join(cls, door: socket.socket, rank: int, size: int, resources: ExitStack) -> Self:
        """Return another rank, which has called rank 0."""
        connection = Connection(resources.enter_context(door.dup()))
        memory = _new_memory(resources)
        socket.send_fds(connection.socket, [MARK], [memory])
        connection.send(rank.to_bytes(LENGTH_BYTES, "little"))
        memories = _receive_memories(connection.socket, size, resources)
        return cls(rank, [connection], memories, resources)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order.

        Raises:
            OutputError: If a rank is gone.
        """
        self._check()
        content = pickle.dumps(value)
        try:
            contents = self._collect(content) if self.rank == 0 else self._ask(content)
        except (OSError, EOFError) as error:
            self._is_broken = True
            self.close()  # so that the others get an error, too
            raise OutputError(LOSS) from error
        if self._has_sent:
            # All have read it, and begun the next step.
            os.ftruncate(self._memory, 0)
            self._has_sent = False
        return [pickle.loads(each) for each in contents]

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank, through memory; see `Ranks`.

        Raises:
            OutputError: If a rank has no memory for them, or is gone.
        """
        if self._has_sent:
            self.gather(None)  # until all have read what came before
        self._check()
        starts = [0, *accumulate(sizes)]
        reason = None
        try:
            _write_all(self._memory, outgoing)
        except OSError as error:
            reason = error.strerror
        outcomes = self.gather((starts, reason))
        for rank, (_, reason) in enumerate(outcomes):
            if reason is not None:
                raise OutputError(f"rank {rank}: no memory to send its elements: {reason}")
        incoming, at = np.empty(sum(incoming_sizes), np.uint8), 0
        for memory, (starts, _), size in zip(self._memories, outcomes, incoming_sizes, strict=True):
            _read_all(memory, incoming[at : at + size], starts[self.rank])
            at += size
        self._has_sent = True
        return incoming

    def close(self) -> None:
        """Close sockets and memories."""
        self._resources.close()

    def _check(self) -> None:
        if self._is_broken:
            raise OutputError(LOSS)

    def _collect(self, content: bytes) -> list[bytes]:
        """Return on rank 0 the messages of all, and send them to all."""
        if self._contents:
            self._finish()  # a step that was interrupted
        self._contents = [content]
        return self._finish()

    def _finish(self) -> list[bytes]:
        for connection in self._connections[len(self._contents) - 1 :]:
            self._contents.append(connection.receive())
        reply = pickle.dumps(self._contents)
        for connection in self._connections[self._replies :]:
            self._replies += 1
            connection.send(reply)
        for connection in self._connections:
            connection.send()  # the rest of what was interrupted
        contents, self._contents, self._replies = self._contents, [], 0
        return contents

    def _ask(self, content: bytes) -> list[bytes]:
        """Send a message to rank 0, and return those of all."""
        (connection,) = self._connections
        if self._is_waiting:  # for the answer to a step that was interrupted
            connection.send()
            connection.receive()
        self._is_waiting = True
        connection.send(content)
        contents: list[bytes] = pickle.loads(connection.receive())
        self._is_waiting = False
        return contents


def _fault(step: Callable[[], None]) -> str | None:
    """Take a step; return why it cannot be taken."""
    try:
        step()
    except (OSError, EOFError) as error:
        return str(error) or "a process is gone"
    return None


def _new_memory(resources: ExitStack) -> int:
    """Return a new open file in memory."""
    memory = os.memfd_create("swathe-run")
    resources.callback(os.close, memory)
    return memory


def _receive_memories(peer: socket.socket, count: int, resources: ExitStack) -> list[int]:
    """Return open files that another process has sent.

    Raises:
        EOFError: If it sends fewer.
    """
    memories: list[int] = []
    while len(memories) < count:
        most = min(count - len(memories), DESCRIPTORS)
        _, some, _, _ = socket.recv_fds(peer, len(MARK), most)
        if not some:
            raise EOFError
        for memory in some:
            resources.callback(os.close, memory)
        memories += some
    return memories


def _write_all(memory: int, content: NDArray[np.uint8]) -> None:
    """Write bytes to the begin of a memory.

    Raises:
        OSError: If there is no room.
    """
    at = 0
    while at < len(content):
        at += os.pwrite(memory, content[at:].data, at)


def _read_all(memory: int, content: NDArray[np.uint8], start: int) -> None:
    """Fill an array with bytes of a memory.

    Raises:
        OutputError: If it ends before.
    """
    at = 0
    while at < len(content):
        count = os.preadv(memory, [content[at:].data], start + at)
        if not count:
            raise OutputError(LOSS)
        at += count
