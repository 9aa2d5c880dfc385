"""The time to make results of other formats, and its place in predictions."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.cli import app
from swathe.core.errors import OptionError
from swathe.core.sample_survey import make_sample
from swathe.costs.format_costs import USUAL_COSTS, FormatCosts
from swathe.costs.prediction import Prediction, of_results

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
SLOW = {"png": asdict(FormatCosts(0.5, 1e-3))}


def prediction(seconds: float) -> Prediction:
    return Prediction(seconds, (seconds / 2, 2 * seconds), 0, 0, {})


def test_a_host_that_was_measured_has_its_own_costs() -> None:
    assert FormatCosts.of(None, "png") == USUAL_COSTS["png"]
    assert FormatCosts.of(json.dumps({"cut_s": 1e-4}), "png") == USUAL_COSTS["png"]
    own = FormatCosts.of(json.dumps({"formats": SLOW}), "png")
    assert own.seconds(10, 2000) == pytest.approx(7)


@pytest.mark.parametrize("name", ["fits", "jpeg", "", 7, ["png"]])
def test_other_formats_are_refused(name: object) -> None:
    with pytest.raises(OptionError, match="format: expected one of fits, npy, png, nc, h5"):
        FormatCosts.of(None, name)  # type: ignore[arg-type]


def test_results_like_their_source_are_as_netcdf() -> None:
    own = json.dumps({"formats": {"nc": asdict(FormatCosts(0.25, 0.0))}})
    assert FormatCosts.of(own, "source", FormatCosts(1.0, 0.0)) == FormatCosts(0.25, 0.0)
    assert FormatCosts.of(None, "source") == USUAL_COSTS["nc"]


def test_an_operation_says_what_hosts_do_not_measure() -> None:
    declared = FormatCosts(2e-3, 0.0, 0.03)
    assert FormatCosts.of(json.dumps({"formats": SLOW}), "npz", declared) == declared
    assert FormatCosts.of(None, "png", declared) == USUAL_COSTS["png"]
    assert FormatCosts.of(json.dumps({"formats": SLOW}), "png", declared) == FormatCosts(0.5, 1e-3)


@pytest.mark.parametrize("results", [1, 2, 1000])
@pytest.mark.parametrize("making_s", [0.0, 0.1, 1.0, 50.0])
def test_making_goes_beside_cutting_but_for_one_result(results: int, making_s: float) -> None:
    both = of_results(prediction(2.0), results, making_s)
    assert max(2.0, making_s) <= both.median_s <= 2.0 + making_s
    assert (results == 1) <= (both.median_s == 2.0 + making_s)
    assert both.interval_s[0] < both.median_s < both.interval_s[1]
    assert both.compute_s == making_s


def test_no_results_take_no_time() -> None:
    assert of_results(prediction(2.0), 0, 0.1) == prediction(2.0)


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five targets, on a host that takes half a second for a picture."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/catalog.sqlite")
    with Catalog.open() as catalog:
        catalog.put_compute(this_host(), {"formats": SLOW}, NOON)
    return make_sample(tmp_path / "survey", 1, 1, 5)


def test_the_time_of_pictures_is_predicted(targets: Path) -> None:
    fits, npy, png = (swathe.predict(targets, format=name) for name in (None, "npy", "png"))
    assert swathe.predict(targets, format="fits").median_s == pytest.approx(fits.median_s, rel=0.5)
    assert fits.median_s < npy.median_s < 1 < 2.5 < png.median_s
    assert png.compute_s > 2.5
    with pytest.raises(OptionError, match="found 'rgb'"):
        swathe.predict(targets, format="rgb")


def test_the_command_has_it(
    targets: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["swathe", "predict", "--targets", str(targets), "--format", "png", "--json"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="0"):
        app.main()
    assert json.loads(capsys.readouterr().out)["median_s"] > 2.5


@pytest.mark.parametrize(("name", "least_s"), [("npy", 0.0), ("png", 2.5)])
def test_the_manifest_has_the_predicted_time_of_conversions(
    targets: Path, tmp_path: Path, name: str, least_s: float
) -> None:
    manifest = swathe.cut_many(targets, tmp_path / "out", format=name, progress=False)
    assert manifest.meta["ok"] == 5
    assert least_s < manifest.meta["predicted_s"]


def test_the_time_of_a_stack_is_predicted(targets: Path, tmp_path: Path) -> None:
    frame = next((tmp_path / "survey").glob("*.fit"))
    header = swathe.open(str(frame)).image().header
    rows = {"file": [str(frame)], "ra": [header["CRVAL1"]], "dec": [header["CRVAL2"]]}
    manifest = swathe.cut_many(
        rows, tmp_path / "out", operation="stack", size="20arcsec", progress=False
    )
    assert manifest.meta["predicted_s"] > 0.13
