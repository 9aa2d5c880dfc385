"""Objects on tape: asked for once, waited for, pinned and released; with the model library."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.catalog.store_settings import Store
from swathe.core.errors import OnTapeError, OptionError, StagingError, StoreSettingsError
from swathe.stores.staging import on_disk, stage_wait, stagers, store_staging
from swathe.stores.staging.hold import TapeHold
from swathe.stores.staging.model_library import ModelLibrary, sample_library
from swathe.stores.staging.stage_wait import wait_for_objects
from swathe.stores.staging.stager import Stager
from swathe.stores.staging.store_staging import StoreStaging
from tests.support.catalogs import new_catalog
from tests.support.tape_library import LibraryStager


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> ModelLibrary:
    return sample_library(tmp_path_factory.mktemp("tape") / "t", objects=4, media=2, scale=1e-3)


@pytest.fixture
def library(
    library_folder: ModelLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ModelLibrary]:
    """The model, as the store `tape` of a new catalogue, with all objects on tape."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    monkeypatch.setattr(stage_wait, "FIRST_PAUSE_S", 0.02)
    options = {"staging": "command", "staging_command": str(library_folder.program)}
    swathe.stores.add("tape", str(library_folder.disk), tier="tape", options=options)
    on_disk.forget_places()
    yield library_folder
    library_folder.evict([f"frame-{number:04}.fits" for number in range(1, 5)])


@pytest.fixture
def stager(library: ModelLibrary, monkeypatch: pytest.MonkeyPatch) -> LibraryStager:
    """The model in this process, in place of its program."""
    made = LibraryStager(library)

    def stager_of(store: Store) -> Stager:
        return made if store.name == "tape" else stagers.stager_of(store)

    monkeypatch.setattr(store_staging, "stager_of", stager_of)
    return made


def pixels_of(library: ModelLibrary, name: str) -> np.ndarray:
    return np.asarray(fits.getdata(library.folder / "tape" / name))


@pytest.mark.parametrize(
    ("tier", "url", "options", "message"),
    [
        ("lan", "/d", {"staging": "command", "staging_command": "/x"}, "expected the tier tape"),
        ("tape", "/d", {"staging": "command"}, "expected the option staging_command"),
        ("tape", "/d", {"staging": "tapes"}, "expected xrootd-prepare, wlcg-tape-rest, s3-"),
        ("tape", "/d", {"staging_command": "/x"}, "expected the option staging too"),
        ("tape", "/d", {"staging": "s3-restore"}, "expected a store of s3, found file:///d"),
        ("tape", "s3://bu/x", {"staging": "xrootd-prepare"}, "expected a store of root, roots"),
        (
            "tape",
            "s3://bu/x",
            {"staging": "s3-restore", "staging_command": "/x"},
            "expected staging=command, found s3-restore",
        ),
        (
            "tape",
            "s3://bu/x",
            {"staging": "s3-restore", "staging_tier": "Slow"},
            "expected Bulk, Standard, Expedited",
        ),
        (
            "tape",
            "s3://bu/x",
            {"staging": "s3-restore", "staging_lifetime": "2h"},
            "expected 60 to 31536000 seconds",
        ),
        (
            "tape",
            "/d",
            {"staging": "command", "staging_command": "bin/x"},
            "expected the absolute path of a program",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    library: ModelLibrary, tier: str, url: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(StoreSettingsError, match=message):
        swathe.stores.add("other", url, tier=tier, options=options)


def test_an_object_on_tape_is_not_opened(library: ModelLibrary) -> None:
    with pytest.raises(OnTapeError, match="stage it: swathe tape stage tape:frame-0001"):
        swathe.cut("tape:frame-0001.fits", box=(1, 2, 30, 40))
    with pytest.raises(OnTapeError, match="found it lost: no such object"):
        swathe.open("tape:none.fits")


def test_a_whole_store_is_not_staged(library: ModelLibrary) -> None:
    for act in (swathe.stores.stage_objects, swathe.stores.evict_objects):
        with pytest.raises(OptionError, match="found the whole store"):
            act(["tape:"])


def test_paths_below_a_store_are_looked_up(library: ModelLibrary, tmp_path: Path) -> None:
    path = str(library.disk / "frame-0001.fits")
    with pytest.raises(OnTapeError, match="stage it: swathe tape stage tape:frame-0001"):
        swathe.cut(path, box=(1, 2, 30, 40))
    targets = {"file": [path], "x0": [1], "y0": [2], "width": [30], "height": [40]}
    (row,) = swathe.cut_many(targets, tmp_path / "a", progress=False)
    assert (row["status"], "found it on tape" in row["reason"]) == ("error", True)
    (row,) = swathe.cut_many(targets, tmp_path / "b", progress=False, stage="wait")
    assert row["status"] == "ok"


def test_of_copies_one_on_disk_is_read(library: ModelLibrary, tmp_path: Path) -> None:
    swathe.stores.add("copy", str(library.folder / "tape"))
    targets = {"file": ["frame-0001.fits"], "x0": [1], "y0": [2], "width": [30], "height": [40]}
    (row,) = swathe.cut_many(targets, tmp_path / "a", stores=["tape", "copy"], progress=False)
    assert (row["status"], row["source"]) == ("ok", "copy:frame-0001.fits")
    (row,) = swathe.cut_many(targets, tmp_path / "b", stores="tape", progress=False)
    assert "found it on tape" in row["reason"]


def test_staged_objects_are_read_and_released(library: ModelLibrary) -> None:
    names = ["tape:frame-0001.fits", "tape:frame-0002.fits", "tape:none.fits"]
    outcome = swathe.stores.stage_objects(names, wait=True)
    assert outcome.faults == {"tape:none.fits": "no such object"}
    assert [(file.state, file.pins) for file in outcome.files] == [("disk", 1)] * 2
    cutout = swathe.cut(names[0], box=(1, 2, 30, 40))
    assert np.array_equal(cutout.data, pixels_of(library, "frame-0001.fits")[2:42, 1:31])
    assert swathe.stores.release_objects(names[:2]) == 2
    assert not (library.disk / "frame-0001.fits").exists()
    with Catalog.open() as catalog:
        (outcome_record,) = catalog.stage_outcomes("tape")
    assert (outcome_record.files, outcome_record.media) == (2, 2)


def test_two_readers_stage_an_object_once(library: ModelLibrary, stager: LibraryStager) -> None:
    failures: list[Exception] = []
    together = threading.Barrier(3)

    def read() -> None:
        try:
            with TapeHold() as hold:
                hold.bring(["tape:frame-0003.fits"])
                assert not hold.faults
                together.wait(60)
                assert (library.disk / "frame-0003.fits").exists()
                together.wait(60)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert stager.calls["stage"] == 1
    assert not (library.disk / "frame-0003.fits").exists()
    with Catalog.open() as catalog:
        assert [(file.state, file.pins) for file in catalog.stage_files()] == [("released", 0)]


@pytest.mark.usefixtures("stager")
def test_pins_are_released_when_reading_fails(library: ModelLibrary) -> None:
    with pytest.raises(ZeroDivisionError), TapeHold() as hold:
        hold.bring(["tape:frame-0001.fits"])
        assert (library.disk / "frame-0001.fits").exists()
        raise ZeroDivisionError
    assert not (library.disk / "frame-0001.fits").exists()


def test_a_pin_that_would_end_in_mid_read_is_renewed(
    library: ModelLibrary, stager: LibraryStager
) -> None:
    stager.lengthen = 100.0
    with TapeHold(lifetime_s=0.1) as hold:
        hold.bring(["tape:frame-0001.fits"])
        while stager.calls["stage"] < 4:
            assert library.locate(["frame-0001.fits"])[0]["locality"] == "disk"
        with Catalog.open() as catalog:
            (file,) = catalog.stage_files()
        # The first request has been released: a later one keeps the object.
        assert stager.calls["release"] >= 2 and file.state == "disk"
    assert library.locate(["frame-0001.fits"])[0]["locality"] == "nearline"


def script_store(tmp_path: Path, answers: dict[str, list[dict[str, object]]]) -> None:
    """Add a store `odd` whose program always answers the same."""
    for action, lines in answers.items():
        (tmp_path / action).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    program = tmp_path / "odd"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/$1\n")
    program.chmod(0o755)
    for action in ("release", "evict"):
        (tmp_path / action).touch()
    options = {"staging": "command", "staging_command": str(program)}
    swathe.stores.add("odd", str(tmp_path), tier="tape", options=options)


def test_a_service_that_says_done_and_is_not(library: ModelLibrary, tmp_path: Path) -> None:
    script_store(
        tmp_path,
        {
            "locate": [{"path": "a", "locality": "nearline"}],
            "stage": [{"request": "r"}],
            "poll": [{"path": "a", "state": "disk"}],
        },
    )
    message = r"odd:a: expected progress .* says that it is on disk, but it is on tape only"
    with pytest.raises(StagingError, match=message):
        swathe.stores.stage_objects("odd:a", wait=True, patience_s=0.1)
    (status,) = swathe.stores.tape_status("odd")
    assert (status.files[0].state, status.earliest_s) == ("active", None)


def test_a_tape_that_fails_says_why(library: ModelLibrary, tmp_path: Path) -> None:
    script_store(
        tmp_path,
        {
            "locate": [{"path": "a", "locality": "nearline"}],
            "stage": [{"request": "r"}],
            "poll": [{"path": "a", "state": "failed", "reason": "tape T1 is broken"}],
        },
    )
    outcome = swathe.stores.stage_objects("odd:a", wait=True)
    assert outcome.faults == {"odd:a": "tape T1 is broken"}


def test_a_queue_without_end_is_waited_for_only_so_long(
    library: ModelLibrary, tmp_path: Path
) -> None:
    script_store(
        tmp_path,
        {
            "locate": [{"path": "a", "locality": "nearline", "bytes": 10}],
            "stage": [{"request": "r"}],
            "poll": [{"path": "a", "state": "queued", "place": 7}],
        },
    )
    with pytest.raises(StagingError, match="expected progress of staging"):
        swathe.stores.stage_objects("odd:a", wait=True, patience_s=0.1)
    (status,) = swathe.stores.tape_status("odd")
    assert (status.files[0].place, status.bytes_per_s, status.left_bytes) == (7, None, 10)


def test_a_request_that_is_refused_can_be_sent_again(library: ModelLibrary, tmp_path: Path) -> None:
    script_store(tmp_path, {"locate": [{"path": "a", "locality": "nearline"}], "stage": []})
    for _ in range(2):
        with pytest.raises(StagingError, match="expected one line with a request"):
            swathe.stores.stage_objects("odd:a")
    with Catalog.open() as catalog:
        (file,) = catalog.stage_files("odd")
    assert file.state == "failed" and "expected one line" in str(file.reason)


def test_who_renews_for_a_short_time_leaves_the_longer_pin_of_another(
    library: ModelLibrary, stager: LibraryStager
) -> None:
    name = "frame-0002.fits"
    with Catalog.open() as catalog:
        long, short = (
            StoreStaging(catalog, catalog.store("tape"), owner, lifetime_s)
            for owner, lifetime_s in (("long", 3600), ("short", 1))
        )
        long.stage([name])
        wait_for_objects(long, [name])
        short.stage([name])
        for staging in (short, long, short):
            staging.renew([name])
        with library._state() as state:
            ((until_s,),) = state.execute("SELECT until_s FROM tasks WHERE path = ?", (name,))
        assert until_s - time.time() > 3000
        assert short.release([name]) == 0
        assert (library.disk / name).exists()
        assert long.release([name]) == 1
    assert not (library.disk / name).exists()


@pytest.mark.usefixtures("stager")
def test_a_request_of_a_process_that_has_ended_is_not_waited_for(
    library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open() as catalog:
        catalog.claim_files("tape", {"frame-0001.fits": (False, 1, None, None)}, "gone", 60)
    monkeypatch.setattr(store_staging, "UNSENT", timedelta(0))
    outcome = swathe.stores.stage_objects("tape:frame-0001.fits", wait=True)
    assert outcome.faults == {"tape:frame-0001.fits": store_staging.NO_SENDER}
    assert not swathe.stores.stage_objects("tape:frame-0001.fits", wait=True).faults


@pytest.mark.usefixtures("library", "stager")
def test_pins_last_for_the_wait_and_the_reading() -> None:
    with Catalog.open() as catalog:
        staging = StoreStaging(catalog, catalog.store("tape"), "one", 60)
        staging.stage(["frame-0001.fits"])
        (file,) = catalog.stage_files("tape")
        lasts_s = (file.expires_at - file.began_at).total_seconds()
        assert lasts_s == pytest.approx(60 + store_staging.UNKNOWN_WAIT_S, abs=5)
        wait_for_objects(staging, ["frame-0001.fits"])
        places = staging.locate(["frame-0002.fits"])
        assert 0 < staging.expected_wait_s(places) < 60


def test_only_stores_that_are_staged_are_asked(library: ModelLibrary, tmp_path: Path) -> None:
    swathe.stores.add("plain", str(tmp_path))
    with pytest.raises(OptionError, match="store plain: expected one whose objects are staged"):
        swathe.stores.stage_objects("plain:a")
    with TapeHold() as hold:
        hold.bring(["plain:a", str(tmp_path / "b"), "https://localhost/c"])
    assert not hold.faults
