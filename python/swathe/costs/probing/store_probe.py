"""Measuring a store: which reads, in which order, until when.

A probe reads ranges of several sizes with several numbers of streams, in rounds that each go
through them in another order, so that a slow minute of the store falls on all alike. It keeps
to a budget of seconds and bytes that it tells beforehand, and stops sooner where what it knows
is precise enough.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.catalog import this_host
from swathe.core.errors import NotFoundError
from swathe.core.format import KIB, MIB
from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.fit.fit import fit, fit_local
from swathe.costs.fit.robust_stats import counts_of, middle
from swathe.costs.probing.page_cache import cache_state, in_memory
from swathe.costs.probing.probe_schedule import (
    OPENING_BYTES,
    PARTS,
    PRECISE,
    QUICK_PARTS,
    QUICK_SIZES,
    QUICK_STREAMS,
    ROUNDS,
    SIZES,
    STREAMS,
    Cell,
    Parameters,
)
from swathe.costs.probing.probe_writes import STREAMS as WRITTEN_AT_ONCE
from swathe.costs.probing.probe_writes import Writing, writing_costs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from swathe.costs.probing.reader_protocol import Reader, Timing
    from swathe.costs.probing.resolve_target import ProbeTarget

WRITINGS = 3
"""How often objects of each size are written."""
OPENINGS = 3
"""How often opening an object, and a connection, are measured."""
SLOWEST_BYTES_PER_S = 1e5
"""Few stores send slower than this; of those a quick probe may take longer than it should."""
LIMITS = ("total_bytes_per_s", "requests_per_s")


@dataclass
class Probe:
    """What a probe found.

    Attributes:
        root: of the store, as the catalogue has it.
        shown: what the user named.
        cache: of local files, whether their bytes were in memory: `warm`, `cold`, `mixed`,
            `unknown`; `remote` of others.
        stopped: why it ended: `precise`, `rounds`, `seconds` or `bytes`.
        writing: what that costs, a `request` being an object; None where it was not measured.
    """

    root: str
    shown: str
    parameters: Parameters
    samples: list[Sample]
    profile: Profile
    seconds: float
    bytes_moved: int
    requests: int
    cache: str
    stopped: str
    host: str = field(default_factory=this_host)
    notes: list[str] = field(default_factory=list)
    writing: Costs | None = None

    def as_dict(self) -> dict[str, Any]:
        """All but the samples, for JSON."""
        return {
            "root": self.root,
            "shown": self.shown,
            "host": self.host,
            "costs": self.profile.costs.as_dict(),
            "spread": self.profile.spread,
            "writing": None if self.writing is None else self.writing.as_dict(),
            "notes": [*self.profile.notes, *self.notes],
            "rejected": self.profile.rejected,
            "samples": len(self.samples),
            "seconds": self.seconds,
            "bytes": self.bytes_moved,
            "requests": self.requests,
            "cache": self.cache,
            "stopped": self.stopped,
            "parameters": self.parameters.as_dict(),
        }


def probe(
    place: ProbeTarget,
    *,
    quick: bool = False,
    budget_s: float | None = None,
    budget_bytes: int | None = None,
    seed: int | None = None,
    write: bool = False,
    tell: Callable[[str], None] | None = None,
    reader: Reader = _swathe,
    clock: Callable[[], float] = time.perf_counter,
) -> Probe:
    """Measure a store.

    Args:
        place: the store and what to read of it; see `find_place`.
        quick: some seconds, fewer sizes.
        budget_s: seconds it may take; by default 30, or 5.
        budget_bytes: bytes it may move; by default 512 MiB, or 64 MiB; of local files eight
            times that.
        seed: of the order; by default another one each time.
        write: also write objects, and remove them.
        tell: is told what the probe will use, before it does.
        reader: what to read with.
        clock: its time, in seconds.

    Raises:
        NotFoundError: where there is nothing to read.
        RegionError: where nothing can be written, and it was to be.
        OutputError: where writing fails.
    """
    usual_bytes = (64 if quick else 512) * MIB * (8 if place.is_local else 1)
    parameters = Parameters(
        sizes=QUICK_SIZES if quick else SIZES,
        streams=QUICK_STREAMS if quick else STREAMS,
        rounds=ROUNDS,
        budget_s=budget_s if budget_s is not None else (5.0 if quick else 30.0),
        budget_bytes=usual_bytes if budget_bytes is None else budget_bytes,
        parts=QUICK_PARTS if quick else PARTS,
        seed=seed if seed is not None else int.from_bytes(os.urandom(4), "big"),
        objects=place.objects,
        write=write,
    )
    with Writing(place) if write else contextlib.nullcontext() as writing:
        return _Run(place, parameters, reader, clock).run(tell or (lambda _text: None), writing)


class _Run:
    """A probe on its way."""

    def __init__(
        self,
        place: ProbeTarget,
        parameters: Parameters,
        reader: Reader,
        clock: Callable[[], float],
    ) -> None:
        self.place, self.parameters, self.reader = place, parameters, reader
        self.stores, self.clock = place.stores, clock
        self.rng = np.random.default_rng(parameters.seed)
        self.samples: list[Sample] = []
        self.sizes: dict[str, int] = {}
        self.slots: dict[tuple[str, int], list[int]] = {}
        self.bytes_moved = self.requests = self.turn = 0
        self.connections = 1
        self.known: Costs | None = None
        self.known_samples = 0
        self.resident: list[bool] = []
        self.short_of = ""
        self.fresh: list[float] = []
        self.started = self.clock()

    def run(self, tell: Callable[[str], None], writing: Writing | None) -> Probe:
        """Do it all."""
        for name in self.parameters.objects:
            self.sizes[name] = self.reader.measure_open(name, self.stores)[1]
            self._count(self._opening_bytes(name), 0 if self.place.is_local else 1)
        largest = max(self.sizes.values())
        if largest < 1:
            name = _swathe.shown(self.parameters.objects[0])
            raise NotFoundError(f"{name}: is empty; nothing to measure")
        fitting = [size for size in self.parameters.sizes if size <= largest] or [largest]
        self.parameters = replace(self.parameters, sizes=tuple(fitting))
        tell(str(self.parameters))
        self.started = self.clock()
        self._open()
        if writing is not None:
            self._write(writing)
        stopped = self._read()
        seconds = self.clock() - self.started
        return Probe(
            root=self.place.root,
            shown=self.place.shown,
            parameters=self.parameters,
            samples=self.samples,
            profile=fit_local(self.samples) if self.place.is_local else fit(self.samples),
            seconds=seconds,
            bytes_moved=self.bytes_moved,
            requests=self.requests,
            cache=self._cache(),
            stopped=stopped,
            notes=self._notes(),
            writing=writing_costs(self.samples),
        )

    def _open(self) -> None:
        """Measure what comes before the first byte."""
        name, size = next(iter(self.sizes.items()))
        part = [(0, min(self.parameters.sizes[0], size))]
        begun = self._opening_bytes(name)
        for turn in range(OPENINGS):
            if turn > 1 and self.clock() - self.started > self.parameters.budget_s / 8:
                break
            seconds = self.reader.measure_open(name, self.stores)[0]
            self._count(begun, 0 if self.place.is_local else 1)
            self._keep(Sample("open", begun, seconds))
            if not self.place.is_local:
                [timing] = self._timed(name, part, 1, fresh=True)
                self.fresh.append(timing.first_byte_s - timing.start_s)

    def _connect(self) -> None:
        """Tell what first bytes take longer where a connection has to be opened for them."""
        size = min(self.parameters.sizes[0], next(iter(self.sizes.values())))
        kept = [
            sample.first_byte_s
            for sample in self.samples
            if sample.kind == "read" and sample.bytes == size and sample.first_byte_s is not None
        ]
        for seconds in self.fresh:
            self._keep(Sample("connect", 0, max(seconds - middle(np.array(kept)), 0.0)))

    def _timed(
        self, name: str, ranges: list[tuple[int, int]], streams: int, fresh: bool = False
    ) -> Sequence[Timing]:
        """Read; the native half opens the object first, each time."""
        timings = self.reader.measure(name, ranges, streams, fresh=fresh, stores=self.stores)
        size = sum(length for _, length in ranges) + self._opening_bytes(name)
        self._count(size, len(ranges) + (0 if self.place.is_local else 1))
        return timings

    def _opening_bytes(self, name: str) -> int:
        """Bytes read to open an object: none of a local file."""
        return 0 if self.place.is_local else min(OPENING_BYTES, self.sizes[name])

    def _scout(self) -> None:
        """Read twice of each size, alone, while the next is affordable even if it is all bytes."""
        sizes = self.parameters.sizes
        seconds, twice = [0.0], True
        for size, larger in zip(sizes, [*sizes[1:], 0], strict=True):
            if self._has_read() and self._most_bytes(Cell(size, 1, 1)) > self._left_bytes():
                self.short_of = "bytes"
                break
            twice = twice and self._most_bytes(Cell(size, 1, 2)) <= self._left_bytes()
            # Of two, the shorter tells what the next will take.
            self._measure(Cell(size, 1, 2 if twice else 1))
            again = Cell(size, 1, 1)
            quick = self.samples[-1].seconds < self._left_s() / 8
            if not twice and quick and self._most_bytes(again) <= self._left_bytes():
                self._measure(again)
            reads = [sample for sample in self.samples[-2:] if sample.bytes == size]
            seconds.append(min(sample.seconds for sample in reads))
            growth = larger / size
            more = max(seconds[-1] - seconds[-2], 0.0) if len(seconds) > 2 else 0.0
            # If all of it were for its bytes; but hardly for so few, nor where less took as long.
            most = seconds[-1] + min(seconds[-1] * growth, larger / SLOWEST_BYTES_PER_S)
            if len(seconds) > 2:
                most = min(most, seconds[-1] + 3 * more * growth)
            likely = seconds[-1] + more * growth
            if (
                likely > self.parameters.budget_s / self.parameters.parts
                or most > self._left_s() / 3
            ):
                break
            twice = most < self._left_s() / 8

    def _read(self) -> str:
        """Read round after round; gives why it ended."""
        self._scout()
        if self.fresh:
            self._connect()
        open_cells = self._first_round()
        for _ in range(1, self.parameters.rounds):
            done = 0
            for place in self.rng.permutation(len(open_cells)).tolist():
                done += self._try(open_cells[place])
            if not done:
                return self.short_of
            open_cells = [cell for cell in open_cells if not self._settled(cell)]
            if not open_cells:
                return self.short_of or "precise"
        return "rounds"

    def _first_round(self) -> list[Cell]:
        """Climb to the most requests and the most bytes, then do the rest in any order.

        A step tells whether the next is affordable. Should there be no time for the rest, the
        limits of the store were looked for. Gives what there is to repeat.
        """
        found: dict[tuple[int, int], Cell] = {}

        def attempt(size: int, streams: int) -> bool:
            if (size, streams) in found:
                return True
            for cell in self.parameters.choices(size, streams):
                if self._try(cell):
                    found[size, streams] = cell
                    return True
            return False

        sizes, streams = self.parameters.sizes, self.parameters.streams
        # In large steps: each opens more connections, which takes round trips.
        for number in streams[::2]:
            attempt(sizes[0], number)
            # Of any, the largest size that there is room for.
            any(attempt(size, number) for size in reversed(sizes))
        rest = [(size, number) for size in sizes for number in streams]
        for place in self.rng.permutation(len(rest)).tolist():
            attempt(*rest[place])
        # As most plans read: all at once, and no more.
        at_once = [cell.at_once() for cell in found.values() if cell.requests > cell.streams > 1]
        return [*found.values(), *filter(self._try, at_once)]

    def _try(self, cell: Cell) -> bool:
        """Measure a cell if it is affordable."""
        parts = self.parameters.parts
        # What is large must leave room for what is small to be repeated.
        if max(cell.bytes * parts, self._most_bytes(cell)) > self._left_bytes():
            self.short_of = "bytes"
            return False
        if max(self._likely_s(cell) * parts, self._most_s(cell)) > self._left_s():
            self.short_of = self.short_of or "seconds"
            return False
        self._measure(cell)
        return True

    def _measure(self, cell: Cell) -> None:
        """Read once what a cell says."""
        name = self._object(cell.size)
        if cell.streams > self.connections:
            # So that opening connections is no part of the time.
            length = min(KIB, self.sizes[name])
            warm = [(0, length)] * cell.streams
            self._timed(name, warm, cell.streams)
            self.connections = cell.streams
        ranges = [(self._offset(name, cell.size), cell.size) for _ in range(cell.requests)]
        resident = self._residence(name, ranges)
        timings = self._timed(name, ranges, cell.streams)
        if cell.streams == 1:
            for timing in timings:
                self._keep(replace(_sample([timing], cell.size, 1), in_memory=resident))
        else:
            sample = _sample(timings, cell.bytes, cell.streams)
            self._keep(replace(sample, in_memory=resident))

    def _keep(self, sample: Sample) -> None:
        self.samples.append(replace(sample, at=time.time()))

    def _count(self, size: int, requests: int) -> None:
        self.bytes_moved += size
        self.requests += requests

    # Choosing -----------------------------------------------------------------------------------

    def _object(self, size: int) -> str:
        """The next object that is large enough."""
        names = [name for name, length in self.sizes.items() if length >= size]
        self.turn += 1
        return names[self.turn % len(names)]

    def _offset(self, name: str, size: int) -> int:
        """A place to read, at random, none twice before all were."""
        slots = self.slots.setdefault((name, size), [])
        if not slots:
            count = min(self.sizes[name] // size, 4096)
            step = self.sizes[name] // count
            slots.extend((self.rng.permutation(count) * step).tolist())
        return int(slots.pop())

    def _has_read(self) -> bool:
        return any(sample.kind == "read" for sample in self.samples)

    def _left_bytes(self) -> int:
        return self.parameters.budget_bytes - self.bytes_moved

    def _most_bytes(self, cell: Cell) -> int:
        """What measuring a cell moves: the object is opened, and connections that lack."""
        opening = max(map(self._opening_bytes, self.sizes))
        connecting = cell.streams * KIB + opening if cell.streams > self.connections else 0
        return cell.bytes + opening + connecting

    def _left_s(self) -> float:
        return self.parameters.budget_s - (self.clock() - self.started)

    def _likely_s(self, cell: Cell) -> float:
        """What a cell takes if no limit binds but those that were found."""
        if len(self.samples) >= 1.25 * self.known_samples:
            found = fit(self.samples)
            none: dict[str, Any] = {name: 1e300 for name in LIMITS if name not in found.spread}
            self.known, self.known_samples = replace(found.costs, **none), len(self.samples)
        assert self.known is not None
        return float(self.known.read_s(cell.bytes, cell.requests, cell.streams))

    def _most_s(self, cell: Cell) -> float:
        """What a cell takes if the store gives no more than it has given so far."""
        reads = [sample for sample in self.samples if sample.kind == "read"]
        bytes_per_s = max(sample.bytes / sample.seconds for sample in reads)
        requests_per_s = max(sample.requests / sample.seconds for sample in reads)
        limits = cell.bytes / bytes_per_s, cell.requests / requests_per_s
        return max(self._likely_s(cell), *limits)

    def _settled(self, cell: Cell) -> bool:
        """Whether the median of a cell is known well enough."""
        requests = 1 if cell.streams == 1 else cell.requests
        alike = cell.size * requests, requests, cell.streams
        logs = np.log(
            [
                sample.seconds
                for sample in self.samples
                if sample.kind == "read"
                and (sample.bytes, sample.requests, sample.streams) == alike
                and sample.seconds > 0
            ]
        )
        if len(logs) < 4:
            return False
        scale = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
        return 1.25 * scale / math.sqrt(len(logs)) < PRECISE

    # Local files --------------------------------------------------------------------------------

    def _residence(self, name: str, ranges: Iterable[tuple[int, int]]) -> bool | None:
        """Whether what will be read is in memory; both ends of each range are looked at."""
        path = self.place.file(name)
        if path is None:
            return None
        places = [at for offset, size in list(ranges)[:8] for at in (offset, offset + size - 1)]
        found = in_memory(path, places)
        self.resident.extend(found)
        return all(found) if found else None

    def _cache(self) -> str:
        return cache_state(self.resident) if self.place.is_local else "remote"

    def _notes(self) -> list[str]:
        notes = []
        cache = self._cache()
        if cache == "warm":
            notes.append("the files were in memory (page cache): this is not the disk's speed")
        elif cache == "mixed":
            notes.append("part of the files was in memory (page cache): two speeds are mixed")
        if self.bytes_moved > 2 * sum(self.sizes.values()):
            notes.append("the objects are small: their bytes were read more than once")
        return notes

    def _write(self, writing: Writing) -> None:
        """Write what a fifth of the budgets has room for; the rest of them is for reading."""
        until = self.clock() + self.parameters.budget_s / 5
        bytes_left = self.parameters.budget_bytes // 5
        cells = [(size, streams) for size in self.parameters.sizes for streams in WRITTEN_AT_ONCE]
        cells.sort(key=math.prod)
        least_byte_s = 0.0
        for turn in range(WRITINGS):
            # First upwards: each tells what the next may take.
            order = self.rng.permutation(len(cells)) if turn else range(len(cells))
            for size, streams in (cells[at] for at in order):
                moved = size * streams
                if moved > bytes_left or self.clock() + moved * least_byte_s > until:
                    continue
                seconds = writing.put(size, streams)
                self._keep(Sample("write", moved, seconds, requests=streams, streams=streams))
                self._count(moved, streams)
                bytes_left -= moved
                least_byte_s = min(least_byte_s or math.inf, seconds / moved)


def _sample(timings: Sequence[Timing], asked_bytes: int, streams: int) -> Sample:
    started = min(timing.start_s for timing in timings)
    return Sample(
        "read",
        sum(timing.bytes for timing in timings),
        max(timing.end_s for timing in timings) - started,
        requests=len(timings),
        streams=streams,
        first_byte_s=min(timing.first_byte_s for timing in timings) - started,
        asked_bytes=asked_bytes,
    )


def read_table(
    samples: Iterable[Sample], costs: Costs
) -> dict[int, dict[int, tuple[float, float]]]:
    """MB/s by size of a request and number of streams: the median measured, and the model's."""
    groups: dict[tuple[int, int], list[Sample]] = {}
    for sample in samples:
        if sample.kind == "read":
            size = sample.bytes // sample.requests
            groups.setdefault((size, sample.streams), []).append(sample)
    table: dict[int, dict[int, tuple[float, float]]] = {}
    for (size, streams), alike in sorted(groups.items()):
        rates = [sample.bytes / sample.seconds / 1e6 for sample in alike]
        alike_bytes, requests, _ = counts_of(alike)
        model = alike_bytes / costs.read_s(alike_bytes, requests, streams) / 1e6
        table.setdefault(size, {})[streams] = float(np.median(rates)), float(np.median(model))
    return table
