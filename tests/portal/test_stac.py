"""The STAC API, asked by pystac-client; documents are valid by the schemas of STAC."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pystac_client
import pytest

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.conftest import DATA
from tests.support.portals import SECOND_S, RunningPortal, add_survey, database_in, served

VALIDATOR = Path(__file__).parents[1] / "support" / "stac_api_validator_offline.py"
SWATHS = (
    "SS_MODIS_A-JPL-L2P-v2014.0.nc",
    "ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc",
    "ref_chunked.hdf4",
    "swath_3_3d_dimmap.hdf",
)
DATED = SWATHS[:-1]
"""Those that say when they were taken."""
OTHER_DAY = "TEMPO_NO2_L2_V03_20240328T154353Z_S008G01.nc4"
pytestmark = pytest.mark.skipif(not (DATA / "swath").exists(), reason=f"no data in {DATA}")


@contextmanager
def with_swaths(folder: Path, names: Sequence[str]) -> Iterator[RunningPortal]:
    """A portal with the survey, and with these files as a dataset, besides one of another day."""
    add_survey(folder)
    (folder / "swath/day one").mkdir(parents=True)
    for name in names:
        shutil.copy(DATA / "swath" / name, folder / "swath" / name)
    shutil.copy(DATA / "swath" / OTHER_DAY, folder / "swath/day one" / OTHER_DAY)
    with (
        pytest.MonkeyPatch.context() as patch,
        Catalog.open(database_in(folder)) as catalog,
    ):
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("swath", str(folder / "swath"))
        catalog.add_dataset("swaths", "swath", "", None)
        scan(catalog, "swaths", list_objects(store, "", None))
    with served(folder) as running:
        yield running


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    with with_swaths(tmp_path_factory.mktemp("stac"), SWATHS) as running:
        yield running


@pytest.fixture(scope="module")
def client(portal: RunningPortal) -> pystac_client.Client:
    return pystac_client.Client.open(f"{portal.url}/stac")


@pytest.fixture(scope="module")
def http(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{portal.url}/stac", timeout=SECOND_S) as http:
        yield http


def ids(client: pystac_client.Client, **asked: Any) -> list[str]:
    return [item.id for item in client.search(**asked).items()]


def test_collections_and_items_are_valid(client: pystac_client.Client) -> None:
    assert {each.id for each in client.get_collections()} == {"survey", "swaths"}
    client.validate()
    for collection in client.get_collections():
        collection.validate()
        for item in collection.get_items():
            item.validate()
            assert item.get_collection() == collection


def test_a_file_is_an_item_with_its_arrays(
    client: pystac_client.Client, portal: RunningPortal
) -> None:
    (item,) = client.search(ids=[f"day~20one~2F{OTHER_DAY}"]).items()
    assert item.properties["start_datetime"].startswith("2024-03-28T15:4")
    assert len(item.properties["swathe:arrays"]) > 1
    asset = item.assets["data"]
    assert (asset.media_type, asset.title) == ("application/netcdf", f"day one/{OTHER_DAY}")
    there = portal.folder / "swath/day one" / OTHER_DAY
    part = httpx.get(asset.href, headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, there.read_bytes()[100:200])


def test_images_of_the_sky_have_no_geometry_but_services(client: pystac_client.Client) -> None:
    item = next(client.search(collections=["survey"]).items())
    assert item.geometry is None
    (link,) = item.get_links("service")
    answer = httpx.get(link.href, timeout=SECOND_S)
    assert answer.status_code == 200
    assert "VOTABLE" in answer.text


def test_searches(client: pystac_client.Client) -> None:
    assert ids(client, bbox=[80, 40, 90, 60]) == [SWATHS[0]]
    assert set(ids(client, bbox=[170, -30, -170, 10])) == {SWATHS[1], SWATHS[2]}
    assert ids(client, intersects={"type": "Point", "coordinates": [-178, 5]}) == [SWATHS[2]]
    assert set(ids(client, datetime="2015-07-02/..")) >= {SWATHS[1], f"day~20one~2F{OTHER_DAY}"}
    assert ids(client, datetime="1980-01-01/1981-01-01") == []
    assert ids(client, collections=["none"]) == []
    assert ids(client, ids=["../x", SWATHS[2]]) == [SWATHS[2]]
    small = ids(client, collections=["swaths"], filter='"swathe:bytes" < 200000')
    assert small == [
        each.id
        for each in client.search(collections=["swaths"]).items()
        if each.properties["swathe:bytes"] < 200_000
    ]
    assert small


def test_pages_have_all_items_once(client: pystac_client.Client) -> None:
    for sortby in (None, "id", "-id", "datetime", "-datetime"):
        one, two = (ids(client, limit=limit, sortby=sortby) for limit in (2, 100))
        assert one == two
        assert len(set(one)) == len(one) == 9
    assert ids(client, sortby="-id") == ids(client, sortby="id")[::-1]
    assert client.search(limit=2).matched() == 9


def test_fields(http: httpx.Client) -> None:
    query = {"collections": "swaths", "limit": "1", "fields": "id,properties.platform,-assets"}
    item = http.get("/search", params=query).json()["features"][0]
    assert "assets" not in item
    assert set(item["properties"]) <= {"datetime", "start_datetime", "end_datetime", "platform"}
    query["fields"] = "-properties.swathe:arrays,-id"
    item = http.get("/search", params=query).json()["features"][0]
    assert "swathe:arrays" not in item["properties"]
    assert {"id", "assets", "geometry", "links"} <= set(item)


TRIANGLE = [[[-540, 0], [540, 1], [540, 2], [-540, 0]]]
CUT_OFTEN = {"type": "MultiPolygon", "coordinates": [TRIANGLE] * 400}
"""Polygons that go round the Earth: they would be cut before they are counted."""


def deep(depth: int) -> bytes:
    return b'{"filter":' + b'{"op":"not","args":[' * depth + b"1" + b"]}" * depth + b"}"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"bbox": [0, 10, 5, -10]}, "south"),
        ({"bbox": [0, 0, 5]}, "4 or 6 numbers"),
        ({"bbox": "0,0,5,5"}, "a list"),
        ({"bbox": [0, 0, 5, float("nan")]}, "bbox"),
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"datetime": "yesterday"}, "2005-05-01T12:00:00Z"),
        ({"datetime": "../.."}, "datetime"),
        ({"datetime": "2006-01-01T00:00:00Z/2005-01-01T00:00:00Z"}, "start before"),
        ({"token": "W10"}, "token"),
        ({"token": "x" * 5000}, "token"),
        ({"intersects": {"type": "Point", "coordinates": [0, 91]}}, "intersects"),
        ({"intersects": {"type": "Polygon", "coordinates": [[[0, 0]] * 5000]}}, "intersects"),
        ({"intersects": {"type": "Point", "coordinates": [0, 0]}, "bbox": [0, 0, 1, 1]}, "both"),
        ({"sortby": [{"field": "size", "direction": "asc"}]}, "sortby"),
        ({"filter": {"op": "t_after", "args": [1, 2]}}, "filter"),
        ({"collections": ["a"] * 1001}, "at most 1000"),
        ({"colections": ["a"]}, "colections"),
        ({"filter": "(" * 1000, "filter-lang": "cql2-text"}, "20 levels"),
        ({"filter": "platform = 'Aqua", "filter-lang": "cql2-text"}, "filter"),
        ({"intersects": CUT_OFTEN}, "at most 1000 corners"),
    ],
)
def test_bad_requests_are_told(http: httpx.Client, body: dict[str, Any], told: str) -> None:
    answer = http.post("/search", content=json.dumps(body))
    assert (answer.status_code, told in answer.json()["description"]) == (400, True), answer.text


def test_deep_and_long_requests(http: httpx.Client) -> None:
    for content in (deep(50), deep(100_000), b"[" * 200_000, b"{}" + b" " * 2_000_000, b"{"):
        assert http.post("/search", content=content).status_code in (400, 413)
    text = {"filter": "NOT " * 600 + "platform IS NULL"}
    assert http.get("/search", params=text).status_code == 400
    large = http.get("/search", params={"limit": "1000000000"})
    assert (large.status_code, large.json()["numberReturned"]) == (200, 9)


@pytest.mark.parametrize(
    "path",
    [
        "/collections/none",
        "/collections/none/items",
        "/collections/swaths/items/none",
        "/collections/swaths/items/..~2F..~2Fportal.sqlite",
        "/collections/swaths/items/..~2F..~2Fportal.sqlite/data",
        "/collections/swaths/items/~FF",
        "/nothing",
    ],
)
def test_what_is_not_there(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "404")


def test_children_are_the_collections(http: httpx.Client) -> None:
    answer = http.get("/children").json()
    assert answer["children"] == http.get("/collections").json()["collections"]
    links = {each["rel"]: each["href"] for each in http.get("/").json()["links"]}
    assert links["children"] == answer["links"][0]["href"]


SORT = "[Item Search - Sort Ext] : POST {url}/search params=None body="
"""Faults of the validator: it sends a text for `collections`, which is a list."""


def test_stac_api_validator_finds_no_errors(tmp_path: Path) -> None:
    pytest.importorskip("stac_api_validator", reason="stac-api-validator is the judge")
    # It cannot sort items without a time.
    with with_swaths(tmp_path, DATED) as portal:
        url = f"{portal.url}/stac"
        said = _judgement(url)
    assert "Validating STAC API - Item Search conformance class" in said, said
    assert "\nErrors:" in said, said
    errors = [line for line in said.partition("\nErrors:")[2].splitlines() if line[:2] == "- "]
    known = [line for line in errors if line.startswith(f"- {SORT.format(url=url)}")]
    assert errors == known, said
    assert all('"collections": "swaths"' in line for line in known)


def _judgement(url: str) -> str:
    """Return what the validator says of a STAC API."""
    world = [[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]
    geometry = json.dumps({"type": "Polygon", "coordinates": [world]})
    command = [sys.executable, str(VALIDATOR), "--root-url", url, "--collection", "swaths"]
    command += ["--geometry", geometry]
    for name in ("core", "features", "collections", "item-search", "filter", "children"):
        command += ["--conformance", name]
    # It also wants `fields` to leave out what makes an item; `with_fields` keeps that.
    command += ["--conformance", "item-search#sort"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECOND_S)
    return done.stdout + done.stderr


def test_what_clients_ask_first(http: httpx.Client, tmp_path: Path) -> None:
    landing = http.get("/").json()
    for rel in ("service-desc", "conformance", "data"):
        (link,) = [each for each in landing["links"] if each["rel"] == rel]
        answer = httpx.get(link["href"])
        assert (answer.status_code, answer.headers["content-type"]) == (200, link["type"])
    names = http.get("/collections/swaths/queryables").json()["properties"]
    assert {"id", "datetime", "platform"} <= set(names)
