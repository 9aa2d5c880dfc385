"""Costs that another version of Swathe stored: more fields are ignored, fewer are an error."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.core.errors import CatalogError
from swathe.core.sample_survey import make_sample
from swathe.core.stored_record import stored_record
from swathe.costs.call_costs import CallCosts
from swathe.costs.cost_model import Costs, MultiRange
from swathe.costs.format_costs import FormatCosts
from swathe.costs.library_costs import LibraryCosts
from swathe.costs.probing.save import keep_host
from swathe.costs.write_costs import WriteCosts
from tests.support.catalogs import new_catalog

NEW = {"newer_s": 3.0}
STORE = {
    **{"connect_s": 0.1, "open_s": 0.0, "request": [[1, 0.1], [100, 0.2]]},
    **{"total_bytes_per_s": 1e6, "requests_per_s": 100.0, "streams": 8},
}


def test_fields_of_a_newer_version_are_ignored() -> None:
    compute = json.dumps(
        {
            "formats": {
                "library": {"start_s": 0.5, **NEW},
                "png": {"row_s": 1.0, "pixel_s": 2.0, **NEW},
            },
            "write": {"result_s": 0.25, **NEW},
            "call": {"after_s": 2.0, **NEW},
        }
    )
    assert LibraryCosts.of(compute) == LibraryCosts(start_s=0.5)
    assert FormatCosts.of(compute, "png") == FormatCosts(1.0, 2.0)
    assert WriteCosts.of(compute) == WriteCosts(result_s=0.25)
    assert CallCosts.of(compute) == CallCosts(after_s=2.0)
    ranges = {"ranges": 9, "header_bytes": 800, "range_s": 0.1, "part_bytes": 90}
    costs = Costs.from_dict({**STORE, **NEW, "multi_range": {**ranges, **NEW}})
    assert costs.multi_range == MultiRange(9, 800, 0.1, 90)
    assert costs.streams == 8
    assert "newer_s" not in costs.as_dict()


def test_a_quick_probe_keeps_what_only_a_full_one_measures(tmp_path: Path) -> None:
    full: dict[str, Any] = {"cut_s": 1e-4, "tile_byte_s": {"RICE_1": 1e-9, "zstd": 2e-9}}
    full["formats"] = {"png": {"row_s": 1.0}, "library": {"call_s": 0.1, "gwcs_s": 0.06}}
    quick: dict[str, Any] = {"cut_s": 2e-4, "tile_byte_s": {"RICE_1": 3e-9}}
    quick["formats"] = {"library": {"call_s": 0.2}}
    with Catalog.open(new_catalog(tmp_path / "catalog.sqlite")) as catalog:
        keep_host(catalog, full)
        costs = keep_host(catalog, quick)
        assert costs == catalog.compute(this_host())
    assert costs["formats"] == {
        "png": {"row_s": 1.0},
        "library": {"call_s": 0.2, "gwcs_s": 0.06},
    }
    assert costs["cut_s"] == 2e-4
    assert costs["tile_byte_s"] == {"RICE_1": 3e-9, "zstd": 2e-9}


def test_a_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(CatalogError, match="expected row_s, found 'pixel_s'; another version"):
        FormatCosts.of(json.dumps({"formats": {"png": {"pixel_s": 1.0}}}), "png")
    with pytest.raises(CatalogError, match="costs of a store: expected request, found"):
        Costs.from_dict({name: STORE[name] for name in STORE if name != "request"})
    with pytest.raises(CatalogError, match=r"an outcome: expected values by name, found \[1\]"):
        stored_record(MultiRange, [1], "an outcome")


def test_a_list_is_cut_on_a_host_that_a_newer_version_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    formats = {"library": NEW, "npy": {"row_s": 1e-3, "pixel_s": 1e-9, **NEW}}
    with Catalog.open() as catalog:
        catalog.put_compute(this_host(), {"formats": formats, "call": NEW}, datetime.now(UTC))
    targets = make_sample(tmp_path / "survey", 1, 1, 3)
    manifest = swathe.cut_many(targets, tmp_path / "out", format="npy", progress=False)
    assert manifest.meta["ok"] == 3
