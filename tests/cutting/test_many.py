"""Batches: same pixels in every output, nothing stops the others, resume, interruption, bounds."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import itertools
import json
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from astropy.io import fits
from astropy.table import Table
from numpy.typing import NDArray

import swathe
from swathe.core.errors import (
    OptionError,
    OutputError,
    OutputExistsError,
    RegionError,
    TargetsError,
)
from swathe.core.format import count_text, forecast_text, seconds_text, size_text
from swathe.costs.engine_job import to_engine_job
from swathe.costs.time_left import CutProgress
from swathe.files.file import sky_of
from swathe.files.manifest import MANIFEST
from swathe.files.manifest_columns import Manifest
from swathe.files.targets.target_list import read_targets
from tests.support.fits_frames import (
    KINDS,
    contents,
    fits_bytes,
    image_of,
    noise,
    results,
    sky_header,
    write_kinds,
)
from tests.support.scripted_servers import Handler, serving

OUTPUTS = ("folder", "out.zip", "out.tar", "out.fits")
ARCHIVES = OUTPUTS[1:]
PATIENCE_S = 120


def cut_many(given: Any, output: Path, **options: Any) -> Table:
    return swathe.cut_many(given, output, **{"progress": False, **options})


def boxes(files: list[Path], count: int, seed: int = 1) -> dict[str, list[Any]]:
    """Targets with random boxes inside 300 x 400 pixels, dealt out to files."""
    rng = np.random.default_rng(seed)
    return {
        "id": [f"t{n}" for n in range(count)],
        "file": [str(files[n % len(files)]) for n in range(count)],
        "x0": rng.integers(0, 380, count).tolist(),
        "y0": rng.integers(0, 280, count).tolist(),
        "width": rng.integers(1, 20, count).tolist(),
        "height": rng.integers(1, 20, count).tolist(),
    }


def sliced(data: NDArray[Any], rows: dict[str, list[Any]], row: int) -> NDArray[Any]:
    x0, y0, width, height = (rows[name][row] for name in ("x0", "y0", "width", "height"))
    return data[..., y0 : y0 + height, x0 : x0 + width]


def manifest_of(output: Path) -> Path:
    if output.is_dir():
        return output / MANIFEST
    broken_off = output.with_name(f".{output.name}.{MANIFEST}.part")
    if broken_off.exists():
        return broken_off
    return output.with_name(f"{output.stem}.{MANIFEST}")


@pytest.fixture(scope="module")
def frame() -> NDArray[np.uint16]:
    return noise(1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, frame: NDArray[np.uint16]) -> list[Path]:
    """The frame in all four kinds; tests only read them."""
    return write_kinds(tmp_path_factory.mktemp("files"), "a", frame)


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_holds_numpy_slices(
    output: str, files: list[Path], frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    rows = boxes(files, 60)
    found = cut_many(rows, tmp_path / output)
    assert set(found["status"]) == {"ok"}
    written = results(tmp_path / output)
    assert written.keys() == set(found["path"])
    for row, path in enumerate(found["path"]):
        pixels = image_of(written[path])
        assert pixels.dtype == np.uint16
        np.testing.assert_array_equal(pixels, sliced(frame, rows, row))


def test_one_fits_file_is_valid(files: list[Path], tmp_path: Path) -> None:
    found = cut_many(boxes(files, 8), tmp_path / "out.fits")
    with fits.open(tmp_path / "out.fits", checksum=True) as hdus:
        hdus.verify("exception")
        assert {hdu.name for hdu in hdus[1:-1]} == set(found["path"])
        assert hdus[-1].name == "MANIFEST"
    cut = swathe.cut(tmp_path / "out.fits", box=(0, 0, 1, 1), hdu="t3")
    assert cut.shape == (1, 1)


@pytest.mark.parametrize("output", OUTPUTS)
def test_long_ids_fit_every_output(output: str, files: list[Path], tmp_path: Path) -> None:
    rows = boxes(files, 4) | {"id": ["a" * 300, "a" * 300, "b" * 99, "é" * 99]}
    found = cut_many(rows, tmp_path / output)
    assert set(found["status"]) == {"ok"}
    assert results(tmp_path / output).keys() == set(found["path"])


@pytest.mark.parametrize("output", ["folder", "out.tar"])
def test_threads_give_identical_files(output: str, files: list[Path], tmp_path: Path) -> None:
    rows = boxes(files, 600)
    found = [
        cut_many(rows, tmp_path / str(threads) / output, threads=threads) for threads in (1, 2)
    ]
    assert list(found[0]["sha256"]) == list(found[1]["sha256"])
    one, two = (results(tmp_path / str(threads) / output) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_no_targets_give_an_empty_output(output: str, tmp_path: Path) -> None:
    names = ("file", "x0", "y0", "width", "height")
    found = cut_many({name: [] for name in names}, tmp_path / output)
    assert len(found) == 0
    assert results(tmp_path / output) == {}
    assert len(Table.read(manifest_of(tmp_path / output))) == 0


def test_center_and_sky_targets(tmp_path: Path, frame: NDArray[np.uint16]) -> None:
    from astropy.coordinates import SkyCoord
    from astropy.nddata import Cutout2D
    from astropy.wcs import WCS

    from tests.support.fits_frames import sky_header

    paths = write_kinds(tmp_path, "sky", frame, sky_header())
    ra, dec, files = [10.0, 10.004] * 4, [-1.0, -1.003] * 4, [str(p) for p in paths for _ in "12"]
    found = cut_many({"file": files, "ra": ra, "dec": dec, "size_deg": [0.002] * 8}, tmp_path / "o")
    assert set(found["status"]) == {"ok"}
    wcs = WCS(sky_header())
    for row, path in enumerate(found["path"]):
        place = SkyCoord(ra[row], dec[row], unit="deg")
        pixels = image_of((tmp_path / "o" / path).read_bytes())
        np.testing.assert_array_equal(pixels, Cutout2D(frame, place, 20, wcs=wcs).data)

    x, y = [100.5, 30.2], [50.0, 299.0]
    rows = {"file": [str(paths[0])] * 2, "x": x, "y": y, "height": [7, 8], "width": [4, 9]}
    found = cut_many(rows, tmp_path / "c")
    for row, path in enumerate(found["path"]):
        wanted = Cutout2D(frame, (x[row], y[row]), (7 + row, (4, 9)[row])).data
        np.testing.assert_array_equal(image_of((tmp_path / "c" / path).read_bytes()), wanted)


def test_modes_and_fill(files: list[Path], frame: NDArray[np.uint16], tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {"file": [str(path) for path in files for _ in range(3)]}
    rows |= {"x0": [-5, 10, 900] * 4, "y0": [-2, 10, 10] * 4}
    rows |= {"width": [20] * 12, "height": [10] * 12}

    found = cut_many(rows, tmp_path / "trim", mode="trim")
    assert list(found["status"]) == ["ok", "ok", "no-overlap"] * 4
    for path in found["path"][::3]:
        pixels = image_of((tmp_path / "trim" / path).read_bytes())
        np.testing.assert_array_equal(pixels, frame[:8, :15])

    found = cut_many(rows, tmp_path / "partial", mode="partial", fill=7)
    assert list(found["status"]) == ["ok", "ok", "no-overlap"] * 4
    wanted = np.full((10, 20), 7, np.uint16)
    wanted[2:, 5:] = frame[:8, :15]
    for path in found["path"][::3]:
        pixels = image_of((tmp_path / "partial" / path).read_bytes())
        np.testing.assert_array_equal(pixels, wanted)

    found = cut_many(rows, tmp_path / "strict", mode="strict")
    assert list(found["status"]) == ["error", "ok", "no-overlap"] * 4
    assert "strict" in found["reason"][0] or "partly" in found["reason"][0]


def test_prediction_and_outcome_are_logged_where_that_is_wanted(
    files: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = boxes(files[:1], 3)
    swathe.cut_many(rows, tmp_path / "silent")
    assert not caplog.records
    with caplog.at_level(logging.INFO, "swathe"):
        meta = swathe.cut_many(rows, tmp_path / "out").meta
    before, after = (record.getMessage() for record in caplog.records)
    assert before.startswith(f"{tmp_path / 'out'}: predicted {forecast_text(meta['predicted_s'])}")
    assert " for 3 targets: " in before
    assert after.startswith(
        f"{tmp_path / 'out'}: took {seconds_text(meta['actual_s'])}, predicted "
    )
    moved, requests = size_text(meta["bytes_moved"]), count_text(meta["requests"], "request")
    assert after.endswith(f": {moved} in {requests}")


def test_planes_of_cubes(tmp_path: Path) -> None:
    cube = noise(2, (6, 40, 50))
    paths = write_kinds(tmp_path, "cube", cube)
    rows: dict[str, list[Any]] = {"file": [str(path) for path in paths]}
    rows |= {"x0": [3] * 4, "y0": [4] * 4, "width": [10] * 4, "height": [12] * 4}
    for number, (planes, wanted) in enumerate([(None, cube), ((1, 4), cube[1:4])]):
        found = cut_many(rows, tmp_path / f"o{number}", planes=planes)
        assert set(found["status"]) == {"ok"}
        for path in found["path"]:
            pixels = image_of((tmp_path / f"o{number}" / path).read_bytes())
            np.testing.assert_array_equal(pixels, wanted[:, 4:16, 3:13])
    assert set(cut_many(rows, tmp_path / "s", planes=slice(1, 4))["status"]) == {"ok"}
    for wrong in ((4, 1), (-1, 2), slice(1, None), slice(0, 4, 2)):
        with pytest.raises(RegionError):
            cut_many(rows, tmp_path / "wrong", planes=wrong)


@pytest.mark.parametrize("mode", ["trim", "partial", "strict"])
def test_planes_that_an_image_lacks_are_told_as_of_one_cut(mode: Any, tmp_path: Path) -> None:
    """Of cubes and of what is no cube, plain and in tiles; those that have them are cut."""
    paths: list[Path] = []
    for name, shape in (("long", (9, 40, 50)), ("short", (6, 40, 50)), ("flat", (40, 50))):
        paths += write_kinds(tmp_path, name, noise(2, shape))
    four = {"x0": 3, "y0": 4, "width": 10, "height": 12}
    rows: dict[str, list[Any]] = {"file": list(map(str, paths))}
    rows |= {name: [value] * len(paths) for name, value in four.items()}
    for number, planes in enumerate([(5, 9), (6, 9)]):
        found = cut_many(rows, tmp_path / f"{number}", planes=planes, mode=mode)
        assert list(found["status"]) == ["ok"] * 4 + ["error"] * 8
        for path, reason in zip(paths[4:], found["reason"][4:], strict=True):
            with pytest.raises(RegionError) as raised:
                swathe.cut(path, box=(3, 4, 10, 12), planes=planes, mode=mode)
            assert type(raised.value) is RegionError
            assert str(raised.value) == reason
            assert f"planes {planes[0]}:9 of NAXIS3" in reason and str(path) in reason


def test_hdus_of_one_file(tmp_path: Path) -> None:
    first, second = noise(3, (50, 60)), noise(4, (50, 60))
    path = tmp_path / "mef.fits"
    hdus = [fits.ImageHDU(first, name="SCI"), fits.ImageHDU(second, name="SCI", ver=2)]
    path.write_bytes(fits_bytes(fits.PrimaryHDU(), *hdus))
    rows: dict[str, list[Any]] = {"hdu": ["", "1", "SCI", "SCI,2", "2", "0", "DQ"]}
    rows |= {"file": [str(path)] * 7} | {n: [5] * 7 for n in ("x0", "y0", "width", "height")}
    found = cut_many(rows, tmp_path / "out")
    assert list(found["status"]) == ["ok"] * 5 + ["error"] * 2
    for row, data in enumerate([first, first, first, second, second]):
        pixels = image_of((tmp_path / "out" / f"{row}.fits").read_bytes())
        np.testing.assert_array_equal(pixels, data[5:10, 5:10])


# One bad file never stops the others.


def bad_files(folder: Path, frame: NDArray[np.uint16]) -> dict[str, tuple[Path, str]]:
    """Files with something wrong, and the status of what is cut from their far end."""
    plain, packed = contents(frame, "fit"), contents(frame, "fit.gz")
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x55
    table = fits_bytes(fits.PrimaryHDU(), fits.BinTableHDU(Table({"a": [1, 2]})))
    made = {
        "cut.fit": plain[: len(plain) // 2],
        "cut.fit.gz": packed[: len(packed) // 2],
        "cut.fit.bz2": contents(frame, "fit.bz2")[:9000],
        "cut.fit.fz": contents(frame, "fit.fz")[:20000],
        "flipped.fit.gz": bytes(flipped),
        "table.fits": table,
        "empty.fits": b"",
        "text.fits": b"no FITS file at all\n" * 500,
        "text.fits.gz": b"no gzip file at all\n" * 500,
        "folder.fits": None,
        "missing.fits": None,
    }
    for name, content in made.items():
        if content is not None:
            (folder / name).write_bytes(content)
    (folder / "folder.fits").mkdir()
    status = {"missing.fits": "missing"}
    return {name: (folder / name, status.get(name, "error")) for name in made}


@pytest.mark.parametrize("output", OUTPUTS)
def test_bad_files_do_not_stop_the_others(
    output: str, files: list[Path], frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    bad = bad_files(tmp_path, frame)
    names = [
        path
        for pair in zip(files * 3, bad.values(), strict=False)
        for path in (pair[0], pair[1][0])
    ]
    rows: dict[str, list[Any]] = {"file": [str(name) for name in names]}
    count = len(names)
    rows |= {
        "x0": [380] * count,
        "y0": [280] * count,
        "width": [20] * count,
        "height": [20] * count,
    }
    found = cut_many(rows, tmp_path / output)
    written = results(tmp_path / output)
    wanted = {str(path): status for path, status in bad.values()}
    for row in found:
        assert row["status"] == wanted.get(row["source"], "ok"), row["source"]
        if row["status"] == "ok":
            np.testing.assert_array_equal(image_of(written[row["path"]]), frame[280:, 380:])
        else:
            assert Path(row["source"]).name in row["reason"]
            assert "\n" not in row["reason"]
    assert written.keys() == {path for path in found["path"] if path}


def test_undamaged_part_of_a_cut_off_file_is_cut(frame: NDArray[np.uint16], tmp_path: Path) -> None:
    path = tmp_path / "cut.fit"
    path.write_bytes(contents(frame, "fit")[:120_000])
    rows = {
        "file": [str(path)] * 2,
        "x0": [1, 1],
        "y0": [1, 290],
        "width": [9] * 2,
        "height": [9] * 2,
    }
    found = cut_many(rows, tmp_path / "out")
    assert list(found["status"]) == ["ok", "error"]
    pixels = image_of((tmp_path / "out" / "0.fits").read_bytes())
    np.testing.assert_array_equal(pixels, frame[1:10, 1:10])


# Resume.


@pytest.mark.parametrize("output", OUTPUTS)
def test_resume_redoes_only_what_is_not_ok(
    output: str, frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    paths = write_kinds(tmp_path, "a", frame)
    late = tmp_path / "late.fit"
    rows = boxes([*paths, late], 25)
    first = cut_many(rows, tmp_path / output)
    assert set(first["status"][4::5]) == {"missing"}
    assert first.meta["ok"] == 20
    before = results(tmp_path / output)

    late.write_bytes(contents(frame, "fit"))
    for path in paths:  # nothing of these is needed again
        path.rename(path.with_suffix(".away"))
    second = cut_many(rows, tmp_path / output, resume=True)
    assert set(second["status"]) == {"ok"}
    after = results(tmp_path / output)
    assert after.keys() == set(second["path"])
    assert {name: after[name] for name in before} == before
    for row, path in enumerate(second["path"]):
        np.testing.assert_array_equal(image_of(after[path]), sliced(frame, rows, row))
        if first["status"][row] == "ok":
            assert list(second[row]) == list(first[row])

    third = cut_many(rows, tmp_path / output, resume=True)
    assert third.meta["bytes_moved"] == 0
    assert results(tmp_path / output) == after


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({}, {"mode": "partial"}, "mode partial"),
        ({"mode": "partial", "fill": 1.0}, {"mode": "partial", "fill": 2}, "fill 2.0"),
        ({}, {"planes": (0, 1)}, r"planes \[0, 1\]"),
    ],
)
def test_resume_keeps_no_results_of_other_pixels(
    files: list[Path], tmp_path: Path, first: Any, second: Any, name: str
) -> None:
    rows = boxes(files, 3)
    cut_many(rows, tmp_path / "o", **first)
    with pytest.raises(OutputError, match=f"expected a run with {name} to resume, found"):
        cut_many(rows, tmp_path / "o", resume=True, **second)


def test_resume_with_a_fill_of_nan(files: list[Path], tmp_path: Path) -> None:
    options = {"mode": "partial", "fill": float("nan")}
    floats = tmp_path / "floats.fits"
    fits.writeto(floats, np.ones((300, 400), np.float32))
    rows = boxes([floats], 2)
    cut_many(rows, tmp_path / "o", **options)
    again = cut_many(rows, tmp_path / "o", resume=True, **options)
    assert again.meta["done_before"] == 2


def test_resume_without_an_earlier_run_is_a_first_run(files: list[Path], tmp_path: Path) -> None:
    for output in OUTPUTS:
        found = cut_many(boxes(files, 8), tmp_path / output[-3:] / output, resume=True)
        assert set(found["status"]) == {"ok"}
        assert results(tmp_path / output[-3:] / output).keys() == set(found["path"])


def test_resume_makes_again_what_was_deleted_or_truncated(
    files: list[Path], tmp_path: Path
) -> None:
    rows = boxes(files, 12)
    first = cut_many(rows, tmp_path / "out")
    before = results(tmp_path / "out")
    (tmp_path / "out" / first["path"][3]).unlink()
    with (tmp_path / "out" / first["path"][7]).open("r+b") as file:
        file.truncate(3000)
    second = cut_many(rows, tmp_path / "out", resume=True)
    assert list(second["sha256"]) == list(first["sha256"])
    assert results(tmp_path / "out") == before
    assert 0 < second.meta["bytes_moved"] < first.meta["bytes_moved"]


def halve(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("output", ARCHIVES)
@pytest.mark.parametrize("damage", [Path.unlink, halve], ids=["deleted", "truncated"])
def test_resume_makes_again_what_an_archive_lost(
    output: str, damage: Callable[[Path], None], files: list[Path], tmp_path: Path
) -> None:
    rows = boxes(files, 12)
    first = cut_many(rows, tmp_path / output)
    before = results(tmp_path / output)
    damage(tmp_path / output)
    second = cut_many(rows, tmp_path / output, resume=True)
    assert list(second["sha256"]) == list(first["sha256"])
    assert results(tmp_path / output) == before


def test_resume_cuts_again_from_another_source(tmp_path: Path) -> None:
    one, two = noise(1), noise(2)
    (tmp_path / "one.fit").write_bytes(contents(one, "fit"))
    (tmp_path / "two.fit").write_bytes(contents(two, "fit"))
    for name, data in (("one", one), ("two", two)):
        rows = boxes([tmp_path / f"{name}.fit"], 3)
        found = cut_many(rows, tmp_path / "out", resume=True)
        pixels = image_of((tmp_path / "out" / found["path"][1]).read_bytes())
        np.testing.assert_array_equal(pixels, sliced(data, rows, 1))


@pytest.mark.parametrize("output", OUTPUTS)
def test_resume_keeps_what_is_finished_of_a_place_now_out_of_reach(
    output: str, tmp_path: Path
) -> None:
    image = tmp_path / "a.fits"
    image.write_bytes(fits_bytes(fits.PrimaryHDU(noise(1), sky_header())))
    rows = {"file": [str(image)] * 2, "ra": [10.0] * 2, "dec": [-1.0] * 2, "size_deg": [1e-3, -1]}
    first = cut_many(rows, tmp_path / output)
    assert list(first["status"]) == ["ok", "error"]
    image.rename(tmp_path / "away.fits")
    second = cut_many(rows, tmp_path / output, resume=True)
    assert [list(row) for row in second] == [list(row) for row in first]
    assert results(tmp_path / output).keys() == {first["path"][0]}


@pytest.mark.parametrize("output", OUTPUTS)
def test_reasons_stand_until_their_rows_end_anew(
    output: str, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = boxes([files[0]], 5)
    rows["id"] = ["a"] * 5  # told apart by their order
    rows["x0"][1] = 9000
    rows["file"][2] = str(tmp_path / "none.fit")
    rows["width"][3], rows["x0"][4] = 0, 9000
    first = cut_many(rows, tmp_path / output)
    assert list(first["status"]) == ["ok", "no-overlap", "missing", "error", "no-overlap"]
    rows["height"][3], rows["width"][3], rows["width"][4] = -7, 5, -3

    with monkeypatch.context() as patch:

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(sys.modules["swathe.costs.predict_list"], "predict_job", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cut_many(rows, tmp_path / output, resume=True)
    stopped = Table.read(manifest_of(tmp_path / output), fill_values=[])
    for row in range(3):
        assert list(stopped[row]) == list(first[row])
    # These could not be done at once, for other reasons than before.
    assert list(stopped["status"][3:]) == ["error"] * 2
    assert ["-7" in stopped["reason"][3], "-3" in stopped["reason"][4]] == [True, True]
    assert list(stopped["source_version"][3:]) == [""] * 2

    again = cut_many(rows, tmp_path / output, resume=True)
    assert [list(row) for row in again] == [list(row) for row in stopped]


def test_archives_share_a_folder_each_with_its_manifest(files: list[Path], tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip", "two.tar", "two.fits"):
        cut_many(boxes(files, 2), tmp_path / name)
    for name, manifest in (
        ("one.zip", "one.manifest.ecsv"),
        ("two.zip", "two.manifest.ecsv"),
        ("two.tar", "two.tar.manifest.ecsv"),
        ("two.fits", "two.fits.manifest.ecsv"),
    ):
        assert Table.read(tmp_path / manifest).meta["output"] == name
        again = cut_many(boxes(files, 2), tmp_path / name, resume=True)
        assert again.meta["bytes_moved"] == 0


@pytest.mark.parametrize(("resume", "error"), [(False, "exists already"), (True, "not a manifest")])
def test_a_file_that_is_no_manifest_is_left_alone(
    resume: bool, error: str, files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "two.manifest.ecsv").write_text("mine")
    with pytest.raises(OutputError, match=error):
        cut_many(boxes(files, 2), tmp_path / "two.zip", resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["two.manifest.ecsv"]
    assert (tmp_path / "two.manifest.ecsv").read_text() == "mine"


# Interruption.

WORKER = """
import json, sys
import swathe
from swathe.cutting import cut_run
cut_run.CHECKPOINT_S = 0.05
targets, output, resume = json.loads(sys.argv[1])
print("started", flush=True)
swathe.cut_many(targets, output, threads=2, resume=resume, progress=False)
"""


@pytest.fixture(scope="module")
def slow_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files that take two threads some seconds, a little at a time."""
    folder = tmp_path_factory.mktemp("slow")
    content = contents(noise(5, (900, 1000)), "fit.bz2")
    paths = [folder / f"{number}.fit.bz2" for number in range(60)]
    for path in paths:
        path.write_bytes(content)
    return paths


def new_index(folder: Path) -> dict[str, str]:
    """An environment with an index that knows nothing."""
    return {**os.environ, "SWATHE_INDEX_DIR": str(folder)}


def wait_for_results(output: Path, process: subprocess.Popen[Any], count: int) -> None:
    """Return once a batch has written something and its manifest, but is not done."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        assert process.poll() is None, "the work ended too early"
        manifest = manifest_of(output)
        part = output.with_name(f".{output.name}.part")
        size = part.stat().st_size if part.is_file() else 0
        there = size > 5760 * count or (output.is_dir() and len(os.listdir(output)) > count)
        if there and manifest.exists() and b",ok," in manifest.read_bytes():
            return
        time.sleep(0.005)
    raise AssertionError("nothing was written")


@pytest.mark.parametrize(
    ("output", "kill"),
    [
        pytest.param(output, kill, marks=[] if output in few else pytest.mark.more)
        for kill, few in ((signal.SIGINT, ["folder"]), (signal.SIGKILL, ["out.fits"]))
        for output in OUTPUTS
    ],
)
def test_stopped_batch_keeps_what_is_finished_and_resumes(
    kill: signal.Signals,
    output: str,
    slow_files: list[Path],
    tmp_path: Path,
    record_property: Any,
) -> None:
    rows = boxes(slow_files, 4 * len(slow_files))
    path = tmp_path / output
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, json.dumps([rows, str(path), False])],
        env=new_index(tmp_path / "index"),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_results(path, process, 4)
    sent = time.monotonic()
    process.send_signal(kill)
    _, said = process.communicate(timeout=PATIENCE_S)
    seconds = time.monotonic() - sent
    record_property("seconds", seconds)
    print(f"{kill.name} {output}: ended after {seconds:.3f} s")  # noqa: T201

    found = Table.read(manifest_of(path), format="ascii.ecsv")
    good = found[found["status"] == "ok"]
    assert 0 < len(good) < len(found) == len(rows["id"])
    assert set(found["reason"][found["status"] == "error"]) == {"interrupted"}
    frame = noise(5, (900, 1000))
    if kill == signal.SIGINT:
        assert "KeyboardInterrupt" in said
        assert process.returncode not in (0, None)
        written = results(path)
        assert written.keys() == set(good["path"])
        for name in good["path"]:
            row = rows["id"].index(name.removesuffix(".fits"))
            np.testing.assert_array_equal(image_of(written[name]), sliced(frame, rows, row))

    else:
        with pytest.raises(OutputExistsError, match="--resume"):
            cut_many(rows, path)
    done = cut_many(rows, path, resume=True)
    assert set(done["status"]) == {"ok"}
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    written = results(path)
    assert written.keys() == set(done["path"])
    for row, name in enumerate(done["path"]):
        np.testing.assert_array_equal(image_of(written[name]), sliced(frame, rows, row))


def test_ctrl_c_ends_the_work_on_one_large_file(tmp_path: Path, record_property: Any) -> None:
    block = noise(6, (1000, 1000)).astype(">i2").tobytes()
    header = fits.PrimaryHDU(np.zeros((1, 1), np.int16)).header
    header["NAXIS1"], header["NAXIS2"] = 1000, 40000
    cards = bz2.compress(header.tostring().encode())
    (tmp_path / "large.fit.bz2").write_bytes(cards + bz2.compress(block) * 40)
    rows = {"file": ["large.fit.bz2"], "x0": [5], "y0": [39990], "width": [5], "height": [5]}
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, json.dumps([rows, "out", False])],
        env=new_index(tmp_path / "index"),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )

    def worked_s() -> float:
        """Time of the processor, which the work alone takes once it has begun."""
        assert process.poll() is None
        times = psutil.Process(process.pid).cpu_times()
        return float(times.user + times.system)

    while not (tmp_path / "out").exists():
        assert process.poll() is None
        time.sleep(0.01)
    begun_s = worked_s()
    while worked_s() < begun_s + 0.5:
        time.sleep(0.01)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    seconds = time.monotonic() - sent
    record_property("seconds", seconds)
    print(f"large file: ended after {seconds:.3f} s")  # noqa: T201
    assert list(Table.read(tmp_path / "out" / "manifest.ecsv")["reason"]) == ["interrupted"]


def test_ctrl_c_ends_a_wait_for_a_server(tmp_path: Path) -> None:
    frame = noise(7, (300, 300))
    fits.PrimaryHDU(frame).writeto(tmp_path / "frame.fits")
    content = (tmp_path / "frame.fits").read_bytes()
    is_over, waits = threading.Event(), threading.Event()
    requests = itertools.count()

    class HangingServer(Handler):
        """A server that answers some requests, and then no more."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if next(requests) >= 20:
                waits.set()
                is_over.wait(PATIENCE_S)
                self.close_connection = True
                return
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            end = min(int(last) + 1, len(content))
            headers = {"Content-Range": f"bytes {first}-{end - 1}/{len(content)}", "ETag": '"1"'}
            self.answer(206, content[int(first) : end], headers)

    rows: dict[str, list[Any]] = {"x0": [5] * 40, "y0": [280] * 40, "width": [9] * 40}
    with serving(HangingServer) as url:
        rows |= {"height": [9] * 40, "file": [f"{url}/{number}.fits" for number in range(40)]}
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps([rows, "out.zip", False])],
            env=new_index(tmp_path / "index"),
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert waits.wait(PATIENCE_S)
            # The work waits for an answer, or will do so soon.
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            # Without an interrupt it waits for answers, and tries again, for more than a minute.
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
            is_over.set()
    assert "KeyboardInterrupt" in errors


def test_ctrl_c_while_targets_are_placed_leaves_earlier_results(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = boxes(files, 4)
    first = cut_many(rows, tmp_path / "out")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("swathe.files.targets.target_list.read_targets", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cut_many(rows, tmp_path / "out", resume=True)
    assert list(Table.read(tmp_path / "out" / "manifest.ecsv")["sha256"]) == list(first["sha256"])


# Outputs that cannot be written.


@pytest.mark.parametrize("suffix", [".tar.gz", ".csv", ".png", ".fz"])
def test_unknown_output_is_refused_before_any_work(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"expected a folder, \*\.zip"):
        cut_many({"file": []}, tmp_path / f"out{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", OUTPUTS)
def test_output_below_a_file_cannot_be_written(
    output: str, files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(OutputError, match="file"):
        cut_many(boxes(files, 2), tmp_path / "file" / output)
    with pytest.raises(OutputError, match="file"):
        cut_many(boxes(files, 2), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("output", ARCHIVES)
def test_folder_in_the_place_of_an_archive(output: str, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / output).mkdir()
    with pytest.raises(OutputError, match=output):
        cut_many(boxes(files, 2), tmp_path / output)


def test_where_no_manifest_can_be_written_nothing_is_begun(
    files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "out" / MANIFEST).mkdir(parents=True)
    with pytest.raises(OutputError, match=MANIFEST):
        cut_many(boxes(files, 2), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [MANIFEST]


def test_list_is_read_before_the_output_is_touched(tmp_path: Path) -> None:
    with pytest.raises(TargetsError):
        cut_many({"file": ["a"]}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("output", OUTPUTS)
def test_full_disk_fails_what_does_not_fit(
    output: str, files: list[Path], frame: NDArray[np.uint16], small_disk: Path
) -> None:
    rows = boxes(files, 120)
    path = small_disk / output
    try:
        cut_many(rows, path)
    except OutputError as error:
        assert "No space left" in str(error)
    else:
        raise AssertionError("nothing was said of the full disk")
    if output == "folder":
        for name, content in results(path).items():
            row = rows["id"].index(name.removesuffix(".fits"))
            np.testing.assert_array_equal(image_of(content), sliced(frame, rows, row))


# Not a zip archive: its directory, at its end, may not fit either.
@pytest.mark.parametrize("output", ["folder", "out.tar", "out.fits"])
def test_results_that_do_not_fit_are_rows_of_the_manifest(
    output: str, files: list[Path], frame: NDArray[np.uint16], small_disk: Path
) -> None:
    (small_disk / "spare").write_bytes(bytes(60_000))
    rows = boxes(files, 60)
    path = small_disk / output

    write = Manifest.write

    def write_after_all(manifest: Manifest, to: Path) -> None:
        if to.exists():  # not at the start
            (small_disk / "spare").unlink(missing_ok=True)
        write(manifest, to)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Manifest, "write", write_after_all)
        found = cut_many(rows, path)
    status = found["status"]
    assert 0 < np.count_nonzero(status == "ok") < len(found)
    assert set(status) == {"ok", "error"}
    assert all("No space left" in reason for reason in found["reason"][status == "error"])
    written = results(path)
    assert written.keys() == set(found["path"][status == "ok"])
    for name, content in written.items():
        row = rows["id"].index(name.removesuffix(".fits"))
        np.testing.assert_array_equal(image_of(content), sliced(frame, rows, row))


def test_output_folder_that_vanishes(slow_files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "out"
    rows = boxes(slow_files[:6], 24)
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, json.dumps([rows, str(output), False])],
        env=new_index(tmp_path / "index"),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_results(output, process, 1)
    shutil.rmtree(output, ignore_errors=True)
    shutil.rmtree(output, ignore_errors=True)
    _, said = process.communicate(timeout=PATIENCE_S)
    if process.returncode != 0:
        assert "OutputError" in said.strip().splitlines()[-1]
        assert str(output) in said


# Many processes, much data.

RACER = """
import json, sys, numpy as np, swathe
targets, output, go = json.loads(sys.argv[1])
sys.stdin.readline()
found = swathe.cut_many(targets, output, progress=False)
assert set(found["status"]) == {"ok"}, found
print(json.dumps([list(map(str, found["sha256"])), found.meta["notes"], found.meta["bytes_moved"]]))
"""


@pytest.mark.more
def test_processes_share_an_empty_index(tmp_path: Path) -> None:
    frame = noise(7, (1200, 1000))
    paths = [tmp_path / f"{number}.fit.gz" for number in range(3)]
    for path in paths:
        path.write_bytes(contents(frame, "fit.gz"))
    rows = boxes(paths, 60)
    index = tmp_path / "index"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, json.dumps([rows, str(tmp_path / f"o{number}"), 0])],
            env=new_index(index),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    time.sleep(0.3)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [json.loads(process.communicate(timeout=PATIENCE_S)[0]) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert [(hashes, notes) for hashes, notes, _ in said] == [(said[0][0], [])] * 4
    for row, name in enumerate(rows["id"]):
        content = (tmp_path / "o2" / f"{name}.fits").read_bytes()
        np.testing.assert_array_equal(image_of(content), sliced(frame, rows, row))

    # And what they left is sound: the next process reads less for the same.
    kept = [path for path in index.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < 0.08 * 3 * paths[0].stat().st_size + 100_000
    one = {name: values[:1] for name, values in rows.items()}
    ran = subprocess.run(
        [sys.executable, "-c", RACER, json.dumps([one, str(tmp_path / "next"), 0])],
        env=new_index(index),
        input="go\n",
        capture_output=True,
        text=True,
        check=True,
    )
    hashes, notes, bytes_moved = json.loads(ran.stdout)
    assert (hashes, notes) == (said[0][0][:1], [])
    assert bytes_moved < paths[0].stat().st_size


MEMORY = """
import sys
from pathlib import Path
import numpy as np, swathe
folder, kinds = sys.argv[1], ("fit", "fit.gz", "fit.bz2", "fit.fz")
count, rng = 20_000, np.random.default_rng(1)
files = [f"{folder}/{n}.{kinds[n % 4]}" for n in range(40)]
found = swathe.cut_many(
    {
        "file": [files[n // 500] for n in range(count)],
        "x": rng.uniform(60, 1900, count),
        "y": rng.uniform(60, 1400, count),
        "height": np.full(count, 60),
        "width": np.full(count, 60),
    },
    f"{folder}/out.tar",
    threads=2,
    progress=False,
)
assert set(found["status"]) == {"ok"}, found[found["status"] != "ok"]
# Not ru_maxrss, which counts the process this one was forked from.
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024)
"""


@pytest.mark.more
def test_memory_stays_bounded(tmp_path: Path, record_property: Any) -> None:
    frame = noise(8, (1489, 2048))
    for kind in KINDS:
        content = contents(frame, kind)
        for number in range(KINDS.index(kind), 40, 4):
            (tmp_path / f"{number}.{kind}").write_bytes(content)
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)],
        env=new_index(tmp_path / "index"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    peak_mb = float(ran.stdout)
    record_property("peak_mb", peak_mb)
    print(f"peak: {peak_mb:.0f} MB")  # noqa: T201
    assert peak_mb < 600


def test_sources_of_gzip_members_and_headers_only(tmp_path: Path) -> None:
    frame = noise(9, (60, 70))
    plain = contents(frame, "fit")
    (tmp_path / "m.fit.gz").write_bytes(gzip.compress(plain[:5000]) + gzip.compress(plain[5000:]))
    (tmp_path / "h.fits").write_bytes(fits_bytes(fits.PrimaryHDU()))
    rows = boxes([tmp_path / "m.fit.gz", tmp_path / "h.fits"], 2)
    rows |= {"x0": [60, 0], "y0": [50, 0], "width": [10, 1], "height": [10, 1]}
    found = cut_many(rows, tmp_path / "out")
    assert list(found["status"]) == ["ok", "error"]
    pixels = image_of((tmp_path / "out" / "t0.fits").read_bytes())
    np.testing.assert_array_equal(pixels, frame[50:, 60:])


def test_rows_are_gathered_by_columns(tmp_path: Path) -> None:
    file, absent = tmp_path / "a.fits", tmp_path / "absent.fits"
    file.write_bytes(contents(noise(1), "fit"))
    given = boxes([file, absent], 100)
    table = cut_many(given, tmp_path / "many")
    read = read_targets(given, sky_of)
    names = [f"{row}.fits" for row in range(100)]
    batch = to_engine_job(read, names=names, output=str(tmp_path / "gathered"), threads=2).start()
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="timeout_s"):
            batch.gather(1, wrong)
    found: dict[int, tuple[Any, ...]] = {}
    while (told := batch.gather(30, 60.0)) is not None:
        targets, sizes, digests, versions, codes, failed, moved = told
        assert not moved
        faults = {at: (status, reason) for at, status, reason in failed}
        for at, row in enumerate(np.frombuffer(targets, np.int64).tolist()):
            assert row not in found
            sha256 = "" if at in faults else digests[32 * at : 32 * at + 32].hex()
            size = int(np.frombuffer(sizes, np.int64)[at])
            version = versions[np.frombuffer(codes, np.int32)[at]]
            found[row] = (*faults.get(at, ("ok", "")), size, version, sha256)
    assert batch.gather(1, 0.0) is None
    batch.finish()
    names = ["status", "reason", "bytes", "source_version", "sha256"]
    assert [found[row] for row in range(100)] == [tuple(row) for row in table[names]]
    assert {row[0] for row in found.values()} == {"ok", "missing"}


# ---- Formats


def test_pixels_of_any_file_in_npy(
    files: list[Path], frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    rows = boxes(files, 30)
    found = cut_many(rows, tmp_path / "o", format="npy")
    assert set(found["status"]) == {"ok"}
    assert found.meta["format"] == "npy"
    written = {path.name for path in (tmp_path / "o").iterdir()}
    assert written == {f"t{n}.npy" for n in range(30)} | {MANIFEST}
    for row, entry in enumerate(found):
        content = (tmp_path / "o" / entry["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            entry["bytes"],
            entry["sha256"],
        )
        pixels = np.load(BytesIO(content), allow_pickle=False)
        assert pixels.dtype == np.uint16
        np.testing.assert_array_equal(pixels, sliced(frame, rows, row))


def test_pictures_are_those_of_one_cut(files: list[Path], tmp_path: Path) -> None:
    rows = boxes(files[:1], 3)
    found = cut_many(rows, tmp_path / "o", format="png")
    assert found["path"].tolist() == ["t0.png", "t1.png", "t2.png"]
    for row, path in enumerate(found["path"]):
        box = tuple(rows[name][row] for name in ("x0", "y0", "width", "height"))
        swathe.cut(files[0], box=box).write(tmp_path / path)
        assert (tmp_path / path).read_bytes() == (tmp_path / "o" / path).read_bytes()


def test_a_format_goes_on_where_it_ended(files: list[Path], tmp_path: Path) -> None:
    rows = boxes(files, 12)
    first = cut_many({name: values[:5] for name, values in rows.items()}, tmp_path, format="npy")
    times = {path: (tmp_path / path).stat().st_mtime_ns for path in first["path"]}
    (tmp_path / "t3.npy").unlink()
    found = cut_many(rows, tmp_path, format="npy", resume=True)
    assert set(found["status"]) == {"ok"}
    again = {path for path in times if (tmp_path / path).stat().st_mtime_ns != times[path]}
    assert again == {"t3.npy"}
    with pytest.raises(OutputExistsError):
        cut_many(rows, tmp_path, format="npy")
    kept = (tmp_path / "t0.npy").read_bytes()
    cut_many(rows, tmp_path, format="npy", overwrite=True)
    assert (tmp_path / "t0.npy").read_bytes() == kept


def test_a_cube_is_no_picture_until_a_plane_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "cube.fits"
    fits.writeto(path, np.arange(5 * 300, dtype=">i2").reshape(5, 15, 20))
    rows = {"file": [str(path)], "x0": [1], "y0": [2], "width": [9], "height": [8]}
    (row,) = cut_many(rows, tmp_path / "o", format="png")
    assert row["status"] == "error"
    assert row["reason"].endswith(
        "0.png: a picture shows one plane, and the cutout has 5: choose one with planes= "
        "(in the shell --planes)"
    )
    assert {each.name for each in (tmp_path / "o").iterdir()} == {MANIFEST}
    (row,) = cut_many(rows, tmp_path / "p", format="png", planes=(3, 4))
    assert row["status"] == "ok"
    with pytest.raises(RegionError, match="choose one with planes="):
        swathe.cut(path, box=(1, 2, 9, 8)).write(tmp_path / "x.png")
    swathe.cut(path, box=(1, 2, 9, 8), planes=3).write(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes() == (tmp_path / "p" / "0.png").read_bytes()


@pytest.mark.parametrize("output", ["out.zip", "out.tar"])
@pytest.mark.parametrize("form", ["npy", "png"])
def test_archives_of_any_format_hold_what_a_folder_does(
    form: Any, output: str, files: list[Path], tmp_path: Path
) -> None:
    rows = boxes(files, 12)
    rows["file"][5] = str(tmp_path / "none.fits")
    found = cut_many(rows, tmp_path / output, format=form)
    in_folder = cut_many(rows, tmp_path / "o", format=form)
    assert found["status"].tolist() == in_folder["status"].tolist()
    written = results(tmp_path / output)
    assert written == results(tmp_path / "o")
    assert written.keys() == {f"t{row}.{form}" for row in range(12) if row != 5}
    for entry in found[found["status"] == "ok"]:
        content = written[entry["path"]]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            entry["bytes"],
            entry["sha256"],
        )
    assert set(os.listdir(tmp_path)) == {output, "out.manifest.ecsv", "o"}
    with pytest.raises(OutputExistsError):
        cut_many(rows, tmp_path / output, format=form)
    more = cut_many(rows, tmp_path / output, format=form, resume=True)
    assert more.meta["done_before"] == 11
    assert results(tmp_path / output) == written
    few = {name: values[:2] for name, values in rows.items()}
    cut_many(few, tmp_path / output, format=form, overwrite=True)
    assert results(tmp_path / output).keys() == {f"t0.{form}", f"t1.{form}"}


KILLED = """
import os, signal, sys
from swathe import cut_many; from swathe.operations import make_results as making
taken, take = [], making.Converter.take
def dies(self, told):
    taken.append(told)
    if len(taken) == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return take(self, told)
making.Converter.take = dies
cut_many(sys.argv[1], sys.argv[2], format="npy", progress=False)
"""


@pytest.mark.more
@pytest.mark.parametrize("output", ["folder", "out.zip", "out.tar"])
def test_a_run_in_npy_that_is_killed_is_gone_on_with(
    output: str, files: list[Path], tmp_path: Path
) -> None:
    rows = boxes(files, 12)
    Table(rows).write(tmp_path / "t.csv", format="ascii.csv")
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "t.csv"), str(tmp_path / output)]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    if output != "folder":
        assert not (tmp_path / output).exists()
        with pytest.raises(OutputExistsError, match=r"give --resume .* to continue"):
            cut_many(rows, tmp_path / output, format="npy")
    found = cut_many(rows, tmp_path / output, format="npy", resume=True)
    assert set(found["status"]) == {"ok"}
    cut_many(rows, tmp_path / "whole", format="npy")
    assert results(tmp_path / output) == results(tmp_path / "whole")
    hidden = [path.name for path in tmp_path.rglob(".*")]
    assert hidden == []


def test_a_converted_result_that_is_there_by_then_stays(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swathe.operations.make_results import Converter

    take = Converter.take

    def comes(self: Converter, told: Any) -> Any:
        (tmp_path / "o" / "t1.npy").write_bytes(b"mine")
        return take(self, told)

    monkeypatch.setattr(Converter, "take", comes)
    found = cut_many(boxes(files, 3), tmp_path / "o", format="npy")
    assert found["status"].tolist() == ["ok", "error", "ok"]
    assert "exists already" in found["reason"][1]
    assert (tmp_path / "o" / "t1.npy").read_bytes() == b"mine"


@pytest.mark.parametrize("form", ["npy", "png"])
def test_one_fits_file_holds_fits_only(form: Any, files: list[Path], tmp_path: Path) -> None:
    message = rf"out\.fits: expected a folder, \*\.zip or \*\.tar for format {form}"
    with pytest.raises(OutputError, match=message):
        cut_many(boxes(files, 2), tmp_path / "out.fits", format=form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["stack", "tiff"])
def test_formats_there_are_not(form: Any, files: list[Path], tmp_path: Path) -> None:
    expected = "format: expected one of fits, npy, png, nc, h5, tif, asdf, source, csv, rgb"
    with pytest.raises(OptionError, match=expected):
        cut_many(boxes(files, 2), tmp_path / "o", format=form)
    assert not list(tmp_path.iterdir())


def test_progress_is_given_to_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.cutting.cut_run.REPORT_S", 0.0)
    image = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((50, 50), np.int16)).writeto(image)
    columns = {"x0": [0] * 300, "y0": [0] * 300, "width": [5] * 300, "height": [5] * 300}
    seen: list[CutProgress] = []
    manifest = swathe.cut_many(
        {"file": [str(image)] * 300, **columns}, tmp_path / "out", progress=seen.append
    )
    assert manifest.meta["ok"] == 300
    assert seen
    assert seen[-1].done == seen[-1].targets == 300
    assert seen[-1].part == pytest.approx(1)
    assert seen[-1].left.median_s < 0.01
    parts = [progress.part for progress in seen]
    assert parts == sorted(parts)


@pytest.mark.parametrize(("kind", "tag"), [("fits", "W/"), ("fits.gz", "")])
def test_an_object_that_changes_after_its_prediction_is_read_anew(
    tmp_path: Path, kind: str, tag: str
) -> None:
    requests = itertools.count()
    versions = []
    for value in (1, 2):
        file = BytesIO()
        fits.PrimaryHDU(np.full((300, 300), value, np.float32)).writeto(file)
        content = file.getvalue()
        versions.append(gzip.compress(content, 0) if kind == "fits.gz" else content)

    class ChangingServer(Handler):
        """A server that has a new version after the first request."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            number = min(next(requests), 1)
            date = f"Mon, 0{1 + 7 * number} Jan 2024 00:00:00 GMT"
            headers = {"ETag": f'{tag}"{number}"', "Last-Modified": date}
            if self.headers["If-Match"] not in (None, headers["ETag"]):
                return self.answer(412, b"", headers)
            if self.headers["If-Unmodified-Since"] not in (None, date):
                return self.answer(412, b"", headers)
            content = versions[number]
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            end = min(last + 1, len(content))
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
            return self.answer(206, content[first:end], headers)

    with serving(ChangingServer) as url:
        rows = {"x0": [4], "y0": [290], "width": [4], "height": [4], "file": [f"{url}/a.{kind}"]}
        table = swathe.cut_many(rows, tmp_path / "out", progress=False)
    assert list(table["status"]) == ["ok"], table["reason"]
    assert np.all(fits.getdata(next((tmp_path / "out").glob("*.fits"))) == 2)
