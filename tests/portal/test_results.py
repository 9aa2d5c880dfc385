"""Results as clients of a portal get them, wherever they are: in its folder, in a bucket of S3."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from PIL import Image

import swathe
from swathe.catalog import Catalog
from tests.support.cloud_servers import forget_credentials
from tests.support.portals import (
    SECOND_S,
    add_survey,
    database_in,
    finished,
    served,
    submitted,
    wait_until,
)
from tests.support.servers import s3s_fs

TARGETS = 12


@pytest.fixture(scope="module", params=["folder", "bucket"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Where the portal is; its results are in `kept`."""
    made = tmp_path_factory.mktemp("portal")
    add_survey(made, targets=TARGETS)
    (made / "kept").mkdir()
    with ExitStack() as stack:
        if request.param == "bucket":
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            forget_credentials(patch)
            for name, value in stack.enter_context(s3s_fs(made)).environment.items():
                patch.setenv(name, value)
        url = "s3://kept" if request.param == "bucket" else str(made / "kept")
        with Catalog.open(database_in(made)) as catalog:
            catalog.add_store("kept", url)
        yield made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder, results='store = "kept:jobs"') as running:
        yield running.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{url}/api", timeout=SECOND_S) as made:
        yield made


@pytest.fixture(scope="module")
def targets(folder: Path) -> dict[str, list[Any]]:
    table = Table.read(folder / "targets.csv", format="ascii.csv")
    return {name: table[name].tolist() for name in table.colnames}


@pytest.fixture(scope="module")
def done(client: httpx.Client, targets: dict[str, list[Any]]) -> dict[str, Any]:
    job = finished(client, submitted(client, targets)["id"])
    assert job["counts"]["ok"] == TARGETS
    return job


@pytest.fixture(scope="module")
def rows(client: httpx.Client, done: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/jobs/{done['id']}/rows").json()["rows"]
    return found


@pytest.fixture(scope="module")
def file(
    client: httpx.Client, done: dict[str, Any], rows: list[dict[str, Any]]
) -> tuple[str, bytes, str]:
    """Path, content and ETag of a result."""
    row = rows[0]
    path = f"/jobs/{done['id']}/files/{row['name']}"
    answer = client.get(path)
    assert answer.headers["content-type"] == "application/fits"
    return path, answer.content, answer.headers["etag"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=2880-", slice(2880, None)),
        ("bytes=-100", slice(-100, None)),
        ("bytes=0-99999999", slice(None)),
        ("Bytes=5-5", slice(5, 6)),
        ("bytes=9999999-,0-9", slice(0, 10)),
        ("bytes=-99999999", slice(None)),
    ],
)
def test_ranges_of_files(
    client: httpx.Client, file: tuple[str, bytes, str], asked: str, expected: slice
) -> None:
    path, content, etag = file
    answer = client.get(path, headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == content[expected]
    start = range(len(content))[expected].start
    end = start + len(answer.content) - 1
    assert answer.headers["content-range"] == f"bytes {start}-{end}/{len(content)}"
    assert answer.headers["etag"] == etag
    head = client.head(path, headers={"Range": asked})
    assert (head.status_code, head.content) == (206, b"")


def test_conditions_of_files(client: httpx.Client, file: tuple[str, bytes, str]) -> None:
    path, content, etag = file
    assert etag.startswith('"')

    def ask(**headers: str) -> httpx.Response:
        return client.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    for tag in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = ask(If_None_Match=tag)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
    assert ask(If_None_Match='"other"').content == content
    assert ask(Range="bytes=0-9", If_Range=etag).status_code == 206
    assert ask(Range="bytes=0-9", If_Range='"other"').content == content
    past = ask(Range=f"bytes={len(content)}-")
    assert past.status_code == 416
    assert past.headers["content-range"] == f"bytes */{len(content)}"
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == len(content)
    assert head.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize(
    "asked",
    [
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=9-5",
        "bytes=1-2-3",
        "rows=0-9",
        "bytes=0-9;",
        "bytes=" + "9" * 30 + "-",
        "bytes=0-,0-",
        "bytes=" + ",".join(f"{at}-{at}" for at in range(200)),
    ],
)
def test_what_is_no_range_gives_all(
    client: httpx.Client, file: tuple[str, bytes, str], asked: str
) -> None:
    path, content, _ = file
    answer = client.get(path, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, content)
    assert "content-range" not in answer.headers


def test_several_ranges(client: httpx.Client, file: tuple[str, bytes, str]) -> None:
    path, content, etag = file
    answer = client.get(path, headers={"Range": "bytes=0-79, 2880-2889,-5"})
    assert (answer.status_code, answer.headers["etag"]) == (206, etag)
    assert int(answer.headers["content-length"]) == len(answer.content)
    kind = answer.headers["content-type"]
    assert kind.startswith("multipart/byteranges; boundary=")
    whole = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n" + answer.content)
    parts = [
        (part["Content-Type"], part["Content-Range"], part.get_payload(decode=True))
        for part in whole.get_payload()
        if not isinstance(part, str)
    ]
    size = len(content)
    ranges = ((0, 80), (2880, 2890), (size - 5, size))
    assert [(kind, told) for kind, told, _ in parts] == [
        ("application/fits", f"bytes {start}-{stop - 1}/{size}") for start, stop in ranges
    ]
    for start, stop in ranges:
        assert b"\r\n\r\n" + content[start:stop] + b"\r\n--" in answer.content


def test_files_are_what_was_cut(
    client: httpx.Client,
    done: dict[str, Any],
    rows: list[dict[str, Any]],
    folder: Path,
    targets: dict[str, list[Any]],
) -> None:
    paths = [str(folder / "survey" / name.partition(":")[2]) for name in targets["file"]]
    expected = swathe.cut_many({**targets, "file": paths}, folder / "direct", progress=False)
    for row, name in zip(rows, expected["path"].tolist(), strict=True):
        answer = client.get(f"/jobs/{done['id']}/files/{row['name']}")
        assert hashlib.sha256(answer.content).hexdigest() == row["sha256"]
        assert answer.headers["content-disposition"] == f'attachment; filename="{row["name"]}"'
        found = fits.getdata(io.BytesIO(answer.content))
        np.testing.assert_array_equal(found, fits.getdata(folder / "direct" / name))


def test_archives(client: httpx.Client, done: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    contents = {
        row["name"]: client.get(f"/jobs/{done['id']}/files/{row['name']}").content for row in rows
    }
    answer = client.get(f"/jobs/{done['id']}/archive.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [*contents, "manifest.ecsv"]
        assert {name: archive.read(name) for name in contents} == contents
    answer = client.get(f"/jobs/{done['id']}/archive.tar")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        assert tar.getnames() == [*contents, "manifest.ecsv"]
    answer = client.get(f"/jobs/{done['id']}/archive.fits")
    with fits.open(io.BytesIO(answer.content)) as hdus:
        assert len(hdus) == 1 + len(contents)


@pytest.mark.parametrize("kind", ["fits", "npy", "png"])
def test_previews(client: httpx.Client, targets: dict[str, list[Any]], kind: str) -> None:
    few = {name: values[:1] for name, values in targets.items()}
    job = finished(client, submitted(client, few, options={"format": kind})["id"])
    (row,) = client.get(f"/jobs/{job['id']}/rows").json()["rows"]
    answer = client.get(f"/jobs/{job['id']}/previews/{row['name']}.png", params={"size": 64})
    assert answer.status_code == 200, answer.text
    with Image.open(io.BytesIO(answer.content)) as picture:
        assert max(picture.size) == 64
        assert np.asarray(picture).std() > 0


def test_results_by_the_interface_of_the_observatory(
    url: str, file: tuple[str, bytes, str], done: dict[str, Any]
) -> None:
    _, content, etag = file
    place = f"{url}/vo/async/{done['id']}/results/cutout-00001"
    answer = httpx.get(place)
    assert (answer.content, answer.headers["etag"]) == (content, etag)
    answer = httpx.get(place, headers={"Range": "bytes=10-19", "If-Range": etag})
    assert (answer.status_code, answer.content) == (206, content[10:20])
    assert httpx.get(place, headers={"If-None-Match": etag}).status_code == 304


def test_fetched_by_the_client(url: str, done: dict[str, Any], folder: Path) -> None:
    with swathe.connect(url) as portal:
        manifest = portal.job(done["id"]).fetch(folder / "fetched")
        portal.job(done["id"]).fetch(folder / "all.zip")
    assert len(manifest) == TARGETS
    for name in manifest["path"].tolist():
        assert (folder / "fetched" / name).stat().st_size > 2880
    with zipfile.ZipFile(folder / "all.zip") as archive:
        assert archive.testzip() is None


def test_deleted_results_are_gone(
    client: httpx.Client, targets: dict[str, list[Any]], folder: Path
) -> None:
    job = finished(client, submitted(client, targets)["id"])
    path = client.get(f"/jobs/{job['id']}/rows").json()["rows"][0]["name"]
    kept = folder / "kept/jobs" / job["id"]
    assert len([each for each in kept.rglob("*") if each.is_file()]) == TARGETS
    assert client.delete(f"/jobs/{job['id']}").status_code == 204
    assert client.get(f"/jobs/{job['id']}/files/{path}").status_code == 404
    wait_until(lambda: not [each for each in kept.rglob("*") if each.is_file()])


def test_a_result_that_is_gone_is_not_found(
    client: httpx.Client, targets: dict[str, list[Any]], folder: Path
) -> None:
    few = {name: values[:1] for name, values in targets.items()}
    job = finished(client, submitted(client, few)["id"])
    (row,) = client.get(f"/jobs/{job['id']}/rows").json()["rows"]
    (kept,) = (folder / "kept/jobs" / job["id"]).rglob(row["name"])
    kept.unlink()
    answer = client.get(f"/jobs/{job['id']}/files/{row['name']}")
    assert answer.status_code == 404
    assert answer.json()["kind"] == "NoSuchResultError"
