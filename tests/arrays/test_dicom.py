"""DICOM: what the chunk index says of pixels and attributes, compared with pydicom."""

from __future__ import annotations

import io
import re
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from swathe.arrays.readers import dicom, dicom_file
from swathe.core.errors import FormatError, LimitError, NoSuchHduError
from tests.arrays.chunk_reader import Array, arrays_of, parts_of

pydicom = pytest.importorskip("pydicom")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
CONTIGUOUS, CHUNKS, LIBRARY, REFUSED = "contiguous", "chunks", "library", "refused"
REAL = {
    "CT_small": (CONTIGUOUS, ["y", "x"], "<i2"),
    "MR_small_implicit": (CONTIGUOUS, ["y", "x"], "<i2"),
    "MR_small_bigendian": (CONTIGUOUS, ["y", "x"], ">i2"),
    "MR_small_padded": (CONTIGUOUS, ["y", "x"], "<i2"),
    "MR_small_RLE": (LIBRARY, ["y", "x"], "<i2"),
    "MR_small_jp2klossless": (LIBRARY, ["y", "x"], "<i2"),
    "SC_rgb_small_odd": (CONTIGUOUS, ["y", "x", "band"], "|u1"),
    "SC_rgb_small_odd_big_endian": (LIBRARY, ["y", "x", "band"], "|u1"),
    "SC_rgb_rle_16bit_2frame": (LIBRARY, ["frame", "y", "x", "band"], "<u2"),
    "SC_rgb_jpeg_dcmtk": (LIBRARY, ["y", "x", "band"], "|u1"),
    "SC_ybr_full_422_uncompressed": (LIBRARY, ["y", "x", "band"], "|u1"),
    "examples_overlay": (CONTIGUOUS, ["y", "x"], "<u2"),
    "examples_palette": (CONTIGUOUS, ["y", "x"], "|u1"),
    "examples_rgb_color": (CONTIGUOUS, ["y", "x", "band"], "|u1"),
    "image_dfl": (CHUNKS, ["y", "x"], "|u1"),
    "liver_1frame": (LIBRARY, ["y", "x"], "|u1"),
    "rtdose": (CONTIGUOUS, ["frame", "y", "x"], "<u4"),
    "rtdose_expb": (CONTIGUOUS, ["frame", "y", "x"], ">u4"),
    "rtdose_rle": (LIBRARY, ["frame", "y", "x"], "<u4"),
}
"""Files that come with pydicom: how they are read, their axes and types."""
RLE = "1.2.840.10008.1.2.5"
SYNTAXES = {
    "implicit": "1.2.840.10008.1.2",
    "explicit": "1.2.840.10008.1.2.1",
    "deflated": "1.2.840.10008.1.2.1.99",
    "big": "1.2.840.10008.1.2.2",
    "RLE": RLE,
}


def real(name: str) -> Path:
    """The path of a file that comes with pydicom."""
    from pydicom.data import get_testdata_file

    return Path(str(get_testdata_file(f"{name}.dcm", download=False)))


def arrays_in(content: bytes, path: Path) -> dict[str, Array]:
    path.write_bytes(content)
    return arrays_of(dicom.describe(io.BytesIO(content)), path)


def values_of(array: Array, content: bytes) -> NDArray[Any]:
    """Read an array natively, or by pydicom in two parts."""
    if array.kind != LIBRARY:
        return array.values()
    shape = array.head["shape"]
    half = [shape[0] // 2, *shape[1:]]
    zeros = [0] * len(shape)
    regions = [(zeros, half), ([half[0], *zeros[1:]], shape)]
    parts = [dicom.read(io.BytesIO(content), array.head["name"], *each) for each in regions]
    return np.frombuffer(b"".join(parts), array.head["dtype"]).reshape(shape)


def pixels_of_pydicom(content: bytes) -> NDArray[Any]:
    from pydicom.pixels.decoders.base import get_decoder

    data = pydicom.dcmread(io.BytesIO(content))
    decoder = get_decoder(data.file_meta.TransferSyntaxUID)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of padding
        return np.asarray(decoder.as_array(data, raw=True)[0])


def bands_last(array: Array, values: NDArray[Any]) -> NDArray[Any]:
    return np.moveaxis(values, array.dims.index("band"), -1) if "band" in array.dims else values


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_pixels_of_pydicom(name: str) -> None:
    path = real(name)
    content = path.read_bytes()
    array = arrays_of(dicom.describe(io.BytesIO(content)), path)["/PixelData"]
    assert (array.kind, array.dims, array.head["dtype"]) == REAL[name]
    found, expected = bands_last(array, values_of(array, content)), pixels_of_pydicom(content)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@st.composite
def images(draw: st.DrawFn) -> tuple[Any, str]:
    """Data sets with pixels of all plain kinds, and their transfer syntaxes."""
    syntax = draw(st.sampled_from(list(SYNTAXES)))
    frames, rows, columns = (draw(st.integers(1, most)) for most in (3, 6, 7))
    samples = draw(st.sampled_from([1, 3]))
    bits = draw(st.sampled_from([8, 16] if syntax == "RLE" else [8, 16, 32]))
    is_signed = samples == 1 and draw(st.booleans())
    used = bits if syntax == "RLE" else draw(st.integers(bits - 5, bits))
    data = pydicom.Dataset()
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", "1.2.3"
    data.Rows, data.Columns, data.SamplesPerPixel = rows, columns, samples
    data.PhotometricInterpretation = "RGB" if samples == 3 else "MONOCHROME2"
    is_planar = samples == 3 and draw(st.booleans())
    if samples == 3:
        data.PlanarConfiguration = int(is_planar)
    if frames > 1 or draw(st.booleans()):
        data.NumberOfFrames = frames
    data.BitsAllocated, data.BitsStored, data.HighBit = bits, used, used - 1
    data.PixelRepresentation = int(is_signed)
    numbers = np.random.default_rng(draw(st.integers(0, 99)))
    low, high = (-(1 << used - 1), 1 << used - 1) if is_signed else (0, 1 << used)
    shape = (frames, samples, rows, columns) if is_planar else (frames, rows, columns, samples)
    values = numbers.integers(low, high, shape).astype(f"{'i' if is_signed else 'u'}{bits // 8}")
    pixels = (values.byteswap() if syntax == "big" else values).tobytes()
    data.PixelData = pixels + bytes(len(pixels) % 2)
    data["PixelData"].VR = "OB" if bits == 8 and syntax != "implicit" else "OW"
    return data, syntax


def written(data: Any, syntax: str) -> bytes:
    """The bytes of a file of a data set."""
    content = io.BytesIO()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = SYNTAXES["explicit" if syntax == "RLE" else syntax]
    if syntax == "RLE":
        data.compress(RLE, generate_instance_uid=False)
    pydicom.dcmwrite(content, data, enforce_file_format=True)
    return content.getvalue()


@settings(max_examples=60, deadline=None)
@given(images())
def test_images_that_are_written_have_the_pixels_of_pydicom(
    tmp_path_factory: pytest.TempPathFactory, image: tuple[Any, str]
) -> None:
    data, syntax = image
    content = written(data, syntax)
    path = tmp_path_factory.getbasetemp() / "image.dcm"
    array = arrays_in(content, path)["/PixelData"]
    is_8_bits = data.BitsAllocated == 8
    is_plain = syntax in ("implicit", "explicit", "big")
    is_exact = data.BitsStored == data.BitsAllocated or not data.PixelRepresentation
    if syntax == "RLE" or (syntax == "big" and data["PixelData"].VR == "OW" and is_8_bits):
        assert array.kind == LIBRARY
    else:
        assert array.kind == (CONTIGUOUS if is_plain and is_exact else CHUNKS)
    found = bands_last(array, values_of(array, content))
    np.testing.assert_array_equal(found, pydicom.dcmread(io.BytesIO(content)).pixel_array)


@pytest.mark.parametrize("keyword", ["FloatPixelData", "DoubleFloatPixelData"])
def test_pixels_may_be_floating_point_numbers(keyword: str, tmp_path: Path) -> None:
    data = pydicom.Dataset()
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.30", "1.2.3"
    data.Rows, data.Columns, data.SamplesPerPixel = 3, 5, 1
    values = np.linspace(-1, 1, 15, dtype="f4" if keyword.startswith("F") else "f8").reshape(3, 5)
    setattr(data, keyword, values.tobytes())
    array = arrays_in(written(data, "explicit"), tmp_path / "image.dcm")[f"/{keyword}"]
    assert (array.kind, array.dims) == (CONTIGUOUS, ["y", "x"])
    np.testing.assert_array_equal(array.values(), values)


def test_attributes_are_those_of_the_data_set() -> None:
    path = real("CT_small")
    with path.open("rb") as file:
        index = dicom.describe(file)
    groups = parts_of(index)[0]["groups"]["/"]
    assert groups["PatientName"] == "CompressedSamples^CT1"
    assert groups["Modality"] == "CT"
    assert groups["OtherPatientIDsSequence"].startswith('[{"PatientID": "ABCD1234"')
    arrays = arrays_of(index, path)
    attributes = arrays["/PixelData"].attributes
    assert (attributes["scale_factor"], attributes["add_offset"]) == (1.0, -1024.0)
    assert attributes["_FillValue"] == -2000
    assert attributes["_FillValue"].dtype == np.int16
    assert "RescaleSlope" not in attributes and "Rows" not in attributes
    data = pydicom.dcmread(path)
    np.testing.assert_array_equal(attributes["PixelSpacing"], data.PixelSpacing)
    np.testing.assert_array_equal(attributes["ImagePositionPatient"], data.ImagePositionPatient)
    for axis, number in (("x", 0), ("y", 1)):
        values = arrays[f"/{axis}"].values()
        step = data.PixelSpacing[1 - number]
        expected = data.ImagePositionPatient[number] + step * np.arange(128)
        np.testing.assert_allclose(values, expected)
        assert arrays[f"/{axis}"].attributes["units"] == "mm"


def test_a_dose_has_scale_unit_and_distances_of_frames() -> None:
    path = real("rtdose")
    with path.open("rb") as file:
        arrays = arrays_of(dicom.describe(file), path)
    data = pydicom.dcmread(path)
    attributes = arrays["/PixelData"].attributes
    assert attributes["scale_factor"] == float(data.DoseGridScaling)
    assert "units" not in attributes, "a relative dose has none"
    np.testing.assert_array_equal(arrays["/frame"].values(), data.GridFrameOffsetVector)


def element(tag: int, vr: str, value: bytes, length: int | None = None) -> bytes:
    """An element, explicit and little-endian; its length may lie."""
    size = len(value) if length is None else length
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF) + vr.encode()
    is_long = vr in ("OB", "OW", "SQ", "UN", "UT")
    return head + struct.pack("<HL" if is_long else "<H", *([0] if is_long else []), size) + value


def whole(tag: int, value: int) -> bytes:
    return element(tag, "US", struct.pack("<H", value))


def file_of(
    body: bytes = b"", syntax: str = "explicit", pixels: bytes | None = None, **other: Any
) -> bytes:
    """A file of 4 x 5 pixels of 16 bits, after other elements; keywords replace its own."""
    numbers = {
        **{"SamplesPerPixel": 1, "Rows": 4, "Columns": 5, "BitsAllocated": 16, "BitsStored": 16},
        **{"HighBit": 15, "PixelRepresentation": 0},
    }
    numbers |= {name: value for name, value in other.items() if name in numbers}
    tags = {pydicom.datadict.tag_for_keyword(name): value for name, value in numbers.items()}
    image = b"".join(whole(tag, value) for tag, value in sorted(tags.items()))
    image = element(0x00280004, "CS", b"MONOCHROME2 ") + image
    if "frames" in other:
        image = element(0x00280008, "IS", other["frames"]) + image
    image += pixels if pixels is not None else element(0x7FE00010, "OW", bytes(range(40)))
    meta = element(0x00020010, "UI", SYNTAXES.get(syntax, syntax).encode())
    return bytes(128) + b"DICM" + meta + body + image


ITEM = struct.pack("<HHL", 0xFFFE, 0xE000, 0xFFFFFFFF)
FRAGMENT = struct.pack("<HHL", 0xFFFE, 0xE000, 0)
ITEM_END = struct.pack("<HHL", 0xFFFE, 0xE00D, 0)
BAD = {
    "no prefix": bytes(128) + b"DICN" + bytes(20),
    "nothing after the prefix": bytes(128) + b"DICM",
    "a length beyond the file": file_of(element(0x00100010, "UT", b"abc", 0xFFFFFFF0)),
    "no end of an element": file_of(element(0x00091010, "OB", b"abcdef", 0xFFFFFFFF)),
    "many levels": file_of((element(0x00081140, "SQ", b"", 0xFFFFFFFF) + ITEM) * 3000),
    "a deflated data set that is none": file_of(syntax="deflated"),
    "a deflated data set without end": file_of(syntax="deflated")[:164]
    + zlib.compress(bytes(1000))[2:-8],
    "pixels of texts": file_of(pixels=element(0x7FE00010, "LT", b"abcd")),
    "items without a sequence": bytes(128) + b"DICM" + ITEM * 3,
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_files_are_refused(name: str) -> None:
    with pytest.raises(FormatError):
        dicom.describe(io.BytesIO(BAD[name]))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (file_of(Rows=65535, Columns=65535, frames=b"2147483647"), "at most .* elements"),
        (file_of(Rows=65535, Columns=65535), "expected 8589672450 bytes, found 40"),
        (file_of(frames=b"9" * 40), "NumberOfFrames: expected a number"),
        (file_of(frames=b"-5"), "NumberOfFrames: expected a number"),
        (file_of(frames=b"many"), "NumberOfFrames: expected a number"),
        (file_of(pixels=element(0x7FE00010, "OW", b"", 0xFFFFFFF0)), "found 0"),
        (file_of(BitsAllocated=12, BitsStored=12, HighBit=11), "elements of 12 bits"),
        (file_of(BitsStored=12, HighBit=15), "12 bits up to bit 15 of 16"),
        (file_of(BitsStored=0), "0 bits up to bit 15"),
        (file_of(SamplesPerPixel=3), "PlanarConfiguration: expected a number"),
        (file_of(SamplesPerPixel=0), "0 samples of 4 rows and 5 columns"),
        (file_of(Rows=0), "of 0 rows"),
        (file_of(syntax="1.2.3.4"), "transfer syntax '1.2.3.4', which is none of DICOM"),
        (file_of(syntax="1.2.840.10008.1.2.4.100"), "MPEG2 .*, which pydicom does not decode"),
    ],
)
def test_pixels_that_cannot_be_read_say_why(content: bytes, why: str, tmp_path: Path) -> None:
    array = arrays_in(content, tmp_path / "image.dcm")["/PixelData"]
    assert array.kind == REFUSED
    assert re.search(why, array.storage["why"]), array.storage["why"]


@pytest.mark.parametrize(
    ("body", "limit", "value"),
    [
        (b"".join(element(0x00090000 + at, "LO", b"") for at in range(40)), "MOST_ELEMENTS", 30),
        (element(0x00081140, "SQ", (ITEM + ITEM_END) * 99, 0xFFFFFFFF), "MOST_READS", 100),
    ],
)
def test_too_many_elements_and_items_are_refused(
    body: bytes, limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dicom_file, limit, value)
    with pytest.raises(LimitError, match=f"at most.* {value}"):
        dicom.describe(io.BytesIO(file_of(body)))


def test_a_data_set_inflates_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = deflater.compress(bytes(4 << 20)) + deflater.flush()
    head = file_of(syntax="deflated")[: 128 + 4 + 8 + len(SYNTAXES["deflated"])]
    monkeypatch.setattr(dicom_file, "MOST_DATA_SET", 2 << 20)
    with pytest.raises(LimitError, match="deflated data set: expected at most"):
        dicom.describe(io.BytesIO(head + bomb))


def test_long_values_are_passed_over_and_long_texts_are_cut() -> None:
    body = element(0x00084000, "UT", b"x" * (2 << 20)) + element(0x00104000, "LT", b"y" * 9000)
    groups = parts_of(dicom.describe(io.BytesIO(file_of(body))))[0]["groups"]["/"]
    assert "AuthorizationEquipmentCertificationNumber" not in groups
    assert groups["PatientComments"] == "y" * 4096 + "... (9000 characters)"


def test_elements_that_all_frames_share_count_as_those_of_the_file(tmp_path: Path) -> None:
    data = pydicom.dcmread(io.BytesIO(file_of()))
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.2.1", "1.2.3"
    measures, values, shared = (pydicom.Dataset() for _ in range(3))
    measures.PixelSpacing = [0.5, 0.25]
    values.RescaleSlope, values.RescaleIntercept, values.RescaleType = "2.5", "-7", "HU"
    shared.PixelMeasuresSequence = [measures]
    shared.PixelValueTransformationSequence = [values]
    data.SharedFunctionalGroupsSequence = [shared]
    arrays = arrays_in(written(data, "explicit"), tmp_path / "image.dcm")
    attributes = arrays["/PixelData"].attributes
    assert (attributes["scale_factor"], attributes["add_offset"]) == (2.5, -7.0)
    assert attributes["units"] == "HU"
    np.testing.assert_allclose(arrays["/y"].values(), [0, 0.5, 1, 1.5])


def test_frames_that_are_not_there_are_an_error() -> None:
    pixels = element(0x7FE00010, "OB", FRAGMENT + FRAGMENT, 0xFFFFFFFF)
    file = io.BytesIO(file_of(syntax="RLE", pixels=pixels, frames=b"2147483647"))
    with pytest.raises(FormatError):
        dicom.read(file, "/PixelData", [7, 0, 0], [8, 4, 5])
    with pytest.raises(FormatError, match="expected a region of"):
        dicom.read(file, "/PixelData", [0, 0, 0], [1, 4, 6])
    with pytest.raises(NoSuchHduError):
        dicom.read(file, "/x", [0], [1])


def test_overlays_in_unused_bits_are_taken_off(tmp_path: Path) -> None:
    overlay = element(0x60000102, "US", struct.pack("<H", 12))
    bits = np.arange(20, dtype="<u2") | 0xF000
    pixels = overlay + element(0x7FE00010, "OW", bits.tobytes())
    content = file_of(BitsStored=12, HighBit=11, pixels=pixels)
    array = arrays_in(content, tmp_path / "image.dcm")["/PixelData"]
    assert [each["name"] for each in array.storage["filters"]] == ["bits"]
    assert array.values().ravel().tolist() == list(range(20))


def test_pixels_that_are_refused_have_no_positions(tmp_path: Path) -> None:
    spacing = element(0x00280030, "DS", b"1\\1 ")
    arrays = arrays_in(file_of(spacing, Rows=60_000, Columns=60_000), tmp_path / "a.dcm")
    assert [(name, array.kind) for name, array in arrays.items()] == [("/PixelData", REFUSED)]
    arrays = arrays_in(file_of(spacing), tmp_path / "b.dcm")
    assert set(arrays) == {"/PixelData", "/y", "/x"}
