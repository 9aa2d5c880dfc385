"""The stores that a run may write to: their room, and what writing to them costs."""

from __future__ import annotations

import json
import logging
import os
import shutil
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from swathe.catalog.store_urls import root_url
from swathe.core.errors import StoreSettingsError
from swathe.core.host import this_host
from swathe.costs.calibration import MOST_OUTCOMES
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.costs.run_costs import RunCosts
from swathe.costs.store_costs import reading_costs, write_stages, writing_costs
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.planning.store_rate import (
    LEAST_SPREAD,
    DumpOutcome,
    DumpSize,
    StoreRate,
    replacements,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from swathe.catalog import Catalog, Store
    from swathe.catalog.records.runs import RecentDump
    from swathe.costs.probing.write_stages import WriteStages

log = logging.getLogger(__name__)

LEAST_BYTES = 1 << 20
"""A probe that wrote no object of this size says little of the bandwidth of writing."""
FEW_SPREAD = 1.0
"""Relative half width of the interval of such a store, at least."""
GROWS = 1.0001
"""Least factor from the time of an object to that of a larger one."""
COMMIT_S = 0.01
"""Assumed seconds to make an object durable: a sync of the disk, or the answer of a server."""


def store_rooms(catalog: Catalog) -> list[StoreRoom]:
    """Return the stores of a catalogue that can be written to, with their free bytes if known.

    The room is known of folders of this machine. The folder of a store need not exist yet. Stores
    of a kind that is not known here, as of a package that is not installed, are passed over. So are
    folders that this process may not write to.
    """
    rooms = []
    for store in catalog.stores():
        folder = store.kind.local_path
        if not store.kind.is_writable:
            continue
        if folder is not None and not os.access(_existing(folder), os.W_OK):
            log.warning("the store %s is passed over: %s cannot be written to", store.name, folder)
            continue
        try:
            root_url(store.key)
        except StoreSettingsError as error:
            log.warning("the store %s is passed over: %s", store.name, error)
            continue
        rooms.append(_room(store))
    return rooms


def store_rates(catalog: Catalog, names: Iterable[str]) -> dict[str, StoreRate]:
    """Return what some stores cost from this host.

    `swathe probe STORE --write` measures writing. If it was not measured, it is assumed to cost as
    much as reading, and `COMMIT_S` for each object. If a probe wrote small objects only, larger
    ones are those whose parts it measured; else the overhead of small ones is added to reading.
    Files are written as the parts of a write were measured, without reading them back.
    Dumps of recent runs correct both.
    """
    compute = catalog.compute(this_host())
    host = RunCosts.of(None if compute is None else json.dumps(compute))
    return {name: _rate(catalog, catalog.store(name), host) for name in sorted(set(names))}


def _rate(catalog: Catalog, store: Store, host: RunCosts) -> StoreRate:
    rate = _measured_rate(catalog, store)
    stages = write_stages(catalog, store)
    folder_s = (stages and stages.folder_s) or 0.0
    rate = replace(rate, folder_s=folder_s, is_local=store.kind.is_local, host=host)
    if store.is_staged:
        rate = replace(rate, stage_outcomes=tuple(catalog.stage_outcomes(store.name)))
    return replace(rate, outcomes=tuple(_outcomes(catalog, store, rate)))


def _outcomes(catalog: Catalog, store: Store, rate: StoreRate) -> Iterator[DumpOutcome]:
    """Yield how long dumps took that were begun together, oldest first."""
    # Most of them are of the same arrays, and as large.
    arrays: dict[str, ArraySettings] = {}
    models_s: dict[tuple[int, tuple[DumpSize, ...]], float] = {}
    together: dict[tuple[int, int], list[RecentDump]] = {}
    for each in catalog.recent_dumps(store.name, this_host(), MOST_OUTCOMES):
        together.setdefault((each.run_id, each.dump.iteration), []).append(each)
    for dumps in together.values():
        key = dumps[0].ranks, tuple(_dump_size(each, arrays) for each in dumps)
        if key not in models_s:
            models_s[key] = rate.model_s(key[1], dumps[0].ranks)
        seconds = max(each.dump.seconds for each in dumps)
        yield DumpOutcome(models_s[key], seconds, dumps[0].ranks)


def _dump_size(recent: RecentDump, arrays: dict[str, ArraySettings]) -> DumpSize:
    """Return the size of a dump that was written; `arrays` has those by their settings, as JSON."""
    text = json.dumps(recent.settings)
    if text not in arrays:
        arrays[text] = ArraySettings.of_record(recent.settings)
    array = arrays[text]
    is_replacing = replacements(array, recent.dump.iteration // array.every + 1) > 0
    return DumpSize(array, recent.dump.bytes, 0.0 if is_replacing else 1.0)


def _measured_rate(catalog: Catalog, store: Store) -> StoreRate:
    profile, read = writing_costs(catalog, store), reading_costs(catalog, store)[0]
    stages = write_stages(catalog, store) if store.kind.is_local else None
    if stages is not None and (costs := _of_files(stages)) is not None:
        spread = LEAST_SPREAD if profile is None else profile.spread.get("model", 0.0)
        return StoreRate(costs, spread, read)
    if profile is None:
        curve = tuple((size, seconds + COMMIT_S) for size, seconds in read.request)
        rate = StoreRate(replace(read, request=curve), None, read)
    else:
        spread = profile.spread.get("model", 0.0)
        rate = StoreRate(profile.costs, spread, read)
        if profile.costs.request[-1][0] < LEAST_BYTES:
            stages = write_stages(catalog, store)
            larger = None if stages is None else _of_stages(profile.costs, stages)
            if larger is None and read.request[-1][0] > LEAST_BYTES:
                larger = _of_reading(profile.costs, read)
            rate = StoreRate(larger or profile.costs, max(spread, FEW_SPREAD), read)
    return rate


def _of_files(stages: WriteStages) -> Costs | None:
    """Return costs of writing files; `None` if only small ones were measured."""
    points: list[tuple[int, float]] = []
    for each in stages.sizes:
        if each.streams == 1:
            # Longer ones do not take less: that was noise.
            points.append((each.size, max(each.seconds, points[-1][1] * GROWS if points else 0.0)))
    if len(points) < 2 or points[-1][0] < LEAST_BYTES:
        return None
    # Files that are written at the same time share processors and the disk: so many are written in
    # the time of one.
    alone_s = {each.size: each.seconds for each in stages.sizes if each.streams == 1}
    several = [each for each in stages.sizes if each.streams > 1 and each.size in alone_s]
    gains = [each.streams * alone_s[each.size] / each.seconds for each in several]
    streams = max(round(statistics.median(gains)), 1) if gains else 1
    total = max(each.streams * each.size / each.seconds for each in stages.sizes)
    return Costs(0.0, 0.0, tuple(points), total, NO_LIMIT, streams)


def _of_stages(write: Costs, stages: WriteStages) -> Costs | None:
    """Return costs of writing of which only small objects were measured, with larger ones.

    The parts of a write were measured with larger objects; `None` if they were not.
    """
    size, seconds = write.request[-1]
    points = []
    for (larger, streams), rate in sorted(stages.rates.items()):
        if streams == 1 and larger > size:
            seconds = max(seconds, stages.open_s + larger / rate + stages.close_s)
            points.append((larger, seconds))
    if not points or points[-1][0] < LEAST_BYTES:
        return None
    total = max(write.total_bytes_per_s, *stages.rates.values())
    return replace(write, request=(*write.request, *points), total_bytes_per_s=total)


def _of_reading(write: Costs, read: Costs) -> Costs:
    """Return costs of writing of which only small objects were measured.

    What they take longer than reading is added to reading: their time says nothing of bandwidth.
    """
    size = write.request[-1][0]
    more_s = max(float(write.request_s(size) - read.request_s(size)), 0.0)
    return replace(read, request=tuple((size, seconds + more_s) for size, seconds in read.request))


def _room(store: Store) -> StoreRoom:
    folder = store.kind.local_path
    if folder is None:
        return StoreRoom(store.name, store.tier)
    folder = _existing(folder)
    free_bytes = shutil.disk_usage(folder).free
    return StoreRoom(store.name, store.tier, free_bytes, os.stat(folder).st_dev)


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if os.path.isdir(each))
