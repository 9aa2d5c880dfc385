"""TIFF: what the chunk index says of images, compared with tifffile and rasterio."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from swathe.arrays.readers import tiff
from swathe.core.errors import FormatError, NoSuchHduError
from tests.arrays.chunk_reader import Array, arrays_of, parts_of

tifffile = pytest.importorskip("tifffile")
rasterio = pytest.importorskip("rasterio")
pytest.importorskip("imagecodecs")
pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
FILES = "RGB.byte RGBA.uint16 all-nodata cogeo float_nan goes lcmap_tiny_cog_2019 "
FILES += "lcmap_tiny_cog_2020 rgb_deflate rgb_lzw rotated world.byte"


def describe(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        return arrays_of(tiff.describe(file), path)


def values_of(array: Array, path: Path) -> NDArray[Any]:
    """Read an array natively, or by tifffile in several parts."""
    if array.kind != "library":
        return array.values()
    shape = array.head["shape"]
    size = int(np.prod(shape))
    ends = sorted({0, 1, size // 3 + 1, size // 2, size})
    with path.open("rb") as file:
        name = array.head["name"]
        parts = [tiff.read(file, name, *ends[at : at + 2]) for at in range(len(ends) - 1)]
    return np.frombuffer(b"".join(parts), array.head["dtype"]).reshape(shape)


def image(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    dice = np.random.default_rng(7)
    values = np.cumsum(dice.integers(0, 5, shape), axis=-2)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    return (values * 1.25 if np.dtype(dtype).kind == "f" else values).astype(dtype)


@pytest.mark.parametrize("name", FILES.split())
def test_real_files_have_the_pixels_of_tifffile_and_rasterio(name: str, data: Path) -> None:
    path = data / "formats" / f"{name}.tif"
    arrays = describe(path)
    with tifffile.TiffFile(path) as file:
        assert len(arrays) == len(file.pages)
        expected = sorted((page.asarray() for page in file.pages), key=np.size)
    pixels = {name: values_of(array, path) for name, array in arrays.items()}
    for ours, theirs in zip(sorted(pixels.values(), key=np.size), expected, strict=True):
        assert ours.shape == theirs.shape
    for one in expected:
        assert any(
            ours.shape == one.shape and ours.tobytes() == one.tobytes() for ours in pixels.values()
        )
    if arrays["/0"].kind == "library":  # GDAL's JPEG decoder rounds otherwise
        return
    with rasterio.open(path) as file:
        bands = file.read()
    first = pixels["/0"]
    if arrays["/0"].dims[-1] == "band":
        first = np.moveaxis(first, -1, 0)
    np.testing.assert_array_equal(first.reshape(bands.shape), bands)


def test_damaged_file_has_its_good_images_and_says_what_is_wrong(data: Path) -> None:
    path = data / "formats" / "corrupt.tif"
    arrays = describe(path)
    assert arrays["/0"].storage == {
        "kind": "refused",
        "why": "parts: expected their ends in the file of 298232 bytes",
    }
    with tifffile.TiffFile(path) as file:
        expected = file.pages[3].asarray()
    np.testing.assert_array_equal(values_of(arrays["/0/overview_2"], path), expected)


def test_overviews_and_masks_have_their_names_and_kind(data: Path) -> None:
    arrays = describe(data / "formats" / "goes.tif")
    assert list(arrays) == ["/0", "/0/mask", "/0/overview_1", "/0/mask_overview_1"]
    kinds = [array.attributes.get("NewSubfileType", 0) for array in arrays.values()]
    assert kinds == [0, 4, 1, 5]
    assert arrays["/0/mask"].head["dtype"] == "|b1"


def test_geotiff_keys_are_attributes(data: Path) -> None:
    array = describe(data / "formats" / "world.byte.tif")["/0"]
    assert array.attributes["GeographicTypeGeoKey"] == 4326
    assert array.attributes["ModelPixelScale"].tolist() == [0.125, 0.125, 0.0]
    assert array.attributes["ModelTiepoint"].tolist() == [0, 0, 0, -180, 75, 0]
    assert array.dims == ["y", "x"]


DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_orders(order: Any, dtype: str, tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", image((41, 53), dtype)
    tifffile.imwrite(path, pixels, byteorder=order, compression="deflate", rowsperstrip=7)
    array = describe(path)["/0"]
    assert array.head["dtype"] == pixels.dtype.newbyteorder(order).str
    assert array.storage["chunk_shape"] == [7, 53]
    assert array.values().tobytes() == pixels.astype(array.head["dtype"]).tobytes()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "f8"])
@pytest.mark.parametrize("compression", ["deflate", "lzw", "zstd"])
@pytest.mark.parametrize("is_tiled", [False, True])
@pytest.mark.parametrize("bands", [1, 3])
def test_every_predictor(
    order: Any, dtype: str, compression: str, is_tiled: bool, bands: int, tmp_path: Path
) -> None:
    shape = (41, 53, bands) if bands > 1 else (41, 53)
    path, pixels = tmp_path / "a.tif", image(shape, dtype)
    part: dict[str, Any] = {"tile": (16, 32)} if is_tiled else {"rowsperstrip": 9}
    tifffile.imwrite(
        path,
        pixels,
        byteorder=order,
        compression=compression,
        predictor=True,
        planarconfig="contig" if bands > 1 else None,
        photometric="minisblack",
        **part,
    )
    array = describe(path)["/0"]
    is_float = dtype.startswith("f")
    names = [each["name"] for each in array.storage["filters"]]
    assert names == ["floating" if is_float else "horizontal", compression]
    assert array.values().dtype == pixels.dtype.newbyteorder(order)
    np.testing.assert_array_equal(array.values(), pixels)
    with rasterio.open(path) as file:
        bands_read = file.read()
    expected = np.moveaxis(array.values(), -1, 0) if bands > 1 else array.values()[None]
    np.testing.assert_array_equal(expected, bands_read)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integer_predictor_of_floats_is_that_of_gdal(dtype: str, tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", image((41, 53), dtype)
    size = {"height": 41, "width": 53, "count": 1, "dtype": dtype}
    with rasterio.open(path, "w", driver="GTiff", compress="lzw", predictor=2, **size) as file:
        file.write(pixels, 1)
    np.testing.assert_array_equal(describe(path)["/0"].values(), pixels)


@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("is_tiled", [False, True])
@pytest.mark.parametrize("is_big", [False, True])
@pytest.mark.parametrize("compression", [None, "packbits", "zstd"])
def test_bands_together_and_apart(
    planar: str, is_tiled: bool, is_big: bool, compression: str | None, tmp_path: Path
) -> None:
    shape = (41, 53, 4) if planar == "contig" else (4, 41, 53)
    path, pixels = tmp_path / "a.tif", image(shape, "u2")
    part: dict[str, Any] = {"tile": (16, 32)} if is_tiled else {"rowsperstrip": 9}
    tifffile.imwrite(
        path,
        pixels,
        bigtiff=is_big,
        planarconfig=planar,
        compression=compression,
        photometric="minisblack",
        **part,
    )
    array = describe(path)["/0"]
    assert array.dims == (["y", "x", "band"] if planar == "contig" else ["band", "y", "x"])
    assert array.kind == ("contiguous" if compression is None and not is_tiled else "chunks")
    assert array.storage.get("is_padded", False) == is_tiled
    np.testing.assert_array_equal(array.values(), pixels)


def test_volumes_have_an_axis_z(tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", image((20, 41, 53), "u2")
    tifffile.imwrite(path, pixels, volumetric=True, tile=(16, 16, 32), photometric="minisblack")
    array = describe(path)["/0"]
    assert array.dims == ["z", "y", "x"]
    np.testing.assert_array_equal(array.values(), pixels)


def test_missing_tiles_are_nodata(tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", np.zeros((64, 64), np.int16)
    size = {"height": 64, "width": 64, "count": 1, "dtype": "int16", "nodata": -99}
    options = {"tiled": True, "blockxsize": 16, "blockysize": 16, "sparse_ok": True}
    with rasterio.open(path, "w", driver="GTiff", **size, **options) as file:
        file.write(pixels[:16, :16] + 5, 1, window=((16, 32), (32, 48)))
    array = describe(path)["/0"]
    assert array.storage["count"] == 1
    pixels[:], pixels[16:32, 32:48] = -99, 5
    np.testing.assert_array_equal(array.values(), pixels)


@pytest.mark.parametrize("bits", [1, 2, 4, 12])
@pytest.mark.parametrize("compression", [None, "deflate"])
def test_parts_of_bytes_are_read_by_tifffile(
    bits: int, compression: str | None, tmp_path: Path
) -> None:
    path, pixels = tmp_path / "a.tif", image((41, 53), "u2") % (1 << bits)
    dtype = "uint16" if bits == 12 else "uint8"
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=41,
        width=53,
        count=1,
        dtype=dtype,
        nbits=bits,
        compress=compression or "none",
        blockysize=9,
    ) as file:
        file.write(pixels.astype(dtype), 1)
    array = describe(path)["/0"]
    assert array.storage == {"kind": "library", "why": f"samples of {bits} bits"}
    np.testing.assert_array_equal(values_of(array, path), pixels)


@pytest.mark.parametrize("compression", ["lerc", "jpeg", "webp", "lzma"])
def test_other_compressions_are_read_by_tifffile(compression: str, tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", image((41, 53, 3), "u1")
    tifffile.imwrite(path, pixels, compression=compression, tile=(16, 32), photometric="rgb")
    array = describe(path)["/0"]
    assert array.storage == {"kind": "library", "why": f"compression {compression.upper()}"}
    np.testing.assert_array_equal(values_of(array, path), tifffile.imread(path))


def test_without_imagecodecs_its_compressions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, image((41, 53), "u1"), compression="lerc")
    monkeypatch.setattr(tifffile.tifffile, "imagecodecs", object())
    monkeypatch.setattr(tifffile.TIFF.DECOMPRESSORS, "_codecs", {})
    storage = describe(path)["/0"].storage
    assert storage["kind"] == "refused"
    assert "LERC" in storage["why"]
    assert "imagecodecs" in storage["why"]


def test_images_inside_images_have_their_names(tmp_path: Path) -> None:
    path, pixels = tmp_path / "a.tif", image((64, 64), "u2")
    options: dict[str, Any] = {"photometric": "minisblack"}
    with tifffile.TiffWriter(path) as writer:
        writer.write(pixels, subifds=2, **options)
        writer.write(pixels[::2, ::2], subfiletype=1, **options)
        writer.write(pixels + 2, **options)
        writer.write(pixels + 1, **options)
        for number in range(2):
            writer.write(pixels > 20 + number, subfiletype=4, photometric="mask")
    arrays = describe(path)
    assert list(arrays) == ["/0", "/0/overview_1", "/0/image_1", "/1", "/1/mask", "/1/mask_2"]
    np.testing.assert_array_equal(arrays["/0/overview_1"].values(), pixels[::2, ::2])
    np.testing.assert_array_equal(arrays["/0/image_1"].values(), pixels + 2)
    np.testing.assert_array_equal(arrays["/1"].values(), pixels + 1)
    np.testing.assert_array_equal(values_of(arrays["/1/mask_2"], path), pixels > 21)


def test_an_image_that_refers_to_itself_is_read_twice() -> None:
    tags = sorted([*TAGS, *STRIPS, (330, 4, 1, 8)])
    whole = io.BytesIO(directory(tags) + bytes(100))
    arrays = parts_of(tiff.describe(whole))[0]["arrays"]
    assert [array["name"] for array in arrays] == ["/0", "/0/image_1"]
    beyond = io.BytesIO(directory([*tags[:-1], (330, 4, 1, 5000)]) + bytes(100))
    with pytest.raises(FormatError):
        tiff.describe(beyond)


def directory(tags: list[tuple[int, int, int, int]], after: int = 0) -> bytes:
    """A directory of a little-endian TIFF at byte 8, and the file before it."""
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    head = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags))
    return head + entries + struct.pack("<I", after)


TAGS = [(256, 3, 1, 4), (257, 3, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
STRIPS = [(273, 4, 1, 8), (278, 3, 1, 4), (279, 4, 1, 16)]
LOOP = directory([*TAGS, *STRIPS], after=8)
BAD = {
    "empty": b"",
    "magic": b"II*\0",
    "no directory": b"II*\0" + struct.pack("<I", 500),
    "loop": LOOP,
    "2^16 tags": b"II*\0" + struct.pack("<IH", 8, 65535) + bytes(100),
    "2^32 tags": b"II+\0" + struct.pack("<HHQQ", 8, 0, 16, 1 << 32) + bytes(100),
    "next far away": directory([*TAGS, *STRIPS], after=1 << 31),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_raise(name: str) -> None:
    with pytest.raises(FormatError):
        tiff.describe(io.BytesIO(BAD[name]))


ODD = {
    "offset": [(273, 4, 1, 1 << 31), (278, 3, 1, 4), (279, 4, 1, 16)],
    "length": [(273, 4, 1, 8), (278, 3, 1, 4), (279, 4, 1, 0xFFFFFFFF)],
    "short": [(273, 4, 1, 8), (278, 3, 1, 4), (279, 4, 1, 15)],
    "no strips": [],
    "no tiles": [(322, 3, 1, 0), (323, 3, 1, 0), (324, 4, 1, 8), (325, 4, 1, 16)],
    "tiles": [(322, 3, 1, 1), (323, 3, 1, 1), (324, 4, 1, 8), (325, 4, 1, 16)],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_images_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(directory([*TAGS, *ODD[name]]) + bytes(100))
    assert describe(path)["/0"].kind == "refused"


def test_a_huge_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tags = [(256, 4, 1, 1 << 20), (257, 4, 1, 1 << 20), (258, 3, 1, 8), (259, 3, 1, 8)]
    strip = [(273, 4, 1, 0), (278, 4, 1, 1 << 20), (279, 4, 1, 0)]
    path.write_bytes(directory([*tags, *strip]))
    storage = describe(path)["/0"].storage
    assert storage == {
        "kind": "refused",
        "why": "chunks of 1099511627776 bytes: expected at most 1073741824",
    }


@pytest.mark.parametrize("length", [1 << 20, 1 << 31])
def test_huge_counts_of_a_tag_raise_or_refuse(length: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tags = [(256, 4, 1, length), (257, 4, 1, length), *TAGS[2:]]
    path.write_bytes(directory([*tags, (273, 4, 0x7FFFFFFF, 8), (279, 4, 0x7FFFFFFF, 8)]))
    if length > 1 << 30:
        with pytest.raises(FormatError):
            describe(path)
    else:
        assert describe(path)["/0"].kind == "refused"


def test_a_jpeg_of_other_size_raises(tmp_path: Path) -> None:
    path, other = tmp_path / "a.tif", tmp_path / "b.tif"
    for one, part in [(path, (32, 32)), (other, (64, 64))]:
        tifffile.imwrite(one, image((64, 64), "u1"), compression="jpeg", tile=part)
    with tifffile.TiffFile(other) as file:
        page = file.pages[0]
        jpeg = other.read_bytes()[page.dataoffsets[0] :][: page.databytecounts[0]]
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        places = tags[324].valueoffset, tags[325].valueoffset
    data = bytearray(path.read_bytes())
    data[places[0] : places[0] + 4] = struct.pack("<I", len(data))
    data[places[1] : places[1] + 4] = struct.pack("<I", len(jpeg))
    path.write_bytes(data + jpeg)
    with path.open("rb") as file, pytest.raises(FormatError):
        tiff.read(file, "/0", 0, 4096)


def test_read_of_no_image_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, image((41, 53), "u1"))
    with path.open("rb") as file:
        with pytest.raises(NoSuchHduError):
            tiff.read(file, "/1", 0, 1)
        with pytest.raises(FormatError):
            tiff.read(file, "/0", 0, 41 * 53 + 1)


def test_overviews_and_masks_are_not_the_default_array(data: Path) -> None:
    for name in ("cogeo.tif", "lcmap_tiny_cog_2019.tif"):
        file: Any
        with swathe.open(data / "formats" / name) as file:
            assert len(file.tree.arrays) > 1
            assert [each.path for each in file.tree.planes()] == ["/0"]
        cutout: Any = swathe.cut(data / "formats" / name, box=(1, 2, 5, 4))
        assert cutout.path == "/0"


def test_what_tifffile_logs_is_a_warning_about_the_file(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = bytearray((data / "formats" / "world.byte.tif").read_bytes())
    at = content.index((34736).to_bytes(2, "little"))  # the numbers of GeoTIFF keys
    content[at : at + 2] = (65000).to_bytes(2, "little")
    (tmp_path / "a.tif").write_bytes(content)
    file: Any = swathe.open(tmp_path / "a.tif")
    (note,) = file.notes
    assert note.startswith("tifffile: ") and "GeoKeyDirectoryTag 34736 not found" in note
    again: Any = swathe.open(tmp_path / "a.tif")
    assert again.notes == [note]
    assert swathe.cut(tmp_path / "a.tif", box=(0, 0, 2, 2)).notes == [note]
    assert "tifffile" not in "".join(capfd.readouterr())
