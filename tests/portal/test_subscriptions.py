"""Subscriptions in the REST interface: each user's own, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from swathe.core.errors import SubscriptionError
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.subscriptions.request import SubscriptionRequest
from swathe.subscriptions.service import Subscriptions
from tests.support.algorithms import LST
from tests.support.catalogs import new_catalog
from tests.support.subscriptions import new_dataset, put

NEW: dict[str, Any] = {"algorithm": "reduce", "collection": "swaths", "options": {"grid": "5deg"}}


class Client:
    """Asks a portal in this process, as one of its users."""

    def __init__(self, portal: Any, app: Any, tokens: dict[str, str]) -> None:
        self.portal, self.app, self.tokens = portal, app, tokens

    def __call__(
        self, method: str, path: str, user: str = "ann", json: Any = None
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[user]}"} if user else {}

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420/api"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, json=json, headers=headers)

        return asyncio.run(ask())

    def add(self, **fields: Any) -> dict[str, Any]:
        """Add a subscription."""
        answer = self("POST", "/subscriptions", json={**NEW, **fields})
        assert answer.status_code == 201, answer.text
        content: dict[str, Any] = answer.json()
        assert answer.headers["location"].endswith(f"/api/subscriptions/{content['id']}")
        return content


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("subscriptions")
    settings = {
        "catalog": {"database": new_catalog(folder / "c.sqlite")},
        "results": {"folder": str(folder / "results")},
        "access": {"tokens": "required"},
        "limits": {"subscriptions": 8},
    }
    with open_portal(config_of(settings)) as portal:
        new_dataset(portal.catalog)
        scopes = {"ann": ["read", "submit"], "bob": ["read", "submit"], "eve": ["read"]}
        scopes["root"] = ["admin"]
        add = portal.catalog.add_token
        tokens = {user: add(user, each)[0] for user, each in scopes.items()}
        yield Client(portal, make_app(portal), tokens)


def test_a_subscription_lives(ask: Client) -> None:
    added = ask.add(
        bbox=[170, -10, -170, 10],
        time=["2005-05-01", None],
        filter="platform = 'Terra' AND swathe:bytes > 3",
        webhook="https://receiver.example/hook",
        until="2100-01-01T00:00:00Z",
        wait_s=60,
        group="day",
    )
    secret = added.pop("secret")
    assert secret.startswith("whsec_")
    path = f"/subscriptions/{added['id']}"
    assert ask("GET", path).json() == added
    assert secret.removeprefix("whsec_") not in ask("GET", path).text
    assert added["grouping"] == {"by": "day", "least": 1, "most": 10_000, "wait_s": 60.0}
    assert added["search"]["time"] == [53_491.0, None]
    assert added["search"]["condition"]["op"] == "and"
    assert ask("POST", f"{path}/pause").json()["state"] == "paused"
    assert ask("POST", f"{path}/resume").json()["state"] == "active"
    assert ask("GET", "/subscriptions").json() == {"subscriptions": [added]}
    assert ask("DELETE", path).status_code == 204
    assert ask("GET", path).status_code == 404


def test_users_see_their_own(ask: Client) -> None:
    path = f"/subscriptions/{ask.add()['id']}"
    for method, end in (("GET", ""), ("GET", "/feed"), ("POST", "/pause"), ("DELETE", "")):
        answer = ask(method, path + end, "bob")
        assert (answer.status_code, answer.json()["kind"]) == (404, "NoSuchSubscriptionError")
    assert ask("GET", "/subscriptions", "bob").json() == {"subscriptions": []}
    assert ask("GET", path, "root").status_code == 200
    assert ask("POST", "/subscriptions", "eve", NEW).status_code == 403
    assert ask("DELETE", path).status_code == 204


def test_the_feed_goes_on_at_its_cursor(ask: Client) -> None:
    path = f"/subscriptions/{ask.add()['id']}/feed"
    empty = ask("GET", path).json()
    assert (empty["events"], empty["has_gap"]) == ([], False)
    put(ask.portal.catalog, "a")
    ask.portal.subscriptions.match()
    ask.portal.subscriptions.fire()  # its store has no such file: the job has a row that failed
    page = ask("GET", f"{path}?after={empty['cursor']}").json()
    (event,) = page["events"]
    assert (event["type"], event["subject"]) == ("org.swathe.run.submitted", "a")
    job = ask.portal.jobs.job(event["data"]["job"])
    assert (job.owner, job.name) == ("ann", "reduce of swaths")
    assert ask("GET", f"{path}?after={page['cursor']}").json()["events"] == []
    for cursor in ("x", "A" * 32, page["cursor"][:-1] + "é"):
        answer = ask("GET", f"{path}?after={cursor}")
        assert (answer.status_code, answer.json()["kind"]) == (400, "CursorError")
    for limit in ("0", "-1", "1000000000", "x"):
        assert ask("GET", f"{path}?limit={limit}").status_code == 422


def test_an_algorithm_declares_its_groups(ask: Client) -> None:
    content = LST.replace('"MOD11_L2"', '"swaths"').replace(", window = {before = 1}", "")
    with_window = LST.replace('"1.2"', '"1.1"')
    for version, source in (("1.1", with_window), ("1.2", content)):
        add = ask.portal.catalog.add_algorithm
        add("lst-quarter-degree", version, source.encode(), "bob")
    options = {"parameters": {"min_quality": 2}, "files": {"climatology": "archive:clim.nc"}}
    added = ask.add(algorithm="lst-quarter-degree", options=options)
    assert added["job_options"]["algorithm"] == "lst-quarter-degree"
    assert added["grouping"] == {"by": "day", "least": 1, "most": 288, "wait_s": 0.0}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"algorithm": "lst-quarter-degree@9"}, "no algorithm"),
        ({"algorithm": "lst-quarter-degree@1.1"}, "without neighbours in time"),
        ({"group": "orbit"}, "expected day, as lst-quarter-degree declares"),
        ({"options": {"parameters": {"min_quality": 9}}}, "min_quality"),
        ({"options": {"grid": "5deg"}}, "expected parameters, files and register_as"),
    ]
    for fields, text in wrong:
        body = {**NEW, "algorithm": "lst-quarter-degree", "options": options, **fields}
        answer = ask("POST", "/subscriptions", json=body)
        assert answer.status_code in (404, 422), answer.text
        assert text in answer.json()["error"]


@pytest.mark.parametrize(
    ("old", "new"), [("name", "algorithm"), ("dataset", "collection"), ("bounds", "bbox")]
)
def test_other_words_are_refused_with_the_right_one(ask: Client, old: str, new: str) -> None:
    answer = ask("POST", "/subscriptions", json={**NEW, old: "x"})
    assert answer.status_code == 422
    assert f"expected {new}, found {old}" in answer.json()["error"]


@pytest.mark.parametrize(
    "fields",
    [
        {"collection": "none"},
        {"bbox": [0, 0, 1]},
        {"bbox": [0, 95, 1, 96]},
        {"time": ["x", None]},
        {"filter": "platform = "},
        {"filter": {"op": "and", "args": []}},
        {"webhook": "file:///etc/passwd"},
        {"webhook": "http://u:p@receiver.example/"},
        {"until": "2005-01-01T00:00:00Z"},
        {"until": "tomorrow"},
        {"group": "week"},
        {"wait_s": 1e300},
        {"options": {"grid": "x"}},
        {"options": {"statistics": "mean", "dataset": 7}},
        {"other": 1},
    ],
    ids=str,
)
def test_invalid_subscriptions_are_refused(ask: Client, fields: dict[str, Any]) -> None:
    answer = ask("POST", "/subscriptions", json={**NEW, **fields})
    assert answer.status_code in (404, 422), answer.text
    assert set(answer.json()) == {"error", "kind", "request_id"}


def test_a_dataset_in_the_folder_of_results_is_refused(ask: Client) -> None:
    for prefix, is_refused in (("", True), ("portal/jobs", True), ("portals", False)):
        name = f"in-{prefix.replace('/', '-') or 'all'}"
        ask.portal.catalog.add_dataset(name, "archive", prefix, None)
        service = Subscriptions(ask.portal.jobs, results="archive:portal")
        request = SubscriptionRequest("reduce", name, options={"grid": "5deg"})
        if is_refused:
            with pytest.raises(SubscriptionError, match="without end"):
                service.add(request, "ann")
        else:
            service.add(request, "cid")


def test_an_estimate_checks_the_name_of_the_new_dataset_and_open_times(
    ask: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LST.replace('"MOD11_L2"', '"swaths"').replace("lst-quarter-degree", "lst-new")
    ask.portal.catalog.add_algorithm("lst-new", "1.2", source.encode(), "bob")
    monkeypatch.setattr(ask.portal.jobs.outputs, "root", ("archive", "outputs"))
    put(ask.portal.catalog, "early", day=53_000.0)
    put(ask.portal.catalog, "late", day=54_000.0)
    order = {"algorithm": "lst-new", "files": {"climatology": "archive:clim.nc"}}
    answer = ask("POST", "/orders/estimate", json={**order, "register_as": "swaths"})
    assert (answer.status_code, answer.json()["kind"]) == (422, "DatasetError")
    assert answer.json()["error"].startswith("register_as: expected a name that is not taken")
    for time, count in (([53_900, None], 1), ([None, 53_100.0], 1), ([None, None], 2)):
        answer = ask("POST", "/orders/estimate", json={**order, "time": time, "register_as": "new"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["targets"] >= count
        assert (answer.json()["targets"] > count) == (time == [None, None])


def test_mail_is_confirmed_and_stopped_by_links_without_a_token(ask: Client) -> None:
    answer = ask("POST", "/subscriptions", json={**NEW, "mail": "ann@mail.example"})
    assert (answer.status_code, answer.json()["kind"]) == (422, "SubscriptionError")
    assert "mail.server" in answer.json()["error"]
    subscriptions = Subscriptions(ask.portal.jobs, sends_mail=True)
    wanted = SubscriptionRequest("reduce", "swaths", options={"grid": "5deg"}, mail="a@b")
    added = subscriptions.add(wanted, "cid").id
    (request,) = ask.portal.catalog.due_requests(8)

    def visit(method: str, path: str) -> tuple[int, str]:
        answer = ask(method, f"http://127.0.0.1:8420/mail/{path}", user="")
        return answer.status_code, answer.text

    def fault() -> str:
        return str(ask("GET", f"/subscriptions/{added}", "root").json()["mail_fault"])

    status, text = visit("GET", request.key)
    assert (status, "cid asks for mail" in text) == (200, True)
    for path in (f"{request.key}/confirm", f"{request.key}/stop"):
        assert visit("GET", path)[0] == 404, "programs that check mail open its links"
    assert "not confirmed" in fault()
    assert visit("POST", f"{request.key}/confirm")[0] == 200
    assert fault() == ""
    status, text = visit("POST", f"{request.key}/stop")
    assert (status, "gets no mail" in text) == (200, True)
    assert "stopped" in fault()
    assert visit("GET", "x" * 32)[0] == 404
    assert visit("POST", f"{'x' * 32}/confirm")[0] == 404
    assert visit("GET", "x" * 33)[0] == 422
