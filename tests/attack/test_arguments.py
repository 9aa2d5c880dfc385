"""Wrong arguments end as errors that say what was expected, never as internal errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import SwatheError

Door = tuple[Any, dict[str, Any]]
WRONG: dict[str, Any] = {
    "nan": math.nan,
    "infinite": math.inf,
    "negative": -1,
    "large": 1e300,
    "huge": 10**30,
    "none": None,
    "empty list": [],
    "empty text": "",
    "nul": "a\0b",
    "surrogate": "a\ud800",
    "bytes": b"x",
    "array": np.zeros(3),
    "scalar": np.float32(1.5),
    "mapping": {1: 2},
    "mixed list": ["a", 1],
    "list of large": [10**30] * 4,
    "object": object(),
}


@pytest.fixture
def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Door]:
    """The public functions, with valid arguments."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/catalog.sqlite")
    image = tmp_path / "survey" / "a.fits"
    image.parent.mkdir()
    fits.PrimaryHDU(np.arange(400, dtype=np.int16).reshape(20, 20)).writeto(image)
    with Catalog.open() as catalog:
        catalog.add_store("survey", str(image.parent))
        catalog.add_store("copies", str(tmp_path / "copies"))
        catalog.add_dataset("sky", "survey", "", None)
    rows = {"file": [str(image)], "x0": [1], "y0": [1], "width": [3], "height": [3]}
    at = {"name": "sky", "place": "copies"}
    return {
        "cut": (swathe.cut, {"path": image, "box": (1, 1, 3, 3)}),
        "cut_many": (
            swathe.cut_many,
            {"targets": rows, "output": tmp_path / "o", "progress": False, "overwrite": True},
        ),
        "predict": (swathe.predict, {"targets": rows}),
        "probe": (swathe.probe, {"store": "survey", "quick": True, "max_time_s": 0.1}),
        "probe_buffer": (
            swathe.probe_buffer,
            {"store": "survey", "repeats": 1, "max_time_s": 0.1},
        ),
        "mirror": (swathe.mirror, {**at, "progress": False}),
        "plan_mirror": (swathe.datasets.plan_mirror, at),
        "add": (swathe.datasets.add, {"name": "new", "place": "survey:", "progress": False}),
        "sync": (swathe.datasets.sync, {"name": "sky", "progress": False}),
        "show": (swathe.datasets.show, {}),
        "remove": (swathe.datasets.remove, {}),
        "add_store": (swathe.stores.add, {"name": "new", "url": str(tmp_path)}),
        "show_store": (swathe.stores.show, {}),
        "remove_store": (swathe.stores.remove, {}),
        "find": (swathe.find, {}),
        "connect": (swathe.connect, {"url": "http://"}),
        "sample": (swathe.sample, {"folder": tmp_path / "s", "frames": 0, "progress": False}),
    }


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    ("door", "names"),
    [
        ("cut", "path box center shape hdu mode fill planes"),
        ("cut_many", "targets bands threads frame planes operation format mode size fill stores"),
        ("predict", "targets machines threads frame planes mode stores"),
        ("probe", "store objects max_time_s max_bytes seed"),
        ("probe_buffer", "store object repeats max_time_s max_bytes seed"),
        ("mirror", "name place threads"),
        ("plan_mirror", "name place threads"),
        ("add", "name place threads pattern calib_level"),
        ("sync", "name threads"),
        ("show", "name"),
        ("remove", "name"),
        ("add_store", "name url tier options"),
        ("show_store", "name"),
        ("remove_store", "name"),
        ("find", "sky radius_deg radius frame dataset band time limit"),
        ("connect", "url token"),
        ("sample", "seed targets"),
    ],
)
@pytest.mark.filterwarnings("ignore::astropy.utils.exceptions.AstropyWarning")
def test_wrong_arguments_are_errors_of_the_user(
    door: str, names: str, wrong: str, doors: dict[str, Door]
) -> None:
    function, arguments = doors[door]
    for name in names.split():
        try:
            function(**{**arguments, name: WRONG[wrong]})
        except (SwatheError, TypeError, ValueError) as error:
            assert str(error), name
            assert type(error) is not SwatheError, f"{name}: an internal error: {error}"
            assert "truth value" not in str(error), name


@pytest.mark.parametrize(
    ("door", "name", "value", "message"),
    [
        ("cut_many", "threads", -1, "threads: expected 1 to 1,024, found -1"),
        ("cut_many", "threads", 2.5, "threads: expected a whole number, found 2.5"),
        ("cut_many", "threads", True, "threads: expected a whole number, found true"),
        ("cut_many", "bands", [1, 2, 3], "bands: expected a text, found 1"),
        ("cut_many", "frame", 3, "frame: expected one of icrs, fk5"),
        ("cut_many", "planes", 10**30, "planes: expected 0 <= first < last <= "),
        ("cut_many", "operation", np.zeros(3), "operation: expected a name, found array"),
        ("cut_many", "format", 7, "format: expected a name, found 7"),
        ("probe", "max_time_s", "long", "max_time_s: expected a number, found 'long'"),
        ("probe_buffer", "object", 5, "object: expected a text, found 5"),
        ("probe_buffer", "repeats", 0, "repeats: expected 1 to 10,000, found 0"),
        ("probe_buffer", "max_time_s", math.nan, "max_time_s: expected a finite number above 0"),
        ("probe_buffer", "max_bytes", "x", "max_bytes: expected a whole number, found 'x'"),
        ("probe_buffer", "seed", -1, "seed: expected 0 to "),
    ],
)
def test_wrong_arguments_are_named(
    door: str, name: str, value: Any, message: str, doors: dict[str, Door]
) -> None:
    function, arguments = doors[door]
    with pytest.raises((SwatheError, TypeError, ValueError)) as caught:
        function(**{**arguments, name: value})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "words",
    [
        "simulate --workers 1 --frames 1 --cache-gb 1e300",
        f"simulate --workers 1 --frames 1 --cache-gb {10**30}",
        f"cut --targets t.csv -o o --threads {10**30}",
        f"sample s --frames {10**30}",
        f"sample s --targets {10**30}",
        f"buffer f.fits --repeats {10**30}",
    ],
)
def test_numbers_beyond_all_sense_are_refused_in_the_shell(words: str) -> None:
    ran = CliRunner().invoke(app, words.split())
    assert ran.exit_code == 2, ran.output
    assert "is not in the range" in ran.output or "at most" in ran.output, ran.output


@pytest.mark.parametrize("fill", [10**400, "x", b"1", "1", 1j, [1]])
def test_a_fill_that_is_no_number_is_told_atk(tmp_path: Path, fill: Any) -> None:
    image = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((9, 9))).writeto(image)
    with pytest.raises(TypeError, match="fill: expected a number, found"):
        swathe.cut(image, box=(-1, -1, 5, 5), mode="partial", fill=fill)
    target = {"file": [str(image)], "x": [0], "y": [0], "height": [5], "width": [5]}
    with pytest.raises(TypeError, match="fill: expected a number, found"):
        swathe.cut_many(target, tmp_path / "o", mode="partial", fill=fill, progress=False)


@pytest.mark.parametrize("kind", [complex, np.complex64])
def test_a_complex_number_is_no_place_atk(tmp_path: Path, kind: Any) -> None:
    image = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((9, 9))).writeto(image)
    target = {"file": [str(image)], "y": [4], "height": [3], "width": [3]}
    cut = swathe.cut_many(target | {"x": np.array([4 + 3j], kind)}, tmp_path / "o", progress=False)
    assert cut["status"][0] == "error"
    assert cut["reason"][0].startswith("x must be a number, not '(4+3j)'")
