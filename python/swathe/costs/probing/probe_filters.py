"""Measure the time to decode chunks of arrays, by filter.

Chunks of NumPy are filtered by the standard library, and by h5py and numcodecs if they are
installed. A filter that none of them writes is not measured.
"""

from __future__ import annotations

import bz2
import gzip
import json
import time
import zlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe import _swathe
from swathe.core.sample_frame import draw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SIDE = 256
"""Side of the chunk, in elements of 2 bytes."""
MOST_RUNS = 9
"""Number of times that a chunk is decoded."""
LEAST_S = 1e-12


class Chunk(NamedTuple):
    """A chunk as one filter stores it.

    Attributes:
        description: the filter, as docs/design/030-chunk-index.md has it.
        content: its bytes.
        size: bytes that they decode to.
    """

    description: dict[str, Any]
    content: bytes
    size: int

    @property
    def name(self) -> str:
        """Return the name of the filter."""
        return str(self.description["name"])


def measure_filters() -> dict[str, list[float]]:
    """Return the computing time for each byte decoded, a few samples for each filter."""
    return {chunk.name: _decode_s(chunk) for chunk in make_chunks()}


def _decode_s(chunk: Chunk) -> list[float]:
    """Return the seconds for each byte of a chunk, several times."""
    filters, samples = json.dumps([chunk.description]), []
    for _ in range(MOST_RUNS):
        began_s = time.process_time()
        _swathe.decode_chunk(filters, 0, chunk.content, chunk.size)
        samples.append(max((time.process_time() - began_s) / chunk.size, LEAST_S))
    return samples


def make_chunks() -> Iterator[Chunk]:
    """Yield a chunk of each filter that can be written here."""
    pixels = draw(1, 1)[:SIDE, :SIDE].astype("<u2")
    content, size = pixels.tobytes(), pixels.itemsize
    row = {"size": size, "samples": 1, "width": SIDE, "big_endian": False}
    columns = np.frombuffer(content, "u1").reshape(-1, size).T.tobytes()
    contents: dict[str, tuple[dict[str, Any], bytes]] = {
        "deflate": ({}, zlib.compress(content, 4)),
        "gzip": ({}, gzip.compress(content, 4)),
        "bzip2": ({}, bz2.compress(content)),
        "shuffle": ({"size": size}, columns),
        # Any bytes are those of some elements.
        "bitshuffle": ({"size": size, "block": 0, "codec": "none"}, content),
        "horizontal": (row, content),
        "floating": (row, content),
    }
    for name, (parameters, data) in contents.items():
        yield Chunk({"name": name, **parameters}, data, len(content))
    if find_spec("h5py") is not None:
        yield from _chunks_of_hdf5(pixels)
    if find_spec("numcodecs") is not None:
        yield from _chunks_of_numcodecs(content)


def _chunks_of_hdf5(pixels: NDArray[np.uint16]) -> Iterator[Chunk]:
    """Yield chunks as h5py writes them."""
    import h5py

    options: dict[str, dict[str, Any]] = {
        "lzf": {"compression": "lzf"},
        "fletcher32": {"fletcher32": True},
        "scaleoffset": {"scaleoffset": 0},
    }
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        options["szip"] = {"compression": "szip", "compression_opts": ("nn", 16)}
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        for name, each in options.items():
            dataset = file.create_dataset(name, data=pixels, chunks=pixels.shape, **each)
            file.flush()
            _, data = dataset.id.read_direct_chunk((0, 0))
            values = dataset.id.get_create_plist().get_filter(0)[2]
            parameters: dict[str, Any] = {}
            if name == "szip":
                names = ("options", "block", "bits", "scanline")
                parameters = dict(zip(names, values, strict=True))
            elif name == "scaleoffset":
                parameters = {"values": list(values)}
            yield Chunk({"name": name, **parameters}, data, pixels.nbytes)


def _chunks_of_numcodecs(content: bytes) -> Iterator[Chunk]:
    """Yield chunks as Zarr has them."""
    import numcodecs

    elements = np.frombuffer(content, "<u2")
    yield Chunk({"name": "zstd"}, bytes(numcodecs.Zstd().encode(elements)), len(content))
    lz4 = {"name": "lz4", "framing": "zarr"}
    yield Chunk(lz4, bytes(numcodecs.LZ4().encode(elements)), len(content))
    yield Chunk({"name": "blosc"}, bytes(numcodecs.Blosc("lz4").encode(elements)), len(content))
