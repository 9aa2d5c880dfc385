"""Pages for admins: users and tokens, quotas, jobs of all, stores, faults."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser

import httpx
import pytest

from swathe.catalog import Catalog
from tests.support.attacked_portal import AttackTarget, attacked
from tests.support.portals import database_in, submitted, wait_until

SETTINGS = "\n[shares.ann]\nslots = 3\nresult_gb = 7\npriority = 9\n"
VOID = {"input", "link", "meta", "path", "rect"}


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTarget]:
    with attacked(tmp_path_factory.mktemp("admin"), settings=SETTINGS) as running:
        yield running


@pytest.fixture
def root(portal: AttackTarget) -> Iterator[httpx.Client]:
    with portal.client("root") as client:
        yield client


class Structure(HTMLParser):
    """Checks that elements are closed, and that labels and headings are of something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        for name in ("for", "aria-labelledby", "aria-describedby"):
            self.targets += [values[name] or ""] if name in values else []
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def structure(text: str) -> Structure:
    read = Structure()
    read.feed(text)
    assert not read.open
    assert len({*read.ids}) == len(read.ids) and {*read.targets} <= {*read.ids}
    return read


def token_by_form(client: httpx.Client, **fields: object) -> httpx.Response:
    return client.post("/admin/tokens", data=fields)


def secret_in(answer: httpx.Response) -> str:
    match = re.search(r'id="secret">(swathe_[\w-]+)<', answer.text)
    assert match is not None
    return match[1]


def test_only_admins_see_them(portal: AttackTarget) -> None:
    paths = ("/admin", "/admin/tokens/1/remove")
    for user in ("ann", "eve", "sue"):
        with portal.client(user) as client:
            for path in paths:
                answer = client.get(path)
                assert answer.status_code == 403 and "root" not in answer.text
            assert token_by_form(client, name="mallory", scopes="admin").status_code == 403
            assert client.post("/admin/tokens/1/remove").status_code == 403
            assert 'href="/admin"' not in client.get("/jobs").text
    with portal.client(None) as client:
        answer = client.get("/admin")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fadmin")
        assert token_by_form(client, name="mallory", scopes="admin").status_code == 401
    with Catalog.open(database_in(portal.served.folder)) as catalog:
        tokens = catalog.tokens()
    assert "mallory" not in {token.user for token in tokens}
    assert all(token.revoked_at is None for token in tokens if token.user in portal.tokens)


def test_the_overview(portal: AttackTarget, root: httpx.Client) -> None:
    with portal.client("ann") as ann:
        ann.base_url = ann.base_url.join("/api")
        job = submitted(ann, portal.targets(2), start=False, name="of <ann>")["id"]
    with closing(sqlite3.connect(portal.served.folder / "portal.sqlite", timeout=30)) as database:
        database.execute(
            "UPDATE jobs SET phase = 'ERROR', failure = 'the <disk> is full',"
            " ended_at = '2026-01-01 00:00:00' WHERE id = ?",
            (job,),
        )
        database.commit()
    answer = root.get("/admin")
    assert answer.status_code == 200
    assert not structure(answer.text).scripts
    text = " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())
    for user in portal.tokens:
        assert f" {user} " in text
    # Her share: disk, slots, priority.
    assert re.search(r" ann 1 0 0 0\W*B 6.52\W*GiB 0 of 3 9 ", text), text
    assert "of &lt;ann&gt;" in answer.text and "the &lt;disk&gt; is full" in answer.text
    assert f'href="/jobs/{job}"' in answer.text
    assert 'href="/stores/survey"' in answer.text and "none known" in text
    assert "Database ok Pool ok Disk ok Tables ok Results ok Running ok" in text
    assert 'href="/jobs?phase=ERROR"' in answer.text
    assert '<a href="/admin" aria-current="page">Admin</a>' in answer.text


def test_faults_are_shown(portal: AttackTarget, root: httpx.Client) -> None:
    results, elsewhere = portal.served.folder / "results", portal.served.folder / "elsewhere"
    results.rename(elsewhere)
    text = root.get("/admin").text
    elsewhere.rename(results)
    assert re.search(r"<dt>Results</dt><dd>trouble</dd>", text)


def test_a_token_is_made_and_removed(portal: AttackTarget, root: httpx.Client) -> None:
    answer = token_by_form(root, name=" zoe ", scopes="read submit", days="30")
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    structure(answer.text)
    secret = secret_in(answer)
    with Catalog.open(database_in(portal.served.folder)) as catalog:
        (token,) = [each for each in catalog.tokens() if each.user == "zoe"]
    assert token.scopes == ("read", "submit") and token.expires_at is not None
    assert (token.expires_at - token.created_at).total_seconds() == pytest.approx(30 * 86400, abs=9)
    # It is not shown again.
    assert secret not in root.get("/admin").text
    headers = {"Authorization": f"Bearer {secret}"}

    def status() -> int:
        return httpx.get(f"{portal.served.url}/api/about", headers=headers).status_code

    assert status() == 200
    question = root.get(f"/admin/tokens/{token.number}/remove")
    assert f"token {token.number} of zoe" in question.text
    structure(question.text)
    assert status() == 200
    answer = root.post(f"/admin/tokens/{token.number}/remove")
    assert (answer.status_code, answer.headers["location"]) == (303, "/admin")
    wait_until(lambda: status() == 401)
    assert root.get("/admin/tokens/123456/remove").status_code == 404
    assert root.post("/admin/tokens/123456/remove").status_code == 404


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "9lives", "scopes": "read"}, "name is 1 to 100 letters"),
        ({"name": "anonymous", "scopes": "read"}, "not &#39;anonymous&#39;"),
        ({"name": "kim"}, "found none"),
        ({"name": "kim", "scopes": "read", "days": "0"}, "expected a number from 1 to 3,650"),
        ({"name": "kim", "scopes": "read", "days": "9" * 20}, "expected a number from 1"),
        ({"name": "kim", "scopes": "read", "days": "1.5"}, "expected a number from 1"),
        ({"name": "kim", "scopes": "all"}, "scopes are read, submit, admin"),
        ({"name": "kim\x00", "scopes": "read"}, "name is 1 to 100 letters"),
    ],
)
def test_mistakes_make_no_token(
    portal: AttackTarget, root: httpx.Client, fields: dict[str, str], text: str
) -> None:
    answer = token_by_form(root, **fields)
    assert answer.status_code == 422
    assert text in answer.text
    with Catalog.open(database_in(portal.served.folder)) as catalog:
        assert "kim" not in {token.user for token in catalog.tokens()}


def test_pages_of_other_sites_make_none(portal: AttackTarget) -> None:
    cookies = {"swathe-token": portal.tokens["root"]}
    with httpx.Client(base_url=portal.served.url, cookies=cookies) as client:
        assert client.get("/admin").status_code == 200
        headers = {"Origin": "https://other.example"}
        fields = {"name": "mallory", "scopes": "admin"}
        assert client.post("/admin/tokens", data=fields, headers=headers).status_code == 403
        answer = client.post("/admin/tokens/1/remove", headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403
