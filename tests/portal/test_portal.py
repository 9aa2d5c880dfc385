"""A portal as its clients meet it: `swathe portal serve` in a process of its own, over HTTP."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
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
from tests.support.portals import (
    SECOND_S,
    RunningPortal,
    database_in,
    finished,
    served,
    submitted,
    survey_in_database,
    targets_in,
    wait_until,
)

TARGETS = 40
SETTINGS = """
[limits]
rows_per_job = 2000
body_mb = 0.5
streams = 5
downloads = 5
share = 1.0
"""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    with survey_in_database(tmp_path_factory.mktemp("portal"), request, TARGETS) as made:
        yield made


@pytest.fixture(scope="module")
def portal(folder: Path) -> Iterator[RunningPortal]:
    with served(folder, SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def client(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{portal.url}/api", timeout=SECOND_S) as made:
        yield made


@pytest.fixture(scope="module")
def targets(folder: Path) -> dict[str, list[Any]]:
    return targets_in(folder)


def first(targets: dict[str, list[Any]], count: int) -> dict[str, list[Any]]:
    return {name: values[:count] for name, values in targets.items()}


@pytest.fixture(scope="module")
def done(client: httpx.Client, targets: dict[str, list[Any]]) -> dict[str, Any]:
    """A job of all targets, one of a missing file, and one beside its image."""
    more = {name: [*values] for name, values in targets.items()}
    for file, x in (("survey:none.fit", 50.0), ("survey:frame-000001.fit", -5000.0)):
        row = {"id": f"bad-{x:.0f}", "file": file, "x": x, "y": 50.0, "height": 9, "width": 9}
        for name, values in more.items():
            values.append(row[name])
    return finished(client, submitted(client, more, name="all")["id"])


# ---- Holdings


def test_portal_tells_what_it_is(client: httpx.Client) -> None:
    told = client.get("/about").json()
    assert (told["version"], told["user"]) == (swathe.__version__, "anonymous")
    assert told["limits"]["rows_per_job"] == 2000
    assert told["limits"]["body_bytes"] == 500_000


def test_datasets_and_stores_are_told(client: httpx.Client, folder: Path) -> None:
    (dataset,) = client.get("/datasets").json()["datasets"]
    assert dataset == client.get("/datasets/survey").json()
    assert (dataset["objects"], dataset["granules"]) == (4, 4)
    assert dataset["synced_at"].endswith("Z")
    (store,) = client.get("/stores").json()["stores"]
    assert store["url"] == f"file://{folder}/survey"
    assert client.get("/stores/survey").json() == {**store, "profile": None}
    for path in ("/datasets/none", "/stores/none", "/datasets/none/footprints"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["kind"].startswith("NoSuch")


def test_footprints_are_bounded(client: httpx.Client) -> None:
    all_of = client.get("/datasets/survey/footprints").json()
    assert (len(all_of["footprints"]), all_of["truncated"]) == (4, False)
    assert len(all_of["footprints"][0]["outline"]) >= 8
    some = client.get("/datasets/survey/footprints", params={"limit": 1}).json()
    assert (len(some["footprints"]), some["truncated"]) == (1, True)


def test_find_gives_what_the_package_finds(client: httpx.Client, folder: Path) -> None:
    with Catalog.open(database_in(folder)) as catalog:
        every = swathe.find(dataset="survey", catalog=catalog)
        ra, dec = float(every["s_ra"][0]), float(every["s_dec"][0])
        here = swathe.find((ra, dec), 0.01, catalog=catalog)
    found = client.get("/find", params={"ra": ra, "dec": dec, "radius": 0.01}).json()
    assert [image["file"] for image in found["images"]] == here["file"].tolist()
    assert found["truncated"] is False
    assert client.get("/find", params={"limit": 1}).json()["truncated"] is True


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"ra": 1}, "ra and dec: expected both"),
        ({"ra": 1, "dec": 91}, "from -90 to 90"),
        ({"ra": "nan", "dec": 1}, "query.ra"),
        ({"time_from": 1}, "time_from and time_to: expected both"),
        ({"limit": 0}, "query.limit"),
        ({"bounds": "1,2"}, "expected (west, south, east, north)"),
        ({"lon": 1}, "lon and lat: expected both"),
        ({"bounds": "1,2,3,4", "ra": 1, "dec": 1}, "give one of sky, bounds and place"),
        ({"band": "\x1e\0"}, "band: expected no character NUL"),
        ({"dataset": "sdss\0"}, "dataset: expected no character NUL"),
    ],
)
def test_searches_without_sense_are_told(
    client: httpx.Client, asked: dict[str, Any], told: str
) -> None:
    answer = client.get("/find", params=asked)
    assert answer.status_code == 422
    assert told in answer.json()["error"]


# ---- Estimates and submission


def test_estimate_tells_before_anything_is_done(
    client: httpx.Client, targets: dict[str, list[Any]]
) -> None:
    told = client.post("/estimate", json={"targets": targets}).json()
    assert (told["targets"], told["rows"], told["faults"]) == (TARGETS, TARGETS, [])
    low, high = told["prediction"]["interval_s"]
    assert 0 < low <= told["prediction"]["median_s"] <= high
    assert told["bytes_out"] > TARGETS * 100 * 100 * 2


def test_places_in_the_sky_are_cut_from_every_image(client: httpx.Client, folder: Path) -> None:
    with Catalog.open(database_in(folder)) as catalog:
        image = swathe.find(dataset="survey", catalog=catalog)[0]
    place = {"ra": [float(image["s_ra"]), 10.0], "dec": [float(image["s_dec"]), -80.0]}
    asked = {**place, "size_deg": [0.005, 0.005]}
    told = client.post("/estimate", json={"targets": asked}).json()
    assert told["unmatched"] == 1
    job = finished(client, submitted(client, asked)["id"])
    assert job["counts"]["ok"] == 4


def test_tables_come_as_rows_and_as_files_too(
    client: httpx.Client, folder: Path, targets: dict[str, list[Any]]
) -> None:
    rows = [dict(zip(targets, row, strict=True)) for row in zip(*targets.values(), strict=True)]
    assert client.post("/estimate", json={"targets": rows}).json()["rows"] == TARGETS
    with (folder / "targets.csv").open("rb") as file:
        answer = client.post(
            "/jobs",
            files={"targets": ("list.csv", file)},
            data={"options": '{"format": "npy"}', "name": "by file", "start": "false"},
        )
    assert answer.status_code == 201, answer.text
    job = answer.json()
    assert (job["phase"], job["name"], job["rows"]) == ("PENDING", "by file", TARGETS)
    assert job["options"]["format"] == "npy"
    assert answer.headers["location"].endswith(f"/api/jobs/{job['id']}")
    assert client.get(answer.headers["location"]).json() == job
    assert client.post(f"/jobs/{job['id']}/start").json()["phase"] != "PENDING"
    assert finished(client, job["id"])["counts"]["ok"] == TARGETS


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"", 422, "the body: expected JSON"),
        (b"[" * 100_000, 422, "the body: expected JSON"),
        (b"[]", 422, "the body: expected an object with targets"),
        (b'{"targets": 1}', 422, "targets: expected columns"),
        (b'{"targets": {}}', 422, "column"),
        (b'{"targets": {"file": ["survey:a"]}}', 422, "need the columns"),
        (b'{"targets": [], "options": {"mod": 1}}', 422, "options.mod"),
        (b'{"targets": [], "options": {"mode": "all"}}', 422, "options.mode"),
        (b'{"targets": [], "options": {"format": "rgb"}}', 422, "targets in the sky"),
        (b'{"targets": [], "colour": 1}', 422, "colour"),
        (b'{"targets": {"x": [1' + b"1" * 5000 + b"]}}", 422, "the body: expected JSON"),
        (b'{"targets": ' + b" " * 600_000 + b"[]}", 413, ""),
    ],
)
def test_bodies_without_sense_are_told(
    client: httpx.Client, content: bytes, status: int, told: str
) -> None:
    answer = client.post("/jobs", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/etc/passwd", "AccessError"),
        ("survey:../portal.sqlite", "AccessError"),
        ("http://127.0.0.1:1/a.fits", "AccessError"),
        ("file:///etc/passwd", "AccessError"),
    ],
)
def test_files_that_may_not_be_read_are_refused(
    client: httpx.Client, folder: Path, file: str, kind: str
) -> None:
    box = {"file": [file], "x0": [0], "y0": [0], "width": [9], "height": [9]}
    answer = client.post("/jobs", json={"targets": box})
    assert (answer.status_code, answer.json()["kind"]) == (403, kind)


def test_too_many_rows_are_refused(client: httpx.Client) -> None:
    rows = 2001
    asked = {name: [1] * rows for name in ("x0", "y0", "width", "height")}
    answer = client.post("/jobs", json={"targets": {"file": ["survey:a"] * rows, **asked}})
    assert (answer.status_code, answer.json()["kind"]) == (413, "LimitError")


def test_upload_that_never_ends_is_cut_off(portal: RunningPortal) -> None:
    host, _, port = portal.host.partition(":")
    sent = 0
    with socket.create_connection((host, int(port)), timeout=SECOND_S) as connection:
        head = (
            f"POST /api/jobs HTTP/1.1\r\nHost: {portal.host}\r\nTransfer-Encoding: chunked\r\n"
            "Content-Type: application/json\r\n\r\n"
        )
        connection.sendall(head.encode())
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        try:
            while sent < 100_000_000:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
    assert sent < 50_000_000


# ---- Jobs


def test_job_tells_what_became_of_it(done: dict[str, Any]) -> None:
    assert done["phase"] == "COMPLETED"
    assert done["counts"] == {
        "waiting": 0, "ok": TARGETS, "no-overlap": 1, "missing": 1, "error": 0
    }  # fmt: skip
    assert done["predicted"]["median_s"] > 0
    assert done["actual"]["work_s"] > 0
    for name in ("created_at", "started_at", "ended_at", "expires_at"):
        assert done[name].endswith("Z")


def test_rows_are_given_in_pages_and_by_status(
    client: httpx.Client, done: dict[str, Any], targets: dict[str, list[Any]]
) -> None:
    path = f"/jobs/{done['id']}/rows"
    pages, start = [], 0
    while start is not None:
        page = client.get(path, params={"start": start, "limit": 15}).json()
        pages.append(page["rows"])
        start = page["next"]
    rows = [row for page in pages for row in page]
    assert [row["number"] for row in rows] == list(range(TARGETS + 2))
    assert [row["id"] for row in rows[:TARGETS]] == [str(name) for name in targets["id"]]
    (missing,) = client.get(path, params={"status": "missing"}).json()["rows"]
    assert missing["source"] == "survey:none.fit"
    assert missing["reason"]


def test_predictions_are_told(client: httpx.Client, done: dict[str, Any]) -> None:
    told = client.get("/predictions").json()["predictions"]
    assert told[0]["actual_s"] > 0


def test_results_are_those_of_cut_many(
    client: httpx.Client, done: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    table = Table.read(folder / "targets.csv", format="ascii.csv")
    table["file"] = [
        str(folder / "survey" / name.removeprefix("survey:")) for name in table["file"]
    ]
    manifest = swathe.cut_many(table, tmp_path, progress=False)
    rows = client.get(f"/jobs/{done['id']}/rows", params={"status": "ok"}).json()["rows"]
    assert [row["name"] for row in rows] == manifest["path"].tolist()
    for row in rows:
        fetched = client.get(f"/jobs/{done['id']}/files/{row['name']}").content
        assert hashlib.sha256(fetched).hexdigest() == row["sha256"]
        expected = fits.getdata(tmp_path / row["name"])
        np.testing.assert_array_equal(fits.getdata(io.BytesIO(fetched)), expected)


def test_manifest_is_a_table(client: httpx.Client, done: dict[str, Any]) -> None:
    answer = client.get(f"/jobs/{done['id']}/manifest")
    table = Table.read(answer.text, format="ascii.ecsv")
    assert len(table) == TARGETS + 2
    assert (table["status"] == "ok").sum() == TARGETS


# ---- Files


@pytest.mark.parametrize(
    "name", ["none.fits", "..%2f..%2fportal.sqlite", "%2fetc%2fpasswd", "0000", "a%00b"]
)
def test_other_files_are_not_given(client: httpx.Client, done: dict[str, Any], name: str) -> None:
    answer = client.get(f"/jobs/{done['id']}/files/{name}")
    assert answer.status_code == 404


def test_previews_are_pictures(client: httpx.Client, done: dict[str, Any]) -> None:
    row = client.get(f"/jobs/{done['id']}/rows").json()["rows"][0]
    path = f"/jobs/{done['id']}/previews/{row['name']}.png"
    seen = {}
    for stretch in ("asinh", "linear", "log", "sqrt"):
        answer = client.get(path, params={"stretch": stretch, "low": 1, "high": 99, "size": 64})
        assert answer.headers["content-type"] == "image/png"
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert max(picture.size) == 64
            seen[stretch] = float(np.asarray(picture, dtype=float).mean())
    assert seen["linear"] < seen["sqrt"]
    etag = client.get(path).headers["etag"]
    assert client.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert client.get(path, params={"low": 5}).headers["etag"] != etag
    for asked in ({"low": 9, "high": 9}, {"size": 1}, {"stretch": "x"}, {"low": 101}):
        assert client.get(path, params=asked).status_code == 422


# ---- Archives and events


def test_archives_hold_every_result(client: httpx.Client, done: dict[str, Any]) -> None:
    rows = client.get(f"/jobs/{done['id']}/rows", params={"status": "ok"}).json()["rows"]
    expected = {row["name"]: row["sha256"] for row in rows}
    zipped = zipfile.ZipFile(io.BytesIO(client.get(f"/jobs/{done['id']}/archive.zip").content))
    found = {name: hashlib.sha256(zipped.read(name)).hexdigest() for name in zipped.namelist()}
    assert expected.items() <= found.items()
    content = client.get(f"/jobs/{done['id']}/archive.tar").content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            opened = tar.extractfile(member)
            assert opened is not None
            if member.name in expected:
                assert hashlib.sha256(opened.read()).hexdigest() == expected.pop(member.name)
    assert not expected
    with fits.open(io.BytesIO(client.get(f"/jobs/{done['id']}/archive.fits").content)) as hdus:
        assert len(hdus) == 1 + TARGETS
        # Those of compressed files too, which are an extension by themselves.
        for hdu, row in zip(hdus[1:], rows, strict=True):
            assert hdu.name == row["name"].removesuffix(".fits").upper()
            single = client.get(f"/jobs/{done['id']}/files/{row['name']}").content
            with fits.open(io.BytesIO(single)) as alone:
                np.testing.assert_array_equal(hdu.data, alone[-1].data)
    assert client.get(f"/jobs/{done['id']}/archive.rar").status_code == 422


def test_archive_of_a_job_that_runs_follows_it(
    client: httpx.Client, targets: dict[str, list[Any]]
) -> None:
    many = {name: values * 20 for name, values in targets.items()}
    job = submitted(client, many)
    content = client.get(f"/jobs/{job['id']}/archive.tar").content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = [name for name in tar.getnames() if name.endswith(".fits")]
    assert len(set(names)) == 20 * TARGETS


def test_archive_of_a_pending_job_is_a_conflict(
    client: httpx.Client, targets: dict[str, list[Any]]
) -> None:
    job = submitted(client, targets, start=False)
    answer = client.get(f"/jobs/{job['id']}/archive.zip")
    assert (answer.status_code, answer.json()["kind"]) == (409, "JobError")


def test_clients_that_leave_free_their_places(
    portal: RunningPortal, client: httpx.Client, done: dict[str, Any], targets: dict[str, list[Any]]
) -> None:
    pending = submitted(client, targets, start=False)["id"]
    host, _, port = portal.host.partition(":")

    def leave(path: str) -> None:
        with socket.create_connection((host, int(port)), timeout=SECOND_S) as connection:
            connection.sendall(f"GET /api{path} HTTP/1.1\r\nHost: {portal.host}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")

    # More than there are places, of which each holds its own for the time being.
    for _ in range(8):
        leave(f"/jobs/{done['id']}/archive.tar")
        leave(f"/jobs/{pending}/events")
        wait_until(lambda: client.get(f"/jobs/{done['id']}/manifest").status_code == 200)

    def held() -> list[int]:
        events = f"{portal.url}/api/jobs/{pending}/events"
        with ExitStack() as stack:
            streams = [httpx.stream("GET", events, timeout=SECOND_S) for _ in range(6)]
            return sorted(stack.enter_context(each).status_code for each in streams)

    # Those that left may have theirs a little longer, all but one of which was waited for.
    wait_until(lambda: held() == [200] * 5 + [429])
    wait_until(lambda: client.get(f"/jobs/{done['id']}/manifest").status_code == 200)


def events(client: httpx.Client, job: str) -> Iterator[dict[str, Any]]:
    with client.stream("GET", f"/jobs/{job}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                assert name == "job"
                yield json.loads(line.removeprefix("data: "))


def test_events_tell_of_changes_until_the_end(
    client: httpx.Client, targets: dict[str, list[Any]]
) -> None:
    many = {name: values * 20 for name, values in targets.items()}
    job = submitted(client, many, start=False)["id"]
    seen: list[dict[str, Any]] = []
    for told in events(client, job):
        if not seen:
            assert told["phase"] == "PENDING"
            client.post(f"/jobs/{job}/start")
        seen.append(told)
    assert seen[-1]["phase"] == "COMPLETED"
    assert seen[-1]["counts"]["ok"] == 20 * TARGETS
    assert len(seen) >= 3
    # Of a job that has ended, the last word.
    assert [told["phase"] for told in events(client, job)] == ["COMPLETED"]


# ---- Changing jobs


def test_jobs_are_named_listed_and_deleted(
    client: httpx.Client, folder: Path, targets: dict[str, list[Any]]
) -> None:
    job = submitted(client, first(targets, 3), name="one")["id"]
    finished(client, job)
    changed = client.patch(f"/jobs/{job}", json={"name": "two"}).json()
    assert changed["name"] == "two"
    late = client.patch(f"/jobs/{job}", json={"expires_at": "2999-01-01T00:00:00Z"}).json()
    assert late["expires_at"] < "2999"
    listed = client.get("/jobs", params={"last": 1}).json()["jobs"]
    assert [each["id"] for each in listed] == [job]
    pending = client.get("/jobs", params={"phase": "PENDING"}).json()["jobs"]
    assert job not in [each["id"] for each in pending]
    assert (folder / "results" / job).is_dir()
    assert client.delete(f"/jobs/{job}").status_code == 204
    assert client.get(f"/jobs/{job}").status_code == 404
    assert not (folder / "results" / job).exists()


@pytest.mark.parametrize("asked", [{"name": 1}, {"expires_at": "soon"}, {"phase": "ERROR"}])
def test_changes_without_sense_are_told(
    client: httpx.Client, done: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert client.patch(f"/jobs/{done['id']}", json=asked).status_code == 422


def test_job_is_cancelled_and_resumed(client: httpx.Client, targets: dict[str, list[Any]]) -> None:
    many = {name: values * 50 for name, values in targets.items()}
    job = submitted(client, many)["id"]
    assert client.post(f"/jobs/{job}/cancel").json()["phase"] == "ABORTED"
    stopped = finished(client, job)
    assert stopped["counts"]["waiting"] > 0
    client.post(f"/jobs/{job}/resume")
    assert finished(client, job)["counts"]["ok"] == 50 * TARGETS


@pytest.mark.parametrize("job", ["x", "A" * 22, "%00", "%2e%2e", "a" * 5000])
def test_jobs_that_are_none(client: httpx.Client, job: str) -> None:
    for path in ("", "/rows", "/manifest", "/events", "/archive.zip", "/files/a"):
        assert client.get(f"/jobs/{job}{path}").status_code in (404, 400)


@pytest.mark.more
def test_users_see_their_own_jobs_only(folder: Path, tmp_path: Path, targets: Any) -> None:
    shutil.copytree(folder / "survey", tmp_path / "survey")
    with Catalog.open(database_in(tmp_path)) as catalog:
        catalog.add_store("survey", str(tmp_path / "survey"))
        users = {
            name: {"Authorization": f"Bearer {catalog.add_token(name, scopes)[0]}"}
            for name, scopes in (
                ("ann", ["read", "submit"]),
                ("bob", ["read", "submit"]),
                ("root", ["admin"]),
                ("eve", ["read"]),
            )
        }
    settings = '[access]\ntokens = "required"\n'
    with (
        served(tmp_path, settings) as running,
        httpx.Client(base_url=f"{running.url}/api", timeout=SECOND_S) as client,
    ):
        asked = {"targets": first(targets, 2)}
        job = client.post("/jobs", json=asked, headers=users["ann"]).json()
        assert job["owner"] == "ann"
        seen = {
            name: client.get(f"/jobs/{job['id']}", headers=header).status_code
            for name, header in users.items()
        }
        assert seen == {"ann": 200, "bob": 404, "root": 200, "eve": 404}
        listed = {
            name: len(client.get("/jobs", headers=header).json()["jobs"])
            for name, header in users.items()
        }
        assert listed == {"ann": 1, "bob": 0, "root": 1, "eve": 0}
        assert client.delete(f"/jobs/{job['id']}", headers=users["bob"]).status_code == 404
        assert client.post("/jobs", json=asked, headers=users["eve"]).status_code == 403
        assert client.get(f"/jobs/{job['id']}").status_code == 401
        with Catalog.open(database_in(tmp_path)) as catalog:
            catalog.revoke_tokens("ann")
        wait_until(lambda: client.get("/jobs", headers=users["ann"]).status_code == 401)
