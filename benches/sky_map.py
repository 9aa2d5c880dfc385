"""How many frames a second the map of the sky draws while it is moved, in headless Chromium.

    python benches/sky_map.py [--smoke] [--images 1000000]

The catalogue has the images of `find.py`: squares of 0.25 degree, 15 of each place. The map is
moved for four seconds in views of the whole sky, of cells, and of as many outlines as are drawn at
most. The first and the repeated answers of the server are timed, too.
"""

from __future__ import annotations

import shutil
import statistics
import time
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from find import fill
from harness import options, running, save, work_folder
from swathe.catalog import Catalog

PORTAL = ("-m", "swathe.cli", "portal", "serve", "--port", "0", "--json", "--config")
VIEWS = {
    "whole sky": "",
    "cells of 0.9 degrees": "#330,5,8",
    "outlines of 3 degrees": "#330,2,140",
}
MOVE = """
async (seconds) => {
  const canvas = document.querySelector("[data-sky] canvas");
  canvas.setPointerCapture = () => {};
  const { left, top } = canvas.getBoundingClientRect();
  const fire = (kind, x, y) => canvas.dispatchEvent(
    new PointerEvent(kind, { pointerId: 1, clientX: left + x, clientY: top + y, bubbles: true }),
  );
  const frames = [];
  fire("pointerdown", 400, 200);
  let last = performance.now();
  const begin = last;
  while (last - begin < seconds * 1000) {
    const turn = (last - begin) / 700;
    fire("pointermove", 400 + 200 * Math.sin(turn), 200 + 50 * Math.cos(turn));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  fire("pointercancel", 400, 200);
  return frames;
}
"""


def measure(page: Page, address: str, seconds: float) -> dict[str, Any]:
    """Open a view, move it, and return how it went."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("[data-sky][data-ready]", timeout=300_000)
    frames: list[float] = page.evaluate(MOVE, seconds)
    return {
        "frames_per_s": len(frames) / (sum(frames) / 1000),
        "slowest_ms": max(frames),
        "p95_ms": statistics.quantiles(frames, n=20)[-1] if len(frames) > 1 else frames[0],
        "outlines": page.locator("[data-count]").inner_text(),
    }


def answers(url: str) -> dict[str, list[float]]:
    """Return the seconds of a first answer of the server, and of three more."""
    paths = {
        "page": "/sky",
        "cells": "/sky/cells.json?order=6",
        "outlines": "/sky/outlines.json?ra=330&dec=2&radius=1.5",
        "more than 5,000": "/sky/outlines.json?ra=330&dec=5&radius=12",
    }
    results: dict[str, list[float]] = {}
    with httpx.Client(base_url=url, timeout=600) as client:
        for name, path in paths.items():
            results[name] = []
            for _ in range(4):
                begin = time.perf_counter()
                client.get(path).raise_for_status()
                results[name].append(time.perf_counter() - begin)
    return results


def main() -> None:
    """Fill a catalogue, measure, print and save."""
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=1_000_000)
    arguments = parser.parse_args()
    images = 1000 if arguments.smoke else arguments.images
    with work_folder(2000 * images) as folder:
        database = f"sqlite:///{folder}/catalog.sqlite"
        begin = time.perf_counter()
        with Catalog.open(database) as catalog:
            fill(catalog, images)
        fill_s = time.perf_counter() - begin
        settings = folder / "swathe.toml"
        settings.write_text(
            f'[catalog]\ndatabase = "{database}"\n[results]\nfolder = "{folder}/results"\n'
        )
        with running(*PORTAL, str(settings)) as (url, _):
            server = answers(url)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                seconds = 0.5 if arguments.smoke else 4.0
                views = {
                    name: measure(page, f"{url}/sky{place}", seconds)
                    for name, place in VIEWS.items()
                }
                browser.close()
    print(f"{images:,} images, catalogued in {fill_s:.0f} s")
    for name, times in server.items():
        print(f"{name}: first {times[0] * 1e3:.0f} ms, then {min(times[1:]) * 1e3:.0f} ms")
    for name, view in views.items():
        print(
            f"{name}: {view['frames_per_s']:.0f} frames/s, 95 % within {view['p95_ms']:.0f} ms, "
            f"slowest {view['slowest_ms']:.0f} ms; {view['outlines']}"
        )
    save("sky-map", {"images": images, "fill_s": fill_s, "server": server, "views": views})


if __name__ == "__main__":
    main()
