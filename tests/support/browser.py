"""Pages looked at in Chromium. Screenshots are kept in build/screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}

OpenPage = Callable[..., "Page"]


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """Run the browser; without one the test is skipped."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        words = ["--no-sandbox", *options]
        running = playwright.chromium.launch(executable_path=program, args=words)
        yield running
        running.close()


@contextmanager
def visiting(browser: Browser) -> Iterator[OpenPage]:
    """Open pages by `opened(address, home)`.

    At the end nothing may have been complained of by the browser, nor fetched from elsewhere than
    the home of its page, which is the address itself if it is not given.
    """
    faults: list[str] = []
    contexts = []

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            faults.append(message.text)

    def opened(address: str, home: str = "", **settings: Any) -> Page:
        within = (home or address, "data:", "blob:")

        def note_request(url: str) -> None:
            if not url.startswith(within):
                faults.append(f"asked for {url}")

        context = browser.new_context(**{"viewport": WIDE, **settings})
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: note_request(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", note_message)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == [], faults


def keep(page: Page, name: str) -> None:
    """Keep a picture of a page."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
