"""OGC API Processes of a real portal, asked by clients that nobody here wrote."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits
from PIL import Image

import swathe
from swathe.catalog import Catalog
from tests.jobs.test_algorithm import source_of
from tests.jobs.test_reduce import write_swath
from tests.support.box import box
from tests.support.cwl import COUNT, real_environment
from tests.support.portals import (
    SECOND_S,
    RunningPortal,
    add_survey,
    database_in,
    served,
    targets_in,
    wait_until,
)

JSON = {"Content-Type": "application/json"}
ASYNC = {"Prefer": "respond-async"}


SKY = (1.0, 2.0, 6.0)
"""Pixels of images of one place."""


def write_sky(path: Path, value: float) -> None:
    """An image of 32 x 32 pixels of 1 arcsec around (10, 20) degrees; one pixel is brighter."""
    header = fits.Header({"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN"})
    for axis, (place, step) in enumerate(((10.0, -1 / 3600), (20.0, 1 / 3600)), 1):
        header.update({f"CRPIX{axis}": 16.5, f"CRVAL{axis}": place, f"CDELT{axis}": step})
    pixels = np.full((32, 32), value, "f4")
    pixels[16, 16] *= 100
    fits.PrimaryHDU(pixels, header).writeto(path)


def box_settings() -> str:
    """The settings of a portal that runs algorithms in the sandbox of this machine."""
    settings = box()
    lines = ["[algorithms]", f'python = "{settings.python.executable}"']
    lines.append(f"folders = {json.dumps(list(map(str, settings.python.folders)))}")
    if settings.users is not None:
        lines.append(f'users = "{settings.users.first}:{settings.users.count}"')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("processes")
    table = add_survey(folder, targets=8)
    (folder / "texts").mkdir()
    (folder / "texts/targets.csv").write_bytes(table.read_bytes())
    (folder / "texts/title.txt").write_text("title")
    for number in range(2):
        (folder / f"texts/t{number}.txt").write_text(f"text {number}")
    for number, value in enumerate(SKY):
        write_sky(folder / f"texts/sky{number}.fits", value)
    write_swath(folder / "texts/g0.h5", 0)
    with Catalog.open(database_in(folder)) as catalog:
        catalog.add_store("texts", str(folder / "texts"))
    with served(folder, box_settings()) as running:
        yield running


@pytest.fixture(scope="module")
def http(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{portal.url}/ogc", timeout=SECOND_S) as http:
        yield http


@pytest.fixture(scope="module")
def targets(portal: RunningPortal) -> dict[str, list[Any]]:
    return targets_in(portal.folder)


def first(targets: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: values[:1] for name, values in targets.items()}


def ended(http: httpx.Client, job: str) -> dict[str, Any]:
    """The status of a job when it has ended."""
    status: dict[str, Any] = {}

    def has_ended() -> bool:
        status.update(http.get(f"/jobs/{job}").json())
        return status["status"] not in ("accepted", "running")

    wait_until(has_ended)
    return status


def test_owslib(portal: RunningPortal, targets: dict[str, list[Any]]) -> None:
    processes = pytest.importorskip("owslib.ogcapi.processes", reason="OWSLib is the client")
    client = processes.Processes(f"{portal.url}/ogc")
    assert {"cut", "stack", "reduce", "echo"} <= {each["id"] for each in client.processes()}
    assert client.api()["info"]["title"].endswith("OGC API Processes")
    assert client.process("stack")["inputs"]["stack"]["schema"]["default"] == "mean"
    assert client.execute("echo", {"stringInput": "a"}) == {"stringOutput": "a"}
    assert client.execute("echo", {"numberInput": 1}, {"numberOutput": {}}) == {"numberOutput": 1}
    document = client.execute("cut", {"targets": first(targets), "format": "npy"})
    pixels = np.load(io.BytesIO(httpx.get(document["result"]["href"]).content))
    assert pixels.shape == (int(targets["height"][0]), int(targets["width"][0]))
    job = client.execute("cut", {"targets": targets}, async_=True)
    assert client.response_headers["Location"] == f"{portal.url}/ogc/jobs/{job['jobID']}"
    with pytest.raises(RuntimeError, match="expected one of"):
        client.execute("cut", {"other": 1})


def test_the_client_that_is_generated_from_the_standard(
    portal: RunningPortal, http: httpx.Client
) -> None:
    """Its models check every document strictly."""
    reason = "ogc-api-processes-client is the client"
    package = pytest.importorskip("ogc_api_processes_client", reason=reason)
    wrapper = pytest.importorskip("ogc_api_processes_client.api_client_wrapper", reason=reason)
    client = wrapper.ApiClientWrapper(package.Configuration(host=f"{portal.url}/ogc"))
    assert client.get_landing_page().links
    assert "core" in client.get_conformance_classes().conforms_to[0]
    ids = [each.id for each in client.get_processes().processes]
    for each in ids:
        assert client.get_process_description(each).outputs
    job = http.post("/processes/echo/execution", json={"inputs": {"numberInput": 1}}, headers=ASYNC)
    status = client.get_status(job.json()["jobID"])
    assert (status.status.value, status.process_id, status.progress) == ("successful", "echo", 100)
    assert status.job_id in {each.job_id for each in client.get_jobs().jobs}
    assert client.dismiss(status.job_id).status.value == "dismissed"


def test_curl_gets_the_file_of_a_cut(
    portal: RunningPortal, targets: dict[str, list[Any]], tmp_path: Path
) -> None:
    body = {"inputs": {"targets": first(targets)}, "outputs": {"result": {}}}
    url = f"{portal.url}/ogc/processes/cut/execution"
    command = ["curl", "-sSf", "-H", "Content-Type: application/json", "-d", json.dumps(body), url]
    command += ["-o", str(tmp_path / "cut.fits")]
    subprocess.run(command, check=True, timeout=SECOND_S)
    x, y = (int(np.floor(targets[name][0])) for name in ("x", "y"))
    cut = fits.getdata(tmp_path / "cut.fits")
    frame = targets["file"][0].partition(":")[2]
    whole = fits.getdata(portal.folder / "survey" / frame)
    shape = (int(targets["height"][0]), int(targets["width"][0]))
    assert cut.shape == shape
    places = [
        (row, column)
        for row in range(y - shape[0], y + 1)
        for column in range(x - shape[1], x + 1)
        if np.array_equal(cut, whole[row : row + shape[0], column : column + shape[1]])
    ]
    assert len(places) == 1


def test_targets_by_reference_by_text_and_in_a_large_body(
    http: httpx.Client, portal: RunningPortal, targets: dict[str, list[Any]]
) -> None:
    """Larger bodies are read in a process of their own."""
    text = (portal.folder / "targets.csv").read_text()
    forms: list[Any] = [
        {"href": "texts:targets.csv"},
        {"value": text, "mediaType": "text/csv"},
        [dict(zip(targets, row, strict=True)) for row in zip(*targets.values(), strict=True)],
    ]
    for each in forms:
        body = {"inputs": {"targets": each}, "outputs": {"manifest": {}}, "response": "raw"}
        answer = http.post("/processes/cut/execution", json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (
            200,
            "text/plain; charset=utf-8",
        )
        lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
        rows = list(csv.DictReader(lines))
        assert [row["status"] for row in rows] == ["ok"] * 8
    many = {name: values * 250 for name, values in targets.items()}
    body = {"inputs": {"targets": many, "format": "npy"}}
    answer = http.post("/processes/cut/execution", json=body, headers=ASYNC)
    assert answer.status_code == 201, answer.text
    job = answer.json()["jobID"]
    assert httpx.get(f"{portal.url}/api/jobs/{job}").json()["rows"] == 2000
    page = httpx.get(f"{portal.url}/jobs/{job}", timeout=SECOND_S)
    assert (page.status_code, job in page.text) == (200, True)
    assert http.delete(f"/jobs/{job}").json()["status"] in ("dismissed", "successful")
    for href, status in (("texts:none.csv", 404), ("texts:../portal.sqlite", 403)):
        answer = http.post("/processes/cut/execution", json={"inputs": {"targets": {"href": href}}})
        assert (answer.status_code, answer.json()["status"]) == (status, status)


def test_results_of_one_target_and_of_several(
    http: httpx.Client, targets: dict[str, list[Any]]
) -> None:
    inputs = {"targets": targets}
    answer = http.post(
        "/processes/cut/execution", json={"inputs": inputs, "outputs": {"result": {}}}
    )
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert len(archive.namelist()) == 9  # with the manifest
    one = {"inputs": {"targets": first(targets)}, "response": "document"}
    value = {"result": {"transmissionMode": "value", "format": {"mediaType": "image/png"}}}
    picture = http.post("/processes/cut/execution", json={**one, "outputs": value}).json()
    assert picture["result"]["mediaType"] == "image/png"
    assert picture["result"]["value"].startswith("iVBORw0K")
    wrong = {**first(targets), "x": [1e9]}
    failure = http.post("/processes/cut/execution", json={"inputs": {"targets": wrong}})
    assert failure.status_code == 200  # no pixel is in the region: the manifest says so
    assert set(failure.json()) == {"manifest"}


def result_of(http: httpx.Client, process: str, inputs: dict[str, Any]) -> httpx.Response:
    body = {"inputs": inputs, "outputs": {"result": {}}, "response": "raw"}
    answer = http.post(f"/processes/{process}/execution", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def test_images_are_stacked_and_become_a_picture(http: httpx.Client) -> None:
    columns = {"ra": 10.0, "dec": 20.0, "size_deg": 16 / 3600, "group": "s"}
    targets: dict[str, list[Any]] = {name: [value] * 3 for name, value in columns.items()}
    targets["file"] = [f"texts:sky{number}.fits" for number in range(3)]
    stack = fits.getdata(io.BytesIO(result_of(http, "stack", {"targets": targets}).content))
    assert np.median(stack) == pytest.approx(np.mean(SKY))
    assert np.nanmax(stack) == pytest.approx(100 * np.mean(SKY))
    targets["band"] = ["i", "r", "g"]
    picture = result_of(http, "rgb", {"targets": targets, "bands": ["i", "r", "g"]})
    assert picture.headers["content-type"] == "image/png"
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    assert (pixels.ndim, pixels.shape[2]) == (3, 3)
    assert pixels.max() > np.median(pixels)


def test_granules_are_reduced(http: httpx.Client, portal: RunningPortal, tmp_path: Path) -> None:
    inputs = {"targets": {"file": ["texts:g0.h5"]}, "array": "lst", "grid": "5deg"}
    result = result_of(http, "reduce", inputs)
    assert result.headers["content-type"] == "application/x-netcdf"
    swath = str(portal.folder / "texts/g0.h5")
    swathe.reduce([swath], array="lst", grid="5deg").write(tmp_path / "g.nc")
    assert result.content == (tmp_path / "g.nc").read_bytes()


def test_an_algorithm_is_executed_and_jobs_keep_its_version(
    http: httpx.Client, portal: RunningPortal
) -> None:
    python = {"Content-Type": "text/x-python"}
    source = source_of("each").decode()
    assert http.post("/processes", content=source, headers=python).status_code == 201
    inputs: dict[str, Any] = {
        "texts": [{"href": "texts:t0.txt"}, "texts:t1.txt"],
        "title": {"href": "texts:title.txt"},
        "factor": {"value": 3},
    }
    answer = http.post("/processes/lines/execution", json={"inputs": inputs})
    assert answer.status_code == 201, answer.text  # it is executed as a job only
    newer = source.replace('"1"\n', '"2"\n').replace("{text.role}", "new")
    assert http.put("/processes/lines", content=newer, headers=python).status_code == 204
    assert http.get("/processes/lines").json()["version"] == "2"
    status = ended(http, answer.json()["jobID"])
    assert (status["status"], status["processID"]) == ("successful", "lines"), status
    same = httpx.get(f"{portal.url}/api/jobs/{status['jobID']}").json()
    assert same["options"]["algorithm"] == "lines@1"
    document = http.get(f"/jobs/{status['jobID']}/results").json()
    assert set(document) == {"table", "more", "manifest"}
    with zipfile.ZipFile(io.BytesIO(httpx.get(document["table"]["href"]).content)) as archive:
        tables = [archive.read(name).decode() for name in archive.namelist()]
    assert [table.splitlines()[0] for table in tables] == ["title,3"] * 2
    assert [table.rpartition(",")[2] for table in tables] == ["text 0\n", "text 1\n"]
    # One group gives the file itself; a client that waits for it gets it at once.
    one = {**inputs, "texts": {"href": "texts:t1.txt"}}
    body: dict[str, Any] = {"inputs": one, "outputs": {"table": {}}, "response": "raw"}
    wait = {"Prefer": "respond-async, wait=60"}
    answer = http.post("/processes/lines/execution", json=body, headers=wait)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.text.endswith("text 1\n")
    # An input may have the name that lists of targets have.
    other = source.replace('"lines"', '"other-lines"').replace("texts", "targets")
    assert http.post("/processes", content=other, headers=python).status_code == 201
    body["inputs"] = {**inputs, "targets": ["texts:t0.txt"]}
    body["inputs"].pop("texts")
    answer = http.post("/processes/other-lines/execution", json=body, headers=wait)
    assert answer.text.endswith("text 0\n"), answer.text
    for name, value in (("factor", 10), ("texts", 3), ("texts", {"href": "file:///etc/passwd"})):
        answer = http.post("/processes/lines/execution", json={"inputs": {**inputs, name: value}})
        assert answer.status_code in (400, 403), answer.text
        assert name in answer.json()["detail"] or "STORE:path" in answer.json()["detail"]


def test_a_document_of_cwl_is_deployed_and_executed(
    http: httpx.Client, portal: RunningPortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", database_in(portal.folder))
    with real_environment():
        answer = http.post("/processes", content=COUNT, headers={"Content-Type": "application/cwl"})
        assert answer.status_code == 201, answer.text
        inputs = {"granules": ["texts:t0.txt", {"href": "texts:title.txt"}], "mode": "fast"}
        body = {"inputs": inputs, "outputs": {"table": {}}, "response": "raw"}
        wait = {"Prefer": "respond-async, wait=60"}
        answer = http.post("/processes/count-lines/execution", json=body, headers=wait)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert [line.rpartition("/")[2] for line in answer.text.splitlines()] == [
        "t0.txt",
        "title.txt",
        " 0 total",
    ]
