"""What a worker keeps in its cache: when room is needed, what is of least worth goes first.

Worth is what fetching an object again costs for each byte that it takes, times how often it was
used, on top of the worth of what went before: so that what was worth much long ago goes in the end
(GreedyDual-Size with frequency, Cherkasova 1998). A copy of what a peer has is cheap to fetch
again, and goes before what must come from far.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass


@dataclass(slots=True)
class _Held:
    size: int
    refetch_s: float
    uses: int
    entry: tuple[float, int]


class Kept:
    """What is kept, by name; no bytes."""

    def __init__(self, limit_bytes: int) -> None:
        """Take how many bytes there is room for."""
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.refetch_s = 0.0
        self._held: dict[str, _Held] = {}
        self._least: list[tuple[float, int, str]] = []
        self._gone = 0.0
        self._turned_away = 0
        self._count = 0

    def __contains__(self, source: str) -> bool:
        return source in self._held

    def use(self, source: str, size: int, refetch_s: float) -> list[str]:
        """Note a use of an object of which `size` bytes are there; give what must go for it.

        That may be the object itself. Of equal worth the newest goes, so that going through more
        than there is room for, again and again, leaves some of it.
        """
        before = self._held.get(source)
        uses = before.uses + 1 if before is not None else 1
        if before is not None:
            self.bytes -= before.size
            self.refetch_s -= before.refetch_s
        self._count += 1
        entry = self._gone + uses * refetch_s / max(size, 1), -self._count
        self._held[source] = _Held(size, refetch_s, uses, entry)
        self.bytes += size
        self.refetch_s += refetch_s
        heapq.heappush(self._least, (*entry, source))
        gone = []
        while self.bytes > self.limit_bytes:
            worth, count, least = heapq.heappop(self._least)
            held = self._held.get(least)
            if held is not None and held.entry == (worth, count):
                self.drop(least)
                gone.append(least)
                # What is here is old only when as much as there is room for was turned away.
                self._turned_away += held.size if least == source else self.limit_bytes
                if self._turned_away >= self.limit_bytes:
                    self._gone, self._turned_away = worth, 0
        if len(self._least) > 2 * len(self._held) + 100:
            self._least = [(*held.entry, name) for name, held in self._held.items()]
            heapq.heapify(self._least)
        return gone

    def drop(self, source: str) -> None:
        """Note that an object is not kept any more."""
        if (held := self._held.pop(source, None)) is not None:
            self.bytes -= held.size
            self.refetch_s -= held.refetch_s

    def refetching(self, source: str) -> float:
        """Give what it would cost to fetch an object again, seconds."""
        return self._held[source].refetch_s
