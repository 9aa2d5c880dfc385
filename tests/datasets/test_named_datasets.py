"""`swathe.datasets` and `swathe.mirror`: what the shell can do, Python can."""

from __future__ import annotations

from pathlib import Path

import pytest

import swathe
from swathe.core.errors import DatasetError, NoSuchDatasetError
from swathe.core.sample_survey import sample
from tests.support.fits_frames import Runner

FRAME = "frame-000001.fit"


@pytest.fixture
def frames(run: Runner, survey: Path) -> swathe.datasets.ScanReport:
    """The plain frame of the sample, catalogued."""
    swathe.stores.add("survey", str(survey))
    return swathe.datasets.add("frames", "survey:", pattern="*.fit", progress=False)


def test_a_dataset_is_added_found_synced_and_removed(frames: swathe.datasets.ScanReport) -> None:
    assert (frames.listed, frames.images, frames.faults) == (1, 1, [])
    assert swathe.find(dataset="frames")["file"].tolist() == [f"survey:{FRAME}"]
    assert [each.name for each in swathe.datasets.list()] == ["frames"]
    again = swathe.datasets.sync("frames", calib_level=3)
    assert (again.read, again.unchanged) == (0, 1)
    shown = swathe.datasets.show("frames")
    assert shown.dataset.calib_level == 3
    assert (shown.dataset.states, shown.faults) == ({"survey": {"ok": 1}}, [])
    swathe.datasets.remove("frames")
    assert swathe.datasets.list() == []
    with pytest.raises(NoSuchDatasetError, match="frames"):
        swathe.datasets.sync("frames")


@pytest.mark.more
def test_nothing_is_left_of_a_dataset_that_cannot_be_listed(run: Runner, tmp_path: Path) -> None:
    swathe.stores.add("gone", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError):
        swathe.datasets.add("frames", "gone:")
    assert swathe.datasets.list() == []
    with pytest.raises(DatasetError, match="STORE:PREFIX"):
        swathe.datasets.add("frames", "gone")


def test_a_dataset_is_mirrored(frames: swathe.datasets.ScanReport, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    swathe.stores.add("copies", str(tmp_path / "copies"))
    plan = swathe.datasets.plan_mirror("frames", "copies:old")
    assert plan.copies == [(FRAME, f"old/{FRAME}")]
    assert not list((tmp_path / "copies").iterdir())
    report = swathe.mirror("frames", "copies:old", progress=False)
    assert (report.copied, report.bytes, report.faults) == (1, plan.bytes, [])
    assert (report.store, report.prefix) == ("copies", "old")
    assert (tmp_path / "copies" / "old" / FRAME).stat().st_size == plan.bytes
    assert swathe.datasets.mirror is swathe.mirror


def test_the_sample_is_the_one_of_the_shell(survey: Path, tmp_path: Path) -> None:
    assert swathe.sample is sample
    assert swathe.sample(survey, frames=1, targets=100) == survey / "targets.csv"
    (tmp_path / "file").write_text("")
    with pytest.raises(swathe.errors.OutputError, match="file"):
        swathe.sample(tmp_path / "file", frames=1, targets=1)
