"""Measure writing to a store, as `swathe dataset mirror` does it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.errors import OutputError, RegionError
from swathe.costs.fit.fit import fit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from swathe.costs.cost_model import Costs, Sample
    from swathe.costs.probing.resolve_target import ProbeTarget

STREAMS = (1, 8)
"""Numbers of objects written at the same time: one, and as many as a mirror writes."""
PATIENCE_S, DRAIN_S = 60.0, 10.0
POLL_S = 0.05


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
        self._prefix = f"{place.writable}.swathe-probe-{os.getpid()}-"
        self._engine = place.stores or _swathe.Stores("[]")
        self._folder = tempfile.TemporaryDirectory(prefix="swathe-probe-")
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the objects written, all that can be removed."""
        with contextlib.ExitStack() as every:
            every.callback(self._folder.cleanup)
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
        version = self._engine.open(str(local)).version
        names = [f"{self._prefix}{size}-{number}" for number in range(streams)]
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


def writing_costs(samples: Iterable[Sample]) -> Costs | None:
    """Fit the cost model to samples of writing; return None if there are none.

    A `request` is an object, or a part of one, written and verified; `streams` is the number of
    them in flight.
    """
    writes = [replace(sample, kind="read") for sample in samples if sample.kind == "write"]
    return fit(writes).costs if writes else None
