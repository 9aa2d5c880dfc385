"""Cuts by a WCS in attributes, and the WCS of their files, equal those of astropy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.wcs import WCS

import swathe
from swathe.core.errors import RegionError

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
cut: Any = swathe.cut
opened: Any = swathe.open
SHAPE = (60, 80)
VALUES = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
CARDS: dict[str, Any] = {
    "CTYPE1": "RA---TAN-SIP",
    "CTYPE2": "DEC--TAN-SIP",
    "CRPIX1": 41.25,
    "CRPIX2": np.float32(28.5),
    "CRVAL1": 150.1,
    "CRVAL2": 2.2,
    "CD1_1": -8e-5,
    "CD1_2": 2e-5,
    "CD2_1": 2e-5,
    "CD2_2": 8e-5,
    "CUNIT1": "deg",
    "CUNIT2": "deg",
    "A_ORDER": 2,
    "A_2_0": 2e-4,
    "B_ORDER": 2,
    "B_0_2": -1e-4,
    "RADESYS": "FK5",
    "EQUINOX": 2000.0,
}
OTHER = {"CTYPE1": "GLON-TAN", "CTYPE2": "GLAT-TAN", "CRPIX1": 1.0, "CRPIX2": 1.0, "CROTA2": 30.0}
"""A WCS farther from the array, which is not used."""
SOURCES = (
    "array.h5",
    "text.h5",
    "lines.h5",
    "group.h5",
    "mapping.nc",
    "coordinate.nc",
    "path.h5",
    "group.zarr",
)
BOX = (30, 20, 12, 9)


def system_of(cards: dict[str, Any]) -> WCS:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WCS(fits.Header({name: np.asarray(each).item() for name, each in cards.items()}))


SYSTEM = system_of(CARDS)


def header_text(separator: str) -> str:
    header = fits.Header({"OBJECT": "M 31", **{k: np.asarray(v).item() for k, v in CARDS.items()}})
    header.comments["CRPIX1"] = "reference pixel of the axis of right ascension"
    return str(header.tostring(sep=separator, endcard=not separator, padding=False))


def write_hdf5(path: Path, values: Any = VALUES, **attrs: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("image", data=values).attrs.update(attrs)
    return path


def write_netcdf(path: Path, coordinates: str | None = None) -> Path:
    place = {"grid_mapping": "crs", **({"coordinates": coordinates} if coordinates else {})}
    variables = {"image": (("y", "x"), VALUES, place), "crs": ((), np.int32(0), CARDS)}
    xarray.Dataset(variables, attrs=OTHER).to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with one WCS: in attributes of the array, a grid mapping, or a group; or as text."""
    folder = tmp_path_factory.mktemp("wcs")
    write_hdf5(folder / "array.h5", **CARDS)
    write_hdf5(folder / "text.h5", header=header_text(""))
    write_hdf5(folder / "lines.h5", WCS=header_text("\n"))
    with h5py.File(folder / "group.h5", "w") as file:
        file.attrs.update(OTHER)
        group = file.create_group("science")
        group.attrs.update(CARDS)
        group["image"] = VALUES
    write_netcdf(folder / "mapping.nc")
    write_netcdf(folder / "coordinate.nc", "crs")
    with h5py.File(write_hdf5(folder / "path.h5", grid_mapping="/place/crs"), "a") as file:
        file["/place/crs"] = 0
        file["/place/crs"].attrs.update(CARDS)
    root = zarr.open_group(folder / "group.zarr", mode="w")
    root.attrs.update({name: np.asarray(each).item() for name, each in CARDS.items()})
    root.create_array("image", data=VALUES, chunks=(16, 16))
    return {name: folder / name for name in SOURCES}


def assert_same_sky(system: WCS, box: tuple[int, int, int, int] = BOX) -> None:
    """Compare the sky positions of pixels of a cut with those of the whole image."""
    x0, y0, width, height = box
    x, y = np.meshgrid(np.arange(float(width)), np.arange(float(height)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = system.celestial.pixel_to_world(x, y)
    separation = part.separation(SYSTEM.pixel_to_world(x + x0, y + y0))
    assert separation.max() < 1e-6 * units.arcsec


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("x", "y"), [(30.3, 25.1), (2, 57)])
def test_a_position_gives_the_box_of_astropy(
    sources: dict[str, Path], name: str, x: float, y: float
) -> None:
    centre = SYSTEM.pixel_to_world(x, y)
    expected = Cutout2D(VALUES, centre, (2.5, 3.4) * units.arcsec, SYSTEM)
    path = "/science/image" if name == "group.h5" else "/image"
    cutout = cut(sources[name], array=path, sky=centre.galactic, size=(2.5, 3.4) * units.arcsec)
    np.testing.assert_array_equal(cutout.data, expected.data)
    assert cutout.start == (expected.ymin_original, expected.xmin_original)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("suffix", [".fits", ".nc", ".h5", ".zarr"])
def test_files_of_a_cut_have_its_wcs(
    sources: dict[str, Path], name: str, suffix: str, tmp_path: Path
) -> None:
    path = "/science/image" if name == "group.h5" else "/image"
    result = tmp_path / f"cut{suffix}"
    cut(sources[name], array=path, box=BOX).write(result)
    if suffix == ".fits":
        with fits.open(result) as hdus:
            hdus.verify("exception")
            header = hdus[0].header
            assert len(header["CTYPE*"]) == len(header["CRPIX*"]) == 2
            assert "CDELT1" not in header
            assert "CROTA2" not in header
            assert_same_sky(WCS(header))
        return
    x0, y0 = BOX[:2]
    centre = SYSTEM.pixel_to_world(x0 + 5, y0 + 4)
    again = cut(result, array="/image", sky=centre, size="3pix")
    np.testing.assert_array_equal(again.data, VALUES[y0 + 3 : y0 + 6, x0 + 4 : x0 + 7])


def attributes_of(path: Path, place: str) -> dict[str, Any]:
    """Return attributes as h5py, xarray and zarr read them."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return {key: np.ravel(each)[0] for key, each in file[place].attrs.items()}
    if path.suffix == ".nc":
        with xarray.open_dataset(path, decode_cf=False) as dataset:
            return dict(dataset[place].attrs)
    return dict(zarr.open_group(path, mode="r").attrs)


@pytest.mark.parametrize(
    ("name", "place"), [("array.h5", "image"), ("mapping.nc", "crs"), ("group.zarr", "/")]
)
def test_the_wcs_moves_where_it_stands(
    sources: dict[str, Path], name: str, place: str, tmp_path: Path
) -> None:
    result = tmp_path / name
    cut(sources[name], array="image", box=BOX).write(result)
    attrs = attributes_of(result, place)
    texts = {key: each.decode() if isinstance(each, bytes) else each for key, each in attrs.items()}
    assert_same_sky(system_of({key: texts[key] for key in CARDS}))


def test_a_header_keeps_its_other_cards(sources: dict[str, Path]) -> None:
    for name, attribute, separator in (("text.h5", "header", ""), ("lines.h5", "WCS", "\n")):
        text = cut(sources[name], array="image", box=BOX).attrs[attribute]
        header = fits.Header.fromstring(text, sep=separator)
        assert header["OBJECT"] == "M 31"
        assert len(header) == len(CARDS) + 1
        assert_same_sky(WCS(header))


def test_a_grid_mapping_moves_once(tmp_path: Path) -> None:
    attrs = {"grid_mapping": "crs: y x crs: x"}
    variables = {"image": (("y", "x"), VALUES, attrs), "crs": ((), np.int32(0), CARDS)}
    xarray.Dataset(variables).to_netcdf(tmp_path / "a.nc")
    cutout = cut(tmp_path / "a.nc", array="image", box=BOX)
    assert cutout.others["crs"].attrs["CRPIX1"] == CARDS["CRPIX1"] - BOX[0]
    assert cutout.others["crs"].attrs["CRPIX2"] == CARDS["CRPIX2"] - BOX[1]


def test_the_whole_array_keeps_its_attributes(sources: dict[str, Path]) -> None:
    whole = cut(sources["array.h5"], array="image", box=(0, 0, *SHAPE[::-1]))
    assert whole.attrs == opened(sources["array.h5"])["image"].attrs


def test_pixels_outside_have_places(sources: dict[str, Path], tmp_path: Path) -> None:
    box = (-5, -3, 12, 9)
    cutout = cut(sources["array.h5"], array="image", box=box, mode="partial")
    cutout.write(tmp_path / "cut.fits")
    assert_same_sky(WCS(fits.getheader(tmp_path / "cut.fits")), box)


@pytest.mark.parametrize("third", [{}, {"CTYPE3": "FREQ", "CRPIX3": 1.0, "CDELT3": 2.0}])
def test_axes_before_the_plane_may_go(third: dict[str, Any], tmp_path: Path) -> None:
    plain = {name: each for name, each in CARDS.items() if name[:2] not in ("A_", "B_")}
    plain |= {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN"}
    cube = np.stack([VALUES, VALUES + 1, VALUES + 2])
    dataset = xarray.Dataset({"image": (("time", "y", "x"), cube, {**plain, **third})})
    dataset.to_netcdf(tmp_path / "cube.nc")
    centre = system_of(plain).pixel_to_world(35, 24)
    cutout = cut(tmp_path / "cube.nc", sky=centre, size="9 pix", index={"time": 2})
    np.testing.assert_array_equal(cutout.data, VALUES[20:29, 31:40] + 2)
    assert cutout.attrs.get("CRPIX3") == (-1.0 if third else None)
    cutout.write(tmp_path / "cut.fits")
    system = WCS(fits.getheader(tmp_path / "cut.fits")).celestial
    assert system.pixel_to_world(4, 4).separation(centre) < 1e-6 * units.arcsec


def test_a_wcs_whose_axis_goes_is_left_out(sources: dict[str, Path], tmp_path: Path) -> None:
    cutout = cut(sources["array.h5"], array="image", index={"phony_dim_1": 2})
    assert not set(CARDS) & set(cutout.attrs)
    text = cut(sources["text.h5"], array="image", index={"phony_dim_1": 2}).attrs["header"]
    assert [card.keyword for card in fits.Header.fromstring(text).cards] == ["OBJECT"]
    assert not set(OTHER) & set(
        cut(sources["group.h5"], array="/science/image", index={"phony_dim_1": 2}).global_attrs
    )
    cutout.write(tmp_path / "cut.fits")
    assert "CTYPE1" not in fits.getheader(tmp_path / "cut.fits")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"CRPIX1": np.nan}, "CRPIX1: expected a finite number"),
        ({"CRPIX2": "28.5"}, "CRPIX2: expected a finite number, found '28.5'"),
        ({"CRPIX2": [1.0, 2.0]}, "CRPIX2: expected a finite number"),
        ({"CTYPE2": 3}, "CTYPE2: expected a text"),
        ({"CTYPE2": "DEC\n"}, "CTYPE2: expected a text"),
        ({"CRPIX2": None}, "expected a WCS with CRPIX2"),
        ({"CRPIX1": None}, "expected a WCS with CRPIX1"),
        ({"A_ORDER": 2**30}, "A_ORDER: expected 0 to 9"),
        ({"WCSAXES": 2**30}, "WCSAXES: expected 0 to 99"),
        ({"CTYPE1": "LINEAR", "CTYPE2": "LINEAR"}, "no celestial axes"),
        ({"CPDIS1": "LOOKUP"}, "cannot be used"),
        ({"CD1_1": 0, "CD1_2": 0}, "cannot be used"),
    ],
)
def test_bad_keywords_are_refused(change: dict[str, Any], fault: str, tmp_path: Path) -> None:
    cards = {name: each for name, each in {**CARDS, **change}.items() if each is not None}
    source = write_hdf5(tmp_path / "bad.h5", **cards)
    with pytest.raises(RegionError, match=fault):
        cut(source, array="image", sky=(150.1, 2.2), size="9 pix")


def test_a_bad_wcs_is_no_wcs_of_a_cut(tmp_path: Path) -> None:
    source = write_hdf5(tmp_path / "bad.h5", **{**CARDS, "CRPIX2": "28.5", "OBJECT": "M 31"})
    with pytest.warns(UserWarning, match="the cut has no WCS.*CRPIX2"):
        cutout = cut(source, array="image", box=BOX)
    np.testing.assert_array_equal(cutout.data, VALUES[20:29, 30:42])
    assert cutout.attrs == {"OBJECT": "M 31"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no header", "found no GWCS and no CTYPE1"),
        ("a text with CTYPE1", "expected a WCS with CTYPE1"),
        ("CTYPE1  = 'RA---TAN'\nCRPIX1  = many", "CRPIX1"),
        ("CTYPE1  = 'RA---TAN'\nCRPIX1  =", "CRPIX1"),
        ("CTYPE1  = 'RA", "CTYPE1"),
        ("CRPIX1  = 'a'\nCRPIX1  = 1\nCTYPE1  = 'RA---TAN'", "one card CRPIX1"),
        ("END\nCTYPE1  = 'RA---TAN'\nCRPIX1  = 1", "expected a WCS with CTYPE1"),
    ],
)
def test_a_text_that_is_no_header_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    source = write_hdf5(tmp_path / "bad.h5", header=text)
    with pytest.raises(RegionError, match=fault):
        cut(source, array="image", sky=(150.1, 2.2), size="9 pix")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cutout = cut(source, array="image", box=BOX)
    np.testing.assert_array_equal(cutout.data, VALUES[20:29, 30:42])
    assert [str(each.message)[:18] for each in found] == ["the cut has no WCS"] * ("CTYPE1" in text)


def test_a_box_is_of_the_last_axes(tmp_path: Path) -> None:
    variables = {"image": (("x", "y"), VALUES, CARDS)}
    xarray.Dataset(variables).to_netcdf(tmp_path / "turn.nc")
    with pytest.raises(RegionError, match="expected y and x as the last axes"):
        cut(tmp_path / "turn.nc", array="image", sky=SkyCoord(150.1, 2.2, unit="deg"), size="9 pix")
    assert not set(CARDS) & set(cut(tmp_path / "turn.nc", array="image", box=(0, 0, 3, 4)).attrs)
