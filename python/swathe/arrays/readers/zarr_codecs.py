"""Codecs of Zarr, versions 2 and 3, as the filters of a chunk index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swathe.core.errors import FormatError

PLAIN = {
    "zlib": {"name": "deflate"},
    "gzip": {"name": "gzip"},
    "bz2": {"name": "bzip2"},
    "zstd": {"name": "zstd"},
    "lz4": {"name": "lz4", "framing": "zarr"},
    "fletcher32": {"name": "fletcher32"},
}
"""Filters that need no parameters."""
ELEMENTS = {"little": "<", "big": ">"}
MOST_CODECS = 16


@dataclass(frozen=True)
class Codecs:
    """How a chunk is stored.

    Attributes:
        filters: filters of the chunk index, in the order of writing.
        order: order of the bytes of an element, `<` or `>`.
        shard: chunks in a shard, if it is one.
    """

    filters: list[dict[str, Any]]
    order: str
    shard: Shard | None = None


@dataclass(frozen=True)
class Shard:
    """How a shard is divided.

    Attributes:
        chunk_shape: elements of a chunk along each axis.
        is_index_first: whether its index stands at its start, and not at its end.
        has_sum: whether a checksum follows the index.
    """

    chunk_shape: tuple[int, ...]
    is_index_first: bool
    has_sum: bool


def codecs_2(meta: dict[str, Any], element_bytes: int) -> Codecs:
    """Return the filters of an array of version 2.

    Raises:
        FormatError: If one of them is not decoded; the error names it.
    """
    if meta.get("order", "C") != "C" and len(meta["shape"]) > 1:
        raise FormatError(f"order: expected C, found {str(meta['order'])[:20]!r}")
    steps = meta.get("filters") or []
    if not isinstance(steps, list):
        raise FormatError(f"filters: expected a list, found {str(steps)[:60]}")
    compressor = meta.get("compressor")
    steps = steps + ([] if compressor is None else [compressor])
    filters = []
    for each in steps:
        if not isinstance(each, dict):
            raise FormatError(f"codec: expected an object, found {str(each)[:60]}")
        filters += _filter(str(each.get("id")), each, element_bytes)
    return Codecs(filters, "<")


def codecs_3(codecs: Any, axes: int, element_bytes: int) -> Codecs:
    """Return the filters of an array of version 3.

    Raises:
        FormatError: If one of them is not decoded; the error names it.
    """
    steps = [_name_of(each) for each in _list(codecs)]
    filters: list[dict[str, Any]] = []
    order, shard = "", None
    for name, options in steps:
        if name == "transpose" and not order:
            _check_order(options.get("order"), axes)
        elif name == "bytes" and not order:
            order = ELEMENTS.get(options.get("endian", "little"), "")
        elif name == "sharding_indexed" and not order:
            shard = _shard(options, axes)
            inner = codecs_3(options.get("codecs"), axes, element_bytes)
            if inner.shard is not None:
                raise FormatError(
                    "codec sharding_indexed: expected chunks in a shard, found shards"
                )
            filters, order = inner.filters, inner.order
        elif not order or shard is not None:
            raise FormatError(f"codec: expected one that is decoded there, found {name[:60]!r}")
        else:
            filters += _filter(name.removeprefix("numcodecs."), options, element_bytes)
    if not order:
        raise FormatError("codecs: expected bytes with little or big endian, or sharding_indexed")
    return Codecs(filters, order, shard)


def _shard(options: dict[str, Any], axes: int) -> Shard:
    chunk_shape = options.get("chunk_shape")
    if (
        not isinstance(chunk_shape, list)
        or len(chunk_shape) != axes
        or not all(isinstance(side, int) and side > 0 for side in chunk_shape)
    ):
        raise FormatError(f"sharding_indexed: expected {axes} sides, found {str(chunk_shape)[:60]}")
    location = options.get("index_location", "end")
    names = [_name_of(each) for each in _list(options.get("index_codecs"))]
    is_plain = bool(names) and names[0] == ("bytes", {"endian": "little"})
    if location not in ("start", "end") or not is_plain or names[1:] not in ([], [("crc32c", {})]):
        raise FormatError(
            "sharding_indexed: expected an index of little-endian numbers at the start or the end, "
            f"found {str(names)[:100]} at the {str(location)[:20]}"
        )
    return Shard(tuple(chunk_shape), location == "start", len(names) == 2)


def _filter(name: str, options: dict[str, Any], element_bytes: int) -> list[dict[str, Any]]:
    """Return the filters of a codec from bytes to bytes, by its name in numcodecs."""
    if name in PLAIN:
        return [PLAIN[name]]
    if name == "bitround":
        return []  # a change of the elements before they are written
    if name == "blosc" and options.get("cname") != "snappy":
        return [{"name": "blosc"}]
    if name == "crc32c" and options.get("location", "end") == "end":
        return [{"name": "crc32c"}]
    if name == "shuffle":
        size = options.get("elementsize", 4)
        if isinstance(size, int) and 0 < size <= 1 << 16:
            return [] if size == 1 else [{"name": "shuffle", "size": size}]
    detail = f" with {options.get('cname')}" if name == "blosc" else ""
    raise FormatError(
        f"codec: expected one that is decoded, found {name[:60]!r}{detail[:60]} "
        f"for elements of {element_bytes} bytes"
    )


def _check_order(order: Any, axes: int) -> None:
    if order not in ("C", list(range(axes))) and axes > 1:
        raise FormatError(
            f"codec transpose: expected the order of the axes, found {str(order)[:60]}"
        )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_CODECS:
        raise FormatError(f"codecs: expected 1 to {MOST_CODECS}, found {str(value)[:60]}")
    return value


def _name_of(value: Any) -> tuple[str, dict[str, Any]]:
    """Return name and configuration of an extension of version 3."""
    if isinstance(value, str):
        return value, {}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        options = value.get("configuration") or {}
        if isinstance(options, dict):
            return value["name"], options
    raise FormatError(f"expected a name and its configuration, found {str(value)[:60]}")
