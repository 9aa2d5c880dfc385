"""Who may come into a portal: tokens, scopes, origins, names of the host."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI

from swathe.catalog import Catalog
from swathe.cli.app import main
from swathe.core.errors import TokenError
from swathe.jobs import Jobs
from swathe.portal.access import COOKIE, Reader, Submitter
from swathe.portal.app import limits_of, make_app
from swathe.portal.config import config_of
from swathe.portal.context import Portal
from swathe.portal.http.long_responses import Streams
from swathe.portal.sources import Sources
from swathe.portal.uploads import Uploads
from swathe.portal.users import FRESH_S, Access
from swathe.subscriptions.service import Subscriptions
from swathe.workers import Pool, Runner
from tests.support.catalogs import new_catalog

Settings = dict[str, dict[str, Any]]
REQUIRED: Settings = {"access": {"tokens": "required"}}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with Catalog.open(new_catalog(tmp_path_factory.mktemp("access") / "c.sqlite")) as opened:
        yield opened


@pytest.fixture
def fresh(url: str) -> Iterator[Catalog]:
    """An empty catalogue in a database of each kind."""
    with Catalog.open(url) as opened:
        yield opened


class Client:
    """Asks an application in this process."""

    def __init__(self, app: FastAPI) -> None:
        self.app, self.cookies = app, dict[str, str]()

    def request(self, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420"
            async with httpx.AsyncClient(
                transport=transport, base_url=base, cookies=self.cookies
            ) as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(ask())

    def get(self, path: str, headers: dict[str, str] = {}) -> httpx.Response:  # noqa: B006
        return self.request("GET", path, headers)

    def post(self, path: str, headers: dict[str, str] = {}) -> httpx.Response:  # noqa: B006
        return self.request("POST", path, headers)


Make = Callable[[Catalog, Settings], Client]


@pytest.fixture
def client() -> Make:
    """Makes clients of portals without jobs, that answer at `/may/read` and `/may/submit`."""

    def make(catalog: Catalog, settings: Settings) -> Client:
        config = config_of(settings)
        access = Access(config.access.tokens == "required", catalog.token)
        uploads = cast(Uploads, None)
        jobs = cast(Jobs, SimpleNamespace(limits=limits_of(config)))
        state = (jobs, access, Sources(catalog), Streams(1), uploads)
        idle = (cast(Pool, None), cast(Runner, None), Streams(1), cast(Subscriptions, None))
        portal = Portal(config, catalog, *state, *idle)
        app = make_app(portal)
        add_routes(app)
        return Client(app)

    return make


def add_routes(app: FastAPI) -> None:
    before = len(app.router.routes)

    @app.get("/may/read")
    def read(user: Reader) -> dict[str, str]:
        return {"user": user.name}

    @app.post("/may/submit")
    def submit(user: Submitter) -> dict[str, str]:
        return {"user": user.name}

    # In front: the pages answer for all paths that are none.
    routes = app.router.routes
    routes[:] = routes[before:] + routes[:before]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ---- Tokens


def test_token_is_random_and_not_kept(fresh: Catalog, tmp_path: Path) -> None:
    made = {fresh.add_token("ann", ["read"])[0] for _ in range(3)}
    assert len(made) == 3
    assert all(len(token.removeprefix("swathe_")) >= 43 for token in made)  # 256 bits
    if fresh._on_sqlite:
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("*.sqlite*"))
        assert b"ann" in kept
        assert not any(token.removeprefix("swathe_").encode() in kept for token in made)


def test_token_is_known_again(fresh: Catalog) -> None:
    token, told = fresh.add_token("ann", ["submit", "read"])
    assert fresh.token(token) == told
    assert (told.user, told.scopes, told.is_good()) == ("ann", ("read", "submit"), True)
    for other in (token[:-1], token + "A", "", "\udcff", "x" * 10_000, told.user):
        assert fresh.token(other) is None


def test_expired_and_revoked_tokens_are_no_good(fresh: Catalog) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    expired, _ = fresh.add_token("ann", ["read"], past)
    revoked, number = fresh.add_token("ann", ["read"])
    kept, _ = fresh.add_token("bob", ["read"])
    fresh.revoke_tokens(str(number.number))
    found = [fresh.token(token) for token in (expired, revoked, kept)]
    assert [token is not None and token.is_good() for token in found] == [False, False, True]


def test_all_tokens_of_a_user_are_revoked_by_name(fresh: Catalog) -> None:
    for _ in range(2):
        fresh.add_token("ann", ["read"])
    fresh.add_token("bob", ["read"])
    assert [token.user for token in fresh.revoke_tokens("ann")] == ["ann", "ann"]
    assert fresh.revoke_tokens("ann") == []
    assert [token.is_good() for token in fresh.tokens()] == [False, False, True]
    with pytest.raises(TokenError, match="no token or user 'carl'"):
        fresh.revoke_tokens("carl")


@pytest.mark.parametrize("name", ["", "12", "anonymous", "a b", "a" * 101, "é", "-a"])
def test_names_that_are_none(catalog: Catalog, name: str) -> None:
    with pytest.raises(TokenError, match="a user's name is"):
        catalog.add_token(name, ["read"])


@pytest.mark.parametrize("scopes", [[], ["write"], ["read", "write"]])
def test_scopes_that_are_none(catalog: Catalog, scopes: list[str]) -> None:
    with pytest.raises(TokenError, match="scopes are read, submit, admin; found"):
        catalog.add_token("ann", scopes)


# ---- The command


def test_command_adds_lists_and_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "swathe.toml"
    settings.write_text(f'[catalog]\ndatabase = "sqlite:///{tmp_path}/c.sqlite"\n')

    def run(*words: str, code: int = 0, said: list[str] | None = None) -> str:
        argv = ["swathe", "portal", "token", *words, "--config", str(settings)]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert ended.value.code == code, err
        if said is not None:
            said.append(err)
        return out if code == 0 else err

    assert "expected a time with its unit, as 90s, 30min" in run(
        "add", "ann", "--for", "90", code=2
    )
    said: list[str] = []
    scopes = ("--scope", "read", "--scope", "admin")
    token = run("add", "ann", *scopes, "--for", "3d", said=said).strip()
    assert re.fullmatch(r"token 1 of ann expires: 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", said[0])
    run("add", "eve", said=said)
    assert said[1] == "token 2 of eve expires: never\n"
    listed = run("list")
    assert "ann" in listed
    assert "read admin" in listed
    assert token not in listed
    with Catalog.open(f"sqlite:///{tmp_path}/c.sqlite") as catalog:
        known = catalog.token(token)
        assert known is not None
        assert known.expires_at is not None
        assert abs(known.expires_at - known.created_at - timedelta(days=3)) < timedelta(minutes=1)
        assert run("remove", "ann") == "ann: 1 removed\n"
        revoked = catalog.token(token)
    assert revoked is not None
    assert not revoked.is_good()
    made = json.loads(run("add", "bob", "--json"))
    assert made["token"].startswith("swathe_")
    assert made["scopes"] == ["read", "submit"]
    assert "'write' is not one of 'read', 'submit', 'admin'" in run(
        "add", "bob", "--scope", "write", code=2
    )


# ---- Requests


def test_nobody_needs_a_token_on_a_laptop(catalog: Catalog, client: Make) -> None:
    asked = client(catalog, {})
    assert asked.get("/may/read").json() == {"user": "anonymous"}
    assert asked.post("/may/submit").json() == {"user": "anonymous"}
    told = asked.get("/api/about").json()
    assert (told["tokens"], told["scopes"]) == ("none", ["read", "submit"])


def test_tokens_let_in_by_scope(catalog: Catalog, client: Make) -> None:
    asked = client(catalog, REQUIRED)
    tokens = {
        scope: catalog.add_token(f"u-{scope}", [scope])[0] for scope in ("read", "submit", "admin")
    }
    may = {
        scope: (
            asked.get("/may/read", headers=bearer(token)).status_code,
            asked.post("/may/submit", headers=bearer(token)).status_code,
        )
        for scope, token in tokens.items()
    }
    assert may == {"read": (200, 403), "submit": (403, 200), "admin": (200, 200)}
    # By the cookie of a browser, too.
    asked.cookies[COOKIE] = tokens["read"]
    assert asked.get("/may/read").json() == {"user": "u-read"}
    # What is said in the header counts.
    assert asked.get("/may/read", headers=bearer("wrong")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [{}, bearer(""), bearer("wrong"), {"Authorization": "Basic YTpi"}, {"Authorization": "x"}],
)
def test_without_a_good_token_nobody_comes_in(
    catalog: Catalog, client: Make, headers: dict[str, str]
) -> None:
    answer = client(catalog, REQUIRED).get("/api/about", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["kind"] == "TokenError"


def test_revoked_token_is_refused_when_it_was_remembered(
    catalog: Catalog, client: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = client(catalog, REQUIRED)
    token, _ = catalog.add_token("ann", ["read"])
    assert asked.get("/may/read", headers=bearer(token)).status_code == 200
    catalog.revoke_tokens("ann")
    later = time.monotonic() + FRESH_S + 0.1
    monkeypatch.setattr("swathe.portal.users.time", SimpleNamespace(monotonic=lambda: later))
    assert asked.get("/may/read", headers=bearer(token)).status_code == 401


def test_faults_of_the_portal_are_told_without_details(catalog: Catalog, client: Make) -> None:
    answer = client(catalog, {}).get("/api/jobs")  # It has no jobs to list.
    assert answer.status_code == 500
    assert answer.json() == {
        "error": "internal error of the portal; see its log",
        "kind": "SwatheError",
        "request_id": answer.headers["x-request-id"],
    }


# ---- Browsers


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]:8420", "archive.example:443"]
)
def test_own_names_are_answered(catalog: Catalog, client: Make, host: str) -> None:
    asked = client(catalog, {"server": {"url": "https://archive.example"}})
    assert asked.get("/may/read", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example:8420", "localhost."])
def test_other_names_are_not(catalog: Catalog, client: Make, host: str) -> None:
    answer = client(catalog, {}).get("/may/read", headers={"Host": host})
    assert answer.status_code == 400
    assert "expected a name of this portal" in answer.json()["error"]


def test_any_name_where_all_can_reach_it(catalog: Catalog, client: Make) -> None:
    asked = client(
        catalog,
        {"server": {"host": "0.0.0.0"}, "access": {"open": True}, "vo": {"authority": "a.example"}},
    )
    assert asked.get("/may/read", headers={"Host": "archive.example"}).status_code == 200


CROSS: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", CROSS)
@pytest.mark.parametrize("origins", [[], ["*"]])
def test_pages_of_others_change_nothing(
    catalog: Catalog, client: Make, headers: dict[str, str], origins: list[str]
) -> None:
    asked = client(catalog, {"access": {"origins": origins}})
    assert asked.post("/may/submit", headers=headers).status_code == 403
    assert asked.get("/may/read", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:8420", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://viewer.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_own_pages_and_those_allowed_do(
    catalog: Catalog, client: Make, headers: dict[str, str]
) -> None:
    asked = client(catalog, {"access": {"origins": ["https://viewer.example"]}})
    assert asked.post("/may/submit", headers=headers).status_code == 200


def test_viewers_may_ask_for_ranges(catalog: Catalog, client: Make) -> None:
    origin = {"Origin": "https://viewer.example"}
    asked = client(catalog, {"access": {"origins": ["https://viewer.example"]}})
    before = asked.request(
        "OPTIONS",
        "/may/read",
        {
            **origin,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "range, authorization",
        },
    )
    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == "https://viewer.example"
    answer = asked.get("/may/read", headers=origin)
    exposed = answer.headers["access-control-expose-headers"].lower()
    assert {"content-range", "etag", "content-length"} <= set(exposed.split(", "))
    other = asked.get("/may/read", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_no_origin_is_allowed_unless_told(catalog: Catalog, client: Make) -> None:
    answer = client(catalog, {}).get("/may/read", headers={"Origin": "https://viewer.example"})
    assert "access-control-allow-origin" not in answer.headers
