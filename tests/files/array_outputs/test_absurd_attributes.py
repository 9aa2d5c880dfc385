"""Attributes that no format can hold end in typed errors, and in files that open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core.errors import OutputError, SwatheError

for library in ("h5py", "asdf", "tifffile"):
    pytest.importorskip(library)
SUFFIXES = (".nc", ".h5", ".zarr", ".asdf", ".tif", ".fits", ".npy", ".png")
ABSURD: dict[str, dict[str, Any]] = {
    "texts": {"units": "K\n\x1b[31m\0", "": "none", "a\nb": "v", "n\0": "\0", "t": "<script>"},
    "unicode": {"n": "\ud800", "\udfff": "x"},
    "cards": {"NAXIS": 7, "END": "x", "BITPIX": "a", "XTENSION": 2, "CONTINUE": "c", "SIMPLE": 0},
    "long": {"n": "x" * 100_000, "y" * 70_000: 1},
    "packing": {"scale_factor": "abc", "add_offset": [1, 2]},
    "nan": {"scale_factor": float("nan"), "missing_value": float("inf")},
    "fill": {"_FillValue": "abc", "valid_range": ["a", {"b": 1}]},
    "places": {"ModelTiepoint": [1, 2], "ModelPixelScale": "x", "ModelTransformation": []},
    "keys": {"GTModelTypeGeoKey": [1, 2], "PhotometricInterpretation": [2, 2]},
    "large": {"GTModelTypeGeoKey": 10**9, "GeographicTypeGeoKey": -5, "n": 10**400},
}


def write_zarr(path: Path, attributes: dict[str, Any], name: str = "lst") -> Path:
    """A Zarr of one array, 4 x 4 numbers of two bytes, with any attributes."""
    (path / name / "c" / "0").mkdir(parents=True)
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    meta = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 4],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attributes,
        "dimension_names": ["y", "x"],
    }
    (path / name / "zarr.json").write_text(json.dumps(meta))
    (path / name / "c" / "0" / "0").write_bytes(np.arange(16, dtype="<i2").tobytes())
    return path


@pytest.mark.parametrize("attributes", ABSURD.values(), ids=ABSURD)
def test_a_file_or_a_typed_error(tmp_path: Path, attributes: dict[str, Any]) -> None:
    cutout: Any = swathe.cut(write_zarr(tmp_path / "a.zarr", attributes), box=(0, 0, 3, 3))
    written = []
    for suffix in SUFFIXES:
        output = tmp_path / f"cut{suffix}"
        try:
            cutout.write(output)
        except SwatheError:
            assert not output.exists()
        else:
            written.append(suffix)
    assert ".npy" in written
    if ".fits" in written:
        with fits.open(tmp_path / "cut.fits") as hdus:
            hdus.verify("exception")
            assert hdus[0].data.shape == (3, 3)


def test_attributes_do_not_change_how_fits_is_read(tmp_path: Path) -> None:
    attributes = {"BSCALE": 0.0, "bzero": 7, "BLANK": 3, "ZIMAGE": True, "GAIN": 2.5}
    cutout: Any = swathe.cut(write_zarr(tmp_path / "a.zarr", attributes), box=(0, 0, 3, 3))
    cutout.write(tmp_path / "cut.fits")
    with fits.open(tmp_path / "cut.fits") as hdus:
        np.testing.assert_array_equal(hdus[0].data, cutout.data)
        assert hdus[0].header["GAIN"] == 2.5


def test_units_that_fits_cannot_hold_are_left_out(tmp_path: Path) -> None:
    cutout: Any = swathe.cut(write_zarr(tmp_path / "a.zarr", ABSURD["texts"]), box=(0, 0, 3, 3))
    cutout.write(tmp_path / "cut.fits")
    assert "BUNIT" not in fits.getheader(tmp_path / "cut.fits")


def test_long_vectors_are_blocks_of_asdf(tmp_path: Path) -> None:
    import asdf

    vector = list(range(20_000))
    source = write_zarr(tmp_path / "a.zarr", {"few": [1, 2], "many": vector})
    cutout: Any = swathe.cut(source, box=(0, 0, 3, 3))
    cutout.write(tmp_path / "cut.asdf")
    with asdf.open(tmp_path / "cut.asdf") as file:
        attributes = file["attributes"]["lst"]
        assert attributes["few"] == [1, 2]
        np.testing.assert_array_equal(attributes["many"], vector)


def test_names_that_are_no_names_of_folders(tmp_path: Path) -> None:
    source = write_zarr(tmp_path / "a.zarr", {}, "l\x1bst")
    cutout: Any = swathe.cut(source, box=(0, 0, 3, 3))
    with pytest.raises(OutputError, match=r"l\\x1bst.*of this name"):
        cutout.write(tmp_path / "cut.zarr")
    assert [each.name for each in tmp_path.iterdir()] == ["a.zarr"]
