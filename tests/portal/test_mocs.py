"""MOCs of datasets from a portal."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import httpx
import pytest
from mocpy import MOC

from swathe.catalog import Catalog
from tests.support.portals import RunningPortal, add_survey, database_in, served

PATH = "/api/datasets/survey/moc"


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("mocs")
    add_survey(folder, frames=2, targets=3)
    with served(folder) as running:
        yield running


def test_a_portal_gives_the_moc_of_a_dataset(portal: RunningPortal) -> None:
    answer = httpx.get(f"{portal.url}{PATH}", params={"order": 9})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/fits"
    assert 'filename="survey.moc.fits"' in answer.headers["content-disposition"]
    moc = MOC.from_fits(io.BytesIO(answer.content))
    assert moc.max_order == 9 and 0 < moc.sky_fraction < 0.01
    answer = httpx.get(f"{portal.url}{PATH}", params={"order": 9, "format": "json"})
    assert answer.headers["content-type"] == "application/json"
    assert MOC.from_json(json.loads(answer.content)) == moc
    assert MOC.from_fits(io.BytesIO(httpx.get(f"{portal.url}{PATH}").content)).max_order == 10


def test_an_unchanged_dataset_is_not_sent_again(portal: RunningPortal) -> None:
    tag = httpx.get(f"{portal.url}{PATH}").headers["etag"]
    again = httpx.get(f"{portal.url}{PATH}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    with Catalog.open(database_in(portal.folder)) as catalog:
        catalog.set_calib_level("survey", 3)
    after = httpx.get(f"{portal.url}{PATH}", headers={"If-None-Match": tag})
    assert after.status_code == 200 and after.headers["etag"] != tag


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/api/datasets/none/moc", 404, "there is no dataset 'none'"),
        (f"{PATH}?order=12", 422, "query.order"),
        (f"{PATH}?order=-1", 422, "query.order"),
        (f"{PATH}?format=xml", 422, "query.format"),
    ],
)
def test_what_it_does_not_give(portal: RunningPortal, path: str, status: int, text: str) -> None:
    answer = httpx.get(f"{portal.url}{path}")
    assert answer.status_code == status
    assert text in answer.json()["error"]
