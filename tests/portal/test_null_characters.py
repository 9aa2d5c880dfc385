"""The character NUL in names of files, datasets and arrays is an error that says so."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any

import httpx
import pytest

from tests.portal.test_algorithm_pages import GOOD, OPTIONS, SUBSCRIBE, SUBSCRIPTION, Visitor, visit
from tests.portal.test_subscribe_reduce import FORM
from tests.portal.test_subscribe_reduce import PATH as REDUCE

__all__ = ["visit"]

ORDER = "/algorithms/means/order"
FILE = "swath:g0\0.h5"
TEXT = "expected no character NUL, found "
LIST = "file,x0,y0,width,height\nswath:g0.h5,0,0,3,3\n"


def post(visit: Visitor, path: str, body: Any = None, **more: Any) -> httpx.Response:
    """Send a request as no browser does: JSON, or a body as it is."""
    headers = {"Authorization": f"Bearer {visit.tokens['ann']}", **more.pop("headers", {})}

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(visit.app, raise_app_exceptions=False)
        base = "http://127.0.0.1:8420"
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
            return await client.post(path, json=body, **more)

    return asyncio.run(ask())


def counts(visit: Visitor) -> tuple[int, int]:
    return len(visit.catalog.jobs()), len(visit("/api/subscriptions").json()["subscriptions"])


@pytest.mark.parametrize(
    ("path", "form", "field"),
    [
        (ORDER, GOOD, "f-mask"),
        (ORDER, GOOD, "p-way"),
        (ORDER, GOOD, "collection"),
        (ORDER, GOOD, "name"),
        (ORDER, GOOD, "register_as"),
        (SUBSCRIBE, SUBSCRIPTION, "f-mask"),
        (SUBSCRIBE, SUBSCRIPTION, "collection"),
        (SUBSCRIBE, SUBSCRIPTION, "filter"),
        (REDUCE, FORM, "p-array"),
        (REDUCE, FORM, "p-where"),
        (REDUCE, FORM, "p-grid"),
        (REDUCE, FORM, "webhook"),
    ],
)
def test_a_field_with_nul_is_marked(
    visit: Visitor, path: str, form: dict[str, str], field: str
) -> None:
    before = counts(visit)
    last = "submit" if path == ORDER else "subscribe"
    for action, status in (("estimate", 200), (last, 422)):
        answer = visit(path, {**form, field: FILE, "do": action})
        assert answer.status_code == status
        (words,) = re.findall(f'id="{field}-fault" data-part>([^<]*)<', answer.text)
        assert unescape(words) == TEXT + "'swath:g0\\x00.h5'"
    assert counts(visit) == before


def test_a_corner_of_the_box_with_nul_is_marked(visit: Visitor) -> None:
    answer = visit(ORDER, {**GOOD, "west": "1\0", "do": "submit"})
    assert answer.status_code == 422
    assert 'id="place-fault" data-part>expected west' in answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/api/subscriptions",
            {
                "algorithm": "means",
                "collection": "swaths",
                "options": {**OPTIONS, "files": {"mask": FILE}},
            },
        ),
        (
            "/api/subscriptions",
            {
                "algorithm": "means",
                "collection": "swaths",
                "options": {**OPTIONS, "files": {"ma\0sk": "swath:g0.h5"}},
            },
        ),
        (
            "/api/subscriptions",
            {"algorithm": "reduce", "collection": "swaths", "options": {"array": "/l\0st"}},
        ),
        (
            "/api/orders",
            {
                "algorithm": "means",
                "collection": "swaths",
                "parameters": OPTIONS["parameters"],
                "files": {"mask": FILE},
            },
        ),
        (
            "/api/jobs",
            {
                "targets": {"file": ["swath:g0.h5"]},
                "options": {"operation": "reduce", "array": "/l\0st"},
            },
        ),
    ],
)
def test_options_with_nul_are_refused(visit: Visitor, path: str, body: dict[str, Any]) -> None:
    before = counts(visit)
    answer = post(visit, path, body)
    assert 400 <= answer.status_code < 500
    assert "NUL" in answer.text or "printable" in answer.text, answer.text
    assert counts(visit) == before


def upload(visit: Visitor, path: str, name: bytes, **fields: str) -> httpx.Response:
    """Upload a list under a name, which httpx would quote."""
    field = b"targets" if path == "/api/jobs" else b"file"
    parts = [(b'name="%s"; filename="%s"' % (field, name), LIST.encode())]
    parts += [(b'name="%s"' % key.encode(), value.encode()) for key, value in fields.items()]
    body = b"".join(
        b"--b\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % part for part in parts
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    return post(visit, path, content=body + b"--b--\r\n", headers=headers)


@pytest.mark.parametrize("name", [b"list\0.csv", b"\0", b"list.c\0sv"])
def test_a_list_whose_name_has_nul_is_refused(visit: Visitor, name: bytes) -> None:
    before = counts(visit)
    for path in ("/new", "/api/jobs"):
        answer = upload(visit, path, name, do="submit")
        assert answer.status_code == 422
        assert "name: expected no character NUL, found" in unescape(answer.text)
    for path in ("/algorithms", "/runs/new"):  # which do not use it
        assert upload(visit, path, name).status_code == 200
    assert counts(visit) == before


def test_a_list_with_nul_is_refused(visit: Visitor) -> None:
    before = counts(visit)
    for text in (LIST.replace("g0", "g\0"), LIST.replace("swath:", "swa\0th:")):
        answer = visit("/new", {"targets": text, "do": "submit"})
        assert 400 <= answer.status_code < 500
        assert "printable" in answer.text and "\\x00" in answer.text
    assert counts(visit) == before
