"""Measure writing to a store, as `swathe dataset mirror` does it."""

from __future__ import annotations

import contextlib
import http.client
import math
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.errors import OutputError, RegionError, SourceError
from swathe.costs.cost_model import Sample
from swathe.costs.fit.fit import fit
from swathe.costs.probing.staged_writes import WebDavWriter, at_once, write_file_by_parts
from swathe.costs.probing.write_stages import measure_stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    import numpy as np

    from swathe.costs.cost_model import Profile
    from swathe.costs.probing.resolve_target import ProbeTarget
    from swathe.costs.probing.write_stages import StagedWrites, StageTimes, WriteStages

STREAMS = (1, 8)
"""Numbers of objects written at the same time: one, and as many as a mirror writes."""
ROUNDS = 3
"""Number of writes of objects of each size."""
FOLDERS = 3
"""Number of folders that a dump of three axes makes."""
PATIENCE_S, DRAIN_S = 60.0, 10.0
POLL_S = 0.05
SMALL = 4096
"""Bytes of the objects that show what new folders take."""
PARTS_TOGETHER = "open and close are not told apart: the close is a whole write without content"


class WriteProbe:
    """Objects written to a folder or a store under hidden names, and removed again.

    Each is verified as every copy is (docs/design/010); that is part of the time.
    """

    def __init__(self, place: ProbeTarget) -> None:
        """Set the store.

        Raises:
            RegionError: If it is read-only.
        """
        if place.writable is None:
            raise RegionError(
                f"{place.label}: cannot be written to: expected a local folder, a bucket, or a "
                "store of dav(s):// or root://, or of several of these"
            )
        self._place = place
        self._prefix = f"{place.writable}.swathe-probe-{os.getpid()}-"
        self._engine = place.stores or _swathe.Stores("[]")
        self._folder = tempfile.TemporaryDirectory(prefix="swathe-probe-")
        self._names: set[str] = set()
        self._folders: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the objects written, all that can be removed."""
        with contextlib.ExitStack() as every:
            every.callback(self._folder.cleanup)
            for folder in self._folders:  # an inner one is removed before an outer one
                every.callback(self._remove_folder, folder)
            for name in sorted(self._names):
                every.callback(self._engine.remove, name)

    def put(self, size: int, streams: int = 1) -> float:
        """Write this many objects of one size in parallel; return the seconds until all exist.

        Raises:
            OutputError: If one cannot be written, or takes more than a minute.
        """
        local = Path(self._folder.name) / f"{size}"
        if not local.exists():
            local.write_bytes(os.urandom(size))
        return self._copy(local, [f"{self._prefix}{size}-{number}" for number in range(streams)])

    def _copy(self, local: Path, names: Sequence[str]) -> float:
        """Copy a file to objects in parallel; return the seconds until all exist."""
        size, streams = local.stat().st_size, len(names)
        version = self._engine.open(str(local)).version
        self._names.update(names)
        began = time.perf_counter()
        copies = _swathe.Copies(
            [(str(local), version, name, True) for name in names], streams, self._engine
        )
        try:
            while (outcomes := copies.poll(POLL_S)) is not None:
                for copy in outcomes:
                    if copy.kind is not None:
                        name = names[copy.number]
                        raise OutputError(f"{name}: cannot be written: {copy.reason}")
                if time.perf_counter() - began > PATIENCE_S:
                    raise OutputError(
                        f"{names[0]}: {size} bytes were not written in {PATIENCE_S:g} s"
                    )
            return time.perf_counter() - began
        finally:
            copies.cancel()
            # No copy may arrive after its removal.
            until = time.perf_counter() + DRAIN_S
            while copies.poll(POLL_S) is not None and time.perf_counter() < until:
                pass

    def samples(
        self,
        sizes: Sequence[int],
        max_time_s: float,
        max_bytes: int,
        rng: np.random.Generator,
        clock: Callable[[], float],
    ) -> Iterator[Sample]:
        """Write objects of each size, and yield what was measured, within limits of time and bytes.

        Args:
            sizes: sizes of the objects, bytes.
            max_time_s: time limit, seconds; no write begins that is likely to exceed it.
            max_bytes: limit of bytes written.
            rng: order of all rounds but the first.
            clock: clock of the reader, in seconds.

        Raises:
            OutputError: As `put`.
        """
        until = clock() + max_time_s
        cells = sorted(((size, streams) for size in sizes for streams in STREAMS), key=math.prod)
        least_byte_s = 0.0
        for turn in range(ROUNDS):
            # First in ascending order: each predicts the time of the next.
            order = rng.permutation(len(cells)) if turn else range(len(cells))
            for size, streams in (cells[at] for at in order):
                total_bytes = size * streams
                if total_bytes > max_bytes or clock() + total_bytes * least_byte_s > until:
                    continue
                seconds = self.put(size, streams)
                yield Sample("write", total_bytes, seconds, requests=streams, streams=streams)
                max_bytes -= total_bytes
                least_byte_s = min(least_byte_s or math.inf, seconds / total_bytes)

    def stages(
        self, max_time_s: float, max_bytes: int, clock: Callable[[], float] = time.perf_counter
    ) -> WriteStages:
        """Measure the parts of a write apart, within limits of time and bytes.

        Raises:
            OutputError, AccessError, SourceError: If an object cannot be written.
        """
        write, notes = self._staged_writes()
        prefix = f"{self._prefix}stage-"
        until = clock() + max_time_s
        # Folders of this machine take next to nothing. Without plain requests of HTTP no folder
        # could be removed again.
        is_measured = not notes and not self._place.is_local
        folder_s = self._folder_s(until, clock) if is_measured else None
        stages = measure_stages(write, prefix, until - clock(), max_bytes, notes, clock)
        return replace(stages, folder_s=folder_s)

    def _folder_s(self, until: float, clock: Callable[[], float]) -> float:
        """Return what the first object in new folders takes more, as one of each dump is."""
        local = Path(self._folder.name) / "small"
        local.write_bytes(os.urandom(SMALL))
        beside = f"{self._prefix}beside"
        self._copy(local, [beside])
        more_s = []
        for turn in range(ROUNDS):
            began_s, folder = clock(), f"{self._prefix}new-{turn}"
            folders = [folder + "/0" * deep for deep in range(FOLDERS)]
            self._folders += folders
            more_s.append(self._copy(local, [f"{folders[-1]}/0"]) - self._copy(local, [beside]))
            if 2 * clock() - began_s > until:
                break
        return max(statistics.median(more_s), 0.0)

    def _remove_folder(self, folder: str) -> None:
        url = self._engine.http_url(folder)
        assert url is not None
        try:
            WebDavWriter(self._engine.bearer(folder)).remove(f"{url}/")
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"{url}: no answer: {error}") from error

    def _staged_writes(self) -> tuple[StagedWrites, list[str]]:
        """Return what writes objects with its parts timed, and what it cannot tell apart."""
        if self._place.is_local:
            return at_once(self._write_file), []
        name = f"{self._prefix}trial"
        if self._place.is_striped or self._engine.http_url(name) is None:
            return self._write_whole, [f"{PARTS_TOGETHER}, verification included"]
        try:
            self._write_by_webdav(name, b"")
        except OutputError as error:
            return self._write_whole, [f"{PARTS_TOGETHER}, verification included: {error}"]
        return at_once(self._write_by_webdav), []

    def _write_file(self, name: str, content: bytes) -> StageTimes:
        self._names.add(name)
        return write_file_by_parts(Path(name), content)

    def _write_by_webdav(self, name: str, content: bytes) -> StageTimes:
        url = self._engine.http_url(name)
        assert url is not None
        stages = WebDavWriter(self._engine.bearer(name)).write(url, content)
        self._names.add(name)
        return stages

    def _write_whole(self, names: Sequence[str], content: bytes) -> Sequence[StageTimes]:
        return [{"write": self.put(len(content), len(names))}] * len(names)


def writing_profile(samples: Iterable[Sample]) -> Profile | None:
    """Fit the cost model to samples of writing; return None if there are none.

    A `request` is an object, or a part of one, written and verified; `streams` is the number of
    them in flight.
    """
    writes = [replace(sample, kind="read") for sample in samples if sample.kind == "write"]
    return fit(writes) if writes else None
