"""ASDF: what the chunk index says of arrays, compared with the package asdf."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from swathe.arrays.array_tree import decode_attribute
from swathe.arrays.readers import asdf as reader
from swathe.core.errors import FormatError, NoSuchHduError
from tests.arrays.chunk_reader import Array, arrays_of, parts_of

asdf = pytest.importorskip("asdf")
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?"]
DTYPES += ["S7", "U5"]


def describe(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        return arrays_of(reader.describe(file), path)


def groups_of(path: Path) -> dict[str, dict[str, Any]]:
    with path.open("rb") as file:
        groups = parts_of(reader.describe(file))[0]["groups"]
    return {
        path: {name: decode_attribute(value) for name, value in group.items()}
        for path, group in groups.items()
    }


def values_of(array: Array, path: Path) -> NDArray[Any]:
    if array.kind != "library":
        return array.values()
    size = int(np.prod(array.head["shape"]))
    ends = sorted({0, 1, size // 3, size})
    with path.open("rb") as file:
        name = array.head["name"]
        parts = [reader.read(file, name, *ends[at : at + 2]) for at in range(len(ends) - 1)]
    return np.frombuffer(b"".join(parts), array.head["dtype"]).reshape(array.head["shape"])


def image(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    values = np.random.default_rng(3).integers(0, 100, shape) % 100
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    return values.astype(dtype)


def write(path: Path, tree: dict[str, Any], **options: Any) -> None:
    with asdf.config_context() as config:
        config.default_array_save_base = True
        asdf.AsdfFile(tree).write_to(path, **options)


@pytest.mark.parametrize("name", ["miri_lrs_wcs", "miriwcs", "nircamwcs"])
def test_real_files_have_the_values_of_asdf(name: str, data: Path) -> None:
    path = data / "formats" / f"{name}.asdf"
    arrays = describe(path)
    assert arrays
    assert groups_of(path)["/"]["gwcs"].tolist() == ["/wcs"]
    with asdf.open(path, _force_raw_types=True) as file:
        blocks = file._blocks.blocks
        for array in arrays.values():
            raw: Any = file.tree
            for key in array.head["name"].split("/")[1:]:
                raw = raw[int(key) if isinstance(raw, list) else key]
            expected = np.frombuffer(blocks[raw["source"]].data, array.head["dtype"])
            assert array.kind == "contiguous"
            np.testing.assert_array_equal(array.values().ravel(), expected)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", ["internal", "inline", "zlib", "bzp2"])
def test_every_dtype(order: Any, dtype: str, storage: str, tmp_path: Path) -> None:
    path, values = tmp_path / "a.asdf", image((5, 7), np.dtype(dtype).newbyteorder(order))
    if storage == "inline":
        if values.dtype.kind in "cSU" or dtype == "f2":
            pytest.skip("asdf writes these in blocks")
        write(path, {"deep": [{"a/b~": values}]}, all_array_storage="inline")
    else:
        compression = None if storage == "internal" else storage
        write(path, {"deep": [{"a/b~": values}]}, all_array_compression=compression)
    arrays = describe(path)
    assert list(arrays) == ["/deep/0/a~1b~0"]
    array = arrays["/deep/0/a~1b~0"]
    expected = {"internal": "contiguous", "inline": "inline"}
    assert array.kind == expected.get(storage, "chunks")
    if storage != "inline":
        assert array.values().tobytes() == values.tobytes()
        assert array.values().dtype == values.dtype
    np.testing.assert_array_equal(array.values(), values)


def lz4_file(path: Path, values: NDArray[Any], size: int) -> None:
    """Write an array in lz4 pieces of some bytes, as the package lz4 would."""
    imagecodecs = pytest.importorskip("imagecodecs")
    raw = values.tobytes()
    data = b""
    for at in range(0, len(raw), size):
        part = raw[at : at + size]
        piece = struct.pack("<I", len(part)) + bytes(imagecodecs.lz4_encode(part))
        data += struct.pack(">I", len(piece)) + piece
    shape = list(values.shape)
    tree = f"a: !core/ndarray-1.0.0\n  {{source: 0, shape: {shape}, datatype: float32, "
    path.write_bytes(
        text_of(tree + "byteorder: little}") + block(data, b"lz4\0", data_size=len(raw))
    )


def text_of(tree: str) -> bytes:
    head = "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \n"
    return (head + tree + "\n...\n").encode()


def block(
    data: bytes,
    label: bytes = bytes(4),
    *,
    used: int | None = None,
    space: int | None = None,
    data_size: int | None = None,
    flags: int = 0,
) -> bytes:
    size = len(data)
    used, space = size if used is None else used, size if space is None else space
    data_size = size if data_size is None else data_size
    head = struct.pack(">I4sQQQ16s", flags, label, space, used, data_size, bytes(16))
    return b"\xd3BLK" + struct.pack(">H", len(head)) + head + data


@pytest.mark.parametrize(
    ("shape", "size", "chunk_shape"),
    [
        ((100, 32), 128 * 7, [7, 32]),
        ((6, 100, 32), 128 * 50, [1, 50, 32]),
        ((6, 100, 32), 128 * 200, [2, 100, 32]),
        ((6, 100, 32), 128 * 30, [6, 100, 32]),
        ((100, 32), 100, [100, 32]),
        ((100, 32), 1 << 20, [100, 32]),
    ],
)
def test_pieces_of_lz4_are_chunks_if_they_are_rows(
    shape: tuple[int, ...], size: int, chunk_shape: list[int], tmp_path: Path
) -> None:
    path, values = tmp_path / "a.asdf", image(shape, "<f4")
    lz4_file(path, values, size)
    array = describe(path)["/a"]
    assert array.storage["chunk_shape"] == chunk_shape
    np.testing.assert_array_equal(array.values(), values)


def test_views_of_a_block(tmp_path: Path) -> None:
    path, base = tmp_path / "a.asdf", image((40, 50), "<i4")
    views = {
        "base": base,
        "rows": base[5:9],
        "window": base[3:20, 4:30],
        "steps": base[::3, ::2],
        "turned": base.T,
    }
    write(path, views)
    arrays = describe(path)
    kinds = {name: array.kind for name, array in arrays.items()}
    assert kinds == {
        "/base": "contiguous",
        "/rows": "contiguous",
        "/window": "regular",
        "/steps": "library",
        "/turned": "library",
    }
    for name, array in arrays.items():
        np.testing.assert_array_equal(values_of(array, path), views[name[1:]])


@pytest.mark.parametrize("compression", ["zlib", "bzp2"])
def test_views_of_a_compressed_block(compression: str, tmp_path: Path) -> None:
    path, base = tmp_path / "a.asdf", image((40, 50), "<i4")
    views = {"base": base, "window": base[3:20, 4:30]}
    write(path, views, all_array_compression=compression)
    arrays = describe(path)
    assert [array.kind for array in arrays.values()] == ["chunks", "library"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(values_of(array, path), views[name[1:]])


def test_the_length_of_a_stream_is_that_of_the_file(tmp_path: Path) -> None:
    path, values = tmp_path / "a.asdf", image((6, 8), "<f8")
    stream = asdf.AsdfFile({"stream": asdf.tags.core.stream.Stream([8], np.float64)})
    with path.open("wb") as file:
        stream.write_to(file)
        file.write(values.tobytes() + b"rest")
    np.testing.assert_array_equal(describe(path)["/stream"].values(), values)


def test_quantities_tables_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.asdf"
    tree = (
        "roman:\n  meta: {exposure: 4.5, name: R1, is_good: true, none: null, big: 1e3,\n"
        "    shape: [1, 2, 3], names: [a, b]}\n"
        "  data: !unit/quantity-1.1.0\n    unit: !unit/unit-1.0.0 DN\n    value:\n"
        "      !core/ndarray-1.0.0 {source: -1, shape: [2], datatype: int16, byteorder: little}\n"
        "wcs: !<tag:stsci.edu:gwcs/wcs-1.2.0> {name: sky, steps: []}\n"
        "strange: !<tag:example.com:x/y-1.0> {a: 5}\n"
        "link: {$ref: 'http://example.com/b.asdf#/data'}"
    )
    path.write_bytes(text_of(tree) + block(b"\1\0\2\0"))
    array = describe(path)["/roman/data"]
    assert array.attributes == {"unit": "DN"}
    assert array.values().tolist() == [1, 2]
    groups = groups_of(path)
    assert groups["/"]["gwcs"].tolist() == ["/wcs"]
    meta = groups["/roman/meta"]
    assert (meta["exposure"], meta["name"], meta["is_good"]) == (4.5, "R1", True)
    assert meta["shape"].tolist() == [1, 2, 3]
    assert meta["names"].tolist() == ["a", "b"]
    assert "none" not in meta
    assert groups["/strange"] == {"a": 5}
    assert groups["/link"] == {"$ref": "http://example.com/b.asdf#/data"}
    assert "/wcs" not in groups


def test_a_tree_may_end_at_any_byte() -> None:
    for padding in range(65400, 65440):
        tree = f"a: {'x' * padding}\nb: 5\nc: '\n\n  ...d'"
        file = io.BytesIO(text_of(tree) + block(b"1234"))
        root = parts_of(reader.describe(file))[0]["groups"]["/"]
        assert len(root["a"]) == padding
        assert decode_attribute(root["b"]) == 5
    whole = text_of("a: 1")[:-1]
    assert parts_of(reader.describe(io.BytesIO(whole)))[0]["arrays"] == []


def test_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.asdf"
    values = np.array(
        [(1, 2.5, (3, 4)), (5, 6.5, (7, 8))], [("a", "<i2"), ("b", ">f4"), ("c", "i1", 2)]
    )
    write(path, {"table": values})
    np.testing.assert_array_equal(describe(path)["/table"].values(), values)


def array_of(text: str) -> bytes:
    return text_of(f"a: !core/ndarray-1.0.0 {{{text}}}")


REFUSED = {
    "http": "source: 'http://127.0.0.1/x.asdf', shape: [4], datatype: uint8, byteorder: big",
    "file": "source: '../other.asdf', shape: [4], datatype: uint8, byteorder: big",
    "masked": "data: [1, null, 3], datatype: int16",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_its_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.asdf"
    path.write_bytes(array_of(REFUSED[name]) + block(bytes(16)))
    assert describe(path)["/a"].kind == "refused"


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.asdf"
    path.write_bytes(array_of(PLAIN) + block(bytes(4), b"blsc"))
    assert describe(path)["/a"].storage == {"kind": "refused", "why": "compression blsc"}


PLAIN = "source: 0, shape: [4], datatype: uint8, byteorder: big"
BOMB = "a0: &a0 {x: 1}\n" + "\n".join(
    f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 9) + "]" for level in range(1, 10)
)
TEXT_BOMB = "a: &a '" + "x" * 1_000_000 + "'\nb: [" + ", ".join(["*a"] * 900) + "]"
BAD = {
    "empty": b"",
    "no tree": b"#ASDF 1.0.0\n",
    "no end": text_of("a: 1")[:-5],
    "blocks only": b"#ASDF 1.0.0\n" + block(b"1234"),
    "yaml": text_of("a: [1"),
    "bomb": text_of(BOMB),
    "text bomb": text_of(TEXT_BOMB),
    "own alias": text_of("a: &a\n  - {b: *a}"),
    "key twice": text_of("a: 1\na: 2"),
    "array twice": text_of("a: !core/ndarray-1.0.0 [1]\n'a': !core/ndarray-1.0.0 [2]"),
    "levels": text_of("[" * 200_000 + "]" * 200_000),
    "mappings": text_of("{a: " * 200_000 + "1" + "}" * 200_000),
    "steps": text_of("- " * 200_000 + "1"),
}
BAD_ARRAYS = {
    "offset": array_of(PLAIN + ", offset: -1") + block(bytes(4)),
    "far offset": array_of(PLAIN + ", offset: 1") + block(bytes(4)),
    "short block": array_of(PLAIN) + block(bytes(3)),
    "no block": array_of(PLAIN),
    "block number": array_of(PLAIN.replace("source: 0", "source: -2")) + block(bytes(4)),
    "huge shape": array_of(PLAIN.replace("[4]", "[4611686018427387904, 4]")) + block(bytes(4)),
    "many rows": array_of(PLAIN.replace("[4]", "[4611686018427387903]")) + block(bytes(4)),
    "negative shape": array_of(PLAIN.replace("[4]", "[-4]")) + block(bytes(4)),
    "datatype": array_of(PLAIN.replace("uint8", "object")) + block(bytes(4)),
    "byteorder": array_of(PLAIN.replace("big", "middle")) + block(bytes(4)),
    "strides": array_of(PLAIN + ", strides: [-1]") + block(bytes(4)),
    "many strides": array_of(PLAIN + ", strides: [1, 1]") + block(bytes(4)),
    "used": array_of(PLAIN) + block(bytes(4), used=5),
    "space": array_of(PLAIN) + block(bytes(4), space=1 << 62),
    "data size": array_of(PLAIN) + block(bytes(4), data_size=400),
    "header": array_of(PLAIN) + b"\xd3BLK\0\4" + bytes(4),
    "stream": array_of(PLAIN) + block(bytes(4), b"zlib", flags=1),
    "stream rows": array_of("source: 0, shape: ['*', 0], datatype: uint8, byteorder: big")
    + block(bytes(4), flags=1),
    "lz4 pieces": array_of(PLAIN) + block(b"\0\0\0\xff\4\0\0\0", b"lz4\0", data_size=4),
    "shape of inline": array_of("data: [1, 2, 3], shape: [4]"),
    "ragged": array_of("data: [[1, 2], [3]], datatype: int16"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_raise(name: str) -> None:
    with pytest.raises(FormatError):
        reader.describe(io.BytesIO(BAD[name]))


@pytest.mark.parametrize("name", ["levels", "mappings", "steps"])
def test_a_tree_that_is_too_deep_says_so(name: str) -> None:
    """libyaml's loader calls itself for each level: these were crashes."""
    with pytest.raises(FormatError, match="nested too deep: expected at most 500 levels"):
        reader.describe(io.BytesIO(BAD[name]))


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_bad_array_is_refused_alone(name: str, tmp_path: Path) -> None:
    path, bad = tmp_path / "a.asdf", BAD_ARRAYS[name]
    good = b"good: !core/ndarray-1.0.0 {data: [1, 2, 3], datatype: int16}\n"
    path.write_bytes(bad.replace(b"--- \n", b"--- \n" + good))
    arrays = describe(path)
    assert arrays.keys() == {"/good", "/a"}
    assert arrays["/good"].values().tolist() == [1, 2, 3]
    assert arrays["/a"].kind == "refused" and arrays["/a"].storage["why"]
    with path.open("rb") as file, pytest.raises(FormatError):
        reader.read(file, "/a", 0, 1)


def three_blocks(path: Path, sources: tuple[int, ...], **options: Any) -> dict[str, Array]:
    """Describe a file whose second block of three has other numbers in its header."""
    nodes = [
        f"a{number}: !core/ndarray-1.0.0 {{source: {source}, shape: [4], datatype: uint8, "
        "byteorder: big}"
        for number, source in enumerate(sources)
    ]
    blocks = [block(b"1234"), block(b"5678", **options), block(b"9abc")]
    path.write_bytes(text_of("\n".join(nodes)) + b"".join(blocks))
    return describe(path)


def test_a_damaged_block_refuses_only_its_arrays(tmp_path: Path) -> None:
    arrays = three_blocks(tmp_path / "a.asdf", (0, 1, 2, -1, -2), used=5)
    kinds = [arrays[f"/a{number}"].kind for number in range(5)]
    assert kinds == ["contiguous", "refused", "contiguous", "contiguous", "refused"]
    assert arrays["/a3"].values().tobytes() == b"9abc"
    assert "expected 5 bytes in space of 4" in arrays["/a1"].storage["why"]


def test_blocks_behind_one_that_leaves_the_file_are_not_known(tmp_path: Path) -> None:
    """The last block of such a file is not the one that `source: -1` means."""
    arrays = three_blocks(tmp_path / "a.asdf", (0, 1, 2, -1, -2), space=1 << 40)
    kinds = [arrays[f"/a{number}"].kind for number in range(5)]
    assert kinds == ["contiguous", *["refused"] * 4]
    assert all("block 1" in arrays[f"/a{number}"].storage["why"] for number in (1, 2, 3, 4))


@pytest.mark.parametrize("label", [b"zlib", b"bzp2"])
def test_damaged_and_exploding_blocks_raise(label: bytes, tmp_path: Path) -> None:
    import bz2
    import zlib

    compress = zlib.compress if label == b"zlib" else bz2.compress
    view = array_of(PLAIN.replace("[4]", "[2]"))
    for data, size in [(compress(bytes(10_000_000)), 4), (b"????", 4), (compress(b"1"), 4)]:
        file = io.BytesIO(view + block(data, label, data_size=size))
        with pytest.raises(FormatError):
            reader.read(file, "/a", 0, 2)


def test_a_wrong_checksum_raises(tmp_path: Path) -> None:
    path, base = tmp_path / "a.asdf", image((40, 50), "<i4")
    write(path, {"base": base.T})
    data = bytearray(path.read_bytes())
    data[data.index(base.tobytes()) + 9] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        reader.read(io.BytesIO(bytes(data)), "/base", 0, 5)


def test_read_of_no_array_raises(tmp_path: Path) -> None:
    file = io.BytesIO(array_of(PLAIN) + block(bytes(4)))
    with pytest.raises(NoSuchHduError):
        reader.read(file, "/b", 0, 1)
    with pytest.raises(FormatError):
        reader.read(file, "/a", 0, 5)


def test_long_number_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "long.asdf"
    number = "1" + ":1" * 400_000
    path.write_bytes(f"#ASDF 1.0.0\n%YAML 1.1\n---\nw: {number}\n...\n".encode())
    assert str(groups_of(path)["/"]["w"]) == number
