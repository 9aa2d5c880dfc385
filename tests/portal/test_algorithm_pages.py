"""Pages on algorithms: what their forms do, and for whom."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import h5py
import httpx
import numpy as np
import pytest

from swathe.catalog import group_runs
from swathe.catalog.group_runs import save_group_runs
from swathe.catalog.records.algorithms import GroupRunRecord
from swathe.datasets.scan import scan
from swathe.jobs import Options
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.context import Portal
from swathe.portal.pages import strings
from swathe.stores.listing import list_objects
from swathe.subscriptions.request import SubscriptionRequest
from tests.support.algorithms import LST, PACKAGE, tar_of, with_line
from tests.support.box import USERS, box
from tests.support.catalogs import new_catalog
from tests.support.cwl import COUNT, record
from tests.support.hdf_eos5 import write_swath

NAME = "lst-quarter-degree"
MEANS = """\
# /// script
# [tool.swathe.algorithm]
# name = "means"
# version = "1"
# inputs.granules = {group = "day", count = "1..2"}
# inputs.mask = {file = "mask.nc"}
# outputs.table = {media_type = "text/csv"}
# parameters.least = {type = "integer", minimum = 0, maximum = 9, default = 1}
# parameters.way = {type = "string", enum = ["mean", "<b>"]}
# ///
def run(granules, mask, table, least, way): ...
"""
OPTIONS = {"parameters": {"way": "mean"}, "files": {"mask": "swath:g0.h5"}}
LATER = datetime(2100, 1, 1, tzinfo=UTC)
GOOD = {"collection": "swaths", "f-mask": "swath:g0.h5", "p-least": "3", "p-way": "mean"}


class Visitor:
    """Sends requests to a portal in this process, as one of its users."""

    def __init__(self, app: Any, tokens: dict[str, str], portal: Portal) -> None:
        self.app, self.tokens = app, tokens
        self.catalog, self.jobs = portal.catalog, portal.jobs

    def __call__(
        self,
        path: str,
        form: dict[str, str] | None = None,
        user: str = "ann",
        origin: str | None = None,
        more: dict[str, str] | None = None,
        file: bytes = b"",
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        headers |= {"Origin": origin} if origin else {}
        headers |= more or {}

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420"
            async with httpx.AsyncClient(
                transport=transport, base_url=base, headers=headers
            ) as client:
                if form is None:
                    return await client.get(path)
                fields: dict[str, tuple[str | None, bytes]] = {
                    name: (None, value.encode()) for name, value in form.items()
                }
                fields |= {"file": ("package.tar", file)} if file else {}
                return await client.post(path, files=fields or {"-": (None, b"")})

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("algorithm-pages")
    settings: dict[str, Any] = {
        "catalog": {"database": new_catalog(folder / "c.sqlite")},
        "results": {"folder": str(folder / "results")},
        "access": {"tokens": "required"},
        "shares": {"ann": {"slots": 3, "result_gb": 1.0, "priority": 8}},
        "algorithms": {"users": f"{USERS.first}:{USERS.count}" if USERS else ""},
    }
    (folder / "swath").mkdir()
    for number, day in enumerate(("01", "01", "02", "03", "03", "03")):
        lat, lon = np.meshgrid(np.linspace(0, 5, 4), 20 * number + np.linspace(0, 5, 4))
        with h5py.File(write_swath(folder / f"swath/g{number}.h5", lat, lon), "a") as file:
            file.attrs["time_coverage_start"] = f"2005-05-{day}T0{number}:00:00Z"
            file.attrs["time_coverage_end"] = f"2005-05-{day}T0{number}:05:00Z"
    with open_portal(config_of(settings)) as portal:
        store = portal.catalog.add_store("swath", str(folder / "swath"))
        portal.catalog.add_dataset("swaths", "swath", "", None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SWATHE_DATABASE", settings["catalog"]["database"])
            scan(portal.catalog, "swaths", list_objects(store, "", None))
        portal.catalog.add_algorithm("means", "1", MEANS.encode(), "ann")
        scopes = {"ann": ["read", "submit"], "bob": ["read", "submit"], "eve": ["read"]}
        scopes["pat"] = ["read"]
        add = portal.catalog.add_token
        tokens = {user: add(user, each)[0] for user, each in scopes.items()}
        yield Visitor(make_app(portal), tokens, portal)


def test_errors_stand_beside_their_lines_and_nothing_is_added(visit: Visitor) -> None:
    bad = with_line('name = "Bad <b>"').replace("arrays = [", "array = [")
    for action, status in (("check", 200), ("add", 422)):
        answer = visit("/algorithms", {"source": bad, "do": action})
        assert answer.status_code == status
        text = unescape(re.sub(r"<(?!b>)[^>]+>", "", answer.text))
        assert '5 # name = "Bad <b>"\n'.replace("\n", "name: expected a name") in text
        assert "7 # inputs.granules" in text
        assert "<b>" not in answer.text
        assert unescape(answer.text).count(bad.splitlines()[6]) == 2, "the form repeats it"
    assert visit(f"/algorithms/{NAME}").status_code == 404


def test_an_algorithm_is_added_shown_and_removed(visit: Visitor) -> None:
    # As browsers send the lines of a text field.
    source = LST.replace("\n", "\r\n")
    assert visit("/algorithms", {"source": source}, "eve").status_code == 403
    there = "https://elsewhere.example"
    assert visit("/algorithms", {"source": source}, origin=there).status_code == 403
    added = visit("/algorithms", {"source": source, "do": "add"})
    assert added.headers["location"] == f"/algorithms/{NAME}?version=1.2"
    assert visit(f"/api/algorithms/{NAME}/source").text == LST
    shown = visit(added.headers["location"], user="eve").text
    assert "/remove" not in shown
    assert all(text in shown for text in ("288", "--set min_quality=1", "text/csv", "10"))
    assert NAME in visit("/algorithms").text

    path = f"/algorithms/{NAME}/remove?version=1.2"
    assert "/remove" in visit(f"/algorithms/{NAME}").text
    assert visit(path, user="bob").status_code == 403
    assert visit(path, {}, "bob").status_code == 403
    assert f'action="{path}"' in visit(path).text
    assert visit(path, {}).headers["location"] == "/algorithms"
    assert NAME not in visit("/algorithms").text


def test_a_document_of_cwl_is_checked_added_and_shown(visit: Visitor) -> None:
    text = visit("/algorithms", {"source": COUNT, "do": "check"}).text
    assert "there is no environment &#39;cwl&#39;" in text
    text = visit("/algorithms", {"source": f"{COUNT}a: *b\n", "do": "check"}).text
    assert "expected no anchor and no alias" in text and "a: *b" in text
    visit.catalog.add_environment(record("cwltool"))
    answer = visit("/algorithms", {"source": COUNT, "do": "add"})
    assert answer.headers["location"] == "/algorithms/count-lines?version=1.0"
    text = visit("/algorithms/count-lines").text
    assert "DockerRequirement is a hint that is ignored" in text
    assert "baseCommand: [wc, -l]" in text
    assert "try count-lines-1.0.cwl" in text
    visit("/algorithms/count-lines/remove", {})


def test_a_long_source_is_shown_in_part(visit: Visitor) -> None:
    long = (
        LST.replace("1.2", "3.0")
        + '"\N{RIGHT-TO-LEFT OVERRIDE}"\n'
        + '"<&><&><&><&><&><&>"\n' * 5_500
    )
    added = visit("/algorithms", {"source": long, "do": "add"})
    shown = visit(added.headers["location"]).text
    assert len(shown) < 200_000
    assert "of 5,515 lines" in shown
    assert "\\u202e" in shown
    checked = visit("/algorithms", {"source": long + "def", "do": "check"}).text
    assert len(checked) < 200_000
    assert "too long to be shown here" in checked


def estimate_of(answer: httpx.Response) -> str:
    """Return the words of the estimate of an order."""
    part = answer.text.partition('id="estimate"')[2].partition("</aside>")[0]
    return " ".join(unescape(re.sub("<[^>]+>", " ", part)).split())


@pytest.mark.parametrize("is_gzip", [False, True])
def test_of_a_package_the_file_with_the_header_is_shown(visit: Visitor, is_gzip: bool) -> None:
    content = tar_of({"algorithm.toml": PACKAGE.encode(), "main.c": b"int main(void) {}\n"})
    version = "2" if is_gzip else "1"
    visit.catalog.add_algorithm(
        "sums-c", version, gzip.compress(content, mtime=0) if is_gzip else content, "ann"
    )
    text = unescape(visit("/algorithms/sums-c").text)
    assert '<li>sources = ["main.c"]</li>' in text and "one of the 2 files" in text
    package = visit("/ogc/processes/sums-c/package")
    suffix, kind = ("tar.gz", "gzip") if is_gzip else ("tar", "x-tar")
    assert package.headers["content-type"] == f"application/{kind}"
    assert package.headers["content-disposition"].endswith(f'sums-c-{version}.{suffix}"')
    kinds = {"Accept": "application/ogcapppkg+json"}
    unit = visit("/ogc/processes/sums-c/package", more=kinds).json()["executionUnit"]
    assert unit["mediaType"] == f"application/{kind}"


def test_a_package_of_more_than_a_megabyte_is_whole(visit: Visitor) -> None:
    files = {
        "algorithm.py": LST.replace(NAME, "whole").replace("1.2", "4.0").encode(),
        "table.bin": bytes(2_000_000),
    }
    added = visit("/algorithms", {"do": "add"}, file=tar_of(files))
    assert added.headers["location"] == "/algorithms/whole?version=4.0", added.text
    assert visit.catalog.algorithm("whole@4.0")[1] == tar_of(files)


def test_an_order_shows_matches_and_groups(visit: Visitor) -> None:
    path = "/algorithms/means/order"
    assert "<b>" not in visit(path).text
    answer = visit(path, {**GOOD, "do": "estimate"}, "eve")
    assert answer.status_code == 200
    text = estimate_of(answer)
    assert "Granules 6" in text
    assert "Groups 3" in text
    assert "has not run yet" in text
    assert "expected 1 to 2 granules, found 3" in text
    assert answer.text.count('class="outline"') == 6
    # Of the second day, and what is in the box only.
    days = {"time_from": "2005-05-02", "time_to": "2005-05-02"}
    assert "Granules 1" in estimate_of(visit(path, {**GOOD, **days}))
    sides = {"west": "15", "south": "-5", "east": "47", "north": "30"}
    boxed = visit(path, {**GOOD, **sides})
    assert "Granules 2" in estimate_of(boxed)
    assert boxed.text.count('class="box"') == 1
    dateline = visit(path, {**GOOD, **sides, "west": "70", "east": "-170"})
    assert dateline.text.count('class="box"') == 2
    assert "no granule matches" in estimate_of(visit(path, {**GOOD, "time_from": "2006-01-01"}))


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("p-least", "ten", "expected a whole number from 0 to 9"),
        ("p-least", "10", "expected a whole number from 0 to 9"),
        ("p-way", "median", "expected one of"),
        ("f-mask", "", "expected STORE:path"),
        ("collection", "", "expected the name of a dataset"),
        ("time_from", "2005-13-01", "expected an MJD"),
        ("west", "nan", "expected west"),
        ("north", "95", "expected west"),
    ],
)
def test_errors_of_an_order_stand_at_their_fields(
    visit: Visitor, field: str, value: str, fault: str
) -> None:
    sides = {"west": "0", "south": "0", "east": "1", "north": "1"}
    for action, status in (("estimate", 200), ("submit", 422), ("preview", 422)):
        form = {**GOOD, **sides, field: value, "do": action}
        answer = visit("/algorithms/means/order", form)
        assert answer.status_code == status
        name = "place" if field in sides else field
        (words,) = re.findall(f'id="{name}-fault" data-part>([^<]*)<', answer.text)
        assert fault in unescape(words)
    assert visit("/api/jobs").json()["jobs"] == []


def test_an_order_is_a_job_and_so_is_its_preview(visit: Visitor) -> None:
    box()  # orders are refused where no sandbox holds
    path = "/algorithms/means/order?version=1"
    assert visit(path, {**GOOD, "do": "submit"}, "eve").status_code == 403
    gone = visit(path, {**GOOD, "do": "submit", "collection": "none"})
    assert gone.status_code == 404
    for action, rows in (("preview", 3), ("submit", 9)):
        answer = visit(path, {**GOOD, "do": action, "name": "mine"})
        assert answer.status_code == 303, answer.text
        job = visit(f"/api{answer.headers['location']}").json()
        assert job["rows"] == rows
        assert job["options"]["parameters"] == {"least": 3, "way": "mean"}
        assert job["name"] == ("mine" if action == "submit" else "Preview of means@1")


def test_groups_of_a_job_are_shown_with_their_logs(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    box()
    location = visit("/algorithms/means/order", {**GOOD, "do": "submit"}).headers["location"]
    shown = visit(location).text
    for text in (
        "1 of 3 groups done",
        "All 3",
        "Waiting 2",
        "Error 1",
        "2005-05-02",
        "means@1",
        "way</dt><dd>mean",
    ):
        assert text in shown
    assert "/previews/" not in shown
    assert "found 3" in visit(f"{location}?state=error").text
    assert "has not run yet" in visit(f"{location}/groups/6").text
    assert [visit(f"{location}/groups/{row}").status_code for row in (5, 9)] == [404, 404]
    catalog = visit.catalog
    run = GroupRunRecord(
        6, "2005-05-01", "means@1", "bad", "\x1b[2J<b>", 9, 3, 1.5, 1.0, 10**6, datetime.now(UTC)
    )
    job = catalog.job(location.rpartition("/")[2]).number
    with catalog._writing() as session:
        save_group_runs(session, job, [run])
    shown = visit(f"{location}/groups/6").text
    assert "\\x1b[2J&lt;b&gt;" in shown
    assert "3 times smaller" in shown
    assert visit(f"{location}/groups/6", user="bob").status_code == 404
    # Three groups share what the logs of a job may have.
    monkeypatch.setattr(group_runs, "MOST_LOGS", 300)
    with catalog._writing() as session:
        save_group_runs(session, job, [replace(run, log="a" * 200 + "b" * 200)])
    log = catalog.group_run(job, 6).log
    assert 90 < len(log) <= 100 and re.fullmatch(r"a+\n\[\.\.\.\]\nb+", log)


def test_subscriptions_are_shown_paused_and_removed(visit: Visitor) -> None:
    box = (-10.0, 35.0, 30.0, 60.0)
    request = SubscriptionRequest("means", "swaths", box, options=OPTIONS, until=LATER)
    new = request.read(visit.catalog, "ann")
    path = f"/subscriptions/{visit.catalog.add_subscription(new, 9).id}"
    assert "Nothing has happened yet" in visit(path, user="ann").text
    assert "-10.0, 35.0, 30.0, 60.0 degrees" in visit(path).text
    assert path in visit("/subscriptions").text
    for user, status in (("bob", 404), ("eve", 404)):
        assert visit(path, user=user).status_code == status
        assert path not in visit("/subscriptions", user=user).text
    assert visit(f"{path}/pause", {}, "bob").status_code == 404
    visit(f"{path}/pause", {})
    assert 'data-phase="paused"' in visit(path).text
    visit(f"{path}/resume", {})
    visit.catalog.fail_subscription(path.rpartition("/")[2], "<b>gone")
    assert "&lt;b&gt;gone" in visit(path).text
    visit(f"{path}/resume", {})
    assert 'data-phase="active"' in visit(path).text
    assert f'action="{path}/remove"' in visit(f"{path}/remove").text
    assert visit(f"{path}/remove", {}).headers["location"] == "/subscriptions"
    assert visit(path).status_code == 404


SUBSCRIPTION = {**GOOD, "time_to": "2005-05-03", "until": "2099-12-31", "wait_h": "1.5"}
SUBSCRIBE = "/algorithms/means/subscribe"


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("collection", "", "expected the name of a dataset"),
        ("time_from", "2005-13-01", "expected an MJD"),
        ("west", "nan", "expected west"),
        ("p-least", "10", "expected a whole number from 0 to 9"),
        ("f-mask", "", "expected STORE:path"),
        ("wait_h", "-1", "expected 0 to 720 hours, found '-1'"),
        ("until", "soon", "expected a time as 2027-01-01"),
        ("filter", "platform =", "expected a property or a literal"),
        ("filter", "swathe:bytes > 'many'", "expected a number"),
        ("filter", "platform = 'Terra' AND " * 50 + "platform = 'Terra'", "expected at most 1000"),
        ("until", "2005-01-01", "expected a time to come"),
        ("webhook", "file:///etc/passwd", "expected http(s)://host"),
        ("mail", "<b>", "expected one address"),
    ],
)
def test_errors_of_a_subscription_stand_at_their_fields(
    visit: Visitor, field: str, value: str, fault: str
) -> None:
    for action, status in (("estimate", 200), ("subscribe", 422)):
        answer = visit(SUBSCRIBE, {**SUBSCRIPTION, field: value, "do": action})
        assert answer.status_code == status
        name = "place" if field == "west" else field
        if field == "mail":  # this portal sends none, so there is no field
            assert "mail: expected one address" in answer.text
            continue
        (words,) = re.findall(f'id="{name}-fault" data-part>([^<]*)<', answer.text)
        assert fault in unescape(words)
    assert visit("/api/subscriptions").json()["subscriptions"] == []


@pytest.mark.parametrize("action", ["order", "subscribe"])
def test_forms_list_the_datasets_that_the_algorithm_reads(visit: Visitor, action: str) -> None:
    assert 'value="swaths"' in visit(f"/algorithms/means/{action}").text
    source = MEANS.replace('"means"', f'"{action}-one"')
    source = source.replace("{group", '{collection = "MOD11_L2", group')
    visit.catalog.add_algorithm(f"{action}-one", "1", source.encode(), "ann")
    path = f"/algorithms/{action}-one/{action}"
    shown = visit(path).text
    assert 'value="swaths"' not in shown and "MOD11_L2, not in this archive" in shown
    answer = visit(path, {**GOOD, "do": "estimate"})
    (words,) = re.findall('id="collection-fault" data-part>([^<]*)<', answer.text)
    assert "expected MOD11_L2" in words and "found 'swaths'" in unescape(words)


def test_a_check_of_a_subscription_says_what_would_be_refused(visit: Visitor) -> None:
    form = {**SUBSCRIPTION, "webhook": "http://127.0.0.1:9/x", "do": "estimate"}
    text = estimate_of(visit(SUBSCRIBE, form))
    assert "expected a public address" in text and "Files that match 6" in text


def test_a_form_subscribes(visit: Visitor) -> None:
    shown = visit(SUBSCRIBE, {**SUBSCRIPTION, "do": "estimate"}, "eve")
    assert "Files that match 6" in estimate_of(shown), "also who may not subscribe may look"
    assert shown.text.count('class="outline"') == 6
    few = visit(SUBSCRIBE, {**SUBSCRIPTION, "time_to": "2005-05-01"})
    assert "Files that match 2" in estimate_of(few), "the last day is a whole one"
    condition = {"filter": "platform = 'Terra'"}
    assert "all of the place and time" in estimate_of(
        visit(SUBSCRIBE, {**SUBSCRIPTION, **condition})
    )
    form = {**SUBSCRIPTION, **condition, "do": "subscribe"}
    assert visit(SUBSCRIBE, form, "eve").status_code == 403
    gone = visit(SUBSCRIBE, {**form, "collection": "none"})
    assert (gone.status_code, "none" in estimate_of(gone)) == (404, True)

    added = visit(SUBSCRIBE, form)
    assert added.status_code == 303, added.text
    path = added.headers["location"]
    hooked = visit(SUBSCRIBE, {**form, "version": "1", "webhook": "https://a.example/"})
    assert (hooked.status_code, hooked.headers["cache-control"]) == (201, "no-store")
    assert re.search(r'id="secret">whsec_[\w+/=]{40,}<', hooked.text)
    pinned, newest = visit("/api/subscriptions").json()["subscriptions"]
    assert path == f"/subscriptions/{newest['id']}"
    assert (newest["algorithm"], pinned["algorithm"]) == ("means", "means@1")
    assert newest["until"].startswith("2099-12-31T23:59:59")
    assert newest["grouping"]["wait_s"] == 5400
    assert newest["job_options"]["parameters"] == {"least": 3, "way": "mean"}
    equal = {"op": "=", "args": [{"property": "platform"}, "Terra"]}
    assert newest["search"]["condition"] == equal
    assert newest["search"]["time"][1] == pytest.approx(53494, abs=1e-7)
    for each in (pinned, newest):
        visit(f"/subscriptions/{each['id']}/remove", {})


def test_a_string_shows_the_jobs_of_its_user_by_station(visit: Visitor) -> None:
    table = {"file": ["swath:g0.h5"]}
    options = Options.from_mapping({"operation": "reduce", "grid": "1deg"})
    for user, name in (("eve", "hers"), ("bob", "his <b>")):
        visit.jobs.submit(table, options, user, name=name, start=False)
    for user, name, other in (("eve", "hers", "his"), ("bob", "his &lt;b&gt;", "hers")):
        shown = visit("/string", user=user).text
        waiting = shown.partition("Waiting")[2].partition("Running")[0]
        assert name in waiting
        assert "not started" in waiting
        assert f">{other}" not in shown
        assert shown.count("No jobs.") == 3


def test_a_string_shows_slots_disk_and_priority(visit: Visitor) -> None:
    def shown(user: str) -> list[str]:
        share = visit("/string", user=user).text.partition("Share")[2].partition("Stations")[0]
        texts = [" ".join(re.sub(r"<[^>]+>", " ", part).split()) for part in share.split("<dt>")]
        return [text for text in texts if text.startswith(("Slots", "Disk", "Priority"))]

    assert shown("ann") == [
        "Slots 0 of 3 for groups at work",
        "Disk 0 B of 954 MiB",
        "Priority 8 of 10",
    ]
    assert shown("eve")[0] == "Slots 0 for groups at work, shared with all users"
    assert shown("eve")[2] == "Priority 5 of 10"


def test_a_station_says_that_it_has_more_jobs_than_it_lists(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "MOST_JOBS", 2)
    table = {"file": ["swath:g0.h5"]}
    options = Options.from_mapping({"operation": "reduce", "grid": "1deg"})
    for number in range(3):
        waiting = visit("/string", user="pat").text.partition("Waiting")[2].partition("Running")[0]
        assert f">{number}<" in waiting
        visit.jobs.submit(table, options, "pat", name="mine", start=False)
    waiting = visit("/string", user="pat").text.partition("Waiting")[2].partition("Running")[0]
    assert "more than 2" in waiting and waiting.count("mine") == 2
