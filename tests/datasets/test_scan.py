"""`swathe dataset` and `swathe find`: from a folder of files to a table to cut from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.table import Table
from astropy.time import Time
from sqlalchemy import text

import swathe
from swathe.catalog import Catalog, GranuleQuery
from swathe.core import errors
from swathe.core.errors import DatasetError
from swathe.datasets import scan as scanning
from swathe.datasets.read_granules import granules_of, read_headers
from swathe.datasets.store_prefix import split_place
from swathe.stores.listing import ListedObject, UnlistedObject, matches
from tests.support.fits_frames import Runner, fits_bytes, frame, noise, sky_header
from tests.support.servers import NGINX, FileServer, nginx

RA = [10.0, 359.99, 200.0]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder of three frames in two folders, and what is none."""
    folder = tmp_path / "archive"
    (folder / "run1").mkdir(parents=True)
    (folder / "run2").mkdir()
    for number, ra in enumerate(RA):
        date = f"2005-09-2{number}T04:30:00"
        path = folder / f"run{1 + number // 2}" / f"f{number}.fits"
        path.write_bytes(frame(ra, DATE_OBS=date, EXPTIME=54.0, FILTER="r", ORIGIN="SDSS"))
    (folder / "readme.txt").write_text("hello")
    (folder / ".hidden.fits").write_bytes(b"no")
    return folder


@pytest.fixture
def store(run: Runner, archive: Path) -> Path:
    run("store", "add", "disk", archive)
    return archive


def add(run: Runner, *more: object, code: int = 0) -> Any:
    return run.json("dataset", "add", "sdss", "disk:", "--pattern", "*.fits", *more, code=code)


def files(table: Table) -> list[str]:
    return [str(name) for name in table["file"]]


# ---- From files to cutouts


def test_add_find_and_cut(run: Runner, store: Path, tmp_path: Path) -> None:
    report = add(run)
    assert (report["listed"], report["read"], report["images"]) == (3, 3, 3)
    assert report["faults"] == []
    table = swathe.find((10.0, -1.0))
    assert files(table) == ["disk:run1/f0.fits"]
    (row,) = table
    assert (row["hdu"], row["dataset"], row["band"], row["shape"]) == (0, "sdss", "r", "400 x 300")
    start = Time("2005-09-20T04:30:00", scale="utc").mjd
    assert row["t_min"] == pytest.approx(start)
    assert row["t_max"] == pytest.approx(start + 54 / 86400)
    assert str(row["s_region"]).startswith("POLYGON ICRS 10.0")
    table["size_deg"] = 0.002
    manifest = swathe.cut_many(table, tmp_path / "cut")
    assert list(manifest["status"]) == ["ok"]
    expected = swathe.cut(store / "run1/f0.fits", sky=(10.0, -1.0), size_deg=0.002)
    with fits.open(tmp_path / "cut" / "0.fits") as hdus:
        assert (np.asarray(hdus[0].data) == expected.data).all()


def test_every_way_to_ask(run: Runner, store: Path) -> None:
    add(run)
    # 1e-4 degrees a pixel, 400 x 300: f1 shows RA 0 too.
    assert files(swathe.find((0.005, -1.0))) == ["disk:run1/f1.fits"]
    assert files(swathe.find((360.005, -1.0))) == ["disk:run1/f1.fits"]
    assert files(swathe.find(SkyCoord(359.99, -1.0, unit="deg").galactic)) == ["disk:run1/f1.fits"]
    assert files(swathe.find((10.0, 1.0))) == []
    assert len(swathe.find((10.0, 1.0), 1.9)) == 0
    assert len(swathe.find((10.0, 1.0), 2.0)) == 1
    assert len(swathe.find((10.0, 1.0), 180.0)) == 3
    assert len(swathe.find()) == 3
    assert len(swathe.find(dataset="sdss", band="r")) == 3
    assert len(swathe.find(band="g")) == 0
    assert len(swathe.find(band=(5e-7, 6e-7))) == 3
    assert len(swathe.find(band=(1e-7, 2e-7))) == 0
    assert len(swathe.find(band="5e-7,6e-7")) == 3
    assert len(swathe.find(band="1e-7,2e-7")) == len(swathe.find(band="r,g")) == 0
    assert files(swathe.find(time=("2005-09-21", "2005-09-21T23:00:00"))) == ["disk:run1/f1.fits"]
    assert len(swathe.find(time=(53_633, Time("2005-09-22", scale="utc")))) == 2
    assert list(swathe.find((0, 0))["s_ra"]) == []


def test_find_on_the_command_line(run: Runner, store: Path, tmp_path: Path) -> None:
    add(run)
    (found,) = run.json("find", "--sky", "10.0", "-1.0", "--radius", "0.1")["images"]
    assert found["file"] == "disk:run1/f0.fits"
    assert found["name"] is None and found["s_ra"] == pytest.approx(10.0, abs=0.01)
    assert "disk:run1/f0.fits" in run("find", "--sky", "10.0", "-1.0")
    hint = run("find", "--sky", "10.0", "50.0")
    assert hint == (
        "no image matches: searched 3 images in 1 dataset, by position (s_region); try a larger "
        "--radius or swathe dataset sync NAME, which reads new files\n"
    )
    shown, hint = run.told("find", "--band", "g", "--dataset", "sdss", "-o", tmp_path / "none.csv")
    assert "0 images" in shown
    assert "by band (band, em_min, em_max); try without --band or without --dataset" in hint
    assert run.json("find", "--band", "g") == {"images": []}
    out = tmp_path / "t.ecsv"
    run("find", "--sky", "10", "-1", "--size", "0.002deg", "-o", out)
    run("cut", "--targets", out, "-o", tmp_path / "cut", "-q")
    assert (tmp_path / "cut" / "0.fits").exists()
    assert len(run.json("find", "--band", "5e-7,6e-7")["images"]) == 3
    assert len(run.json("find", "--time", "53633", "2005-09-22T00:00")["images"]) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sky": (10.0, 91.0)}, "declination"),
        ({"sky": (float("nan"), 1.0)}, "declination"),
        ({"sky": (10.0,)}, r"sky: expected \(ra, dec\)"),
        ({"sky": "here"}, r'"here" is not a position: expected RA Dec, or the name'),
        ({"sky": (1, 2), "radius_deg": -1}, "0 to 180"),
        ({"radius_deg": 1.0}, "needs a position"),
        ({"time": (5, 4)}, "the start before the end"),
        ({"time": 5}, "a start and an end"),
        ({"time": ("yesterday", 5)}, "'yesterday'"),
        ({"time": (float("inf"), 5)}, "finite"),
        ({"band": ""}, "a name"),
        ({"band": (2, 1)}, "the shorter first"),
        ({"band": 5}, "two wavelengths"),
    ],
)
def test_senseless_searches(run: Runner, given: dict[str, Any], said: str) -> None:
    with pytest.raises(errors.DatasetError, match=said):
        swathe.find(**given)


def test_unknown_dataset(run: Runner) -> None:
    with pytest.raises(errors.NoSuchDatasetError):
        swathe.find(dataset="nothing")
    for words in (
        ("dataset", "show", "no"),
        ("dataset", "sync", "no"),
        ("dataset", "remove", "no"),
    ):
        assert "no dataset 'no'" in run(*words, code=2)
    assert run.json("dataset", "show", "no", code=2)["kind"] == "NoSuchDatasetError"


# ---- The commands


def test_list_show_remove(run: Runner, store: Path) -> None:
    assert run("dataset", "list").startswith("no datasets yet")
    assert "the catalogue has no images; add some: swathe dataset add" in run("find")
    add(run)
    (told,) = run.json("dataset", "list")["datasets"]
    assert (told["name"], told["objects"], told["granules"]) == ("sdss", 3, 3)
    assert told["states"] == {"disk": {"ok": 3}}
    assert run.json("dataset", "show", "sdss")["faults"] == []
    shown = run("dataset", "show", "sdss")
    assert "3 objects, 3 images" in shown and "names: *.fits" in shown
    assert "sdss" in run("dataset", "list")
    assert "already" in run("dataset", "add", "sdss", "disk:", code=2)
    assert run.json("dataset", "remove", "sdss") == {"removed": "sdss"}
    assert run.json("dataset", "list") == {"datasets": []}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("sdss", "nowhere:x"), 2, "no store 'nowhere'"),
        (("sdss", "disk"), 2, "STORE:PREFIX"),
        (("sdss", "https://host/x"), 2, "STORE:PREFIX"),
        (("sdss", "disk:../x"), 2, "a folder in the store"),
        (("x", "disk:"), 2, "a dataset's name"),
        (("sdss", "disk:", "--pattern", ""), 2, "a pattern is"),
        (("sdss", "disk:", "--pattern", "[a"), 2, "a pattern is"),
        (("sdss", "disk:gone"), 3, "no such folder"),
        (("sdss", "disk:", "--objects", "/no/list"), 3, "no such list"),
        (("sdss", "tape:"), 3, "https://127.0.0.1:1/x/: its index cannot be read"),
    ],
)
def test_what_cannot_be_added_leaves_nothing(
    run: Runner, store: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    run("store", "add", "tape", "root://127.0.0.1:1/x")
    assert said in run("dataset", "add", *words, code=code)
    assert run.json("dataset", "list") == {"datasets": []}


def test_calibration_level(run: Runner, store: Path) -> None:
    add(run, "--calib", 1)
    assert run.json("dataset", "show", "sdss")["calib_level"] == 1
    run("dataset", "sync", "sdss")
    assert "calibration level 1" in run("dataset", "show", "sdss")
    run("dataset", "sync", "sdss", "--calib", 3)
    assert run.json("dataset", "list")["datasets"][0]["calib_level"] == 3
    run("dataset", "sync", "sdss", "--calib", 5, code=2)


def test_prefix_and_pattern(run: Runner, store: Path) -> None:
    assert run.json("dataset", "add", "one", "disk:run1/")["listed"] == 2
    assert run.json("dataset", "add", "two", "disk:", "--pattern", "run2/*.fits")["listed"] == 1
    assert run.json("dataset", "add", "three", "disk:run2/f2.fits")["listed"] == 1
    assert files(swathe.find(dataset="two")) == ["disk:run2/f2.fits"]
    assert len(swathe.find(dataset="one")) == 2
    told, note = run.told("dataset", "add", "none", "disk:", "--pattern", "*.nothing")
    assert told.startswith("none: 0 objects") and "swathe dataset remove none" in note
    again = run("dataset", "add", "none", "disk:", "--pattern", "*.fits", code=2)
    assert "first swathe dataset remove none" in again


def test_split_place() -> None:
    assert split_place("disk:") == ("disk", "")
    assert split_place("disk:/a//b/") == ("disk", "a/b")
    assert split_place("disk:.") == ("disk", "")
    for place in ("/data/frames", "frames", "s3://bucket/a"):
        with pytest.raises(DatasetError, match=r"STORE:PREFIX.*: swathe store add NAME FOLDER$"):
            split_place(place)


def test_objects_of_a_list(run: Runner, store: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("# two\nrun1/f0.fits\n\nrun2/f2.fits\nrun2/f2.fits\nrun2/gone.fits\n")
    report = run.json("dataset", "add", "some", "disk:", "--objects", listed, code=1)
    assert (report["listed"], report["read"]) == (3, 2)
    assert [fault["path"] for fault in report["faults"]] == ["run2/gone.fits"]
    # A list tells no dates: objects are opened, and their headers read where they changed.
    again = run.json("dataset", "sync", "some", "--objects", listed, code=1)
    assert (again["read"], again["unchanged"]) == (0, 2)
    (store / "run1/f0.fits").write_bytes(frame(50.0))
    again = run.json("dataset", "sync", "some", "--objects", listed, code=1)
    assert (again["read"], again["unchanged"]) == (1, 1)
    assert len(swathe.find((50.0, -1.0))) == 1
    for line in ("/abs", "../x", "s3://b/x"):
        listed.write_text(f"run1/f0.fits\n{line}\n")
        assert "line 2" in run("dataset", "sync", "some", "--objects", listed, code=2)


# ---- Faults


def test_faults_are_told_and_end_nothing(run: Runner, store: Path) -> None:
    (store / "text.fits").write_text("no FITS at all")
    (store / "empty.fits").write_bytes(b"")
    (store / "lost.fits").symlink_to("nowhere")
    odd = fits.ImageHDU(noise(2), sky_header())
    odd.header["CTYPE1"] = "RA---XYZ"
    odd.header["CTYPE2"] = "DEC--TAN"
    plain = fits.ImageHDU(noise(3))
    (store / "odd.fits").write_bytes(fits_bytes(fits.PrimaryHDU(), odd, plain))
    os.mkfifo(store / "pipe.fits")
    report = add(run, code=1)
    faults = {fault["path"]: fault["reason"] for fault in report["faults"]}
    assert set(faults) >= {"text.fits", "empty.fits"}
    assert "odd.fits" not in faults and report["images"] == 5
    assert all(faults.values())
    shown = run.json("dataset", "show", "sdss")
    assert {fault["path"] for fault in shown["faults"]} >= {"text.fits", "empty.fits"}
    assert "text.fits" in run("dataset", "show", "sdss")
    table = swathe.find(dataset="sdss")
    assert [row["file"] for row in table if row["s_ra"] is np.ma.masked] == ["disk:odd.fits"] * 2
    # Once mended it is read; what did not change is not read again, and still told.
    (store / "text.fits").write_bytes(frame(77.0))
    again = run.json("dataset", "sync", "sdss", code=1)
    assert again["read"] == 1 and len(again["faults"]) == len(faults) - 1
    assert len(swathe.find((77.0, -1.0))) == 1


def test_names_that_are_no_text_and_paths_too_long(run: Runner, store: Path) -> None:
    (store / os.fsdecode(b"\xff.fits")).write_bytes(b"x")
    deep = store.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    (deep / "x.fits").write_bytes(b"x")
    report = add(run, code=1)
    assert sorted(fault["reason"][:15] for fault in report["faults"]) == [
        "its name is not",
        "its path has 10",
    ]
    assert report["read"] == 3


def test_sync_reads_all_again_when_told_to(run: Runner, store: Path) -> None:
    add(run)
    with Catalog.open() as catalog, catalog._writing() as session:
        session.execute(text("UPDATE granules SET facility = NULL, band = 'wrong'"))
    assert run.json("dataset", "sync", "sdss")["read"] == 0
    assert len(swathe.find(dataset="sdss", band="r")) == 0
    report = run.json("dataset", "sync", "sdss", "--reread")
    assert (report["read"], report["unchanged"], report["vanished"]) == (3, 0, 0)
    assert len(swathe.find(dataset="sdss", band="r")) == 3


def test_vanished_folder(run: Runner, store: Path) -> None:
    add(run)
    shutil.rmtree(store)
    assert "no such folder" in run("dataset", "sync", "sdss", code=3)
    assert len(swathe.find(dataset="sdss")) == 3


# ---- Syncing


def test_sync_reads_only_what_is_new_or_changed(run: Runner, store: Path) -> None:
    add(run)
    nothing = run.json("dataset", "sync", "sdss")
    assert (nothing["read"], nothing["unchanged"], nothing["vanished"]) == (0, 3, 0)
    (store / "run1/f0.fits").write_bytes(frame(60.0))
    kept = (store / "run1/f1.fits").rename(store / "away")
    (store / "new.fits").write_bytes(frame(70.0))
    report = run.json("dataset", "sync", "sdss")
    told = [report[name] for name in ("read", "unchanged", "vanished", "listed")]
    assert told == [2, 1, 1, 3]
    assert files(swathe.find(dataset="sdss")) == [
        "disk:new.fits",
        "disk:run1/f0.fits",
        "disk:run2/f2.fits",
    ]
    assert len(swathe.find((10.0, -1.0))) == 0
    assert len(swathe.find((60.0, -1.0))) == 1
    kept.rename(store / "run1/f1.fits")
    back = run.json("dataset", "sync", "sdss")
    assert (back["read"], back["returned"], back["unchanged"]) == (0, 1, 4)
    assert len(swathe.find((359.99, -1.0))) == 1


def test_a_killed_scan_goes_on(run: Runner, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "KEEP_OBJECTS", 1)
    real = granules_of
    seen: list[str] = []

    def dying(path: str, headers: Any) -> Any:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(path)
        return real(path, headers)

    monkeypatch.setattr(scanning, "granules_of", dying)
    run("dataset", "add", "sdss", "disk:", "--pattern", "*.fits", code=130)
    assert "first scan not finished" in run("dataset", "list")
    assert len(swathe.find(dataset="sdss")) == 2
    assert "another place" in run("dataset", "add", "sdss", "disk:run1", code=2)
    monkeypatch.setattr(scanning, "granules_of", real)
    report = add(run)
    assert (report["read"], report["unchanged"]) == (1, 2)
    assert len(swathe.find(dataset="sdss")) == 3


def test_what_cannot_be_reached_is_tried_again(
    run: Runner, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = read_headers

    def failing(path: str, known: str | None) -> Any:
        if path.endswith("f1.fits"):
            raise errors.SourceError(f"{path}: the line is broken")
        return real(path, known)

    monkeypatch.setattr(scanning, "read_headers", failing)
    report = add(run, code=1)
    assert [fault["reason"] for fault in report["faults"]] == [
        "disk:run1/f1.fits: the line is broken"
    ]
    monkeypatch.setattr(scanning, "read_headers", real)
    assert run.json("dataset", "sync", "sdss")["read"] == 1
    assert run.json("dataset", "show", "sdss")["faults"] == []


def test_folders_that_cannot_be_listed_do_not_vanish(run: Runner, store: Path) -> None:
    add(run)
    with Catalog.open() as catalog:
        objects: list[ListedObject | UnlistedObject] = [
            UnlistedObject("run1", "busy"),
            ListedObject("run2/f2.fits"),
        ]
        report = scanning.scan(catalog, "sdss", objects)
        assert report.vanished == 0 and len(catalog.find_granules(GranuleQuery())) == 3
        report = scanning.scan(catalog, "sdss", objects[1:])
        assert report.vanished == 2 and len(catalog.find_granules(GranuleQuery())) == 1


# ---- Servers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed")
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.mark.parametrize("kind", ["html", "json"])
def test_listing_of_a_server(run: Runner, server: FileServer, archive: Path, kind: str) -> None:
    place = server.folder / f"list-{kind}"
    shutil.copytree(archive, place)
    (place / "a b%20&ü.fits").write_bytes(frame(33.0))
    run("store", "add", "web", f"{server.url}/{kind}")
    report = run.json("dataset", "add", "web1", f"web:list-{kind}", "--pattern", "*.fits")
    assert (report["listed"], report["read"], report["faults"]) == (4, 4, [])
    assert files(swathe.find((33.0, -1.0))) == [f"web:list-{kind}/a b%20&ü.fits"]
    again = run.json("dataset", "sync", "web1")
    assert (again["read"], again["unchanged"]) == (0, 4)
    (place / "run1/f0.fits").unlink()
    assert run.json("dataset", "sync", "web1")["vanished"] == 1
    assert "no such folder" in run("dataset", "add", "web2", "web:nowhere", code=3)


def test_a_server_that_lists_nothing(run: Runner, server: FileServer, archive: Path) -> None:
    shutil.copytree(archive, server.folder / "plain")
    (server.folder / "page").mkdir()
    (server.folder / "page/index.html").write_text("<html>hello</html>")
    run("store", "add", "web", server.url)
    assert "may not be read: status 403" in run("dataset", "add", "w1", "web:plain", code=3)
    assert "without links" in run("dataset", "add", "w1", "web:page", code=2)
    run("store", "add", "dead", "http://127.0.0.1:1")
    assert "cannot be read" in run("dataset", "add", "w1", "dead:", code=3)


def test_patterns() -> None:
    assert matches("a/b/c.fits", "a", "*.fits")
    assert matches("a/b/c.fits", "a", "b/*.fits")
    assert not matches("a/b/c.fits", "a", "c/*")
    assert not matches("a/b/c.FITS", "", "*.fits")


@pytest.mark.more
def test_killed_for_good(run: Runner, store: Path, tmp_path: Path) -> None:
    """A process that ends without a word leaves a scan to go on with."""
    code = (
        "import os\n"
        "from swathe.datasets import scan\n"
        "scan.KEEP_OBJECTS = 1\n"
        "real, seen = scan.granules_of, []\n"
        "def dying(path, headers):\n"
        "    if len(seen) == 2: os._exit(9)\n"
        "    seen.append(path)\n"
        "    return real(path, headers)\n"
        "scan.granules_of = dying\n"
        "import sys\n"
        "sys.argv = ['swathe', 'dataset', 'add', 'sdss', 'disk:', '--pattern', '*.fits']\n"
        "from swathe.cli.app import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 9
    report = add(run)
    assert (report["read"], report["unchanged"]) == (1, 2)
