"""Workers of a Dask cluster as the ranks of a run.

Values go to rank 0 and from there to all; elements go from worker to worker, on the connections of
the cluster, encrypted if these are. Who waits asks now and then whether the others are there: one
that has failed is an error of all.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import get_worker
from distributed.protocol.serialize import to_serialize
from distributed.utils import sync

from swathe.core.errors import OptionError, OutputError

if TYPE_CHECKING:
    from distributed import Client
    from numpy.typing import NDArray

CHECK_S = 2.0
"""Seconds of waiting after which others are asked whether they are there."""
ANSWER_S = 30.0
"""Seconds for that answer: a process that is stopped gives none."""
BEGIN_S = 300.0
"""Seconds that a rank may begin after one that waits for it."""
HEAD = 0
"""The rank that gathers values."""


class DaskRanks:
    """One of several workers that share arrays. It is passed to a task that runs there.

    Attributes:
        rank, size: its number, and how many there are.
        worker: address of its worker, for `client.submit(..., workers=)`.
    """

    def __init__(self, group: str, rank: int, workers: Sequence[str]) -> None:
        """Set the group, the number of this rank, and the addresses of all."""
        self.rank, self.size, self.worker = rank, len(workers), workers[rank]
        self._group, self._workers, self._step = group, tuple(workers), 0

    @classmethod
    def make(cls, client: Client, size: int) -> list[DaskRanks]:
        """Return the ranks of a new group of workers, one for each.

        Example:
            >>> ranks = DaskRanks.make(client, 4)
            >>> futures = [client.submit(simulate, each, workers=each.worker) for each in ranks]

        Args:
            client: client of the cluster.
            size: how many.

        Raises:
            OptionError: If the cluster has fewer workers.
        """
        workers = sorted(client.nthreads())
        if not 1 <= size <= len(workers):
            raise OptionError(
                f"ranks: expected 1 to {len(workers)}, the workers of the cluster, found {size}"
            )
        group = token_hex(8)
        client.run(_open, group, workers[:size], workers=workers[:size])
        return [cls(group, rank, workers[:size]) for rank in range(size)]

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order.

        Raises:
            OutputError: If a rank has failed.
        """
        own = pickle.dumps(value)
        if self.rank == HEAD:
            answer = pickle.dumps(self._receive(range(1, self.size), {HEAD: own}))
            self._send(dict.fromkeys(range(1, self.size), answer))
        else:
            self._send({HEAD: own})
            (answer,) = self._receive([HEAD])
        self._step += 1
        return [pickle.loads(each) for each in pickle.loads(answer)]

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank; see `Ranks`.

        Raises:
            OutputError: If a rank has failed.
        """
        ends = np.cumsum(sizes)
        parts = {
            rank: outgoing[end - size : end]
            for rank, (end, size) in enumerate(zip(ends, sizes, strict=True))
            if size
        }
        own = {self.rank: parts.pop(self.rank)} if self.rank in parts else {}
        self._send({rank: to_serialize(part) for rank, part in parts.items()})
        senders = [rank for rank, size in enumerate(incoming_sizes) if size and rank not in own]
        incoming = self._receive(senders, own)
        self._step += 1
        return np.concatenate([np.empty(0, np.uint8), *incoming])

    def close(self) -> None:
        """Forget the group on this worker."""
        _BOXES.pop((self._group, self.rank), None)

    def _send(self, contents: Mapping[int, Any]) -> None:
        """Send contents to ranks, all at the same time; return when they have them."""
        box = self._box()

        async def send() -> None:
            await asyncio.gather(*(self._deliver(*each) for each in contents.items()))

        try:
            sync(box.worker.loop, send)
        except OutputError as error:
            self._fail(str(error))

    async def _deliver(self, rank: int, content: Any) -> None:
        call = asyncio.ensure_future(
            self._ask(rank, "deliver", sender=self.rank, step=self._step, content=content)
        )
        try:
            while not (await asyncio.wait({call}, timeout=CHECK_S))[0]:
                if reason := await self._fault_of(rank):
                    raise OutputError(reason)
            if await call != "delivered":
                raise OutputError(f"rank {rank} has left the run")
        except OSError as error:
            raise OutputError(self._silence(rank, error)) from error
        finally:
            call.cancel()

    def _receive(self, senders: Iterable[int], own: Mapping[int, Any] | None = None) -> list[Any]:
        """Return what ranks have sent in this step, in their order, with what is one's own."""
        box, began_s = self._box(), time.monotonic()
        contents = dict(own or {})
        missing = set(senders)
        while True:
            with box.changed:
                box.changed.wait_for(lambda: self._has(box, missing), CHECK_S)
                for rank in [each for each in missing if (each, self._step) in box.contents]:
                    contents[rank] = box.contents.pop((rank, self._step))
                    missing.remove(rank)
            if not missing:
                return [contents[rank] for rank in sorted(contents)]
            is_late = time.monotonic() - began_s > BEGIN_S
            faults = sync(box.worker.loop, self._faults_of, missing, is_late)
            with box.changed:
                # What it sent before it left has arrived.
                reasons = [why for rank, why in faults if (rank, self._step) not in box.contents]
            if reasons:
                self._fail(reasons[0])

    def _has(self, box: _Box, ranks: Iterable[int]) -> bool:
        return all((rank, self._step) in box.contents for rank in ranks)

    async def _faults_of(self, ranks: Iterable[int], is_late: bool) -> list[tuple[int, str]]:
        """Return why ranks will send nothing; none of those that may."""
        faults = [(rank, await self._fault_of(rank, is_late)) for rank in sorted(ranks)]
        return [(rank, fault) for rank, fault in faults if fault]

    async def _fault_of(self, rank: int, is_late: bool = False) -> str:
        """Return why a rank will send nothing; empty if it may."""
        try:
            status = await asyncio.wait_for(self._ask(rank, "status"), ANSWER_S)
        except (OSError, TimeoutError) as error:
            return self._silence(rank, error)
        if not isinstance(status, dict):
            return f"rank {rank} has left the run"
        if not status["has_begun"] and is_late:
            return f"rank {rank} has not begun within {BEGIN_S:g} s"
        return f"rank {rank}: {status['fault']}" if status["fault"] else ""

    async def _ask(self, rank: int, what: str, **values: Any) -> Any:
        address = self._workers[rank]
        box = _BOXES[self._group, self.rank]
        call = getattr(box.worker.rpc(address), f"swathe_ranks_{what}")
        return await call(group=self._group, rank=rank, **values)

    def _silence(self, rank: int, error: BaseException) -> str:
        reason = str(error) or type(error).__name__
        return f"rank {rank}: its worker {self._workers[rank]} does not answer: {reason:.200}"

    def _box(self) -> _Box:
        """Return what came for this rank.

        Raises:
            OutputError: If the group has failed, or this is another worker.
        """
        box = _BOXES.get((self._group, self.rank))
        if box is None:
            raise OutputError(f"rank {self.rank}: expected to run on the worker {self.worker}")
        if box.fault:
            raise OutputError(box.fault)
        if box.task is None:
            box.task = get_worker().get_current_task()
        return box

    def _fail(self, reason: str) -> None:
        """Raise that the group has failed, also at later calls and when others ask.

        Raises:
            OutputError: Always.
        """
        if (box := _BOXES.get((self._group, self.rank))) is not None:
            box.fault = reason
        raise OutputError(reason)


class _Box:
    """What came for a rank, by sender and step."""

    def __init__(self, worker: Any) -> None:
        self.changed = threading.Condition()
        self.contents: dict[tuple[int, int], Any] = {}
        self.worker, self.fault = worker, ""
        self.task: Any = None


_BOXES: dict[tuple[str, int], _Box] = {}
"""By group and rank: workers may share a process."""


def _open(group: str, workers: Sequence[str], dask_worker: Any) -> None:
    """Let a worker be a rank."""
    _BOXES[group, workers.index(dask_worker.address)] = _Box(dask_worker)
    dask_worker.handlers |= {"swathe_ranks_deliver": _take, "swathe_ranks_status": _status}


def _take(group: str, rank: int, sender: int, step: int, content: Any) -> str:
    """Take what came for a rank."""
    box = _BOXES.get((group, rank))
    if box is None:
        return "gone"
    with box.changed:
        box.contents[sender, step] = content
        box.changed.notify_all()
    return "delivered"


def _status(group: str, rank: int) -> dict[str, Any] | None:
    """Return whether a rank has begun, and why it has failed; `None` if it has left."""
    box = _BOXES.get((group, rank))
    if box is None:
        return None
    fault = box.fault
    if not fault and box.task is not None and box.task not in box.worker.active_threads.values():
        fault = "its task has ended"
    return {"has_begun": box.task is not None, "fault": fault}
