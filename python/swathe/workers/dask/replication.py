"""Transfer of cached objects between workers: hand-over of leaving ones, copies of hot ones.

The receivers pull the blocks from the other worker and check each block. No batch waits for a
transfer. If one is interrupted, the missing blocks are fetched from the store when they are needed.
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
from swathe.workers.autoscale.policy import HandOverPlan, HeldBlock, plan_hand_over
from swathe.workers.dask import worker as member
from swathe.workers.placement.decide import COPIES
from swathe.workers.pool import FINISH_S, HandOver

if TYPE_CHECKING:
    from swathe._swathe import BlockDescription
    from swathe.workers.dask.state import PoolState, WorkerEntry

    Share = list[tuple[str, BlockDescription]]
    """Objects for one heir, and the blocks of each."""

log = logging.getLogger(__name__)

HEIRS = 8
"""Heirs of a leaving worker: those with the most room."""
GROUP = 16
"""Objects that an heir is asked to pull at a time."""
COPY_S = 30.0
"""Seconds after which a copy is abandoned."""
ASK_S = 5.0
"""Seconds to wait for an answer of a worker."""
LOOK_S = 0.05
MOST_REPORTS = 20
"""Hand-overs that are reported."""
RECORDED_S = 3600.0
"""Seconds after its end during which a hand-over is reported."""
GOODBYE_S = 60.0
"""The same, if there was nothing to hand over."""

END_STATES = ("done", "broken off", "gave nothing")


class Replication:
    """Transfers between workers. Used by the thread of the pool's loop."""

    def __init__(
        self, crew: PoolState, hand_over_s: float, note_traffic: Callable[..., None]
    ) -> None:
        """Take the pool's state, the time limit of a hand-over, and the counter of transfers."""
        self._crew, self._hand_over_s, self._note_traffic = crew, hand_over_s, note_traffic
        self._hand_overs: deque[HandOver] = deque(maxlen=MOST_REPORTS)
        self._copying: set[str] = set()

    @property
    def hand_overs(self) -> list[HandOver]:
        """The running and the latest hand-overs, newest last."""
        now = time.monotonic()
        return [each for each in self._hand_overs if _is_news(each, now)]

    # ---- Copies

    def copy(self, source: str, heir: str) -> None:
        """Copy an object to a worker, unless enough copies are running."""
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
            descriptions = await crew.ask(holder, ASK_S, member.describe, [source])
            if not descriptions:
                return
            peers = crew.peers(source, heir, holder)
            objects = [(source, descriptions[source], peers)]
            report = await crew.ask(heir, COPY_S + ASK_S, member.pull, objects, COPY_S, False)
            if report is not None:
                crew.hold(heir, report.cached_bytes)
                crew.rates.learn(heir, report.costs)
                self._note_traffic(copies=bool(report.bytes), copied_bytes=report.bytes)
        finally:
            crew.placement.forgo(heir, source)
            self._copying.discard(heir)

    # ---- Hand-over

    def part(self, address: str, cached_bytes: Mapping[str, int], grace_s: float | None) -> None:
        """Release a worker: it first finishes its batches, then hands over its cache.

        Args:
            address: address of the worker; it gets no more batches.
            cached_bytes: cached bytes of each object.
            grace_s: seconds it will wait for us; `None`: it waits for the request to end.
        """
        worker = self._crew.workers[address]
        limit_s = self._hand_over_s if grace_s is None else min(grace_s, self._hand_over_s)
        status = HandOver(worker.name, "finishing", limit_s=limit_s)
        self._hand_overs.append(status)
        # The workers that get its batches may still ask it for blocks.
        self._crew.leaver_of.update(dict.fromkeys(cached_bytes, address))
        self._crew.spawn(self._part(address, worker, cached_bytes, grace_s, status))

    async def _part(
        self,
        address: str,
        worker: WorkerEntry,
        cached_bytes: Mapping[str, int],
        grace_s: float | None,
        hand_over: HandOver,
    ) -> None:
        crew = self._crew
        began = time.monotonic()
        until = began + (FINISH_S + hand_over.limit_s if grace_s is None else grace_s)
        try:
            if grace_s is not None:
                await crew.ask(address, ASK_S, member.grant, grace_s)
            while worker.flights and time.monotonic() < min(until, began + FINISH_S):
                if self._is_gone(address, worker):
                    break
                await asyncio.sleep(LOOK_S)
            await self._hand_over(address, worker, cached_bytes, until, hand_over)
        except Exception:  # a bug must not stop a worker from leaving
            log.exception("worker %s: error in the hand-over", worker.name)
        finally:
            for source in [each for each, at in crew.leaver_of.items() if at == address]:
                del crew.leaver_of[source]
            worker.has_parted = True
            if not self._is_gone(address, worker):
                crew.spawn(self._release(address))

    async def _release(self, address: str) -> None:
        await self._crew.ask(address, ASK_S, member.grant, 0.0)

    def _is_gone(self, address: str, worker: WorkerEntry) -> bool:
        return self._crew.workers.get(address) is not worker

    async def _hand_over(
        self,
        address: str,
        worker: WorkerEntry,
        cached_bytes: Mapping[str, int],
        until: float,
        hand_over: HandOver,
    ) -> None:
        crew = self._crew
        began = time.monotonic()
        until = min(until, began + hand_over.limit_s)
        blocks = list(self._alone(cached_bytes))
        hand_over = self._tell(hand_over, alone_bytes=sum(each.size for each in blocks))
        if self._is_gone(address, worker):
            self._tell(hand_over, state="broken off")
            return
        rooms = await self._rooms(blocks)
        _, bytes_per_s = crew.rates.peer
        plan = plan_hand_over(blocks, rooms, bytes_per_s, max(0.0, until - time.monotonic()))
        refusal = self._describe_refusals(plan, blocks)
        shares = await self._shares(address, plan)
        heirs = tuple(crew.workers[heir].name for heir in shares if heir in crew.workers)
        if not shares:
            self._tell(hand_over, state="gave nothing", refused=refusal)
            return
        hand_over = self._tell(hand_over, state="handing over", heirs=heirs, refused=refusal)
        peer, sizes = worker.peer, {each.source: each.size for each in blocks}

        async def give(heir: str, share: Share) -> None:
            nonlocal hand_over
            for at in range(0, len(share), GROUP):
                left_s = until - time.monotonic()
                if left_s <= 0 or peer is None or self._is_gone(address, worker):
                    return
                objects = [
                    (source, description, [peer]) for source, description in share[at : at + GROUP]
                ]
                report = await crew.ask(heir, left_s, member.pull, objects, left_s, True)
                if report is None:
                    return
                crew.hold(heir, report.cached_bytes)
                crew.rates.learn(heir, report.costs)
                self._note_traffic(handed_bytes=report.bytes)
                hand_over = self._tell(
                    hand_over,
                    objects=hand_over.objects
                    + sum(size >= sizes[source] for source, size in report.cached_bytes.items()),
                    bytes=hand_over.bytes + report.bytes,
                    blocks=hand_over.blocks + report.blocks,
                    elapsed_s=time.monotonic() - began,
                )

        await asyncio.gather(*(give(heir, share) for heir, share in shares.items()))
        is_complete = hand_over.objects == sum(map(len, shares.values()))
        state = "done" if is_complete else "broken off"
        _log(self._tell(hand_over, state=state, elapsed_s=time.monotonic() - began))

    async def _shares(self, address: str, plan: HandOverPlan) -> dict[str, Share]:
        """Return the objects that each heir is to pull, if the leaving worker still has them."""
        if not plan.heirs:
            return {}
        sources = [source for source, _ in plan.heirs]
        descriptions = await self._crew.ask(address, ASK_S, member.describe, sources) or {}
        shares: dict[str, Share] = {}
        for source, heir in plan.heirs:
            if source in descriptions:
                shares.setdefault(heir, []).append((source, descriptions[source]))
        return shares

    def _alone(self, cached_bytes: Mapping[str, int]) -> Iterator[HeldBlock]:
        """Yield the objects that no other worker has cached as fully, and their cost."""
        crew = self._crew
        for source, size in cached_bytes.items():
            holders = crew.placement.holders(source)
            if not any(other >= size for other in holders.values()):
                yield HeldBlock(source, size, crew.rates.store_s(source, size))

    async def _rooms(self, blocks: Sequence[HeldBlock]) -> dict[str, int]:
        """Return the possible heirs, and the free bytes of their caches as they report now."""
        crew = self._crew
        if not blocks:
            return {}
        stayers = [
            (each.cache_bytes - sum(each.cached_bytes.values()), address)
            for address, each in crew.workers.items()
            if each.is_placed and not each.leaving and each.peer is not None
        ]
        heirs = [address for _, address in sorted(stayers, reverse=True)[:HEIRS]]
        rooms = await asyncio.gather(*(crew.ask(each, ASK_S, member.room) for each in heirs))
        return {heir: room for heir, room in zip(heirs, rooms, strict=True) if room}

    def _describe_refusals(self, plan: HandOverPlan, blocks: Sequence[HeldBlock]) -> str:
        """Describe the objects that are not handed over, and why."""
        sizes = {each.source: each.size for each in blocks}
        objects, size = Counter(plan.refusals.values()), Counter[str]()
        for source, why in plan.refusals.items():
            size[why] += sizes[source]
        return "; ".join(
            f"{count} {'object' if count == 1 else 'objects'}, {size_text(size[why])}: {why}"
            for why, count in objects.items()
        )

    def _tell(self, hand_over: HandOver, **changes: object) -> HandOver:
        """Publish the state of a hand-over."""
        if changes.get("state", hand_over.state) in END_STATES:
            changes["ended_at"] = time.monotonic()
        new = replace(hand_over, **changes)  # type: ignore[arg-type]  # of its fields
        for at, each in enumerate(self._hand_overs):
            if each is hand_over:
                self._hand_overs[at] = new
        return new


def _is_news(hand_over: HandOver, now: float) -> bool:
    """Check whether a hand-over is still reported."""
    if hand_over.ended_at is None:
        return True
    ordinary = hand_over.state == "gave nothing" and not hand_over.refused
    return now - hand_over.ended_at < (GOODBYE_S if ordinary else RECORDED_S)


def _log(hand_over: HandOver) -> None:
    log.warning("worker %s", hand_over.summary)
