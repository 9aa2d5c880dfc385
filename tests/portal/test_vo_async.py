"""SODA by jobs: `/vo/async`, with pyvo as the client of UWS and stilts as its judge."""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from astropy.io import fits
from astropy.table import Table
from pyvo.dal.tap import AsyncTAPJob

from swathe.portal.vo.uws.handlers import LONGEST_WAIT_S
from tests.portal.test_vo_discovery import stilts
from tests.support.vo_archive import UWS, Visitor, create, did, ended, image, results, visited

PLAIN = did("made", "plain.fits")
ZERO = did("made", "zero.fits")
CUBE = did("made", "cube.fits")
C = 299_792_458.0
SCHEMA = "uk/ac/starlink/ttools/taplint/UWS-v1.1.xsd"
JAR = Path("/usr/share/java/starlink-ttools.jar")


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("async"), real=False) as found:
        yield found


# ---- Jobs


def test_job_of_one_cut_by_pyvo(visitor: Visitor) -> None:
    url = create(visitor, ID=PLAIN, CIRCLE="10 -1 0.0010", RUNID="mine")
    assert url.startswith(f"{visitor.base}/async/")
    job = AsyncTAPJob(url, delete=False)
    assert job.phase == "PENDING"
    assert job.uws_version == "1.1"
    assert job.owner == "anonymous"
    job.run()
    job.wait(timeout=120)
    assert job.phase == "COMPLETED"
    job.raise_if_error()
    assert job.result_uri == f"{url}/results/result"
    found = image(httpx.get(job.result_uri).content)
    expected = visitor.pixels(PLAIN, CIRCLE="10 -1 0.0010")
    assert (found == expected).all() and found.shape == expected.shape
    later = datetime.now(UTC).replace(microsecond=0, tzinfo=None) + timedelta(days=3)
    job.destruction = later
    assert job.destruction.to_datetime() == later
    job.execution_duration = 100
    assert job.execution_duration.sec == 0
    job.delete()
    assert httpx.get(url).status_code == 404


def test_job_begins_with_phase_run(visitor: Visitor) -> None:
    """All combinations of the values, in order; what shows nothing has its reason."""
    url = create(
        visitor,
        ID=[PLAIN, ZERO],
        CIRCLE=["10 -1 0.001", "0.001 30 0.001"],
        PHASE="RUN",
    )
    tree = ended(url)
    assert tree.get("version") == "1.1"
    found = results(tree)
    assert list(found) == ["result", "manifest", *(f"cutout-0000{n}" for n in range(1, 5))]
    kinds = [kind for _, kind in found.values()]
    fits_type, text = "application/fits", "text/plain"
    assert kinds == ["application/zip", text, fits_type, text, text, fits_type]
    for name, identifier, circle in (
        ("cutout-00001", PLAIN, "10 -1 0.001"),
        ("cutout-00004", ZERO, "0.001 30 0.001"),
    ):
        answer = httpx.get(found[name][0])
        assert answer.headers["content-type"] == "application/fits"
        assert (image(answer.content) == visitor.pixels(identifier, CIRCLE=circle)).all()
    for name in ("cutout-00002", "cutout-00003"):
        answer = httpx.get(found[name][0])
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith("UsageError: "), answer.text
        assert str(visitor.folder) not in answer.text
    with zipfile.ZipFile(BytesIO(httpx.get(found["result"][0]).content)) as archive:
        assert archive.testzip() is None
        assert sum(name.endswith(".fits") for name in archive.namelist()) == 2
    manifest = Table.read(httpx.get(found["manifest"][0]).text, format="ascii.ecsv")
    assert list(manifest["status"]) == ["ok", "no-overlap", "no-overlap", "ok"]
    part = httpx.get(found["cutout-00001"][0], headers={"range": "bytes=0-5"})
    assert part.status_code == 206 and part.content == b"SIMPLE"


def test_planes_and_pictures(visitor: Visitor) -> None:
    data = fits.getdata(visitor.folder / "film.fits")
    film = did("made", "film.fits")
    url = create(visitor, ID=film, TIME=["53602.5 53604.5", "53600 53601"], PHASE="RUN")
    found = results(ended(url))
    assert (image(httpx.get(found["cutout-00001"][0]).content) == data[2:5]).all()
    assert (image(httpx.get(found["cutout-00002"][0]).content) == data[:1]).all()
    bands = [f"{C / 103e9!r} {C / 102e9!r}", "1e-7 1e-6", f"0 {C / 104.9e9!r}"]
    found = results(ended(create(visitor, ID=CUBE, BAND=bands, PHASE="RUN")))
    cube = fits.getdata(visitor.folder / "cube.fits")
    assert (image(httpx.get(found["cutout-00001"][0]).content) == cube[:, 2:4]).all()
    assert found["cutout-00002"][1] == "text/plain"
    # Of what lies partly outside, the planes that overlap.
    assert (image(httpx.get(found["cutout-00003"][0]).content) == cube[:, 5:]).all()
    url = create(visitor, ID=PLAIN, SUB="[1:9,1:9]", RESPONSEFORMAT="image/png", PHASE="RUN")
    (picture, kind), _ = results(ended(url)).values()
    assert kind == "image/png" and httpx.get(picture).content.startswith(b"\x89PNG")


TABLE = Table(
    {
        "id": ["a", "b", "c"],
        "file": ["made:plain.fits", "made:zero.fits", "made:plain.fits"],
        "x0": [0, 5, 1000],
        "y0": [0, 6, 1000],
        "width": [3, 4, 5],
        "height": [3, 4, 5],
    }
)


@pytest.mark.parametrize("kind", ["csv", "votable", "parquet", "inline", "upload"])
def test_tables_of_targets(visitor: Visitor, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"targets.{kind}"
    kinds = {"votable": "votable", "parquet": "parquet"}
    TABLE.write(path, format=kinds.get(kind, "ascii.csv"))
    content = path.read_bytes()
    if kind == "inline":
        url = create(visitor, TARGETS=content.decode(), PHASE="RUN")
    elif kind == "upload":
        given = {"UPLOAD": "targets,param:mine", "PHASE": "RUN"}
        url = create(visitor, files={"mine": ("t", content)}, **given)
    else:
        url = create(visitor, files={"TARGETS": (path.name, content)}, PHASE="RUN")
    found = results(ended(url))
    assert len(found) == 5
    data = fits.getdata(visitor.folder / "zero.fits")
    assert (image(httpx.get(found["cutout-00002"][0]).content) == data[6:10, 5:9]).all()
    assert found["cutout-00003"][1] == "text/plain"
    told = httpx.get(f"{url}/parameters").text
    assert "a table of 3 rows" in told


def test_tables_may_name_images(visitor: Visitor) -> None:
    """By their DIDs, or by no more than a place in the sky."""
    rows = (
        "obs_publisher_did,ra,dec,size_deg\n"
        + f'"{PLAIN}",10,-1,0.001\n'
        + f'"{ZERO}",0,30,0.001\n'
    )
    found = results(ended(create(visitor, TARGETS=rows, PHASE="RUN")))
    assert [kind for _, kind in found.values()][2:] == ["application/fits"] * 2
    found = results(ended(create(visitor, TARGETS="ra,dec,size_deg\n10,-1,0.001\n", PHASE="RUN")))
    assert image(httpx.get(found["result"][0]).content).shape == (10, 10)


# ---- One that is wrong of many


def told_of(found: dict[str, tuple[str, str]], *names: str) -> list[str]:
    """What results that are none say."""
    answers = [httpx.get(found[name][0]) for name in names]
    assert all(answer.status_code == 200 for answer in answers)
    assert all(found[name][1] == "text/plain" for name in names)
    return [answer.text for answer in answers]


def test_what_cannot_be_is_a_result_that_says_why(visitor: Visitor) -> None:
    """Each combination is one, as SODA wants it, and no fault stops the others."""
    absent, elsewhere = did("made", "absent.fits"), "ivo://elsewhere/made?plain.fits,0"
    ids = [absent, PLAIN, elsewhere, did("made", "nowhere.fits")]
    given = {"ID": ids, "CIRCLE": ["10 -1 0.001", "10 -1"]}
    url = create(visitor, PHASE="RUN", **given)
    tree = ended(url)
    assert tree.findtext("uws:phase", "", UWS) == "COMPLETED"
    found = results(tree)
    cut = httpx.get(found["cutout-00003"][0]).content
    assert (image(cut) == visitor.pixels(PLAIN, CIRCLE="10 -1 0.001")).all()
    names = [f"cutout-0000{number}" for number in (1, 4, 5, 7)]
    unknown, senseless, foreign, no_sky = told_of(found, *names)
    assert unknown.startswith("UsageError: ID: no such image") and "absent" in unknown
    assert senseless.startswith("UsageError: CIRCLE: expected ra, dec and radius")
    assert foreign.startswith("UsageError: ID: ") and "the authority archive.example" in foreign
    assert no_sky.startswith("UsageError: ") and "no celestial axes" in no_sky
    manifest = Table.read(httpx.get(found["manifest"][0]).text, format="ascii.ecsv")
    assert list(manifest["status"]).count("error") == 7
    with zipfile.ZipFile(BytesIO(httpx.get(found["result"][0]).content)) as archive:
        assert sum(name.endswith(".fits") for name in archive.namelist()) == 1


def test_images_of_a_table_that_are_none(visitor: Visitor) -> None:
    rows = "did,x0,y0,width,height\n"
    bad = '"ivo://archive.example/made?absent.fits,0",0,0,2,2\n'
    good = f'"{PLAIN}",0,0,2,2\n'
    found = results(ended(create(visitor, TARGETS=rows + bad + good, PHASE="RUN")))
    (told,) = told_of(found, "cutout-00001")
    assert told.startswith("UsageError: ID: no such image")
    assert image(httpx.get(found["cutout-00002"][0]).content).shape == (2, 2)
    refused = visitor.client.post("async", data={"TARGETS": rows + bad})
    assert refused.status_code == 404 and refused.text.startswith("UsageError: ID: ")


def test_file_that_is_gone_is_one_result(visitor: Visitor) -> None:
    path = visitor.folder / "film.fits"
    away = path.with_suffix(".away")
    path.rename(away)
    try:
        ids = [did("made", "film.fits"), PLAIN]
        found = results(ended(create(visitor, ID=ids, SUB="[1:2,1:2]", PHASE="RUN")))
    finally:
        away.rename(path)
    (told,) = told_of(found, "cutout-00001")
    assert "made:film.fits" in told and str(visitor.folder) not in told
    assert image(httpx.get(found["cutout-00002"][0]).content).shape == (2, 2)


# ---- UWS


def test_children(visitor: Visitor) -> None:
    url = create(visitor, ID=PLAIN, SUB="[1:2,1:2]", RUNID="r")
    assert httpx.get(f"{url}/phase").text == "PENDING"
    assert httpx.get(f"{url}/executionduration").text == "0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", httpx.get(f"{url}/destruction").text)
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT[\d:.]+Z)?", httpx.get(f"{url}/quote").text)
    assert httpx.get(f"{url}/owner").text == "anonymous"
    assert httpx.get(f"{url}/error").text == ""
    assert "SUB" in httpx.get(f"{url}/parameters").text
    assert not list(ElementTree.fromstring(httpx.get(f"{url}/results").content))
    assert httpx.get(f"{url}/nothing").status_code == 404
    answer = httpx.post(f"{url}/phase", data={"phase": "run"})
    assert (answer.status_code, answer.headers["location"]) == (303, url)
    tree = ended(url)
    assert tree.findtext("uws:runId", "", UWS) == "r"
    told = {each.get("id"): each.text for each in tree.iterfind(".//uws:parameter", UWS)}
    assert told == {"ID": PLAIN, "SUB": "[1:2,1:2]", "RUNID": "r"}
    for name in ("creationTime", "startTime", "endTime", "destruction"):
        assert str(tree.findtext(f"uws:{name}", "", UWS)).endswith("Z")
    listed = ElementTree.fromstring(httpx.get(f"{url}/results").content)
    assert [each.get("id") for each in listed] == ["result", "manifest"]


def test_texts_that_are_no_xml(visitor: Visitor) -> None:
    url = create(visitor, ID=PLAIN, SUB="[1:2,1:2]", RUNID="a\x1e\x1f\uffff<&é", other="\x07")
    tree = ElementTree.fromstring(httpx.get(url).content)
    assert re.fullmatch(r"a\?+<&é", str(tree.findtext("uws:runId", "", UWS)))
    ElementTree.fromstring(visitor.client.get("async").content)


def test_abort_and_delete(visitor: Visitor) -> None:
    for how in ("delete", "action"):
        url = create(visitor, ID=PLAIN, SUB="[1:2,1:2]")
        assert httpx.post(f"{url}/phase", data={"PHASE": "ABORT"}).status_code == 303
        assert httpx.get(f"{url}/phase").text == "ABORTED"
        if how == "delete":
            answer = httpx.delete(url)
        else:
            answer = httpx.post(url, data={"ACTION": "DELETE"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"{visitor.base}/async")
        assert httpx.get(url).status_code == 404


def test_list(visitor: Visitor) -> None:
    before = datetime.now(UTC)
    made = [create(visitor, ID=PLAIN, SUB="[1:2,1:2]") for _ in range(3)]

    def listed(**given: Any) -> list[str]:
        answer = visitor.client.get("async", params=given)
        assert answer.status_code == 200, answer.text
        tree = ElementTree.fromstring(answer.content)
        assert tree.get("version") == "1.1"
        return [str(each.get("{http://www.w3.org/1999/xlink}href")) for each in tree]

    assert listed(AFTER=before.isoformat()) == made[::-1]
    assert listed(LAST=2) == made[:0:-1]
    assert set(made) <= set(listed(PHASE="PENDING"))
    assert set(made) <= set(listed(PHASE=["PENDING", "ERROR"]))
    httpx.post(f"{made[0]}/phase", data={"PHASE": "ABORT"})
    assert made[0] in listed(PHASE="ABORTED") and made[0] not in listed(PHASE="PENDING")
    for given in ({"PHASE": "SLEEPING"}, {"AFTER": "yesterday"}, {"LAST": "-1"}, {"LAST": "x"}):
        answer = visitor.client.get("async", params=given)
        assert answer.status_code == 400 and answer.text.startswith("UsageError: ")


def test_wait_returns_when_the_phase_changes(visitor: Visitor) -> None:
    url = create(visitor, ID=PLAIN, SUB="[1:2,1:2]")
    begun = time.monotonic()
    assert b"PENDING" in httpx.get(url, params={"WAIT": 1}, timeout=120).content
    assert time.monotonic() - begun >= 0.9
    # Another phase than that waited for: no wait at all.
    httpx.get(url, params={"WAIT": -1, "PHASE": "EXECUTING"}, timeout=LONGEST_WAIT_S - 10)
    httpx.post(f"{url}/phase", data={"PHASE": "RUN"})
    ended(url)
    httpx.get(url, params={"WAIT": -1}, timeout=LONGEST_WAIT_S - 10)
    assert httpx.get(url, params={"WAIT": "-2"}).status_code == 200  # it has ended
    waiting = create(visitor, ID=PLAIN, SUB="[1:2,1:2]")
    assert httpx.get(waiting, params={"WAIT": "-2"}).status_code == 400


@pytest.mark.parametrize("path", ["", "/{id}"])
def test_documents_are_valid(visitor: Visitor, path: str, tmp_path: Path) -> None:
    if not JAR.exists():
        pytest.skip("the schema is in stilts, which is not installed")
    with zipfile.ZipFile(JAR) as jar:
        schema = tmp_path / "UWS-v1.1.xsd"
        schema.write_bytes(jar.read(SCHEMA))
    url = create(visitor, ID=[PLAIN, ZERO], SUB="[1:2,1:2]", PHASE="RUN")
    ended(url)
    pending = create(visitor, ID=PLAIN, RUNID="a & b")
    place = f"schemaloc=http://www.ivoa.net/xml/UWS/v1.0={schema}"
    for job in (url, pending):
        document = url if path else f"{visitor.base}/async"
        told = stilts("xsdvalidate", f"doc={document if not path else job}", place)
        assert "ERROR" not in told and "Error" not in told, told


# ---- What is wrong


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "ID: expected images"),
        ({"ID": "nothing"}, "ID: expected ivo://"),
        ({"ID": PLAIN, "CIRCLE": "x"}, "CIRCLE: expected"),
        ({"ID": PLAIN, "PHASE": "ABORT"}, "PHASE: expected RUN"),
        ({"ID": PLAIN, "RESPONSEFORMAT": "x"}, "RESPONSEFORMAT: expected"),
        ({"ID": [PLAIN] * 40, "SUB": ["[1:2,1:2]"] * 40}, "combinations of values, found 1600"),
        ({"TARGETS": "a,b\n1,2\n"}, "targets need"),
        ({"TARGETS": "file,x0,y0,width,height\n/etc/passwd,0,0,1,1\n"}, "registered store"),
        ({"TARGETS": "<x/>"}, "cannot be read as votable"),
        ({"TARGETS": ["a", "b"]}, "TARGETS: expected one value"),
        ({"UPLOAD": "targets,http://127.0.0.1/x"}, "UPLOAD: expected targets,param:NAME"),
        ({"UPLOAD": "targets,param:x"}, "UPLOAD: expected a part 'x'"),
    ],
)
def test_bad_values_are_told(visitor: Visitor, given: dict[str, Any], words: str) -> None:
    answer = visitor.client.post("async", data=given)
    assert 400 <= answer.status_code < 500, answer.text
    assert words in answer.text
    assert re.match(r"(UsageError|MultiValuedParamNotSupported|AuthorizationError): ", answer.text)


def test_bad_changes_are_told(visitor: Visitor) -> None:
    url = create(visitor, ID=PLAIN, SUB="[1:2,1:2]")
    for child, given, status in (
        ("phase", {"PHASE": "SLEEP"}, 400),
        ("phase", {}, 400),
        ("destruction", {"DESTRUCTION": "tomorrow"}, 400),
        ("executionduration", {"EXECUTIONDURATION": "x"}, 400),
        ("parameters", {"CIRCLE": "1 1 1"}, 403),
        ("nothing", {}, 404),
    ):
        answer = httpx.post(f"{url}/{child}", data=given)
        assert answer.status_code == status, (child, answer.text)
    assert httpx.post(url, data={"ACTION": "KILL"}).status_code == 400
    assert httpx.get(f"{visitor.base}/async/nothing").status_code == 404
    for name in ("result", "cutout-00001", "cutout-00002", "cutout-x", "x"):
        answer = httpx.get(f"{url}/results/{name}")
        assert answer.status_code == 404 and answer.text.startswith("UsageError: "), name
