"""Steps of a result of several images, as `cut_many` and workers take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.core.errors import RegionError
from swathe.core.row_record import RowRecord, RowStatus
from swathe.core.row_table import RowTable
from swathe.operations.combination import align_cutout, without_images
from swathe.operations.grid import Grid
from tests.support.fits_frames import contents, noise, sky_header

PLACE = (10.0, -1.0)


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    frame, path = tmp_path / "a.fits", tmp_path / "cut.fits"
    frame.write_bytes(contents(noise(1), "fit", sky_header()))
    swathe.cut(str(frame), sky=PLACE, size="0.01deg").write(path)
    return path


def test_a_cutout_becomes_pixels_on_the_grid(cut: Path, tmp_path: Path) -> None:
    grid = Grid.around(*PLACE, size_deg=0.005, scale_deg=1e-4)
    assert align_cutout(cut, grid, PLACE, tmp_path / "a.npy") == ("ok", "")
    pixels = np.load(tmp_path / "a.npy")
    assert pixels.shape == (grid.side, grid.side)
    assert np.isfinite(pixels).all()
    assert not cut.exists()


def test_what_cannot_be_aligned_says_why(cut: Path, tmp_path: Path) -> None:
    content, path = cut.read_bytes(), tmp_path / "a.npy"
    grid = Grid.around(*PLACE, size_deg=0.005, scale_deg=1e-4)

    def refuse(pixels: int) -> None:
        raise RegionError(f"{pixels} are too many")

    assert align_cutout(cut, grid, (30.0, 1.0), path)[0] == "no-overlap"
    assert not cut.exists()
    cut.write_bytes(content)
    reason = f"{grid.side**2} are too many"
    assert align_cutout(cut, grid, PLACE, path, refuse) == ("error", reason)
    cut.write_bytes(content)
    assert align_cutout(cut, None, PLACE, path) == (
        "error",
        "the size of its result is not known",
    )
    assert not cut.exists()
    assert not path.exists()


@pytest.mark.parametrize(
    ("statuses", "status", "reason"),
    [
        ([], "no-overlap", "there is no image of it"),
        (["no-overlap", "no-overlap"], "no-overlap", "there is no image of it"),
        (["no-overlap", "missing", "error"], "error", "there is no image of it; row1: missing!"),
    ],
)
def test_a_result_without_images_says_why(
    statuses: list[RowStatus], status: RowStatus, reason: str
) -> None:
    rows = [
        RowRecord(at, at, 9, f"row{at}", "", "a", None, None, None, None, each, f"{each}!")
        for at, each in enumerate(statuses)
    ]
    assert without_images(RowTable.of(rows)) == (status, reason)
