"""What writing dumps to a store, and reading them, costs from this host."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.costs.calibration import calibrate
from swathe.costs.run_costs import RunCosts
from swathe.runs.definition.pattern import Pattern
from swathe.runs.definition.run_settings import SLOTS
from swathe.runs.storage.object_writer import DRAIN_THREADS, THREADS
from swathe.stores.staging.stage_costs import StageCosts

if TYPE_CHECKING:
    from swathe.catalog.records.staging import StageOutcome
    from swathe.costs.cost_model import Costs
    from swathe.runs.definition.run_settings import ArraySettings

UNKNOWN_FACTOR = 10.0
"""By what factor the time of a store may be less or more, if nothing was measured."""
LEAST_SPREAD = 0.1
"""Relative half width of the interval of a store that was measured, at least."""
METADATA_BYTES = 2048
"""Assumed size of an object with metadata."""
METADATA = 2
"""Objects that are written when the iterations of an array of mode `overwrite` change, or the
length of one of mode `append`: those of the array and of its group."""
ENTRY_FACTOR = 1.5
"""By what factor an entry in the catalogue may take less or more."""
STEPS, ENTRY_STEPS = 4, 2
"""How often ranks wait for each other until the shards of a dump are made, and for its entry."""
EXCHANGE_COPIES = 3
"""How often an element is copied from the rank that has it to its shard: packed, sent, placed."""


@dataclass(frozen=True)
class DumpOutcome:
    """How long a dump took.

    Attributes:
        model_s: seconds by the costs of its store.
        engine_s: actual seconds.
        ranks: number of processes that shared it.
    """

    model_s: float
    engine_s: float
    ranks: int = 1


@dataclass(frozen=True)
class Forecast:
    """A predicted time, seconds.

    Attributes:
        median_s: median.
        low_s, high_s: bounds between which 8 of 10 times lie.
    """

    median_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0

    def __add__(self, other: Forecast) -> Forecast:
        """Return the time of both: errors of one store go the same way, so bounds are added."""
        return Forecast(
            self.median_s + other.median_s, self.low_s + other.low_s, self.high_s + other.high_s
        )

    def at_least(self, other: Forecast) -> Forecast:
        """Return the longer of both times."""
        return Forecast(
            max(self.median_s, other.median_s),
            max(self.low_s, other.low_s),
            max(self.high_s, other.high_s),
        )

    def times(self, number: float) -> Forecast:
        """Return the time of a number of such things."""
        return Forecast(self.median_s * number, self.low_s * number, self.high_s * number)


@dataclass(frozen=True)
class DumpSize:
    """A dump of an array.

    Attributes:
        array: the array.
        bytes: its size.
        new_folders: how often its folders are new, of all such dumps, from 0 to 1.
    """

    array: ArraySettings
    bytes: int
    new_folders: float = 1.0

    @classmethod
    def of(cls, array: ArraySettings, dumps: int = 1) -> DumpSize:
        """Return the dumps of an array as they are expected; those that replace one are likely."""
        return cls(array, array.dump_bytes, 1 - replacements(array, dumps) / max(dumps, 1))

    @property
    def shards(self) -> int:
        """Return the number of its shards."""
        return self.array.shards_of(self.bytes)

    def making_s(self, host: RunCosts, ranks: int) -> float:
        """Return the seconds in which ranks bring its elements together as shards.

        Without an exchange, each copies its own. Else ranks pack and send at the same time, on as
        many processors as there are. What comes is placed by the owners of shards, element by
        element if a pattern is cyclic.
        """
        copy_s = self.bytes * host.copy_byte_s
        array = self.array
        if ranks == 1 or array.write == "independent":
            return copy_s / min(ranks, os.cpu_count() or 1)
        pattern = Pattern.parse(array.pattern, len(array.shape))
        placing_s = copy_s
        if any(axis.kind == "cyclic" for axis in pattern.axes):
            placing_s = self.bytes / array.itemsize * host.scatter_s
        owners = min(ranks, self.shards, os.cpu_count() or 1)
        packing_s = (EXCHANGE_COPIES - 1) * copy_s / min(ranks, os.cpu_count() or 1)
        return packing_s + (placing_s + copy_s) / owners + STEPS * ranks * host.step_s


@dataclass(frozen=True)
class StoreRate:
    """What a store costs.

    Attributes:
        write: costs of writing; a request is an object, or a part of one, written and verified.
        spread: half the range of the middle 80 % of times, relative to the prediction; `None` if
            writing was not measured.
        read: costs of reading; `None` if they are those of writing.
        outcomes: recent dumps that were written there, oldest first.
        folder_s: seconds that the first object in a new folder takes more.
        is_local: whether it is a folder of this machine.
        host: what this host takes for a dump.
        stage_outcomes: requests of staging that have ended, of a store whose objects are staged.
    """

    write: Costs
    spread: float | None = None
    read: Costs | None = None
    outcomes: tuple[DumpOutcome, ...] = ()
    folder_s: float = 0.0
    is_local: bool = False
    host: RunCosts = field(default_factory=RunCosts)
    stage_outcomes: tuple[StageOutcome, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Check whether writing was measured."""
        return self.spread is not None

    def model_s(self, dumps: Sequence[DumpSize], ranks: int = 1) -> float:
        """Return the seconds until dumps are durable that are begun together, uncorrected.

        Their shards are written at the same time. Those of the first are made before.

        Args:
            dumps: the dumps, in their order.
            ranks: number of processes that share each array.
        """
        making_s = [each.making_s(self.host, ranks) for each in dumps]
        shards, size = sum(each.shards for each in dumps), sum(each.bytes for each in dumps)
        largest = max(-(-each.bytes // each.shards) for each in dumps)
        streams = min(self.write.streams, shards, THREADS * ranks)
        store_s = float(self.write.read_s(size, shards, streams, largest))
        if not self.is_local:
            store_s += largest * self.host.spool_byte_s
        store_s += self.folder_s * max(each.new_folders for each in dumps)
        return max(making_s[0] + store_s, math.fsum(making_s))

    def dumps_s(self, dumps: Sequence[DumpSize], ranks: int = 1) -> Forecast:
        """Return the time until dumps are durable that are begun together."""
        return self._forecast(self.model_s(dumps, ranks), ranks)

    def copy_s(self, array: ArraySettings) -> Forecast:
        """Return the time in which a dump of a near store (`via`) is copied here, and entered."""
        shards, size = array.sharding.count, array.dump_bytes
        streams = min(self.write.streams, shards, DRAIN_THREADS)
        model_s = float(self.write.read_s(size, shards, streams, -(-size // shards)))
        copy = self._forecast(model_s + self.folder_s) + self.change_s().times(changes(array, 1))
        return copy + self.entry_s(array, 1)

    def entry_s(self, array: ArraySettings, dumps: int, ranks: int = 1) -> Forecast:
        """Return the time in which dumps get their entries in the catalogue."""
        entries = dumps + replacements(array, dumps)
        commits_s = self.host.commit_s * entries
        if ranks > 1:
            commits_s += ENTRY_STEPS * ranks * self.host.step_s * entries
        return Forecast(commits_s, commits_s / ENTRY_FACTOR, commits_s * ENTRY_FACTOR)

    def change_s(self) -> Forecast:
        """Return the time in which the metadata of an array are written anew."""
        return self.objects_s(METADATA, METADATA * METADATA_BYTES)

    def stored_s(self, array: ArraySettings, dumps: int, ranks: int = 1) -> Forecast:
        """Return the time until dumps, each begun after the one before, have all their objects."""
        time = self.dumps_s([DumpSize.of(array, dumps)], ranks).times(dumps)
        return time + self.change_s().times(changes(array, dumps))

    def write_s(self, array: ArraySettings, dumps: int, ranks: int = 1) -> Forecast:
        """Return the time of writing dumps of an array, as if nothing else went on."""
        return self.stored_s(array, dumps, ranks) + self.entry_s(array, dumps, ranks)

    def objects_s(self, objects: int, size: int) -> Forecast:
        """Return the time of writing objects of equal size at the same time.

        Args:
            objects: how many.
            size: their bytes in all.
        """
        return self._forecast(_objects_s(self.write, objects, size))

    def read_s(self, array: ArraySettings) -> float:
        """Return the seconds of reading one dump; long shards are read by several requests."""
        costs, sharding = self.read or self.write, array.sharding
        chunks = sharding.count * sharding.chunks_of_shard
        requests = {sharding.count, max(sharding.count, min(costs.streams, chunks))}
        return min(_objects_s(costs, each, array.dump_bytes) for each in requests)

    def stage_s(self, array: ArraySettings, dumps: int) -> float:
        """Return the seconds, at most, in which dumps come from tape if the queue is empty.

        It is 0 if nothing was staged there yet.
        """
        files, size = dumps * array.sharding.count, dumps * array.dump_bytes
        return StageCosts(self.stage_outcomes).at_most_s(files, size) or 0.0

    def index_s(self, array: ArraySettings) -> float:
        """Return the seconds of reading the indices of the shards of one dump."""
        sharding = array.sharding
        if not sharding.has_index:
            return 0.0
        size = sharding.count * sharding.index_bytes
        return _objects_s(self.read or self.write, sharding.count, size)

    def _forecast(self, model_s: float, ranks: int = 1) -> Forecast:
        """Return the time of what the costs say takes so long, corrected by recent dumps.

        Those that other numbers of ranks shared count less: what they do besides writing differs.
        """

        def weight(outcome: DumpOutcome) -> float:
            return 1 / (1 + math.log2(outcome.ranks / ranks) ** 2)

        is_known = self.spread is not None
        factor = 1 + max(self.spread or 0.0, LEAST_SPREAD) if is_known else UNKNOWN_FACTOR
        bound = math.log(factor)
        calibration = calibrate(self.outcomes, model_s, (bound, bound), weight)
        median_s = model_s * math.exp(calibration.bias)
        low_s, high_s = (
            median_s * math.exp(each) for each in (-calibration.faster, calibration.slower)
        )
        return Forecast(median_s, low_s, high_s)


def replacements(array: ArraySettings, dumps: int) -> int:
    """Return how many dumps take the place of one before."""
    return max(dumps - SLOTS, 0) if array.mode == "overwrite" else 0


def changes(array: ArraySettings, dumps: int) -> int:
    """Return how often metadata are written with dumps.

    One of mode `overwrite` has them written before and after it; the first dumps replace none. One
    of mode `append` has them written after it.
    """
    return 0 if array.mode == "create" else dumps + replacements(array, dumps)


def placed_s(
    array: ArraySettings,
    dumps: int,
    storing: Forecast,
    first: StoreRate,
    last: StoreRate,
    ranks: int,
) -> Forecast:
    """Return the time of writing dumps of an array to their place.

    With `via` they are copied there from their first store while the next ones are written. Copies
    of `drain="later"` do not count.

    Args:
        array: the array.
        dumps: number of its dumps.
        storing: time of all of them in their first store, without their entries.
        first: costs of the store that they are written to.
        last: costs of the store of their place; the same without `via`.
        ranks: number of processes that share the array.
    """
    writing = storing + first.entry_s(array, dumps, ranks)
    if first is last or array.drain != "end":
        return writing
    copy = last.copy_s(array)
    # The first copy begins after the first dump, and the last one ends after the last.
    return (writing + copy).at_least(writing.times(1 / dumps) + copy.times(dumps))


def _objects_s(costs: Costs, objects: int, size: int) -> float:
    """Return the seconds of objects of equal size, `size` bytes in all, at the same time."""
    return float(costs.read_s(size, objects, min(costs.streams, objects), -(-size // objects)))
