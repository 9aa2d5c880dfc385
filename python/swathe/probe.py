"""Measuring a store: which reads, in which order, until when.

A probe reads ranges of several sizes with several numbers of streams, in rounds that each go
through them in another order, so that a slow minute of the store falls on all alike. It keeps
to a budget of seconds and bytes that it tells beforehand, and stops sooner where what it knows
is precise enough.
"""

from __future__ import annotations

import math
import os
import platform
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.errors import NotFoundError, RegionError
from swathe.fitting import fit
from swathe.profile import Costs, Profile, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from swathe.reader import Reader, Timing

KIB, MIB = 1024, 1024 * 1024
SIZES = tuple(KIB * 4**power for power in range(8))
QUICK_SIZES = (KIB, 16 * KIB, 256 * KIB, 4 * MIB)
STREAMS = (1, 2, 4, 8, 16, 32, 64)
QUICK_STREAMS = (1, 4, 16)
ALONE = 3
"""Single requests of one size a round."""
PRECISE = 0.03
"""A size and number of streams is settled when its median is known to this part."""
ROUNDS = 30
PARTS, QUICK_PARTS = 12, 5
LIMITS = ("total_bytes_per_s", "requests_per_s")
FILES = 16
"""Of a folder, the largest so many are read."""


@dataclass(frozen=True)
class Cell:
    """Requests of one size on one number of streams."""

    size: int
    streams: int
    requests: int

    @property
    def bytes(self) -> int:
        """Moved each time."""
        return self.size * self.requests


@dataclass(frozen=True)
class Parameters:
    """What a probe may use and will do; kept with its result.

    Attributes
    ----------
    rounds
        How often each size and number of streams is measured at most.
    parts
        One measurement takes at most so small a part of each budget.
    seed
        Of the order of measurements and the places that are read.

    """

    sizes: tuple[int, ...]
    streams: tuple[int, ...]
    rounds: int
    budget_s: float
    budget_bytes: int
    parts: int
    seed: int
    objects: tuple[str, ...] = ()
    write: bool = False

    def as_dict(self) -> dict[str, Any]:
        """In numbers, texts and lists."""
        own = asdict(self).items()
        return {name: list(of) if isinstance(of, tuple) else of for name, of in own}

    def cells(self) -> list[Cell]:
        """All combinations of size and streams that the bytes have room for."""
        cells = [Cell(size, streams, 0) for size in self.sizes for streams in self.streams]
        return [found[0] for cell in cells if (found := self.choices(cell.size, cell.streams))]

    def choices(self, size: int, streams: int) -> list[Cell]:
        """Ways to measure a combination, the best first.

        Four rounds of all streams, or two: in a single one, what is measured is how requests
        start, which the model leaves out.
        """
        numbers = (ALONE, 1) if streams == 1 else (4 * streams, 2 * streams)
        cells = (Cell(size, streams, number) for number in numbers)
        return [cell for cell in cells if cell.bytes * self.parts <= self.budget_bytes]

    def __str__(self) -> str:
        cells = self.cells()
        streams = max((cell.streams for cell in cells), default=1)
        requests = self.rounds * sum(cell.requests + cell.streams for cell in cells)
        size = min(self.budget_bytes, self.rounds * sum(cell.bytes for cell in cells))
        return (
            f"at most {requests} requests, {size / 1e6:.0f} MB and {self.budget_s:g} s: "
            f"{_size(self.sizes[0])} to {_size(self.sizes[-1])}, "
            f"1 to {streams} streams"
        )


@dataclass
class Probe:
    """What a probe found.

    Attributes
    ----------
    root
        The store, as given.
    cache
        Of local files, whether their bytes were in memory: `warm`, `cold`, `mixed`, `unknown`;
        `remote` of others.
    stopped
        Why it ended: `precise`, `rounds`, `seconds` or `bytes`.

    """

    root: str
    parameters: Parameters
    samples: list[Sample]
    profile: Profile
    seconds: float
    bytes_moved: int
    requests: int
    cache: str
    stopped: str
    host: str = field(default_factory=platform.node)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All but the samples, for JSON."""
        return {
            "root": self.root,
            "host": self.host,
            "costs": self.profile.costs.as_dict(),
            "spread": self.profile.spread,
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
    url: str,
    *,
    objects: Sequence[str] = (),
    quick: bool = False,
    budget_s: float | None = None,
    budget_bytes: int | None = None,
    seed: int | None = None,
    write: bool = False,
    stores: Any = None,
    tell: Callable[[str], None] | None = None,
    reader: Reader | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Probe:
    """Measure a store.

    Args:
        url: the store, or one object of it.
        objects: what to read, else `url` itself, or the largest files of a local folder.
        quick: some seconds, fewer sizes.
        budget_s: seconds it may take; by default 30, or 5.
        budget_bytes: bytes it may move; by default 512 MiB, or 64 MiB; of local files eight
            times that.
        seed: of the order; by default another one each time.
        write: also put small files into the folder, and remove them.
        stores: options of stores, for the native half.
        tell: is told what the probe will use, before it does.
        reader: what to read with.
        clock: its time, in seconds.

    Raises:
        NotFoundError: where there is nothing to read.
    """
    reading: Reader = _swathe if reader is None else reader
    found = list(objects) or find_objects(url)
    usual_bytes = (64 if quick else 512) * MIB * (1 if local_path(url) is None else 8)
    parameters = Parameters(
        sizes=QUICK_SIZES if quick else SIZES,
        streams=QUICK_STREAMS if quick else STREAMS,
        rounds=ROUNDS,
        budget_s=budget_s if budget_s is not None else (5.0 if quick else 30.0),
        budget_bytes=usual_bytes if budget_bytes is None else budget_bytes,
        parts=QUICK_PARTS if quick else PARTS,
        seed=seed if seed is not None else int.from_bytes(os.urandom(4), "big"),
        objects=tuple(found),
        write=write,
    )
    return _Run(url, parameters, reading, stores, clock).run(tell or (lambda _text: None))


def find_objects(url: str) -> list[str]:
    """What to read of a store: the object itself, or a local folder's largest files.

    Raises:
        NotFoundError: where that cannot be found out, or there is nothing.
    """
    path = local_path(url)
    if path is None:
        if url.endswith("/"):
            raise NotFoundError(f"{url}: this store cannot be listed; name an object to read")
        return [url]
    if not path.is_dir():
        return [str(path)]
    files = []
    for entry in path.rglob("*"):
        if entry.is_file() and not entry.name.startswith("."):
            files.append((entry.stat().st_size, str(entry)))
        if len(files) >= 10_000:
            break
    largest = [name for size, name in sorted(files, reverse=True)[:FILES] if size >= KIB]
    if not largest:
        raise NotFoundError(f"{url}: no file of at least 1 KiB to read")
    return largest


def local_path(url: str) -> Path | None:
    """The path of a local store or object; None where it is remote."""
    if url.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        return Path(unquote(urlsplit(url).path))
    return None if "://" in url else Path(url)


class _Run:
    """A probe on its way."""

    def __init__(
        self,
        root: str,
        parameters: Parameters,
        reader: Reader,
        stores: Any,
        clock: Callable[[], float],
    ) -> None:
        self.root, self.parameters, self.reader = root, parameters, reader
        self.stores, self.clock = stores, clock
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
        self.started = self.clock()

    def run(self, tell: Callable[[str], None]) -> Probe:
        """Do it all."""
        for name in self.parameters.objects:
            self.sizes[name] = self.reader.measure_open(name, self.stores)[1]
        largest = max(self.sizes.values())
        if largest < 1:
            raise NotFoundError(f"{self.parameters.objects[0]}: is empty; nothing to measure")
        fitting = [size for size in self.parameters.sizes if size <= largest] or [largest]
        self.parameters = replace(self.parameters, sizes=tuple(fitting))
        tell(str(self.parameters))
        self.started = self.clock()
        self._open()
        if self.parameters.write:
            self._write()
        stopped = self._read()
        seconds = self.clock() - self.started
        return Probe(
            root=self.root,
            parameters=self.parameters,
            samples=self.samples,
            profile=fit(self.samples),
            seconds=seconds,
            bytes_moved=self.bytes_moved,
            requests=self.requests,
            cache=self._cache(),
            stopped=stopped,
            notes=self._notes(),
        )

    def _open(self) -> None:
        """Measure what comes before the first byte."""
        name, size = next(iter(self.sizes.items()))
        length = min(self.parameters.sizes[0], size)
        for turn in range(3):
            if turn and self.clock() - self.started > self.parameters.budget_s / 10:
                break
            seconds, _size_now = self.reader.measure_open(name, self.stores)
            self._keep(Sample("open", 0, seconds))
            timing = self.reader.measure(name, [(0, length)], 1, fresh=True, stores=self.stores)[0]
            self._count(length, 1)
            if timing.connect_s is not None:
                self._keep(Sample("connect", 0, timing.connect_s))

    def _scout(self) -> None:
        """Read once of each size, alone, while the next is affordable even if it is all bytes."""
        low, high = self.parameters.sizes[0], self.parameters.sizes[-1]
        sizes = [size for size in SIZES if low <= size <= high] or [low]
        seconds = [0.0]
        for size, larger in zip(sizes, [*sizes[1:], 0], strict=True):
            # Of two, the shorter tells what the next will take.
            self._measure(Cell(size, 1, 1))
            if self.samples[-1].seconds < self._left_s() / 8:
                self._measure(Cell(size, 1, 1))
            reads = [sample for sample in self.samples[-2:] if sample.bytes == size]
            seconds.append(min(sample.seconds for sample in reads))
            growth = larger / size
            likely = seconds[-1] + (seconds[-1] - seconds[-2]) * growth
            if (
                likely > self.parameters.budget_s / self.parameters.parts
                or seconds[-1] * growth > self._left_s() / 3
            ):
                break

    def _read(self) -> str:
        """Read round after round; gives why it ended."""
        self._scout()
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
        """Climb to the most requests, then to the most bytes, then do the rest in any order.

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
        for number in streams:
            attempt(sizes[0], number)
        for number in streams:
            # Of any, the largest size that there is room for.
            any(attempt(size, number) for size in reversed(sizes))
        rest = [(size, number) for size in sizes for number in streams]
        for place in self.rng.permutation(len(rest)).tolist():
            attempt(*rest[place])
        return list(found.values())

    def _try(self, cell: Cell) -> bool:
        """Measure a cell if it is affordable."""
        if self.bytes_moved + cell.bytes > self.parameters.budget_bytes:
            self.short_of = "bytes"
            return False
        likely = self._likely_s(cell)
        if likely > self.parameters.budget_s / self.parameters.parts or (
            self._most_s(cell) > self._left_s()
        ):
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
            self.reader.measure(name, warm, cell.streams, stores=self.stores)
            self._count(length * cell.streams, cell.streams)
            self.connections = cell.streams
        ranges = [(self._offset(name, cell.size), cell.size) for _ in range(cell.requests)]
        self._note_residence(name, ranges)
        timings = self.reader.measure(name, ranges, cell.streams, stores=self.stores)
        self._count(cell.bytes, cell.requests)
        if cell.streams == 1:
            for timing in timings:
                self._keep(_sample([timing], cell.size, 1))
        else:
            self._keep(_sample(timings, cell.bytes, cell.streams))

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
        logs = np.log(
            [
                sample.seconds
                for sample in self.samples
                if sample.kind == "read"
                and sample.streams == cell.streams
                and sample.bytes * (cell.requests if cell.streams == 1 else 1) == cell.bytes
                and sample.seconds > 0
            ]
        )
        if len(logs) < 4:
            return False
        scale = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
        return 1.25 * scale / math.sqrt(len(logs)) < PRECISE

    # Local files --------------------------------------------------------------------------------

    def _note_residence(self, name: str, ranges: Iterable[tuple[int, int]]) -> None:
        path = local_path(name)
        if path is not None:
            self.resident.extend(in_memory(path, [offset for offset, _ in list(ranges)[:8]]))

    def _cache(self) -> str:
        if local_path(self.root) is None:
            return "remote"
        if not self.resident:
            return "unknown"
        share = sum(self.resident) / len(self.resident)
        return "warm" if share > 0.9 else "cold" if share < 0.1 else "mixed"

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

    def _write(self) -> None:
        """Put files of the sizes into the folder under a temporary name, and remove them.

        Raises:
            RegionError: where the store is no local folder.
        """
        folder = local_path(self.root)
        if folder is None or not folder.is_dir():
            raise RegionError(f"{self.root}: only a local folder can be written to")
        path = folder / f".swathe-probe-{os.getpid()}"
        try:
            for _ in range(3):
                for size in self.rng.permutation(self.parameters.sizes).tolist():
                    # A fifth of the budgets, the rest is for reading.
                    used_s = self.clock() - self.started
                    if (
                        used_s > self.parameters.budget_s / 5
                        or self.bytes_moved + size > self.parameters.budget_bytes / 5
                    ):
                        continue
                    self._keep(Sample("write", size, _put(path, size)))
                    self._count(size, 1)
        finally:
            path.unlink(missing_ok=True)


def _put(path: Path, size: int) -> float:
    """Seconds to write a file down to the disk."""
    content = os.urandom(size)
    started = time.perf_counter()
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - started


def in_memory(path: Path, offsets: Iterable[int]) -> list[bool]:
    """Whether the bytes of a file at these offsets are in the page cache; nothing if unknown."""
    if not hasattr(os, "RWF_NOWAIT"):
        return []
    found = []
    try:
        with path.open("rb", buffering=0) as file:
            for offset in offsets:
                try:
                    found.append(
                        bool(os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT))
                    )
                except BlockingIOError:
                    found.append(False)
    except OSError:
        return []  # a file system without it
    return found


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
        first = alike[0]
        model = first.bytes / float(costs.read_s(first.bytes, first.requests, streams)) / 1e6
        table.setdefault(size, {})[streams] = float(np.median(rates)), model
    return table


def _size(size: int) -> str:
    return (
        f"{size // MIB} MiB"
        if size >= MIB
        else f"{size // KIB} KiB"
        if size >= KIB
        else f"{size} B"
    )
