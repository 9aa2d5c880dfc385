"""Algorithms that run in the sandbox: what they get, what they write, and how they fail."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.algorithms.box_python import BoxPython
from swathe.algorithms.group_run import BoxSettings, GroupRun
from swathe.core.errors import (
    AlgorithmError,
    NotFoundError,
    OptionError,
    OutputExistsError,
    SandboxUnavailableError,
)

ROOT = Path(__file__).parents[2]
HEADER = """\
# /// script
# dependencies = ["numpy"]
# [tool.swathe.algorithm]
# name = "sums"
# version = "1"
# inputs.images = {group = "day", count = "1..2", window = {before = 1}}
# inputs.offset = {file = "offset.txt"}
# outputs.table = {media_type = "text/csv"}
# outputs.more = {media_type = "application/json", optional = true}
# parameters.factor = {type = "number", default = 1}
# resources = {wall = "20 s"}
# ///
import numpy as np
"""
SUMS = f"""{HEADER}
def run(images, offset, table, more, factor):
    print("sums of", len(images))
    add = float(offset.read_text())
    with table.open("w") as lines:
        for image in images:
            sum = np.fromfile(image, ">i2", offset=2880).sum()
            print(image.id, image.role, image.start.isoformat(), sum * factor + add, file=lines)
"""


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """Three images of two days; the sum of image n is n."""
    paths = []
    for number, day in enumerate((1, 2, 2), 1):
        paths.append(tmp_path / f"{number}.fits")
        header = fits.Header({"DATE-OBS": f"2005-05-0{day}T0{number}:00:00", "EXPTIME": 10.0})
        fits.PrimaryHDU(np.array([[number]], np.int16), header).writeto(paths[-1])
    (tmp_path / "offset.txt").write_text("100")
    return paths


def attempt(source: str, images: list[Path], settings: BoxSettings, **options: Any) -> GroupRun:
    """Run a source on the last image alone."""
    path = images[0].parent / "source.py"
    path.write_text(source)
    files = {"offset": images[0].parent / "offset.txt"}
    (run,) = swathe.try_algorithm(path, images[2:], files=files, settings=settings, **options)
    return run


def test_groups_are_run_one_by_one(
    images: list[Path], tmp_path: Path, settings: BoxSettings
) -> None:
    (tmp_path / "sums.py").write_text(SUMS)
    ended: list[str] = []
    runs = swathe.try_algorithm(
        tmp_path / "sums.py",
        reversed(images),
        files={"offset": tmp_path / "offset.txt"},
        parameters={"factor": "2"},
        output=tmp_path / "results",
        settings=settings,
        report=lambda run: ended.append(run.group),
    )
    assert ended == [run.group for run in runs] == ["2005-05-01", "2005-05-02"]
    assert [(run.problem, run.log) for run in runs] == [("", "sums of 1\n"), ("", "sums of 3\n")]
    table = tmp_path / "results" / "2005-05-02" / "table.csv"
    assert runs[1].outputs == {"table": table}
    assert table.read_text().splitlines() == [
        "1.fits before 2005-05-01T01:00:00+00:00 102.0",
        "2.fits group 2005-05-02T02:00:00+00:00 104.0",
        "3.fits group 2005-05-02T03:00:00+00:00 106.0",
    ]
    assert runs[1].input_bytes == sum(path.stat().st_size for path in images[1:])
    assert runs[1].output_bytes == table.stat().st_size
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "2005-05-01",
        "2005-05-02",
    ]
    with pytest.raises(OutputExistsError, match=r"table\.csv: exists"):
        attempt(SUMS, images, settings, output=tmp_path / "results")


@pytest.mark.parametrize(
    ("body", "problem", "log"),
    [
        ("raise ValueError('no such band')", "exit code 1", "ValueError: no such band"),
        ("pass", "table", ""),
        ("table.write_bytes(b'\\0\\1')", "output table: expected text/csv, found b'", ""),
        ("table.write_text('a'); more.write_text('{')", "output more: expected JSON", ""),
        ("table.symlink_to('/etc/passwd')", "", ""),
        ("open('/etc/passwd', 'a')", "exit code 1", "Error"),
        ("while True: pass", " 2 s", ""),
    ],
)
def test_a_run_that_fails_says_why(
    body: str, problem: str, log: str, images: list[Path], settings: BoxSettings, tmp_path: Path
) -> None:
    source = f"{HEADER}\ndef run(images, offset, table, more, factor):\n    {body}\n"
    source = source.replace('"20 s"', '"2 s"') if "while" in body else source
    run = attempt(source, images, settings, output=tmp_path / "results")
    assert run.problem
    assert problem in run.problem
    assert log in run.log
    assert "box_main" not in run.log
    assert (run.outputs, list((tmp_path / "results").rglob("*"))) == ({}, [])


def test_inputs_that_do_not_fit_are_refused(images: list[Path], tmp_path: Path) -> None:
    source = tmp_path / "sums.py"
    source.write_text(SUMS)
    offset = {"offset": tmp_path / "offset.txt"}
    with pytest.raises(AlgorithmError, match=r"one for each input \(offset\), found none"):
        swathe.try_algorithm(source, images)
    with pytest.raises(NotFoundError, match=r"4\.fits: expected a file, found none"):
        swathe.try_algorithm(source, [tmp_path / "4.fits"], files=offset)
    with pytest.raises(AlgorithmError, match=r"factor: expected a finite number, found 'x'"):
        swathe.try_algorithm(source, images, files=offset, parameters={"factor": "x"})
    (tmp_path / "dark.fits").write_bytes(
        fits.PrimaryHDU(np.zeros((2, 2))).header.tostring().encode()
    )
    with pytest.raises(AlgorithmError, match=r"dark\.fits: expected a time"):
        swathe.try_algorithm(source, [tmp_path / "dark.fits"], files=offset)


def test_the_example_equals_swathe_reduce(
    data: Path, tmp_path: Path, settings: BoxSettings
) -> None:
    swaths = [str(data / "swath" / f"SS_MODIS_{name}-JPL-L2P-v2014.0.nc") for name in "AT"]
    (run,) = swathe.try_algorithm(
        ROOT / "examples" / "algorithms" / "surface_temperature.py",
        swaths,
        parameters={"least_kelvin": 290},
        output=tmp_path,
        settings=settings,
    )
    assert (run.group, run.problem, run.log) == ("2019-08-05", "", "")
    array = "/sea_surface_temperature"
    reference = swathe.reduce(
        swaths, grid="0.25deg", array=array, where="sea_surface_temperature >= 290"
    )
    with swathe.open(run.outputs["grid"]) as grid:
        assert int(reference["count"].sum()) > 7000
        np.testing.assert_array_equal(grid["/count"].data, reference["count"])
        np.testing.assert_allclose(grid["/mean"].data, reference["mean"], rtol=1e-6)
    assert run.outputs["log"].read_text().count("\n") == 3
    assert run.input_bytes > 50 * run.output_bytes


@pytest.mark.parametrize(
    ("name", "product", "array", "mean", "scale"),
    [
        ("temperature", "MOD11_L2", "LST", "mean", 0.02),
        ("cloud", "MOD06_L2", "Cloud_Fraction", "cover", 0.01),
        ("aerosol", "MOD05_L2", "Optical_Depth_Land_And_Ocean", "depth", 0.001),
    ],
)
def test_reductions_of_swaths_keep_number_and_mean_of_pixels(
    name: str, product: str, array: str, mean: str, scale: float,
    tmp_path: Path, settings: BoxSettings,
) -> None:  # fmt: skip
    folder = swathe.sample_swaths(tmp_path, days=1, granules=3, shape=(60, 45)) / product
    granules = sorted(map(str, folder.iterdir()))
    (run,) = swathe.try_algorithm(
        ROOT / "examples" / "algorithms" / f"modis_{name}.py",
        granules,
        parameters={"worst_quality": 3} if name == "temperature" else {},
        output=tmp_path / "out",
        settings=settings,
    )
    assert run.problem == ""
    fields: list[Any] = [swathe.open(path)[f"/mod_swath/Data Fields/{array}"] for path in granules]
    values = np.concatenate([each.data[each.data != each.fill] for each in fields])
    with swathe.open(run.outputs["grid"]) as grid:
        counts, means = grid["/count"].data, grid[f"/{mean}"].data
    assert counts.sum() == values.size
    assert ((counts > 0) == ~np.isnan(means)).all()
    total = float(np.nansum(counts * means.astype("f8")))
    assert total / values.size == pytest.approx(scale * values.mean(), rel=1e-5)


def test_images_of_a_collection_are_screened(tmp_path: Path, settings: BoxSettings) -> None:
    """Each image is a group; one without pixels fails alone."""
    pydicom = pytest.importorskip("pydicom")
    files = Path(pydicom.__file__).parent / "data" / "test_files"
    flat = pydicom.dcmread(files / "CT_small.dcm")
    flat.PixelData = np.full(flat.Rows * flat.Columns, 7, "<i2").tobytes()
    flat.save_as(tmp_path / "flat.dcm")
    images = [tmp_path / "flat.dcm", *(files / f"{n}.dcm" for n in ("CT_small", "rtplan"))]
    runs = swathe.try_algorithm(
        ROOT / "examples" / "algorithms" / "dicom_screening.py",
        images,
        output=tmp_path / "out",
        settings=settings,
    )
    found = [json.loads(run.outputs["screening"].read_text()) for run in runs if not run.problem]
    asked = {each["image"].rpartition("/")[2]: each["look_at"] for each in found}
    assert asked == {"flat.dcm": ["empty"], "CT_small.dcm": []}
    (failed,) = [run for run in runs if run.problem]
    assert failed.group == "rtplan.dcm" and "it has no pixels" in failed.log
    pixels = pydicom.dcmread(files / "CT_small.dcm").pixel_array
    low, high = np.percentile(pixels, [1, 99])
    assert found[-1]["contrast"] == round(float(high - low) / 65535, 6)


def test_arrays_of_granules_are_read_by_name(
    data: Path, tmp_path: Path, settings: BoxSettings
) -> None:
    source = tmp_path / "latitudes.py"
    source.write_text(
        HEADER.replace("inputs.offset", "inputs.x").replace(
            '# inputs.x = {file = "offset.txt"}\n', ""
        )
        + "def run(images, table, more, factor): table.write_text(str(images[0]['lat'][0, 0]))\n"
    )
    swath = data / "swath" / "SS_MODIS_A-JPL-L2P-v2014.0.nc"
    (run,) = swathe.try_algorithm(source, [swath], output=tmp_path / "out", settings=settings)
    assert run.problem == ""
    with swathe.open(swath) as file:
        assert run.outputs["table"].read_text() == str(file["/lat"][0, 0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as another user")
def test_an_interpreter_that_users_cannot_reach_names_the_folder(
    settings: BoxSettings, images: list[Path]
) -> None:
    private = images[0].parent / "private"
    private.mkdir(mode=0o700)
    executable = private / "python3"
    executable.symlink_to("/usr/bin/python3")
    barred = replace(settings, python=BoxPython(str(executable), (private,)))
    expected = rf"cannot reach {executable}: {private} has mode 0700"
    with pytest.raises(SandboxUnavailableError, match=expected):
        barred.check_python()
    with pytest.raises(SandboxUnavailableError, match=expected):
        attempt(SUMS, images, barred)
    private.chmod(0o711)
    barred.check_python()


def test_an_interpreter_that_does_not_exist_is_an_error(settings: BoxSettings) -> None:
    absent = replace(settings, python=BoxPython("/usr/bin/no-python", ()))
    with pytest.raises(OptionError, match="/usr/bin/no-python"):
        absent.check_python()
    settings.check_python()
