"""The map of the sky: cells and outlines compared with an independent HEALPix, and in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import astropy.units as u
import httpx
import numpy as np
import pytest
from astropy.coordinates import Latitude, Longitude
from astropy.io import fits
from cdshealpix import nested

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.support.browser import PHONE, OpenPage, keep
from tests.support.fits_frames import noise, sky_header
from tests.support.portals import RunningPortal, database_in, served

PLACES = ((10.0, -1.0), (10.02, -1.0), (200.0, 60.0), (0.0, 89.9))


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    """A portal with four images on the sky and one without a place."""
    folder = tmp_path_factory.mktemp("sky")
    frames = folder / "frames"
    frames.mkdir()
    for number, (ra, dec) in enumerate(PLACES):
        path = frames / f"f{number}.fits"
        fits.PrimaryHDU(noise(number), sky_header(ra, dec)).writeto(path)
    fits.PrimaryHDU(noise(9)).writeto(frames / "nowhere.fits")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("frames", str(frames))
        catalog.add_dataset("stars", "frames", "", "*.fits")
        scan(catalog, "stars", list_objects(store, "", "*.fits"))
        catalog.add_dataset("empty", "frames", "none", None)
    with served(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=portal.url, timeout=60) as visitor:
        yield visitor


def ask(client: httpx.Client, path: str, **values: Any) -> dict[str, Any]:
    answer = client.get(path, params=values)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


@pytest.mark.parametrize("order", [2, 4, 6])
def test_cells_hold_the_images(client: httpx.Client, order: int) -> None:
    content = ask(client, "/sky/cells.json", order=order)
    counts = dict(zip(content["cells"], content["counts"], strict=True))
    ra, dec = np.array(PLACES).T
    at = nested.lonlat_to_healpix(Longitude(ra, u.deg), Latitude(dec, u.deg), order)
    assert set(at.tolist()) <= set(counts)
    # Images of 0.04 degree touch few cells of a degree.
    assert len(counts) <= 4 * len(PLACES)
    assert counts[int(at[0])] >= 2  # two images side by side
    assert ask(client, "/sky/cells.json", order=order, dataset="empty")["cells"] == []


def test_cells_without_compression(client: httpx.Client) -> None:
    plain = client.get(
        "/sky/cells.json", params={"order": 3}, headers={"Accept-Encoding": "identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.json() == ask(client, "/sky/cells.json", order=3)


def test_outlines_near_a_place(client: httpx.Client) -> None:
    content = ask(client, "/sky/outlines.json", ra=10, dec=-1, radius=1)
    images = {each["name"]: each for each in content["images"]}
    assert set(images) == {"f0.fits", "f1.fits"}
    assert not content["more"]
    corners = np.array(images["f0.fits"]["outline"]).reshape(-1, 2)
    assert np.abs(corners - PLACES[0]).max() < 0.04
    page = client.get(images["f0.fits"]["url"])
    assert page.status_code == 200 and "f0.fits" in page.text
    # Over the pole and over right ascension 0.
    polar = ask(client, "/sky/outlines.json", ra=-180, dec=89, radius=2)
    assert [each["name"] for each in polar["images"]] == ["f3.fits"]
    everything = ask(client, "/sky/outlines.json", ra=0, dec=0, radius=180)
    assert len(everything["images"]) == len(PLACES)


@pytest.mark.parametrize(
    ("path", "values", "code"),
    [
        ("/sky/cells.json", {"order": 20}, 422),
        ("/sky/cells.json", {"order": 4, "dataset": "none"}, 404),
        ("/sky/outlines.json", {"ra": "nan", "dec": 0, "radius": 1}, 422),
        ("/sky/outlines.json", {"ra": 0, "dec": 0, "radius": -1}, 422),
        ("/sky/outlines.json", {"ra": 0, "dec": 0, "radius": 1, "dataset": "none"}, 404),
        ("/sky", {"dataset": "none"}, 404),
    ],
)
def test_what_is_not_on_the_map(
    client: httpx.Client, path: str, values: dict[str, Any], code: int
) -> None:
    assert client.get(path, params=values).status_code == code


@pytest.mark.more
@pytest.mark.parametrize("size", [None, PHONE])
def test_the_map(portal: RunningPortal, opened: OpenPage, size: Any) -> None:
    settings = {} if size is None else {"viewport": size}
    page = opened(f"{portal.url}/sky", portal.url, **settings)
    page.wait_for_selector("[data-sky][data-ready]")
    canvas = page.locator("[data-sky] canvas")
    canvas.focus()
    frames = int(page.locator("[data-sky]").get_attribute("data-frames") or 0)
    for key in ("+", "+", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    page.locator("[data-readout]", has_text="Middle: RA").wait_for()
    page.wait_for_timeout(500)
    assert int(page.locator("[data-sky]").get_attribute("data-frames") or 0) > frames
    for projection in ("geoAitoff", "geoOrthographic", "geoStereographic", "geoMollweide"):
        page.select_option("#projection", projection)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    keep(page, f"sky-{'phone' if size else 'wide'}")
    # There is only the image f0; a click leads to its page.
    page.goto("about:blank")
    page.goto(f"{portal.url}/sky#9.985,-1.0,2000")
    page.locator("[data-images] a", has_text="f0.fits").wait_for()
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 3, y)
    page.locator("[data-readout]", has_text="ICRS").wait_for()
    text = page.locator("[data-readout]").inner_text()
    assert "RA 9.98" in text and "f0.fits" in text
    page.mouse.click(x, y)
    page.wait_for_url("**/image?ID=*")
    page.wait_for_selector("[data-image][data-ready]")


@pytest.mark.more
def test_a_click_searches_and_a_drag_cuts(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/sky#200.0,50.0,10", portal.url)
    page.wait_for_selector("[data-sky][data-ready]")
    box = page.locator("[data-sky] canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.select_option("#drag", "cut")
    page.mouse.move(x - 30, y - 30)
    page.mouse.down()
    page.mouse.move(x + 30, y + 30, steps=4)
    page.mouse.up()
    page.wait_for_url("**/new?*")
    ra, dec, side = page.locator("#targets").input_value().split()
    assert abs(float(ra) - 200) < 0.3 and abs(float(dec) - 50) < 0.2
    assert side.endswith("arcsec")
    for projection in ("geoStereographic", "geoMollweide"):
        page.goto(f"{portal.url}/sky#150.0,2.0,300")
        page.select_option("#projection", projection)
        page.wait_for_timeout(500)
        page.mouse.move(x, y)
        left = float(page.locator("[data-readout]").inner_text().split()[1].rstrip("\u00b0"))
        page.mouse.move(x + 100, y)
        right = float(page.locator("[data-readout]").inner_text().split()[1].rstrip("\u00b0"))
        page.select_option("#drag", "cut")
        page.mouse.move(x - 50, y - 50)
        page.mouse.down()
        page.mouse.move(x + 50, y + 50, steps=4)
        page.mouse.up()
        page.wait_for_url("**/new?*")
        side = page.locator("#targets").input_value().split()[2].removesuffix("arcsec")
        # 100 pixels along the right ascension, which goes to the left.
        assert float(side) == pytest.approx((left - right) * 3600, rel=0.03)
    page.goto(f"{portal.url}/sky#10,0,10")
    page.evaluate("location.hash = '#200.0,50.0,10'")
    page.locator("[data-search][href*='200.0']").wait_for()
    page.mouse.click(x, y)
    page.wait_for_url("**/search?q=*")
    ra, dec = page.locator("#q").input_value().split()
    assert abs(float(ra) - 200) < 0.3 and abs(float(dec) - 50) < 0.2


@pytest.mark.more
def test_without_scripts(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/sky", portal.url, java_script_enabled=False)
    assert page.locator("[data-still] svg").first.is_visible()
    page.select_option("#dataset", "stars")
    page.click("button:has-text('Show')")
    assert page.url.endswith("/sky?dataset=stars")
