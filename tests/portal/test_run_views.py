"""What a portal shows of a run: pictures of superfiles, volumes, slices. In this process."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

import swathe
from swathe.catalog import Catalog
from swathe.portal import run_pictures
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.pages.run_views import iteration_spans
from swathe.portal.run_pictures import natural_key
from swathe.portal.run_slices import colour_table
from tests.support.catalogs import new_catalog

EVIL = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def png(level: int, size: tuple[int, int] = (8, 8), kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("L", size, level).save(file, kind)
    return file.getvalue()


def field(iteration: int) -> np.ndarray:
    """Return values from -1 to 1 that change with the iteration."""
    z, y, x = np.ogrid[:20, :24, :16]
    values: np.ndarray = np.sin(x / 3 + iteration) * np.cos(y / 5) * np.cos(z / 7)
    return values.astype("f4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A catalogue with a run of three arrays, and superfiles of good and of evil entries."""
    folder = tmp_path_factory.mktemp("views")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SWATHE_DATABASE", new_catalog(folder / "portal.sqlite"))
        with Catalog.open() as catalog:
            catalog.add_store("disk", str(folder / "disk"), "local")
        with swathe.run("waves", iterations=4) as run:
            temp = run.array("temp", (20, 24, 16), "f4", every=2, dims=("z", "y", "x"))
            levels = run.array("levels", (4, 5, 6), "u1", every=2)
            flat = run.array("flat", (4, 5), "f4", every=4)
            for iteration in (0, 2, 4):
                temp.write(iteration, field(iteration))
                levels.write(iteration, np.full((4, 5, 6), 10 * iteration, "u1"))
                if iteration != 2:
                    flat.write(iteration, np.zeros((4, 5), "f4"))
        with Catalog.open() as catalog:
            own = run_pictures_folder(catalog)
        with swathe.superfile(f"{own}/temp.zip", "w") as pictures:
            for iteration in (12, 6, 0):
                pictures.add(f"{iteration}.png", png(10 * iteration))
        with swathe.superfile("disk:evil.zip", "w") as evil:
            evil.add("0.svg", EVIL)
            evil.add("1.html", b"<script>alert(1)</script>")
            evil.add("2.png", EVIL)
            evil.add("3.html", png(3), media_type="image/png")
            evil.add("4.jpg", png(4, kind="JPEG"))
            evil.add("5.png", png(5, (5000, 4000)))
            evil.add("6.png", png(6)[:-20] + b"x" * 20)
            evil.add("7.png", b"\x89PNG\r\n\x1a\n" + b"\xff" * 100)
            evil.add("8<b>.png", png(8), media_type="text/html")
        yield folder


def run_pictures_folder(catalog: Catalog) -> str:
    from swathe.runs.superfiles.run_pictures import pictures_folder

    return pictures_folder(catalog.run("waves"), "disk")


class Client:
    """Asks an application in this process."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.get(path, params=query or None, headers=headers)

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    yield from client_of(folder, {})


def client_of(folder: Path, settings: dict[str, Any]) -> Iterator[Client]:
    url = f"sqlite:///{folder}/portal.sqlite"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SWATHE_DATABASE", url)
        own = {"catalog": {"database": url}, "results": {"folder": str(folder / "results")}}
        with open_portal(config_of(own | settings)) as portal:
            yield Client(make_app(portal))


RUN = "/api/runs/waves@1"


def physical(answer: httpx.Response) -> np.ndarray:
    """Return the values of a volume, by the headers of the answer."""
    assert answer.status_code == 200, answer.text
    headers = answer.headers
    shape = tuple(map(int, headers["volume-shape"].split()))
    voxels = np.frombuffer(answer.content, np.uint8).reshape(shape)
    values = float(headers["volume-offset"]) + float(headers["volume-scale"]) * voxels
    return np.where(voxels == int(headers.get("volume-blank", -1)), np.nan, values)


def test_a_volume_is_the_array_in_steps_of_its_range(client: Client) -> None:
    answer = client.get(f"{RUN}/temp/2/volume")
    step = float(answer.headers["volume-scale"])
    np.testing.assert_allclose(physical(answer), field(2), rtol=0, atol=0.501 * step)
    assert answer.headers["volume-dims"] == "z y x"
    assert float(answer.headers["volume-high"]) == pytest.approx(field(2).max())
    small = client.get(f"{RUN}/temp/2/volume", size=10, region="0:20,4:24,:")
    assert small.headers["volume-block"] == "2 2 2"
    expected = field(2)[:, 4:].reshape(10, 2, 10, 2, 8, 2).mean((1, 3, 5))
    np.testing.assert_allclose(physical(small), expected, rtol=0, atol=0.501 * step)
    plain = client.get(f"{RUN}/levels/4/volume")
    assert "volume-blank" not in plain.headers and set(plain.content) == {40}
    tag = {"If-None-Match": answer.headers["etag"]}
    assert client.get(f"{RUN}/temp/2/volume", tag).status_code == 304
    assert client.get(f"{RUN}/temp/4/volume", tag).status_code == 200


def test_a_slice_is_a_plane_in_colours(client: Client) -> None:
    query = {"axis": 1, "at": 7, "low": -1, "high": 1, "colours": "grey"}
    answer = client.get(f"{RUN}/temp/4/slice.png", None, **query)
    assert answer.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(answer.content)) as image:
        found = np.asarray(image.convert("RGB"))
    parts = (field(4)[::-1, 7] + 1) / 2  # the first axis is up
    expected = colour_table("grey")[np.rint(np.clip(parts, 0, 1) * 255).astype(int)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2)


@pytest.mark.parametrize(
    ("path", "query", "status", "told"),
    [
        ("/api/runs/none/temp/0/volume", {}, 404, "there is no run"),
        ("/api/runs/waves@x/temp/0/volume", {}, 404, "expected NAME or NAME@NUMBER"),
        (f"{RUN}/none/0/volume", {}, 404, "expected an array"),
        (f"{RUN}/temp/3/volume", {}, 404, "expected an iteration that was written (0, 2, 4)"),
        (f"{RUN}/flat/0/volume", {}, 422, "region: expected first:last of 2 axes"),
        (f"{RUN}/flat/0/volume", {"region": ""}, 422, "real numbers with three axes"),
        (f"{RUN}/temp/0/volume", {"region": "0:21,:,:"}, 422, "within (20, 24, 16)"),
        (f"{RUN}/temp/0/volume", {"size": 129}, 422, "size"),
        (f"{RUN}/temp/0/slice.png", {"at": 20}, 422, "expected a cell from 0 to 19"),
        (f"{RUN}/temp/0/slice.png", {"low": 1, "high": 0}, 422, "expected low below high"),
        (f"{RUN}/pictures/0", {"superfile": "/etc/passwd"}, 403, "a path without a store"),
        (f"{RUN}/pictures/0", {"superfile": "disk:../x.zip"}, 403, "a path in the store"),
        (f"{RUN}/pictures/0", {"superfile": "disk:none.zip"}, 404, "none.zip"),
        (f"{RUN}/pictures/0", {"superfile": "none:a.zip"}, 403, "no store 'none'"),
        (f"{RUN}/pictures/9", {"superfile": "disk:evil.zip"}, 404, "before number 6"),
    ],
)
def test_what_cannot_be_shown_is_told(
    client: Client, path: str, query: dict[str, Any], status: int, told: str
) -> None:
    if path.endswith("flat/0/volume") and not query:
        query = {"region": ":,:,:"}
    answer = client.get(path, **query)
    assert (answer.status_code, told in answer.json()["error"]) == (status, True), answer.text


def test_pictures_are_listed_by_the_numbers_in_their_names(client: Client, folder: Path) -> None:
    listed = client.get(f"{RUN}/pictures").json()
    assert [each["name"] for each in listed["pictures"]] == ["0.png", "6.png", "12.png"]
    assert listed["superfiles"] == [listed["superfile"]]
    part = client.get(f"{RUN}/pictures", start=1, limit=1).json()
    assert ([each["number"] for each in part["pictures"]], part["next"]) == ([1], 2)
    query = {"superfile": listed["superfile"], "v": listed["version"]}
    answer = client.get(f"{RUN}/pictures/2", **query)
    assert answer.content == png(120)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in answer.headers["cache-control"]
    unknown = client.get(f"{RUN}/pictures/2", superfile=listed["superfile"], v="x")
    assert "no-cache" in unknown.headers["cache-control"]
    tag = {"If-None-Match": answer.headers["etag"]}
    assert client.get(f"{RUN}/pictures/2", tag, **query).status_code == 304
    names = ["b10", "b9", "b09", "a", "b", ""]
    assert sorted(names, key=natural_key) == ["", "a", "b", "b09", "b9", "b10"]


def test_entries_that_are_evil_are_not_shown(client: Client) -> None:
    listed = client.get(f"{RUN}/pictures", superfile="disk:evil.zip").json()
    assert [each["name"] for each in listed["pictures"]] == [
        "2.png", "3.html", "4.jpg", "5.png", "6.png", "7.png",
    ]  # fmt: skip
    assert listed["others"] == 3
    answers = [
        client.get(f"{RUN}/pictures/{number}", superfile="disk:evil.zip") for number in range(6)
    ]
    assert [each.status_code for each in answers] == [422, 200, 200, 413, 200, 422]
    types = [each.headers["content-type"] for each in answers]
    assert types == ["application/json", "image/png", "image/jpeg", "application/json",
                     "image/png", "application/json"]  # fmt: skip
    assert "expected a PNG or JPEG picture" in answers[0].json()["error"]
    assert "expected at most 16777216 pixels" in answers[3].json()["error"]
    assert all("default-src 'none'" in each.headers["content-security-policy"] for each in answers)


def test_a_superfile_that_is_replaced_is_read_anew(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pictures, "FRESH_S", 0.0)
    tags = []
    for level, entries in ((1, 1), (2, 2)):
        with swathe.superfile("disk:again.zip", "w", overwrite=True) as pictures:
            for number in range(entries):
                pictures.add(f"{number}.png", png(level))
        answer = client.get(f"{RUN}/pictures/0", superfile="disk:again.zip")
        assert answer.content == png(level)
        tags.append(answer.headers["etag"])
    assert tags[0] != tags[1]
    monkeypatch.setattr(run_pictures, "MOST_ENTRIES", 1)
    refused = client.get(f"{RUN}/pictures", superfile="disk:again.zip")
    assert (refused.status_code, "at most 1 entries" in refused.text) == (413, True)


def test_pages_say_what_a_run_has(client: Client) -> None:
    page = client.get("/runs/waves@1/view").text
    assert "3 pictures of" in page and "temp.zip" in page
    assert 'href="/runs/waves%401/view/temp"' in page and "view/flat" not in page
    later = client.get("/runs/waves/view", picture=1).text
    assert "6.png" in later and 'rel="prev"' in later and 'rel="next"' in later
    assert len(page.encode()) < 200_000
    evil = client.get("/runs/waves@1/view", superfile="disk:<b>none.zip")
    assert evil.status_code == 404 and "<b>none" not in evil.text
    volume = client.get("/runs/waves@1/view/temp", iteration=2, low="-0.5", z="3").text
    assert volume.count("/slice.png?") == 6  # for readers without scripts, and without WebGL 2
    assert "axis=0&amp;at=3&amp;low=-0.5" in volume
    assert 'rel="prev"' in volume and 'rel="next"' in volume
    for query, told in (({"low": "x"}, "low: expected a number"), ({"y": "99"}, "at: expected")):
        wrong = client.get("/runs/waves@1/view/temp", None, **query)
        assert (wrong.status_code, told in wrong.text) == (422, True)
    for path, status in (("view/none", 404), ("view/flat", 422), ("view/temp?iteration=3", 404)):
        answer = client.get(f"/runs/waves@1/{path}")
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")


def test_iterations_at_equal_distances_are_one_span() -> None:
    assert list(iteration_spans(range(0, 121, 6))) == [(0, 120, 6)]
    assert list(iteration_spans([0, 6, 12, 13, 20])) == [(0, 12, 6), (13, 20, 7)]
    assert list(iteration_spans([7])) == [(7, 7, 1)]
    assert list(iteration_spans([])) == []


def test_a_run_is_shown_to_those_who_may_read_only(folder: Path) -> None:
    with Catalog.open(f"sqlite:///{folder}/portal.sqlite") as catalog:
        reader = catalog.add_token("ann", ["read"])[0]
        other = catalog.add_token("bob", ["submit"])[0]
    for client in client_of(folder, {"access": {"tokens": "required"}}):
        for path in (f"{RUN}/temp/0/volume", f"{RUN}/temp/0/slice.png", f"{RUN}/pictures"):
            tokens = (None, other, reader)
            headers = [{"Authorization": f"Bearer {each}"} if each else {} for each in tokens]
            assert [client.get(path, each).status_code for each in headers] == [401, 403, 200]
        assert client.get("/runs/waves/view").status_code == 303


def test_a_store_that_is_gone_is_not_read_as_a_path(folder: Path) -> None:
    with Catalog.open(f"sqlite:///{folder}/portal.sqlite") as catalog:
        catalog.remove_store("disk")
    for client in client_of(folder, {}):
        answer = client.get(f"{RUN}/temp/0/volume")
        assert (answer.status_code, "no store 'disk'" in answer.text) == (403, True)
        assert client.get("/runs/waves/view").status_code == 200
    with Catalog.open(f"sqlite:///{folder}/portal.sqlite") as catalog:
        catalog.add_store("disk", str(folder / "disk"), "local")
