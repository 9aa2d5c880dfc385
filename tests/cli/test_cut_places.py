"""`swathe cut --bounds --time` takes as many arguments as `swathe find`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.fits_frames import Runner

h5py = pytest.importorskip("h5py")


@pytest.fixture
def globe(tmp_path: Path) -> Path:
    """Three days of the whole Earth, in steps of 10 degrees."""
    path = tmp_path / "globe.h5"
    axes = {
        "time": (np.arange(3), "days since 2005-05-01"),
        "lat": (np.arange(-85.0, 90, 10), "degrees_north"),
        "lon": (np.arange(-175.0, 180, 10), "degrees_east"),
    }
    with h5py.File(path, "w") as file:
        file["lst"] = np.arange(3 * 18 * 36, dtype="i2").reshape(3, 18, 36)
        for axis, (name, (values, units)) in enumerate(axes.items()):
            file[name] = values
            file[name].attrs["units"] = units
            file[name].make_scale(name)
            file["lst"].dims[axis].attach_scale(file[name])
    return path


def test_bounds_and_times(globe: Path, run: Runner, tmp_path: Path) -> None:
    where = ("--bounds", "-20", "30", "20", "60", "--time", "2005-05-02", "2005-05-03")
    run("cut", globe, "--array", "/lst", *where, "-o", tmp_path / "cut.npy")
    values = np.arange(3 * 18 * 36).reshape(3, 18, 36)
    np.testing.assert_array_equal(np.load(tmp_path / "cut.npy"), values[1:, 12:15, 16:20])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--bounds", "5,45,12,48"), "--bounds"),
        (("--bounds", "5", "45", "12"), "--bounds"),
        (("--time", "2005-05-01"), "--time"),
    ],
)
def test_wrong_numbers_of_arguments(
    globe: Path, run: Runner, words: tuple[str, ...], text: str
) -> None:
    ran = run.ran("cut", globe, "--array", "/lst", *words)
    assert ran.code == 2
    assert text in ran.err
