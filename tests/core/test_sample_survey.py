"""The sample survey: the same bytes from the same seed, honest FITS, targets on their stars."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.wcs import WCS
from astropy.wcs.utils import proj_plane_pixel_scales
from numpy.typing import NDArray

from swathe.core import sample_frame, sample_survey
from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.sample_frame import NAXIS1, NAXIS2
from swathe.core.sample_survey import KINDS, frame_name, make_sample

TARGETS = 80


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a sample of two frames; tests only read it."""
    return make_sample(tmp_path_factory.mktemp("survey"), frames=2, targets=TARGETS).parent


@cache
def drawn(seed: int, frame: int) -> NDArray[np.uint16]:
    """Pixels of a frame, drawn once for all tests; they only read them."""
    return sample_frame.draw(seed, frame)


def read(path: Path) -> tuple[NDArray[np.uint16], fits.Header]:
    """Pixels and header of the one image in a file, through astropy."""
    with fits.open(path) as hdus:
        hdu = hdus[-1]
        return np.array(hdu.data), hdu.header.copy()


def digests(folder: Path) -> dict[str, str]:
    """Checksum of every file in a folder, by name."""
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


def peak_and_centroid(
    light: NDArray[np.float64], x: float, y: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Brightest pixel (x, y) and centroid (x, y) of the 15 x 15 pixels around a place."""
    left, low = round(x) - 7, round(y) - 7
    window = light[low : low + 15, left : left + 15]
    dy, dx = np.indices(window.shape)
    top = int(np.argmax(window))
    centroid = (left + np.average(dx, weights=window), low + np.average(dy, weights=window))
    return (left + top % 15, low + top // 15), centroid


def rows(folder: Path) -> list[dict[str, str]]:
    """Rows of targets.csv."""
    with (folder / "targets.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_folder_holds_every_file_and_no_partial_one(survey: Path) -> None:
    names = {frame_name(frame, kind) for frame in (1, 2) for kind in KINDS}
    assert {file.name for file in survey.iterdir()} == names | {"targets.csv", "sample.json"}
    label = json.loads((survey / "sample.json").read_text())
    assert label == {"recipe": sample_frame.RECIPE, "seed": 1, "frames": 2}


def test_other_seed_or_frame_gives_other_pixels() -> None:
    first = drawn(1, 1)
    assert np.mean(first == drawn(2, 1)) < 0.1
    assert np.mean(first == drawn(1, 2)) < 0.1


@pytest.mark.parametrize("frame", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_holds_the_drawn_pixels(survey: Path, kind: str, frame: int) -> None:
    pixels, _ = read(survey / frame_name(frame, kind))
    assert pixels.dtype == np.uint16
    assert pixels.shape == (NAXIS2, NAXIS1)
    np.testing.assert_array_equal(pixels, drawn(1, frame))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_holds_the_header_cards(survey: Path, kind: str) -> None:
    _, got = read(survey / frame_name(2, kind))
    wanted = sample_frame.header(1, 2)
    for card in wanted.cards:
        if card.keyword not in ("COMMENT", "HISTORY"):
            assert (got[card.keyword], got.comments[card.keyword]) == (card.value, card.comment)
    assert list(got["COMMENT"]) == list(wanted["COMMENT"])
    assert list(got["HISTORY"]) == list(wanted["HISTORY"])
    assert (got["BITPIX"], got["NAXIS1"], got["NAXIS2"]) == (16, 2048, 1489)


def test_plain_file_stores_unsigned_16_bit(survey: Path) -> None:
    stored = fits.getheader(survey / frame_name(1, "fit"))
    assert (stored["BITPIX"], stored["BSCALE"], stored["BZERO"]) == (16, 1, 32768)


def test_fz_is_rice_by_row(survey: Path) -> None:
    with fits.open(survey / frame_name(1, "fit.fz"), disable_image_compression=True) as hdus:
        stored = hdus[1].header
        assert stored["ZCMPTYPE"] == "RICE_1"
        assert (stored["ZTILE1"], stored["ZTILE2"]) == (NAXIS1, 1)
        assert (stored["ZBITPIX"], stored["BSCALE"], stored["BZERO"]) == (16, 1, 32768)
        assert "ZQUANTIZ" not in stored
        assert hdus[1].columns.names == ["COMPRESSED_DATA"]  # no row fell back to gzip


def test_fz_reads_alike_with_cfitsio(survey: Path) -> None:
    fitsio = pytest.importorskip("fitsio")
    pixels = fitsio.read(str(survey / frame_name(1, "fit.fz")), ext=1)
    np.testing.assert_array_equal(pixels, drawn(1, 1))


def test_frame_looks_like_sky() -> None:
    pixels = drawn(1, 1)
    low, sky, _ = np.percentile(pixels, [15.87, 50, 84.13])
    assert 1090 < sky < 1115
    assert 4.5 < sky - low < 6.5  # of whole numbers
    assert 0 < np.count_nonzero(pixels == sample_frame.SATURATION) < 2000


def test_star_has_the_seeing_of_the_header() -> None:
    light = np.zeros((201, 201), dtype=np.float32)
    sample_frame._add_star(light, 100.0, 100.0, 1000.0)
    assert light[100, 100] == pytest.approx(1000)
    half_px = sample_frame.FWHM_ARCSEC / sample_frame.PIXEL_ARCSEC / 2
    sample_frame._add_star(light, 50.0 + half_px, 50.0, 1000.0)
    assert light[50, 50] == pytest.approx(500, rel=1e-3)


@pytest.mark.parametrize("frame", [1, 2])
def test_wcs_is_tan_at_the_sdss_scale(frame: int) -> None:
    wcs = WCS(sample_frame.header(1, frame))
    assert list(wcs.wcs.ctype) == ["RA---TAN", "DEC--TAN"]
    np.testing.assert_allclose(proj_plane_pixel_scales(wcs) * 3600, 0.396, atol=1e-3)
    assert np.linalg.det(wcs.wcs.cd) < 0  # as on the sky, not mirrored
    centre = wcs.pixel_to_world((NAXIS1 - 1) / 2, (NAXIS2 - 1) / 2)
    assert centre.ra.deg == pytest.approx(10 + 0.14971 * (frame - 1), abs=1e-6)
    assert centre.dec.deg == pytest.approx(-1.05, abs=1e-6)


def test_header_is_long_and_legal() -> None:
    made = sample_frame.header(1, 1)
    assert len(made) > 36
    for card in made.cards:
        card.verify("exception")


def test_no_two_frames_share_a_place() -> None:
    numbers = (1, 2, sample_frame.FRAMES_PER_TURN, sample_frame.FRAMES_PER_TURN + 1)
    places = {(h["CRVAL1"], h["CRVAL2"]) for h in (sample_frame.header(1, n) for n in numbers)}
    assert len(places) == len(numbers)


def test_targets_are_spread_evenly_and_sorted(survey: Path) -> None:
    found = rows(survey)
    assert list(found[0]) == ["id", "file", "x", "y", "height", "width"]
    assert [row["id"] for row in found] == [str(n) for n in range(1, TARGETS + 1)]
    counts = Counter(row["file"] for row in found)
    assert counts == {frame_name(frame, kind): 10 for frame in (1, 2) for kind in KINDS}
    frames = [row["file"][:12] for row in found]
    assert frames == sorted(frames)
    assert {(row["height"], row["width"]) for row in found} == {("100", "100")}


def test_targets_of_a_frame_are_different_stars(survey: Path) -> None:
    places = {(row["file"][:12], row["x"], row["y"]) for row in rows(survey)}
    assert len(places) == TARGETS


@pytest.mark.parametrize(("frames", "targets"), [(3, 0), (3, 2), (3, 7), (2, 700)])
def test_any_number_of_targets_is_dealt_out(frames: int, targets: int) -> None:
    lines = [line.split(",") for line in sample_survey._target_rows(frames, 1, targets)]
    assert [int(line[0]) for line in lines] == list(range(1, targets + 1))
    kinds = Counter(line[1].split(".", 1)[1] for line in lines)
    assert max(kinds.values(), default=0) - min(kinds[kind] for kind in KINDS) <= 1


@pytest.mark.parametrize("frame", [1, 2, 3])
def test_every_good_star_has_its_centre_where_stated(frame: int) -> None:
    light = drawn(1, frame) - np.float64(np.median(drawn(1, frame)))
    centres = sample_frame.good_stars(1, frame)
    assert len(centres) > 2000 / 60  # the default sample needs no star twice
    errors = []
    for x, y in centres:
        assert Cutout2D(light, (x, y), sample_frame.CUTOUT_PX, mode="strict").shape == (100, 100)
        (px, py), (cx, cy) = peak_and_centroid(light, x, y)
        assert np.hypot(px - x, py - y) < 1.5
        errors.append(float(np.hypot(cx - x, cy - y)))
    assert np.median(errors) < 0.15
    assert max(errors) < 1  # the faintest have a noisy centroid


@pytest.mark.more
def test_every_target_is_the_centroid_of_its_star(survey: Path) -> None:
    found = rows(survey)
    for name in {row["file"] for row in found}:
        pixels, _ = read(survey / name)
        light = pixels - np.float64(np.median(pixels))
        for row in (row for row in found if row["file"] == name):
            x, y = float(row["x"]), float(row["y"])
            _, (cx, cy) = peak_and_centroid(light, x, y)
            assert np.hypot(cx - x, cy - y) < 0.5


def test_second_call_rewrites_nothing(survey: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in survey.iterdir()}
    calls: list[tuple[int, int]] = []
    make_sample(survey, frames=2, targets=TARGETS, progress=lambda *call: calls.append(call))
    assert {file: file.stat().st_mtime_ns for file in survey.iterdir()} == before
    assert calls == []


@pytest.mark.more
def test_smaller_sample_grows_to_identical_bytes(survey: Path, tmp_path: Path) -> None:
    make_sample(tmp_path, frames=1, targets=4)
    kept = (tmp_path / frame_name(1, "fit")).stat().st_mtime_ns
    calls: list[tuple[int, int]] = []
    make_sample(
        tmp_path,
        frames=2,
        targets=TARGETS,
        overwrite=True,
        progress=lambda *call: calls.append(call),
    )
    assert digests(tmp_path) == digests(survey)
    assert (tmp_path / frame_name(1, "fit")).stat().st_mtime_ns == kept
    assert calls == [(2, 2)]


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(new: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        make_sample(tmp_path / "full", frames=1)
    assert not list((tmp_path / "full").iterdir())


@pytest.mark.more
def test_other_seed_replaces_the_sample(survey: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(survey, tmp_path / "sample")
    before = digests(folder)
    (folder / "frame-backup.fit").write_text("the user's")
    make_sample(folder, frames=1, targets=4, seed=2, overwrite=True)
    assert (folder / "frame-backup.fit").read_text() == "the user's"
    (folder / "frame-backup.fit").unlink()
    after = digests(folder)
    second = {frame_name(2, kind) for kind in KINDS}
    assert after.keys() == before.keys() - second
    assert all(before[name] != after[name] for name in after)


def test_frames_of_unknown_origin_are_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / frame_name(1, "fit")
    mine.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"sample\.json"):
        make_sample(tmp_path, frames=1)
    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize(("name", "value"), [("frames", 0), ("seed", -1), ("targets", -3)])
def test_bad_number_raises_and_is_named(tmp_path: Path, name: str, value: int) -> None:
    arguments: dict[str, Any] = {"frames": 1, "seed": 1, "targets": 4} | {name: value}
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        make_sample(tmp_path / "new", **arguments)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_folder_that_cannot_be_made_raises_and_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=re.escape(str(tmp_path / folder))):
        make_sample(tmp_path / folder, frames=1)


@pytest.mark.parametrize("label", ['{"recipe": 1, "seed": 1e999}', "[" * 100_000, "x" * 100_000])
def test_a_strange_label_belongs_to_no_sample_atk(tmp_path: Path, label: str) -> None:
    (tmp_path / "sample.json").write_text(label)
    with pytest.raises(OutputExistsError, match=r"sample\.json: exists already"):
        make_sample(tmp_path, 1, 1, 5)
    assert (tmp_path / "sample.json").read_text() == label


def test_a_label_that_is_a_pipe_is_not_waited_for_atk(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sample.json")
    with pytest.raises(OutputError, match="not a regular file"):
        make_sample(tmp_path, 1, 1, 5)
