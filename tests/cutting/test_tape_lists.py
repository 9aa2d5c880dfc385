"""Lists whose objects are on tape: cut as they come, in the order of the list in the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

import swathe
from swathe.stores.staging import on_disk, stage_wait, stagers, store_staging
from swathe.stores.staging.model_library import ModelLibrary, sample_library
from swathe.stores.staging.stager import StageProgress
from tests.support.catalogs import new_catalog
from tests.support.tape_library import LibraryStager

FRAMES = ["frame-0002.fits", "frame-0001.fits", "frame-0003.fits"]
MOST_LOOKS = 100
SKY = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CRVAL2": 5.0}
SKY |= {"CRPIX1": 51.0, "CRPIX2": 61.0, "CDELT1": -1e-4, "CDELT2": 1e-4}


class SlowStager(LibraryStager):
    """A library in which the first object of the list comes once others were cut.

    Attributes:
        output: result of another object.
        looks: number of looks before it was there.
        interrupt: whether Ctrl-C is pressed then.
        asked: objects that were asked for.
    """

    def __init__(self, library: ModelLibrary, output: Path, *, interrupt: bool = False) -> None:
        super().__init__(library)
        self.output, self.interrupt, self.looks = output, interrupt, 0
        self.asked: list[str] = []

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        self.asked += paths
        return super().stage(paths, lifetime_s)

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        states = super().poll(token, paths)
        if self.output.exists() and self.interrupt:
            raise KeyboardInterrupt
        if not self.output.exists() and self.looks < MOST_LOOKS and FRAMES[0] in states:
            self.looks += 1
            states[FRAMES[0]] = StageProgress(FRAMES[0], "active")
        return states


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> ModelLibrary:
    folder = tmp_path_factory.mktemp("tape") / "t"
    library = sample_library(folder, objects=3, media=2, scale=1e-3)
    for name in FRAMES:
        with fits.open(library.folder / "tape" / name, mode="update") as hdus:
            hdus[0].header.update(SKY)
    return library


@pytest.fixture
def library(
    library_folder: ModelLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ModelLibrary]:
    """The model, as the store `tape` of a new catalogue, with all objects on tape."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    monkeypatch.setattr(stage_wait, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(stage_wait, "LONGEST_PAUSE_S", 0.05)
    options = {"staging": "command", "staging_command": str(library_folder.program)}
    swathe.stores.add("tape", str(library_folder.disk), tier="tape", options=options)
    on_disk.forget_places()
    yield library_folder
    library_folder.evict(FRAMES)


def use(stager: LibraryStager, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (store_staging, stagers):
        monkeypatch.setattr(module, "stager_of", lambda _: stager)


def sky_targets(library: ModelLibrary) -> dict[str, list[Any]]:
    """Return a target on each frame, on one that is not there, and on a local file."""
    files = [*(f"tape:{name}" for name in (*FRAMES, "none.fits"))]
    files.append(str(library.folder / "tape" / FRAMES[1]))
    return {"file": files, "ra": [10.0] * 5, "dec": [5.0] * 5, "size": ["9x7pix"] * 5}


@pytest.mark.parametrize(("kind", "suffix"), [("fits", "fits"), ("npy", "npy")])
def test_what_has_come_is_cut_while_the_rest_is_waited_for(
    library: ModelLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, suffix: str
) -> None:
    output = tmp_path / "cuts"
    stager = SlowStager(library, output / f"1.{suffix}")
    use(stager, monkeypatch)
    targets = sky_targets(library)
    manifest = swathe.cut_many(targets, output, format=kind, progress=False, stage="wait")
    assert 0 < stager.looks < MOST_LOOKS
    assert [row["id"] for row in manifest] == ["0", "1", "2", "3", "4"]
    assert [row["status"] for row in manifest] == ["ok", "ok", "ok", "error", "ok"]
    assert manifest[3]["reason"] == "no such object"
    for name, row in zip(FRAMES, manifest, strict=False):
        path = output / row["path"]
        pixels = np.load(path) if kind == "npy" else fits.getdata(path)
        whole = fits.getdata(library.folder / "tape" / name)
        assert np.array_equal(pixels, whole[56:65, 47:54])
    assert manifest.meta["ok"] == 4
    # All is released at the end.
    assert not list(library.disk.iterdir())


def test_a_run_that_is_interrupted_while_it_waits_resumes_with_the_rest(
    library: ModelLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output = tmp_path / "cuts"
    targets = sky_targets(library)
    use(SlowStager(library, output / "1.fits", interrupt=True), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        swathe.cut_many(targets, output, progress=False, stage="wait")
    rows = Table.read(output / "manifest.ecsv")
    assert rows["reason"].tolist()[0] == "interrupted" and rows["status"].tolist()[1] == "ok"
    assert not list(library.disk.iterdir())
    stager = SlowStager(library, library.folder)
    use(stager, monkeypatch)
    manifest = swathe.cut_many(targets, output, progress=False, stage="wait", resume=True)
    assert [row["status"] for row in manifest] == ["ok", "ok", "ok", "error", "ok"]
    assert FRAMES[0] in stager.asked and FRAMES[1] not in stager.asked
