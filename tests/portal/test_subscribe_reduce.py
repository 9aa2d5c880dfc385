"""The form that subscribes `reduce`: its options are fields, and errors stand at them."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.portal.test_algorithm_pages import Visitor, visit

__all__ = ["visit"]

FORM = {
    "collection": "swaths",
    "time_from": "2005-05-01",
    "time_to": "2005-05-02",
    "wait_h": "2",
    "p-grid": "1deg",
    "p-statistics": "mean,count",
    "p-where": "qa & 3 == 0",
    "p-array": "/lst",
    "p-group": "day",
}
PATH = "/algorithms/reduce/subscribe"


def test_a_form_subscribes_reduce(visit: Visitor) -> None:
    blank = visit(PATH).text
    assert 'name="p-grid" value="0.25deg"' in blank
    assert 'name="version"' not in blank and 'name="register_as"' not in blank
    assert 'value="swaths"' in blank and "/algorithms/reduce?" not in blank
    assert f'href="{PATH}"' in visit("/subscriptions").text
    assert f'href="{PATH}"' not in visit("/subscriptions", user="eve").text
    shown = visit(PATH, {**FORM, "do": "estimate"}, "eve")
    assert shown.status_code == 200 and "<dd>3<small>in the collection" in shown.text
    assert visit(PATH, {**FORM, "do": "subscribe"}, "eve").status_code == 403

    added = visit(PATH, {**FORM, "do": "subscribe"})
    assert added.status_code == 303, added.text
    (subscription,) = visit("/api/subscriptions").json()["subscriptions"]
    assert (subscription["algorithm"], subscription["collection"]) == ("reduce", "swaths")
    assert subscription["grouping"] == {
        "by": "day",
        "least": 1,
        "most": 10_000,
        "wait_s": 7200,
    }
    options = subscription["job_options"]
    assert {name: options[name] for name in ("grid", "statistics", "where", "array")} == {
        "grid": "1deg",
        "statistics": "mean,count",
        "where": "qa & 3 == 0",
        "array": "/lst",
    }
    page = visit(added.headers["location"]).text
    assert "<dt>grid</dt><dd>1deg</dd>" in page and "qa &amp; 3 == 0" in page
    visit(f"{added.headers['location']}/remove", {})


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("p-grid", "<b>", "expected 0.25deg"),
        ("p-grid", "", "expected 0.25deg"),
        ("p-grid", "1e-9deg", "expected"),
        ("p-statistics", "mean,most", "most"),
        ("p-where", "qa &", "expected"),
        ("p-where", "q" * 1001, "expected at most 1000 characters"),
        ("p-group", "hour", "expected"),
        ("collection", "", "expected the name of a dataset"),
    ],
)
def test_errors_of_options_stand_at_their_fields(
    visit: Visitor, field: str, value: str, fault: str
) -> None:
    for action, status in (("estimate", 200), ("subscribe", 422)):
        answer = visit(PATH, {**FORM, field: value, "do": action})
        assert answer.status_code == status
        assert "<b>" not in answer.text
        (words,) = re.findall(f'id="{field}-fault" data-part>([^<]*)<', answer.text)
        assert fault in unescape(words)
    assert visit("/api/subscriptions").json()["subscriptions"] == []


def test_only_operations_on_granules_have_the_form(visit: Visitor) -> None:
    for name in ("cut", "stack", "rgb", "algorithm", "absent", "reduce?version=1"):
        path = f"/algorithms/{name}".replace("?", "/subscribe?")
        path += "" if "?" in path else "/subscribe"
        assert visit(path).status_code == 404, path
