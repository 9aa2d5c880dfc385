"""The metadata of a run in one store: a group of Zarr 3 with an array for each array of the run.

The first axis of an array counts its dumps. The arrays whose dumps are at the same iterations share
a coordinate, `iteration_EVERY`. An array of mode `overwrite` has two places, written in turn; its
attribute `iterations` names the iteration in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from swathe._swathe import __version__
from swathe.core.zarr_names import NODE
from swathe.files.array_outputs.zarr_metadata import array_metadata, group_metadata
from swathe.runs.run_settings import SLOTS, ArraySettings

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


class ZarrGroup:
    """Names and contents of the metadata of a run in one store."""

    def __init__(self, label: str, iterations: int) -> None:
        """Set the run: `NAME@NUMBER`, and its last iteration."""
        self._label, self._iterations = label, iterations
        self._arrays: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: ArraySettings) -> Iterator[tuple[str, bytes]]:
        """Yield the objects to write for an array; the group, which names it, is the last."""
        if array.mode == "overwrite":
            first_axis, length = f"{name}_slot", SLOTS
            attributes: dict[str, Any] = {"iterations": [None] * SLOTS}
        else:
            first_axis, length = f"iteration_{array.every}", array.dumps(self._iterations)
            attributes = {}
            if first_axis not in self._arrays:
                yield from self._coordinate(first_axis, array.every, length)
        self._arrays[name] = _array(name, array, first_axis, length, attributes)
        yield from self._metadata(name)

    def set_iterations(
        self, name: str, iterations: Sequence[int | None]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the objects to write when an array of mode `overwrite` has other iterations.

        Args:
            name: the array.
            iterations: the iteration in each of its places; `None` if there is none.
        """
        self._arrays[name]["attributes"]["iterations"] = list(iterations)
        yield from self._metadata(name)

    def _metadata(self, name: str) -> Iterator[tuple[str, bytes]]:
        yield f"{name}/{NODE}", _json(self._arrays[name])
        yield NODE, _json(self._root())

    def _root(self) -> Mapping[str, Any]:
        source = f"swathe {__version__}"
        attributes = {"Conventions": "CF-1.11", "title": self._label, "source": source}
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


def shard_name(name: str, slot: int, place: Sequence[int]) -> str:
    """Return the name of a shard of a dump in its group."""
    return "/".join(map(str, (name, "c", slot, *place)))


def _array(
    name: str, array: ArraySettings, first_axis: str, length: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    sharding, dtype = array.sharding, np.dtype(array.dtype)
    dims = array.dims or tuple(f"{name}_{axis}" for axis in range(len(array.shape)))
    fill: Any = 0
    if dtype.kind in "fc":
        fill = "NaN" if dtype.kind == "f" else ["NaN", "NaN"]
    elif dtype.kind == "b":
        fill = False
    codec = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, *sharding.chunk_shape],
            "codecs": [BYTES if dtype.itemsize > 1 else {"name": "bytes"}],
            "index_codecs": [BYTES, {"name": "crc32c"}],
            "index_location": "end",
        },
    }
    return array_metadata(
        shape=(length, *array.shape),
        data_type=dtype.name,
        chunk_shape=(1, *sharding.shard_shape),
        codecs=[codec],
        fill=fill,
        dims=[first_axis, *dims],
        attributes=attributes,
    )


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False).encode()
