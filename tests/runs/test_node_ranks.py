"""Ranks on one machine: sockets and shared memory. Threads stand for the processes of MPI here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from swathe.core.errors import OutputError
from swathe.runs.writing import node_ranks
from swathe.runs.writing.node_ranks import Connection, NodeRanks
from swathe.runs.writing.ranks import ThreadRanks

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
SIZE = 3


class Communicator:
    """What `NodeRanks.connect` uses of a communicator of mpi4py, for threads."""

    def __init__(self, ranks: ThreadRanks, *, is_split: bool = False) -> None:
        self.rank, self.size, self._ranks, self._is_split = ranks.rank, ranks.size, ranks, is_split

    def Split_type(self, _kind: int) -> Communicator:  # noqa: N802
        node = Communicator(self._ranks)
        node.size -= self._is_split
        return node

    def Free(self) -> None:  # noqa: N802
        pass

    def bcast(self, value: Any) -> Any:
        return self._ranks.gather(value)[0]

    def allgather(self, value: Any) -> list[Any]:
        return self._ranks.gather(value)


def on_ranks(program: Callable[[NodeRanks], Any]) -> list[Any]:
    """Return what a program returns on each rank, or its error."""

    def run(member: ThreadRanks) -> Any:
        ranks = NodeRanks.connect(Communicator(member))
        assert ranks is not None
        try:
            return program(ranks)
        except OutputError as error:
            return error
        finally:
            ranks.close()

    with ThreadPoolExecutor(SIZE) as pool:
        return list(pool.map(run, ThreadRanks.make(SIZE), timeout=30))


def test_values_and_bytes_of_all_ranks_arrive() -> None:
    def program(ranks: NodeRanks) -> Any:
        for length in (0, 1, 1 << 20):  # longer than a socket takes at once
            values = ["x" * length * (rank + 1) for rank in range(SIZE)]
            assert ranks.gather(values[ranks.rank]) == values
        incoming = []
        for step in range(2):  # the second time there is less to send
            sizes = [(ranks.rank + 1) * (other + 1) >> step for other in range(SIZE)]
            outgoing = np.repeat(np.arange(SIZE, dtype="u1") + 10 * ranks.rank, sizes)
            expected = [(other + 1) * (ranks.rank + 1) >> step for other in range(SIZE)]
            came = ranks.exchange(outgoing, sizes, expected)
            sent = np.repeat(10 * np.arange(SIZE, dtype="u1") + ranks.rank, expected)
            incoming.append(np.array_equal(came, sent))
        return incoming

    assert on_ranks(program) == [[True, True]] * SIZE


@pytest.mark.parametrize("gone", [0, 2])
def test_a_rank_that_is_gone_is_an_error_of_the_others(gone: int) -> None:
    def program(ranks: NodeRanks) -> Any:
        if ranks.rank == gone:
            return None
        for _ in range(2):
            with pytest.raises(OutputError, match="a rank is gone"):
                ranks.gather(None)
        return ranks.exchange(np.empty(0, "u1"), [0] * SIZE, [0] * SIZE)

    outcomes = on_ranks(program)
    assert [str(each) for each in outcomes if each is not None] == [node_ranks.LOSS] * (SIZE - 1)


def test_without_memory_all_ranks_have_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_memory: int, content: np.ndarray) -> None:
        if len(content) == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(node_ranks, "_write_all", write)

    def program(ranks: NodeRanks) -> Any:
        size = int(ranks.rank == 1)
        return ranks.exchange(np.empty(size, "u1"), [size, 0, 0], [0] * SIZE)

    assert {str(each) for each in on_ranks(program)} == {
        "rank 1: no memory to send its elements: No space left on device"
    }


def test_a_step_that_was_interrupted_is_taken_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    receive, interrupted = Connection.receive, threading.Event()

    def stop_once(connection: Connection) -> bytes:
        if threading.current_thread().name == "stop" and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        return receive(connection)

    monkeypatch.setattr(Connection, "receive", stop_once)

    def program(ranks: NodeRanks, stopped: int) -> list[Any]:
        ranks.gather(0)
        if ranks.rank == stopped:
            threading.current_thread().name = "stop"
            with pytest.raises(KeyboardInterrupt):
                ranks.gather("first")
        else:
            assert ranks.gather("first") == ["first"] * SIZE
        return ranks.gather(f"second of {ranks.rank}")

    for stopped in range(2):
        interrupted.clear()
        outcomes = on_ranks(partial(program, stopped=stopped))
        assert outcomes == [[f"second of {rank}" for rank in range(SIZE)]] * SIZE


def test_ranks_on_several_machines_and_without_sockets_are_those_of_mpi(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(is_split: bool) -> list[Any]:
        def run(member: ThreadRanks) -> Any:
            return NodeRanks.connect(Communicator(member, is_split=is_split))

        with ThreadPoolExecutor(SIZE) as pool:
            return list(pool.map(run, ThreadRanks.make(SIZE), timeout=30))

    files = len(os.listdir("/proc/self/fd"))
    assert connect(is_split=True) == [None] * SIZE

    def refuse(*_: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(node_ranks, "_receive_memories", refuse)
    assert connect(is_split=False) == [None] * SIZE
    assert len(os.listdir("/proc/self/fd")) == files
