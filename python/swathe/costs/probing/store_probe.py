"""Measure a store: choose the reads, their order, and the end.

A probe reads ranges of several sizes with several numbers of streams. It does so in rounds, each in
another order, so that a slow minute of the store affects all alike. It keeps to a budget of seconds
and bytes, which it shows beforehand, and stops earlier if the results are precise enough.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.errors import NotFoundError
from swathe.core.format import KIB, MIB
from swathe.core.store_schemes import is_added
from swathe.costs.cost_model import Costs, Sample
from swathe.costs.fit.fit import fit, fit_local
from swathe.costs.fit.robust_stats import lower_median
from swathe.costs.probing.page_cache import cache_state, in_memory
from swathe.costs.probing.probe_multiplexed import MultiplexStudy, study_multiplexing
from swathe.costs.probing.probe_result import Probe, sample_of
from swathe.costs.probing.probe_schedule import (
    PARTS,
    PRECISE,
    QUICK_PARTS,
    QUICK_SIZES,
    QUICK_STREAMS,
    ROUNDS,
    SIZES,
    STREAMS,
    Cell,
    ProbeParameters,
)
from swathe.costs.probing.probe_vectors import VectorStudy, study_vectors
from swathe.costs.probing.probe_writes import WriteProbe, writing_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from swathe.costs.probing.reader_protocol import OpenedObject, Reader, Timing
    from swathe.costs.probing.resolve_target import ProbeTarget
    from swathe.costs.probing.write_stages import WriteStages

OPENINGS = 3
"""Number of measurements of opening an object, and of opening a connection."""
SLOWEST_BYTES_PER_S = 1e5
"""Assumed least bandwidth of a store; with a slower one a quick probe may take too long."""
SURPRISE = 1.5
"""Ratio of measured to expected time from which requests in flight are measured again."""
LIMITS = ("total_bytes_per_s", "requests_per_s")
NO_LIMIT = 9e14
"""The largest of these that costs may have."""


def measure_store(
    place: ProbeTarget,
    *,
    quick: bool = False,
    max_time_s: float | None = None,
    max_bytes: int | None = None,
    seed: int | None = None,
    write: bool = False,
    tell: Callable[[str], None] | None = None,
    reader: Reader = _swathe,
    clock: Callable[[], float] = time.perf_counter,
) -> Probe:
    """Measure a store.

    Args:
        place: store and objects to read; see `find_place`.
        quick: whether to take only some seconds, with fewer sizes.
        max_time_s: time limit in seconds; by default 30, or 5 if `quick`.
        max_bytes: limit of bytes moved; by default 512 MiB, or 64 MiB if `quick`; for local
            files eight times that.
        seed: seed of the order; by default another one each time.
        write: whether to write objects, too, and remove them.
        tell: function called with the plan of the probe before it begins.
        reader: reader to measure with.
        clock: clock of the reader, in seconds.

    Raises:
        NotFoundError: If there is nothing to read.
        RegionError: If `write` is true and nothing can be written.
        OutputError: If writing fails.
    """
    max_time_s, max_bytes = limits_of(place, quick, max_time_s, max_bytes)
    parameters = ProbeParameters(
        sizes=QUICK_SIZES if quick else SIZES,
        streams=QUICK_STREAMS if quick else STREAMS,
        rounds=ROUNDS,
        max_time_s=max_time_s,
        max_bytes=max_bytes,
        parts=QUICK_PARTS if quick else PARTS,
        seed=seed if seed is not None else int.from_bytes(os.urandom(4), "big"),
        objects=place.objects,
        write=write,
    )
    with WriteProbe(place) if write else contextlib.nullcontext() as writing:
        return _ProbeRun(place, parameters, reader, clock).run(
            tell or (lambda _text: None), writing
        )


def limits_of(
    place: ProbeTarget, quick: bool, max_time_s: float | None, max_bytes: int | None
) -> tuple[float, int]:
    """Return the limits of a probe, seconds and bytes: those given, else the usual ones."""
    usual_bytes = (64 if quick else 512) * MIB * (8 if place.is_local else 1)
    usual_s = 5.0 if quick else 30.0
    return (
        usual_s if max_time_s is None else max_time_s,
        usual_bytes if max_bytes is None else max_bytes,
    )


class _ProbeRun:
    """A probe in progress."""

    def __init__(
        self,
        place: ProbeTarget,
        parameters: ProbeParameters,
        reader: Reader,
        clock: Callable[[], float],
    ) -> None:
        self.place, self.parameters, self.reader = place, parameters, reader
        self.stores, self.clock = place.stores, clock
        self.rng = np.random.default_rng(parameters.seed)
        self.samples: list[Sample] = []
        self.sources: dict[str, OpenedObject] = {}
        self.sizes: dict[str, int] = {}
        self.vanished: list[str] = []
        self.slots: dict[tuple[str, int], list[int]] = {}
        self.bytes_moved = self.requests = self.turn = 0
        self.connections = 1
        self.recorded_costs: Costs | None = None
        self.recorded_samples = 0
        self.resident: list[bool] = []
        self.short_of = ""
        self.fresh: list[float] = []
        self.start_s = self.clock()

    def run(self, tell: Callable[[str], None], writing: WriteProbe | None) -> Probe:
        """Run the whole probe."""
        self._open_objects()
        largest = max(self.sizes.values())
        if largest < 1:
            name = _swathe.redact_url(self.parameters.objects[0])
            raise NotFoundError(f"{name}: is empty; nothing to measure")
        write_sizes = self.parameters.write_sizes
        fitting = [size for size in self.parameters.sizes if size <= largest] or [largest]
        self.parameters = replace(self.parameters, sizes=tuple(fitting))
        tell(str(self.parameters))
        self.start_s = self.clock()
        # First: a connection that idled for as long may be closed as it is used again, and what is
        # timed is not tried twice. Objects are opened with more than one try.
        stages = None if writing is None else self._write(writing, write_sizes)
        self._open()
        # Without the time of single requests of some sizes nothing else can be known.
        self._scout()
        vectors = self._vectors()
        reason = self._read()
        profile = fit_local(self.samples) if self.place.is_local else fit(self.samples)
        if vectors is not None:
            multi_range = vectors.multi_range(profile.costs)
            profile = replace(profile, costs=replace(profile.costs, multi_range=multi_range))
        study = self._study_multiplex(profile.costs)
        if study is not None:
            multiplex = study.costs()
            profile = replace(profile, costs=replace(profile.costs, multiplexed=multiplex))
        seconds = self.clock() - self.start_s
        write_profile = writing_profile(self.samples)
        return Probe(
            root=self.place.root,
            label=self.place.label,
            parameters=self.parameters,
            samples=self.samples,
            profile=profile,
            elapsed_s=seconds,
            bytes_moved=self.bytes_moved,
            requests=self.requests,
            cache=self._cache(),
            end_reason=reason,
            notes=self._notes()
            + ([] if vectors is None else vectors.notes())
            + ([] if study is None else study.notes(profile.costs)),
            writing=None if write_profile is None else write_profile.costs,
            stages=stages,
        )

    def _open_objects(self) -> None:
        """Open all objects but those of a list that have vanished since; one must be left."""
        for name in self.parameters.objects:
            begun_s = self.clock()
            try:
                source = self.reader.open_source(name, self.stores)
            except NotFoundError:
                is_last = len(self.vanished) + 1 == len(self.parameters.objects)
                if is_last or not self.place.are_listed:
                    raise
                self.vanished.append(name)
                continue
            self.sources[name], self.sizes[name] = source, source.size
            self._count(source.opened_bytes, 0 if self.place.is_local else 1)
            if not self.place.is_local and len(self.sizes) == 1:
                # It opened a connection, too, so it counts only where others took longer.
                self._keep(Sample("open", source.opened_bytes, self.clock() - begun_s))
        self.parameters = replace(self.parameters, objects=tuple(self.sources))

    def _vectors(self) -> VectorStudy | None:
        """Learn how requests for many ranges are answered; None of stores that have none."""
        if not self._has_requests() or _swathe.StoreKind(self.place.root).is_bucket:
            return None
        options = self._study_options()
        options["max_time_s"] = min(options["max_time_s"], self._left_s() / 3)
        study = study_vectors(self._largest(), **options)
        self._count(study.bytes_moved, study.requests)
        return study

    def _has_requests(self) -> bool:
        """Return whether objects are read by requests of HTTP to one server."""
        return not (self.place.is_striped or self.place.is_local or is_added(self.place.root))

    def _study_multiplex(self, costs: Costs) -> MultiplexStudy | None:
        """Learn how requests on one connection are answered; None of stores that have none."""
        if not self._has_requests():
            return None
        study = study_multiplexing(self._largest(), costs, **self._study_options())
        self._count(study.bytes_moved, study.requests)
        return study

    def _largest(self) -> OpenedObject:
        return max(self.sources.values(), key=lambda source: source.size)

    def _study_options(self) -> dict[str, Any]:
        """Return the budgets of a study of one object, and its clock."""
        return {
            "quick": self.parameters.streams == QUICK_STREAMS,
            "max_time_s": self.parameters.max_time_s / 5,
            "max_bytes": max(self._left_bytes(), 0) // 5,
            "clock": self.clock,
        }

    def _open(self) -> None:
        """Measure the time before the first byte."""
        name, source = next(iter(self.sources.items()))
        part = [(0, min(self.parameters.sizes[0], source.size))]
        first_bytes, begun_s = source.opened_bytes, self.clock()
        for turn in range(OPENINGS):
            if turn and self.clock() - begun_s > self.parameters.max_time_s / 8:
                break
            seconds = self.reader.measure_open(name, self.stores)[0]
            self._count(first_bytes, 0 if self.place.is_local else 1)
            self._keep(Sample("open", first_bytes, seconds))
            if not self.place.is_local:
                [timing] = self._time(name, part, 1, fresh=True)
                self.fresh.append(timing.first_byte_s - timing.start_s)

    def _connect(self) -> None:
        """Measure how much later first bytes come if a connection must be opened for them."""
        size = min(self.parameters.sizes[0], next(iter(self.sizes.values())))
        open_seconds = [
            sample.first_byte_s
            for sample in self.samples
            if sample.kind == "read" and sample.bytes == size and sample.first_byte_s is not None
        ]
        for seconds in self.fresh:
            self._keep(
                Sample("connect", 0, max(seconds - lower_median(np.array(open_seconds)), 0.0))
            )

    def _time(
        self, name: str, ranges: list[tuple[int, int]], streams: int, fresh: bool = False
    ) -> Sequence[Timing]:
        """Read ranges of an object."""
        timings = self.sources[name].measure(ranges, streams, fresh=fresh)
        self._count(sum(length for _, length in ranges), len(ranges))
        return timings

    def _scout(self) -> None:
        """Read each size twice, alone, while the next is affordable even if time goes by bytes."""
        sizes = self.parameters.sizes
        seconds, twice = [0.0], True
        for size, larger in zip(sizes, [*sizes[1:], 0], strict=True):
            if self._has_read() and self._most_bytes(Cell(size, 1, 1)) > self._left_bytes():
                self.short_of = "bytes"
                break
            twice = twice and self._most_bytes(Cell(size, 1, 2)) <= self._left_bytes()
            # Of two times, the shorter predicts the next size.
            self._measure(Cell(size, 1, 2 if twice else 1))
            again = Cell(size, 1, 1)
            quick = self.samples[-1].elapsed_s < self._left_s() / 8
            if not twice and quick and self._most_bytes(again) <= self._left_bytes():
                self._measure(again)
            reads = [sample for sample in self.samples[-2:] if sample.bytes == size]
            seconds.append(min(sample.elapsed_s for sample in reads))
            # What a larger one takes longer: a slow line shows in the time after the first byte.
            sending_s = min(sample.elapsed_s - (sample.first_byte_s or 0.0) for sample in reads)
            more_s = sending_s * larger / size
            likely = seconds[-1] + more_s
            most = seconds[-1] + min(3 * more_s, larger / SLOWEST_BYTES_PER_S)
            if (
                likely > self.parameters.max_time_s / self.parameters.parts
                or most > self._left_s() / 3
            ):
                break
            twice = most < self._left_s() / 8

    def _read(self) -> str:
        """Read round after round; return why it ended."""
        if self.fresh:
            self._connect()
        open_cells = self._first_round()
        for _ in range(1, self.parameters.rounds):
            count = 0
            for place in self.rng.permutation(len(open_cells)).tolist():
                count += self._try(open_cells[place])
            if not count:
                return self.short_of
            open_cells = [cell for cell in open_cells if not self._is_settled(cell)]
            if not open_cells:
                return self.short_of or "precise"
        return "rounds"

    def _first_round(self) -> list[Cell]:
        """Climb to the most requests and the most bytes, then do the rest in any order.

        A step tells whether the next is affordable. If there is no time for the rest, the limits of
        the store have been tried. Return the cells to repeat.
        """
        cells: dict[tuple[int, int], Cell] = {}

        def attempt(size: int, streams: int) -> bool:
            if (size, streams) in cells:
                return True
            for cell in self.parameters.choices(size, streams):
                likely_s = self._likely_s(cell)
                if self._try(cell):
                    self._confirm(cell, likely_s)
                    cells[size, streams] = cell
                    return True
            return False

        sizes, streams = self.parameters.sizes, self.parameters.streams
        # In large steps: each opens more connections, which takes round trips. If a large one is
        # not affordable by what is known, the one between may show that it is.
        for at in range(0, len(streams), 2):
            if not attempt(sizes[0], streams[at]) and at:
                attempt(sizes[0], streams[at - 1])
                attempt(sizes[0], streams[at])
            # For each number of streams, the largest affordable size: one that is measured may show
            # that a larger one is affordable.
            count = -1
            while count < len(cells):
                count = len(cells)
                any(attempt(size, streams[at]) for size in reversed(sizes))
        rest = [(size, number) for size in sizes for number in streams]
        for place in self.rng.permutation(len(rest)).tolist():
            attempt(*rest[place])
        # As most plans read: all requests at once, in one round.
        at_once = [cell.at_once() for cell in cells.values() if cell.requests > cell.streams > 1]
        return [*cells.values(), *filter(self._try, at_once)]

    def _try(self, cell: Cell) -> bool:
        """Measure a cell if it is affordable."""
        parts = self.parameters.parts
        # Large reads must leave room to repeat small ones.
        if max(cell.bytes * parts, self._most_bytes(cell)) > self._left_bytes():
            self.short_of = "bytes"
            return False
        if max(self._likely_s(cell) * parts, self._most_s(cell)) > self._left_s():
            self.short_of = self.short_of or "seconds"
            return False
        self._measure(cell)
        return True

    def _confirm(self, cell: Cell, likely_s: float) -> None:
        """Measure a cell again if it took longer than likely: a limit, or only a slow moment."""
        took_s = self.samples[-1].elapsed_s
        is_affordable = took_s < self._left_s() / 2 and 2 * cell.bytes < self._left_bytes()
        if cell.streams > 1 and took_s > SURPRISE * likely_s and is_affordable:
            self._measure(cell)

    def _measure(self, cell: Cell) -> None:
        """Measure a cell once."""
        name = self._object(cell.size)
        if cell.streams > self.connections:
            # Open the connections first, so that their time does not count.
            length = min(KIB, self.sizes[name])
            warm = [(0, length)] * cell.streams
            self._time(name, warm, cell.streams)
            self.connections = cell.streams
        ranges = [(self._offset(name, cell.size), cell.size) for _ in range(cell.requests)]
        resident = self._residence(name, ranges)
        timings = self._time(name, ranges, cell.streams)
        if cell.streams == 1:
            for timing in timings:
                self._keep(replace(sample_of([timing], cell.size, 1), in_memory=resident))
        else:
            sample = sample_of(timings, cell.bytes, cell.streams)
            self._keep(replace(sample, in_memory=resident))

    def _keep(self, sample: Sample) -> None:
        self.samples.append(replace(sample, at=time.time()))

    def _count(self, size: int, requests: int) -> None:
        self.bytes_moved += size
        self.requests += requests

    # Choosing -----------------------------------------------------------------------------------

    def _object(self, size: int) -> str:
        """Return the next object that is large enough."""
        names = [name for name, length in self.sizes.items() if length >= size]
        self.turn += 1
        return names[self.turn % len(names)]

    def _offset(self, name: str, size: int) -> int:
        """Return a random position to read; none is repeated before all were read."""
        slots = self.slots.setdefault((name, size), [])
        if not slots:
            count = min(self.sizes[name] // size, 4096)
            step = self.sizes[name] // count
            slots.extend((self.rng.permutation(count) * step).tolist())
        return int(slots.pop())

    def _has_read(self) -> bool:
        return any(sample.kind == "read" for sample in self.samples)

    def _left_bytes(self) -> int:
        return self.parameters.max_bytes - self.bytes_moved

    def _most_bytes(self, cell: Cell) -> int:
        """Return the bytes moved to measure a cell, with new connections."""
        return cell.bytes + (cell.streams * KIB if cell.streams > self.connections else 0)

    def _left_s(self) -> float:
        return self.parameters.max_time_s - (self.clock() - self.start_s)

    def _likely_s(self, cell: Cell) -> float:
        """Return the time of a cell if only the limits found so far bind."""
        if len(self.samples) >= 1.25 * self.recorded_samples:
            profile = fit(self.samples)
            none: dict[str, Any] = {name: NO_LIMIT for name in LIMITS if name not in profile.spread}
            self.recorded_costs, self.recorded_samples = (
                replace(profile.costs, **none),
                len(self.samples),
            )
        assert self.recorded_costs is not None
        return float(self.recorded_costs.read_s(cell.bytes, cell.requests, cell.streams))

    def _most_s(self, cell: Cell) -> float:
        """Return the time of a cell if the store is no faster than so far."""
        reads = [sample for sample in self.samples if sample.kind == "read"]
        bytes_per_s = max(sample.bytes / sample.elapsed_s for sample in reads)
        requests_per_s = max(sample.requests / sample.elapsed_s for sample in reads)
        limits = cell.bytes / bytes_per_s, cell.requests / requests_per_s
        return max(self._likely_s(cell), *limits)

    def _is_settled(self, cell: Cell) -> bool:
        """Check whether the median of a cell is precise enough."""
        requests = 1 if cell.streams == 1 else cell.requests
        alike = cell.size * requests, requests, cell.streams
        logs = np.log(
            [
                sample.elapsed_s
                for sample in self.samples
                if sample.kind == "read"
                and (sample.bytes, sample.requests, sample.streams) == alike
                and sample.elapsed_s > 0
            ]
        )
        if len(logs) < 4:
            return False
        scale = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
        return 1.25 * scale / math.sqrt(len(logs)) < PRECISE

    # Local files --------------------------------------------------------------------------------

    def _residence(self, name: str, ranges: Iterable[tuple[int, int]]) -> bool | None:
        """Check whether the bytes to read are in memory, at both ends of each range."""
        path = self.place.file(name)
        if path is None:
            return None
        places = [at for offset, size in list(ranges)[:8] for at in (offset, offset + size - 1)]
        states = in_memory(path, places)
        self.resident.extend(states)
        return all(states) if states else None

    def _cache(self) -> str:
        return cache_state(self.resident) if self.place.is_local else "remote"

    def _notes(self) -> list[str]:
        notes = [f"{_swathe.redact_url(name)}: vanished, left out" for name in self.vanished]
        cache = self._cache()
        if cache == "warm":
            notes.append("the files were in memory (page cache): this is not the disk's speed")
        elif cache == "mixed":
            notes.append("part of the files was in memory (page cache): two speeds are mixed")
        if self.bytes_moved > 2 * sum(self.sizes.values()):
            notes.append("the objects are small: their bytes were read more than once")
        return notes

    def _write(self, writing: WriteProbe, sizes: Sequence[int]) -> WriteStages:
        """Write what half of the budgets allows, a fifth of it for the parts of a write."""
        seconds, size = self.parameters.max_time_s / 10, self.parameters.max_bytes // 10
        limits = 4 * seconds, 4 * size
        for sample in writing.samples(sizes, *limits, self.rng, self.clock):
            self._keep(sample)
            self._count(sample.bytes, sample.requests)
        stages = writing.stages(seconds, size, self.clock)
        self._count(stages.bytes_moved, stages.objects)
        return stages
