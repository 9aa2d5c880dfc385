"""Attacks that a portal has withstood, kept so that it goes on withstanding them."""

from __future__ import annotations

import re
import socket
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits

from tests.support.attacked_portal import SECRET, AttackTarget, attacked
from tests.support.portals import finished, submitted

BOX = {"x0": 0, "y0": 0, "width": 5, "height": 5}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTarget]:
    with attacked(tmp_path_factory.mktemp("attacked")) as running:
        yield running


@pytest.fixture(scope="module")
def ann(portal: AttackTarget) -> Iterator[httpx.Client]:
    with portal.client("ann") as client:
        client.base_url = client.base_url.join("/api")
        yield client


@pytest.fixture(scope="module")
def job(portal: AttackTarget, ann: httpx.Client) -> dict[str, Any]:
    return finished(ann, submitted(ann, portal.targets(5), name="of ann")["id"])


def refusals(client: httpx.Client, files: list[str]) -> dict[str, int]:
    """Return how the portal answers to a job of each file."""
    columns = {name: [value] for name, value in BOX.items()}
    answers = {}
    for file in files:
        answer = client.post("/jobs", json={"targets": {"file": [file], **columns}})
        assert SECRET.decode() not in answer.text
        answers[file] = answer.status_code
    return answers


# ---- Paths and URLs of targets


def test_no_path_leads_out_of_a_store(ann: httpx.Client, portal: AttackTarget) -> None:
    outside = f"{portal.served.folder}/outside/secret.fit"
    ways = ["..", "%2e%2e", "%252e%252e", "..%2f", "\u2025", "\uff0e\uff0e", "..;", ".\u200b."]
    files = [f"survey:{way}/outside/secret.fit" for way in ways]
    files += [f"survey:a/{way}/{way}/outside/secret.fit" for way in ways]
    files += [f"survey:{way}\\outside\\secret.fit" for way in ways]
    files += ["survey:link.fit", "survey:linked/secret.fit", "survey:./linked/./secret.fit"]
    files += [outside, f"file:{outside}", f"file://{outside}", f"file://localhost{outside}"]
    files += [f"survey:{outside}", f"survey:/{outside}", f"survey:file:{outside}"]
    files += ["survey:\0", "survey:a\0/../../outside/secret.fit", "survey:a\n", "survey:"]
    accepted = {file for file, status in refusals(ann, files).items() if status < 400}
    # Names that only look like ways out are names of no file in the store.
    for file in accepted:
        columns = {name: [value] for name, value in BOX.items()}
        ended = finished(ann, submitted(ann, {"file": [file], **columns})["id"])
        assert ended["counts"]["ok"] == 0, file
    assert not accepted & {"survey:link.fit", "survey:linked/secret.fit", outside}


def test_no_url_leads_to_other_servers(ann: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        hosts = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"]
        hosts += ["[::ffff:127.0.0.1]", "[::1]", "127.0.0.1.", "0", "127.0.0.1:9@127.0.0.1"]
        hosts += ["127.0.0.1:9#@127.0.0.1", "127.0.0.1:9\\@127.0.0.1"]
        files = [f"{scheme}://{host}:{port}/a.fits" for host in hosts for scheme in ("http", "dav")]
        files += [f"{scheme}://127.0.0.1:{port}/a" for scheme in ("gopher", "ftp", "s3", "root")]
        files += ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd"]
        assert set(refusals(ann, files).values()) <= {400, 403, 422}
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_redirect_leads_to_other_servers(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as aim,
        socket.create_server(("127.0.0.1", 0)) as sender,
    ):
        place = f"http://127.0.0.1:{aim.getsockname()[1]}/a.fits"
        answer = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()

        def redirect() -> None:
            while True:
                try:
                    connection, _ = sender.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=redirect, daemon=True)
        thread.start()
        host = f"127.0.0.1:{sender.getsockname()[1]}"
        with attacked(tmp_path, hosts=(host,)) as portal, portal.client("ann") as client:
            client.base_url = client.base_url.join("/api")
            columns = {name: [value] for name, value in BOX.items()}
            targets = {"file": [f"http://{host}/a.fits"], **columns}
            ended = finished(client, submitted(client, targets)["id"])
        assert ended["counts"]["ok"] == 0
        aim.settimeout(0.2)
        with pytest.raises(TimeoutError):
            aim.accept()


# ---- Who may do what


def operations(portal: AttackTarget, job: str) -> list[tuple[str, str]]:
    """Return method and path of all that OpenAPI names, and of pages and VO interfaces."""
    with portal.client(None) as client:
        paths = client.get("/api/openapi.json").json()["paths"]
    values = {"job_id": job, "name": "survey", "result": "a.fits", "kind": "zip"}

    def filled(path: str) -> str:
        return re.sub(r"\{(\w+)(?::path)?\}", lambda part: values.get(part[1], "a"), path)

    api = [(method, f"/api{filled(path)}") for path, item in paths.items() for method in item]
    pages = ["/", "/new", "/jobs", f"/jobs/{job}", "/predictions", "/pool", "/trace", "/trace/data"]
    pages += [
        "/stores/survey",
        "/datasets/survey",
        f"/jobs/{job}/rows/0",
        "//jobs",
        "/jobs/../jobs",
    ]
    observatory = ["/vo/sync?ID=x", "/vo/async", "/vo/sia2/query?POS=x", "/vo/links?ID=x"]
    others = [("get", path) for path in (*pages, *observatory)]
    others += [("post", f"/jobs/{job}/{action}") for action in ("cancel", "delete", "resume")]
    return api + others


def test_without_a_token_nothing_is_told(portal: AttackTarget, job: dict[str, Any]) -> None:
    for token in (None, "bad", "Bearer", "\x7f", "x" * 5000):
        with portal.client(None) as client:
            if token is not None:
                client.headers["Authorization"] = f"Bearer {token}"
            for method, path in operations(portal, job["id"]):
                answer = client.request(method, path)
                assert answer.status_code in (303, 307, 400, 401, 403, 404, 405, 422), (
                    method,
                    path,
                )
                assert "of ann" not in answer.text
                assert job["id"] not in answer.text.replace(path, "")


def test_jobs_of_others_are_not_there(portal: AttackTarget, ann: httpx.Client, job: Any) -> None:
    with portal.client("bob") as client:
        for method, path in operations(portal, job["id"]):
            if job["id"] in path:
                status = client.request(method, path).status_code
                assert status in (404, 405, 415, 422), (method, path, status)
    assert ann.get(f"/jobs/{job['id']}").json()["name"] == "of ann"


def test_scopes_do_not_hold_each_other(portal: AttackTarget) -> None:
    with portal.client("eve") as reader, portal.client("sue") as submitter:
        targets = {"targets": portal.targets(1)}
        assert reader.post("/api/jobs", json=targets).status_code == 403
        assert submitter.get("/api/jobs").status_code == 403
        assert reader.get("/trace").status_code in (303, 403)


# ---- Pages of others


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": ""},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://attacker.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(
    ann: httpx.Client, portal: AttackTarget, headers: dict[str, str]
) -> None:
    before = len(ann.get("/jobs").json()["jobs"])
    answer = ann.post("/jobs", json={"targets": portal.targets(1)}, headers=headers)
    assert answer.status_code in (400, 403)
    assert len(ann.get("/jobs").json()["jobs"]) == before


def test_text_is_not_taken_for_json(ann: httpx.Client) -> None:
    body = b'{"targets": {}}'
    answer = ann.post("/jobs", content=body, headers={"Content-Type": "text/plain"})
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize(
    "place",
    [
        "//attacker.example",
        "/\\attacker.example",
        "https://attacker.example",
        "javascript:alert(1)",
        "/\r\nSet-Cookie: a=b",
        "\\\\attacker.example",
        " //attacker.example",
    ],
)
def test_sign_in_leads_nowhere_else(portal: AttackTarget, place: str) -> None:
    with portal.client(None) as client:
        form = {"token": portal.tokens["eve"], "next": place}
        answer = client.post("/sign-in", data=form)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        cookie = answer.headers.get_list("set-cookie")
        assert len(cookie) == 1
        assert "httponly" in cookie[0].lower()
        assert "samesite=strict" in cookie[0].lower()


# ---- What is told back


def test_what_users_write_is_escaped(portal: AttackTarget, ann: httpx.Client) -> None:
    ids = [HOSTILE, "</td><svg onload=alert(1)>", "{{7*7}}", "javascript:alert(1)", "' onclick='a"]
    columns = {name: [value] * len(ids) for name, value in BOX.items()}
    targets = {"id": ids, "file": ["survey:frame-000001.fit"] * len(ids), **columns}
    made = finished(ann, submitted(ann, targets, name=HOSTILE)["id"])["id"]
    paths = [
        "/",
        "/jobs",
        f"/jobs/{made}",
        *(f"/jobs/{made}/rows/{row}" for row in range(len(ids))),
    ]
    paths += [f"/jobs/{HOSTILE}", f"/stores/{HOSTILE}", f"/datasets/{HOSTILE}", f"/{HOSTILE}"]
    paths += [f"/jobs?status={HOSTILE}", f"/sign-in?next={HOSTILE}", f"/new?targets={HOSTILE}"]
    with portal.client("ann") as client:
        for path in paths:
            answer = client.get(path)
            if not answer.headers.get("content-type", "").startswith("text/html"):
                continue
            assert "<script>alert" not in answer.text, path
            assert "<svg onload" not in answer.text, path
            assert "<img src=x" not in answer.text, path
            assert "script-src 'self'" in answer.headers["content-security-policy"], path
            assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\w", answer.text), path


IDS = [
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\windows\\system32",
    "..",
    ".",
    "",
    " ",
    "a" * 5000,
    "\u202etxt.exe",
    "a\r\nb",
    "Same",
    "same",
    "SAME",
    "a/b",
    "a\\b",
    ".hidden",
    "-rf",
    "~root",
    "a:b",
    "*?<>|",
    "tab\there",
]


def test_results_have_flat_unique_names(portal: AttackTarget, ann: httpx.Client) -> None:
    columns = {name: [value] * len(IDS) for name, value in BOX.items()}
    targets = {"id": IDS, "file": ["survey:frame-000001.fit"] * len(IDS), **columns}
    made = finished(ann, submitted(ann, targets)["id"])
    assert made["counts"]["ok"] == len(IDS)
    files = {
        kind: BytesIO(ann.get(f"/jobs/{made['id']}/archive.{kind}").content)
        for kind in ("zip", "tar", "fits")
    }
    names = zipfile.ZipFile(files["zip"]).namelist()
    with tarfile.open(fileobj=files["tar"]) as archive:
        members = archive.getmembers()
    assert all(member.isreg() for member in members)
    for listed in (names, [member.name for member in members]):
        assert len(set(map(str.lower, listed))) == len(IDS) + 1
        for name in listed:
            assert re.fullmatch(r"[^\s/\\:*?<>|~.-][^/\\:*?<>|\r\n\t]{0,80}", name), name
    with fits.open(files["fits"]) as hdus:
        assert len([hdu for hdu in hdus[1:] if isinstance(hdu, fits.ImageHDU)]) == len(IDS)


# ---- Documents


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><VOTABLE>&b;</VOTABLE>',
        b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
        b"<VOTABLE>&c;</VOTABLE>",
        b'<VOTABLE><RESOURCE><TABLE><FIELD name="file" datatype="char" arraysize="*"/><DATA>'
        b'<BINARY><STREAM href="file:///etc/passwd"/></BINARY></DATA></TABLE></RESOURCE></VOTABLE>',
        b'<VOTABLE xmlns:v="http://www.ivoa.net/xml/VOTable/v1.3"><v:RESOURCE><v:TABLE><v:DATA>'
        b'<v:BINARY><v:STREAM HREF="http://127.0.0.1:1/"/></v:BINARY></v:DATA></v:TABLE>'
        b"</v:RESOURCE></VOTABLE>",
    ],
)
def test_documents_lead_nowhere(ann: httpx.Client, content: bytes) -> None:
    answer = ann.post("/jobs", files={"targets": ("t.xml", content)})
    assert 400 <= answer.status_code < 500
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system ['touch OWNED']", "!!python/name:os.system", "!!new:a {}"],
)
def test_tables_run_nothing(ann: httpx.Client, tag: str, portal: AttackTarget) -> None:
    ecsv = f"# %ECSV 1.0\n# ---\n# datatype:\n# - {{name: file, datatype: string, meta: {tag}}}\n"
    content = (ecsv + "# schema: astropy-2.0\nfile\na\n").encode()
    answer = ann.post("/jobs", files={"targets": ("t.ecsv", content)})
    assert 400 <= answer.status_code < 500
    assert not list(Path.cwd().glob("OWNED"))
    assert not list(portal.served.folder.rglob("OWNED"))


# ---- Requests


@pytest.mark.parametrize(
    "ranges",
    [
        "bytes=" + ",".join(["0-"] * 1000),
        "bytes=" + ",".join(f"{n}-{n}" for n in range(5000)),
        "bytes=" + " " * 30_000 + "0-1",
        "bytes=999999999999999999-",
        "bytes=-0",
        "bytes=5-1",
        "bytes=--1",
        "lines=0-1",
    ],
)
def test_ranges_are_bounded(ann: httpx.Client, job: dict[str, Any], ranges: str) -> None:
    rows = ann.get(f"/jobs/{job['id']}/rows").json()["rows"]
    row = next(row for row in rows if row["status"] == "ok")
    answer = ann.get(f"/jobs/{job['id']}/files/{row['name']}", headers={"Range": ranges})
    assert answer.status_code in (200, 206, 400, 416, 431)
    assert len(answer.content) <= 3 * row["bytes"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/jobs/{job}?wait=99999",
        "/api/jobs/{job}?wait=nan",
        "/api/jobs/{job}?wait=-1",
        "/api/jobs/{job}/rows?limit=100000000",
        "/api/jobs/{job}/rows?start=-1",
        "/api/jobs/{job}/previews/0?size=100000",
        "/api/find?ra=NaN&dec=1&radius_deg=1",
        "/api/find?ra=1e308&dec=1e308&radius_deg=1e308",
        "/api/find?ra=1&dec=1&radius_deg=1&band=' OR 1=1 --",
        "/api/datasets/' OR '1'='1",
        "/api/stores/..%2f..%2fetc",
        "/vo/sync?ID=x&CIRCLE=0 0 1e309",
        "/vo/sync?ID=x&POS=CIRCLE%20nan%20nan%20nan",
    ],
)
def test_parameters_are_bounded(portal: AttackTarget, job: dict[str, Any], path: str) -> None:
    with portal.client("ann") as client:
        answer = client.get(path.format(job=job["id"]))
    assert answer.status_code < 500
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding: cow\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 5x\r\n",
        b"X: a\0b\r\n",
    ],
)
def test_requests_that_mean_two_things_are_refused(portal: AttackTarget, head: bytes) -> None:
    host = portal.served.host.encode()
    smuggled = b"GET /api/about HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
    answer = portal.send(
        b"POST /api/estimate HTTP/1.1\r\nHost: "
        + host
        + b"\r\nConnection: close\r\n"
        + head
        + b"\r\n0\r\n\r\n"
        + smuggled
    )
    assert re.match(rb"HTTP/1.1 (400|401|501) ", answer), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("method", ["TRACE", "PUT", "CONNECT", "PROPFIND", "BREW"])
def test_methods_that_are_none(portal: AttackTarget, method: str) -> None:
    with portal.client("ann") as client:
        assert client.request(method, "/api/about").status_code in (400, 405)


# ---- Regions and files


def test_large_regions_are_bounded(portal: AttackTarget) -> None:
    corners = " ".join(f"{10 + np.cos(a):.4f} {np.sin(a):.4f}" for a in np.linspace(0, 6.28, 1000))
    identifier = "ivo://swathe.invalid/survey?frame-000001.fit,0"
    asked: list[list[tuple[str, str]]] = [
        [("ID", identifier), ("CIRCLE", "10 0 180")],
        [("ID", identifier), ("RANGE", "0 360 -90 90")],
        [("ID", identifier), ("POLYGON", corners)],
        [("ID", identifier), *[("POS", "CIRCLE 1 1 1")] * 9000],
        [(f"P{number}", "1") for number in range(10_001)],
    ]
    with portal.client("ann") as client:
        for parameters in asked:
            answer = client.post("/vo/sync", data=_form(parameters))
            assert answer.status_code < 500
            assert len(answer.content) < 100e6


def _form(parameters: list[tuple[str, str]]) -> dict[str, list[str]]:
    form: dict[str, list[str]] = {}
    for name, value in parameters:
        form.setdefault(name, []).append(value)
    return form
