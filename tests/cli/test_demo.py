"""What `swathe demo` and `make run` show, on a small sample and on files of the user's."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from PIL import Image

import swathe
from swathe.cli.demonstration import SHEET_ROWS
from swathe.client.connection import PortalConnection
from tests.support.fits_frames import fits_bytes, image_of, noise

TARGETS = 40
SIDE, STEP_X, STEP_Y = 140, 144, 158


def demo(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "swathe.cli",
            "demo",
            "--output",
            str(folder),
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and words of a demonstration."""
    folder = tmp_path_factory.mktemp("demo") / "build"
    ran = demo(folder, "--frames", 1, "--targets", TARGETS, "--seed", 2, "--once")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return folder, ran.stdout


def test_job_is_predicted_and_done(built: tuple[Path, str]) -> None:
    said = built[1]
    assert re.search(rf"^job of {TARGETS} targets: predicted [\d.]+ s \([\d.]+ to ", said, re.M)
    assert re.search(rf"^job \S{{22}}: COMPLETED, {TARGETS} ok, [\d.]+ s of work$", said, re.M)
    assert len(re.findall(r"^portal: http://127\.0\.0\.1:\d+/$", said, re.M)) == 1


def test_nothing_is_replaced_unasked(built: tuple[Path, str]) -> None:
    ran = demo(built[0], "--frames", 1, "--targets", TARGETS, "--seed", 2, "--once", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["kind"]) == (6, "OutputExistsError")
    assert "contact-sheet.png: exists already; give --overwrite" in ran.stderr


def test_json_names_portal_and_results(tmp_path: Path) -> None:
    ran = demo(tmp_path / "new", "--frames", 1, "--targets", 5, "--once", "--json")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["phase"], told["counts"]["ok"]) == ("COMPLETED", 5)
    assert told["portal"].startswith("http://127.0.0.1:")
    assert len(list(Path(told["output"]).glob("*.fits"))) == 5
    assert Path(told["sheet"]).is_file()


def test_every_cutout_is_there(built: tuple[Path, str]) -> None:
    found = list((built[0] / "cutouts").glob("*.fits"))
    assert len(found) == TARGETS
    pixels = set()
    for path in found:
        with fits.open(path) as hdus:
            pixels.add(hdus[-1].data.shape)
    assert pixels == {(100, 100)}


def test_it_serves_until_interrupted(built: tuple[Path, str]) -> None:
    command = [
        sys.executable,
        "-m",
        "swathe.cli",
        "demo",
        "--overwrite",
        "--output",
        str(built[0]),
        "--frames",
        "1",
    ]
    command += ["--targets", str(TARGETS), "--seed", "2"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert running.stdout is not None
        url = next(line.split()[1] for line in running.stdout if line.startswith("portal: http://"))
        with swathe.connect(url) as portal:
            # The job before, and this one.
            assert [job.phase for job in portal.jobs()] == ["COMPLETED"] * 2
        # As a terminal does it: to all of its processes.
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=120) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    with pytest.raises(swathe.errors.SourceError):
        PortalConnection(url, None).post_json("jobs")


def test_stars_of_the_contact_sheet_are_centred(built: tuple[Path, str]) -> None:
    assert TARGETS <= SHEET_ROWS
    with Image.open(built[0] / "contact-sheet.png") as sheet:
        pixels = np.asarray(sheet).astype(float)
    assert pixels.shape == (-(-TARGETS // 8) * STEP_Y, 8 * STEP_X)
    for number in range(TARGETS):
        x, y = number % 8 * STEP_X + 2, number // 8 * STEP_Y + 2
        tile = pixels[y : y + SIDE, x : x + SIDE]
        middle = tile[SIDE // 2 - 3 : SIDE // 2 + 3, SIDE // 2 - 3 : SIDE // 2 + 3]
        edge = np.concatenate([tile[0], tile[-1], tile[:, 0], tile[:, -1]])
        assert middle.mean() > edge.mean() + 30
        assert middle.max() == 255


def test_settings_of_the_user_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "portal").mkdir()
    (tmp_path / "portal" / "swathe.toml").write_text("# mine\n")
    ran = demo(tmp_path, "--frames", 1, "--targets", 5, "--once")
    assert ran.returncode == 6
    assert "swathe.toml: exists already; give --overwrite" in ran.stderr
    assert (tmp_path / "portal" / "swathe.toml").read_text() == "# mine\n"


def test_users_files_are_cut_in_the_middle_and_errors_are_told(tmp_path: Path) -> None:
    first, second = noise(1, (300, 400)), noise(2, (5, 120, 90))
    hdus = (fits.PrimaryHDU(first), fits.ImageHDU(second), fits.ImageHDU(np.zeros(9)))
    (tmp_path / "a.b.fits").write_bytes(fits_bytes(*hdus))
    files = [tmp_path / "a.b.fits", tmp_path / "none.fits"]
    ran = demo(tmp_path / "build", "--side", 100, *files)
    assert ran.returncode == 1
    assert ran.stderr == f"swathe: {tmp_path / 'none.fits'}: not found\n"
    folder = tmp_path / "build" / "cutouts"
    assert f"{folder / 'a-1.fits'}: 90 x 100 x 5 pixels from [0, 10]" in ran.stdout
    made = sorted(path.name for path in folder.iterdir())
    assert made == ["a-0.fits", "a-0.png", "a-1.fits", "a-1.png"]
    pixels = image_of((folder / "a-0.fits").read_bytes())
    np.testing.assert_array_equal(pixels, first[100:200, 150:250])
    assert image_of((folder / "a-1.fits").read_bytes()).shape == (5, 100, 90)


def test_files_of_one_name_do_not_replace_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.fits").write_bytes(fits_bytes(fits.PrimaryHDU(noise(1, (20, 20)))))
    files = [tmp_path / name / "a.fits" for name in ("one", "two")]
    assert demo(tmp_path / "build", "--side", 5, *files).returncode == 0
    assert len(list((tmp_path / "build" / "cutouts").glob("*.fits"))) == 2


def test_user_is_told_of_a_file_without_images(tmp_path: Path) -> None:
    fits.HDUList([fits.PrimaryHDU()]).writeto(tmp_path / "empty.fits")
    ran = demo(tmp_path / "build", tmp_path / "empty.fits")
    assert ran.returncode == 1
    assert "empty.fits: no HDU with an image" in ran.stderr
