"""Algorithms in the catalogue of this machine, by the commands."""

from __future__ import annotations

import json
from pathlib import Path

import swathe
from tests.support.algorithms import LST
from tests.support.fits_frames import Runner


def test_an_algorithm_is_added_shown_and_removed(run: Runner, tmp_path: Path) -> None:
    source = tmp_path / "lst.py"
    source.write_text(LST)
    assert run("algorithm", "add", source).startswith("lst-quarter-degree@1.2: ")
    listed = json.loads(run("algorithm", "list", "--json"))["algorithms"]
    assert [(each["name"], each["owner"]) for each in listed] == [
        ("lst-quarter-degree", "operator")
    ]
    assert "lst-quarter-degree@1.2" in run("algorithm", "list")
    assert "application/netcdf" in run("algorithm", "show", "lst-quarter-degree@1.2")
    version = swathe.algorithms.show("lst-quarter-degree")
    assert (version.source.decode(), version.definition.version) == (LST, "1.2")
    run("algorithm", "remove", "lst-quarter-degree")
    assert swathe.algorithms.list() == []
    run("algorithm", "show", "lst-quarter-degree", code=2)
