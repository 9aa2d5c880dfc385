"""Predictions of lists of each format, beside what the calls came to.

    pytest -m more -s tests/costs/test_predict_formats.py

prints the table of docs/benchmarks/formats.md.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.costs.probing.host import measure_host
from tests.support.array_lists import write_cases

COUNTS = (20, 60)
"""Targets of the lists of each file, in turn."""


@pytest.mark.more
@pytest.mark.parametrize("is_measured", [False, True])
def test_most_calls_end_within_their_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_measured: bool
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    if is_measured:
        with Catalog.open() as catalog:
            catalog.put_compute(this_host(), measure_host(quick=True), datetime.now(UTC))
    lines = [f"load {os.getloadavg()[0]:.1f}, measured: {is_measured}"]
    held = count = 0
    for at, case in enumerate(write_cases(tmp_path)):
        targets = case.targets(COUNTS[at % len(COUNTS)], at)
        predicted = swathe.predict(targets)
        assert predicted.faults == [], case.name
        manifest = swathe.cut_many(targets, tmp_path / f"o{at}", progress=False)
        assert manifest.meta["ok"] == len(targets["file"]), case.name
        took_s = manifest.meta["actual_s"]
        low_s, high_s = predicted.interval_s
        is_held = low_s <= took_s <= high_s
        held, count = held + is_held, count + 1
        lines.append(
            f"| {case.name} | {len(targets['file'])} | {predicted.median_s:.2f} | "
            f"{low_s:.2f} to {high_s:.2f} | {took_s:.2f}{'' if is_held else ' (outside)'} |"
        )
    sys.stdout.write("\n".join(["", *lines, ""]))
    if not count:
        pytest.skip("no library of a format is installed")
    assert held > count / 2
