"""The page that searches images: by name or position, with pictures at the place, and as tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from astropy.io import fits
from astropy.io.votable import parse_single_table
from PIL import Image

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.support.fits_frames import contents, noise, sky_header
from tests.support.portals import database_in, served

VEGA = (279.2347, 38.7837)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A portal with three images at Vega, two bands, and one elsewhere."""
    folder = tmp_path_factory.mktemp("search")
    frames = folder / "frames"
    frames.mkdir()
    for number, (band, ra) in enumerate(
        (("r", VEGA[0]), ("r", VEGA[0]), ("=g", VEGA[0]), ("r", 10.0))
    ):
        header = sky_header(ra, VEGA[1])
        header["FILTER"], header["EXPTIME"] = band, 10.0
        header["DATE-OBS"] = f"2005-05-0{number + 1}T12:00:00"
        (frames / f"f{number}.fits").write_bytes(contents(noise(number), "fit", header))
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("frames", str(frames))
        catalog.add_dataset("stars", "frames", "", "*.fits")
        scan(catalog, "stars", list_objects(store, "", "*.fits"))
    with served(folder) as portal, httpx.Client(base_url=portal.url, timeout=60) as visitor:
        yield visitor


def links(html: str) -> dict[str, str]:
    """Return the addresses by their texts."""
    found = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', html)
    return {text: unescape(address) for address, text in found}


@pytest.mark.parametrize(
    "query",
    ["Vega", "alf Lyr", "18:36:56.33 +38:47:01.3", "279.2347 38.7837", "J183656.33+384701.3"],
)
def test_images_at_a_place(client: httpx.Client, query: str) -> None:
    answer = client.get("/search", params={"q": query, "radius": "30arcsec"})
    assert answer.status_code == 200
    assert "3 images at" in answer.text
    assert [name for name in ("f0", "f1", "f2", "f3") if f"frames:{name}.fits" in answer.text] == [
        "f0", "f1", "f2",
    ]  # fmt: skip


def test_pictures_and_cutouts_are_of_the_place(client: httpx.Client) -> None:
    html = client.get("/search", params={"q": "Vega"}).text
    pictures = [unescape(each) for each in re.findall(r'<img src="([^"]*)"', html)]
    assert len(pictures) == 3
    answer = client.get(pictures[0])
    assert answer.headers["content-type"] == "image/png"
    assert min(Image.open(io.BytesIO(answer.content)).size) > 10
    cutout = client.get(links(html)["cutout"])
    header = fits.getheader(io.BytesIO(cutout.content))
    assert abs(header["CRVAL1"] - VEGA[0]) < 0.01


def test_facets_and_criteria(client: httpx.Client) -> None:
    html = client.get("/search", params={"q": "Vega"}).text
    assert "2, " in html and links(html)["=g"].startswith("/search?q=Vega")
    assert "1 image at" in client.get(links(html)["=g"]).text
    for criteria, count in (
        ({"dataset": "stars"}, "4 images"),
        ({"q": "Vega", "band": "r"}, "2 images"),
        ({"q": "Vega", "time_from": "2005-05-02"}, "2 images"),
        ({"q": "Vega", "time_to": "2005-05-01"}, "1 image"),
        ({"q": "10 20"}, "0 images"),
    ):
        answer = client.get("/search", params=criteria)
        assert count in answer.text, criteria


def test_the_same_for_programs(client: httpx.Client) -> None:
    html = client.get("/search", params={"q": "Vega", "dataset": "stars"}).text
    at = links(html)
    assert len(client.get(at["JSON"]).json()["images"]) == 3
    table = parse_single_table(io.BytesIO(client.get(at["VOTable"]).content)).to_table()
    rows = list(csv.DictReader(io.StringIO(client.get(at["CSV"]).text)))
    assert {row["did"] for row in rows} == set(table["obs_publisher_did"])
    assert [row["band"] for row in rows] == ["r", "r", "'=g"]  # no formula of a spreadsheet
    form = client.get(at["New job here"]).text
    assert parse_qs(urlsplit(at["New job here"]).query)["dataset"] == ["stars"]
    assert "279.2347000 38.7837000 120arcsec" in form


@pytest.mark.parametrize(
    ("criteria", "code", "told"),
    [
        ({"q": "nothing of this name"}, 422, "is not a position: expected RA Dec, or the name"),
        ({"q": "10 95"}, 422, "-90 to 90 degrees"),
        ({"q": "Vega", "radius": "wide"}, 422, "radius: expected"),
        ({"q": "Vega", "radius": "200deg"}, 422, "radius: expected 0 to 90 degrees, found 200"),
        ({"q": "Vega", "time_from": "soon"}, 422, "time"),
        ({"dataset": "none"}, 404, "none"),
        ({"q": "<script>alert(1)</script>"}, 422, "&lt;script&gt;"),
    ],
)
def test_what_cannot_be_searched(
    client: httpx.Client, criteria: dict[str, str], code: int, told: str
) -> None:
    answer = client.get("/search", params=criteria)
    assert answer.status_code == code
    assert told in answer.text.replace("&#34;", '"')
    assert "<script>alert" not in answer.text


def test_the_form_alone_and_the_front_page(client: httpx.Client) -> None:
    html = client.get("/search").text
    assert 'name="q"' in html and "matches" not in html
    assert 'action="/search"' in client.get("/").text
