"""The commands of objects on tape, with the model library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import OptionError
from swathe.datasets.tape_names import tape_names
from swathe.stores.front import readers
from swathe.stores.staging import on_disk, stage_wait, store_staging
from swathe.stores.staging.model_library import ModelLibrary, sample_library
from tests.support.fits_frames import Runner
from tests.support.tape_library import LibraryStager

NAMES = [f"tape:frame-{number:04}.fits" for number in range(1, 5)]


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> ModelLibrary:
    return sample_library(tmp_path_factory.mktemp("tape") / "t", objects=4, media=2, scale=1e-3)


@pytest.fixture
def library(
    run: Runner, library_folder: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModelLibrary]:
    monkeypatch.setattr(stage_wait, "FIRST_PAUSE_S", 0.02)
    stager = LibraryStager(library_folder)
    monkeypatch.setattr(store_staging, "stager_of", lambda _: stager)
    monkeypatch.setattr("swathe.stores.staging.stagers.stager_of", lambda _: stager)
    options = {"staging": "command", "staging_command": str(library_folder.program)}
    swathe.stores.add("tape", str(library_folder.disk), tier="tape", options=options)
    on_disk.forget_places()
    yield library_folder
    library_folder.evict([name.partition(":")[2] for name in NAMES])


def test_a_library_is_made_and_added_as_a_store(run: Runner, tmp_path: Path) -> None:
    words = run("sample", "tape", tmp_path / "t", "--frames", "2").splitlines()[-1].split()
    assert words[:4] == ["swathe", "store", "add", "tape"]
    run(*words[1:])
    cut = ("cut", "tape:frame-0001.fits", "--box", "1 2 30 40", "-o", tmp_path / "c.fits")
    assert "stage it: swathe tape stage tape:frame-0001.fits" in run(*cut, code=3)
    out, notes = run.told("ls", "tape:")
    assert not out and "swathe dataset add NAME tape: --objects FILE" in notes
    run("sample", "survey", tmp_path / "u", code=2)


def test_objects_are_staged_shown_and_released(run: Runner, library: ModelLibrary) -> None:
    out, _ = run.told("tape", "stage", NAMES[0], NAMES[1], "--wait", "--lifetime", "2h")
    assert out == "tape: 2 on disk\n"
    (store,) = run.json("tape", "status")["stores"]
    assert [file["state"] for file in store["files"]] == ["disk", "disk"]
    assert run.json("tape", "release", NAMES[0]) == {"released": 1}
    assert not (library.disk / "frame-0001.fits").exists()
    assert run("tape", "release", "tape:") == "released: 1 object\n"


def test_a_listing_says_what_is_on_tape(run: Runner, library: ModelLibrary) -> None:
    options = {"staging": "command", "staging_command": str(library.program)}
    run("tape", "stage", NAMES[0], "--wait")
    swathe.stores.add("names", str(library.folder / "tape"), tier="tape", options=options)
    lines = [line.split() for line in run("ls", "names:").splitlines()]
    assert [line[-2:] for line in lines] == [
        ["disk", "names:frame-0001.fits"],
        *(["tape", f"names:frame-{number:04}.fits"] for number in (2, 3, 4)),
    ]
    listed = run.json("ls", "names:", "--pattern", "*[12].fits")["objects"]
    assert [each["locality"] for each in listed] == ["disk", "nearline"]


def test_a_dataset_on_tape_is_entered_without_staging_unless_told_to(
    run: Runner, library: ModelLibrary
) -> None:
    options = {"staging": "command", "staging_command": str(library.program)}
    swathe.stores.add("names", str(library.folder / "tape"), tier="tape", options=options)
    run("tape", "stage", "names:frame-0001.fits", "--wait")
    out, told = run.told("dataset", "add", "frames", "names:")
    assert "4 objects (1 read, 3 on tape), 1 image read" in out
    assert "swathe dataset sync frames --stage wait" in told
    report = run.json("dataset", "sync", "frames", "--stage", "wait")
    assert (report["read"], report["unchanged"], report["on_tape"]) == (3, 1, 0)
    (store,) = (each for each in run.json("tape", "status")["stores"] if each["store"] == "names")
    # Only what the user has pinned is still on disk.
    assert [file["path"] for file in store["files"] if file["state"] == "disk"] == [
        "frame-0001.fits"
    ]
    assert run.json("dataset", "sync", "frames")["unchanged"] == 4


def test_only_objects_that_nobody_has_pinned_are_evicted(
    run: Runner, library: ModelLibrary
) -> None:
    run("tape", "stage", *NAMES[:2], "--wait")
    with Catalog.open() as catalog:
        catalog.release_pins("tape", [NAMES[0].partition(":")[2]])
    _, err = run.told("tape", "evict", *NAMES[:2], code=1)
    assert "tape:frame-0002.fits: it is pinned 1 time: release it first" in err
    assert [path.name for path in library.disk.glob("*.fits")] == ["frame-0002.fits"]
    assert run("tape", "release", "tape:") == "released: 1 object\n"


@pytest.mark.usefixtures("library")
def test_an_object_that_is_nowhere_is_a_fault(run: Runner) -> None:
    _, err = run.told("tape", "stage", NAMES[0], "tape:none.fits", code=1)
    assert "tape:none.fits: no such object" in err
    assert "expected NAME:path of a store" in run("tape", "stage", "nothing", code=2)


def test_status_shows_no_more_than_is_known(
    run: Runner, library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.stores.staging.model_library.MOUNT_S", (1e6, 1e6))
    with library._state() as state:
        state.execute("UPDATE drives SET medium = NULL")
    run("tape", "stage", *NAMES)
    text = run("tape", "status")
    assert "rate unknown, earliest end unknown" in text
    assert "%" not in text
    assert run("tape", "release", "tape:") == "released: 4 objects\n"
    with library._state() as state:
        state.execute("UPDATE drives SET free_s = 0")


def targets(tmp_path: Path, names: list[str]) -> Path:
    table = tmp_path / "targets.csv"
    rows = [f"{name},{number},2,30,40" for number, name in enumerate(names)]
    table.write_text("\n".join(["file,x0,y0,width,height", *rows]) + "\n")
    return table


@pytest.mark.usefixtures("library")
def test_rows_of_a_list_on_tape_are_errors(run: Runner, tmp_path: Path) -> None:
    table = targets(tmp_path, NAMES[:2])
    _, err = run.told("cut", "--targets", table, "-o", tmp_path / "out", code=1)
    assert "error: tape:frame-0001.fits: expected an object on disk" in err


def test_a_list_waits_for_its_objects_and_releases_them(
    run: Runner, library: ModelLibrary, tmp_path: Path
) -> None:
    table = targets(tmp_path, [*NAMES[:2], "tape:none.fits"])
    words = ("cut", "--targets", table, "-o", tmp_path / "out", "--stage", "wait")
    _, err = run.told(*words, code=1)
    assert "error: no such object" in err
    for number, name in enumerate(NAMES[:2]):
        expected = fits.getdata(library.folder / "tape" / name.partition(":")[2])
        cutout = fits.getdata(tmp_path / "out" / f"{number}.fits")
        assert np.array_equal(cutout, expected[2:42, number : number + 30])
    assert not list(library.disk.glob("*.fits"))
    with Catalog.open() as catalog:
        assert {file.pins for file in catalog.stage_files()} == {0}


def test_one_cut_waits_for_its_object(run: Runner, library: ModelLibrary, tmp_path: Path) -> None:
    path = tmp_path / "c.fits"
    words = ("--box", "1 2 30 40", "--stage", "wait", "-o", path)
    run("cut", NAMES[2], *words)
    assert fits.getdata(path).shape == (40, 30)
    assert not list(library.disk.glob("*.fits"))
    run("cut", "tape:none.fits", *words, code=3)


@pytest.mark.usefixtures("library")
def test_a_prediction_says_how_long_staging_takes_at_most(run: Runner, tmp_path: Path) -> None:
    words = ("predict", "--targets", targets(tmp_path, NAMES[2:]))
    assert "tape: 2 objects on tape, 1.011 MiB; staging was never measured" in run(*words)
    run("tape", "stage", *NAMES[:2], "--wait")
    text = run(*words)
    assert "staging takes at most" in text and "if the queue is empty" in text


@pytest.mark.usefixtures("library")
def test_things_are_tables_datasets_and_names(run: Runner, tmp_path: Path) -> None:
    table = targets(tmp_path, [NAMES[0], NAMES[0], str(tmp_path / "other.fits")])
    assert tape_names([str(table), NAMES[1]]) == NAMES[:2]
    run("tape", "stage", *NAMES[:1], "--wait")
    run("dataset", "add", "frames", "tape:", "--quiet")
    assert tape_names(["frames"]) == NAMES[:1]
    with pytest.raises(OptionError, match="a dataset or a run, found none"):
        tape_names(["nothing"])


def test_a_cache_in_front_of_a_tape_stages_copies_and_pins(
    run: Runner, library: ModelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (library.folder / "tape" / "frame-0001.fits").stat().st_size
    near = tmp_path / "near"
    run("store", "add", "hot", "cache:", "--of", "tape", "--over", near, "--limit", f"{size * 2}B")
    cut = ("cut", "hot:frame-0001.fits", "--box", "1 2 30 40", "-o", tmp_path / "c.fits")
    assert "stage it: swathe tape stage hot:frame-0001.fits" in run(*cut, code=3)
    run(*cut, "--stage", "wait")
    assert not (library.disk / "frame-0001.fits").exists()
    run(*cut, "--overwrite")
    expected = fits.getdata(library.folder / "tape" / "frame-0001.fits")[2:42, 1:31]
    assert np.array_equal(fits.getdata(tmp_path / "c.fits"), expected)
    targets = tmp_path / "t.csv"
    targets.write_text("file,x,y,width,height\nhot:frame-0002.fits,0,0,5,5\n")
    run("tape", "stage", targets, "--wait")
    usage = run.json("store", "show", "hot")["usage"]
    assert (usage["objects"], usage["bytes"]) == (2, 2 * size)
    run("tape", "stage", "hot:frame-0003.fits", "--wait")  # in place of the first, not the second
    assert sorted(path.name for path in near.rglob("*.fits")) == [
        "frame-0002.fits",
        "frame-0003.fits",
    ]
    assert run("tape", "release", "hot:") == "released: 2 objects\n"
    monkeypatch.setattr(readers, "GRACE_S", -1.0)  # nobody is about to take an opened object
    assert run.json("tape", "evict", "hot:frame-0002.fits") == {"evicted": 1, "pinned": {}}
    assert [path.name for path in near.rglob("*.fits")] == ["frame-0003.fits"]
    assert run.json("store", "clear", "hot")["done"] == 1


def test_what_is_staged_for_a_cache_is_pinned_there_once_it_is_read(
    run: Runner, library: ModelLibrary, tmp_path: Path
) -> None:
    near = tmp_path / "near"
    run("store", "add", "hot", "cache:", "--of", "tape", "--over", near, "--limit", "1MB")
    run("tape", "stage", "hot:frame-0001.fits", "hot:frame-0004.fits")
    run("tape", "status")
    cut = ("--box", "1 2 30 40", "-o", tmp_path / "c.fits")
    run("cut", "hot:frame-0001.fits", *cut, "--stage", "wait")
    _, err = run.told("tape", "evict", "hot:", code=1)
    assert "hot:frame-0001.fits: it is pinned" in err
    with Catalog.open() as catalog:
        (pin,) = catalog.stage_pins("tape", "")
        assert (pin.file.path, pin.owner.endswith(" hot:")) == ("frame-0004.fits", True)
    assert run("tape", "release", "hot:") == "released: 2 objects\n"
    assert not list(library.disk.glob("*.fits"))
