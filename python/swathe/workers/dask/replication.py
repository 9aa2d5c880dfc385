"""Objects that go from worker to worker: what one that leaves hands over, and copies of hot ones.

Those who get them pull them, as workers ask each other for blocks, and check each
block as they do then. Nothing waits for it: whoever is gone in the middle, what is missing is
fetched from the store when it is wanted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from swathe.core.format import size_text
from swathe.workers.autoscale.policy import Block, Plan, hand_over
from swathe.workers.dask import worker as member
from swathe.workers.placement.decide import COPIES
from swathe.workers.pool import FINISH_S, HandOver

if TYPE_CHECKING:
    from swathe._swathe import Described
    from swathe.workers.dask.state import Crew, Worker

    Share = list[tuple[str, Described]]
    """Objects of an heir, and what blocks they have."""

log = logging.getLogger(__name__)

HEIRS = 8
"""Of one that leaves: those with the most room."""
GROUP = 16
"""Objects that an heir is asked to pull at a time."""
COPY_S = 30.0
"""One that takes longer is left as it is."""
ASK_S = 5.0
"""How long to wait for a word of a worker."""
LOOK_S = 0.05
TOLD = 20
"""Hand-overs that are told of."""
TOLD_S = 3600.0
"""For so long after they ended."""
GOODBYE_S = 60.0
"""For so long, where there was nothing to hand over."""

ENDED = ("done", "broken off", "gave nothing")


class Spreading:
    """Has workers give what they hold to others. For the thread of the pool's loop."""

    def __init__(self, crew: Crew, hand_over_s: float, moved: Callable[..., None]) -> None:
        """Take who is there, how long one that leaves may hand over, and who counts what moved."""
        self._crew, self._hand_over_s, self._moved = crew, hand_over_s, moved
        self._hand_overs: deque[HandOver] = deque(maxlen=TOLD)
        self._copying: set[str] = set()

    @property
    def hand_overs(self) -> list[HandOver]:
        """The last, and those under way; the newest last."""
        now = time.monotonic()
        return [each for each in self._hand_overs if _is_news(each, now)]

    # ---- Copies

    def copy(self, source: str, heir: str) -> None:
        """Have a worker get a copy of an object, unless enough are being made."""
        if heir in self._copying or len(self._copying) >= COPIES:
            self._crew.placement.forgo(heir, source)
            return
        self._copying.add(heir)
        self._crew.spawn(self._copy(source, heir))

    async def _copy(self, source: str, heir: str) -> None:
        crew = self._crew
        try:
            holders = crew.placement.holders(source)
            holder = max(holders, key=lambda name: holders[name], default=None)
            if holder is None or holder == heir:
                return
            described = await crew.ask(holder, ASK_S, member.describe, [source])
            if not described:
                return
            peers = crew.peers(source, heir, holder)
            wanted = [(source, described[source], peers)]
            pulled = await crew.ask(heir, COPY_S + ASK_S, member.pull, wanted, COPY_S, False)
            if pulled is not None:
                crew.hold(heir, pulled.held)
                crew.rates.learn(heir, pulled.costs)
                self._moved(copies=bool(pulled.bytes), copied_bytes=pulled.bytes)
        finally:
            crew.placement.forgo(heir, source)
            self._copying.discard(heir)

    # ---- What one that leaves hands over

    def part(self, address: str, held: Mapping[str, int], grace_s: float | None) -> None:
        """Let a worker go, that held this: first it does what it has, then it hands over.

        Args:
            address: of the worker, which is given nothing more.
            held: bytes of each object.
            grace_s: how long it will wait for us; `None`: it waits to be told to end.
        """
        worker = self._crew.workers[address]
        limit_s = self._hand_over_s if grace_s is None else min(grace_s, self._hand_over_s)
        told = HandOver(worker.name, "finishing", limit_s=limit_s)
        self._hand_overs.append(told)
        # Whoever gets its batches may still ask it.
        self._crew.parting.update(dict.fromkeys(held, address))
        self._crew.spawn(self._part(address, worker, held, grace_s, told))

    async def _part(
        self,
        address: str,
        worker: Worker,
        held: Mapping[str, int],
        grace_s: float | None,
        told: HandOver,
    ) -> None:
        crew = self._crew
        began = time.monotonic()
        until = began + (FINISH_S + told.limit_s if grace_s is None else grace_s)
        try:
            if grace_s is not None:
                await crew.ask(address, ASK_S, member.grant, grace_s)
            while worker.flights and time.monotonic() < min(until, began + FINISH_S):
                if self._is_gone(address, worker):
                    break
                await asyncio.sleep(LOOK_S)
            await self._hand_over(address, worker, held, until, told)
        except Exception:  # a fault of ours must not keep anybody from going
            log.exception("worker %s: handing over", worker.name)
        finally:
            for source in [each for each, at in crew.parting.items() if at == address]:
                del crew.parting[source]
            worker.parted = True
            if not self._is_gone(address, worker):
                crew.spawn(self._release(address))

    async def _release(self, address: str) -> None:
        await self._crew.ask(address, ASK_S, member.grant, 0.0)

    def _is_gone(self, address: str, worker: Worker) -> bool:
        return self._crew.workers.get(address) is not worker

    async def _hand_over(
        self, address: str, worker: Worker, held: Mapping[str, int], until: float, told: HandOver
    ) -> None:
        crew = self._crew
        began = time.monotonic()
        until = min(until, began + told.limit_s)
        blocks = list(self._alone(held))
        told = self._tell(told, alone_bytes=sum(each.size for each in blocks))
        if self._is_gone(address, worker):
            self._tell(told, state="broken off")
            return
        rooms = await self._rooms(blocks)
        _, bytes_per_s = crew.rates.peer
        plan = hand_over(blocks, rooms, bytes_per_s, max(0.0, until - time.monotonic()))
        refused = self._refused(plan, blocks)
        shares = await self._shares(address, plan)
        heirs = tuple(crew.workers[heir].name for heir in shares if heir in crew.workers)
        if not shares:
            self._tell(told, state="gave nothing", refused=refused)
            return
        told = self._tell(told, state="handing over", heirs=heirs, refused=refused)
        peer, sizes = worker.peer, {each.source: each.size for each in blocks}

        async def give(heir: str, share: Share) -> None:
            nonlocal told
            for at in range(0, len(share), GROUP):
                left_s = until - time.monotonic()
                if left_s <= 0 or peer is None or self._is_gone(address, worker):
                    return
                wanted = [
                    (source, described, [peer]) for source, described in share[at : at + GROUP]
                ]
                pulled = await crew.ask(heir, left_s, member.pull, wanted, left_s, True)
                if pulled is None:
                    return
                crew.hold(heir, pulled.held)
                crew.rates.learn(heir, pulled.costs)
                self._moved(handed_bytes=pulled.bytes)
                told = self._tell(
                    told,
                    objects=told.objects
                    + sum(size >= sizes[source] for source, size in pulled.held.items()),
                    bytes=told.bytes + pulled.bytes,
                    blocks=told.blocks + pulled.blocks,
                    seconds=time.monotonic() - began,
                )

        await asyncio.gather(*(give(heir, share) for heir, share in shares.items()))
        whole = told.objects == sum(map(len, shares.values()))
        state = "done" if whole else "broken off"
        _log(self._tell(told, state=state, seconds=time.monotonic() - began))

    async def _shares(self, address: str, plan: Plan) -> dict[str, Share]:
        """Give what each heir is to pull: what the one that leaves still has."""
        if not plan.given:
            return {}
        asked = [source for source, _ in plan.given]
        described = await self._crew.ask(address, ASK_S, member.describe, asked) or {}
        shares: dict[str, Share] = {}
        for source, heir in plan.given:
            if source in described:
                shares.setdefault(heir, []).append((source, described[source]))
        return shares

    def _alone(self, held: Mapping[str, int]) -> Iterator[Block]:
        """Give what nobody else holds as much of, and what it costs to fetch it again."""
        crew = self._crew
        for source, size in held.items():
            holders = crew.placement.holders(source)
            if not any(other >= size for other in holders.values()):
                yield Block(source, size, crew.rates.store_s(source, size))

    async def _rooms(self, blocks: Sequence[Block]) -> dict[str, int]:
        """Give who may be an heir, and the room in their caches, as they tell it now."""
        crew = self._crew
        if not blocks:
            return {}
        staying = [
            (each.cache_bytes - sum(each.held.values()), address)
            for address, each in crew.workers.items()
            if each.placed and not each.leaving and each.peer is not None
        ]
        heirs = [address for _, address in sorted(staying, reverse=True)[:HEIRS]]
        rooms = await asyncio.gather(*(crew.ask(each, ASK_S, member.room) for each in heirs))
        return {heir: room for heir, room in zip(heirs, rooms, strict=True) if room}

    def _refused(self, plan: Plan, blocks: Sequence[Block]) -> str:
        """Say what is not handed over, and why."""
        sizes = {each.source: each.size for each in blocks}
        objects, size = Counter(plan.refused.values()), Counter[str]()
        for source, why in plan.refused.items():
            size[why] += sizes[source]
        return "; ".join(
            f"{count} {'object' if count == 1 else 'objects'}, {size_text(size[why])}: {why}"
            for why, count in objects.items()
        )

    def _tell(self, told: HandOver, **changes: object) -> HandOver:
        """Tell how a hand-over stands."""
        if changes.get("state", told.state) in ENDED:
            changes["ended_at"] = time.monotonic()
        new = replace(told, **changes)  # type: ignore[arg-type]  # of its fields
        for at, each in enumerate(self._hand_overs):
            if each is told:
                self._hand_overs[at] = new
        return new


def _is_news(told: HandOver, now: float) -> bool:
    """Tell whether a hand-over is still of interest."""
    if told.ended_at is None:
        return True
    ordinary = told.state == "gave nothing" and not told.refused
    return now - told.ended_at < (GOODBYE_S if ordinary else TOLD_S)


def _log(told: HandOver) -> None:
    log.warning("worker %s", told.summary)
