"""SODA at once: `/vo/sync` of a real server, its cuts compared with astropy's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.time import Time
from astropy.wcs import WCS
from PIL import Image
from pyvo.dal.adhoc import SodaQuery

import swathe
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.thread_limit import PIECE_BYTES, LargeResponse, ResponseMemory
from tests.conftest import DATA, assert_same
from tests.support.vo_archive import BEGIN_MJD, NEAR_POLE, Visitor, did, visited

PLAIN = did("made", "plain.fits")
CUBE = did("made", "cube.fits")
FILM = did("made", "film.fits")
C = 299_792_458.0


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("sync")) as found:
        yield found


def whole(visitor: Visitor, name: str, hdu: int = 0) -> tuple[np.ndarray[Any, Any], fits.Header]:
    with fits.open(visitor.folder / name, memmap=False) as hdus:
        return hdus[hdu].data, hdus[hdu].header


# ---- Places


def test_circle_is_the_box_of_astropy(visitor: Visitor) -> None:
    """Around a pixel's centre, 10 pixels of radius: 21 x 21, as Cutout2D has them."""
    data, header = whole(visitor, "plain.fits")
    wcs = WCS(header)
    centre = wcs.pixel_to_world(120, 80)
    radius = 10 * 1e-4
    text = f"{centre.ra.deg:.12f} {centre.dec.deg:.12f} {radius}"
    expected = Cutout2D(data, centre, (21, 21), wcs)
    for given in ({"CIRCLE": text}, {"POS": f"CIRCLE {text}"}, {"pos": f"circle {text}"}):
        with visitor.cut(PLAIN, **given) as hdus:
            assert_same(hdus[0].data.astype("u2"), expected.data.astype("u2"))
            there = WCS(hdus[0].header).pixel_to_world(10, 10)
            assert there.separation(centre).arcsec < 1e-6
            assert hdus[0].header["FILTER"] == "r"


def test_polygon_and_range(visitor: Visitor) -> None:
    data, header = whole(visitor, "plain.fits")
    wcs = WCS(header)
    x, y = np.array([50.2, 99.8, 99.8, 50.2]), np.array([40.2, 40.2, 59.8, 59.8])
    sky = wcs.pixel_to_world(x, y)
    corners = " ".join(
        f"{lon:.12f} {lat:.12f}" for lon, lat in zip(sky.ra.deg, sky.dec.deg, strict=True)
    )
    for given in ({"POLYGON": corners}, {"POS": f"POLYGON {corners}"}):
        with visitor.cut(PLAIN, **given) as hdus:
            assert_same(np.array(hdus[0].data), data[40:61, 50:101])
    within = wcs.pixel_to_world(np.array([100, 60]), np.array([30, 45]))
    text = f"RANGE {within.ra.deg[0]} {within.ra.deg[1]} {within.dec.deg[0]} {within.dec.deg[1]}"
    with visitor.cut(PLAIN, POS=text) as hdus:
        assert_same(np.array(hdus[0].data), data[30:46, 60:101])
    # Open ends, and no ends at all.
    with visitor.cut(PLAIN, POS=f"RANGE -Inf +Inf {within.dec.deg[0]} Inf") as hdus:
        assert_same(np.array(hdus[0].data), data[30:])
    with visitor.cut(PLAIN) as hdus:
        assert_same(np.array(hdus[0].data), data)


def test_cut_off_at_the_border(visitor: Visitor) -> None:
    data, header = whole(visitor, "plain.fits")
    corner = WCS(header).pixel_to_world(0, 0)
    with visitor.cut(PLAIN, CIRCLE=f"{corner.ra.deg} {corner.dec.deg} 0.001") as hdus:
        assert_same(np.array(hdus[0].data), data[:11, :11])


def test_at_ra_zero_and_at_the_pole(visitor: Visitor) -> None:
    for name, place in (
        ("zero.fits", SkyCoord(359.999, 30.0, unit="deg")),
        ("zero.fits", SkyCoord(0.0, 30.0, unit="deg")),
        ("pole.fits", SkyCoord(0.0, 90.0, unit="deg")),
        ("pole.fits", SkyCoord(45.0, NEAR_POLE, unit="deg")),
    ):
        data, header = whole(visitor, name)
        wcs = WCS(header)
        x, y = wcs.world_to_pixel(place)
        with visitor.cut(did("made", name), CIRCLE=f"{place.ra.deg} {place.dec.deg} 0.002") as hdus:
            x0, y0 = int(np.floor(x - 20 + 0.5)), int(np.floor(y - 20 + 0.5))
            found = np.array(hdus[0].data)
            height, width = found.shape
            assert 40 <= height <= 42 and 40 <= width <= 42
            assert_same(found, data[y0 : y0 + height, x0 : x0 + width])


@pytest.mark.parametrize("kind", ["fit.gz", "fit.bz2", "fit.fz"])
def test_compressed_files_are_cut_the_same(visitor: Visitor, kind: str) -> None:
    hdu = 1 if kind == "fit.fz" else 0
    plain = swathe.cut(visitor.folder / f"packed.{kind}", box=(10, 20, 30, 40))
    found = visitor.pixels(did("made", f"packed.{kind}", hdu), SUB="[11:40,21:60]")
    assert_same(found.astype("u2"), plain.data.astype("u2"))


def test_pixel_boxes(visitor: Visitor) -> None:
    data, _ = whole(visitor, "plain.fits")
    with visitor.cut(PLAIN, SUB="[1:3,2:2]") as hdus:
        assert_same(np.array(hdus[0].data), data[1:2, :3])
    with visitor.cut(PLAIN, SUB="[399:1000,1:1]") as hdus:
        assert hdus[0].data.shape == (1, 2)
    assert visitor.sync(PLAIN, SUB="[401:402,1:2]").status_code == 204
    errors_of, _ = whole(visitor, "two.fits", 2)
    for text in ("[ERR][5:6,7:9]", "[2][5:6,7:9]", "[ERR,1][5:6,7:9]"):
        found = visitor.pixels(did("made", "two.fits", 1), SUB=text)
        assert_same(found, errors_of[6:9, 4:6])
    assert_same(visitor.pixels(did("made", "two.fits", 1), SUB="[ERR]"), errors_of)
    # An image without a place in the sky can be cut so too.
    with visitor.cut(did("made", "nowhere.fits"), SUB="[1:2,1:1]") as hdus:
        assert hdus[0].data.tolist() == [[0, 1]]


REAL = [
    ("sip-wcs.fits", 0),
    ("hst_wfc3_sample_flt.fits", 1),
    ("dist_lookup.fits.gz", 1),
    ("ukidss_wfcam_zpn.fits", 1),
    ("spitzer_example_image.fits", 0),
    ("1904-66_AZP.fits", 0),
    ("magpis_glon_sin.fits", 0),
    ("l1448_13co.fits", 0),
]


@pytest.mark.parametrize(("name", "hdu"), REAL)
def test_real_files(visitor: Visitor, name: str, hdu: int) -> None:
    """All distortions count; pixels are those of astropy, and the WCS still holds."""
    path = DATA / "sky" / name
    if not path.exists():
        pytest.skip(f"not there: {path}")
    with fits.open(path, memmap=False) as hdus:
        data, header = np.array(hdus[hdu].data), hdus[hdu].header
        wcs = WCS(header, hdus).celestial
    if not wcs.has_celestial:
        pytest.skip("no sky")
    height, width = data.shape[-2:]
    x, y = 0.4 * width, 0.6 * height
    centre = wcs.all_pix2world([[x, y]], 0)[0]
    frame = swathe.open(path)[hdu].sky
    direction = frame.pixel_to_vector(np.array([x]), np.array([y]))[0]
    lon, lat = (
        np.degrees(np.arctan2(direction[1], direction[0])),
        np.degrees(np.arcsin(direction[2])),
    )
    radius = 4.3 * max(frame.scales)
    with visitor.cut(did("sky", name, hdu), CIRCLE=f"{lon:.13f} {lat:.13f} {radius:.13f}") as cut:
        image = next(each for each in cut if each.data is not None)
        found, small = np.array(image.data), WCS(image.header, cut).celestial
    rows, columns = found.shape[-2:]
    assert 8 <= columns <= 16 and 8 <= rows <= 16
    # The same place in the sky is the same pixel of the whole.
    at = small.all_world2pix([centre], 0)[0]
    x0, y0 = round(x - at[0]), round(y - at[1])
    assert abs(x - at[0] - x0) < 1e-3 and abs(y - at[1] - y0) < 1e-3
    assert_same(found.astype("f8"), data[..., y0 : y0 + rows, x0 : x0 + columns].astype("f8"))


# ---- Cubes


def test_band_takes_planes(visitor: Visitor) -> None:
    data, _ = whole(visitor, "cube.fits")
    # Plane 2 is 101.5 to 102.5 GHz, 3 up to 103.5.
    for low, high, planes in (
        (102e9, 103e9, slice(2, 4)),
        (101.6e9, 102.4e9, slice(2, 3)),
        (0, 101e9, slice(0, 2)),
        (104.9e9, 1e15, slice(5, 6)),
    ):
        shortest = "0" if high > 1e14 else repr(C / high)
        longest = "+Inf" if low == 0 else repr(C / low)
        with visitor.cut(CUBE, BAND=f"{shortest} {longest}") as hdus:
            assert_same(np.array(hdus[0].data), data[:, planes])
            assert WCS(hdus[0].header).wcs.crpix[2] == 1 - planes.start
    with visitor.cut(CUBE, BAND=repr(C / 102e9)) as hdus:
        assert hdus[0].data.shape == (4, 1, 40, 50)
    assert visitor.sync(CUBE, BAND="1e-7 1e-6").status_code == 204


def test_states_of_polarization(visitor: Visitor) -> None:
    data, _ = whole(visitor, "cube.fits")
    with visitor.cut(CUBE, POL="Q") as hdus:
        assert_same(np.array(hdus[0].data), data[1:2])
    with visitor.cut(CUBE, POL=["U", "q"]) as hdus:
        assert_same(np.array(hdus[0].data), data[1:3])
    with visitor.cut(CUBE, POL=["V", "I"]) as hdus:
        assert_same(np.array(hdus[0].data), data)
    assert visitor.sync(CUBE, POL="RR").status_code == 204
    assert "expected an image with a polarization axis" in visitor.refused(PLAIN, POL="I")


def test_time_takes_planes(visitor: Visitor) -> None:
    data, _ = whole(visitor, "film.fits")
    with visitor.cut(FILM, TIME=f"{BEGIN_MJD + 2.5} {BEGIN_MJD + 4.5}") as hdus:
        assert_same(np.array(hdus[0].data), data[2:5])
    assert visitor.sync(FILM, TIME=f"-Inf {BEGIN_MJD - 1}").status_code == 204


def test_all_at_once(visitor: Visitor) -> None:
    data, header = whole(visitor, "cube.fits")
    centre = WCS(header).celestial.pixel_to_world(20, 10)
    given = {
        "CIRCLE": f"{centre.ra.deg} {centre.dec.deg} 3e-4",
        "BAND": f"{C / 103e9!r} {C / 102e9!r}",
        "POL": ["I", "Q"],
    }
    with visitor.cut(CUBE, **given) as hdus:
        assert_same(np.array(hdus[0].data), data[:2, 2:4, 7:14, 17:24])


def test_images_are_taken_or_left_by_band_and_time(visitor: Visitor) -> None:
    assert visitor.sync(PLAIN, BAND="6e-7 7e-7", SUB="[1:2,1:2]").status_code == 200
    assert visitor.sync(PLAIN, BAND="1e-6 +Inf", SUB="[1:2,1:2]").status_code == 204
    assert visitor.sync(PLAIN, TIME="53633.2 53633.3", SUB="[1:2,1:2]").status_code == 204
    assert visitor.sync(PLAIN, TIME="53633.187 53633.19", SUB="[1:2,1:2]").status_code == 200
    assert "BAND: expected an image with BAND in its header" in visitor.refused(
        did("made", "zero.fits"), BAND="1e-7 1e-6"
    )


# ---- Clients


def test_pyvo_sends_what_we_read(visitor: Visitor) -> None:
    """GET and POST, all that SodaQuery has."""
    data, header = whole(visitor, "cube.fits")
    centre = WCS(header).celestial.pixel_to_world(20, 10)
    place = (centre.ra, centre.dec, 3e-4 * u.deg)
    for post in (False, True):
        query = SodaQuery(f"{visitor.base}/sync", id=CUBE, circle=place)
        query.band = [102, 103] * u.GHz
        query.pol.add("I")
        query.pol.add("Q")
        found = query.execute_stream(post=post).read()
        query.raise_if_error()
        with fits.open(BytesIO(found)) as hdus:
            assert_same(np.array(hdus[0].data), data[:2, 2:4, 7:14, 17:24])
        film = SodaQuery(f"{visitor.base}/sync", id=FILM)
        film.time.add(tuple(Time([BEGIN_MJD + 2.5, BEGIN_MJD + 4.5], format="mjd")))
        film.pos.add((160 * u.deg, 2 * u.deg, 1e-3 * u.deg))
        with fits.open(BytesIO(film.execute_stream(post=post).read())) as hdus:
            assert hdus[0].data.shape[0] == 3
    corners = (149.999, 1.999, 150.001, 1.999, 150.001, 2.001)
    query = SodaQuery(f"{visitor.base}/sync", id=CUBE, polygon=corners * u.deg)
    assert query.execute_stream().read().startswith(b"SIMPLE")


def test_names_that_need_encoding(visitor: Visitor) -> None:
    name = "a%20b%2Bc%2Cd%23%C3%A9.fits"
    with visitor.cut(did("made", name), SUB="[1:2,1:1]") as hdus:
        assert hdus[0].data.shape == (1, 2)
    # As a person would paste it into a browser.
    pasted = f"{visitor.base}/sync?ID={did('made', 'plain.fits')}&SUB=[1:2,1:1]"
    assert visitor.client.get(pasted).status_code == 200


def test_what_an_answer_says_of_itself(visitor: Visitor) -> None:
    answer = visitor.sync(PLAIN, SUB="[11:12,21:22]", RUNID="x", unknown="y", BAND="")
    assert answer.headers["content-disposition"] == 'attachment; filename="plain-0-11-21.fits"'
    assert int(answer.headers["content-length"]) == len(answer.content)
    empty = visitor.sync(PLAIN, CIRCLE="50 50 1")
    assert empty.status_code == 204 and empty.content == b""


def test_previews(visitor: Visitor) -> None:
    answer = visitor.sync(PLAIN, SUB="[1:40,1:30]", RESPONSEFORMAT="image/png")
    assert answer.headers["content-type"] == "image/png"
    with Image.open(BytesIO(answer.content)) as picture:
        assert picture.size == (40, 30)
    cube = visitor.sync(CUBE, RESPONSEFORMAT="image/png")
    with Image.open(BytesIO(cube.content)) as picture:
        assert picture.size == (50, 40)


def test_multipart_form(visitor: Visitor) -> None:
    fields = [("ID", (None, PLAIN)), ("sub", (None, "[1:2,1:1]"))]
    answer = visitor.client.post("sync", files=fields)
    assert answer.status_code == 200, answer.text


def test_changed_file_is_seen(visitor: Visitor) -> None:
    """Also by who has it open."""
    name = "zero.fits"
    identifier = did("made", name)
    with visitor.cut(identifier, SUB="[1:1,1:1]") as hdus:
        before = int(hdus[0].data[0, 0])
    path = visitor.folder / name
    content = bytearray(path.read_bytes())
    try:
        with fits.open(BytesIO(bytes(content))) as hdus:
            hdus[0].data[0, 0] = before + 7
            changed = BytesIO()
            hdus.writeto(changed)
        path.write_bytes(changed.getvalue())
        with visitor.cut(identifier, SUB="[1:1,1:1]") as hdus:
            assert int(hdus[0].data[0, 0]) == before + 7
    finally:
        path.write_bytes(content)


# ---- What is wrong


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"CIRCLE": "10 -1"}, "CIRCLE: expected ra, dec and radius"),
        ({"CIRCLE": "10 -1 x"}, "CIRCLE: expected numbers"),
        ({"CIRCLE": "10 -91 1"}, "declination"),
        ({"CIRCLE": "1000 0 1"}, "right ascension"),
        ({"CIRCLE": "10 -1 -1"}, "radius"),
        ({"CIRCLE": "10 -1 181"}, "radius"),
        ({"CIRCLE": "10 -1 Inf"}, "finite"),
        ({"CIRCLE": "10 -1 nan"}, "expected numbers"),
        ({"CIRCLE": "10,-1,1"}, "separated by blanks"),
        ({"CIRCLE": "1e999 0 1"}, "finite"),
        ({"CIRCLE": "\u0661\u0660 0 1"}, "expected numbers"),
        ({"POS": "CIRCLE"}, "POS CIRCLE: expected"),
        ({"POS": "BOX 1 2 3 4"}, "POS: expected CIRCLE, RANGE or POLYGON"),
        ({"POS": "RANGE 1 2 3"}, "POS RANGE: expected ra1 ra2 dec1 dec2"),
        ({"POS": "RANGE 1 2 4 3"}, "dec1 <= dec2"),
        ({"POS": "RANGE 1 400 3 4"}, "from 0 to 360"),
        ({"POS": "RANGE 1 2 -91 -90.5"}, "-90 <= dec1"),
        ({"POLYGON": "1 1 2 2"}, "3 or more corners"),
        ({"POLYGON": "1 1 2 2 3"}, "3 or more corners"),
        ({"POLYGON": "1 1 1 1 1 1"}, "three different corners"),
        ({"POLYGON": "0 0 120 0 240 0"}, "85 degrees"),
        ({"POLYGON": "1 " * 2001}, "at most 2000 numbers"),
        ({"BAND": "2 1"}, "smaller number first"),
        ({"BAND": "-2 -1"}, "metres"),
        ({"BAND": "1 2 3"}, "two numbers"),
        ({"BAND": "Inf Inf"}, "smaller number first"),
        ({"TIME": "2005-09-20"}, "TIME: expected numbers"),
        ({"TIME": "-Inf -Inf"}, "smaller number first"),
        ({"POL": "W"}, "POL: expected one of I, Q"),
        ({"BAND": "1\x00"}, "NUL"),
        ({"SUB": "1:2,3:4"}, "SUB: expected [ext][x1:x2,y1:y2]"),
        ({"SUB": "[2:1,1:2]"}, "counts from 1 upwards"),
        ({"SUB": "[0:1,1:2]"}, "counts from 1 upwards"),
        ({"SUB": "[1:2]"}, "a section is written"),
        ({"SUB": "[9][1:2,1:2]"}, "HDU"),
        ({"SUB": "[NONE][1:2,1:2]"}, "NONE"),
        ({"SUB": "[1:99999999999999999999,1:2]"}, "finite number of pixels"),
        ({"RESPONSEFORMAT": "image/jpeg"}, "RESPONSEFORMAT: expected application/fits"),
    ],
)
def test_bad_values_are_told(visitor: Visitor, given: dict[str, Any], words: str) -> None:
    assert words in visitor.refused(PLAIN, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"CIRCLE": ["10 -1 1", "11 -1 1"]},
        {"CIRCLE": "10 -1 1", "POS": "CIRCLE 10 -1 1"},
        {"SUB": "[1:2,1:2]", "CIRCLE": "10 -1 1"},
        {"BAND": ["1 2", "3 4"]},
        {"TIME": ["1 2", "3 4"]},
        {"RESPONSEFORMAT": ["image/png", "application/fits"]},
    ],
)
def test_one_value_of_each(visitor: Visitor, given: dict[str, Any]) -> None:
    visitor.refused(PLAIN, label="MultiValuedParamNotSupported", **given)
    two = visitor.client.get("sync", params={"ID": [PLAIN, CUBE]})
    assert two.text.startswith("MultiValuedParamNotSupported: ID")


@pytest.mark.parametrize(
    "identifier",
    [
        "x",
        "ivo://archive.example/made?nothing.fits,0",
        "ivo://archive.example/made?plain.fits,1",
        "ivo://archive.example/made?plain.fits",
        "ivo://archive.example/other?plain.fits,0",
        "ivo://elsewhere/made?plain.fits,0",
        "ivo://archive.example/made?../made/plain.fits,0",
        "ivo://archive.example/made?%2e%2e/portal.sqlite,0",
        "ivo://archive.example/made?/etc/passwd,0",
        "ivo://archive.example/made?%00,0",
        "/etc/passwd",
        "made:plain.fits",
        "ivo://archive.example/made?" + "x" * 5000 + ",0",
    ],
)
def test_ids_that_are_none(visitor: Visitor, identifier: str) -> None:
    assert "ID: " in visitor.refused(identifier, status=404)


def test_what_lacks(visitor: Visitor) -> None:
    assert "ID: expected an image" in visitor.refused()
    assert "no celestial axes" in visitor.refused(did("made", "nowhere.fits"), CIRCLE="1 1 1")
    long = visitor.client.post("sync", data={"ID": PLAIN, "POLYGON": "1 " * 60_000})
    assert long.status_code == 400 and "expected at most 100000 characters" in long.text
    many = visitor.client.post("sync", data={f"a{n}": "1" for n in range(10_001)})
    assert many.status_code == 400 and "at most 10000 parameters" in many.text
    kind = visitor.client.post("sync", content=b"{}", headers={"content-type": "application/json"})
    assert kind.status_code == 415 and kind.text.startswith("UsageError")
    large = visitor.client.post("sync", data={"X": "1" * 5_000_000})
    assert large.status_code == 413 and large.text.startswith("UsageError")


def test_large_answers_share_a_memory() -> None:
    memory = ResponseMemory(100)
    first = memory.take(60)
    with pytest.raises(VoError, match="too many large cuts") as refused:
        memory.take(60)
    assert refused.value.status == 503 and "Retry-After" in refused.value.headers
    first.release()
    first.release()
    second = memory.take(100)
    del second
    memory.take(100)


def test_large_cut(visitor: Visitor) -> None:
    """More than is cut where the request comes in; more than is cut at once."""
    path = visitor.folder / "plain.fits"
    kept = path.read_bytes()
    header = fits.getheader(path)
    try:
        data = np.arange(1200 * 1000, dtype="i4").reshape(1000, 1200)
        fits.PrimaryHDU(data, header).writeto(path, overwrite=True)
        with visitor.cut(PLAIN, SUB="[1:1200,1:900]") as hdus:
            assert_same(np.array(hdus[0].data), data[:900].astype(">i4"))
        answer = visitor.sync(PLAIN, SUB="[1:1199,1:900]")
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert len(answer.content) % 2880 == 0
        end = -(1199 * 900 * 4) % 2880
        assert end and answer.content[-end:] == bytes(end)
        with path.open("r+b") as file:
            huge = fits.Header(header, copy=True)
            huge["NAXIS1"], huge["NAXIS2"], huge["BITPIX"] = 10_000, 10_000, -32
            text = huge.tostring()
            file.write(text.encode())
            file.truncate(len(text) + 400_000_320)
        assert "at most 256 MB" in visitor.refused(PLAIN, SUB="[1:9000,1:9000]", status=413)
        preview = visitor.client.get("preview", params={"ID": PLAIN})
        with Image.open(BytesIO(preview.content)) as picture:
            assert 256 < max(picture.size) <= 512
    finally:
        path.write_bytes(kept)


def test_file_that_is_gone(visitor: Visitor) -> None:
    path = visitor.folder / "film.fits"
    away = path.with_suffix(".away")
    path.rename(away)
    try:
        told = visitor.refused(FILM, SUB="[1:2,1:2]", status=404)
        assert "made:film.fits" in told and str(visitor.folder) not in told
    finally:
        away.rename(path)


def test_file_that_is_damaged(visitor: Visitor) -> None:
    """It is no fault of the service, and to ask again does not help."""
    path = visitor.folder / "film.fits"
    kept = path.read_bytes()
    path.write_bytes(kept[:3000])
    try:
        told = visitor.refused(FILM, label="Error", status=422)
        assert "made:film.fits: ends at byte 3000" in told and str(visitor.folder) not in told
        visitor.refused(FILM, label="Error", status=422, RESPONSEFORMAT="image/png")
        assert visitor.client.get("preview", params={"ID": FILM}).status_code == 422
    finally:
        path.write_bytes(kept)


def test_tokens_are_asked_for(tmp_path: Any) -> None:
    with visited(tmp_path, '[access]\ntokens = "required"\n', real=False) as closed:
        answer = closed.sync(PLAIN, SUB="[1:2,1:2]")
        assert answer.status_code == 401
        assert answer.text.startswith("AuthenticationError: ")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.more
def test_a_large_answer_to_a_fast_client_lets_others_run_between_its_pieces() -> None:
    turns: list[str] = []

    async def send(message: Any) -> None:
        """Take a message at once, as a connection does whose client reads fast."""
        if message["type"] == "http.response.body" and message["body"]:
            turns.append("piece")

    async def other(sending: asyncio.Future[None]) -> None:
        while not sending.done():
            turns.append("other")
            await asyncio.sleep(0)

    async def both() -> None:
        share = ResponseMemory().take(4 * PIECE_BYTES)
        response = LargeResponse(share, [bytes(4 * PIECE_BYTES)], {}, "application/fits")
        sending = asyncio.ensure_future(response({}, None, send))  # type: ignore[arg-type]
        await other(sending)

    asyncio.run(both())
    assert turns.count("piece") == 4
    assert ("piece", "piece") not in pairwise(turns)
