"""HDF5 and NetCDF4 in the chunk index, beside h5py and netCDF4."""

from __future__ import annotations

import base64
import io
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays import indexing
from swathe.arrays.array_tree import decode_attribute, dtype_of
from swathe.arrays.index_writer import CHUNK
from swathe.core.errors import FormatError, SwatheError
from swathe.core.served_file import FileReads

h5py = pytest.importorskip("h5py")
netcdf4 = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")
hdf5 = pytest.importorskip("swathe.arrays.readers.hdf5")
hdf5_tree = pytest.importorskip("swathe.arrays.readers.hdf5_tree")

WHEELS = [
    *(Path(h5py.__file__).parent / "tests" / "data_files").glob("*.h5"),
    *(Path(xarray.__file__).parent / "tests" / "data").glob("*.nc"),
]


class Index:
    """A chunk index, parsed."""

    def __init__(self, content: bytes) -> None:
        length = int.from_bytes(content[8:16], "little")
        self.head = json.loads(content[16 : 16 + length])
        self.arrays = {each["name"]: each for each in self.head["arrays"]}
        at, rows = 16 + length, self.head["chunks"]
        self.columns = {}
        for name in CHUNK.names or ():
            self.columns[name] = np.frombuffer(content, CHUNK[name], rows, at)
            at += self.columns[name].nbytes
        assert at == len(content)

    def values(self, name: str, content: bytes) -> np.ndarray[Any, Any]:
        """Read an array from the bytes of the file, without its library."""
        each = self.arrays[name]
        dtype, shape, storage = dtype_of(each["dtype"]), each["shape"], each["storage"]
        if storage["kind"] == "inline":
            return np.frombuffer(base64.b64decode(storage["data"]), dtype).reshape(shape)
        if storage["kind"] == "contiguous":
            count = math.prod(shape)
            return np.frombuffer(content, dtype, count, storage["offset"]).reshape(shape)
        fill = base64.b64decode(each["fill"]) if each["fill"] else bytes(dtype.itemsize)
        whole = np.full(shape, np.frombuffer(fill, dtype)[0], dtype)
        sides = storage["chunk_shape"]
        grid = [-(-side // chunk) for side, chunk in zip(shape, sides, strict=True)]
        for row in range(storage["first"], storage["first"] + storage["count"]):
            number, offset, length, skips = (self.columns[key][row] for key in CHUNK.names or ())
            part = content[offset : offset + length]
            for i, of in reversed([*enumerate(storage["filters"])]):
                if skips >> i & 1:
                    continue
                if of["name"] == "deflate":
                    part = zlib.decompress(part)
                elif of["name"] == "shuffle":
                    part = np.frombuffer(part, "u1").reshape(of["size"], -1).T.tobytes()
                else:
                    assert of["name"] == "fletcher32"
                    part = part[:-4]
            where = tuple(
                slice(corner * chunk, (corner + 1) * chunk)
                for corner, chunk in zip(np.unravel_index(number, grid), sides, strict=True)
            )
            area = whole[where]
            chunk = np.frombuffer(part, dtype).reshape(sides)
            area[...] = chunk[tuple(map(slice, area.shape))]
        return whole


def file_of(content: bytes) -> FileReads:
    return FileReads(lambda at, length: content[at : at + length], len(content))


def confined_index(content: bytes) -> bytes:
    return indexing.describe(file_of(content), "hdf5")


def check(path: Path) -> int:
    """Compare the index of a file with h5py and netCDF4; return the number of arrays."""
    content = path.read_bytes()
    content_of_index = hdf5.describe(io.BytesIO(content))
    assert confined_index(content) == content_of_index  # no file is needed later
    index = Index(content_of_index)
    with h5py.File(path) as file:
        for name, each in index.arrays.items():
            if each["storage"]["kind"] == "refused":
                continue
            dataset = file[name]
            assert tuple(each["shape"]) == dataset.shape + dataset.dtype.shape
            if not dataset.dtype.hasobject:
                assert dtype_of(each["dtype"]).itemsize == dataset.dtype.base.itemsize
            for key, value in each["attributes"].items():
                there = dataset.attrs[key]
                if isinstance(there, str | np.number):
                    assert decode_attribute(value) == there or there != there
            names = {of["name"] for of in each["storage"].get("filters", ())}
            if each["storage"]["kind"] != "library" and names <= {
                "deflate",
                "shuffle",
                "fletcher32",
            }:
                values = index.values(name, content)
                if not dataset.dtype.hasobject:
                    assert values.tobytes() == dataset[()].tobytes()
    try:
        library_file = netcdf4.Dataset(path)
    except OSError:
        return len(index.arrays)
    with library_file:
        waiting = [library_file]
        while waiting:
            group = waiting.pop()
            waiting += group.groups.values()
            for name, variable in group.variables.items():
                each = index.arrays[f"{group.path.rstrip('/')}/{name}"]
                assert tuple(each["dims"]) == variable.dimensions
                assert set(each["attributes"]) >= set(variable.ncattrs())
    return len(index.arrays)


def is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8) == indexing.HDF5


def test_every_array_of_real_files_is_as_the_libraries_say(data: Path) -> None:
    paths = [
        path
        for folder in ("formats", "swath", "odd")
        for path in sorted((data / folder).iterdir())
        if is_hdf5(path)
    ]
    assert sum(map(check, paths)) > 200


@pytest.mark.parametrize("path", [*filter(is_hdf5, WHEELS)], ids=lambda path: path.name)
def test_every_array_of_wheels_is_as_the_libraries_say(path: Path) -> None:
    assert check(path) >= 1


@pytest.mark.parametrize("userblock", [0, 1024])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    "dtype", ["<i2", ">i4", "<f2", ">f8", "?", "<c16", "S3", "u1", [("a", "<i4"), ("b", ">f8")]]
)
def test_elements_lie_where_the_index_says(
    tmp_path: Path, dtype: Any, libver: str, userblock: int
) -> None:
    path = tmp_path / "x.h5"
    values = np.frombuffer(np.random.default_rng(1).bytes(6000 * 16), "u1") % 2
    array = np.frombuffer(values.tobytes(), np.dtype(dtype))[:2021].reshape(47, 43)
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        file["plain"] = array
        file.create_dataset("a/chunks", data=array, chunks=(10, 9))
        options = {"compression": "gzip", "shuffle": True, "fletcher32": True}
        file.create_dataset("a/b/packed", data=array, chunks=(16, 43), **options)
        file.create_dataset("empty", array.shape, array.dtype, chunks=(4, 4))
        file.create_dataset("none", array.shape, array.dtype)
    assert check(path) == 5


def test_fill_values_and_huge_shapes(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("fill", (9, 9), ">f4", chunks=(2, 2), fillvalue=-1.5)[0, 0] = 3
        file.create_dataset("huge", (1 << 40, 1 << 20), "i1", chunks=(1024, 1024))
        file.create_dataset("long", (1 << 60,), "i1")
    content = path.read_bytes()
    index = Index(confined_index(content))
    assert index.values("/fill", content)[8, 8] == -1.5
    assert index.arrays["/huge"]["storage"]["count"] == 0
    assert math.prod(index.arrays["/long"]["storage"]["chunk_shape"]) <= 1 << 16


def test_what_lies_elsewhere_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(4)
        file.create_dataset("raw", (4,), "u1", external=[("/etc/passwd", 0, 4)])
        file["link"] = h5py.ExternalLink("/etc/other.h5", "/a")
        file["through"] = h5py.SoftLink("/link")
        file["loop"] = h5py.SoftLink("/loop")
        file["alias"] = h5py.SoftLink("/a")
        file["cycle/self"] = file["/"]
        for name, source in (("outer", "/etc/virtual.h5"), ("inner", ".")):
            layout = h5py.VirtualLayout((4,), "i8")
            layout[:] = h5py.VirtualSource(source, "a", (4,))
            file.create_virtual_dataset(name, layout)
    arrays = Index(confined_index(path.read_bytes())).arrays
    reasons = {name: each["storage"].get("why", "") for name, each in arrays.items()}
    assert set(reasons) == {
        "/a", "/alias", "/raw", "/link", "/through", "/loop", "/outer", "/inner",
    }  # fmt: skip
    for name, text in (
        ("/raw", "/etc/passwd"),
        ("/link", "/etc/other.h5"),
        ("/through", "/etc/other.h5"),
        ("/loop", "soft links"),
        ("/outer", "/etc/virtual.h5"),
    ):
        assert arrays[name]["storage"]["kind"] == "refused"
        assert text in reasons[name]
    assert arrays["/inner"]["storage"]["kind"] == "library"
    assert arrays["/alias"]["storage"] == arrays["/a"]["storage"]


def test_the_library_reads_what_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    texts = np.array(["a" * 20_000, "b", "c\u00e9", ""], object)
    with h5py.File(path, "w") as file:
        file.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
    content = path.read_bytes()
    each = Index(confined_index(content)).arrays["/texts"]
    assert each["storage"]["kind"] == "library"
    answer = indexing.read(file_of(content), "hdf5", "/texts", [4], [1], [3])
    assert np.frombuffer(answer, each["dtype"]).tolist() == [b"b", "c\u00e9".encode()]


def test_damaged_files_are_errors_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(1000), chunks=(10,), compression="gzip")
        file["a"].attrs["units"] = "m"
    content = path.read_bytes()
    random = np.random.default_rng(2)
    with pytest.raises(FormatError):
        confined_index(content[: len(content) // 2])
    for _ in range(25):
        damaged = bytearray(content)
        for at in random.integers(0, 2500, 5):
            damaged[at] ^= int(random.integers(1, 256))
        try:
            Index(confined_index(bytes(damaged)))
        except SwatheError as error:
            assert str(error)


def test_too_many_attributes_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(10_001):
            file.attrs.create(f"a{i}", i)
    with pytest.raises(FormatError, match="expected 10000 attributes, found 10001"):
        confined_index(path.read_bytes())


@pytest.mark.parametrize("user_block", [0, 512])
def test_the_nodes_of_a_tree_of_chunks_are_read_together(tmp_path: Path, user_block: int) -> None:
    """Each round is a round trip to a server; five leaves lie between chunks of 20 kB."""
    path, block_bytes = tmp_path / "a.h5", 4096
    values = np.arange(16 * 160_000, dtype="i4").reshape(16, -1) % 30_000
    with h5py.File(path, "w", userblock_size=user_block) as file:
        file.create_dataset("a", data=values.astype("i2"), chunks=(1, 10_000))
    content = path.read_bytes()
    rounds: list[int] = []

    def read_at(at: int, length: int) -> bytes:
        rounds.append(length)
        return content[at : at + length]

    def read_ranges(ranges: list[tuple[int, int]]) -> list[bytes]:
        rounds.append(sum(stop - start for start, stop in ranges))
        return [content[start:stop] for start, stop in ranges]

    counts = []
    for together in (None, read_ranges):
        rounds.clear()
        file = FileReads(read_at, len(content), block_bytes, block_bytes, read_ranges=together)
        index = Index(indexing.describe(file, "hdf5"))
        np.testing.assert_array_equal(index.values("/a", content), values)
        counts.append((len(rounds), sum(rounds)))
    # Blocks at the start of the file; then each leaf, or all of them, without blocks around them.
    (alone, alone_bytes), (ahead, ahead_bytes) = counts
    first, leaf_bytes = (2 if user_block else 1), 24 + 65 * 32 + 64 * 8
    assert (alone, ahead) == (first + 5, first + 1)
    assert alone_bytes == ahead_bytes == first * block_bytes + 5 * leaf_bytes


@pytest.mark.parametrize("count", [0, 3, 5, 65, 65535])
def test_nodes_that_lie_name_no_bytes_outside_of_themselves(count: int) -> None:
    node = bytearray(np.random.default_rng(count).bytes(2616))
    node[:8] = b"TREE\x01\x01" + count.to_bytes(2, "little")
    assert hdf5_tree.children_of(memoryview(node), 0) == ()
    node[24:] = bytes(len(node) - 24)
    children = hdf5_tree.children_of(memoryview(node), 512)
    assert list(children) == ([(512, 2616)] * count if count < 65 else [])


@pytest.mark.parametrize("name", ["STD_B8LE", "STD_B16LE", "STD_B32BE", "STD_B64LE"])
def test_bitfields_are_unsigned_integers(tmp_path: Path, name: str) -> None:
    h5py = pytest.importorskip("h5py")
    size = int(name[5:-2]) // 8
    values = np.arange(1, 7, dtype=f"{'>' if name.endswith('BE') else '<'}u{size}").reshape(2, 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ok"] = np.arange(4.0)
        space = h5py.h5s.create_simple((2, 3))
        bits = h5py.h5d.create(file.id, b"bits", getattr(h5py.h5t, name), space)
        bits.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    with swathe.open(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["/ok"].section[:], np.arange(4.0))
        np.testing.assert_array_equal(file["/bits"].section[:, :], values)


def test_fields_out_of_order_are_refused_alone(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    compound = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    compound.insert(b"q", 4, h5py.h5t.STD_I32LE)
    compound.insert(b"p", 0, h5py.h5t.STD_I32LE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ok"] = np.arange(4.0)
        h5py.h5d.create(file.id, b"odd", compound, h5py.h5s.create_simple((3,)))
    with swathe.open(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["/ok"].section[:], np.arange(4.0))
        with pytest.raises(FormatError, match="field p: expected it from byte 8, found it at 0"):
            file["/odd"].section[:]
