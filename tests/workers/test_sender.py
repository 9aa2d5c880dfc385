"""What is sent to workers when, and what is learnt of it: with workers that only say so."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from swathe.catalog.records.jobs import ChunkResult
from swathe.core.row_table import RowTable
from swathe.jobs import Options
from swathe.workers.batch import Batch
from swathe.workers.dask import sender
from swathe.workers.dask.in_flight import PendingBatch
from swathe.workers.dask.sender import BatchSender
from swathe.workers.dask.state import PoolState, WorkerEntry
from swathe.workers.dask.worker import BatchReply, Peer

MB = 1_000_000
SIZE = 50 * MB
BATCH_S = 5.0


class Told:
    """What a worker will say of a batch, when it does."""

    status = "finished"

    def __init__(self) -> None:
        self.come: asyncio.Future[BatchReply] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Any:
        return self.come.__await__()

    def release(self) -> None:
        """Forget it."""

    def say(self, done: ChunkResult, **held: int) -> None:
        self.come.set_result(
            BatchReply(pickle.dumps(done), {f"web:{o}": n for o, n in held.items()}, None)
        )


class Scheduler:
    """Takes what is sent, to whom, with which peers."""

    status = "running"

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, list[Peer]], Told]] = []

    def submit(self, *given: Any, workers: list[str], **_: Any) -> Told:
        told = Told()
        self.sent.append((workers[0], given[4], told))
        return told


class At:
    """A pool of two workers of one thread, and what is sent to them, at times of the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now, monotonic_ns=lambda: id(object()))
        monkeypatch.setattr(sender, "time", clock)
        self.scheduler, self.crew, self.kept = Scheduler(), PoolState(), list[ChunkResult]()
        self.crew.client = self.scheduler  # type: ignore[assignment]  # all that is called of it
        for name in ("w0", "w1"):
            self.crew.workers[name] = WorkerEntry(name, "host", 1, "state", 10**9, is_placed=True)
            self.crew.workers[name].peer = f"http://{name}", "token"
            self.crew.placement.join(name, 1, 10**9)
        briefing: Any = SimpleNamespace(invitation=(b"", "state"))
        nothing: Any = lambda *_: None  # noqa: E731 - of several kinds
        self.sending = BatchSender(
            "pool", self.crew, briefing, BATCH_S,
            join=nothing, copy=nothing, note_room=nothing,
            keep=lambda _, done: self.kept.append(done),
        )  # fmt: skip

    async def give(self, source: str) -> None:
        batch = Batch("job", 0, Options(), RowTable.of([]))
        self.sending.accept(
            PendingBatch(
                len(self.sending.flights), batch, b"", lambda: False, {f"web:{source}": SIZE}
            )
        )
        await pauses()


async def pauses() -> None:
    """Let others go on."""
    for _ in range(10):
        await asyncio.sleep(0)


async def until(wanted: Callable[[], bool]) -> None:
    while not wanted():
        await asyncio.sleep(0.001)


def done(seconds: float, store: int = 0, peers: int = 0, cache: int = SIZE) -> ChunkResult:
    return ChunkResult([], seconds, store, from_peers=(peers, 1), from_cache=(cache, 1))


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


@pytest.mark.parametrize(
    ("came", "next_s"),
    [
        (done(0.02), 0.02),
        (done(0.02, store=1), 0.02),  # it was asked whether the object is the same
        (done(2.0, store=SIZE // 2, cache=SIZE // 2), BATCH_S),
        (done(2.0, peers=SIZE // 2), BATCH_S),
        (done(2.0, store=SIZE, cache=0), BATCH_S),
    ],
)
def test_what_computing_takes_is_learnt_from_batches_that_fetched_nothing(
    monkeypatch: pytest.MonkeyPatch, came: ChunkResult, next_s: float
) -> None:
    """One that is on a holder may fetch for seconds all the same, what is not there any more."""

    async def go() -> None:
        at = At(monkeypatch)
        at.crew.hold("w0", {"web:a": SIZE})
        await at.give("a")
        ((_, _, told),) = at.scheduler.sent
        told.say(came, a=SIZE)
        await until(lambda: bool(at.kept))
        await at.give("a")
        assert at.crew.placement.load("w0", at.now) == pytest.approx(next_s)

    run(go())


def test_a_peer_that_is_still_fetching_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        at = At(monkeypatch)
        await at.give("a")
        at.now = at.crew.rates.store_s("web:a", SIZE) - 0.1
        await at.give("a")
        ((worker, peers, told),) = at.scheduler.sent
        assert (worker, peers) == ("w0", {"web:a": []})
        told.say(done(1.0, store=SIZE, cache=0), a=SIZE)
        await until(lambda: len(at.scheduler.sent) == 2)
        assert at.scheduler.sent[1][:2] == ("w1", {"web:a": [("http://w0", "token")]})

    run(go())


def test_a_peer_is_waited_for_no_longer_than_the_store_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> None:
        at = At(monkeypatch)
        store_s = at.crew.rates.store_s("web:a", SIZE)
        await at.give("a")
        at.now = store_s - 0.1
        await at.give("a")
        assert len(at.scheduler.sent) == 1
        at.now += store_s
        await until(lambda: len(at.scheduler.sent) == 2)
        assert at.scheduler.sent[1][:2] == ("w1", {"web:a": []})

    run(go())


def test_what_waits_for_a_peer_is_not_sent_to_a_worker_that_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> None:
        at = At(monkeypatch)
        await at.give("a")
        at.now = at.crew.rates.store_s("web:a", SIZE) - 0.1
        await at.give("a")
        gone = at.crew.workers.pop("w1")
        at.crew.placement.leave("w1")
        for flight in list(gone.flights.values()):
            at.sending.again(flight)
        at.scheduler.sent[0][2].say(done(1.0, store=SIZE, cache=0), a=SIZE)
        await until(lambda: len(at.scheduler.sent) == 2)
        await asyncio.sleep(2 * sender.LOOK_S)
        assert [worker for worker, _, _ in at.scheduler.sent] == ["w0", "w0"]

    run(go())
