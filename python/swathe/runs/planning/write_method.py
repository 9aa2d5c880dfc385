"""How the ranks of a run write an array: which objects it is cut into, and who writes them.

- `collective`: large shards. Ranks send their elements to those that write them (two-phase I/O).
- `independent`: no shard reaches over the block of a rank. Each writes its own; nothing is sent.
- `subfile`: an object for each chunk, without an index. A section reads, and stages, only the
  objects that it touches.

No two ranks write the same object. The method that is predicted to cost least is chosen, from the
measured costs of the stores.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from swathe.core.errors import OptionError, SettingsError
from swathe.core.format import count_text, seconds_text
from swathe.runs.definition import shards
from swathe.runs.definition.pattern import Pattern
from swathe.runs.definition.run_settings import ArraySettings, WriteMethod
from swathe.runs.planning.array_use import use_of
from swathe.runs.planning.store_rate import LEAST_SPREAD, StoreRate
from swathe.runs.storage.object_writer import MOST_WAITING

METHODS: tuple[WriteMethod, ...] = ("collective", "independent", "subfile")
MOST_NOISE = 0.25
"""Relative difference of costs that is always taken for one: what makes one time of a store longer
than another is mostly the same for all methods."""

Parts = Sequence[tuple[StoreRate, int]]
"""Costs of the stores of an array, and the number of its dumps in each."""


@dataclass(frozen=True)
class WriteOption:
    """One way to write an array.

    Attributes:
        array: its settings, with this method and these shards.
        objects: objects of a dump.
        cost_s: predicted seconds: of writing all dumps, of sending elements, and, weighted, of
            reading.
    """

    array: ArraySettings
    objects: int
    cost_s: float

    def __str__(self) -> str:
        """Return it in words."""
        cost = seconds_text(self.cost_s)
        return f"{self.array.write} ({count_text(self.objects, 'object')} a dump, {cost})"


@dataclass(frozen=True)
class WriteChoice:
    """How an array is written.

    Attributes:
        array: its settings, with a method and shards.
        writers: number of ranks that write, of a method that sends elements to them.
        reason: in words, why.
    """

    array: ArraySettings
    writers: int
    reason: str


def choose_write(name: str, array: ArraySettings, ranks: int, parts: Parts) -> WriteChoice:
    """Choose how ranks write an array: as its settings say, or at least cost.

    Differences within the noise of the measurements are none: then it is rather collective, and in
    fewer shards. It is collective, too, if writing to a store was not measured.

    Args:
        name: the array.
        array: its settings.
        ranks: number of processes that share it.
        parts: costs of its stores, and the number of its dumps in each.

    Raises:
        OptionError: If it cannot be written as its settings say.
    """
    try:
        return _choose(array, ranks, tuple(parts))
    except (OptionError, SettingsError) as error:
        raise OptionError(f"arrays.{name}.write: {error}") from None


@lru_cache(maxsize=4096)
def _choose(
    array: ArraySettings, ranks: int, parts: tuple[tuple[StoreRate, int], ...]
) -> WriteChoice:
    if not parts:
        return WriteChoice(array, ranks, "not written")
    if array.mode == "append":
        return WriteChoice(
            replace(array, write="collective"), ranks, "collective, as of all arrays that grow"
        )
    is_measured = all(rate.is_measured for rate, _ in parts)
    useful = _useful_writers(ranks, parts) if is_measured else 1
    if array.write != "auto":
        options = [_option(each, ranks, parts) for each in _layouts(array, ranks, useful)]
        option = _cheapest(options, parts)
        reason = f"{option}, as its settings say"
    elif not is_measured:
        option = _option(replace(array, write="collective"), ranks, parts)
        reason = f"{option}, as writing was not measured"
    else:
        options = [
            _option(layout, ranks, parts)
            for method in METHODS
            for layout in _possible(array, method, ranks, useful)
        ]
        option = _cheapest(options, parts)
        reason = _reason(option, options)
    return WriteChoice(
        option.array, _writers(option, ranks, useful if is_measured else ranks), reason
    )


def _layouts(array: ArraySettings, ranks: int, useful: int) -> Iterator[ArraySettings]:
    """Yield the ways to cut an array for its method.

    Raises:
        OptionError, SettingsError: If there is none.
    """
    if array.write == "independent":
        yield _independent(array, ranks)
        return
    yield array
    if array.write == "subfile" or array.chunks or array.shards:
        return
    # So many objects that they can be written at the same time, to a store that gains by that, or
    # made at the same time, by the processors of this host.
    shapes, sharding = {array.sharding.shard_shape}, array.sharding
    objects = 2
    while objects <= useful:
        shape = sharding.shards_within(array.dump_bytes // objects)
        if shape not in shapes and math.prod(shape) <= math.prod(sharding.shard_shape):
            shapes.add(shape)
            yield replace(array, chunks=sharding.chunk_shape, shards=shape)
        objects *= 2


def _possible(
    array: ArraySettings, method: WriteMethod, ranks: int, useful: int
) -> list[ArraySettings]:
    """Return the ways to cut an array for a method; none if it cannot be written so."""
    if method == "independent" and ranks == 1:
        return []
    try:
        layouts = list(_layouts(replace(array, write=method), ranks, useful))
    except (OptionError, SettingsError):
        return []
    # A block that cannot be divided is one shard, which may have no room in memory.
    is_too_long = method == "independent" and layouts[0].sharding.shard_bytes > MOST_WAITING
    return [] if is_too_long else layouts


def _independent(array: ArraySettings, ranks: int) -> ArraySettings:
    """Return an array with shards that lie in the blocks of ranks.

    Raises:
        OptionError: If those of its settings do not.
        SettingsError: If there would be too many.
    """
    division = Pattern.parse(array.pattern, len(array.shape)).division(array.shape, ranks)
    itemsize = np.dtype(array.dtype).itemsize
    shape = array.shards or shards.even_parts(division.widths, itemsize, shards.SHARD_BYTES)
    for width, outer, count in zip(division.widths, shape, division.grid, strict=True):
        if count > 1 and width % outer:
            raise OptionError(
                f"independent: expected shards that divide the blocks of ranks, "
                f"{list(division.widths)}, found {list(shape)}"
            )
    return replace(array, shards=shape)


def _option(array: ArraySettings, ranks: int, parts: Parts) -> WriteOption:
    """Return what it costs to write an array so."""
    use, seconds = use_of(array), 0.0
    for rate, dumps in parts:
        seconds += rate.write_s(array, dumps, ranks).median_s
        read_s = rate.read_s(array) + rate.index_s(array)
        seconds += use.weight * use.reads * array.dumps_to_read(dumps) * read_s
    return WriteOption(array, array.sharding.count, seconds)


def _cheapest(options: Sequence[WriteOption], parts: Parts) -> WriteOption:
    """Return the first option than which none costs less beyond the noise."""
    spread = max(rate.spread or 0.0 for rate, _ in parts)
    noise = min(max(spread, LEAST_SPREAD), MOST_NOISE)
    least_s = min(each.cost_s for each in options)
    return next(each for each in options if (1 - noise) * each.cost_s <= least_s)


def _reason(option: WriteOption, options: Sequence[WriteOption]) -> str:
    """Return why an option was chosen: beside the best of each other method."""
    others = []
    for method in METHODS:
        same = [each for each in options if each.array.write == method]
        if same and method != option.array.write:
            others.append(min(same, key=lambda each: each.cost_s))
    if not others:
        return f"{option}, the only method for it"
    is_tie = any(each.cost_s <= option.cost_s for each in others)
    why = "costs alike within the noise" if is_tie else "the least cost"
    return f"{option}: {why}; not {', '.join(map(str, others))}"


def _writers(option: WriteOption, ranks: int, useful: int) -> int:
    """Return how many ranks write: as many as the store gains by, and as their memory needs."""
    if option.array.write == "independent":
        return ranks
    size = option.objects * option.array.sharding.shard_bytes
    least = max(useful, -(-size // MOST_WAITING))
    return max(min(ranks, option.objects, least), 1)


def _useful_writers(ranks: int, parts: Parts) -> int:
    """Return how many ranks may make and write objects at the same time, and gain by it."""
    streams = max(rate.write.streams for rate, _ in parts)
    return max(streams, min(ranks, os.cpu_count() or 1))
