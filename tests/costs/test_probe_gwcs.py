"""The costs of GWCS, measured on this host."""

from __future__ import annotations

import json
from contextlib import closing
from io import BytesIO

import numpy as np
import pytest

from swathe.arrays.indexing import new_process
from swathe.core.confined import ProcessLimits
from swathe.core.served_file import FileReads
from swathe.costs.library_costs import KEY, LibraryCosts
from swathe.costs.probing import probe_gwcs
from swathe.costs.probing.probe_gwcs import measure_gwcs


def test_each_cost_of_gwcs_is_measured() -> None:
    pytest.importorskip("gwcs", reason="gwcs is the library that is started")
    measured = measure_gwcs()
    costs = LibraryCosts.of(json.dumps({"formats": {KEY: measured}}))
    assert {name: getattr(costs, name) for name in measured} == measured
    assert measured.keys() == {"gwcs_start_s", "gwcs_s", "gwcs_result_s", "position_s"}
    assert min(measured.values()) > 0


def test_a_call_opens_none_of_the_files_of_asdf() -> None:
    pytest.importorskip("gwcs", reason="gwcs is the library that is started")
    reader, no_files = "swathe.arrays.readers.gwcs", ProcessLimits(files=0)
    with closing(new_process("gwcs")) as process:
        content = process.run("the sample", f"{reader}:sample", {}, no_files)
        file = FileReads(lambda at, size: content[at : at + size], len(content))
        place = {"path": "/wcs", "longitudes": [30.0], "latitudes": [10.0]}
        pixels = process.run("the file", f"{reader}:locate", place, no_files, file)
        part = {"path": "/wcs", "start": [3, 4]}
        assert process.run("the file", f"{reader}:shift", part, no_files, file)
    assert json.loads(pixels)[0]["x"] == pytest.approx(200)


def test_sample_is_a_system_of_the_sky() -> None:
    gwcs = pytest.importorskip("swathe.arrays.readers.gwcs", reason="asdf or gwcs is missing")
    places = gwcs.locate(BytesIO(gwcs.sample()), "/wcs", [30.0, 30.001], [10.0, 10.0])
    here, east = json.loads(places)
    assert np.allclose([here["x"], here["y"]], [200, 150], atol=1e-6)
    assert np.allclose(here["scales"], 3e-5, rtol=1e-6)
    assert east["x"] != here["x"]


def test_without_gwcs_the_usual_times_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_gwcs, "find_spec", lambda _: None)
    assert measure_gwcs() == {}
