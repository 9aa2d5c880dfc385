"""`swathe reduce`: the statistics of `swathe.reduce`, written to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import swathe
from tests.support.fits_frames import Runner


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """Make a folder of two swaths with a flag of quality."""
    netcdf = pytest.importorskip("netCDF4")
    rng = np.random.default_rng(4)
    for number in range(2):
        with netcdf.Dataset(tmp_path / f"{number}.nc", "w", format="NETCDF3_CLASSIC") as file:
            for name, length in (("y", 30), ("x", 20)):
                file.createDimension(name, length)
            for name, kind in (("lat", "f4"), ("lon", "f4"), ("lst", "f4"), ("qa", "i1")):
                variable = file.createVariable(name, kind, ("y", "x"))
                variable[:] = rng.integers(0, 4, (30, 20))
    return tmp_path


def test_files_are_reduced(
    day: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    words = ("reduce", day / "0.nc", day / "1.nc", "--array", "/lst", "--grid", "1deg")
    chosen = (*words, "--where", "qa & 3 == 0", "--statistics", "std,max")
    out = day / "out.npy"
    facts = run.json(*chosen, "-o", out)
    result = swathe.reduce(
        str(day / "?.nc"), array="/lst", grid="1deg", where="qa & 3 == 0", statistics=("std", "max")
    )
    np.testing.assert_array_equal(np.load(out), result["std"])
    assert (facts["grid"], facts["shape"], facts["pixels"]) == ("1x1deg", [180, 360], 1200)
    assert facts["statistics"] == ["std", "max", "count", "pixels"]
    assert facts["valid"] == result["count"].sum()
    assert facts["cells_with_values"] == 16
    # The first time the reader of the format reads the heads, too.
    assert (result.bytes_moved, result.requests) == (2 * 30 * 20 * (4 + 4 + 4 + 1), 2 * 4)
    assert facts["bytes_moved"] > result.bytes_moved
    shown, _ = run.told(
        "reduce", day / "[01].nc", "--array", "lst", "--grid", "N8", "-o", day / "a.nc"
    )
    assert "16 x 32 cells" in shown
    assert "1,200 pixels in cells, 1,200 of them valid; 0 outside; read 14.06 KiB in 6" in shown


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--grid", "7"), 2, "grid: expected"),
        (("--statistics", "median"), 2, "statistics: expected"),
        (("--where", "cloud == 0"), 2, "cloud"),
        (("--where", "qa ** 2"), 2, "where: expected"),
        (("--array", "/none"), 2, "none"),
        (("-o", "out.xyz"), 6, "found '.xyz'"),
    ],
)
def test_wrong_options_are_errors(
    words: tuple[str, str],
    code: int,
    text: str,
    day: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(day)
    options = {"--array": "/lst", "--grid": "1deg", "-o": "out.nc"} | dict([words])
    flat = [word for pair in options.items() for word in pair]
    assert text in Runner(monkeypatch, capsys)("reduce", "0.nc", *flat, code=code)
    assert not (day / "out.nc").exists()


def test_an_output_that_exists_stays(
    day: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    out = day / "out.fits"
    words = ("reduce", day / "0.nc", "--array", "/lst", "--grid", "30deg", "-o", out)
    out.write_text("mine")
    run(*words, code=6)
    assert out.read_text() == "mine"
    run(*words, "--overwrite")
    assert out.stat().st_size > 1000


def test_source_is_kept_and_units_may_be_any_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        for name in ("lat", "lon", "v"):
            file[name] = np.arange(12.0).reshape(3, 4)
        file["v"].attrs["units"] = "°C\nfile: trusted"
    before = path.read_bytes()
    run = Runner(monkeypatch, capsys)
    words = ("reduce", path, "--array", "/v", "--grid", "10deg")
    ran = run.ran(*words, "-o", path, "--overwrite")
    assert ran.code not in (0, 70)
    assert "source" in ran.err
    run(*words, "-o", tmp_path / "out.nc")
    assert path.read_bytes() == before
    assert "\nfile: trusted" not in run("info", path)
