"""The id of a request: in its response, its errors, the logs, and the events of a trace."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from swathe import trace
from swathe.core.errors import SettingsError
from swathe.portal.config import config_of
from swathe.portal.http.request_ids import KEY, ProxyIds, RequestFilter, _request_id
from tests.support.portals import RunningPortal, add_survey, served, wait_until
from tests.support.traces import named, rows

SETTINGS = """
[server]
access_log = "json"
proxies = ["127.0.0.1"]
"""
ID = "0123456789abcdef0123456789abcdef"
DID = "ivo://swathe.invalid/survey?frame-000001.fit,0"


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    """A portal that takes this machine for a proxy, and records events."""
    folder = tmp_path_factory.mktemp("ids")
    add_survey(folder, targets=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trace.VARIABLE, str(folder / "run.ulm"))
        with served(folder, SETTINGS) as running:
            yield running


def lines(portal: RunningPortal) -> list[dict[str, Any]]:
    """Return the access log."""
    text = (portal.folder / "portal.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def line_of(portal: RunningPortal, name: str) -> dict[str, Any]:
    """Return the line of a request in the access log."""
    wait_until(lambda: any(line["request_id"] == name for line in lines(portal)))
    (line,) = [line for line in lines(portal) if line["request_id"] == name]
    return line


def test_each_response_has_an_id_of_its_own(portal: RunningPortal) -> None:
    paths = ("/healthz", "/api/about", "/vo/none", "/ogc/", "/", "/api/jobs/none")
    names = [httpx.get(f"{portal.url}{path}").headers["x-request-id"] for path in paths]
    assert len({*names}) == len(paths)
    assert all(len(name) == 32 for name in names)


@pytest.mark.parametrize(
    ("path", "status"), [("/api/jobs/none", 404), ("/ogc/jobs/none", 404), ("/stac/none", 404)]
)
def test_errors_have_the_id(portal: RunningPortal, path: str, status: int) -> None:
    answer = httpx.get(f"{portal.url}{path}", headers={"X-Request-Id": ID})
    assert (answer.status_code, answer.json()["request_id"]) == (status, ID)


def test_the_log_and_the_trace_have_the_id_of_a_proxy(portal: RunningPortal) -> None:
    query = {"ID": DID, "SUB": "[1:9,1:9]"}
    name = "of-a-proxy-1"
    answer = httpx.get(f"{portal.url}/vo/sync", params=query, headers={"X-Request-Id": name})
    assert answer.headers.get_list("x-request-id") == [name]
    line = line_of(portal, name)
    assert (line["path"], line["route"], line["status"]) == ("/vo/sync", "/vo/sync", 200)
    assert (line["client"], line["method"], line["complete"]) == ("127.0.0.1", "GET", True)
    assert line["bytes"] == len(answer.content)
    assert 0 <= line["seconds"] < 60
    run = portal.folder / "run.ulm"
    wait_until(lambda: f"PORTAL={name}" in run.read_text())
    wait_until(lambda: any(row["PORTAL"] == name for row in named(rows(run), "PORTAL_END")))
    events = {row["event"] for row in rows(run) if row.get("PORTAL") == name}
    assert {"PORTAL_START", "CUT_START", "CUT_END", "PORTAL_END"} <= events


@pytest.mark.parametrize("name", ["short", "a" * 65, "two words", "a\u00e9a\u00e9a\u00e9a\u00e9"])
def test_other_ids_are_replaced(portal: RunningPortal, name: str) -> None:
    headers = {b"X-Request-Id": name.encode()}
    answer = httpx.get(f"{portal.url}/healthz", headers=headers)
    assert answer.headers["x-request-id"] != name
    assert len(answer.headers["x-request-id"]) == 32


def test_two_ids_are_replaced(portal: RunningPortal) -> None:
    sent = [("X-Request-Id", ID), ("X-Request-Id", ID)]
    assert httpx.get(f"{portal.url}/healthz", headers=sent).headers["x-request-id"] != ID


def test_a_response_that_is_not_read_has_a_line(portal: RunningPortal) -> None:
    with httpx.Client(base_url=portal.url) as client:
        targets = {"ra": [1.0], "dec": [1.0], "size": ["10arcsec"]}
        job = client.post("/api/jobs", json={"targets": targets, "start": False}).json()["id"]
        headers = {"X-Request-Id": "left-alone"}
        with client.stream("GET", f"/api/jobs/{job}/events", headers=headers) as answer:
            next(answer.iter_lines())
    line = line_of(portal, "left-alone")
    assert (line["status"], line["complete"]) == (200, False)
    assert line["route"] == "/api/jobs/{job_id}/events"


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [(["10.1.0.0/16"], ID), (["10.2.0.0/16"], None), (["2001:db8::/32"], None)],
)
def test_only_proxies_name_requests(proxies: list[str], expected: str | None) -> None:
    names = []

    async def note(scope: Scope, _receive: Receive, _send: Send) -> None:
        names.append(scope.get(KEY))

    scope = {"type": "http", "headers": [(b"x-request-id", ID.encode())]}
    for client in (("10.1.2.3", 50000), None):
        arguments: Any = ({**scope, "client": client}, None, None)
        asyncio.run(ProxyIds(note, proxies)(*arguments))
    assert names == [expected, None]


def test_lines_of_errors_have_the_id() -> None:
    record = logging.LogRecord("swathe.portal", 30, "", 1, "%s: 100 %%", ("disk",), None)
    assert RequestFilter().filter(record)
    assert record.getMessage() == "disk: 100 %"
    token = _request_id.set(ID)
    try:
        assert RequestFilter().filter(record)
    finally:
        _request_id.reset(token)
    assert record.getMessage() == f"disk: 100 % [request {ID}]"


def test_the_form_of_the_log_is_checked() -> None:
    forms = {value: config_of({"server": {"access_log": value}}).server for value in (True, "json")}
    assert [each.log_form for each in forms.values()] == ["text", "json"]
    assert config_of({}).server.log_form is None
    for value in ("xml", 1):
        with pytest.raises(SettingsError, match="expected true, false or 'json', found"):
            config_of({"server": {"access_log": value}})
