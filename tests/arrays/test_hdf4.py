"""HDF4: what the chunk index says of arrays, compared with pyhdf."""

from __future__ import annotations

import gzip
import io
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from swathe.arrays.array_tree import decode_attribute
from swathe.arrays.readers import hdf4
from swathe.core.errors import FormatError, NoSuchHduError
from tests.arrays.chunk_reader import Array, arrays_of, parts_of

SD_module = pytest.importorskip("pyhdf.SD")
SD, SDC = SD_module.SD, SD_module.SDC
FILES = [
    "formats/MOD14.hdf4",
    "swath/3A11.20020301.7.HDF",
    "swath/SwathFile.hdf",
    "swath/f97182070958.hdf",
    "swath/ref_chunked.hdf4",
    "swath/swath_3_3d_dimmap.hdf",
    "swath/S2000415.HDF.gz",
]


def plain_file(path: Path, tmp_path: Path) -> Path:
    """A file, decompressed where it is not plain."""
    if path.suffix != ".gz":
        return path
    plain = tmp_path / path.stem
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    return plain


def describe(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        return arrays_of(hdf4.describe(file), path)


def root_of(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        attributes = parts_of(hdf4.describe(file))[0]["groups"]["/"]
    return {name: decode_attribute(value) for name, value in attributes.items()}


def values_of(array: Array, path: Path) -> NDArray[Any]:
    if array.kind != "library":
        return array.values()
    size = int(np.prod(array.head["shape"]))
    ends = sorted({0, 1, size // 3, size})
    with path.open("rb") as file:
        name = array.head["name"]
        parts = [hdf4.read(file, name, *ends[at : at + 2]) for at in range(len(ends) - 1)]
    return np.frombuffer(b"".join(parts), array.head["dtype"]).reshape(array.head["shape"])


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_the_values_of_pyhdf(name: str, data: Path, tmp_path: Path) -> None:
    path = plain_file(data / name, tmp_path)
    arrays: dict[str, list[Array]] = defaultdict(list)
    for array in describe(path).values():
        if array.dims != ["record"]:
            arrays[array.head["name"].rpartition("/")[2].split(" (")[0]].append(array)
    file = SD(str(path))
    assert sum(map(len, arrays.values())) == file.info()[0]
    for number in range(file.info()[0]):
        expected = file.select(number)
        name, _, shape, *_ = expected.info()
        array = arrays[name].pop(0)
        assert array.kind in ("contiguous", "chunks")
        assert array.head["shape"] == (shape if isinstance(shape, list) else [shape])
        assert array.dims == list(expected.dimensions(full=1))
        assert array.attributes.keys() >= expected.attributes().keys()
        if 0 not in array.head["shape"]:
            values = array.values()
            np.testing.assert_array_equal(
                values, np.asarray(expected.get()).view(values.dtype.newbyteorder("="))
            )
        for key, value in expected.attributes().items():
            ours = array.attributes[key]
            if isinstance(value, str):
                assert ours == value.rstrip("\0")
            else:
                np.testing.assert_array_equal(ours, value)
    assert root_of(path).keys() == file.attributes().keys()


def test_tables_have_the_records_of_pyhdf(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyhdf.VS")
    hdf = pytest.importorskip("pyhdf.HDF")
    path = plain_file(data / "swath/S2000415.HDF.gz", tmp_path)
    array = describe(path)["/NSCAT Rev 20/NSCAT L2"]
    assert array.dims == ["record"]
    file = hdf.HDF(str(path))
    tables = file.vstart()
    table = tables.attach("NSCAT L2")
    records = table.read(458)
    values = array.values()
    assert values.dtype.names == ("Mean_Time", "Low_Wind_Speed_Flag", "High_Wind_Speed_Flag")
    for ours, theirs in zip(values.tolist(), records, strict=True):
        assert (
            b"".join(ours[0]).decode() == "".join(map(chr, theirs[0]))
            if not isinstance(theirs[0], str)
            else theirs[0]
        )
        assert ours[1:] == tuple(theirs[1:])
    table.detach()
    tables.end()
    file.close()


def test_arrays_of_swaths_have_their_paths(data: Path) -> None:
    names = list(describe(data / "swath/swath_3_3d_dimmap.hdf"))
    assert "/Swath2/Geolocation Fields/Latitude" in names
    assert "/Swath3/Data Fields/temperature_m" in names
    assert "/Swath1/Geolocation Fields/pressure" in names


def test_parts_of_the_structure_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    file = SD(str(path), SDC.WRITE | SDC.CREATE)
    for number in (1, 0, 10, 2):
        file.attr(f"StructMetadata.{number}").set(SDC.CHAR, f"part {number};")
    file.attr("other").set(SDC.FLOAT32, [1.5, 2.5])
    file.end()
    root = root_of(path)
    assert root["StructMetadata.0"] == "part 0;part 1;part 2;part 10;"
    assert root["other"].tolist() == [1.5, 2.5]
    assert set(root) == {"StructMetadata.0", "other"}


TYPES = {
    "INT8": "i1",
    "UINT8": "u1",
    "INT16": "i2",
    "UINT16": "u2",
    "INT32": "i4",
    "UINT32": "u4",
    "FLOAT32": "f4",
    "FLOAT64": "f8",
}


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("compression", [None, "DEFLATE", "RLE", "SKPHUFF"])
def test_every_type(type_name: str, compression: str | None, tmp_path: Path) -> None:
    path, dtype = tmp_path / "a.hdf", np.dtype(TYPES[type_name])
    values = (np.arange(600).reshape(20, 30) // 7 * 3).astype(dtype)
    file = SD(str(path), SDC.WRITE | SDC.CREATE)
    data_set = file.create("a/b", getattr(SDC, type_name), values.shape)
    level = {"DEFLATE": (6,), "SKPHUFF": (dtype.itemsize,)}.get(compression or "", ())
    if compression:
        data_set.setcompress(getattr(SDC, f"COMP_{compression}"), *level)
    data_set[:] = values
    data_set.endaccess()
    file.end()
    array = describe(path)["/a~1b"]
    assert array.head["dtype"] == dtype.newbyteorder(">").str
    if compression == "SKPHUFF":
        assert array.storage == {"kind": "refused", "why": "compression skipping Huffman"}
        return
    kinds = {None: "contiguous", "DEFLATE": "chunks", "RLE": "library"}
    assert array.kind == kinds[compression]
    np.testing.assert_array_equal(values_of(array, path), values)


def test_unlimited_axes_are_linked_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    file = SD(str(path), SDC.WRITE | SDC.CREATE)
    rows = file.create("rows", SDC.INT32, (SDC.UNLIMITED, 7))
    odd = file.create("odd", SDC.INT16, (SDC.UNLIMITED, 1000))
    for number in range(40):
        rows[5 * number : 5 * number + 5] = np.full((5, 7), number, np.int32)
        odd[number : number + 1] = np.full((1, 1000), number, np.int16)
    rows.endaccess()
    odd.endaccess()
    file.end()
    arrays = describe(path)
    assert arrays["/rows"].storage["chunk_shape"] == [64, 7]
    for name, array in arrays.items():
        expected = SD(str(path)).select(name[1:]).get()
        np.testing.assert_array_equal(values_of(array, path), expected)


def test_what_was_never_written_is_fill(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    file = SD(str(path), SDC.WRITE | SDC.CREATE)
    for name in TYPES:
        file.create(name, getattr(SDC, name), (4, 5)).endaccess()
        data_set = file.create(f"{name} with fill", getattr(SDC, name), (4, 5))
        data_set.setfillvalue(7)
        data_set.endaccess()
    file.create("text", SDC.CHAR, (4, 5)).endaccess()
    file.end()
    file = SD(str(path))
    arrays = describe(path)
    assert arrays.pop("/text").values().tobytes() == bytes(20)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array.values(), file.select(name[1:]).get())


def descriptors(*rows: tuple[int, int, int, int], after: int = 0) -> bytes:
    table = b"".join(struct.pack(">HHII", *row) for row in rows)
    return b"\x0e\x03\x13\x01" + struct.pack(">hI", len(rows), after) + table


SDD = struct.pack(">HiiHH", 2, 3, 4, 106, 9) + bytes(8)
NUMBER = bytes((1, 21, 8, 1))


def data_set(sdd: bytes = SDD, sd: tuple[int, int, int, int] = (702, 1, 200, 12)) -> bytes:
    """A file with one data set that is in no vgroup, and data at byte 200."""
    ndg = struct.pack(">HHHH", 701, 1, 702, 1)
    head = descriptors((720, 1, 100, 8), (701, 1, 110, len(sdd)), (106, 9, 140, 4), sd)
    data = bytearray(400)
    data[: len(head)] = head
    data[100:108], data[110 : 110 + len(sdd)], data[140:144] = ndg, sdd, NUMBER
    data[200:212] = bytes(range(12))
    return bytes(data)


def test_a_data_set_of_its_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    path.write_bytes(data_set())
    array = describe(path)["/Data-Set-1"]
    assert array.values().tolist() == np.arange(12).reshape(3, 4).tolist()


def special(*parts: tuple[str, Any]) -> bytes:
    """A file whose data have a description of special storage at byte 300."""
    head = b"".join(struct.pack(f">{kind}", value) for kind, value in parts)
    data = bytearray(data_set(sd=(702 | 0x4000, 1, 300, len(head))))
    data[300 : 300 + len(head)] = head
    return bytes(data)


BAD = {
    "empty": b"",
    "magic only": b"\x0e\x03\x13\x01",
    "loop of descriptors": descriptors((1, 0, 0, 0), after=4),
    "no descriptors": b"\x0e\x03\x13\x01" + struct.pack(">hI", 0, 0),
    "far descriptors": descriptors((1, 0, 0, 0), after=1 << 31),
    "short axes": data_set(SDD[:9]),
    "many axes": data_set(struct.pack(">H", 60000) + SDD[2:]),
    "negative axes": data_set(struct.pack(">Hii", 2, -3, 4) + SDD[10:]),
    "huge axes": data_set(struct.pack(">Hii", 2, 0x7FFFFFFF, 0x7FFFFFFF) + SDD[10:]),
    "no type": data_set(struct.pack(">HiiHH", 2, 3, 4, 106, 8) + bytes(8)),
    "data beyond the end": data_set(sd=(702, 1, 1 << 31, 12)),
    "blocks": special(("h", 1), ("i", 12), ("i", 0), ("i", 4), ("H", 7)),
    "no table of blocks": special(("h", 1), ("i", 12), ("i", 4), ("i", 4), ("H", 7)),
    "short description": special(("h", 1), ("i", 12)),
    "axes of chunks": special(("h", 5), *[("i", 1)] * 12),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_raise(name: str) -> None:
    with pytest.raises(FormatError):
        hdf4.describe(io.BytesIO(BAD[name]))


REFUSED = {
    "external": special(("h", 2), ("i", 12), ("i", 0), ("i", 11)),
    "short data": data_set(sd=(702, 1, 200, 11)),
    "large axes": data_set(struct.pack(">Hii", 2, 0x7FFFFF, 0x7FFFFF) + SDD[10:]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_its_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    path.write_bytes(REFUSED[name])
    assert describe(path)["/Data-Set-1"].kind == "refused"


def test_huge_data_sets_without_data_are_all_fill(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf"
    path.write_bytes(data_set(struct.pack(">Hii", 2, 1 << 20, 1 << 20) + SDD[10:], (1, 1, 0, 0)))
    storage = describe(path)["/Data-Set-1"].storage
    assert (storage["kind"], storage["count"]) == ("chunks", 0)
    assert storage["chunk_shape"] == [1 << 10, 1 << 20]


def test_read_of_no_array_raises(tmp_path: Path) -> None:
    file = io.BytesIO(data_set())
    with pytest.raises(NoSuchHduError):
        hdf4.read(file, "/x", 0, 1)
    with pytest.raises(FormatError):
        hdf4.read(file, "/Data-Set-1", 0, 13)
    assert hdf4.read(file, "/Data-Set-1", 3, 5) == b"\3\4"
