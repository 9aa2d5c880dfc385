"""The metadata of a run in one store: a group of Zarr 3 with an array for each array of the run.

The first axis of an array counts its dumps, or its rows in mode `append`. The arrays whose dumps
are at the same iterations share a coordinate, `iteration_EVERY`. An array of mode `overwrite` has
two places, written in turn; its attribute `iterations` names the iteration in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe._swathe import __version__
from swathe.core.errors import CatalogError, FormatError, SourceError
from swathe.core.zarr_names import NODE
from swathe.files.array_outputs.zarr_metadata import array_metadata, group_metadata
from swathe.runs.definition.run_settings import SLOTS, ArraySettings
from swathe.stores.listing import ListedObject, UnlistedObject, listed_objects
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord

FOLDER = "runs"
"""Folder of a store that has the runs."""
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


class ZarrGroup:
    """Names and contents of the metadata of a run in one store."""

    def __init__(self, label: str, iterations: int) -> None:
        """Set the run: `NAME@NUMBER`, and its last iteration."""
        self._label, self._iterations = label, iterations
        self._arrays: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: ArraySettings) -> Iterator[tuple[str, bytes]]:
        """Yield the objects to write for an array; the group, which names it, is the last."""
        node = describe_array(name, array, self._iterations)
        axis, length = node["dimension_names"][0], node["shape"][0]
        if array.mode == "create" and axis not in self._arrays:
            yield from self._coordinate(axis, array.every, length)
        self._arrays[name] = node
        yield from self._metadata(name)

    def set_iterations(
        self, name: str, iterations: Mapping[int, int]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the objects to write when an array of mode `overwrite` has other iterations.

        Args:
            name: the array.
            iterations: the iteration in each of its places that has one.
        """
        self._arrays[name]["attributes"]["iterations"] = [
            iterations.get(slot) for slot in range(SLOTS)
        ]
        yield from self._metadata(name)

    def set_length(self, name: str, rows: int) -> Iterator[tuple[str, bytes]]:
        """Yield the objects to write when an array of mode `append` has grown.

        Args:
            name: the array.
            rows: its length along the first axis.
        """
        self._arrays[name]["shape"] = [rows, *self._arrays[name]["shape"][1:]]
        yield from self._metadata(name)

    def _metadata(self, name: str) -> Iterator[tuple[str, bytes]]:
        yield f"{name}/{NODE}", _json(self._arrays[name])
        yield NODE, _json(self._root())

    def _root(self) -> Mapping[str, Any]:
        source = f"swathe {__version__}"
        attributes: dict[str, Any] = {
            "Conventions": "CF-1.11",
            "title": self._label,
            "source": source,
        }
        attributes |= {"iterations": self._iterations}
        return group_metadata(self._arrays, attributes)

    def _coordinate(self, name: str, every: int, length: int) -> Iterator[tuple[str, bytes]]:
        values = np.arange(length, dtype="<i8") * every
        self._arrays[name] = array_metadata(
            shape=(length,),
            data_type="int64",
            chunk_shape=(length,),
            codecs=[BYTES],
            fill=0,
            dims=[name],
            attributes={"long_name": "iteration", "units": "1"},
        )
        yield f"{name}/c/0", values.tobytes()
        yield f"{name}/{NODE}", _json(self._arrays[name])


def is_folder_name(name: str) -> bool:
    """Check whether a name can be that of the folder of a run."""
    return bool(name) and "/" not in name and not name.startswith(".")


def group_folder(run: RunRecord, store: str) -> str:
    """Return the folder of a run in a store, `STORE:runs/NAME-NUMBER-xxxxxx.zarr`.

    Raises:
        CatalogError: If the catalogue has no name of a folder.
    """
    if not is_folder_name(run.folder):
        raise CatalogError(f"run {run.label}: expected the name of a folder, found {run.folder!r}")
    return f"{store}:{FOLDER}/{run.folder}"


def shard_name(name: str, *place: int) -> str:
    """Return the name of a shard of an array in its group, by its place in the grid."""
    return "/".join(map(str, (name, "c", *place)))


def list_group(folder: str, *, dot_names: bool = False) -> Iterator[ListedObject]:
    """Yield all objects below a folder, with their paths in the store; none if it is not there.

    Args:
        folder: the folder, `STORE:path/`.
        dot_names: whether names that begin with a dot are listed.

    Raises:
        AccessError, SourceError: If it, or a folder below, cannot be listed.
    """
    store, _, path = folder.partition(":")
    listing = native_stores().list(folder, with_hidden=dot_names, may_lack=True)
    for entry in listed_objects(listing, path, None):
        if isinstance(entry, UnlistedObject):
            raise SourceError(f"{store}:{entry.path}: cannot be listed: {entry.reason}")
        yield entry


def list_paths(folder: str, *, dot_names: bool = False) -> Iterator[str]:
    """Yield the paths in their store of all objects below a folder, as `list_group`."""
    for entry in list_group(folder, dot_names=dot_names):
        yield entry.path


def dump_paths(folder: str, name: str, iteration: int, slot: int, count: int) -> list[str]:
    """Return the paths of the shards of a dump in their store; all are there.

    Args:
        folder: its group.
        name: its array.
        iteration: its iteration, for the message.
        slot: its place along the first axis.
        count: how many shards it has.

    Raises:
        FormatError: If there are not as many.
        AccessError, SourceError: If they cannot be listed.
    """
    paths = list(list_paths(f"{folder}/{name}/c/{slot}/"))
    if len(paths) != count:
        raise FormatError(
            f"{folder}, array {name}, iteration {iteration}: expected {count} shards, found "
            f"{len(paths)}"
        )
    return paths


def first_axis(name: str, array: ArraySettings) -> str:
    """Return the name of the axis of a stored array that counts its dumps, or its rows."""
    if array.mode == "append":
        return array.dims[0] if array.dims else f"{name}_row"
    return f"{name}_slot" if array.mode == "overwrite" else f"iteration_{array.every}"


def describe_array(name: str, array: ArraySettings, iterations: int) -> dict[str, Any]:
    """Return the metadata of an array of a run, before it has any dump.

    Args:
        name: the array.
        array: its settings.
        iterations: number of the last iteration of the run.
    """
    attributes: dict[str, Any] = {**array.attributes}
    length = array.dumps(iterations)
    if array.mode == "append":
        length = 0
    elif array.mode == "overwrite":
        length = SLOTS
        attributes["iterations"] = [None] * SLOTS
    sharding, dtype = array.sharding, np.dtype(array.dtype)
    dims = array.dims or tuple(f"{name}_{axis}" for axis in range(len(array.shape)))
    fill: Any = 0
    if dtype.kind in "fc":
        fill = "NaN" if dtype.kind == "f" else ["NaN", "NaN"]
    elif dtype.kind == "b":
        fill = False
    values_codec = BYTES if dtype.itemsize > 1 else {"name": "bytes"}
    codec = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [*([] if array.mode == "append" else [1]), *sharding.chunk_shape],
            "codecs": [values_codec],
            "index_codecs": [BYTES, {"name": "crc32c"}],
            "index_location": "end",
        },
    }
    grows = array.mode == "append"
    return array_metadata(
        shape=(length, *(array.shape[1:] if grows else array.shape)),
        data_type=dtype.name,
        chunk_shape=sharding.shard_shape if grows else (1, *sharding.shard_shape),
        codecs=[codec if sharding.has_index else values_codec],
        fill=fill,
        dims=[first_axis(name, array), *(dims[1:] if grows else dims)],
        attributes=attributes,
    )


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False).encode()
