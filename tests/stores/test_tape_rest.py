"""Staging by the WLCG Tape REST API, with a stub written from its text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import AccessError, StagingError
from swathe.stores.staging import http_service, stage_wait
from swathe.stores.staging.http_service import HttpService
from swathe.stores.staging.tape_rest import TapeRest
from tests.support.catalogs import new_catalog
from tests.support.scripted_servers import Handler, serving
from tests.support.tape_rest import TOKEN, TapeSite, tape_site

FILES = {"/data/x/a": "TAPE", "/data/x/b c": "TAPE", "/data/x/d": "DISK_AND_TAPE"}


@pytest.fixture
def site() -> Iterator[TapeSite]:
    with tape_site(FILES) as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def stager(site: TapeSite, pauses: list[float]) -> Iterator[TapeRest]:
    service = HttpService(TOKEN, pauses.append)
    with closing(TapeRest(f"{site.url}/data/x/", None, service)) as made:
        yield made


def test_localities(stager: TapeRest, site: TapeSite) -> None:
    site.locality |= {"/data/x/e": "LOST", "/data/x/f": "UNAVAILABLE", "/data/x/g": "NONE"}
    places = stager.locate(["a", "d", "e", "f", "g", "none"])
    assert {path: place.locality for path, place in places.items()} == {
        "a": "nearline", "d": "disk", "e": "lost", "f": "unavailable", "g": "disk", "none": "lost",
    }  # fmt: skip
    assert places["none"].reason == "'no such file'"
    assert site.calls["GET "] == 1, "the endpoint is looked for once"


@pytest.mark.parametrize("form", ["state", "onDisk"])
@pytest.mark.parametrize("prefix", ["", "/data", "/data/x"])
def test_a_whole_cycle(stager: TapeRest, site: TapeSite, form: str, prefix: str) -> None:
    site.form, site.prefix = form, prefix
    token = stager.stage(["a", "b c", "none"], 7200)
    assert site.lifetimes == ["PT7200S"]
    states = [
        {path: progress.state for path, progress in stager.poll(token, ["a", "b c"]).items()}
        for _ in range(2)
    ]
    assert states == [{"a": "queued", "b c": "queued"}, {"a": "disk", "b c": "disk"}]
    failure = stager.poll(token, ["none"])["none"]
    assert (failure.state, failure.reason) == ("failed", "'no such file'")
    assert stager.locate(["a"])["a"].locality == "disk"
    stager.release(token, ["a"])
    assert set(site.requests[token]) == {"/data/x/b c", "/data/x/none"}


def test_what_is_to_come_is_cancelled(stager: TapeRest, site: TapeSite) -> None:
    site.polls = 10
    token = stager.stage(["a", "d"], 60)
    stager.release(token, ["a", "d", "of another request"])
    assert site.requests[token] == {}
    assert (site.calls["POST stage"], site.calls["POST release"]) == (2, 1)


def test_an_answer_for_some_of_many_paths_is_completed(stager: TapeRest, site: TapeSite) -> None:
    site.locality = {f"/data/x/{number}": "TAPE" for number in range(450)}
    site.most = 70
    places = stager.locate([str(number) for number in range(450)])
    assert len(places) == 450
    assert site.calls["POST archiveinfo"] == 7


def test_an_object_without_any_answer_is_an_error(stager: TapeRest, site: TapeSite) -> None:
    site.most = 0
    with pytest.raises(StagingError, match="expected an answer for each object, found none for a"):
        stager.locate(["a"])


def test_a_busy_service_is_asked_again_later(
    stager: TapeRest, site: TapeSite, pauses: list[float]
) -> None:
    site.busy = [429, 503, 429, 429]
    assert stager.locate(["a"])["a"].locality == "nearline"
    assert len(pauses) == 4
    for number, pause_s in enumerate(pauses):
        assert 0.5 * 2**number <= pause_s <= 2**number


def test_a_service_that_is_busy_for_long_is_an_error(
    stager: TapeRest, site: TapeSite, pauses: list[float]
) -> None:
    site.busy = [503] * 1000
    with pytest.raises(StagingError, match="expected success, found HTTP status 503"):
        stager.locate(["a"])
    assert sum(pauses) <= http_service.MOST_BUSY_S
    assert max(pauses) <= http_service.LONGEST_PAUSE_S


def test_a_token_is_needed(site: TapeSite) -> None:
    stager = TapeRest(f"{site.url}/data/x/", None, HttpService(None))
    with closing(stager), pytest.raises(AccessError, match="HTTP status 401: 'no token'"):
        stager.locate(["a"])


class Odd(Handler):
    """Answers everything with the same text."""

    text = b""

    def do_GET(self) -> None:
        self.answer(200, self.text)

    def do_POST(self) -> None:
        self.taken()
        self.answer(200, self.text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<html>", "expected JSON"),
        (b"{}", "expected a list of files"),
        (b"[1]", "expected files with a path"),
        (b'[{"path": "/a", "locality": "SHELF"}]', "expected a locality of DISK"),
        (b"[" * 100_000, "expected JSON"),
        (b'[{"path": "/other", "locality": "DISK"}]', "found none for a"),
    ],
)
def test_wrong_answers_are_errors(text: bytes, message: str) -> None:
    with serving(type("Odd", (Odd,), {"text": text})) as url:
        stager = TapeRest(url, f"{url}/api/v1", HttpService(None))
        with closing(stager), pytest.raises(StagingError, match=message):
            stager.locate(["a"])


@pytest.mark.parametrize(
    "text",
    [b"{}", b'{"endpoints": [{"version": "v1", "uri": "http://other.invalid/api/v1"}]}', b"[]"],
)
def test_an_endpoint_on_another_server_is_https(text: bytes) -> None:
    with serving(type("Odd", (Odd,), {"text": text})) as url:
        stager = TapeRest(url, None, HttpService(TOKEN))
        with closing(stager), pytest.raises(StagingError, match="an endpoint of version v1 over"):
            stager.locate(["a"])


def test_evicting_is_not_of_this_api(stager: TapeRest) -> None:
    with pytest.raises(StagingError, match="release 1 objects instead"):
        stager.evict(["a"])


class Dripping(Handler):
    """Answers by a byte every 10 ms, of its headers or of its content."""

    in_headers = False

    def do_GET(self) -> None:
        end_s = time.monotonic() + 1
        if not self.in_headers:
            self.send_response(200)
            self.send_header("Content-Length", "100000000")
            self.end_headers()
        with suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " * self.in_headers)
            while time.monotonic() < end_s:
                self.wfile.write(b" ")
                time.sleep(0.01)


@pytest.mark.parametrize("in_headers", [False, True])
def test_an_answer_that_drips_is_not_waited_for(
    in_headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_service, "ANSWER_S", 0.2)
    with serving(type("Dripping", (Dripping,), {"in_headers": in_headers})) as url:
        service = HttpService(None)
        with closing(service), pytest.raises(StagingError, match=f"GET {url}/a: .*within 200 ms"):
            service.request("GET", f"{url}/a")


def test_long_answers_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_service, "MOST_BYTES", 1024)
    with serving(type("Odd", (Odd,), {"text": b" " * 1025})) as url:
        service = HttpService(None)
        with closing(service), pytest.raises(StagingError, match="expected at most 1 KiB"):
            service.request("GET", url)


@pytest.mark.parametrize(
    "uri",
    [
        "https://other.invalid/api/v1",
        "https://127.0.0.1@other.invalid/api/v1",
        "https://127.0.0.1.other.invalid/",
        "https://[/",
    ],
)
def test_the_token_goes_to_no_other_host(uri: str) -> None:
    text = json.dumps({"endpoints": [{"version": "v1", "uri": uri}]}).encode()
    with serving(type("Odd", (Odd,), {"text": text})) as url:
        stager = TapeRest(url, None, HttpService(TOKEN))
        said = r"the host of the store, 127\.0\.0\.1, found .*staging_endpoint"
        with closing(stager), pytest.raises(StagingError, match=said):
            stager.locate(["a"])


class Echo(Handler):
    """Answers with what it was sent, and with what a terminal would obey."""

    form = "{}"

    def do_GET(self) -> None:
        sent = self.headers["Authorization"].replace("/", "\\/")
        self.answer(500, self.form.replace("{}", sent).encode())


@pytest.mark.parametrize("form", ['{"title": "x\\u001b[2J", "detail": "{}"}', "\x1b[2Jx\n{}\ny"])
def test_errors_show_neither_the_token_nor_escape_sequences(form: str) -> None:
    token = "t0ken/hush+hush"
    with serving(type("Echo", (Echo,), {"form": form})) as url:
        service = HttpService(token)
        with closing(service), pytest.raises(StagingError, match=r"Bearer \*\*\*") as caught:
            service.request("GET", url)
    assert "hush" not in str(caught.value) and str(caught.value).isprintable()


@pytest.fixture
def tape(site: TapeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TapeSite:
    """The site as the store `tape` of a new catalogue."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    monkeypatch.setenv("BEARER_TOKEN", TOKEN)
    monkeypatch.setattr(stage_wait, "FIRST_PAUSE_S", 0.02)
    url = f"{site.url.replace('http', 'dav')}/data/x"
    swathe.stores.add("tape", url, tier="tape", options={"staging": "wlcg-tape-rest"})
    return site


def states() -> dict[str, str]:
    return {
        f"{status.store}:{file.path}": file.state
        for status in swathe.stores.tape_status()
        for file in status.files
    }


def test_a_request_that_the_service_has_forgotten_has_failed(tape: TapeSite) -> None:
    tape.polls = 10
    swathe.stores.stage_objects("tape:a")
    tape.requests.clear()
    (status,) = swathe.stores.tape_status()
    assert status.fault is None and status.files[0].state == "failed"
    assert "the service has forgotten the request" in str(status.files[0].reason)
    tape.polls = 1
    outcome = swathe.stores.stage_objects(["tape:a", "tape:b c"], wait=True)
    assert outcome.faults == {} and set(states().values()) == {"disk"}
    tape.requests.clear()
    assert swathe.stores.release_objects("tape:") == 2
    assert set(states().values()) == {"released"}


def test_a_request_that_is_forgotten_while_it_is_waited_for(tape: TapeSite) -> None:
    tape.polls = 10
    outcome = swathe.stores.stage_objects(
        ["tape:a"], wait=True, report=lambda _: tape.requests.clear()
    )
    assert list(outcome.faults) == ["tape:a"] and "forgotten" in outcome.faults["tape:a"]


class Refusing(Handler):
    """Refuses access to everything."""

    def do_GET(self) -> None:
        self.answer(403)

    def do_POST(self) -> None:
        self.taken()
        self.answer(403)


def test_a_service_that_refuses_does_not_stop_the_others(tape: TapeSite) -> None:
    with serving(Refusing) as url:
        options = {"staging": "wlcg-tape-rest", "staging_endpoint": f"{url}/api/v1"}
        swathe.stores.add("locked", url, tier="tape", options=options)
        with Catalog.open() as catalog:
            claim = catalog.claim_files("locked", {"z": (False, 1, None, None)}, "one", 60)
            assert claim.request is not None
            catalog.send_request(claim.request, "r")
        with pytest.raises(AccessError, match="HTTP status 403"):
            swathe.stores.stage_objects(["locked:y", "tape:a"], wait=True)
        locked, other = swathe.stores.tape_status()
        assert "HTTP status 403" in str(locked.fault) and other.fault is None
        assert states() == {"locked:z": "queued", "tape:a": "disk"}
        with pytest.raises(AccessError, match="HTTP status 403"):
            swathe.stores.release_objects(["locked:", "tape:"], of_all=True)
        assert states() == {"locked:z": "released", "tape:a": "released"}
        assert [status.fault for status in swathe.stores.tape_status()] == [None, None]


def test_a_server_without_the_api_has_forgotten_nothing(
    tape: TapeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    swathe.stores.stage_objects("tape:a")
    monkeypatch.setattr("swathe.stores.staging.tape_rest.WELL_KNOWN_PATH", "/elsewhere")
    (status,) = swathe.stores.tape_status()
    assert "HTTP status 404" in str(status.fault) and states() == {"tape:a": "queued"}
