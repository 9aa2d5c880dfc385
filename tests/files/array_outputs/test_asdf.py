"""Files of cuts in ASDF: what comes of the tree of their source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import ChangedError

asdf = pytest.importorskip("asdf")
time = pytest.importorskip("astropy.time")
META: dict[str, Any] = {
    "instrument": {"name": "WFI", "optical_element": "F158", "detectors": ["WFI01", "WFI02"]},
    "exposure": {"ma_table_number": 3, "level0_compressed": True, "times": [0.5, 1.5]},
    "cal_logs": [{"step": "flat", "ok": True}, {"step": "dark", "ok": False}],
    "a/b~c": {"1": "one"},
    "empty": None,
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a file as Roman has them: arrays beside metadata."""
    path = tmp_path / "image.asdf"
    values = np.arange(600, dtype="f4").reshape(20, 30)
    start = {"start": time.Time("2027-01-02T03:04:05", format="isot")}
    roman = {"meta": META | start, "data": values, "err": values / 10}
    asdf.AsdfFile({"roman": roman, "dims": "of the source"}).write_to(path)
    return path


def written(source: Path, path: Path) -> dict[str, Any]:
    """Return the tree of a cut that was written."""
    cut: Any = swathe.cut(source, array="/roman/data", box=(3, 4, 6, 5))
    cut.write(path, overwrite=True)
    with asdf.open(path, memmap=False, lazy_load=False) as file:
        return dict(file.tree)


def test_metadata_come_and_other_arrays_do_not(image: Path, tmp_path: Path) -> None:
    tree = written(image, tmp_path / "cut.asdf")
    values = np.arange(600, dtype="f4").reshape(20, 30)
    assert np.array_equal(tree["roman"]["data"], values[4:9, 3:9])
    assert set(tree["roman"]) == {"data", "meta"}
    meta = dict(tree["roman"]["meta"])
    assert str(meta.pop("start")).startswith("2027-01-02T03:04:05")
    assert meta == {key: value for key, value in META.items() if key != "empty"}
    assert tree["dims"] == {"data": ["axis_0", "axis_1"]}


def test_cut_of_a_cut_keeps_metadata(image: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "cut.asdf", tmp_path / "again.asdf"
    tree = written(image, first)
    cut: Any = swathe.cut(first, array="/roman/data", box=(1, 1, 2, 2))
    cut.write(second)
    with asdf.open(second, memmap=False, lazy_load=False) as file:
        assert file.tree["roman"]["meta"] == tree["roman"]["meta"]
        assert list(file.tree["roman"]["data"][0]) == [154.0, 155.0]


def test_source_that_changed_is_refused(image: Path, tmp_path: Path) -> None:
    cut: Any = swathe.cut(image, array="/roman/data", box=(3, 4, 6, 5))
    asdf.AsdfFile({"roman": {"data": np.zeros((20, 30), "f8")}}).write_to(image)
    with pytest.raises(ChangedError, match="rest of its tree cannot be written"):
        cut.write(tmp_path / "cut.asdf")
