"""How long a large trace takes to be seen, and whether it moves smoothly.

    python benches/lifelines.py [--smoke] [--events 1000000] [--seconds 5]

A job of many cuts is made up from a seed and written as ULM, the last of it while it is followed:
that gives what a look costs. Then each step from the file to the
first picture is timed: reading it, finding the lines, packing and writing the page, and what
Chromium takes to load and draw it; and the whole command. Frames are counted while the view is
panned and zoomed, as fast as the browser draws them (headless: without a graphics card).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness import machine, options
from swathe.trace import read
from swathe.trace.analysis.align_clocks import on_one_clock
from swathe.trace.viewer import live
from swathe.trace.viewer.encode import encode_view
from swathe.trace.viewer.lifelines import TracedEvents
from swathe.trace.viewer.live import LiveView
from swathe.trace.viewer.page import page
from tests.support import traces

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Result = TypeVar("Result")
TARGETS = 20
"""Of each object."""
PER_OBJECT = 208
"""Events of an object of so many targets, about."""
NEW = 2000
"""Events that come while the file is followed."""
FRAMES = """async seconds => {
    const viewer = document.getElementById('viewer');
    const canvas = viewer.querySelector('canvas');
    const box = canvas.getBoundingClientRect();
    const send = (type, more) => canvas.dispatchEvent(new %(event)s(type, {
        bubbles: true, cancelable: true, clientX: box.x + 600, clientY: box.y + 200, ...more }));
    const frames = () => Number(viewer.dataset.frames);
    const [first, began] = [frames(), performance.now()];
    let slowest = 0, before = began, step = 0;
    while (performance.now() - began < seconds * 1000) {
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        slowest = Math.max(slowest, now - before);
        before = now;
        step += 1;
        %(act)s
    }
    return [(frames() - first) / (performance.now() - began) * 1000, slowest];
}"""
PAN = FRAMES % {
    "event": "WheelEvent",
    "act": "send('wheel', { shiftKey: true, deltaY: step % 200 < 100 ? 12 : -12 });",
}
ZOOM = FRAMES % {
    "event": "WheelEvent",
    "act": "send('wheel', { deltaY: step % 120 < 60 ? -25 : 25 });",
}


def time_step(what: str, work: Callable[[], Result]) -> Result:
    """Do something and print what it took."""
    began = time.perf_counter()
    result = work()
    print(f"{what:44} {time.perf_counter() - began:8.3f} s", flush=True)
    return result


def open_page(browser: Browser, url: str) -> Page:
    """Open a page and wait for its first picture."""
    page_view = browser.new_page(viewport={"width": 1400, "height": 950})
    page_view.goto(url, wait_until="commit")
    page_view.wait_for_selector("#viewer[data-state=ready]", timeout=120_000)
    return page_view


def time_browser(browser: Browser, url: str, seconds: float) -> None:
    """Time the browser: to the first picture, and how often it draws."""
    page_view = time_step("Chromium: load, unpack, first picture", lambda: open_page(browser, url))
    first = float(page_view.locator("#viewer").get_attribute("data-first") or "nan")
    print(f"{'  by its own clock':44} {first / 1e3:8.3f} s")
    for what, script in (("panned, whole run", PAN), ("zoomed in and out", ZOOM)):
        rate, slowest = page_view.evaluate(script, seconds)
        print(f"{what:44} {rate:8.1f} frames/s, the slowest {slowest:.0f} ms")
    for _ in range(6):
        page_view.keyboard.press("+")
    page_view.wait_for_timeout(500)
    rate, slowest = page_view.evaluate(PAN, seconds)
    print(f"{'panned, a 64th of the run':44} {rate:8.1f} frames/s, the slowest {slowest:.0f} ms")
    page_view.close()


def time_following(run: Path, later: list[str]) -> None:
    """Time the looks of a page that follows a file to which these lines come."""
    live.REST = 0
    view = LiveView([run])
    state, _ = time_step("followed: the first look", lambda: view.data(""))
    for half in (later[: NEW // 2], later[NEW // 2 :]):
        with run.open("a") as file:
            file.write("\n".join(half) + "\n")
        state, _ = time_step(
            f"followed: a look at {len(half)} events more", partial(view.data, state)
        )


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    count, seconds = (10_000, 0.5) if arguments.smoke else (arguments.events, arguments.seconds)
    print(machine())
    chromium = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        run, html = Path(folder) / "run.ulm", Path(folder) / "run.html"
        text = traces.job(max(1, count // PER_OBJECT), TARGETS, hosts=2)
        later = text[-NEW:]
        run.write_text("\n".join(text[:-NEW]) + "\n")
        print(f"{len(text):,} events")
        del text
        time_following(run, later)
        print(f"{run.stat().st_size / 1e6:.0f} MB of ULM")
        events = time_step("read", lambda: read(run))
        traced = time_step("pairs and lanes", lambda: TracedEvents(on_one_clock(events)))
        lines = time_step("lifelines of targets", lambda: traced.lines("target"))
        print(f"{'':44} {len(lines):8,} lines through {len(lines.points):,} points")
        parts = time_step(
            "pack (with lifelines of all kinds)", lambda: encode_view(traced).content()
        )
        page_html = time_step("page", lambda: page("run.ulm", parts))
        print(f"{'':44} {len(page_html) / 1e6:8.1f} MB")
        command = [sys.executable, "-m", "swathe.cli", "trace", "view", str(run)]
        time_step(
            "the whole command, to the written page",
            lambda: subprocess.run(
                [*command, "--output", str(html)], check=True, stdout=subprocess.DEVNULL
            ),
        )
        if chromium is None:
            print("there is no chromium")
            return
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            time_browser(browser, html.as_uri(), seconds)
            began = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                assert process.stdout is not None
                url = process.stdout.readline().split(maxsplit=1)[1].strip()
                open_page(browser, url).close()
                elapsed_s = time.perf_counter() - began
                print(f"{'served: from the command to the picture':44} {elapsed_s:8.3f} s")
            finally:
                process.terminate()
                process.wait(timeout=20)
            browser.close()


if __name__ == "__main__":
    main()
