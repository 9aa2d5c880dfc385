"""Zarr, versions 2 and 3, beside zarr-python."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swathe
from swathe.arrays.readers import zarr_codecs, zarr_types
from swathe.core.errors import FormatError, OutputError, SwatheError
from tests.support.property_examples import examples

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
pytestmark = pytest.mark.filterwarnings("ignore::Warning:zarr", "ignore::UserWarning:numcodecs")

TORN = "expected all of its bytes, found a file that ends before"
QUIET = settings(
    deadline=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DTYPES = ["b1", "i1", "u1", "<i2", ">i2", "<u4", "<i8", "<f2", "<f4", ">f4", "<f8", "<c8", ">c16"]
CODECS_2 = [
    None,
    numcodecs.Zlib(4),
    numcodecs.GZip(4),
    numcodecs.BZ2(1),
    numcodecs.LZ4(),
    numcodecs.Zstd(1),
    *(
        numcodecs.Blosc(name, 3, shuffle)
        for name in ("lz4", "zstd", "zlib", "blosclz", "lz4hc")
        for shuffle in (0, 1, 2)
    ),
]
CODECS_3: list[Any] = [
    None,
    zarr.codecs.GzipCodec(level=2),
    zarr.codecs.ZstdCodec(level=1),
    [zarr.codecs.ZstdCodec(level=1), zarr.codecs.Crc32cCodec()],
    zarr.codecs.Crc32cCodec(),
    *(
        zarr.codecs.BloscCodec(cname=name, clevel=3, shuffle=shuffle)
        for name in ("lz4", "zstd", "zlib", "blosclz")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    ),
]


def open_file(path: str | Path) -> Any:
    return swathe.open(path)


def values_of(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    dice = np.random.default_rng(seed)
    return dice.integers(0, 100, shape).astype(dtype)


def equal(path: Path, name: str, expected: np.ndarray[Any, Any]) -> None:
    """Compare an array, and a part of it, with its elements."""
    with open_file(path) as file:
        array = file[name]
        assert array.shape == expected.shape
        part = tuple(slice(side // 3, side - side // 4) for side in expected.shape)
        for region in (tuple(slice(0, side) for side in expected.shape), part):
            found = np.asarray(array.section[region])
            assert found.astype(expected.dtype).tobytes() == expected[region].tobytes()


shapes = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)


@QUIET
@given(st.data())
def test_arrays_of_version_2_are_those_of_zarr(tmp_path: Path, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    chunks = tuple(data.draw(st.integers(1, side + 2)) for side in shape)
    dtype, codec = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(CODECS_2))
    shuffle = data.draw(st.booleans()) and np.dtype(dtype).itemsize > 1
    path = tmp_path / "a.zarr"
    shutil.rmtree(path, ignore_errors=True)
    array = zarr.create_array(
        path,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        zarr_format=2,
        compressors=codec,
        filters=[numcodecs.Shuffle(np.dtype(dtype).itemsize)] if shuffle else None,
        fill_value=data.draw(st.integers(0, 1)),
        chunk_key_encoding={"name": "v2", "separator": data.draw(st.sampled_from("./"))},
    )
    values = values_of(shape, dtype, 1)
    half = shape[0] // 2 if data.draw(st.booleans()) else shape[0]
    array[:half] = values[:half]
    equal(path, "/", array[...])


@QUIET
@given(st.data())
def test_arrays_of_version_3_are_those_of_zarr(tmp_path: Path, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    chunks = tuple(data.draw(st.integers(1, side + 2)) for side in shape)
    dtype, codec = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(CODECS_3))
    shards = None
    if data.draw(st.booleans()):
        shards = tuple(chunk * data.draw(st.integers(1, 3)) for chunk in chunks)
    encoding = data.draw(
        st.sampled_from([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")])
    )
    path = tmp_path / "a.zarr"
    shutil.rmtree(path, ignore_errors=True)
    array = zarr.create_array(
        path,
        shape=shape,
        chunks=chunks,
        shards=shards,
        dtype=dtype,
        compressors=codec,
        fill_value=data.draw(st.integers(0, 1)),
        chunk_key_encoding={"name": encoding[0], "separator": encoding[1]},
        dimension_names=[f"axis{at}" for at in range(len(shape))],
    )
    values = values_of(shape, dtype, 2)
    half = shape[0] // 2 if data.draw(st.booleans()) else shape[0]
    array[:half] = values[:half]
    equal(path, "/", array[...])
    with open_file(path) as file:
        assert file["/"].dims == tuple(f"axis{at}" for at in range(len(shape)))


@pytest.mark.parametrize("location", ["start", "end"])
def test_chunks_of_shards_are_found_at_either_end(tmp_path: Path, location: str) -> None:
    path = tmp_path / "a.zarr"
    serializer = zarr.codecs.ShardingCodec(
        chunk_shape=(4, 5), codecs=[zarr.codecs.BytesCodec()], index_location=location
    )
    array = zarr.create_array(
        path,
        shape=(20, 31),
        chunks=(8, 10),
        dtype="f4",
        serializer=serializer,
        compressors=None,
        fill_value=3,
    )
    array[2:11, 7:25] = values_of((9, 18), "f4", 3)
    equal(path, "/", array[...])


def make_group(path: Path, version: int, **options: Any) -> Any:
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.attrs["title"] = "a group"
    array = group.create_array("band/lst", shape=(30, 40), chunks=(10, 16), dtype="<i2", **options)
    array[...] = values_of((30, 40), "i2", 4)
    array.attrs.update({"units": "K", "scale_factor": 0.5, "levels": [1, 2], "who": {"a": [None]}})
    return group


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_consolidated", [True, False])
def test_groups_attributes_and_names_of_axes(
    tmp_path: Path, version: int, is_consolidated: bool
) -> None:
    path = tmp_path / "g.zarr"
    group = make_group(path, version)
    if version == 2:
        group["band/lst"].attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    if is_consolidated:
        zarr.consolidate_metadata(path)
    with open_file(path) as file:
        assert file.format == "zarr"
        assert file.attrs == {"title": "a group"}
        assert set(file.groups) == {"/", "/band"}
        array = file["band/lst"]
        assert array.dims == (("y", "x") if version == 2 else ())
        assert array.attrs["units"] == "K"
        assert array.attrs["scale_factor"] == 0.5
        assert array.attrs["levels"].tolist() == [1, 2]
        assert json.loads(array.attrs["who"]) == {"a": [None]}
    equal(path, "band/lst", group["band/lst"][...])


@pytest.mark.parametrize("version", [2, 3])
def test_a_zip_file_is_read_like_a_folder(tmp_path: Path, version: int) -> None:
    folder, path = tmp_path / "g.zarr", tmp_path / "g.zarr.zip"
    group = make_group(folder, version)
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    with zipfile.ZipFile(path, "w") as archive:
        for number, each in enumerate(files):
            # A date before 1980 has no room; what follows the name moves the data.
            info = zipfile.ZipInfo(str(each.relative_to(folder)))
            info.extra = b"\x99\x99\x04\0abcd" if number % 2 else b""
            archive.writestr(info, each.read_bytes())
    equal(path, "band/lst", group["band/lst"][...])


def test_members_that_are_deflated_in_a_zip_file_are_refused(tmp_path: Path) -> None:
    folder, path = tmp_path / "g.zarr", tmp_path / "g.zip"
    make_group(folder, 3)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(folder.rglob("*")):
            archive.write(each, each.relative_to(folder))
    with open_file(path) as file, pytest.raises(FormatError, match="compressed or encrypted"):
        file["band/lst"].read((0, 0), (1, 1))


@pytest.mark.parametrize("content", ["PK\x03\x04", "PK\x03\x04" + "\0" * 60])
def test_a_zip_file_without_metadata_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FormatError, match=r"a\.zip: .*zip file"):
        open_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"x")
    with pytest.raises(FormatError, match=r"at the root, found \['a.npy'\]"):
        open_file(path)


def spoil(path: Path, **changes: Any) -> None:
    """Change metadata of an array of version 3."""
    meta = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps(meta | changes))


def array_of_3(path: Path, **options: Any) -> Any:
    options = {"shape": (20, 30), "chunks": (10, 10), "dtype": "f4", "compressors": None} | options
    array = zarr.create_array(path, **options)
    array[...] = 1
    return array


NAMES = [
    ({"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}, "'pickle'"),
    ({"codecs": [{"name": "vlen-utf8"}]}, "vlen-utf8"),
    ({"codecs": [{"name": "gzip"}]}, "'gzip'"),
    (
        {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}]},
        "transpose",
    ),
    ({"codecs": "x"}, "codecs: expected"),
    ({"codecs": [{"name": "bytes", "configuration": [1]}]}, "a name and its"),
    ({"data_type": "string"}, "expected a type"),
    (
        {"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "x" * 99}}},
        "expected a type",
    ),
    ({"shape": [1 << 62, 1 << 62]}, "elements, found"),
    ({"shape": [-1, 2]}, "shape: expected"),
    ({"shape": [2]}, "chunk_shape: expected"),
    ({"shape": "ab"}, "shape: expected"),
    ({"fill_value": "0x00"}, "fill value"),
    ({"fill_value": {}}, "fill value"),
    ({"chunk_grid": {"name": "rectilinear"}}, "regular grid"),
    ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 1]}}}, "chunk_shape"),
    (
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 40, 4]}}},
        "chunks of",
    ),
    ({"storage_transformers": ["x"]}, "storage transformers"),
    ({"extra": {"must_understand": True}}, "'extra'"),
]


@pytest.mark.parametrize(("changes", "why"), NAMES)
def test_what_is_not_read_is_refused_by_name(tmp_path: Path, changes: Any, why: str) -> None:
    array_of_3(tmp_path / "a.zarr")
    spoil(tmp_path / "a.zarr", **changes)
    with open_file(tmp_path / "a.zarr") as file, pytest.raises(FormatError, match=why) as error:
        file["/"].read((0, 0), (1, 1))
    assert "a.zarr" in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zarr.json", "{"),
        ("zarr.json", "[" * 100_000),
        ("zarr.json", "[]"),
        ("zarr.json", '{"zarr_format": 4, "node_type": "array"}'),
        ("zarr.json", '{"zarr_format": 3, "node_type": "array"}'),
        ("zarr.json", '{"zarr_format": 3, "node_type": "group", "attributes": 3}'),
        (".zgroup", "{}"),
        (".zarray", '{"zarr_format": 3}'),
    ],
)
def test_metadata_that_are_not_valid_are_errors_or_empty(
    tmp_path: Path, name: str, content: str
) -> None:
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    (folder / name).write_text(content)
    if name == ".zgroup":
        assert len(open_file(folder)) == 0
        return
    with pytest.raises(FormatError, match=r"a\.zarr: .*expected"):
        open_file(folder)


def test_a_shard_that_lies_or_is_torn_is_an_error_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    array_of_3(path, shape=(40, 60), shards=(20, 30))
    shard = path / "c/0/0"
    whole = shard.read_bytes()
    rows = np.frombuffer(whole[-100:-4], "<u8").reshape(-1, 2).copy()
    for row in [(1 << 63, 400), (0, 1 << 40), (len(whole) - 3, 8), (8, 0), (8, (1 << 64) - 1)]:
        rows[2] = row
        shard.write_bytes(whole[:-100] + rows.tobytes() + whole[-4:])
        with open_file(path) as file:
            assert file["/"].section[0, 0] == 1
            with pytest.raises(FormatError, match=rf"a\.zarr, array /, chunk \(0, 2\): {TORN}"):
                file["/"].section[0:10, 20:30]
    for size in (0, 50):
        shard.write_bytes(whole[:size])
        with open_file(path) as file:
            assert (np.asarray(file["/"].section[20:40, 30:60]) == 1).all()
            with pytest.raises(FormatError, match=rf"a\.zarr, array /, chunk \(0, 0\): {TORN}"):
                file["/"].read((0, 0), (1, 1))


def test_a_chunk_that_is_a_bomb_or_too_short_is_an_error(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.zarr"
    array_of_3(path, compressors=zarr.codecs.GzipCodec(level=1))
    for content in (gzip.compress(bytes(1 << 24)), gzip.compress(b"abc"), b"\x1f\x8b", b"x" * 99):
        (path / "c/0/0").write_bytes(content)
        with open_file(path) as file:
            with pytest.raises(SwatheError, match=r"a\.zarr, array /, chunk \(0, 0\): "):
                file["/"].read((0, 0), (5, 5))
            assert (np.asarray(file["/"].section[10:20, 20:30]) == 1).all()
    (path / "c/0/0").write_bytes(b"")
    with open_file(path) as file, pytest.raises(FormatError, match=rf"chunk \(0, 0\): {TORN}"):
        file["/"].read((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("NaN", "<f4", np.float32(np.nan)),
        ("-Infinity", ">f8", np.float64(-np.inf)),
        ("0x7fc00001", ">f4", np.frombuffer(b"\x7f\xc0\0\1", ">f4")[0]),
        ("0x7fc00001", "<f4", np.frombuffer(b"\x7f\xc0\0\1", ">f4")[0]),
        ([1.5, "NaN"], "<c8", np.complex64(complex(1.5, np.nan))),
        (True, "|b1", np.bool_(True)),
        ("YWI=", "|S4", np.bytes_(b"ab")),
        ("NaT", "<M8[s]", np.datetime64("NaT", "s")),
        (-9, "<i2", np.int16(-9)),
    ],
)
def test_fill_values_are_those_of_the_specification(value: Any, dtype: str, expected: Any) -> None:
    found = zarr_types.fill_bytes(value, np.dtype(dtype))
    assert found == np.array(expected).astype(dtype).tobytes()


@pytest.mark.parametrize("value", ["abc", 300, 1.5, [1], {}, "0xff"])
def test_a_fill_value_of_another_type_is_an_error(value: Any) -> None:
    with pytest.raises(FormatError, match="fill value"):
        zarr_types.fill_bytes(value, np.dtype("u1") if value != "0xff" else np.dtype("u2"))


@pytest.mark.parametrize(
    "value", ["|O", "O", "<f4,<f4", "f" * 99, ["a"], [["a", "|O"]], 3, "<M8[" + "9" * 99]
)
def test_types_without_a_size_are_errors(value: Any) -> None:
    with pytest.raises(FormatError, match="expected"):
        zarr_types.dtype_2(value)


def test_codecs_of_numcodecs_that_are_not_decoded_are_named() -> None:
    for codec in [numcodecs.LZMA(), numcodecs.Pickle(), numcodecs.Delta("i4"), numcodecs.JSON()]:
        meta = {"shape": [1], "filters": [codec.get_config()], "compressor": None}
        with pytest.raises(FormatError, match=f"'{codec.codec_id}'"):
            zarr_codecs.codecs_2(meta, 4)
    with pytest.raises(FormatError, match="snappy"):
        zarr_codecs.codecs_2({"shape": [1], "compressor": {"id": "blosc", "cname": "snappy"}}, 4)
    with pytest.raises(FormatError, match="order: expected C"):
        zarr_codecs.codecs_2({"shape": [1, 2], "order": "F", "compressor": None}, 4)


def _node(shape: list[int], dims: list[str], **attributes: str) -> str:
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "fill_value": 0,
            "dimension_names": dims,
            "attributes": attributes,
        }
    )


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup", "c", "y y", ".."])
def test_a_coordinate_may_have_any_name(name: str, tmp_path: Path) -> None:
    values, latitudes = np.arange(12.0).reshape(3, 4), np.arange(3.0)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}))
        file.writestr("v/zarr.json", _node([3, 4], [name, "x"]))
        file.writestr("v/c/0/0", values.tobytes())
        file.writestr(f"{name}/zarr.json", _node([3], [name], units="degrees_north"))
        file.writestr(f"{name}/c/0", latitudes.tobytes())
        file.writestr("x/zarr.json", _node([4], ["x"], units="degrees_east"))
        file.writestr("x/c/0", np.arange(4.0).tobytes())
    assert sorted(open_file(tmp_path / "a.zip")) == sorted(["/v", "/x", f"/{name}"])
    cutout: Any = swathe.cut(tmp_path / "a.zip", array="/v", bounds=(0, 1, 2, 2))
    np.testing.assert_array_equal(cutout.data, values[1:, :3])
    np.testing.assert_array_equal(cutout.coords[name].data, latitudes[1:])
    cutout.write(tmp_path / "cut.nc")
    again: Any = swathe.cut(tmp_path / "cut.nc", array="/v", box=(0, 0, 3, 2))
    np.testing.assert_array_equal(again.data, values[1:, :3])
    if name in ("c", "y y"):
        cutout.write(tmp_path / "cut.zarr")
        assert f"/{name}" in open_file(tmp_path / "cut.zarr")
        return
    with pytest.raises(OutputError, match="Zarr cannot have an array of this name"):
        cutout.write(tmp_path / "cut.zarr")
    assert not (tmp_path / "cut.zarr").exists()
