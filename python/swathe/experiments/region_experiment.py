"""Region experiment: rate, CPU time, and bytes moved against the minimum, by region size."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe import _swathe
from swathe.core.host import cores
from swathe.experiments.clients.frames_in_store import (
    FramesInStore,
    child,
    environment,
    frames_in_stores,
    warm_up_image,
)
from swathe.experiments.results.environment_record import circumstances
from swathe.experiments.results.result import Study
from swathe.experiments.settings import RegionSettings, plain
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from collections.abc import Callable

    from astropy.table import Table

MEGABIT = 125_000
MOST_COPIES, COPY_S = 8, 2.0
"""Most images copied, and seconds, to measure the rate of a single stream."""
PATIENCE_S = 300.0
TRIAL = 0.1
"""Fraction of the budget for measuring how long each list may be."""


class RegionCase(NamedTuple):
    """A case of the experiment."""

    store: str
    region: int
    way: str

    @property
    def name(self) -> str:
        """Name in one line."""
        return f"{self.store} {self.region}x{self.region} {self.way}"


def region(
    settings: RegionSettings,
    scratch: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Study:
    """Run the experiment.

    Args:
        settings: settings of the experiment.
        scratch: folder for temporary results.
        tell: called with the progress.

    Raises:
        SwatheError: If a store cannot be read.
    """
    say = tell or (lambda _text: None)
    results: dict[RegionCase, list[dict[str, Any]]] = defaultdict(list)
    copies: dict[str, float] = {}
    fitting: dict[RegionCase, int] = {}
    with (
        tempfile.TemporaryDirectory(prefix="swathe-region-", dir=scratch) as name,
        frames_in_stores(settings, Path(name)) as stores,
    ):
        conditions, folder = circumstances(settings.stores), Path(name)
        warm_up = warm_up_image(folder)
        for place in stores:
            copies[place.label] = copy_rate(place, settings.frames)
        cases = [
            (RegionCase(place.label, side, way), place)
            for place in stores
            for side in settings.sizes
            for way in settings.ways
        ]
        for turn in range(settings.repeats):
            say(f"round {turn + 1} of {settings.repeats}: {len(cases)} cases")
            first = turn * len(cases) // settings.repeats
            for case, place in cases[first:] + cases[:first]:
                order = _order(settings, case, place, turn, folder, warm_up)
                if case.way == "many":
                    if case not in fitting:
                        fitting[case] = fits(order, folder)
                    order["regions"] = order["regions"][: fitting[case]]
                shutil.rmtree(folder / "index", ignore_errors=True)
                limit = settings.budget_s + PATIENCE_S
                variables = environment(folder / "index")
                one = child("swathe.experiments.clients.region_client", order, variables, limit)
                if place.folder:
                    # Our own count covers servers only: 0 must not be shown here.
                    one["moved"] = one["read"] or one["moved"] or math.nan
                results[case].append({**one, "image_bytes": place.image_bytes,
                                    "pixel_bytes": place.pixel_bytes})  # fmt: skip
        images = {place.label: place for place in stores}
    results_by_case = {case: results[case] for case, _ in cases}
    return _study(settings, conditions, results_by_case, copies, images)


def _order(
    settings: RegionSettings,
    case: RegionCase,
    place: FramesInStore,
    turn: int,
    folder: Path,
    warm_up: str,
) -> dict[str, Any]:
    rng = np.random.default_rng([settings.seed, turn, case.region])
    # Every image once before any is repeated, if there are enough.
    rounds = -(-settings.regions // settings.frames)
    numbers = np.concatenate([rng.permutation(settings.frames) for _ in range(rounds)])
    boxes = place.boxes(settings.regions, case.region, rng)
    regions = [
        (place.frame(int(number) + 1), box)
        for number, box in zip(numbers[: settings.regions], boxes, strict=True)
    ]
    return {
        "way": case.way,
        "regions": regions,
        "budget_s": settings.budget_s,
        "scratch": str(folder / "scratch"),
        "warm_up": warm_up,
    }


def fits(order: dict[str, Any], folder: Path) -> int:
    """Return how many regions of a list fit the budget, by cutting some one at a time.

    A list cannot be stopped half way, and is rarely slower than its regions one by one.
    """
    budget_s = order["budget_s"]
    shutil.rmtree(folder / "index", ignore_errors=True)
    trial = {**order, "way": "one", "budget_s": budget_s * TRIAL}
    variables = environment(folder / "index")
    one = child("swathe.experiments.clients.region_client", trial, variables, budget_s + PATIENCE_S)
    if one["done"] == len(order["regions"]):
        return int(one["done"])
    return max(1, int(budget_s * one["done"] / one["wall_s"]))


def copy_rate(place: FramesInStore, frames: int) -> float:
    """Return the rate of copying whole images one by one, bytes per second: the upper limit."""
    stores = native_stores()
    start_s, total_bytes = time.perf_counter(), 0
    for number in range(min(frames, MOST_COPIES)):
        timings = _swathe.measure(
            place.frame(number + 1), [(0, place.image_bytes)], 1, stores=stores
        )
        total_bytes += sum(timing.bytes for timing in timings)
        if time.perf_counter() - start_s > COPY_S:
            break
    return total_bytes / (time.perf_counter() - start_s)


def _study(
    settings: RegionSettings,
    circumstances: dict[str, Any],
    results: dict[RegionCase, list[dict[str, Any]]],
    copies: dict[str, float],
    places: dict[str, FramesInStore],
) -> Study:
    from swathe.experiments.results import figures

    table = region_table(results, copies)
    return Study(
        "region",
        "Regions of several sizes, one client",
        plain(settings),
        circumstances,
        table,
        [
            (case.name, turn, one["done"] / one["wall_s"], "regions/s", "higher")
            for case, rounds in results.items()
            for turn, one in enumerate(rounds)
        ],
        {"regions": figures.region_bytes(table)},
        _sentences(table, places),
        ["seen: for servers the bytes requested; for local files the bytes read, if the kernel "
         "reports them.",
         "CPU: CPU seconds of the client, divided by elapsed seconds and cores; "
         "the servers' part is not included."],
    )  # fmt: skip


def region_table(
    results: dict[RegionCase, list[dict[str, Any]]], copies: dict[str, float]
) -> Table:
    """Return the columns of the tables of 2005: medians over the rounds."""
    from astropy.table import Table

    rows = []
    for case, rounds in results.items():

        def middle(of: Callable[[dict[str, Any]], float], rounds: Any = rounds) -> float:
            return float(np.median([of(one) for one in rounds]))

        rows.append(
            {
                **case._asdict(),
                "regions": middle(lambda one: one["done"] / one["wall_s"]),
                "cpu": middle(lambda one: 100 * one["cpu_s"] / one["wall_s"] / cores()),
                "least": middle(
                    lambda one: one["pixels"] * one["pixel_bytes"] / one["wall_s"] / MEGABIT
                ),
                "seen": middle(lambda one: one["moved"] / one["wall_s"] / MEGABIT),
                "whole_image": middle(
                    lambda one: one["done"] * one["image_bytes"] / one["wall_s"] / MEGABIT
                ),
                "copy": copies[case.store] / MEGABIT,
                "of_image": middle(
                    lambda one: 100 * one["moved"] / one["done"] / one["image_bytes"]
                ),
            }
        )
    units = dict.fromkeys(("least", "seen", "whole_image", "copy"), "Mbit/s")
    return Table(rows=rows, units={**units, "regions": "1/s", "cpu": "%", "of_image": "%"})


def _sentences(table: Table, places: dict[str, FramesInStore]) -> list[str]:
    texts = []
    for row in table:
        if row["region"] == 100:
            image_mb = places[str(row["store"])].image_bytes / 1e6
            amount = (
                f"{row['of_image']:.3g} %" if np.isfinite(row["of_image"]) else "an unknown part"
            )
            texts.append(
                f"{row['store']}, 100 x 100, {row['way']}: {row['regions']:.4g} regions/s; "
                f"{amount} of the image of {image_mb:.1f} MB was moved for each."
            )
    return texts
