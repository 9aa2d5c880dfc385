"""Metadata of Zarr 3 as they are written: of an array, and of a group with its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def array_metadata(
    *,
    shape: Sequence[int],
    data_type: Any,
    chunk_shape: Sequence[int],
    codecs: Sequence[Mapping[str, Any]],
    fill: Any,
    dims: Sequence[str],
    attributes: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metadata of an array.

    Args:
        shape: lengths of its axes.
        data_type: type of its elements, as the specification has it.
        chunk_shape: lengths of a chunk, which is an object.
        codecs: what its bytes went through.
        fill: value of elements that are not stored.
        dims: names of its axes.
        attributes: its attributes.
    """
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": list(codecs),
        "attributes": dict(attributes),
        "dimension_names": list(dims),
    }


def group_metadata(
    arrays: Mapping[str, Mapping[str, Any]], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a group, with those of its arrays by name (consolidated)."""
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": dict(attributes),
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": dict(arrays),
        },
    }
