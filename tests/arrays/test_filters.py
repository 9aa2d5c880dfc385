"""Filters of chunks, against the libraries that write them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swathe._swathe import decode_chunk
from swathe.core.errors import FormatError
from tests.support.property_examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

h5py = pytest.importorskip("h5py", reason="h5py writes the chunks")
hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin writes the chunks")
imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs writes the chunks")

DTYPES = ["u1", "<i2", ">i2", "<u4", "<f4", ">f4", "<f8", "<i8", "<c16"]
SHAPES = [(1,), (7,), (64,), (100, 100), (3, 50, 41)]
CODECS = {0: "none", 2: "lz4", 3: "zstd"}


def filters_of(dataset: Any) -> list[dict[str, Any]]:
    """Return the filters of a dataset as the index of chunks names them."""
    plist = dataset.id.get_create_plist()
    filters: list[dict[str, Any]] = []
    for i in range(plist.get_nfilters()):
        code, _flags, values, _name = plist.get_filter(i)
        match code:
            case 1 | 3 | 32000 | 32001 | 32015 | 307:
                names = {1: "deflate", 3: "fletcher32", 32000: "lzf", 32001: "blosc"}
                filters.append({"name": (names | {32015: "zstd", 307: "bzip2"})[code]})
            case 2:
                filters.append({"name": "shuffle", "size": values[0]})
            case 4:
                names4 = dict(zip(("options", "block", "bits", "scanline"), values, strict=True))
                filters.append({"name": "szip", **names4})
            case 5 | 6:
                name = "nbit" if code == 5 else "scaleoffset"
                filters.append({"name": name, "values": list(values)})
            case 32004:
                filters.append({"name": "lz4", "framing": "hdf5"})
            case 32008:
                size, block = values[2:4]
                codec = CODECS[values[4] if len(values) > 4 else 0]
                filters.append({"name": "bitshuffle", "size": size, "block": block, "codec": codec})
    return filters


def write(data: NDArray[Any], **options: Any) -> tuple[list[dict[str, Any]], int, bytes, bytes]:
    """Return filters, filters left out, stored bytes and elements of a dataset of one chunk."""
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("a", data=data, chunks=data.shape, **options)
        file.flush()
        skips, stored = dataset.id.read_direct_chunk((0,) * data.ndim)
        return filters_of(dataset), skips, stored, dataset[...].tobytes()


def check(data: NDArray[Any], **options: Any) -> None:
    filters, skips, stored, expected = write(data, **options)
    assert filters
    assert decode_chunk(json.dumps(filters), skips, stored, len(expected)) == expected


def decode(stored: bytes, decoded_bytes: int, *filters: dict[str, Any]) -> bytes:
    return decode_chunk(json.dumps(filters), 0, stored, decoded_bytes)


def numbers(dtype: str, shape: tuple[int, ...], kind: int = 0) -> NDArray[Any]:
    """Return a ramp with noise, noise, or equal elements."""
    random = np.random.default_rng(3)
    count = int(np.prod(shape))
    if kind == 1:
        width = np.dtype(dtype).itemsize
        noise: NDArray[Any] = np.frombuffer(random.bytes(count * width), dtype)
        return noise.reshape(shape)
    ramp = np.arange(count) // 3 % 100 + (random.integers(0, 3, count) if kind == 0 else 0)
    return (ramp if kind != 2 else np.full(count, 7)).astype(dtype).reshape(shape)


def plugins() -> dict[str, Callable[[], Any]]:
    """Return the options of `create_dataset` for each filter."""
    made: dict[str, Callable[[], Any]] = {
        "deflate": lambda: {"compression": "gzip"},
        "shuffle+deflate": lambda: {"compression": "gzip", "shuffle": True},
        "shuffle+deflate+fletcher32": lambda: {
            "compression": 6,
            "shuffle": True,
            "fletcher32": True,
        },
        "fletcher32": lambda: {"fletcher32": True},
        "lzf": lambda: {"compression": "lzf"},
        "shuffle+lzf": lambda: {"compression": "lzf", "shuffle": True},
        "lz4": lambda: hdf5plugin.LZ4(),
        "lz4 of small blocks": lambda: hdf5plugin.LZ4(nbytes=256),
        "zstd": lambda: hdf5plugin.Zstd(),
        "bzip2": lambda: hdf5plugin.BZip2(),
        "bitshuffle": lambda: hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle of small blocks": lambda: hdf5plugin.Bitshuffle(nelems=16, cname="lz4"),
        "bitshuffle+lz4": lambda: hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle+zstd": lambda: hdf5plugin.Bitshuffle(cname="zstd"),
    }
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            made[f"blosc {name} {shuffle}"] = partial(
                hdf5plugin.Blosc, cname=name, clevel=5, shuffle=shuffle
            )
    return made


@pytest.mark.parametrize("name", plugins())
def test_filters_of_hdf5(name: str) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            for kind in (0, 1, 2):
                check(numbers(dtype, shape, kind), **plugins()[name]())


@given(
    st.sampled_from(sorted(plugins())),
    st.sampled_from(DTYPES),
    st.lists(st.integers(1, 70), min_size=1, max_size=3),
    st.integers(0, 2),
)
@settings(deadline=None, max_examples=examples(40))
def test_any_chunk_shape(name: str, dtype: str, shape: list[int], kind: int) -> None:
    check(numbers(dtype, tuple(shape), kind), **plugins()[name]())


@pytest.mark.parametrize("coding", ["nn", "ec"])
@pytest.mark.parametrize("block", [4, 8, 16, 32])
def test_szip(coding: str, block: int) -> None:
    for dtype in ("u1", "<i2", ">i2", "<u4", ">i4", "<f4", "<f8", ">f8"):
        for shape in ((32,), (40,), (100, 100), (3, 50, 41), (2, 5000)):
            for kind in (0, 1, 2):
                data = numbers(dtype, shape, kind)
                check(data, compression="szip", compression_opts=(coding, block))


def test_scale_offset_of_integers() -> None:
    for dtype in ("i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", ">i8"):
        for shape in SHAPES:
            for kind in (0, 1, 2):
                for fill in (None, 5):
                    check(numbers(dtype, shape, kind), scaleoffset=0, fillvalue=fill)
    check(numbers("<i2", (50,)) - 1000, scaleoffset=0, shuffle=True, compression="gzip")


@pytest.mark.parametrize("decimals", [0, 1, 3, 7])
def test_scale_offset_of_floats(decimals: int) -> None:
    random = np.random.default_rng(5)
    for dtype in ("<f4", ">f4", "<f8", ">f8"):
        for fill in (None, 1.5):
            data = random.normal(-3, 40, (30, 41)).astype(dtype)
            data[3, 4:9] = 1.5
            check(data, scaleoffset=decimals, fillvalue=fill)


def nbit_type(size: int, precision: int, offset: int, *, is_big_endian: bool) -> Any:
    of = h5py.h5t.STD_I32BE if is_big_endian else h5py.h5t.STD_I32LE
    of = of.copy()
    of.set_size(size)
    of.set_precision(precision)
    of.set_offset(offset)
    return of


def check_nbit(file_type: Any, data: NDArray[Any], memory_type: Any = None) -> None:
    """Write a chunk by the low-level functions and compare it with the bytes HDF5 decodes."""
    with h5py.File(io.BytesIO(), "w") as file:
        space = h5py.h5s.create_simple(data.shape)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(data.shape)
        plist.set_filter(5, 0, ())
        dataset = h5py.h5d.create(file.id, b"a", file_type, space, plist)
        dataset.write(space, space, data, memory_type)
        file.flush()
        skips, stored = dataset.read_direct_chunk((0,) * data.ndim)
        values = list(dataset.get_create_plist().get_filter(0)[2])
        expected = np.zeros(data.size * file_type.get_size(), "u1")
        # Of the same type in memory, nothing is converted.
        dataset.read(space, space, expected.view(f"V{file_type.get_size()}"), file_type)
        filters = json.dumps([{"name": "nbit", "values": values}])
        assert decode_chunk(filters, skips, stored, expected.size) == expected.tobytes()


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_nbit_of_numbers(is_big_endian: bool) -> None:
    for size, precision, offset in ((4, 17, 3), (2, 9, 0), (1, 3, 2), (8, 40, 11), (4, 32, 0)):
        of = nbit_type(size, precision, offset, is_big_endian=is_big_endian)
        data = np.random.default_rng(1).integers(-3, 4, (20, 11)).astype("<i4")
        check_nbit(of, data, h5py.h5t.NATIVE_INT32)


def test_nbit_of_compound_elements() -> None:
    number = nbit_type(4, 11, 5, is_big_endian=False)
    array = h5py.h5t.array_create(nbit_type(2, 7, 1, is_big_endian=True), (3,))
    of = h5py.h5t.create(h5py.h5t.COMPOUND, 24)
    of.insert(b"number", 1, number)
    of.insert(b"array", 8, array)
    of.insert(b"double", 16, h5py.h5t.IEEE_F64LE)
    memory = np.dtype([("number", "<i4"), ("array", "<i2", 3), ("double", "<f8")])
    data = np.zeros(33, memory)
    data["number"] = np.arange(33) - 10
    data["array"] = np.arange(99).reshape(33, 3) % 50
    data["double"] = np.arange(33) / 7
    check_nbit(of, data)


def test_filters_left_out_are_not_undone() -> None:
    data = numbers("<i4", (100,))
    stored = zlib.compress(data.tobytes())
    filters = json.dumps([{"name": "shuffle", "size": 4}, {"name": "deflate"}])
    assert decode_chunk(filters, 1, stored, 400) == data.tobytes()
    assert decode_chunk(filters, 3, data.tobytes(), 400) == data.tobytes()


def test_compressions_of_zarr_and_asdf() -> None:
    data = numbers("<i4", (100, 70)).tobytes()
    size = len(data)
    assert decode(gzip.compress(data), size, {"name": "gzip"}) == data
    assert decode(bz2.compress(data), size, {"name": "bzip2"}) == data
    block = imagecodecs.lz4_encode(data, header=True)
    assert decode(block, size, {"name": "lz4", "framing": "zarr"}) == data
    halves = [imagecodecs.lz4_encode(part, header=True) for part in (data[:9999], data[9999:])]
    blocks = b"".join(struct.pack(">I", len(half)) + half for half in halves)
    assert decode(blocks, size, {"name": "lz4", "framing": "asdf"}) == data
    google_crc32c = pytest.importorskip("google_crc32c", reason="google_crc32c has the checksum")
    summed = data + struct.pack("<I", google_crc32c.value(data))
    assert decode(summed, size, {"name": "crc32c"}) == data
    with pytest.raises(FormatError, match="crc32c: expected checksum"):
        decode(b"x" + summed[1:], size, {"name": "crc32c"})


def test_crc32c_of_the_usual_text() -> None:
    stored = b"123456789" + struct.pack("<I", 0xE3069283)
    assert decode(stored, 9, {"name": "crc32c"}) == b"123456789"


@pytest.mark.parametrize("codec", ["lzw", "packbits"])
def test_compressions_of_tiff(codec: str) -> None:
    encode = getattr(imagecodecs, f"{codec}_encode")
    for kind in (0, 1, 2):
        for shape in ((1,), (64, 64), (300, 301)):
            data = numbers("<u2", shape, kind).tobytes()
            assert decode(encode(data), len(data), {"name": codec}) == data


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">u2", "<u4", ">i4", "<i8", ">u8"])
@pytest.mark.parametrize("samples", [1, 3, 4])
def test_the_horizontal_predictor(dtype: str, samples: int) -> None:
    data = numbers(dtype, (9, 17, samples), 1)
    native = data.astype(data.dtype.newbyteorder("="))
    stored = imagecodecs.delta_encode(native, axis=1).astype(dtype).tobytes()
    parameters = {"size": data.itemsize, "samples": samples, "width": 17}
    predictor = {"name": "horizontal", **parameters, "big_endian": data.dtype.str[0] == ">"}
    assert decode(stored, data.nbytes, predictor) == data.tobytes()
    deflated = decode(zlib.compress(stored), data.nbytes, predictor, {"name": "deflate"})
    assert deflated == data.tobytes()


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("samples", [1, 3])
def test_the_floating_predictor(dtype: str, samples: int) -> None:
    data = numbers(dtype, (9, 17, samples), 1)
    stored = imagecodecs.floatpred_encode(data, axis=1).tobytes()
    parameters = {"size": data.itemsize, "samples": samples, "width": 17}
    predictor = {"name": "floating", **parameters, "big_endian": dtype[0] == ">"}
    assert decode(stored, data.nbytes, predictor) == data.tobytes()


def damaged(stored: bytes) -> Iterable[bytes]:
    """Yield prefixes of bytes, and the bytes with some of them changed."""
    random = np.random.default_rng(9)
    for end in {*range(min(len(stored), 64)), *random.integers(0, len(stored), 60).tolist()}:
        yield stored[:end]
    for at in {*range(min(len(stored), 64)), *random.integers(0, len(stored), 100).tolist()}:
        for value in (0, 255, stored[at] ^ 1 << int(random.integers(8))):
            yield stored[:at] + bytes([value]) + stored[at + 1 :]


def damaged_chunks() -> dict[str, Callable[[], Any]]:
    more: dict[str, Callable[[], Any]] = {
        "szip": lambda: {"compression": "szip", "compression_opts": ("nn", 16)},
        "scaleoffset": lambda: {"scaleoffset": 0},
    }
    return plugins() | more


@pytest.mark.parametrize("name", damaged_chunks())
def test_damaged_chunks_are_errors_or_other_bytes(name: str) -> None:
    data = numbers("<i2", (40, 41))
    filters, skips, stored, expected = write(data, **damaged_chunks()[name]())
    text = json.dumps(filters)
    for each in damaged(stored):
        try:
            assert len(decode_chunk(text, skips, each, len(expected))) == len(expected)
        except FormatError as error:
            assert "expected" in str(error)
    for size in (len(expected) - 1, len(expected) + 1, 0):
        with pytest.raises(FormatError, match="expected"):
            decode_chunk(text, skips, stored, size)


@pytest.mark.parametrize(
    "name", ["deflate", "gzip", "lzf", "lzw", "packbits", "zstd", "fletcher32", "blosc"]
)
def test_a_few_bytes_cannot_ask_for_gigabytes(name: str) -> None:
    with pytest.raises(FormatError, match=f"{name}: expected at least .* found 4096"):
        decode(bytes(4096), 1 << 31, {"name": name})
    with pytest.raises(FormatError, match="at most 2147483648 decoded bytes"):
        decode(bytes(4096), (1 << 31) + 1, {"name": name})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"name": "rot13"}]', "unknown variant"),
        ('[{"name": "shuffle"}]', "missing field"),
        ('[{"name": "shuffle", "size": 4, "sizes": 4}]', "unknown field"),
        ('[{"name": "shuffle", "size": 0}]', "shuffle: size of an element: expected 1"),
        ('[{"name": "shuffle", "size": -1}]', "invalid value"),
        ('[{"name": "lz4", "framing": "x"}]', "unknown variant"),
        ('[{"name": "bitshuffle", "size": 2, "block": 9, "codec": "lz4"}]', "multiple of 8"),
        ('[{"name": "szip", "options": 0, "block": 5, "bits": 8, "scanline": 9}]', "even"),
        ('[{"name": "scaleoffset", "values": [1]}]', "at least 8"),
        ('[{"name": "nbit", "values": [8, 0, 1, 1, 4, 0, 33, 0]}]', "bits of a number"),
        ('[{"name": "nbit", "values": [4, 0, 1, 9, 4]}]', "class of a type"),
        ("[" + ",".join(['{"name": "deflate"}'] * 33) + "]", "at most 32"),
        (
            '[{"name": "floating", "size": 1, "samples": 1, "width": 1, "big_endian": true}]',
            "floating: size",
        ),
    ],
)
def test_wrong_filters_are_errors(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_chunk(text, 0, b"", 0)


def test_predictors_want_whole_rows() -> None:
    predictor = {"name": "horizontal", "size": 2, "samples": 1, "width": 8, "big_endian": False}
    with pytest.raises(FormatError, match="bytes after the last row: expected 0, found 2"):
        decode(bytes(18), 18, predictor)


def test_nbit_of_no_bits_is_refused() -> None:
    # Compound elements without members: they would take time, and no stored bytes.
    values = [8, 0, 1 << 20, 3, 4, 1, 0, 3, 4, 0]
    with pytest.raises(ValueError, match="members of a compound type"):
        decode_chunk(json.dumps([{"name": "nbit", "values": values}]), 0, b"x", 1 << 22)
