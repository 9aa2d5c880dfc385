"""The help of a portal: its examples run as they stand, and its calls are those of OpenAPI."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from astropy.io import fits

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.portal.pages.help import kind_of
from swathe.stores.listing import list_objects
from tests.support.fits_frames import SWATHE, noise, sky_header
from tests.support.portals import RunningPortal, database_in, served


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("help")
    frames = folder / "frames"
    frames.mkdir()
    fits.PrimaryHDU(noise(1), sky_header()).writeto(frames / "f.fits")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("frames", str(frames))
        catalog.add_dataset("stars", "frames", "", "*.fits")
        scan(catalog, "stars", list_objects(store, "", "*.fits"))
    with served(folder) as running:
        yield running


def examples(portal: RunningPortal) -> list[str]:
    html = httpx.get(f"{portal.url}/help").text
    return [unescape(each) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)]


def test_examples_have_the_address_and_a_place_of_the_archive(portal: RunningPortal) -> None:
    text = "\n".join(examples(portal))
    assert portal.url in text and 'dataset="stars"' in text
    ra, dec = re.findall(r'"ra": \[([\d.-]+)\], "dec": \[([\d.-]+)\]', text)[0]
    assert abs(float(ra) - 10) < 0.1 and abs(float(dec) + 1) < 0.1
    assert "token" not in text


@pytest.mark.more
def test_examples_in_python_run(portal: RunningPortal, tmp_path: Path) -> None:
    swathe_code, pyvo_code, _ = examples(portal)
    code = f"{swathe_code}\n{pyvo_code}\nprint(len(cutout.read()), len(table))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (cutout,) = (tmp_path / "cutouts").rglob("*.fits")
    assert fits.getdata(cutout).ndim == 2
    size, rows = map(int, done.stdout.split()[-2:])
    assert size > 2880 and rows == 1


@pytest.mark.more
def test_examples_of_the_shell_run(portal: RunningPortal, tmp_path: Path) -> None:
    code = examples(portal)[2]
    done = subprocess.run(
        ["bash", "-eu", "-c", f'PATH="{SWATHE.parent}:$PATH"\n{code}'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "f.fits" in done.stdout and "s_ra" in done.stdout


def test_calls_are_those_of_openapi(portal: RunningPortal) -> None:
    with httpx.Client(base_url=portal.url, timeout=60) as client:
        schema = client.get("/api/openapi.json").json()
        index = client.get("/help").text
        parts = re.findall(r'href="/help/api\?part=(\w+)"', index)
        pages = {part: client.get("/help/api", params={"part": part}) for part in parts}
        assert client.get("/help/api", params={"part": "none"}).status_code == 404
    titles = [
        unescape(title)
        for page in pages.values()
        for title in re.findall(r"<h2[^>]*><code>(.*?)</code>", page.text)
    ]
    calls = [
        f"{method.upper()} /api{path}"
        for path, methods in schema["paths"].items()
        for method in methods
        if method != "head"
    ]
    assert sorted(titles) == sorted(calls)
    assert all(len(page.content) < 200_000 for page in pages.values())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ({"type": "string"}, "text"),
        ({"type": "array", "items": {"type": "number"}}, "list of number"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
        ({"$ref": "#/components/schemas/Row"}, "{id, size?}"),
        ({"enum": ["a", "b"]}, "a or b"),
        ({}, "anything"),
    ],
)
def test_types_in_words(kind: dict[str, object], text: str) -> None:
    row = {"type": "object", "properties": {"id": {}, "size": {}}, "required": ["id"]}
    assert kind_of({"components": {"schemas": {"Row": row}}}, kind) == text
