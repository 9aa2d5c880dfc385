"""Enter a run in the catalogue by the group that it wrote: from C, or under another catalogue."""

from __future__ import annotations

import json
import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.runs import DumpRecord, RunRecord
from swathe.core.errors import FormatError, OptionError, SwatheError
from swathe.core.zarr_names import NODE
from swathe.runs.definition.run_settings import ATTRIBUTES, ArraySettings, RunSettings
from swathe.runs.storage.zarr_group import FOLDER, describe_array, is_folder_name, list_group
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe.catalog import Catalog

log = logging.getLogger(__name__)

SHARD_NUMBER = re.compile("[0-9]{1,9}")
MOST_METADATA = 64 << 20
"""Bytes of the description of a group, at most."""


def add_group(place: str, catalog: Catalog) -> RunRecord:
    """Enter the run of a group in the catalogue, with the dumps that are whole.

    What the catalogue does not know of a run that it has is added: groups of other stores.

    Args:
        place: `STORE:runs/FOLDER` of the group.
        catalog: the catalogue.

    Raises:
        OptionError: If it lies elsewhere, or the catalogue has all of it, or the run is being
            written, or another run in this folder.
        NotFoundError, AccessError, SourceError: If it cannot be read.
        FormatError: If it is no group that a run wrote.
    """
    store, folder = _parts(place)
    attributes, nodes = _read_group(place)
    try:
        settings = _settings(attributes, nodes)
    except SwatheError as error:
        raise FormatError(f"{place}: expected a group that a run wrote, found: {error}") from error
    dumps = {
        name: list(_dumps(place, store, name, array, nodes[name], settings.iterations))
        for name, array in settings.arrays.items()
    }
    record = next((run for run in catalog.runs() if run.folder == folder), None)
    if record is not None:
        _check_same(place, record, settings, catalog)
        if not _merge(record, store, settings.arrays, dumps, catalog):
            raise OptionError(f"{place}: the catalogue has this run; see: swathe run list")
        return record
    record = catalog.begin_run(settings.name, settings.iterations, 1, folder=folder)
    try:
        _merge(record, store, settings.arrays, dumps, catalog)
        catalog.end_run(record.id, "complete")
    except BaseException:
        catalog.remove_run(record.id)
        raise
    return catalog.run(record.label)


def _check_same(place: str, record: RunRecord, settings: RunSettings, catalog: Catalog) -> None:
    """Check that a group is one of a run of the catalogue that has ended.

    Raises:
        OptionError: If it is not.
    """
    if record.state == "running":
        raise OptionError(f"{place}: the catalogue has this run, and it is being written")
    arrays_before = {
        each.name: ArraySettings.of_record(each.settings) for each in catalog.run_arrays(record.id)
    }
    is_same = (settings.name, settings.iterations) == (record.name, record.iterations)
    for name in arrays_before.keys() & settings.arrays.keys():
        both = (arrays_before[name], settings.arrays[name])
        first, second = (describe_array(name, each, record.iterations) for each in both)
        is_same = is_same and first == second
    if not is_same:
        raise OptionError(
            f"{place}: expected a group of {record.label}, which has this folder in the catalogue, "
            "found one of another run"
        )


def _merge(
    record: RunRecord,
    store: str,
    arrays: Mapping[str, ArraySettings],
    dumps: Mapping[str, Sequence[DumpRecord]],
    catalog: Catalog,
) -> bool:
    """Enter what the catalogue does not know of a run; return whether there was any.

    Args:
        record: the run.
        store: the store of the group.
        arrays: its arrays.
        dumps: those that are whole, by array.
        catalog: the catalogue.
    """
    entries, is_new = {each.name: each for each in catalog.run_arrays(record.id)}, False
    for name, array in arrays.items():
        entry = entries.get(name) or catalog.add_run_array(record.id, name, asdict(array), [])
        if store not in entry.stores:
            catalog.set_array_stores(entry.id, [*entry.stores, store])
            is_new = True
        iterations = {dump.iteration for dump in catalog.dumps(entry.id)}
        for dump in dumps[name]:
            if dump.iteration not in iterations:
                catalog.put_dump(entry.id, dump)
                is_new = True
    return is_new


def _parts(place: str) -> tuple[str, str]:
    store, colon, path = place.rstrip("/").partition(":")
    above, _, folder = path.rpartition("/")
    if not colon or above != FOLDER or not is_folder_name(folder):
        raise OptionError(
            f"{place}: expected the folder of a run, STORE:{FOLDER}/NAME, of a store of the "
            "catalogue"
        )
    return store, folder


def _read_group(place: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the attributes of a group, and the descriptions of its arrays by name."""
    name = f"{place.rstrip('/')}/{NODE}"
    source = native_stores().open(name)
    if source.size > MOST_METADATA:
        raise FormatError(f"{name}: expected at most {MOST_METADATA} bytes, found {source.size}")
    try:
        group = json.loads(source.read(0, source.size))
        nodes = group["consolidated_metadata"]["metadata"]
        if not isinstance(group["attributes"], dict) or not isinstance(nodes, dict):
            raise TypeError("its parts are not objects")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"{name}: expected the group of a run, found: {error!r:.100}") from error
    return group["attributes"], nodes


def _settings(attributes: Mapping[str, Any], nodes: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a run by what its group says."""
    raw_arrays = dict(_raw_arrays(nodes))
    name = str(attributes.get("title", "")).partition("@")[0]
    iterations = attributes.get("iterations")
    if iterations is None:
        lengths = (
            (nodes[array]["shape"][0] - 1) * raw["every"]
            for array, raw in raw_arrays.items()
            if raw["mode"] != "append"
        )
        iterations = max(lengths, default=0)
    run = RunSettings.from_mapping({"name": name, "iterations": iterations, "arrays": raw_arrays})
    arrays = dict(run.arrays)
    for array_name, array in run.arrays.items():
        node = nodes[array_name]
        description = describe_array(array_name, array, run.iterations)
        if array.mode == "append" and type(length := node["shape"][0]) is int and length >= 0:
            description["shape"] = [length, *description["shape"][1:]]
        keys = ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs")
        for key in keys:
            if node.get(key) == description[key]:
                continue
            if array.mode == "append":
                log.warning("array %s grows by an unknown number of rows: not added", array_name)
                arrays.pop(array_name, None)
            else:
                raise FormatError(
                    f"array {array_name}: expected {key} {description[key]!r:.120}, found "
                    f"{node.get(key)!r:.120}"
                )
    return replace(run, arrays=arrays)


def _raw_arrays(nodes: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arrays of a group: name, and settings as in a file."""
    for name, node in nodes.items():
        if name.startswith("iteration_"):
            continue
        try:
            first, *dims = node["dimension_names"]
            shape, kind = node["shape"][1:], node["data_type"]
            is_slot = first == f"{name}_slot"
            texts = {
                key: node["attributes"][key] for key in ATTRIBUTES if key in node["attributes"]
            }
            if not is_slot and not first.startswith("iteration_"):
                yield name, {**_raw_growing(node), **texts}
                continue
            every = 1 if is_slot else int(first.removeprefix("iteration_"))
            has_names = dims != [f"{name}_{axis}" for axis in range(len(dims))]
            objects = _objects(node)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"array {name!r:.60}: {error!r:.100}") from error
        mode = "overwrite" if is_slot else "create"
        values = {"shape": shape, "dtype": kind, "every": every, "mode": mode, **objects, **texts}
        yield name, values | ({"dims": dims} if has_names else {})


def _raw_growing(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an array that grows, as in a file; a dump has the rows of a shard."""
    rows, *widths = node["chunk_grid"]["configuration"]["chunk_shape"]
    shape = [rows, *node["shape"][1:]]
    if len(shape) != len(widths) + 1:
        raise ValueError(f"expected {len(widths) + 1} axes, found {len(shape)}")
    dims = node["dimension_names"]
    return {"shape": shape, "dtype": node["data_type"], "mode": "append", "dims": dims}


def _objects(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the description of an array says that it is cut into objects."""
    shard, codec = node["chunk_grid"]["configuration"]["chunk_shape"][1:], node["codecs"][0]
    if codec["name"] != "sharding_indexed":
        return {"write": "subfile", "chunks": shard, "shards": shard}
    chunk = codec["configuration"]["chunk_shape"][1:]
    return {"write": "collective", "chunks": chunk, "shards": shard}


def _dumps(
    place: str,
    store: str,
    name: str,
    array: ArraySettings,
    node: Mapping[str, Any],
    iterations: int,
) -> Iterator[DumpRecord]:
    """Yield the dumps of an array all of whose shards are there, as long as they are to be.

    All rows of an array that grows are those of the last iteration: its group does not say more.
    """
    folder = f"{place.rstrip('/')}/{name}/c/"
    counts: dict[int, int] = defaultdict(int)
    prefix = folder.partition(":")[2]
    for entry in list_group(folder):
        numbers = entry.path.removeprefix(prefix).split("/")
        if not all(SHARD_NUMBER.fullmatch(number) for number in numbers):
            continue
        if array.mode == "append" or _is_whole(array, numbers[1:], entry.size):
            counts[int(numbers[0])] += 1
        else:
            log.warning("%s: array %s: shard %s is torn", place, name, "/".join(numbers))
    now = datetime.now(UTC)
    if array.mode == "append":
        rows, (height, *_) = node["shape"][0], array.sharding.shard_shape
        if -(-rows // height) > _whole_rows(counts, array):
            log.warning("%s: array %s: its first rows are not in this store", place, name)
        else:
            yield DumpRecord(iterations, 0, store, rows * array.row_bytes, 0.0, now)
        return
    slots = node["attributes"].get("iterations")
    for slot, shards in sorted(counts.items()):
        if shards != array.sharding.count:
            continue
        iteration = slot * array.every
        if array.mode == "overwrite":
            of_slot = slots[slot] if isinstance(slots, list) and slot < len(slots) else None
            if not isinstance(of_slot, int):
                continue
            iteration = of_slot
        yield DumpRecord(iteration, slot, store, array.dump_bytes, 0.0, now)


def _is_whole(array: ArraySettings, place: Sequence[str], size: int | None) -> bool:
    """Check whether a shard has the size that it is to have, if the listing tells sizes."""
    grid, numbers = array.sharding.grid, tuple(map(int, place))
    if len(numbers) != len(grid) or any(at >= end for at, end in zip(numbers, grid, strict=True)):
        return False
    return size is None or size == array.sharding.encoded_bytes(numbers)


def _whole_rows(counts: Mapping[int, int], array: ArraySettings) -> int:
    """Return how many rows of shards are there from the first on, of an array that grows."""
    whole = math.prod(array.sharding.grid[1:])
    return next(at for at in count() if counts.get(at) != whole)
