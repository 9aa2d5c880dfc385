"""Zarr, versions 2 and 3, in a folder or a zip file: the chunk index, from metadata that we parse.

References:
    Zarr core specification, versions 2 and 3.1; sharding codec, version 1.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from swathe.arrays.index_writer import IndexWriter, refusal
from swathe.arrays.readers.limits import check_shape, chunk_fault, typed_errors
from swathe.arrays.readers.zarr_codecs import Codecs, Shard, codecs_2, codecs_3
from swathe.arrays.readers.zarr_members import Members, members_of
from swathe.arrays.readers.zarr_types import (
    dtype_2,
    dtype_3,
    encode_attributes,
    fill_attribute,
    fill_bytes,
)
from swathe.core.errors import FormatError
from swathe.core.zarr_names import ALL, ARRAY, ATTRIBUTES, MARKS, NODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DIMENSIONS = "_ARRAY_DIMENSIONS"
"""Attribute of version 2 that names the axes."""
MOST_NODES = 100_000
"""Limit of arrays and groups."""
MISSING = (1 << 64) - 1
"""Offset and length of a chunk that a shard does not have."""
MOST_INDEX_BYTES = 64 << 20
"""Limit of the index of a shard."""


@dataclass(frozen=True)
class ArrayMeta:
    """What the metadata say of an array.

    Attributes:
        dtype: type of the elements.
        shape: elements along each axis, slowest first.
        chunk_shape: elements of a chunk, or of a shard, along each axis.
        fill: element of chunks that are not stored, if there is one.
        codecs: how chunks are stored.
        key: prefix of the names of chunks, after that of the array, and what divides their numbers.
        dims: names of the axes, or none.
        attributes: attributes as JSON.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    fill: bytes | None
    codecs: Codecs
    key: tuple[str, str]
    dims: tuple[str, ...]
    attributes: dict[str, Any]


def describe(file: BinaryIO) -> bytes:
    """Return the chunk index of a Zarr.

    Raises:
        FormatError: If its metadata are not valid, or it has none at its root.
    """
    with typed_errors("zarr"):
        members = members_of(file)
        if not any(name in members for name in (*MARKS, ALL)):
            raise FormatError(f"expected {', '.join(MARKS)} at the root, found {members.names[:5]}")
        writer = IndexWriter("zarr", "swathe")
        catalog = _Catalog(members)
        for path in catalog.paths():
            try:
                node = catalog.node(path)
            except FormatError as error:
                raise FormatError(f"{path or '/'}: {error}") from error
            if "shape" in node:
                _add_array(writer, members, path, node)
            else:
                writer.groups[f"/{path}"] = encode_attributes(node["attributes"])
        return writer.to_bytes()


def read(_: BinaryIO, name: str, **region: Sequence[int]) -> bytes:  # noqa: ARG001
    """Raise an error: every array of this format is read without a library.

    Raises:
        FormatError: Always.
    """
    raise FormatError(f"{name}: expected an array that only a library reads, found chunks")


class _Catalog:
    """The metadata of all nodes, from the one document that has them all, if there is one."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._all: dict[str, Any] = {}
        self._all_2: dict[str, Any] = {}
        if NODE in members:
            self._root = members.json(NODE)
            inner = self._root.get("consolidated_metadata")
            if isinstance(inner, dict):
                self._all = _object(inner, "metadata")
        elif ALL in members:
            # Where a server lists no names with a dot, these are the only ones.
            self._all_2 = _object(members.json(ALL), "metadata")

    def paths(self) -> list[str]:
        """Return the paths of all arrays and groups, in ascending order; the root is empty."""
        paths = _folders_of_metadata(self._members.names) or _folders_of_metadata(self._all_2)
        if len(paths) > MOST_NODES:
            raise FormatError(
                f"expected at most {MOST_NODES} arrays and groups, found {len(paths)}"
            )
        return sorted(paths)

    def node(self, path: str) -> dict[str, Any]:
        """Return the metadata of a node, with `attributes`; those of an array have a `shape`."""
        prefix = f"{path}/" if path else ""
        if f"{prefix}{NODE}" in self._members:
            node = self._root if not path and NODE in self._members else self._all.get(path)
            if not isinstance(node, dict):
                node = self._members.json(f"{prefix}{NODE}")
            kind = node.get("node_type")
            if node.get("zarr_format") != 3 or kind not in ("array", "group"):
                raise FormatError(f"expected an array or a group of version 3, found {kind!r:.60}")
            node = {**node, "attributes": _object(node, "attributes")}
            if kind == "group":
                node.pop("shape", None)
            elif "shape" not in node:
                raise FormatError("expected the shape of an array, found none")
            return node
        attributes = self._document(f"{prefix}{ATTRIBUTES}")
        name = f"{prefix}{ARRAY}"
        if name not in self._members and name not in self._all_2:
            return {"attributes": attributes}
        node = {"shape": None, **self._document(name), "attributes": attributes}
        if node.get("zarr_format") != 2:
            raise FormatError(f"expected version 2, found {node.get('zarr_format')!r:.60}")
        return node

    def _document(self, name: str) -> dict[str, Any]:
        value = self._all_2.get(name)
        if isinstance(value, dict):
            return value
        return self._members.json(name) if name in self._members else {}


def _folders_of_metadata(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names if name.rpartition("/")[2] in MARKS}


def _add_array(writer: IndexWriter, members: Members, path: str, node: dict[str, Any]) -> None:
    """Add an array; one that cannot be read is refused, and the others are read."""
    dtype = np.dtype("V0")
    shape: tuple[int, ...] = ()
    attributes: dict[str, Any] = {}
    dims: tuple[str, ...] = ()
    try:
        attributes = encode_attributes(node["attributes"])
        check_shape("shape", shape_of := _sides(node["shape"], "shape", 0))
        shape = shape_of
        meta = _meta_2(node, shape) if node["zarr_format"] == 2 else _meta_3(node, shape)
        dtype, dims, attributes = meta.dtype, meta.dims, encode_attributes(meta.attributes)
        if why := chunk_fault(
            meta.chunk_shape if meta.codecs.shard is None else (), dtype.itemsize
        ):
            raise FormatError(why)
        shard = meta.codecs.shard
        rows = _chunks(members, path, meta) if shard is None else _inner(members, path, meta, shard)
        chunk_shape = meta.chunk_shape if shard is None else shard.chunk_shape
        table = np.array([*rows], "u8").reshape(-1, 3)
        storage = writer.chunks(chunk_shape, meta.codecs.filters, *table.T)
        # Zeros are no value that an array chose for what is missing.
        fill = meta.fill if any(meta.fill or b"") else None
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        # The other arrays can be read.
        storage, fill = refusal(str(error)[:300]), None
    if not dtype.itemsize and storage["kind"] != "refused":
        storage = refusal("expected elements of some bytes, found none")
    writer.add(f"/{path}", dtype, shape, storage, dims=dims, attributes=attributes, fill=fill)


def _meta_2(node: dict[str, Any], shape: tuple[int, ...]) -> ArrayMeta:
    dtype = dtype_2(node.get("dtype"))
    attributes = dict(node["attributes"])
    names = attributes.pop(DIMENSIONS, None)
    fill = fill_bytes(node.get("fill_value"), dtype)
    if names is not None and fill is not None and dtype.kind in "iuf":
        # As xarray, which writes both.
        attributes.setdefault("_FillValue", np.frombuffer(fill, dtype)[0].item())
    _set_fill(attributes, dtype)
    separator = node.get("dimension_separator", ".")
    return ArrayMeta(
        dtype,
        shape,
        _sides(node.get("chunks"), "chunks", 1, len(shape)),
        fill,
        codecs_2(node, dtype.itemsize),
        ("", _separator(separator)),
        _dims(names, len(shape)),
        attributes,
    )


def _meta_3(node: dict[str, Any], shape: tuple[int, ...]) -> ArrayMeta:
    if others := [
        name
        for name, value in node.items()
        if isinstance(value, dict) and value.get("must_understand") is True
    ]:
        raise FormatError(f"expected metadata that are known, found {others[0][:60]!r}")
    if node.get("storage_transformers"):
        raise FormatError("expected no storage transformers, found some")
    grid, encoding = _object(node, "chunk_grid"), _object(node, "chunk_key_encoding")
    if grid.get("name") != "regular" or encoding.get("name") not in ("default", "v2"):
        raise FormatError(
            "expected a regular grid with keys of default or v2, found "
            f"{grid.get('name')!r:.60} with {encoding.get('name')!r:.60}"
        )
    dtype = dtype_3(node.get("data_type"), "<")
    codecs = codecs_3(node.get("codecs"), len(shape), dtype.itemsize)
    dtype = dtype_3(node.get("data_type"), codecs.order)
    is_default = encoding["name"] == "default"
    separator = _object(encoding, "configuration").get("separator", "/" if is_default else ".")
    attributes = dict(node["attributes"])
    _set_fill(attributes, dtype)
    return ArrayMeta(
        dtype,
        shape,
        _sides(_object(grid, "configuration").get("chunk_shape"), "chunk_shape", 1, len(shape)),
        fill_bytes(node.get("fill_value"), dtype),
        codecs,
        ("c", _separator(separator)) if is_default else ("", _separator(separator)),
        _dims(node.get("dimension_names"), len(shape)),
        attributes,
    )


def _chunks(members: Members, path: str, meta: ArrayMeta) -> Iterator[tuple[int, int, int]]:
    """Iterate over number, offset and length of the chunks that are stored.

    One without a byte is an error of the regions that touch it.
    """
    for number, _, name in _members_of_grid(members, path, meta):
        member = members[name]
        if member.why:
            raise FormatError(f"{name}: {member.why}")
        yield (number, member.offset, member.length) if member.length else (number, members.end, 1)


def _members_of_grid(
    members: Members, path: str, meta: ArrayMeta
) -> Iterator[tuple[int, tuple[int, ...], str]]:
    """Iterate over number, place in the grid and name of what is stored."""
    grid = [-(-side // chunk) for side, chunk in zip(meta.shape, meta.chunk_shape, strict=True)]
    steps = [math.prod(grid[axis + 1 :]) for axis in range(len(grid))]
    prefix = f"{path}/" if path else ""
    first, separator = meta.key
    if not grid:
        name = prefix + (first or "0")
        if name in members:
            yield 0, (), name
        return
    prefix += f"{first}{separator}" if first else ""
    for name in members.below(prefix):
        parts = name[len(prefix) :].split(separator)
        if len(parts) != len(grid) or not all(map(_is_number, parts)):
            continue
        place = tuple(map(int, parts))
        if all(at < side for at, side in zip(place, grid, strict=True)):
            yield sum(at * step for at, step in zip(place, steps, strict=True)), place, name


def _inner(
    members: Members, path: str, meta: ArrayMeta, shard: Shard
) -> Iterator[tuple[int, int, int]]:
    """Iterate over number, offset and length of the chunks in all shards.

    A shard that was cut short, or has an invalid index, is an error of the regions that touch it.
    """
    if why := chunk_fault(shard.chunk_shape, meta.dtype.itemsize):
        raise FormatError(why)
    pairs = [*zip(meta.chunk_shape, shard.chunk_shape, strict=True)]
    if any(side % inner for side, inner in pairs):
        raise FormatError(f"expected shards of whole chunks, found {pairs}")
    per_shard = [side // inner for side, inner in pairs]
    grid = [-(-side // inner) for side, inner in zip(meta.shape, shard.chunk_shape, strict=True)]
    count = math.prod(per_shard)
    length = 16 * count + (4 if shard.has_sum else 0)
    if length > MOST_INDEX_BYTES:
        raise FormatError(
            f"index of a shard: expected at most {MOST_INDEX_BYTES} bytes, found more"
        )
    for _, place, name in _members_of_grid(members, path, meta):
        member = members[name]
        if member.why:
            raise FormatError(f"{name}: {member.why}")
        # Where no byte is: reading there is an error.
        offsets = np.full(count, members.end - member.offset, "u8")
        lengths, present = np.ones(count, "u8"), np.arange(count)
        if member.length >= length:
            start = 0 if shard.is_index_first else member.length - length
            table = members.part(name, start, length)
            rows = np.frombuffer(table, "<u8", 2 * count).reshape(-1, 2)
            present = np.flatnonzero((rows != MISSING).any(axis=1))
            first, size = rows[present].T
            is_valid = (first <= member.length) & (size <= member.length - first) & (size > 0)
            offsets = np.where(is_valid, first, offsets[present])
            lengths = np.where(is_valid, size, lengths[present])
        corners = np.array(place, "i8") * per_shard
        inner = np.stack(np.unravel_index(present, per_shard or (1,)), 1)[:, : len(grid)]
        numbers = np.zeros(len(present), "i8")
        is_within = np.ones(len(present), bool)
        for axis, side in enumerate(grid):
            at = corners[axis] + inner[:, axis]
            numbers = numbers * side + at
            is_within &= at < side
        for number, offset, size in zip(
            numbers[is_within].tolist(),
            offsets[is_within].tolist(),
            lengths[is_within].tolist(),
            strict=True,
        ):
            yield number, member.offset + offset, size


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19 and (text == "0" or text[0] != "0")


def _sides(value: Any, what: str, least: int, axes: int | None = None) -> tuple[int, ...]:
    is_list = isinstance(value, list) and all(type(side) is int and side >= least for side in value)
    if not is_list or axes not in (None, len(value)):
        raise FormatError(f"{what}: expected sides from {least}, found {str(value)[:100]}")
    return tuple(value)


def _dims(names: Any, axes: int) -> tuple[str, ...]:
    if not isinstance(names, list) or len(names) != axes or not any(names):
        return ()
    return tuple(
        name if isinstance(name, str) and name else f"dim_{at}" for at, name in enumerate(names)
    )


def _separator(value: Any) -> str:
    if value not in ("/", "."):
        raise FormatError(f"separator: expected '/' or '.', found {str(value)[:20]!r}")
    return str(value)


def _set_fill(attributes: dict[str, Any], dtype: np.dtype[Any]) -> None:
    if "_FillValue" in attributes:
        attributes["_FillValue"] = fill_attribute(attributes["_FillValue"], dtype)


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name) or {}
    if not isinstance(inner, dict):
        raise FormatError(f"{name}: expected an object, found {str(inner)[:60]}")
    return inner
