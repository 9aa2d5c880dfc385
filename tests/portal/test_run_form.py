"""The pages of runs in a browser: the prediction follows the table of the form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from swathe import runs
from swathe.catalog import Catalog
from tests.support.browser import OpenPage, keep, visiting
from tests.support.portals import RunningPortal, database_in, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUN = """name = "app"
iterations = 120
[arrays.temp]
shape = [64, 64, 64]
every = 6
location = "near"
[arrays.press]
shape = [64, 64, 64]
every = 6
location = "near"
"""


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    """A portal with a run of three dumps."""
    folder = tmp_path_factory.mktemp("run-form")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        with Catalog.open() as catalog:
            catalog.add_store("near", str(folder / "near"), "local")
        with runs.run("app", iterations=4) as run:
            temp = run.array("temp", (16, 16, 16), "f4", every=2)
            for at in range(run.iterations + 1):
                temp.write(at, np.random.default_rng(at).random((16, 16, 16), "f4"))
    with served(folder) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, portal: RunningPortal) -> Iterator[OpenPage]:
    """Opens pages of the portal by their paths."""
    with visiting(browser) as opened:
        yield lambda path, **settings: opened(portal.url + path, portal.url, **settings)


def test_prediction_of_a_run_follows_its_table(visit: OpenPage) -> None:
    page = visit("/runs/new")
    page.get_by_label("Contents of run.toml").fill(RUN)
    page.get_by_role("button", name="Read").click()
    page.locator("#a0-dumps").get_by_text("21").wait_for()
    total, rows = page.locator("#total"), page.locator(".inputs tbody tr")
    seconds = page.locator("td[data-label=Seconds]")
    before, all_before = seconds.all_inner_texts(), total.inner_text()
    height = page.locator("#figures").bounding_box()
    frequency = page.get_by_label("Frequency of temp")
    frequency.fill("1")
    page.locator("#a0-dumps").get_by_text("121").wait_for()
    after = seconds.all_inner_texts()
    assert float(after[0]) > 4 * float(before[0])
    assert float(after[1]) > 0  # written together with the other, it takes another share
    assert total.inner_text() != all_before
    assert page.locator("#figures").bounding_box() == height, "nothing moves"
    assert page.evaluate("document.activeElement.name") == "a0-every"
    keep(page, "run-form")

    frequency.fill("6x")
    fault = rows.first.locator("#a0-every-fault")
    fault.get_by_text("expected a whole number").wait_for()
    assert frequency.get_attribute("aria-invalid") == "true"
    assert seconds.all_inner_texts() == ["\N{EN DASH}"] * 2
    keep(page, "run-form-fault")
    frequency.fill("6")
    page.locator("#a0-dumps").get_by_text("21").wait_for()
    assert not fault.is_visible()
    assert seconds.all_inner_texts() == before


def test_prediction_of_a_run_needs_no_script(visit: OpenPage) -> None:
    page = visit("/runs/new?run=app@1", java_script_enabled=False)
    page.get_by_label("Frequency of temp").fill("1")
    page.get_by_role("button", name="Predict").click()
    page.locator("#a0-dumps").get_by_text("5").wait_for()


def test_run_is_looked_at(visit: OpenPage) -> None:
    page = visit("/jobs")
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("link", name="app@1").click()
    page.get_by_text("3 of 3", exact=True).wait_for()
    keep(page, "run")
    page.get_by_role("link", name="temp").click()
    page.get_by_role("link", name=":,8,:").wait_for()
