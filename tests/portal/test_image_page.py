"""The page of an image and what it draws from; astropy and NumPy are the judges."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from astropy import units
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.wcs import WCS
from PIL import Image

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.support.browser import PHONE, OpenPage, keep
from tests.support.fits_frames import noise, sky_header
from tests.support.portals import RunningPortal, database_in, served

VEGA = (279.2347, 38.7837)
SHAPE = (700, 900)


def frame_header(turn_deg: float, band: str) -> fits.Header:
    """Cards of a frame whose north is turned, with Vega at the pixel (500, 400), from 0."""
    header = sky_header(*VEGA, pixel_deg=2e-4)
    header["CRPIX1"], header["CRPIX2"], header["FILTER"] = 501.0, 401.0, band
    header["DATE-OBS"], header["EXPTIME"], header["BUNIT"] = "2005-05-01T12:00:00", 10.0, "ct"
    cos, sin = np.cos(np.radians(turn_deg)), np.sin(np.radians(turn_deg))
    for key, value in (("PC1_1", cos), ("PC1_2", -sin), ("PC2_1", sin), ("PC2_2", cos)):
        header[key] = float(value)
    return header


def pixels_of(seed: int) -> np.ndarray:
    pixels = noise(seed, SHAPE).astype(np.float32)
    pixels[396:405, 496:505] = 5000  # a star
    pixels[:20, :30] = np.nan
    return pixels


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    """A portal with three frames of Vega, turned differently, and a cube."""
    folder = tmp_path_factory.mktemp("image")
    frames = folder / "frames"
    frames.mkdir()
    for number, (turn, band) in enumerate(((0, "r"), (35, "g"), (180, "r"))):
        header = frame_header(turn, band)
        fits.PrimaryHDU(pixels_of(number), header).writeto(frames / f"f{number}.fits")
    cube = sky_header(50.0, 10.0)
    cube.update({"CTYPE3": "WAVE", "CRVAL3": 5e-7, "CDELT3": 1e-9, "CRPIX3": 1.0, "CUNIT3": "m"})
    values = np.arange(12 * 40 * 50, dtype=np.float32).reshape(12, 40, 50)
    fits.PrimaryHDU(values, cube).writeto(frames / "cube.fits")
    fits.PrimaryHDU(np.arange(40.0)).writeto(frames / "line.fits")
    sun = sky_header()
    sun["CTYPE1"], sun["CTYPE2"] = "HPLN-TAN", "HPLT-TAN"
    fits.PrimaryHDU(noise(8), sun).writeto(frames / "sun.fits")
    huge = fits.PrimaryHDU(np.zeros((1, 1), np.int16)).header
    huge["NAXIS1"], huge["NAXIS2"] = 1_000_000, 1_000_000
    content = huge.tostring().encode()
    with (frames / "huge.fits").open("wb") as file:
        file.write(content.replace(b"conforms", b"con\x1b\x00\x07ms"))
        file.truncate(len(content) + 2_000_000_000_000)
    fits.PrimaryHDU(np.full((30, 40), 7.0)).writeto(frames / "plain <b>.fits")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("frames", str(frames))
        catalog.add_dataset("stars", "frames", "", "*.fits")
        scan(catalog, "stars", list_objects(store, "", "*.fits"))
    with served(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=portal.url, timeout=60) as visitor:
        yield visitor


def did(name: str) -> str:
    return f"ivo://swathe.invalid/stars?{quote(name)},0"


def ask(client: httpx.Client, what: str, name: str, **values: Any) -> dict[str, Any]:
    answer = client.get(f"/vo/image/{what}", params={"ID": did(name), **values})
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def picture(client: httpx.Client, path: str, **values: Any) -> np.ndarray:
    """Return a picture as red, green, blue and opacity."""
    answer = client.get(path, params=values)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(answer.content)) as image:
        return np.asarray(image.convert("RGBA")).astype(int)


def test_the_page(client: httpx.Client) -> None:
    answer = client.get("/image", params={"ID": did("f0.fits")})
    assert answer.status_code == 200
    for text in (
        "f0.fits",
        "900 \N{MULTIPLICATION SIGN} 700",
        "band r",
        "frames:f0.fits",
        "RA 279.",
        "New job here",
    ):
        assert text in answer.text
    # The others of the place, by band: g before r, and not itself.
    stamps = [name for name in ("f1.fits", "f2.fits") if f'alt="{name}"' in answer.text]
    assert stamps == ["f1.fits", "f2.fits"]
    assert answer.text.index('alt="f1.fits"') < answer.text.index('alt="f2.fits"')
    assert "cube.fits" not in answer.text
    assert len(answer.content) < 200_000


def test_an_image_without_a_sky(client: httpx.Client) -> None:
    answer = client.get("/image", params={"ID": did("plain <b>.fits")})
    assert answer.status_code == 200
    assert "<b>" not in answer.text and "plain &lt;b&gt;.fits" in answer.text
    assert "no sky" in answer.text and "New job here" not in answer.text
    about = ask(client, "description", "plain <b>.fits")
    assert (about["sky"], about["black"], about["white"]) == (None, 7.0, 8.0)
    assert ask(client, "value", "plain <b>.fits", X=3, Y=4)["ra"] is None


def test_an_image_of_the_sun_has_values_and_no_place_among_stars(client: httpx.Client) -> None:
    assert ask(client, "description", "sun.fits")["sky"] is None
    value = ask(client, "value", "sun.fits", X=3, Y=4)
    assert (value["value"], value["ra"]) == (float(noise(8)[4, 3]), None)


def test_the_header_and_a_search_in_it(client: httpx.Client) -> None:
    answer = client.get("/image/header", params={"ID": did("f0.fits")})
    assert "CTYPE1  = &#39;RA---TAN&#39;" in answer.text
    answer = client.get("/image/header", params={"ID": did("f0.fits"), "find": "crval"})
    assert "CRVAL2" in answer.text and "CTYPE1" not in answer.text
    assert (
        "No card"
        in client.get("/image/header", params={"ID": did("f0.fits"), "find": "<script>"}).text
    )


def test_control_characters_of_a_header_are_not_sent(client: httpx.Client) -> None:
    answer = client.get("/image/header", params={"ID": did("huge.fits")})
    assert "con\N{REPLACEMENT CHARACTER}" in answer.text
    assert not any(ord(each) < 32 and each not in "\n" for each in answer.text)


def test_equal_requests_at_the_same_time_have_one_answer(portal: RunningPortal) -> None:
    address = f"{portal.url}/vo/preview"
    with ThreadPoolExecutor(8) as pool:
        ask_huge = partial(httpx.get, address, params={"ID": did("huge.fits")}, timeout=60)
        ask_small = partial(httpx.get, address, params={"ID": did("f2.fits")}, timeout=60)
        answers = [pool.submit(work) for work in (ask_huge, ask_small) * 8]
        codes = [each.result().status_code for each in answers]
    assert codes == [400, 200] * 8


@pytest.mark.parametrize("number", [0, 1, 2])
def test_values_positions_and_north_agree_with_astropy(client: httpx.Client, number: int) -> None:
    name = f"f{number}.fits"
    header = frame_header((0, 35, 180)[number], "r")
    pixels, wcs = pixels_of(number), WCS(header)
    for x, y in ((0, 0), (899, 699), (500, 400), (123, 456)):
        value = ask(client, "value", name, X=x, Y=y)
        expected = pixels[y, x]
        assert value["value"] == (None if np.isnan(expected) else float(expected))
        sky = wcs.pixel_to_world(x, y)
        assert SkyCoord(value["ra"], value["dec"], unit="deg").separation(sky).arcsec < 1e-4
        galactic = SkyCoord(value["l"], value["b"], unit="deg", frame="galactic")
        assert galactic.separation(sky).arcsec < 1e-3
    about = ask(client, "description", name)
    assert (about["width"], about["height"], about["levels"]) == (900, 700, 3)
    assert about["unit"] == "ct" and 1000 < about["black"] < about["white"] < 1300
    assert about["sky"]["pixel_deg"] == pytest.approx(2e-4)
    centre = wcs.pixel_to_world(449.5, 349.5)
    for name_of_step, angle in (("north", 0), ("east", 90)):
        end = centre.directional_offset_by(angle * units.deg, 2e-4 * units.deg)
        x, y = wcs.world_to_pixel(end)
        assert about["sky"][name_of_step] == pytest.approx([x - 449.5, y - 349.5], abs=1e-3)
    at = ask(client, "pixel", name, RA=VEGA[0], DEC=VEGA[1])
    assert (at["x"], at["y"]) == (pytest.approx(500, abs=1e-3), pytest.approx(400, abs=1e-3))


def test_tiles_have_the_pixels_of_the_image(client: httpx.Client) -> None:
    path, values = "/vo/image/tile", {"ID": did("f0.fits"), "BLACK": 1000, "WHITE": 1254}
    values |= {"STRETCH": "linear", "LEVEL": 2, "COLUMN": 1, "ROW": 1}
    tile = picture(client, path, **values)
    expected = np.clip(pixels_of(0)[::-1][256:512, 256:512] - 1000, 0, 254)
    shades = np.rint(expected)
    # A picture has 255 steps of grey from 0 to 254.
    assert np.abs(tile[..., 0] - shades).max() <= 1
    assert (tile[..., 3] == 255).all()
    lowest = picture(client, path, **values | {"COLUMN": 0, "ROW": 2})
    assert lowest.shape[:2] == (700 - 512, 256)
    assert (lowest[-20:, :30, 3] == 0).all() and (lowest[:-20, :, 3] == 255).all()
    inverted = picture(client, path, **values | {"INVERT": 1})
    assert np.abs(inverted[..., 0] + tile[..., 0] - 255).max() <= 2
    colours = picture(client, path, **values | {"COLOURS": "thermal"})
    assert (colours[..., 0] != colours[..., 2]).any()


def test_the_preview_is_of_the_whole_image(client: httpx.Client) -> None:
    preview = picture(client, "/vo/preview", ID=did("f0.fits"))
    assert preview.shape[:2] == (350, 450)
    # The star, from the top.
    assert preview[(699 - 400) // 2, 250, 0] == preview[preview[..., 3] > 0, 0].max()
    assert (preview[-10:, :15, 3] == 0).all()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_same_place_is_in_the_middle_with_north_up(client: httpx.Client, number: int) -> None:
    values = {"ID": did(f"f{number}.fits"), "RA": VEGA[0], "DEC": VEGA[1], "SIZE": 0.0256}
    values |= {"STRETCH": "linear", "BLACK": 1000, "WHITE": 5000}
    pixels = picture(client, "/vo/image/place", **values)
    assert pixels.shape[:2] == (256, 256)
    y, x = np.nonzero(pixels[..., 0] > 200)
    assert (y.mean(), x.mean()) == (pytest.approx(127.5, abs=1.5), pytest.approx(127.5, abs=1.5))
    # 9 pixels of 2e-4 degrees are 18 of the picture's.
    assert len(x) == pytest.approx(18 * 18, rel=0.15)


def test_north_and_east_of_a_place(client: httpx.Client) -> None:
    star = SkyCoord(*VEGA, unit="deg")
    for angle, (row, column) in ((0, (1, 0)), (90, (0, 1))):
        off = star.directional_offset_by(angle * units.deg, 0.008 * units.deg)
        values = {"ID": did("f1.fits"), "RA": off.ra.deg, "DEC": off.dec.deg, "SIZE": 0.0256}
        values |= {"STRETCH": "linear", "BLACK": 1000, "WHITE": 5000}
        pixels = picture(client, "/vo/image/place", **values)
        y, x = np.nonzero(pixels[..., 0] > 200)
        # Seen from a place north of it, the star is below; from one east of it, to the right.
        assert y.mean() == pytest.approx(127.5 + 80 * row, abs=2)
        assert x.mean() == pytest.approx(127.5 + 80 * column, abs=2)


def test_the_spectrum_of_a_cube(client: httpx.Client) -> None:
    answer = ask(client, "spectrum", "cube.fits", X=7, Y=5)
    values = np.arange(12 * 40 * 50, dtype=np.float32).reshape(12, 40, 50)
    assert answer["values"] == values[:, 5, 7].tolist()
    assert answer["wavelengths_m"] == pytest.approx(5e-7 + 1e-9 * np.arange(12))
    assert ask(client, "value", "cube.fits", X=7, Y=5, PLANE=11)["value"] == values[11, 5, 7]


@pytest.mark.parametrize(
    ("path", "values", "code", "why"),
    [
        ("tile", {"LEVEL": 9, "COLUMN": 0, "ROW": 0, "BLACK": 0, "WHITE": 1}, 400, "level"),
        ("tile", {"LEVEL": 0, "COLUMN": 0, "ROW": 0}, 400, "BLACK, WHITE"),
        ("tile", {"LEVEL": "x", "COLUMN": 0, "ROW": 0}, 400, "LEVEL: expected a number"),
        ("tile", {"LEVEL": 0, "COLUMN": 0, "ROW": 0, "BLACK": 2, "WHITE": 1}, 400, "below white"),
        ("value", {"X": 900, "Y": 0}, 400, "expected a pixel of 900 x 700"),
        ("value", {"X": "9" * 40, "Y": 0}, 400, "X: expected a number"),
        ("value", {"X": 0, "Y": 0, "PLANE": "1"}, 400, "PLANE|plane"),
        ("spectrum", {"X": 0, "Y": 0}, 400, "third axis"),
        ("place", {"RA": 10, "DEC": 10, "SIZE": 0.1}, 400, "found other positions"),
        ("place", {"RA": 10, "DEC": 10, "SIZE": 1e9}, 400, "SIZE"),
        ("place", {"RA": "nan", "DEC": 10, "SIZE": 1}, 400, "RA: expected a number"),
        ("description", {"ID": "ivo://swathe.invalid/stars?none.fits,0"}, 404, "no such image"),
        ("description", {"ID": did("line.fits")}, 400, "has no plane"),
        ("description", {"ID": did("huge.fits")}, 400, "whose picture needs at most"),
        ("place", {"ID": did("huge.fits"), "RA": 0, "DEC": 0, "SIZE": 1}, 400, "found other"),
    ],
)
def test_what_cannot_be_drawn(
    client: httpx.Client, path: str, values: dict[str, Any], code: int, why: str
) -> None:
    answer = client.get(f"/vo/image/{path}", params={"ID": did("f0.fits"), **values})
    assert answer.status_code == code, answer.text
    assert re.search(why, answer.text), answer.text


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"ID": "ivo://swathe.invalid/stars?none.fits,0"}, 404),
        ({"ID": "nothing"}, 404),
        ({"ID": did("f0.fits"), "ra": 10}, 422),
        ({"ID": did("f0.fits"), "ra": 10, "dec": 100}, 422),
        ({"ID": did("f0.fits"), "ra": "nan", "dec": 0}, 422),
        ({}, 422),
    ],
)
def test_pages_that_there_are_not(client: httpx.Client, values: dict[str, Any], code: int) -> None:
    assert client.get("/image", params=values).status_code == code


@pytest.mark.more
@pytest.mark.parametrize("size", [None, PHONE])
def test_the_viewer(portal: RunningPortal, opened: OpenPage, size: Any, tmp_path: Path) -> None:
    settings = {} if size is None else {"viewport": size}
    address = f"{portal.url}/image?ID={quote(did('f0.fits'), safe='')}"
    page = opened(address, portal.url, **settings)
    page.wait_for_selector("[data-ready]")
    stage = page.locator("[data-image]")
    box = stage.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("[data-readout]", has_text="ICRS").wait_for()
    readout = page.locator("[data-readout]").inner_text()
    assert "ct" in readout and "18:3" in readout
    page.select_option("#colours", "thermal")
    page.keyboard.press("Tab")
    stage.locator(".openseadragon-canvas").focus()
    page.keyboard.press("+")
    page.wait_for_timeout(1000)
    cut = page.locator("[data-cut]").get_attribute("href")
    assert cut is not None
    cutout = httpx.get(portal.url + cut)
    assert fits.getdata(io.BytesIO(cutout.content)).shape < SHAPE
    page.click("[data-blink-step='1']")
    page.locator("[data-blink] figcaption", has_text="2 of 3").wait_for()
    page.click("[data-blink-start]")
    page.locator("[data-blink] figcaption", has_text="3 of 3").wait_for()
    page.click("[data-blink-start]")
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    keep(page, f"image-{'phone' if size else 'wide'}")


@pytest.mark.more
def test_the_spectrum_and_planes_of_a_cube(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/image?ID={quote(did('cube.fits'), safe='')}", portal.url)
    page.wait_for_selector("[data-ready]")
    page.locator("[data-image] .openseadragon-canvas").click(position={"x": 300, "y": 200})
    page.wait_for_selector("[data-spectrum]:not([hidden])")
    assert "12 planes, 500 to 511 nm" in page.locator("[data-spectrum] figcaption").inner_text()
    line = page.locator("[data-spectrum] path.values").bounding_box()
    assert line is not None and line["height"] > 50
    slider = page.locator("#plane-0")
    slider.focus()
    for _ in range(11):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-image][data-drawing='11']")
    assert slider.input_value() == "12"
    # Its values lie above those of the first plane, whose limits are kept.
    with Image.open(io.BytesIO(page.locator("[data-image]").screenshot())) as picture:
        pixels = np.asarray(picture.convert("RGB"))
        assert pixels[pixels.shape[0] // 2, pixels.shape[1] // 2].min() > 250


@pytest.mark.more
def test_without_scripts(portal: RunningPortal, opened: OpenPage) -> None:
    address = f"{portal.url}/image?ID={quote(did('f0.fits'), safe='')}"
    page = opened(address, portal.url, java_script_enabled=False)
    assert page.locator("[data-still]").is_visible()
    assert not page.locator(".scripted").first.is_visible()
