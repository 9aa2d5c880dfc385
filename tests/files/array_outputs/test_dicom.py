"""Cuts of DICOM: every output has the pixels of pydicom, and `.dcm` is an image of its own."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

import swathe
from swathe.core.errors import OutputError
from swathe.files.array_file import ArrayFile
from swathe.files.places.dicom import attributes_of_part
from tests.arrays.test_dicom import SYNTAXES, file_of, real, written

pydicom = pytest.importorskip("pydicom")
BOX = (2, 3, 6, 5)
ROWS, COLUMNS = slice(3, 8), slice(2, 8)


def pixels_of(path: Path) -> NDArray[Any]:
    return np.asarray(pydicom.dcmread(path).pixel_array)


@pytest.mark.parametrize("name", ["CT_small", "MR_small_bigendian", "image_dfl", "MR_small_RLE"])
@pytest.mark.parametrize("suffix", ["nc", "h5", "zarr", "tif", "asdf", "dcm"])
def test_a_cut_is_read_again_from_each_output(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut.{suffix}"
    cut = swathe.cut(real(name), box=BOX)
    cut.write(path)
    expected = pixels_of(real(name))[ROWS, COLUMNS]
    np.testing.assert_array_equal(cut, expected)
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    np.testing.assert_array_equal(file.array().data, expected)


def test_a_cut_becomes_fits_npy_and_png(tmp_path: Path) -> None:
    cut = swathe.cut(real("CT_small"), box=BOX)
    expected = pixels_of(real("CT_small"))[ROWS, COLUMNS]
    for suffix in ("fits", "npy", "png"):
        cut.write(tmp_path / f"cut.{suffix}")
    np.testing.assert_array_equal(np.load(tmp_path / "cut.npy"), expected)
    with fits.open(tmp_path / "cut.fits") as hdus:
        np.testing.assert_array_equal(hdus[0].data, expected - 1024.0)
        assert hdus[0].header["CUNIT1"] == "mm"
    assert (tmp_path / "cut.png").read_bytes().startswith(b"\x89PNG")


def test_xarray_has_scale_padding_and_place(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    swathe.cut(real("CT_small"), box=BOX).write(tmp_path / "cut.nc")
    data = pydicom.dcmread(real("CT_small"))
    with xarray.open_dataset(tmp_path / "cut.nc", engine="h5netcdf") as cut:
        pixels = data.pixel_array[ROWS, COLUMNS]
        np.testing.assert_array_equal(cut["PixelData"], pixels * 1.0 - 1024)
        step = data.PixelSpacing[0]
        first = [float(each) for each in data.ImagePositionPatient]
        np.testing.assert_allclose(cut["x"], first[0] + step * np.arange(2, 8))
        np.testing.assert_allclose(cut["y"], first[1] + step * np.arange(3, 8))
        place = cut["PixelData"].attrs["ImagePositionPatient"]
        np.testing.assert_allclose(place, [cut["x"][0], cut["y"][0], first[2]])
        assert cut.attrs["PatientName"] == data.PatientName


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("is_planar", [False, True])
def test_colours_and_frames_are_cut(syntax: str, is_planar: bool, tmp_path: Path) -> None:
    values = np.arange(3 * 9 * 10 * 3, dtype="u2").astype("u1").reshape(3, 9, 10, 3)
    data = pydicom.dcmread(io.BytesIO(file_of(Rows=9, Columns=10, SamplesPerPixel=3)))
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", "1.2.3"
    data.PhotometricInterpretation, data.PlanarConfiguration = "RGB", int(is_planar)
    data.BitsAllocated, data.BitsStored, data.HighBit, data.NumberOfFrames = 8, 8, 7, 3
    data.PixelData = (np.moveaxis(values, 3, 1) if is_planar else values).tobytes()
    data["PixelData"].VR = "OW" if syntax == "implicit" else "OB"
    path = tmp_path / "image.dcm"
    path.write_bytes(written(data, syntax))
    if syntax == "RLE":
        values = pixels_of(path)  # the encoder of pydicom takes colours as not planar
    cut: Any = swathe.cut(path, box=BOX, index={"frame": slice(1, 3)})
    found = np.moveaxis(cut.data, cut.dims.index("band"), -1)
    np.testing.assert_array_equal(found, values[1:, ROWS, COLUMNS])
    whole = swathe.cut(path, box=BOX)
    if syntax == "RLE":
        with pytest.raises(OutputError, match=r"expected plain colours .*, found .*RLE"):
            whole.write(tmp_path / "cut.dcm")
        return
    whole.write(tmp_path / "cut.dcm")
    np.testing.assert_array_equal(pixels_of(tmp_path / "cut.dcm"), values[:, ROWS, COLUMNS])
    with pytest.raises(OutputError, match="expected all frames and samples"):
        cut.write(tmp_path / "part.dcm")


def test_pixels_with_a_sign_in_fewer_bits_are_read_by_the_engine(tmp_path: Path) -> None:
    values = (np.arange(90 * 1000) % 4096 - 2048).astype("<i2").reshape(90, 1000)
    data = pydicom.dcmread(io.BytesIO(file_of(Rows=90, Columns=1000, PixelRepresentation=1)))
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", "1.2.3"
    data.BitsStored, data.HighBit, data.PixelData = 12, 11, (values & 0xFFF).tobytes()
    path = tmp_path / "image.dcm"
    path.write_bytes(written(data, "explicit"))
    file: Any = swathe.open(path)
    array = file["PixelData"]
    assert array.is_native
    assert array.chunk_shape == (32, 1000)
    np.testing.assert_array_equal(array[25:70, 7:900], values[25:70, 7:900])
    np.testing.assert_array_equal(array.data, pixels_of(path))


def test_an_image_that_is_written_names_its_source_and_moves(tmp_path: Path) -> None:
    source = pydicom.dcmread(real("CT_small"))
    swathe.cut(real("CT_small"), box=BOX).write(tmp_path / "cut.dcm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut = pydicom.dcmread(tmp_path / "cut.dcm")
        np.testing.assert_array_equal(cut.pixel_array, source.pixel_array[ROWS, COLUMNS])
    assert (cut.Rows, cut.Columns) == (5, 6)
    assert cut.SOPInstanceUID != source.SOPInstanceUID
    assert cut.file_meta.MediaStorageSOPInstanceUID == cut.SOPInstanceUID
    assert cut.SourceImageSequence[0].ReferencedSOPInstanceUID == source.SOPInstanceUID
    assert list(cut.ImageType) == ["DERIVED", "PRIMARY", "AXIAL"]
    place = np.array(source.ImagePositionPatient, float) + 0.661468 * np.array([2, 3, 0])
    np.testing.assert_allclose(np.array(cut.ImagePositionPatient, float), place)
    new = {"ImageType", "SOPInstanceUID", "ImagePositionPatient", "Rows", "Columns", "PixelData"}
    for element in source:
        if element.keyword not in new | {"DataSetTrailingPadding"}:
            assert cut[element.tag].value == element.value, element.keyword


def test_what_dicom_cannot_hold_is_refused(tmp_path: Path, data: Path) -> None:
    with pytest.raises(OutputError, match="expected an image of DICOM"):
        swathe.cut(data / "formats" / "air.nc", index={"time": 1}).write(tmp_path / "cut.dcm")
    shared = pydicom.Dataset()
    enhanced = pydicom.dcmread(real("CT_small"))
    enhanced.SharedFunctionalGroupsSequence = [shared]
    enhanced.save_as(tmp_path / "enhanced.dcm")
    with pytest.raises(OutputError, match="places of their own, found Shared"):
        swathe.cut(tmp_path / "enhanced.dcm", box=BOX).write(tmp_path / "cut.dcm")
    assert not (tmp_path / "cut.dcm").exists()


def test_a_position_without_direction_is_left_out() -> None:
    position, directions = np.array([1.0, 2.0, 3.0]), np.array([0, 1.0, 0, 0, 0, 1.0])
    attrs = {"ImagePositionPatient": position, "PixelSpacing": np.array([0.5, 2.0])}
    assert "ImagePositionPatient" not in attributes_of_part(attrs, 0, 0)
    part = attributes_of_part(attrs | {"ImageOrientationPatient": directions}, 4, 10)
    assert part["ImagePositionPatient"].tolist() == [1.0, 22.0, 5.0]
    assert attributes_of_part({"x": 1}, 4, 10) == {"x": 1}
