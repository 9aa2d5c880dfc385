"""Stacks and pictures of `cut_many`: those of jobs of a portal, and what they should be."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from astropy.visualization import make_lupton_rgb
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import OptionError, OutputError, OutputExistsError, TargetsError
from swathe.datasets.scan import scan
from swathe.jobs import Jobs, Options
from swathe.operations import make_results
from swathe.stores.listing import list_objects
from swathe.workers import Runner
from tests.support.fits_frames import Runner as Shell
from tests.support.fits_frames import contents, results, sky_header
from tests.support.job_runner import contents_of, ended

RA, DEC, PIXEL_DEG = 10.0, -1.0, 1e-4
SIDE = 21
SHIFTS = [(0, 0), (3, -2), (-4, 5), (2, 2), (-1, -6)]
BANDS = ["r", "g", "i", "r", "r"]
WAYS = ["mean", "median", "sigma-clipped", "weighted"]


def cut_many(given: Any, output: Path, **options: Any) -> Table:
    return swathe.cut_many(given, output, **{"progress": False, **options})


def pixels_of(number: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(number)
    data = rng.normal(100, 3, (90, 80))
    x, y = 40 + SHIFTS[number][0], 45 + SHIFTS[number][1]
    data[y - 1 : y + 2, x - 1 : x + 2] += 200.0 * (number + 1)
    return data.astype(np.float32)


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """Images around one place, which lies on a pixel of each."""
    folder = tmp_path / "survey"
    folder.mkdir()
    paths = []
    for number, (dx, dy) in enumerate(SHIFTS):
        header = sky_header(RA, DEC, PIXEL_DEG)
        header["CRPIX1"], header["CRPIX2"] = 41.0 + dx, 46.0 + dy
        header["FILTER"], header["EXPTIME"] = BANDS[number], 60.0
        header["DATE-OBS"] = f"2005-09-2{number}T00:00:00"
        paths.append(folder / f"f{number}.fits")
        paths[-1].write_bytes(contents(pixels_of(number), "fit", header))
    return paths


def table_of(images: list[Path], **columns: list[Any]) -> dict[str, list[Any]]:
    count = len(images)
    return {
        "id": [path.stem for path in images],
        "file": [str(path) for path in images],
        "ra": [RA] * count,
        "dec": [DEC] * count,
        "size_deg": [SIDE * PIXEL_DEG] * count,
        **columns,
    }


def around(number: int) -> NDArray[np.float32]:
    """The pixels around the place, by slicing."""
    x, y, reach = 40 + SHIFTS[number][0], 45 + SHIFTS[number][1], SIDE // 2
    return pixels_of(number)[y - reach : y + reach + 1, x - reach : x + reach + 1]


# ---- What it should be


def test_a_stack_is_the_median_of_slices(images: list[Path], tmp_path: Path) -> None:
    found = cut_many(table_of(images), tmp_path / "o", operation="stack", stack="median")
    assert found["status"].tolist() == ["ok"] * 6
    assert found["path"].tolist() == [""] * 5 + ["stack.fits"]
    assert found["id"].tolist() == ["f0", "f1", "f2", "f3", "f4", "stack"]
    with fits.open(tmp_path / "o" / "stack.fits", checksum=True) as hdus:
        hdus.verify("exception")
        expected = np.median([around(number) for number in range(5)], axis=0)
        assert hdus[0].data == pytest.approx(expected, abs=0.01)
        assert hdus[0].header["NCOMBINE"] == 5
        assert hdus[0].header["STACK"] == "median"
        assert hdus["COUNT"].data.tolist() == [[5] * SIDE] * SIDE
    content = (tmp_path / "o" / "stack.fits").read_bytes()
    assert found["bytes"][5] == len(content)
    assert found["sha256"][5] == hashlib.sha256(content).hexdigest()
    meta = found.meta
    assert (meta["operation"], meta["stack"], meta["images"]) == ("stack", "median", 5)
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"stack.fits", "manifest.ecsv"}


@pytest.mark.parametrize("order", [[2, 0, 1], [0, 1, 2]])
def test_a_picture_is_that_of_lupton(order: list[int], images: list[Path], tmp_path: Path) -> None:
    rows = table_of([images[number] for number in order], group=["a"] * 3)
    rows["band"] = [BANDS[number] for number in order]
    if order == [2, 0, 1]:
        cut_many(rows, tmp_path / "o.zip", format="rgb")
    else:
        cut_many(rows, tmp_path / "o.zip", format="rgb", bands=("i", "r", "g"))
    bands = [around(number).astype(float) for number in (2, 0, 1)]
    bands = [band - np.median(band) for band in bands]
    noise = [1.4826 * float(np.median(np.abs(band))) for band in bands]
    expected = make_lupton_rgb(*bands, minimum=0.0, stretch=10 * float(np.mean(noise)), Q=8.0)
    with zipfile.ZipFile(tmp_path / "o.zip") as archive:
        assert archive.namelist() == ["a.png", "manifest.ecsv"]
        picture = np.asarray(Image.open(io.BytesIO(archive.read("a.png"))))
    assert np.abs(picture.astype(int) - expected[::-1].astype(int)).max() <= 1


@pytest.mark.filterwarnings("error:invalid value")
def test_a_picture_of_equal_pixels_is_made_without_warnings(tmp_path: Path) -> None:
    from swathe.operations.kinds.rgb import _picture

    np.save(tmp_path / "flat.npy", np.ones((4, 5)))
    _picture(tmp_path / "flat.png", [tmp_path / "flat.npy"] * 3)
    assert not np.asarray(Image.open(tmp_path / "flat.png")).any()


# ---- What jobs of a portal give


@pytest.mark.more
@pytest.mark.parametrize("way", WAYS)
def test_stacks_are_those_of_a_job(
    way: Any, jobs: Jobs, runner: Runner, images: list[Path], tmp_path: Path
) -> None:
    rows = table_of(images, group=["x", "y", "x", "x", "y"])
    rows["dec"][1] = DEC + 0.0003
    job = ended(jobs, jobs.submit(rows, Options(operation="stack", own={"stack": way}), "me"))
    of_job = {name: contents_of(jobs.result(job.id, name)) for name in ("x.fits", "y.fits")}
    for output in ("o", "o.zip", "o.tar"):
        found = cut_many(rows, tmp_path / output, operation="stack", stack=way)
        assert found["status"].tolist() == ["ok"] * 7
        written = results(tmp_path / output)
        assert written.keys() == of_job.keys()
        for name, content in written.items():
            assert_same_fits(content, of_job[name])
    cut_many(rows, tmp_path / "o.fits", operation="stack", stack=way)
    with fits.open(tmp_path / "o.fits", checksum=True) as hdus:
        hdus.verify("exception")
        names = [hdu.name for hdu in hdus]
        assert (names[0], names[-1]) == ("PRIMARY", "MANIFEST")
        # In the order in which they were done.
        assert sorted(zip(names[1:-1:2], names[2:-1:2], strict=True)) == [
            ("x", "COUNT"),
            ("y", "COUNT"),
        ]
        first = names.index("x")
        with fits.open(io.BytesIO(of_job["x.fits"])) as expected:
            np.testing.assert_array_equal(hdus[first].data, expected[0].data)
            np.testing.assert_array_equal(hdus[first + 1].data, expected[1].data)
    told = b"".join(jobs.manifest(job.id)).decode()
    manifest = Table.read(told, format="ascii.ecsv", fill_values=[])
    for name in ("id", "status", "path"):
        assert found[name].tolist() == manifest[name].tolist()


def assert_same_fits(found: bytes, expected: bytes) -> None:
    """The same pixels and cards. Comments tell the time, and checksums are of them too."""
    with fits.open(io.BytesIO(found)) as ours, fits.open(io.BytesIO(expected)) as theirs:
        differences = fits.FITSDiff(
            ours, theirs, ignore_keywords=["CHECKSUM"], ignore_comments=["DATASUM"]
        )
        assert differences.identical, differences.report()


def test_pictures_are_those_of_a_job(
    jobs: Jobs, runner: Runner, catalog: Catalog, images: list[Path], tmp_path: Path
) -> None:
    for path in images[3:]:
        path.unlink()
    catalog.add_store("disk", str(images[0].parent))
    catalog.add_dataset("sky", "disk", "", None)
    scan(catalog, "sky", list_objects(catalog.store("disk"), "", None))
    place = {"id": ["a"], "ra": [RA], "dec": [DEC], "size_deg": [SIDE * PIXEL_DEG]}
    options = Options(format="rgb", bands=("i", "r", "g"))
    job = ended(jobs, jobs.submit(place, options, "me"))
    rows = table_of(images[:3], group=["a"] * 3, band=BANDS[:3])
    cut_many(rows, tmp_path / "o", format="rgb", bands="i,r,g")
    content = (tmp_path / "o" / "a.png").read_bytes()
    assert content == contents_of(jobs.result(job.id, "a.png"))


@pytest.mark.parametrize("bands", [(), ("i", "r", "g")])
def test_pictures_of_listed_files_are_those_of_a_job(
    jobs: Jobs, runner: Runner, images: list[Path], tmp_path: Path, bands: tuple[str, ...]
) -> None:
    of_a = [2, 0, 1] if not bands else [0, 1, 2, 3]  # the last is of a band that no picture has
    rows = table_of(
        [images[number] for number in [*of_a, 0, 4]],
        group=["a"] * len(of_a) + ["b"] * 2,
        band=[BANDS[number] for number in of_a[:3]] + ["z"] * (len(of_a) - 3) + [BANDS[0], "i"],
    )
    if not bands:
        rows.pop("band")
    found = cut_many(rows, tmp_path / "o", format="rgb", bands=bands)
    job = ended(jobs, jobs.submit(rows, Options(format="rgb", bands=bands), "me"))
    named = {row.id: row for row in jobs.rows(job.id)}
    content = (tmp_path / "o" / "a.png").read_bytes()
    assert content == contents_of(jobs.result(job.id, "a.png"))
    assert (job.counts["ok"], job.counts["error"]) == (4, 3)
    for row in found[found["status"] == "error"]:
        assert row["reason"] in named[row["id"]].reason
    assert "a picture needs" in named["b"].reason
    assert named.keys() == set(found["id"])


def test_an_image_of_a_job_is_used_for_two_bands(
    jobs: Jobs, runner: Runner, images: list[Path], tmp_path: Path
) -> None:
    rows = table_of(images[:2], band=["r", "g"])
    cut_many(rows, tmp_path / "o", format="rgb", bands=("g", "g", "r"))
    job = ended(jobs, jobs.submit(rows, Options(format="rgb", bands=("g", "g", "r")), "me"))
    assert [row.id for row in jobs.rows(job.id)] == ["f1", "f1", "f0", "rgb"]
    content = (tmp_path / "o" / "rgb.png").read_bytes()
    assert content == contents_of(jobs.result(job.id, "rgb.png"))


def test_bands_of_listed_files_need_a_column(jobs: Jobs, images: list[Path]) -> None:
    with pytest.raises(TargetsError, match="expected a column 'band'"):
        jobs.submit(table_of(images[:3]), Options(format="rgb", bands=("i", "r", "g")), "me")


def test_bands_that_no_file_has_are_refused(jobs: Jobs, images: list[Path], tmp_path: Path) -> None:
    rows = table_of(images[:3], band=["u", "u", "z"])
    text = "expected a row of the bands i, r, g in the column 'band', found 'u, z'"
    with pytest.raises(TargetsError, match=text):
        cut_many(rows, tmp_path / "o", format="rgb", bands="i,r,g")
    with pytest.raises(TargetsError, match=text):
        jobs.submit(rows, Options(format="rgb", bands=("i", "r", "g")), "me")


# ---- Going on


def test_only_what_is_not_done_is_stacked_again(images: list[Path], tmp_path: Path) -> None:
    rows = table_of(images, group=["x", "x", "y", "y", "z"])
    kept = images[3].read_bytes()
    images[3].unlink()
    output = tmp_path / "o"
    found = cut_many(rows, output, operation="stack")
    assert found["status"].tolist() == ["ok"] * 3 + ["missing"] + ["ok"] * 4
    assert fits.getheader(output / "y.fits")["NCOMBINE"] == 1
    with pytest.raises(OutputExistsError):
        cut_many(rows, output, operation="stack")
    images[3].write_bytes(kept)
    times = {name: (output / name).stat().st_mtime_ns for name in ("x.fits", "y.fits", "z.fits")}
    # The group z has another image now.
    rows = {name: [*values, values[0]] for name, values in rows.items()}
    rows["group"][5] = "z"
    again = cut_many(rows, output, operation="stack", resume=True)
    assert again["status"].tolist() == ["ok"] * 9
    assert again.meta["done_before"] == 3
    assert fits.getheader(output / "y.fits")["NCOMBINE"] == 2
    assert fits.getheader(output / "z.fits")["NCOMBINE"] == 2
    same = {name for name, time in times.items() if (output / name).stat().st_mtime_ns == time}
    assert same == {"x.fits"}
    assert again["source_version"][0] == found["source_version"][0] != ""
    # Another way to put them together is another result.
    median = cut_many(rows, output, operation="stack", stack="median", resume=True)
    assert median.meta["done_before"] == 0
    assert fits.getheader(output / "x.fits")["STACK"] == "median"


@pytest.mark.parametrize("output", ["o.zip", "o.tar", "o.fits", "o"])
def test_what_is_finished_stays_after_an_interruption(
    output: str, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table_of(images, group=["a", "b", "c", "d", "e"])
    put = make_results.ResultFiles.put

    def interrupted(self: make_results.ResultFiles, *arguments: Any) -> Any:
        ended = put(self, *arguments)
        if ended.row == 6:
            signal.raise_signal(signal.SIGINT)
        return ended

    with monkeypatch.context() as patch:
        patch.setattr(make_results.ResultFiles, "put", interrupted)
        with pytest.raises(KeyboardInterrupt, match="of 10 targets are done"):
            cut_many(rows, tmp_path / output, operation="stack", threads=1)
    again = cut_many(rows, tmp_path / output, operation="stack", resume=True)
    assert again["status"].tolist() == ["ok"] * 10
    assert 4 <= again.meta["done_before"] < 10
    cut_many(rows, tmp_path / f"whole-{output}", operation="stack")
    names = results_of(tmp_path / f"whole-{output}")
    assert results_of(tmp_path / output).keys() == names.keys()
    for name, data in results_of(tmp_path / output).items():
        np.testing.assert_array_equal(data, names[name])
    assert not [path for path in tmp_path.rglob(".*") if path.name.endswith(".part")]


def results_of(output: Path) -> dict[str, NDArray[Any]]:
    """The stacks of an output."""
    if output.suffix == ".fits":
        with fits.open(output) as hdus:
            return {hdu.name: hdu.data.copy() for hdu in hdus[1:-1:2]}
    return {name: fits.getdata(io.BytesIO(data)) for name, data in results(output).items()}


def test_what_went_into_a_result_goes_when_that_is_made(
    images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = make_results.ResultFiles.put
    there: list[int] = []

    def counted(self: make_results.ResultFiles, *arguments: Any) -> Any:
        there.append(len(list(self.scratch.glob("*.npy"))))
        return put(self, *arguments)

    monkeypatch.setattr(make_results.ResultFiles, "put", counted)
    count = 60
    rows = {name: values[:1] * count for name, values in table_of(images).items()}
    rows["group"] = [f"g{row // 2}" for row in range(count)]
    found = cut_many(rows, tmp_path / "o.tar", operation="stack", threads=1)
    assert set(found["status"]) == {"ok"}
    assert len(there) == count // 2
    assert max(there) <= 4
    assert set(os.listdir(tmp_path)) == {"survey", "o.tar", "o.manifest.ecsv"}


STACK_KILLED = """
import os, signal, sys
from swathe import cut_many; from swathe.operations import make_results as making
put = making.ResultFiles.put
def dies(self, ended, content):
    told = put(self, ended, content)
    if told.row == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return told
making.ResultFiles.put = dies
options = {"operation": "stack", "threads": 1, "progress": False}
cut_many(sys.argv[1], sys.argv[2], **options)
"""


@pytest.mark.more
@pytest.mark.parametrize("output", ["o", "o.zip", "o.fits"])
def test_stacks_of_a_run_that_is_killed_are_gone_on_with(
    output: str, images: list[Path], tmp_path: Path
) -> None:
    rows = table_of(images, group=["a", "b", "c", "d", "e"])
    Table(rows).write(tmp_path / "t.csv", format="ascii.csv")
    words = [sys.executable, "-c", STACK_KILLED, str(tmp_path / "t.csv"), str(tmp_path / output)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    if output != "o":
        with pytest.raises(OutputExistsError, match=r"give --resume .* to continue"):
            cut_many(rows, tmp_path / output, operation="stack")
    again = cut_many(rows, tmp_path / output, operation="stack", resume=True)
    assert again["status"].tolist() == ["ok"] * 10
    assert results_of(tmp_path / output).keys() == {
        name if output == "o.fits" else f"{name}.fits" for name in "abcde"
    }
    assert not [path for path in tmp_path.rglob(".*") if path.name.endswith(".part")]


def test_a_run_goes_on_as_it_began(images: list[Path], tmp_path: Path) -> None:
    cut_many(table_of(images), tmp_path / "o")
    with pytest.raises(OutputError, match="expected a run of operation stack and format fits"):
        cut_many(table_of(images), tmp_path / "o", operation="stack", resume=True)


# ---- Faults


def test_a_stack_never_takes_the_place_of_its_images(images: list[Path]) -> None:
    before = {path: path.read_bytes() for path in images}
    rows = table_of(images, group=["f1"] * 5)
    with pytest.raises(OutputError, match="it is the source"):
        cut_many(rows, images[0].parent, operation="stack", overwrite=True)
    assert {path: path.read_bytes() for path in images} == before


def test_what_is_wrong_is_told_of_its_result(images: list[Path], tmp_path: Path) -> None:
    header = fits.getheader(images[4])
    images[4].write_bytes(contents(np.array([pixels_of(4)] * 3), "fit", header))
    rows = table_of(images, group=["ok", "ok", "far", "none", "cube"])
    rows["dec"][2], rows["file"][3] = 45.0, str(tmp_path / "none.fits")
    found = cut_many(rows, tmp_path / "o", operation="stack")
    told = dict(zip(found["id"], zip(found["status"], found["reason"], strict=True), strict=True))
    assert told["ok"] == ("ok", "")
    assert told["far"][0] == "no-overlap"
    assert told["none"][0] == "error"
    assert told["none"][1].startswith("there is no image of it; f3: ")
    assert "more than one plane; give planes" in told["f4"][1]
    assert "more than one plane; give planes" in told["cube"][1]
    assert results(tmp_path / "o").keys() == {"ok.fits"}
    rows["size_deg"][0] = 2.0
    found = cut_many(rows, tmp_path / "large", operation="stack")
    assert found["reason"][5] == ("would be 20000 pixels wide; a combined image may be 8192")


def test_pictures_need_three_images(images: list[Path], tmp_path: Path) -> None:
    rows = table_of(images, group=["a", "a", "b", "b", "b"])
    found = cut_many(rows, tmp_path / "o", format="rgb")
    assert found["status"].tolist() == ["error", "error", "ok", "ok", "ok", "error", "ok"]
    fault = "a picture needs three images, red first; found 2"
    assert found["reason"].tolist()[:1] == [f"a: {fault}"]
    assert found["reason"].tolist()[5] == fault
    rows = table_of(images[:4], group=["a"] * 4, band=BANDS[:4])
    found = cut_many(rows, tmp_path / "p", format="rgb", bands=("i", "r", "g"))
    assert found["reason"][-1] == "a picture needs one image of band r; found 2"
    images[1].unlink()
    rows = table_of(images[:3], band=BANDS[:3])
    found = cut_many(rows, tmp_path / "q", format="rgb", bands=("i", "r", "g"))
    assert found["id"].tolist()[-1] == "rgb"
    assert found["reason"][-1] == "a picture needs all three bands, found 2"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"operation": "stack", "format": "png"},
            OptionError,
            "expected fits for operation stack, found 'png'",
        ),
        (
            {"operation": "sum"},
            OptionError,
            "operation: expected one of cut, algorithm, mse, reduce, rgb, stack, volren, found",
        ),
        ({"operation": "stack", "stack": "sum"}, OptionError, "stack: expected one of mean, "),
        ({"stack": "median"}, OptionError, "stack: expected operation stack, found cut"),
        ({"format": "rgb", "bands": ("i", "r")}, OptionError, "three, red first, found 2"),
        ({"bands": ("i", "r", "g")}, OptionError, "bands: expected none for operation cut"),
        ({"operation": "stack", "mode": "partial"}, OptionError, "mode: expected trim"),
        ({"format": "rgb", "bands": "i,r,g"}, TargetsError, "expected a column 'band'"),
    ],
)
def test_options_that_do_not_go_together(
    options: Any, error: Any, message: str, images: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        cut_many(table_of(images), tmp_path / "o", **options)
    assert not (tmp_path / "o").exists()


def test_boxes_are_no_places_in_the_sky(images: list[Path], tmp_path: Path) -> None:
    boxes = {"file": [str(images[0])], "x0": [1], "y0": [1], "width": [5], "height": [5]}
    with pytest.raises(TargetsError, match="a stack or rgb needs targets in the sky: ra, dec"):
        cut_many(boxes, tmp_path / "o", operation="stack")
    rows = table_of(images[:2])
    rows.pop("size_deg")
    found = cut_many(rows | {"size": ['3"', "9pix"]}, tmp_path / "o", operation="stack")
    assert found["status"].tolist() == ["ok", "error", "ok"]
    assert "expected one angle for a target of a stack or rgb" in found["reason"][1]


# ---- In the shell


def test_stacks_and_pictures_in_the_shell(run: Shell, images: list[Path], tmp_path: Path) -> None:
    rows = table_of(images[:3], group=["a"] * 3, band=BANDS[:3])
    Table(rows).write(tmp_path / "t.csv", format="ascii.csv")
    listed = tmp_path / "t.csv"
    run(
        "cut",
        "--targets",
        listed,
        "--operation",
        "stack",
        "--stack",
        "median",
        "-o",
        tmp_path / "s",
    )
    assert fits.getheader(tmp_path / "s" / "a.fits")["STACK"] == "median"
    run("cut", "--targets", listed, "--format", "rgb", "--bands", "i,r,g", "-o", tmp_path / "p.zip")
    cut_many(rows, tmp_path / "p", format="rgb", bands=("i", "r", "g"))
    assert results(tmp_path / "p.zip") == results(tmp_path / "p")
    assert os.listdir(tmp_path / "s") != []
