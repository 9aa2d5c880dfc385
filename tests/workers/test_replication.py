"""Who gets what of a worker that leaves, and who is asked for it: with workers that only say so."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from swathe.workers.dask import worker
from swathe.workers.dask.replication import Replication
from swathe.workers.dask.state import PoolState, WorkerEntry
from swathe.workers.dask.worker import PullReply, WorkerState
from swathe.workers.placement.decide import COPIES
from swathe.workers.pool import HandOver

MB = 1_000_000
SIZE = 10 * MB


class Asked(PoolState):
    """Workers that answer at once; some objects are refused, some workers are gone."""

    def __init__(self, rooms: Mapping[str, int]) -> None:
        super().__init__()
        self.rooms = dict(rooms)
        self.asked: list[tuple[str, str, Any]] = []
        self.gone: set[str] = set()
        self.pause_s = 0.0
        for name in ("leaver", *rooms):
            self.workers[name] = WorkerEntry(name, "host", 1, "state", 10**9, is_placed=True)
            self.workers[name].peer = f"http://{name}", "token"
            self.placement.join(name, 1, 10**9)

    async def ask(
        self, address: str, limit_s: float, function: Callable[..., Any], *given: Any
    ) -> Any:
        assert limit_s > 0
        self.asked.append((address, function.__name__, given))
        await asyncio.sleep(self.pause_s)
        if address in self.gone:
            return None
        if function is worker.room:
            return self.rooms[address]
        if function is worker.describe:
            return {name: ("url", "key", SIZE, 0.0, 0.0, [0]) for name in given[0]}
        if function is worker.pull:
            names = [name for name, _, _ in given[0]]
            assert {url for _, _, peers in given[0] for url, _ in peers} <= {"http://leaver"}
            return PullReply(
                SIZE * len(names), len(names), dict.fromkeys(names, SIZE), (0.002, 5e7)
            )
        return None

    def pulls(self) -> dict[str, list[str]]:
        """What each was asked to pull."""
        found: dict[str, list[str]] = {}
        for address, name, given in self.asked:
            if name == "pull":
                found.setdefault(address, []).extend(source for source, _, _ in given[0])
        return found

    def granted(self) -> list[float]:
        return [given[0] for _, name, given in self.asked if name == "grant"]


def parting(
    crew: Asked, held: Mapping[str, int], hand_over_s: float = 60.0, grace_s: float | None = 80.0,
    while_at_it: Callable[[], None] = lambda: None,
) -> HandOver:  # fmt: skip
    """What becomes of a worker that leaves, and held this."""
    moved: list[dict[str, int]] = []
    spreading = Replication(crew, hand_over_s, lambda **more: moved.append(more))

    async def go() -> None:
        leaver = crew.workers["leaver"]
        leaver.leaving, leaver.is_placed = True, False
        crew.placement.leave("leaver")
        spreading.part("leaver", held, grace_s)
        while not leaver.has_parted:
            await asyncio.sleep(0.01)
            while_at_it()
        await turns()

    run(go())
    [told] = spreading.hand_overs
    assert told.bytes == sum(each.get("handed_bytes", 0) for each in moved)
    assert crew.granted()[-1] == 0.0 or "leaver" not in crew.workers
    assert not crew.leaver_of
    return told


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 120.0))


def objects(count: int) -> dict[str, int]:
    return {f"web:{number}": SIZE for number in range(count)}


def test_heirs_share_what_it_held_alone() -> None:
    crew = Asked({"w1": 105 * MB, "w2": 105 * MB, "full": 0})
    held = objects(20)
    crew.workers["w1"].cached_bytes["web:0"] = SIZE
    crew.placement.hold("w1", "web:0", SIZE)
    told = parting(crew, held)
    assert (told.state, told.objects, told.blocks) == ("done", 19, 19)
    assert told.alone_bytes == told.bytes == 19 * SIZE
    assert set(told.heirs) == {"w1", "w2"}
    pulls = crew.pulls()
    assert sorted(pulls["w1"] + pulls["w2"]) == sorted(set(held) - {"web:0"})
    assert abs(len(pulls["w1"]) - len(pulls["w2"])) <= 1
    assert set(crew.workers["w2"].cached_bytes) == set(pulls["w2"])
    assert crew.placement.holders(pulls["w2"][0]) == {"w2": SIZE}
    assert crew.granted()[0] == 80.0
    # What they tell of the way between them is learnt.
    assert crew.rates.peer == (0.002, 5e7)


def test_what_takes_too_long_is_refused() -> None:
    crew = Asked({"w1": 10**12})
    crew.rates.of_stores({"web": (3600.0, 1e9)})
    crew.rates.learn("w1", (0.001, 2.5 * SIZE / 60))
    told = parting(crew, objects(100))
    assert (told.state, told.objects) == ("done", 2)
    assert told.refused == "98 objects, 934.6 MiB: no time"
    # An hour for one of them, and nothing at all.
    crew = Asked({"w1": 10**12})
    crew.rates.of_stores({"web": (10_000.0, 1e9)})
    crew.rates.learn("w1", (0.001, SIZE / 3600))
    assert parting(crew, objects(1)).refused == "1 object, 9.537 MiB: no time"
    assert parting(Asked({"w1": 10**12}), objects(1), hand_over_s=0.0).state == "gave nothing"
    # One that will be killed before.
    crew = Asked({"w1": 10**12})
    crew.rates.learn("w1", (0.001, 50 * SIZE / 60))
    crew.rates.of_stores({"web": (100.0, 1e9)})
    assert parting(crew, objects(100), grace_s=12.0).objects <= 10


@pytest.mark.parametrize(
    ("rooms", "stores", "why"),
    [
        ({"w1": 10**12}, (1e-4, 1e9), "cheaper to fetch again"),
        ({"w1": SIZE - 1}, (1.0, 1e6), "no room"),
        ({"w1": 0}, (1.0, 1e6), "no other worker"),
        ({}, (1.0, 1e6), "no other worker"),
    ],
)
def test_what_is_refused_is_told(
    rooms: dict[str, int], stores: tuple[float, float], why: str
) -> None:
    crew = Asked(rooms)
    crew.rates.of_stores({"web": stores})
    told = parting(crew, objects(2))
    assert (told.state, told.bytes, told.heirs) == ("gave nothing", 0, ())
    assert told.refused == f"2 objects, 19.07 MiB: {why}"
    assert crew.pulls() == {}


def test_one_that_held_nothing_goes_at_once() -> None:
    told = parting(Asked({"w1": 10**9}), {})
    assert (told.state, told.refused) == ("gave nothing", "")
    assert told.summary == "leaver left: it had cached nothing that others lack"


def test_goodbyes_are_told_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    spreading = Replication(Asked({}), 60.0, lambda **more: None)
    for state, refused in (("gave nothing", ""), ("done", ""), ("gave nothing", "1: no room")):
        begun = HandOver("w", "finishing")
        spreading._hand_overs.append(begun)
        spreading._tell(begun, state=state, refused=refused)
    spreading._hand_overs.append(HandOver("w", "finishing"))
    assert len(spreading.hand_overs) == 4
    began = time.monotonic()
    monkeypatch.setattr("swathe.workers.dask.replication.time.monotonic", lambda: began + 90)
    assert [each.state for each in spreading.hand_overs] == ["done", "gave nothing", "finishing"]
    monkeypatch.setattr("swathe.workers.dask.replication.time.monotonic", lambda: began + 4000)
    assert [each.state for each in spreading.hand_overs] == ["finishing"]


@pytest.mark.parametrize(
    ("told", "summary"),
    [
        (HandOver("w", "finishing"), "w is leaving: it finishes its batches"),
        (
            HandOver("w", "handing over", ("a", "b"), 1, 1024),
            "w is leaving: it has handed over 1 object, 1 KiB so far to a, b",
        ),
        (
            HandOver(
                "w", "done", ("a",), 2, 2048, elapsed_s=1.23, refused="1 object, 3 B: no time"
            ),
            "w left: it handed over 2 objects, 2 KiB to a in 1.23 s; "
            "not handed over: 1 object, 3 B: no time",
        ),
        (
            HandOver("w", "broken off", ("a",)),
            "w was lost too early: it had handed over 0 objects, 0 B to a",
        ),
        (
            HandOver("w", "gave nothing", refused="2 objects, 9 B: no room"),
            "w left: it handed over nothing: 2 objects, 9 B: no room",
        ),
    ],
)
def test_a_hand_over_in_a_sentence(told: HandOver, summary: str) -> None:
    assert told.summary == summary


def test_heirs_that_are_gone_break_it_off() -> None:
    crew = Asked({"w1": 10**9, "w2": 10**9})
    crew.gone.add("w2")
    assert parting(crew, objects(4)).heirs == ("w1",)
    crew = Asked({"w1": 10**9, "w2": 10**9})
    crew.pause_s = 0.05

    def go() -> None:
        if crew.pulls():
            crew.gone.add("w2")

    told = parting(crew, objects(40), while_at_it=go)
    assert told.state == "broken off"
    assert {name for name, held in crew.workers.items() if held.cached_bytes} == {"w1"}


def test_a_leaver_that_is_gone_breaks_it_off() -> None:
    crew = Asked({"w1": 10**9})
    crew.pause_s = 0.05

    def go() -> None:
        if crew.pulls():
            crew.workers.pop("leaver", None)

    assert parting(crew, objects(100), while_at_it=go).state == "broken off"


async def turns() -> None:
    """Let whoever waits for nobody come to an end."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_few_copies_are_made_at_a_time() -> None:
    rooms = {f"w{number}": 10**9 for number in range(2 * COPIES)}
    crew = Asked(rooms)
    moved: list[dict[str, int]] = []
    spreading = Replication(crew, 60.0, lambda **more: moved.append(more))
    crew.placement.hold("leaver", "web:hot", SIZE)

    async def go() -> None:
        for name in rooms:
            spreading.copy("web:hot", name)
        spreading.copy("web:hot", "w0")
        await turns()
        spreading.copy("web:nobody's", "w0")
        spreading.copy("web:hot", "gone")
        await turns()

    run(go())
    assert len(crew.placement.holders("web:hot")) == 1 + COPIES
    assert moved == [{"copies": True, "copied_bytes": SIZE}] * COPIES


def test_one_that_is_to_end_joins_nobody_again() -> None:
    here = WorkerState()
    here.end()
    # Whatever it is told, and by whom.
    joined = here.join(pickle.dumps(None))
    assert joined.refusal.endswith("is ending")
    assert not here.has_portal
