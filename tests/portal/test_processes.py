"""OGC API Processes of a portal: documents, executions, jobs, deployment, and bad requests.

The tests named as in the OGC's own suite (ets-ogcapi-processes10) ask what these ask of `echo`.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits

from swathe.algorithms.cwl_document import parse_document
from swathe.operations.registry import operations
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.http.connections import refusal
from swathe.portal.processes import echo
from tests.support.algorithms import LST, tar_of
from tests.support.catalogs import new_catalog
from tests.support.cwl import COUNT, environment

NAME = "lst-quarter-degree"
TYPES = "http://www.opengis.net/def/exceptions"
PACKAGE = "application/ogcapppkg+json"
ASYNC = {"Prefer": "respond-async"}
BBOX = {"bbox": [7.0, 45.5, 8, 46], "crs": "http://www.opengis.net/def/crs/OGC/1.3/CRS84"}
ONE = {"file": ["survey:a.fits"], "x": [1], "y": [1], "height": [4], "width": [4]}


class Client:
    """Asks a portal in this process, as one of its users."""

    def __init__(self, app: Any, tokens: dict[str, str]) -> None:
        self.app, self.tokens = app, tokens

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "ann",
        kind: str = "application/json",
        **headers: str,
    ) -> httpx.Response:
        headers = {"Content-Type": kind, **headers}
        if user in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[user]}"
        content = body if isinstance(body, str | bytes | None) else json.dumps(body)
        if not path.startswith(("/api", "/ogc", "/stac")):
            path = f"/ogc{path}"

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())

    def echo(self, content: Any, **headers: str) -> httpx.Response:
        return self("POST", "/processes/echo/execution", content, **headers)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("processes")
    settings: dict[str, dict[str, Any]] = {
        "catalog": {"database": new_catalog(folder / "c.sqlite")},
        "results": {"folder": str(folder / "results")},
        "access": {"tokens": "required", "hosts": ["data.example"]},
    }
    (folder / "survey").mkdir()
    fits.PrimaryHDU(np.zeros((8, 8))).writeto(folder / "survey/a.fits")
    with open_portal(config_of(settings)) as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", settings["catalog"]["database"])
        portal.catalog.add_store("survey", str(folder / "survey"))
        scopes = {"ann": ["read", "submit"], "bob": ["read", "submit"], "eve": ["read"]}
        add = portal.catalog.add_token
        tokens = {user: add(user, each)[0] for user, each in scopes.items()}
        yield Client(make_app(portal), tokens)


def problem(answer: httpx.Response, status: int, kind: str = "") -> str:
    """The text of a problem document, of this status and type."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content: dict[str, Any] = answer.json()
    assert content["status"] == status
    assert content["type"] == (f"{TYPES}/{kind}" if kind else "about:blank")
    assert content["title"]
    return str(content["detail"])


def test_landing_page_conformance_and_api_definition(ask: Client) -> None:
    page = ask("GET", "/", user="eve").json()
    rels = {each["rel"]: each for each in page["links"]}
    for name in ("conformance", "processes", "job-list"):
        assert rels[f"http://www.opengis.net/def/rel/ogc/1.0/{name}"] == {
            **rels[name],
            "rel": f"http://www.opengis.net/def/rel/ogc/1.0/{name}",
        }
    description = ask("GET", "/openapi.json", user="eve")
    assert description.headers["content-type"] == rels["service-desc"]["type"]
    assert "/processes/{identifier}/execution" in description.json()["paths"]
    assert description.json()["servers"] == [{"url": page["links"][0]["href"].rstrip("/")}]
    classes = ask("GET", "/conformance", user="eve").json()["conformsTo"]
    assert "http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/core" in classes


def test_the_process_list_has_all_once_by_pages(ask: Client) -> None:
    ids, path = [], "/processes?limit=2"
    while path:
        page = ask("GET", path, user="eve").json()
        assert len(page["processes"]) <= 2
        ids += [each["id"] for each in page["processes"]]
        nexts = [each["href"] for each in page["links"] if each["rel"] == "next"]
        path = nexts[0].partition("/ogc")[2] if nexts else ""
    assert ids[:7] == ["cut", "mse", "reduce", "rgb", "stack", "volren", "echo"]
    assert len(set(ids)) == len(ids)
    for limit in ("0", "-1", "1e9", "x"):
        problem(ask("GET", f"/processes?limit={limit}"), 400)


@pytest.mark.parametrize("name", ["cut", "stack", "reduce", "mse", "volren", "echo"])
def test_a_description_has_the_options_of_the_registry(ask: Client, name: str) -> None:
    process = ask("GET", f"/processes/{name}", user="eve").json()
    assert (process["id"], process["mutable"]) == (name, False)
    assert {"sync-execute", "async-execute", "dismiss"} == set(process["jobControlOptions"])
    for each in [*process["inputs"].values(), *process["outputs"].values()]:
        assert each["title"]
        assert {"type", "oneOf"} & each["schema"].keys()
        assert "prefixItems" not in json.dumps(each) and '"null"' not in json.dumps(each)
    if name in operations():
        kind = operations()[name]
        inputs = process["inputs"]
        assert inputs["targets"].get("minOccurs", 1) == 1
        assert inputs["format"]["schema"]["enum"] == [each.name for each in kind.formats]
        for option in kind.options:
            assert inputs[option.name]["description"] == option.help
            assert inputs[option.name]["schema"]["default"] == option.default


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("string", "Ångström", "Ångström"),
        ("number", 2.5, 2.5),
        ("array", [1, 2.5, -3], [1, 2.5, -3]),
        (
            "object",
            {"value": {"a": [{"b": None}]}, "mediaType": "application/json"},
            {"a": [{"b": None}]},
        ),
        ("object", {"a": 1}, {"a": 1}),
        ("boundingBox", BBOX, BBOX),
        (
            "binary",
            "aGk=",
            {"value": "aGk=", "encoding": "base64", "mediaType": "application/octet-stream"},
        ),
        (
            "binary",
            {"value": "aGk=", "encoding": "base64", "mediaType": "image/tiff"},
            {"value": "aGk=", "encoding": "base64", "mediaType": "image/tiff"},
        ),
    ],
)
def test_job_creation_input(ask: Client, name: str, value: Any, result: Any) -> None:
    """InputInline, -Array, -Object, -Bbox, -Binary, -Mixed; SyncDocument."""
    answer = ask.echo({"inputs": {f"{name}Input": value}, "response": "document"})
    assert (answer.status_code, answer.json()) == (200, {f"{name}Output": result})


def test_job_creation_sync_raw(ask: Client) -> None:
    """SyncRawValueOne, -ValueMulti, -Ref; DefaultOutputs."""
    both = {"stringInput": "a", "binaryInput": "aGk="}
    choice = {"binaryOutput": {"transmissionMode": "value"}}
    one = ask.echo({"inputs": both, "outputs": choice, "response": "raw"})
    assert (one.status_code, one.content) == (200, b"hi")
    assert one.headers["content-disposition"].startswith("attachment")
    several = ask.echo({"inputs": both, "response": "raw"})
    assert several.headers["content-type"].startswith("multipart/related; boundary=")
    assert b"Content-ID: <stringOutput>" in several.content and b"\r\n\r\nhi\r\n" in several.content
    reference = {"stringOutput": {"transmissionMode": "reference"}}
    link = ask.echo({"inputs": both, "outputs": reference, "response": "raw"})
    assert (link.status_code, link.content) == (204, b"")
    href = link.headers["link"].partition(">")[0].removeprefix("<")
    assert ask("GET", href.partition("/ogc")[2]).text == "a"
    mixed = ask.echo({"inputs": both, "outputs": {**choice, **reference}, "response": "raw"})
    assert b"Content-Location: http" in mixed.content and b"\r\n\r\nhi\r\n" in mixed.content
    # As the draft of 2.0 has it: by the header Accept.
    assert ask.echo({"inputs": {"stringInput": "a"}}).text == "a"
    as_json = ask.echo({"inputs": {"stringInput": "a"}}, Accept="application/json")
    assert as_json.json() == {"stringOutput": "a"}
    assert ask.echo({"inputs": both}, Accept="multipart/related").content.startswith(b"--")
    assert set(ask.echo({"inputs": both}).json()) == {"stringOutput", "binaryOutput"}
    minimal = ask.echo({"inputs": both, "response": "document"}, Prefer="return=minimal").json()
    assert all(set(each) == {"href", "type"} for each in minimal.values())


class Later(datetime):
    """The clock two minutes from now."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(minutes=2)


def test_job_creation_async_and_its_results(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """AutoExecutionMode, JobOp, ResultsExceptionResultsNotReady, ResultsSuccess."""
    answer = ask.echo({"inputs": {"stringInput": "a", "pause": 60}}, **ASYNC)
    assert (answer.status_code, answer.headers["preference-applied"]) == (201, "respond-async")
    status = answer.json()
    place = answer.headers["location"].partition("/ogc")[2]
    assert place == f"/jobs/{status['jobID']}"
    assert status["id"] == status["jobID"]
    assert (status["type"], status["processingEntityType"]) == ("process", "ogc-api-processes")
    assert (status["processID"], status["status"], status["progress"]) == ("echo", "accepted", 0)
    not_ready = "ogcapi-processes-1/1.0/result-not-ready"
    problem(ask("GET", f"{place}/results"), 404, not_ready)
    problem(ask("GET", f"{place}/results/stringOutput"), 404, not_ready)
    problem(ask("GET", place, user="bob"), 404, "ogcapi-processes-1/1.0/no-such-job")
    assert ask("GET", f"/api{place}").json()["name"] == "echo"
    monkeypatch.setattr(echo, "datetime", Later)
    # Its timer was lost with the event loop, as at a kill: the next request ends it.
    status = ask("GET", place).json()
    assert (status["status"], status["progress"]) == ("successful", 100)
    assert {"created", "finished", "updated"} <= status.keys()
    (href,) = [each["href"] for each in status["links"] if each["rel"].endswith("1.0/results")]
    assert ask("GET", href.partition("/ogc")[2]).text == "a"
    assert ask("GET", f"{place}/results/stringOutput").text == "a"
    problem(ask("GET", f"{place}/results/other"), 404)


def test_a_job_of_a_process_is_one_of_the_portal(ask: Client) -> None:
    """DismissOp, DismissSuccess, and the job list."""
    answer = ask(
        "POST", "/processes/cut/execution", {"inputs": {"targets": ONE, "mode": "strict"}}, **ASYNC
    )
    assert answer.status_code == 201, answer.text
    job = answer.json()["jobID"]
    same = ask("GET", f"/api/jobs/{job}").json()
    assert (same["options"]["operation"], same["options"]["mode"]) == ("cut", "strict")
    assert same["rows"] == 1

    def ids(query: str) -> list[str]:
        page = ask("GET", f"/jobs?{query}")
        assert page.status_code == 200, page.text
        return [each["jobID"] for each in page.json()["jobs"]]

    assert ids("processID=cut") == [job]
    assert job in ids("status=accepted,running&type=process&limit=1000")
    assert job not in ids("status=successful")
    assert job not in ids("datetime=../2001-01-01T00:00:00Z")
    assert job not in ids("minDuration=1000")
    assert ask("GET", "/jobs", user="bob").json()["jobs"] == []
    problem(ask("GET", "/jobs?status=good"), 400)
    assert ask("DELETE", f"/jobs/{job}").json()["status"] == "dismissed"
    assert ask("GET", f"/jobs/{job}").json()["status"] == "dismissed"
    assert ask("GET", f"/api/jobs/{job}").json()["phase"] == "ABORTED"
    assert "dismissed" in problem(ask("GET", f"/jobs/{job}/results"), 410)
    assert ask("DELETE", f"/jobs/{job}").status_code == 200
    problem(ask("GET", f"/jobs/{job}"), 404, "ogcapi-processes-1/1.0/no-such-job")
    problem(ask("GET", "/jobs/../x/results"), 404)


TAR = "application/x-tar"
UNIT = {"value": LST, "mediaType": "text/x-python"}
MEDIA = "ogcapi-processes-2/1.0/unsupported-media-type"
DUPLICATE = "ogcapi-processes-2/1.0/duplicated-process"
DEEP = "[" * 10_000 + "]" * 10_000
TARGETS = {"targets": ONE}


@pytest.mark.parametrize(
    ("process", "body", "status", "text"),
    [
        ("echo", '{"inputs": {"numberInput": NaN}}', 400, "found NaN"),
        ("echo", '{"inputs": {"numberInput": 1e400}}', 400, "finite number"),
        ("echo", f'{{"inputs": {{"numberInput": {"9" * 5000}}}}}', 400, "digits"),
        ("echo", f'{{"inputs": {{"objectInput": {{"a": {DEEP}}}}}}}', 400, "expected JSON"),
        ("echo", f'{{"inputs": {{"objectInput": {{"a": {"[" * 40}{"]" * 40}}}}}}}', 400, "levels"),
        (
            "echo",
            '{"inputs": {"stringInput": "a", "stringInput": "b"}}',
            400,
            "'stringInput' twice",
        ),
        ("echo", '{"inputs": {"stringInput": "\\ud800"}}', 400, "surrogates"),
        ("echo", b'{"inputs": {"stringInput": "\xff"}}', 400, "expected JSON"),
        ("echo", "[]", 400, "expected an object"),
        ("echo", {"inputs": []}, 400, "inputs: expected an object"),
        ("echo", {"inputs": {"stringInput": 3}}, 400, "stringInput: expected text"),
        ("echo", {"inputs": {"stringInput": ["a", "b"]}}, 400, "stringInput: expected text"),
        ("echo", {"inputs": {"numberInput": "3"}}, 400, "numberInput: expected a number"),
        ("echo", {"inputs": {"boundingBoxInput": {"bbox": [1, 2]}}}, 400, "4 or 6 numbers"),
        ("echo", {"inputs": {"binaryInput": "~"}}, 400, "expected base64"),
        ("echo", {"inputs": {"pause": 1e6}}, 400, "pause: expected at most 60"),
        ("echo", {"inputs": {"other": 1}}, 400, "input 'other': expected one of stringInput"),
        ("echo", {"inputs": TARGETS}, 400, "input 'targets': expected one of"),
        ("echo", {"inputs": {"stringInput": "a" * 40_000}}, 413, "at most 32,000"),
        ("echo", {"inputs": {"stringInput": {"value": "a", "mediaType": "a\r\nb"}}}, 400, "media"),
        ("echo", {"inputs": {"objectInput": {"href": "file:///etc/passwd"}}}, 403, "http(s)"),
        ("echo", {"inputs": {"objectInput": {"href": "http://127.0.0.1/"}}}, 403, "127.0.0.1:80"),
        ("echo", {"inputs": {"objectInput": {"href": "https://data.example/a"}}}, 400, "a value"),
        ("echo", {"inputs": {"stringInput": "a"}, "outputs": {}}, 400, "found none"),
        (
            "echo",
            {"inputs": {"stringInput": "a"}, "outputs": {"other": {}}},
            400,
            "expected one of",
        ),
        ("echo", {"inputs": {}, "outputs": {"stringOutput": {}}}, 400, "expected its input"),
        ("echo", {"inputs": {}, "response": "xml"}, 400, "expected raw or document"),
        ("echo", {"inputs": {}, "mode": "sync"}, 400, "expected the fields"),
        ("cut", {"inputs": {}}, 400, "input targets: expected a value"),
        ("cut", {"inputs": {"targets": []}}, 400, "input targets: expected a value"),
        ("cut", {"inputs": {"targets": {"href": "file:///etc/passwd"}}}, 403, "STORE:path"),
        ("cut", {"inputs": {"targets": {"href": "http://127.0.0.1/t.csv"}}}, 403, "127.0.0.1:80"),
        ("cut", {"inputs": {"targets": {"href": "none:t.csv"}}}, 403, "no store 'none'"),
        ("cut", {"inputs": {"targets": {"href": 3}}}, 400, "expected href with a text"),
        ("cut", {"inputs": {"targets": {"value": "x", "mediaType": "a/b"}}}, 400, "media type"),
        ("cut", {"inputs": {"targets": {**ONE, "file": ["/etc/passwd"]}}}, 403, "without a store"),
        ("cut", {"inputs": {**TARGETS, "mode": "all"}}, 400, "option mode"),
        ("cut", {"inputs": {**TARGETS, "fill": "x"}}, 400, "option fill"),
        ("cut", {"inputs": {**TARGETS, "format": "gif"}}, 400, "format: expected"),
        (
            "cut",
            {"inputs": TARGETS, "outputs": {"result": {"format": {"mediaType": "text/html"}}}},
            400,
            "expected a media type (application/fits",
        ),
        (
            "cut",
            {
                "inputs": {**TARGETS, "format": "png"},
                "outputs": {"result": {"format": {"mediaType": "application/fits"}}},
            },
            400,
            "none of the formats",
        ),
        ("reduce", {"inputs": {**TARGETS, "where": "a ("}}, 400, "where"),
    ],
)
def test_bad_executions_are_problems(
    ask: Client, process: str, body: Any, status: int, text: str
) -> None:
    count = len(ask("GET", "/jobs?limit=10000").json()["jobs"])
    answer = ask("POST", f"/processes/{process}/execution", body)
    assert text in problem(answer, status)
    assert len(ask("GET", "/jobs?limit=10000").json()["jobs"]) == count


@pytest.mark.parametrize("name", ["nope", "Echo", "..%2Fecho", "a" * 10_240, "a%00b", "cut@1", "é"])
def test_process_exception_no_such_process(ask: Client, name: str) -> None:
    kind = "ogcapi-processes-1/1.0/no-such-process"
    for method, path in (("GET", ""), ("POST", "/execution"), ("DELETE", "")):
        answer = ask(method, f"/processes/{name}{path}", {"inputs": {}} if path else None)
        if "%2F" in name:  # it is another path
            assert answer.status_code in (404, 405)
        else:
            problem(answer, 404, kind)


def test_users_need_a_token_with_the_scope(ask: Client) -> None:
    problem(ask("GET", "/processes", user="nobody"), 401)
    problem(ask("POST", "/processes/echo/execution", {"inputs": {}}, user="eve"), 403)
    problem(ask("POST", "/processes", LST, user="eve", kind="text/x-python"), 403)
    problem(ask("POST", "/processes/echo/execution", "x", kind="text/xml"), 415)


def test_algorithms_are_deployed_replaced_and_undeployed(ask: Client) -> None:
    python = "text/x-python"
    answer = ask("POST", "/processes", LST, kind=python)
    assert answer.status_code == 201, answer.text
    place = answer.headers["location"].partition("/ogc")[2]
    assert (place, answer.json()["version"]) == (f"/processes/{NAME}", "1.2")
    process = ask("GET", place, user="bob").json()
    assert process["mutable"] is True
    link = package_link(process)
    assert link["href"].endswith(f"{place}/package") and link["type"] == python
    assert process["inputs"]["min_quality"]["schema"] == {
        **{"type": "integer", "minimum": 0, "maximum": 3, "default": 1},
    }
    assert process["inputs"]["granules"]["maxOccurs"] == "unbounded"
    assert process["outputs"]["log"]["schema"]["oneOf"][0]["contentMediaType"] == "text/csv"
    assert process["jobControlOptions"] == ["async-execute", "dismiss"]
    again = ask("POST", "/processes", LST, kind=python)
    problem(again, 409, DUPLICATE)
    # A version never changes: PUT adds one, and the old one stays.
    newer = LST.replace('"1.2"', '"1.3"')
    assert "new version" in problem(ask("PUT", place, f"{LST}\n", kind=python), 409)
    problem(ask("PUT", place, newer, user="bob", kind=python), 403)
    assert ask("PUT", place, newer, kind=python).status_code == 204
    assert ask("GET", place).json()["version"] == "1.3"
    assert ask("GET", f"{place}@1.2").json()["version"] == "1.2"
    other = LST.replace(NAME, "other-name")
    assert "other-name" in problem(ask("PUT", place, other, kind=python), 409)
    problem(
        ask("PUT", "/processes/other-name", other, kind=python),
        404,
        "ogcapi-processes-1/1.0/no-such-process",
    )
    assert ask("GET", f"{place}/package").text == newer
    package = ask("GET", f"{place}/package", Accept=PACKAGE).json()
    assert package["processDescription"]["process"]["id"] == NAME
    problem(ask("DELETE", place, user="bob"), 403)
    assert ask("DELETE", place).status_code == 204
    problem(ask("GET", place), 404, "ogcapi-processes-1/1.0/no-such-process")
    # The package that was served is one that can be deployed.
    assert ask("POST", "/processes", package, kind=PACKAGE).status_code == 201
    assert ask("GET", f"{place}/package").text == newer


def package_link(process: dict[str, Any]) -> dict[str, Any]:
    (link,) = [each for each in process["links"] if each["rel"] == "package"]
    assert isinstance(link, dict)
    return link


@pytest.mark.parametrize("compression", ["gz", ""])
def test_a_tar_is_deployed_as_its_file_and_as_a_package(ask: Client, compression: str) -> None:
    name = f"packed-{compression or 'plain'}"
    kind = "application/gzip" if compression else "application/x-tar"

    def package_with(version: str, more: bytes = b"") -> bytes:
        source = LST.replace(NAME, name).replace('"1.2"', f'"{version}"').encode()
        content = tar_of({"algorithm.py": source, "more.py": more})
        return gzip.compress(content) if compression else content

    first, second = package_with("1"), package_with("2")
    answer = ask("POST", "/processes", first, kind=kind)
    assert answer.status_code == 201, answer.text
    assert package_link(answer.json())["type"] == kind
    place = f"/processes/{name}"
    problem(ask("PUT", place, package_with("1", b"x = 1"), kind=kind), 409)
    assert ask("PUT", place, second, kind=kind).status_code == 204
    file = ask("GET", f"{place}/package")
    assert (file.content, file.headers["content-type"]) == (second, kind)
    assert file.headers["content-disposition"].endswith(f'2.tar{".gz" if compression else ""}"')
    package = ask("GET", f"{place}/package", Accept=PACKAGE).json()
    assert (package["executionUnit"]["mediaType"], ask("DELETE", place).status_code) == (kind, 204)
    assert ask("POST", "/processes", package, kind=PACKAGE).status_code == 201
    assert ask("GET", f"{place}/package").content == second
    assert package_link(ask("GET", place).json())["type"] == kind


CWL = "application/cwl"
CWL_YAML, CWL_JSON = f"{CWL}+yaml", f"{CWL}+json"


def values_of(text: str) -> dict[str, Any]:
    return parse_document(text.encode(), "the document")


FORMS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "yaml": (str, CWL, CWL_YAML),
    "yaml-by-its-type": (str, CWL_YAML, CWL_YAML),
    "json": (values_of, CWL_JSON, CWL_JSON),
    "text": (lambda text: {"value": text, "mediaType": CWL}, PACKAGE, CWL_YAML),
    "object": (lambda text: [{"value": values_of(text), "mediaType": CWL}], PACKAGE, CWL_JSON),
    "unit-itself": (values_of, PACKAGE, CWL_JSON),
}
"""Body or executionUnit by a document, media type of the request, and that of the file."""


@pytest.mark.parametrize("form", FORMS)
def test_a_document_of_cwl_is_deployed(ask: Client, form: str) -> None:
    make, kind, file_kind = FORMS[form]
    text = COUNT.replace("id: count_lines", f"id: count-{form}")
    content = make(text)
    description = {"id": f"count-{form}", "version": "1.0"}
    if kind == PACKAGE:
        content = {"processDescription": {"process": description}, "executionUnit": content}
    place = f"/processes/count-{form}"
    with environment("cwltool"):
        answer = ask("POST", "/processes", content, kind=kind)
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"].endswith(place)
        file, package = (ask("GET", f"{place}/package", Accept=each) for each in ("*/*", PACKAGE))
        assert file.headers["content-disposition"].endswith('.cwl"')
        # What was served is the same version.
        assert ask("PUT", place, package.json(), kind=PACKAGE).status_code == 204
    process = ask("GET", place).json()
    assert process["inputs"]["factor"]["schema"] == {
        **{"type": "integer", "minimum": 0, "maximum": 9, "default": 2},
    }
    assert process["outputs"]["table"]["schema"]["oneOf"][0]["contentMediaType"] == "text/csv"
    assert package_link(process)["type"] == file.headers["content-type"] == file_kind
    assert values_of(file.text) == values_of(text)
    assert ask("DELETE", place).status_code == 204


def test_a_document_of_cwl_needs_an_environment(ask: Client) -> None:
    said = problem(ask("POST", "/processes", COUNT, kind=CWL), 400)
    assert "there is no environment 'cwl'" in said


@pytest.mark.parametrize("interface", ["/ogc", "/stac"])
def test_requests_that_the_guard_refuses_are_problems(ask: Client, interface: str) -> None:
    def send(**headers: str) -> httpx.Response:
        return ask("POST", f"{interface}/search", "{}", **headers)

    problem(send(Origin="https://other.example"), 403)
    problem(send(Host="other.example"), 400)
    problem(send(**{"Content-Length": str(10**9)}), 413)
    answer = send(Origin="https://other.example")
    other = ask("POST", "/api/jobs", "{}", Origin="https://other.example")
    assert other.json() == {
        "error": answer.json()["detail"],
        "kind": "AccessError",
        "request_id": other.headers["x-request-id"],
    }
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_a_body_that_arrives_too_slowly_is_a_problem() -> None:
    head, _, body = refusal(408, "too slow", "/ogc/processes").decode().partition("\r\n\r\n")
    assert f"content-length: {len(body)}\r\n" in head
    content = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
    answer = httpx.Response(408, headers=content, text=body)
    assert problem(answer, 408) == "too slow"
    assert refusal(408, "too slow", "/api/jobs").endswith(b"\r\n\r\ntoo slow\n")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("name", ["echo", "cut"])
def test_built_in_processes_are_immutable(ask: Client, method: str, name: str) -> None:
    answer = ask(method, f"/processes/{name}", LST, kind="text/x-python")
    problem(answer, 403, "ogcapi-processes-2/1.0/immutable-process")


@pytest.mark.parametrize(
    ("body", "kind", "status", "type_", "text"),
    [
        ("<a/>", "application/xml", 415, MEDIA, "expected text/x-python"),
        ("import os", "text/x-python", 400, "", "script"),
        (LST.replace(NAME, "echo"), "text/x-python", 409, DUPLICATE, "echo"),
        (LST.replace(NAME, "../x"), "text/x-python", 400, "", "name"),
        ({"executionUnit": {"type": "docker"}}, PACKAGE, 415, MEDIA, "found 'type'"),
        ({"executionUnit": {"href": "http://127.0.0.1/a.py"}}, PACKAGE, 415, MEDIA, "found 'href'"),
        ({"executionUnit": {**UNIT, "mediaType": "a/b"}}, PACKAGE, 415, MEDIA, "found 'a/b'"),
        ({"executionUnit": {**UNIT, "mediaType": TAR}}, PACKAGE, 400, "", "encoding base64"),
        (
            {"executionUnit": {"value": "~", "mediaType": TAR, "encoding": "base64"}},
            *(PACKAGE, 400, "", "expected base64"),
        ),
        ({"executionUnit": [UNIT, UNIT]}, PACKAGE, 400, "", "expected one object"),
        ("class: x", "application/cwl", 400, "", "cwlVersion at the start of a line"),
        ("cwlVersion: v1.2\na: *a\n", "application/cwl", 400, "", "no anchor"),
        (LST, "application/cwl+json", 400, "", "cwlVersion"),
        (
            {"executionUnit": {"value": {"cwlVersion": "v1.2"}}},
            *(PACKAGE, 415, MEDIA, "found 'value'"),
        ),
        (
            {"executionUnit": {"href": "http://127.0.0.1/a.cwl", "type": "application/cwl"}},
            *(PACKAGE, 415, MEDIA, "found 'href, type'"),
        ),
        (
            {
                "processDescription": {"id": "x"},
                "executionUnit": {"value": COUNT, "mediaType": "application/cwl"},
            },
            *(PACKAGE, 400, "", "the id of"),
        ),
        ({"processDescription": {"id": "x"}, "executionUnit": UNIT}, PACKAGE, 400, "", "the id of"),
        ("{" + DEEP, PACKAGE, 400, "", "expected JSON"),
    ],
)  # fmt: skip
def test_bad_packages_are_problems(
    ask: Client, body: Any, kind: str, status: int, type_: str, text: str
) -> None:
    assert text in problem(ask("POST", "/processes", body, kind=kind), status, type_)


def test_a_large_algorithm_can_replace_one(ask: Client) -> None:
    """Its body is larger than others that are no table."""
    large = LST.replace(NAME, "large").replace("def run", f"# {'x' * 200_000}\ndef run")
    package = {"executionUnit": {"value": large, "mediaType": "text/x-python"}}
    assert ask("POST", "/processes", package, kind=PACKAGE).status_code == 201
    newer = large.replace('"1.2"', '"1.3"')
    assert ask("PUT", "/processes/large", newer, kind="text/x-python").status_code == 204


def test_binary_inputs_are_what_they_were(ask: Client) -> None:
    content = bytes(range(256))
    value = {"value": base64.b64encode(content).decode(), "mediaType": "image/png"}
    answer = ask.echo({"inputs": {"binaryInput": value}, "response": "raw"})
    assert (answer.content, answer.headers["content-type"]) == (content, "image/png")
