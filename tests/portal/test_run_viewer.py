"""The pages of a run in Chromium: a small run of astro3d, with pictures by volren."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from PIL import Image

from examples.astro3d.__main__ import main as astro3d
from examples.volren.__main__ import main as volren
from swathe import trace
from swathe.catalog import Catalog
from tests.support.browser import PHONE, OpenPage, chromium, keep, visiting
from tests.support.portals import RunningPortal, database_in, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""A machine of tests has no graphics card."""
NO_WEBGL = """
const own = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind.startsWith("webgl") ? null : own.call(this, kind, ...more);
};
"""


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("viewer")
    with Catalog.open(database_in(folder)) as catalog:
        catalog.add_store("disk", str(folder / "disk"), "local")
    with pytest.MonkeyPatch.context() as patched, trace.recording(folder / "trace.ulm"):
        patched.setenv("SWATHE_DATABASE", database_in(folder))
        for main, words in (
            (astro3d, "astro3d --cells 16 --iterations 4 --every 2"),
            (volren, "volren astro3d vr_temp --pixels 32"),
        ):
            patched.setattr(sys, "argv", words.split())
            assert main() == 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(trace.VARIABLE, str(folder / "trace.ulm"))
        with served(folder) as running:
            yield running


@pytest.fixture(scope="module")
def software() -> Iterator[Browser]:
    with chromium(*SOFTWARE) as running:
        yield running


@pytest.fixture
def opened(software: Browser) -> Iterator[OpenPage]:
    with visiting(software) as opening:
        yield opening


def pixels(part: Locator) -> np.ndarray:
    with Image.open(io.BytesIO(part.screenshot())) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def shown(page: Page, iteration: int) -> Locator:
    """Return the view of a volume when it shows an iteration."""
    page.wait_for_selector(f'[data-volume][data-shown="{iteration}"]:not([aria-busy])')
    return page.locator("[data-volume]")


def check_no_overflow(page: Page) -> None:
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_a_volume_is_turned_and_coloured(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/runs/astro3d@1/view/temp?iteration=2", portal.url)
    view = shown(page, 2)
    looks = [pixels(view)]
    assert looks[0].std() > 5, "something is drawn"
    keep(page, "volume")

    def check_change(what: str) -> None:
        looks.append(pixels(view))
        assert np.abs(looks[-1] - looks[-2]).max() > 30, what

    view.focus()
    page.keyboard.press("ArrowRight")
    check_change("arrow key")
    page.keyboard.press("+")
    check_change("zoom")
    box = view.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y + 30, steps=2)
    page.mouse.up()
    check_change("drag")
    page.select_option("#colours", "grey")
    check_change("colours")
    page.fill("#low", "0.5")
    page.fill("#high", "900")
    check_change("range of values")
    assert page.locator("[data-high]").inner_text() == "900"
    view.focus()
    page.keyboard.press(".")
    shown(page, 4)
    assert "iteration=4" in page.url
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(200)
    check_change("dark")
    assert looks[-1][2, 2].max() < 60
    check_no_overflow(page)


def test_without_webgl_there_are_slices(portal: RunningPortal, software: Browser) -> None:
    context = software.new_context(viewport=PHONE)
    context.set_default_timeout(120_000)
    context.add_init_script(NO_WEBGL)
    page = context.new_page()
    page.goto(f"{portal.url}/runs/astro3d/view/vr_temp?colours=blue")
    page.wait_for_selector(".slices img")
    assert "no WebGL 2" in page.locator("[data-state]").inner_text()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.slices img')].every(i => i.complete)"
    )
    widths = page.evaluate("[...document.querySelectorAll('.slices img')].map(i => i.naturalWidth)")
    assert widths == [16, 16, 16]
    check_no_overflow(page)
    keep(page, "slices")
    context.close()


def test_an_error_of_an_iteration_is_told(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/runs/astro3d/view/temp?region=0:4,:,:", portal.url)
    shown(page, 4)
    page.route("**/temp/2/volume?*", lambda route: route.fulfill(body="x", content_type="x/y"))
    page.locator("#at").fill("1")
    page.wait_for_selector("[data-state].bad")
    assert "Iteration 2 cannot be shown" in page.locator("[data-state]").inner_text()
    page.unroute_all()


def test_pictures_are_played(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/runs/astro3d@1/view", portal.url)
    picture = page.locator("[data-player] img")

    def wait_for(number: int) -> None:
        page.wait_for_function(
            f"() => new URL(location).searchParams.get('picture') === '{number}'"
            f" && document.querySelector('[data-player] img').src.includes('/pictures/{number}?')"
        )

    page.keyboard.press("ArrowRight")
    wait_for(1)
    assert picture.evaluate("image => image.naturalWidth") == 32
    page.wait_for_function(
        "() => document.querySelector('[data-name]').textContent === '000002.png'"
    )
    page.keyboard.press("End")
    wait_for(2)
    page.select_option("#speed", "20")
    page.get_by_role("button", name="Play").click()
    wait_for(0)  # after the last comes the first
    page.get_by_role("button", name="Pause").click()
    page.locator("#at").fill("1")
    wait_for(1)
    check_no_overflow(page)
    keep(page, "pictures")


def test_a_run_has_its_lifelines(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/runs/astro3d@1", portal.url)
    page.locator("#viewer .legend", has_text="done: ").wait_for()
    assert page.locator("#kind").input_value() == "object"
    assert "WRITE_END" in page.locator("#viewer .side").inner_text()
    canvas = page.locator("#viewer canvas").first
    assert pixels(canvas).std() > 5, "something is drawn"
    keep(page, "run")

    # Wheel and keys move the page, and the lifelines once these are in use.
    canvas.hover()
    page.mouse.wheel(0, -2000)
    page.wait_for_function("() => scrollY === 0")
    before = pixels(canvas)
    canvas.click(position={"x": 400, "y": 200})
    page.keyboard.press("+")
    page.wait_for_timeout(200)
    assert np.abs(pixels(canvas) - before).max() > 30, "key"
    check_no_overflow(page)
    page.get_by_role("link", name="Pictures and volumes").click()
    page.get_by_role("link", name="astro3d@1", exact=True).click()
    page.locator("#viewer .legend").wait_for()


def test_all_is_there_without_scripts(portal: RunningPortal, opened: OpenPage) -> None:
    page = opened(f"{portal.url}/runs/astro3d/view", portal.url, java_script_enabled=False)
    page.get_by_role("link", name="Next").click()
    assert page.locator("[data-name]").inner_text() == "000002.png"
    page.get_by_role("link", name="temp", exact=True).first.click()
    assert page.locator(".slices img").count() == 3
    assert page.locator(".slices img").first.is_visible()
    page.fill("#cell-z", "3")
    page.get_by_role("button", name="Apply").click()
    assert "z = 3" in page.locator(".slices").inner_text()


def test_a_page_is_small_without_what_it_loads_on_demand(portal: RunningPortal) -> None:
    names = ("/runs/astro3d/view/temp", "/static/swathe.css", "/static/volume.js")
    with httpx.Client(base_url=portal.url) as client:
        assert sum(len(client.get(name).content) for name in names) < 200_000
        vtk = client.get("/static/vtk.js")
    assert len(vtk.content) < 1_500_000
    assert vtk.headers["content-encoding"] == "gzip"
