"""The same place in the sky for the same pixel, whatever distorts the image."""

from __future__ import annotations

import gzip
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.utils.data import get_pkg_data_filename
from astropy.wcs import WCS

import swathe
from swathe.core import errors
from swathe.files.cutout import Cutout
from tests.conftest import DATA, assert_same, fits_bytes, random_box, real_files

DEGREES = 1e-9
BOXES = 3


@contextmanager
def quiet() -> Iterator[None]:
    """Old headers make astropy talk."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def opened(path: Path) -> Iterator[fits.HDUList]:
    source: Any = path
    if path.suffix == ".Z":
        source = BytesIO(subprocess.run(["gzip", "-dc", path], capture_output=True).stdout)
    with quiet(), fits.open(source, memmap=False) as hdus:
        yield hdus


def wcs_of(header: fits.Header, hdus: fits.HDUList, key: str = " ") -> WCS | None:
    """What astropy makes of a header; `None` where that is nothing."""
    with quiet():
        try:
            return WCS(header, hdus, key=key)
        except Exception:  # wcslib's classes share no base
            return None


def written(cut: Cutout, key: str = " ") -> WCS:
    """The WCS of the file that is written."""
    with quiet(), fits.open(BytesIO(cut.to_bytes()), memmap=False) as hdus:
        header = hdus[0 if "SIMPLE" in cut.header else 1].header
        return WCS(header, hdus, key=key)


def assert_maps_back(full: WCS, cut: WCS, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Pixels of the cut, `shape` in FITS order, lie where those of the image do."""
    assert cut.naxis == full.naxis
    rng = np.random.default_rng(7)
    lengths = np.array([*shape, *[1] * full.naxis][: full.naxis])
    first = np.array([*start, *[0] * full.naxis][: full.naxis])
    places = np.vstack([np.zeros(full.naxis), lengths - 1, rng.random((20, full.naxis)) * lengths])
    with quiet():
        try:
            expected = full.all_pix2world(places + first, 0)
        except Exception as error:
            with pytest.raises(type(error)):
                cut.all_pix2world(places, 0)
            return
        found = cut.all_pix2world(places, 0)
    assert (np.isnan(found) == np.isnan(expected)).all()
    for axis, unit in enumerate(full.wcs.cunit):
        off = np.abs(found[:, axis] - expected[:, axis])
        if unit == u.deg:
            off = np.minimum(off, np.abs(off - 360))
            assert np.nanmax(off, initial=0) < DEGREES
        else:
            scale = np.nanmax(np.abs(expected[:, axis]), initial=1)
            assert np.nanmax(off, initial=0) < 1e-12 * scale


@pytest.fixture(scope="module", params=real_files("sky", "sdss", "compressed", "odd"))
def name(request: pytest.FixtureRequest, data: Path) -> str:
    return str(request.param)


def images(path: Path) -> Iterator[swathe.Image]:
    try:
        found = [
            image
            for image in swathe.open(path).images
            if len(image.shape) >= 2 and all(image.shape)
        ]
    except errors.SwatheError:
        return
    yield from found


@pytest.mark.more
def test_every_cut_of_every_file_maps_back(name: str) -> None:
    path = DATA / name
    rng = np.random.default_rng(3)
    for image in images(path):
        with opened(path) as hdus:
            header = hdus[image.index].header
            for key in (" ", *sorted({keyword[-1] for keyword in header["CTYPE1?"]})):
                full = wcs_of(header, hdus, key)
                if full is None or not any(full.wcs.ctype):
                    continue  # no WCS: what astropy makes up counts pixels of the file
                if key == " ":
                    assert_maps_back(full, image.wcs, (0,) * full.naxis, image.shape[::-1])
                for turn in range(BOXES if image.index < 5 else 2):
                    x0, y0, width, height = random_box(rng, *image.shape[:-3:-1])
                    mode: Any = "partial" if turn == 1 else "trim"
                    if mode == "partial":
                        x0, y0 = x0 - 2, y0 - 3
                        width, height = width + 3, height + 4
                    cut = image.cut((x0, y0, width, height), mode=mode)
                    shape = (width, height, *image.shape[-3::-1])
                    assert_maps_back(full, written(cut, key), (x0, y0), shape)
                    if key == " ":
                        assert_maps_back(full, cut.wcs, (x0, y0), shape)


@pytest.mark.more
def test_sky_cuts_are_those_of_cutout2d(name: str) -> None:
    path = DATA / name
    rng = np.random.default_rng(4)
    for image in images(path):
        if image.shape[-1] * image.shape[-2] < 2:
            continue
        with opened(path) as hdus:
            full = wcs_of(hdus[image.index].header, hdus)
            if full is None or not full.has_celestial:
                continue
            plane = hdus[image.index].data.reshape(-1, *image.shape[-2:])[0]
            celestial = full if full.naxis == 2 else full.celestial
            try:
                scale = image.sky.scales
            except errors.RegionError:
                continue  # such as arc seconds of the Sun, named in no unit
            for _ in range(2):
                x, y = rng.random(2) * image.shape[:-3:-1]
                with np.errstate(all="ignore"):
                    place = celestial.pixel_to_world(x, y)
                    if not isinstance(place, SkyCoord):  # the Sun's, which need sunpy
                        with pytest.raises(errors.RegionError):
                            swathe.cut(path, sky=(1, 2), size_deg=1, hdu=image.index)
                        break
                    there = np.array(celestial.world_to_pixel(place))
                    if not np.allclose(there, (x, y), atol=0.01):
                        continue  # two pixels for one place
                    expected = Cutout2D(plane, place, (7, 6), wcs=celestial)
                size = (7.2 * scale[1], 6.2 * scale[0])
                for frame in (None, "galactic", "fk5"):
                    if frame is not None and not place.is_transformable_to(frame):
                        continue
                    sky = place if frame is None else place.transform_to(frame)
                    cut = swathe.cut(path, sky=sky, size_deg=size, hdu=image.index)
                    found = cut.data.reshape(-1, *cut.shape[-2:])[0]
                    assert cut.box[:2] == expected.origin_original
                    assert_same(found, expected.data)


# ---- Made here

PLANE = np.arange(40 * 60, dtype=">i4").reshape(40, 60)
LINEAR = {"CRPIX1": 30.5, "CRPIX2": 19.75, "CRVAL1": 10.0, "CRVAL2": -5.0}
SKY: dict[str, Any] = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CUNIT1": "deg", "CUNIT2": "deg"}


def with_key(cards: dict[str, Any], key: str) -> dict[str, Any]:
    return {f"{keyword}{key}": value for keyword, value in cards.items()}


def matrices(key: str) -> list[dict[str, Any]]:
    """CD, PC with CDELT, CROTA, and nothing."""
    found = [
        {"CD1_1": -1e-3, "CD1_2": 2e-4, "CD2_1": 1e-4, "CD2_2": 1.1e-3},
        {"PC1_1": 0.9, "PC1_2": 0.1, "PC2_1": -0.2, "PC2_2": 0.8, "CDELT1": -1e-3, "CDELT2": 1e-3},
        {"CDELT1": 1e-3, "CDELT2": 2e-3},
        {"PC1_2": 0.5},
    ]
    if not key:
        found.append({"CDELT1": 1e-3, "CDELT2": 2e-3, "CROTA2": 33.0})
    return found


@pytest.mark.parametrize("key", ["", "A", "Q", "Z"])
@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize("reference", [True, False], ids=["CRPIX", "noCRPIX"])
def test_alternates_map_back(
    key: str, way: int, reference: bool, new_path: Callable[[str], Path]
) -> None:
    ways = matrices(key)
    cards = with_key(SKY | LINEAR | ways[way % len(ways)], key)
    primary = SKY | LINEAR | {"CDELT1": 0.5, "CDELT2": 0.5} if key else {}
    if not reference:
        cards = {k: v for k, v in cards.items() if not k.startswith("CRPIX")}
    path = new_path(".fits")
    path.write_bytes(fits_bytes(PLANE, list((primary | cards).items())))
    header = fits.getheader(path)
    cut = swathe.cut(path, box=(11, 17, 20, 13))
    for version in {key, ""}:
        full = WCS(header, key=version or " ")
        assert_maps_back(full, written(cut, version or " "), (11, 17), (20, 13))
        again = WCS(cut.header, key=version or " ")
        assert_maps_back(full, again, (11, 17), (20, 13))


def test_sip_and_tpv_map_back(new_path: Callable[[str], Path]) -> None:
    matrix = matrices("")[0]
    sip = {"A_ORDER": 2, "B_ORDER": 2, "A_2_0": 1e-4, "A_1_1": -2e-4, "B_0_2": 3e-4,
           "AP_ORDER": 1, "BP_ORDER": 1, "AP_1_0": 1e-5, "BP_0_1": 1e-5}  # fmt: skip
    sip_types = {"CTYPE1": "RA---TAN-SIP", "CTYPE2": "DEC--TAN-SIP"}
    tpv_types = {"CTYPE1": "RA---TPV", "CTYPE2": "DEC--TPV"}
    tpv = {"PV1_0": 1e-4, "PV1_1": 1.01, "PV1_4": 0.1, "PV2_1": 0.99, "PV2_7": 0.2}
    for types, distortion in ((sip_types, sip), (tpv_types, tpv)):
        path = new_path(".fits.gz")
        cards = SKY | LINEAR | types | matrix | distortion
        path.write_bytes(gzip.compress(fits_bytes(PLANE, list(cards.items()))))
        full = WCS(fits.getheader(path))
        plain = WCS(fits.Header(list((SKY | LINEAR | matrix).items())))
        undistorted = plain.all_pix2world([[0, 0]], 0)
        assert abs(full.all_pix2world([[0, 0]], 0) - undistorted).max() > 1e-6
        for box in ((5, 6, 20, 30), (0, 39, 1, 1), (59, 0, 1, 40)):
            cut = swathe.cut(path, box=box)
            assert_maps_back(full, cut.wcs, box[:2], box[2:])
            assert_maps_back(full, written(cut), box[:2], box[2:])


def test_plates_of_the_digitized_sky_survey_map_back() -> None:
    # By its plate solution, in pixels of the plate: that goes before its CRPIX and CD.
    path = get_pkg_data_filename("data/dss.14.29.56-62.41.05.fits.gz", package="astropy.wcs.tests")
    with quiet():
        header = fits.getheader(path)
        full = WCS(header)
    assert (header["CNPIX1"], header["CNPIX2"]) == (8860, 1708)
    for box in ((10, 20, 30, 40), (0, 99, 1, 1), (99, 0, 1, 100)):
        cut = swathe.cut(path, box=box)
        found = cut.header["CNPIX1"], cut.header["CNPIX2"]
        assert found == (8860 + box[0], 1708 + box[1])
        assert all(isinstance(number, int) for number in found)
        assert_maps_back(full, cut.wcs, box[:2], box[2:])
        assert_maps_back(full, written(cut), box[:2], box[2:])
    beyond = swathe.cut(path, box=(-3, -4, 10, 10), mode="partial")
    assert_maps_back(full, written(beyond), (-3, -4), (10, 10))


def table_hdu(name: str, version: int, column: str, values: Any) -> fits.BinTableHDU:
    """A -TAB coordinate array."""
    values = np.asarray(values, float)
    shape = str(values.shape[::-1])
    wide = fits.Column(column, f"{values.size}D", dim=shape, array=values[np.newaxis])
    return fits.BinTableHDU.from_columns([wide], name=name, ver=version)


@pytest.mark.parametrize("compressed", [False, True])
def test_tab_maps_back_with_planes(compressed: bool, new_path: Callable[[str], Path]) -> None:
    cube = np.arange(7 * 9 * 11, dtype="i4").reshape(7, 9, 11)
    hdu: Any = (
        fits.CompImageHDU(cube, name="SCI") if compressed else fits.ImageHDU(cube, name="SCI")
    )
    waves = np.array([1.0, 1.5, 2.5, 4.0, 6.0, 7.0, 9.5])
    cards = {
        **SKY, "CTYPE3": "WAVE-TAB", "CUNIT3": "m", "CRPIX1": 4.0, "CRPIX2": 5.0, "CRPIX3": 1.0,
        "CRVAL1": 10.0, "CRVAL2": -5.0, "CRVAL3": 1.0, "CDELT1": -1e-3, "CDELT2": 1e-3,
        "CDELT3": 1.0, "PS3_0": "WCS-TABLE", "PS3_1": "WAVES", "PV3_1": 1, "PV3_2": 1, "PV3_3": 1,
    }  # fmt: skip
    hdu.header.update(cards)
    table = table_hdu("WCS-TABLE", 1, "WAVES", waves[:, np.newaxis])
    path = new_path(".fits")
    fits.HDUList([fits.PrimaryHDU(), hdu, table]).writeto(path)
    with fits.open(path) as hdus:
        full = WCS(hdus["SCI"].header, hdus)
    assert full.all_pix2world([[0, 0, 3]], 0)[0, 2] == pytest.approx(4.0)
    cut = swathe.cut(path, box=(2, 3, 5, 4), planes=slice(2, 6), hdu="SCI")
    assert_same(cut.data, cube[2:6, 3:7, 2:7] if compressed else cube[2:6, 3:7, 2:7].astype(">i4"))
    again = written(cut)
    for wcs in (cut.wcs, again):
        shifted = [[1.0, 2.0, z] for z in (0, 1.25, 2, 3)]
        expected = [[3.0, 5.0, z + 2] for z in (0, 1.25, 2, 3)]
        off = wcs.all_pix2world(shifted, 0) - full.all_pix2world(expected, 0)
        assert np.abs(off).max() < DEGREES


@pytest.mark.parametrize("kind", ["CPDIS", "D2IM"])
def test_lookup_tables_map_back(kind: str, new_path: Callable[[str], Path]) -> None:
    rng = np.random.default_rng(8)
    cards: list[tuple[str, Any]] = list((SKY | LINEAR | matrices("")[0]).items())
    tables = []
    for axis in (1, 2):
        prefix, record = ("CPDIS", "DP") if kind == "CPDIS" else ("D2IMDIS", "D2IM")
        cards.append((f"{prefix}{axis}", "LOOKUP"))
        for field, value in (("EXTVER", axis), ("NAXES", 2), ("AXIS.1", 1), ("AXIS.2", 2)):
            cards.append((f"{record}{axis}", f"{field}: {value:.1f}"))
        name = "WCSDVARR" if kind == "CPDIS" else "D2IMARR"
        table = fits.ImageHDU(rng.normal(0, 0.5, (5, 7)).astype("f4"), name=name, ver=axis)
        table.header.update({"CRPIX1": 2.0, "CRPIX2": 1.0, "CRVAL1": 12.0, "CRVAL2": 4.0,
                             "CDELT1": 10.0, "CDELT2": 9.0})  # fmt: skip
        tables.append(table)
    path = new_path(".fits")
    hdu = fits.ImageHDU(PLANE, name="SCI")
    for keyword, value in cards:
        hdu.header.append((keyword, value), end=True)
    with quiet():
        fits.HDUList([fits.PrimaryHDU(), hdu, *tables]).writeto(path)
        with fits.open(path) as hdus:
            full = WCS(hdus[1].header, hdus)
    plain = full.wcs_pix2world([[20, 20]], 0)
    assert np.abs(full.all_pix2world([[20, 20]], 0) - plain).max() > 1e-6
    for box in ((5, 6, 20, 30), (0, 39, 1, 1), (30, 0, 30, 40)):
        cut = swathe.cut(path, box=box, hdu="SCI")
        assert_maps_back(full, cut.wcs, box[:2], box[2:])
        assert_maps_back(full, written(cut), box[:2], box[2:])
    place = full.all_pix2world([[20.2, 20.3]], 0)[0]
    cut = swathe.cut(path, sky=(place[0], place[1]), size_deg=0.005, hdu="SCI")
    x0, y0, width, height = cut.box
    assert x0 <= 20 < x0 + width
    assert y0 <= 20 < y0 + height
    centre = swathe.cut(path, center=(20.2, 20.3), shape=(height, width), hdu="SCI")
    assert centre.box == cut.box


def test_missing_tables_leave_the_pixels(new_path: Callable[[str], Path]) -> None:
    """A header that names a table that is not there still gives its pixels."""
    cards = [
        *(SKY | LINEAR).items(),
        ("CPDIS1", "LOOKUP"),
        ("DP1", "EXTVER: 1.0"),
        ("DP1", "NAXES: 2"),
    ]
    path = new_path(".fits")
    path.write_bytes(fits_bytes(PLANE, cards))
    cut = swathe.cut(path, box=(1, 2, 3, 4))
    assert_same(cut.data, PLANE[2:6, 1:4])
    with pytest.raises(errors.RegionError, match="WCS cannot be used"):
        swathe.cut(path, sky=(10, -5), size_deg=1)
