"""The time of the confined process of a library, measured on this host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swathe.costs.library_costs import KEY, LibraryCosts
from swathe.costs.probing import probe_library
from swathe.costs.probing.probe_library import measure_library


def test_start_and_call_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="h5py is the library that is started")
    measured = measure_library(tmp_path)
    costs = LibraryCosts.of(json.dumps({"formats": {KEY: measured}}))
    assert costs.start_s == measured["start_s"] > 0
    assert costs.call_s == measured["call_s"] > 0
    assert costs.byte_s == LibraryCosts().byte_s
    assert costs.seconds(1e6, 2) > costs.seconds(1e6, 0) > costs.seconds(0, 0)


def test_without_h5py_the_usual_times_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_library, "find_spec", lambda _: None)
    assert measure_library(tmp_path) == {}
    assert LibraryCosts.of(json.dumps({"formats": {}})) == LibraryCosts.of(None) == LibraryCosts()
