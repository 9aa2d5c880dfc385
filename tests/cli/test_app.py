"""The command line: every option, `--json`, exit codes, errors of one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from astropy.wcs import WCS
from numpy.typing import NDArray

import swathe
from swathe.cli.app import main
from tests.support.fits_frames import (
    SWATHE,
    Runner,
    command_here,
    contents,
    fits_bytes,
    image_of,
    noise,
    results,
    sky_header,
    swathe_command,
    write_kinds,
)


@pytest.fixture(scope="module")
def frame() -> NDArray[np.uint16]:
    return noise(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, frame: NDArray[np.uint16]) -> Path:
    """Files and tables; tests only read them."""
    folder = tmp_path_factory.mktemp("cli")
    write_kinds(folder, "a", frame, sky_header())
    second = fits.ImageHDU(noise(2), name="SCI", ver=2)
    hdus = (fits.PrimaryHDU(), fits.ImageHDU(frame, name="SCI"), second)
    (folder / "mef.fits").write_bytes(fits_bytes(*hdus))
    (folder / "cube.fits").write_bytes(contents(noise(3, (5, 30, 40)), "fit"))
    (folder / "damaged.fit.gz").write_bytes(contents(frame, "fit.gz")[:50_000])
    (folder / "text.fits").write_text("no FITS file\n" * 300)
    lines = "".join(f"{name},10,20,6,5\n" for name in ("a.fit", "a.fit.gz", "a.fit.bz2"))
    (folder / "good.csv").write_text(f"file,x0,y0,width,height\n{lines}")
    (folder / "mixed.csv").write_text(f"file,x0,y0,width,height\n{lines}none.fit,1,1,1,1\n")
    (folder / "columns.csv").write_text("file,x0\na.fit,1\n")
    return folder


def run(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    return command_here(*arguments, env=env)


def output_of(*arguments: object) -> Any:
    """What a command that succeeds prints with --json."""
    ran = run(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert len(ran.stdout.splitlines()) == 1
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    "region",
    [
        ["--box", 10, 20, 6, 5],
        ["--center", 12.6, 22.2, "--shape", 5, 6],
        ["--section", "[11:16,21:25]"],
        ["--section", "11:16, 21:25"],
    ],
)
def test_regions(
    region: list[object], folder: Path, frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    path = tmp_path / "cut.fits"
    said = output_of("cut", folder / "a.fit.gz", *region, "-o", path)
    assert said["path"] == str(path)
    assert (said["box"], said["shape"], said["hdu"]) == ([10, 20, 6, 5], [5, 6], 0)
    assert said["source"] == str(folder / "a.fit.gz")
    assert said["source_version"] == swathe.open(folder / "a.fit.gz").version
    np.testing.assert_array_equal(image_of(path.read_bytes()), frame[20:25, 10:16])


def test_sky_region(folder: Path, frame: NDArray[np.uint16], tmp_path: Path) -> None:
    where = ["--sky", 10, -1, "--size", "0.001deg"]
    said = output_of("cut", folder / "a.fit.fz", *where, "-o", tmp_path / "c.npy")
    assert said["box"] == [194, 144, 10, 10]
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), frame[144:154, 194:204])


def test_output_kinds_and_the_usual_name(folder: Path, tmp_path: Path) -> None:
    where = ["--box", 10, 20, 60, 50]
    for name in ("c.fits", "c.png"):
        assert run("cut", folder / "a.fit", *where, "--output", tmp_path / name).returncode == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    ran = subprocess.run(
        [SWATHE, "cut", folder / "a.fit", *map(str, where)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "cut.fits: 60 x 50 pixels from [10, 20]\n"
    assert (tmp_path / "cut.fits").read_bytes() == (tmp_path / "c.fits").read_bytes()
    # The input is checked first, though cut.fits exists.
    ran = subprocess.run(
        [SWATHE, "cut", "none.fit", *map(str, where)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 3
    assert "none.fit" in ran.stderr


@pytest.mark.parametrize(
    ("hdu", "index"),
    [("-1", 2), (None, 1), ("SCI", 1), ("1", 1), ("2", 2), ("SCI,2", 2), ("sci, 2", 2)],
)
def test_hdu(hdu: str | None, index: int, folder: Path, tmp_path: Path) -> None:
    option = [] if hdu is None else ["--hdu", hdu]
    where = ["--box", 1, 2, 8, 9, "-o", tmp_path / "c.npy"]
    assert output_of("cut", folder / "mef.fits", *where, *option)["hdu"] == index
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), noise(index)[2:11, 1:9])


def test_planes(folder: Path, tmp_path: Path) -> None:
    where = ["--box", 1, 2, 8, 9, "-o", tmp_path / "c.npy"]
    assert output_of("cut", folder / "cube.fits", *where)["shape"] == [5, 9, 8]
    said = output_of("cut", folder / "cube.fits", *where, "--planes", "1:3", "--overwrite")
    assert said["shape"] == [2, 9, 8]
    np.testing.assert_array_equal(
        np.load(tmp_path / "c.npy"), noise(3, (5, 30, 40))[1:3, 2:11, 1:9]
    )


def test_mode_and_fill(folder: Path, frame: NDArray[np.uint16], tmp_path: Path) -> None:
    where = ["--box", -2, -1, 5, 4, "-o", tmp_path / "c.npy"]
    assert output_of("cut", folder / "a.fit", *where)["shape"] == [3, 3]
    partial = [*where, "--mode", "partial", "--fill", "9", "--overwrite"]
    assert output_of("cut", folder / "a.fit", *partial)["shape"] == [4, 5]
    pixels = np.load(tmp_path / "c.npy")
    np.testing.assert_array_equal(pixels[1:, 2:], frame[:3, :3])
    assert set(pixels[0]) == {9}
    assert run("cut", folder / "a.fit", *where, "--mode", "strict", "--overwrite").returncode == 5


@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_targets(output: str, folder: Path, tmp_path: Path, frame: NDArray[np.uint16]) -> None:
    path = tmp_path / output
    options = ["--targets", folder / "good.csv", "--threads", 1, "--quiet", "-o", path]
    said = output_of("cut", *options)
    assert (said["output"], said["targets"], said["ok"]) == (str(path), 3, 3)
    assert (said["error"], said["missing"], said["no-overlap"], said["notes"]) == (0, 0, 0, [])
    assert said["actual_s"] > 0
    for content in results(path).values():
        np.testing.assert_array_equal(image_of(content), frame[20:25, 10:16])
    again = output_of("cut", *options, "--resume")
    assert (again["ok"], again["bytes_moved"]) == (3, 0)


def test_targets_that_fail_are_told_and_exit_is_1(folder: Path, tmp_path: Path) -> None:
    options = ["--targets", folder / "mixed.csv", "-o", tmp_path / "out"]
    ran = run("cut", *options)
    assert ran.returncode == 1
    assert ran.stdout.startswith(f"{tmp_path / 'out'}: 3 ok, 1 missing, in ")
    before, *after = ran.stderr.splitlines()
    assert re.match(rf"{re.escape(str(tmp_path / 'out'))}: predicted (under )?[\d.]+ m?s", before)
    assert " for 4 targets: " in before
    assert after == [f"  3: missing: {folder / 'none.fit'}: not found"]
    said = r", in [\d.]+ m?s \(predicted (under )?[\d.]+ m?s\)$"
    assert re.search(said, ran.stdout.rstrip())
    assert " 0 ms" not in ran.stdout
    ran = run(
        "cut", "--targets", folder / "mixed.csv", "-o", tmp_path / "out", "--resume", "--json"
    )
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["missing"] == 1


def test_targets_take_mode_fill_and_planes(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(f"file,x0,y0,width,height\n{folder / 'cube.fits'},-2,0,5,4\n")
    options = ["--mode", "partial", "--fill", 3, "--planes", "2:4", "-q"]
    assert output_of("cut", "--targets", table, "-o", tmp_path / "out", *options)["ok"] == 1
    pixels = image_of((tmp_path / "out" / "0.fits").read_bytes())
    assert pixels.shape == (2, 4, 5)
    assert set(pixels[:, :, :2].ravel()) == {3}


def test_info(folder: Path) -> None:
    said = output_of("info", folder / "mef.fits")
    path = folder / "mef.fits"
    assert (said["path"], said["size"], said["notes"]) == (str(path), path.stat().st_size, [])
    assert said["compression"] is None
    assert [hdu["kind"] for hdu in said["hdus"]] == ["empty", "image", "image"]
    assert [hdu["name"] for hdu in said["hdus"]] == [None, "SCI", "SCI"]
    assert [hdu["version"] for hdu in said["hdus"]] == [1, 1, 2]
    assert said["hdus"][1]["shape"] == [300, 400]
    packed = output_of("info", folder / "a.fit.fz")["hdus"][1]
    assert (packed["codec"], packed["tile_shape"], packed["bitpix"]) == ("RICE_1", [1, 400], 16)
    assert output_of("info", folder / "a.fit.gz")["compression"] == "gzip"

    text = run("info", folder / "a.fit.fz").stdout.splitlines()
    assert text[0].startswith(f"{folder / 'a.fit.fz'}: ")
    assert "400 x 300" in text[2]
    assert "RICE_1" in text[2]


@pytest.mark.parametrize(
    ("storage", "packing"),
    [
        ({"chunks": (5, 6)}, "not compressed"),
        ({"chunks": (5, 6), "shuffle": True, "fletcher32": True}, "not compressed"),
        ({"chunks": (5, 6), "compression": "gzip"}, "arrays compressed in chunks"),
    ],
)
def test_info_tells_whether_arrays_are_compressed(
    tmp_path: Path, storage: dict[str, Any], packing: str
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=np.zeros((10, 12)), **storage)
    assert f" bytes), {packing}, hdf5, 1 array" in run("info", tmp_path / "a.h5").stdout


def test_info_tells_place_type_and_tables(folder: Path, tmp_path: Path) -> None:
    text = " ".join(run("info", folder / "a.fit.fz").stdout.split())
    assert "images compressed in tiles" in text
    assert "not compressed" not in text
    assert "uint16 400 x 300 pixels" in text
    assert "centre RA 9.99995 Dec -0.99995 deg (ICRS)" in text
    assert '0.36"/pixel' in text
    assert ", TAN" in text
    hdu = output_of("info", folder / "a.fit")["hdus"][0]
    place = swathe.open(folder / "a.fit").image().wcs.pixel_to_world(199.5, 149.5)
    assert (hdu["s_ra"], hdu["s_dec"]) == pytest.approx((place.ra.deg, place.dec.deg), abs=1e-6)
    assert "SCI,2" in run("info", folder / "mef.fits").stdout
    table = fits.BinTableHDU(Table({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}), name="LIST")
    path = tmp_path / "table.fits"
    path.write_bytes(fits_bytes(fits.PrimaryHDU(), table))
    assert "3 rows, 2 columns" in run("info", path).stdout


def test_info_tells_a_large_extent_in_degrees(tmp_path: Path) -> None:
    path, wcs = tmp_path / "wide.fits", WCS(naxis=2)
    wcs.wcs.ctype, wcs.wcs.cdelt, wcs.wcs.crpix = ["RA---TAN", "DEC--TAN"], [-0.1, 0.1], [50, 10]
    path.write_bytes(fits_bytes(fits.PrimaryHDU(np.zeros((15, 100), "f4"), wcs.to_header())))
    text = run("info", path).stdout
    assert re.search(r"\d deg x \d[\d.]*', TAN", text), text


def test_rates_are_no_seconds() -> None:
    assert "--fetch-mb-s MB/S" in run("simulate", "--help").stdout


def test_info_tells_what_is_neither_image_nor_table(tmp_path: Path) -> None:
    cards = {"XTENSION": "HDRLET", "BITPIX": 8, "NAXIS": 0, "PCOUNT": 0, "GCOUNT": 1}
    extension = fits.Header(cards).tostring().encode()
    (tmp_path / "h.fits").write_bytes(
        fits.Header({"SIMPLE": True, "BITPIX": 8, "NAXIS": 0}).tostring().encode() + extension
    )
    assert "extension of type HDRLET" in run("info", tmp_path / "h.fits").stdout
    axes = {"NAXIS": 3, "NAXIS1": 0, "NAXIS2": 2, "NAXIS3": 2}
    cards = {"SIMPLE": True, "BITPIX": 8, **axes, "GROUPS": True, "PCOUNT": 0, "GCOUNT": 1}
    (tmp_path / "g.fits").write_bytes(fits.Header(cards).tostring().encode() + bytes(2880))
    assert "random groups" in run("info", tmp_path / "g.fits").stdout


def test_info_prints_headers(folder: Path) -> None:
    shown = run("info", folder / "mef.fits", "--header", "--hdu", "SCI,2").stdout
    assert shown.startswith(f"# HDU 2 of {folder / 'mef.fits'}\nXTENSION= 'IMAGE")
    assert "EXTVER  =                    2" in shown
    told = output_of("info", folder / "mef.fits", "--header")["headers"]
    assert list(told) == ["0", "1", "2"]


def test_help_names_commands_in_groups_and_whole() -> None:
    shown = run("--help", COLUMNS="80").stdout
    titles = ("Cutting:", "Archive:", "Portal:", "Measuring:")
    assert [title for title in titles if f"\n{title}\n" in shown] == list(titles)
    assert re.search(r"Cutting:\n  cut ", shown)
    assert "..." not in shown.partition("Cutting:")[2]
    assert "--install-completion" in shown
    for words in ("cut", "predict", "sample", "job submit", "store add", "bench region"):
        assert not re.search(r"<(str|int|float|path|list)", run(*words.split(), "--help").stdout)
    assert "--mode trim|partial|strict" in run("cut", "--help").stdout
    assert " cut [OPTIONS] [IMAGE]\n" in run("cut", "--help").stdout
    assert " store add [OPTIONS] NAME URL\n" in run("store", "add", "--help").stdout
    assert " trace view [OPTIONS] RUN.ulm...\n" in run("trace", "view", "--help").stdout


def test_sample(tmp_path: Path) -> None:
    options = ["--frames", 1, "--seed", 5, "--targets", 4, "--quiet"]
    said = output_of("sample", tmp_path / "s", *options)
    table = tmp_path / "s" / "targets.csv"
    assert said == {"folder": str(tmp_path / "s"), "frames": 1, "seed": 5, "targets": str(table)}
    assert len(Table.read(table)) == 4
    text = run("sample", tmp_path / "s", *options[:-1])
    assert text.stdout == f"{table}: 4 targets on 1 frames, each as .fit, .gz, .bz2, .fz\n"
    done = output_of("cut", "--targets", table, "-o", tmp_path / "out")
    assert done["ok"] == 4


USAGE = 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("cut", USAGE, "give either IMAGE or --targets"),
        ("cut a.fit --targets good.csv -o OUT", USAGE, "give either IMAGE or --targets"),
        ("cut a.fit", USAGE, "give one of --box"),
        ("cut a.fit --box 1 1 5 5 --section [1:2,1:2]", USAGE, "give one of --box"),
        ("cut a.fit --center 5 5", USAGE, "--center goes with --shape"),
        ("cut a.fit --box 1 1 5 5 --shape 5 5", USAGE, "--center goes with --shape"),
        ("cut a.fit --sky 10 -1", USAGE, "--sky with --size"),
        ("cut a.fit --box 1 1 5", USAGE, "--box"),
        ("cut a.fit --box 1 1 5 5 --resume", USAGE, "--resume go with --targets"),
        ("cut a.fit --box 1 1 5 5 --threads 2", USAGE, "--resume go with --targets"),
        (
            "cut a.fit --box 1 1 5 5 --mode half",
            USAGE,
            "'half' is not one of 'trim', 'partial', 'strict'",
        ),
        ("cut cube.fits --box 1 1 5 5 --planes 1-2", USAGE, "FIRST:LAST"),
        ("cut --targets good.csv", USAGE, "needs --output"),
        (
            "cut mef.fits --box 1 1 5 5 --format npy -o OUT.npy",
            USAGE,
            "--format: only with --targets",
        ),
        (
            "cut --targets good.csv -o OUT.fits --format npy",
            6,
            "expected a folder, *.zip or *.tar for format npy",
        ),
        ("cut --targets good.csv -o OUT --format gif", USAGE, "'gif' is not one of 'fits', 'npy'"),
        ("cut --targets good.csv -o OUT --format rgb", USAGE, "needs targets in the sky: ra, dec"),
        (
            "cut --targets good.csv -o OUT --operation stack --format png",
            USAGE,
            "expected fits for operation stack",
        ),
        ("cut --targets good.csv -o OUT --stack median", USAGE, "stack: expected operation stack"),
        (
            "cut --targets good.csv -o OUT --bands i,r,g",
            USAGE,
            "bands: expected none for operation cut",
        ),
        (
            "cut --targets good.csv -o OUT --format rgb --bands i,r",
            USAGE,
            "expected three, red first",
        ),
        ("cut bad\udcff.fits --box 1 1 5 5", USAGE, r"argument 2: expected valid UTF-8"),
        ("cut cube.fits --box 1 1 5 5 -o OUT.png", 5, "a picture shows one plane"),
        ("cut --targets good.csv -o OUT --hdu 1", USAGE, "the table gives the regions"),
        ("cut --targets good.csv -o OUT --threads 0", USAGE, "--threads"),
        ("cut --targets columns.csv -o OUT", USAGE, "need the columns"),
        ("cut --targets text.fits -o OUT", USAGE, "text.fits: cannot be read as fits"),
        ("cut a.fit b.fit --box 1 1 5 5", USAGE, "one image; for several, list them in --targets"),
        ("cut *.none --box 1 1 5 5", USAGE, "no file matches '*.none'"),
        ("cut a.fit --box 1 1 5 5 --fill x", USAGE, "expected a number, found 'x'"),
        ("cut --targets good.csv -o OUT --threads 0", USAGE, "expected at least 1, found '0'"),
        ("info a.fit --hdu 0", USAGE, "needs --header"),
        ("sample OUT --frames 0", USAGE, "--frames"),
        ("nonsense", USAGE, "nonsense"),
        ("info none.fit", 3, "none.fit: not found"),
        ("cut none.fit --box 1 1 5 5 -o OUT.fits", 3, "none.fit: not found"),
        ("cut --targets none.csv -o OUT", 3, "none.csv"),
        ("info http://127.0.0.1:1/a.fit", 3, "cannot connect"),
        ("info ftp://host/a.fit", 3, "ftp"),
        ("info text.fits", 4, "text.fits"),
        ("cut damaged.fit.gz --box 1 290 5 5 -o OUT.fits", 4, "damaged.fit.gz"),
        ("cut mef.fits --box 1 1 5 5 --hdu DQ -o OUT.fits", USAGE, '"DQ"'),
        (
            "cut mef.fits --box 1 1 5 5 --hdu 0 -o OUT.fits",
            USAGE,
            "images are in HDUs 1 (SCI), 2 (SCI)",
        ),
        ("cut mef.fits --box 1 1 5 5 --hdu -4 -o OUT.fits", USAGE, "expected -3 to 2"),
        ("cut mef.fits --box 1 1 5 5 --hdu 9 -o OUT.fits", USAGE, "no HDU 9; there are HDUs 0 to "),
        ("cut mef.fits --box 1 1 5 5 --hdu SCI,99999999999999999999 -o OUT.fits", USAGE, "no HDU"),
        ("cut mef.fits --box 1 1 5 5 --hdu 99999999999999999999 -o OUT.fits", USAGE, "no HDU"),
        ("cut a.fit --box 900 1 5 5 -o OUT.fits", 5, "does not overlap"),
        ("cut a.fit --box 1 1 0 5 -o OUT.fits", 5, "width must be at least 1"),
        ("cut a.fit --section [5:1,1:2] -o OUT.fits", 5, "section"),
        ("cut a.fit --section x -o OUT.fits", USAGE, "--section: a section is written"),
        ("cut a.fit --section [*,1:2] -o OUT.fits", USAGE, "whole axes (*) are not supported"),
        ("cut a.fit --sky NGC 1 --size 1deg -o OUT.fits", USAGE, "several words needs quotes"),
        ("cut a.fit --center nan 1 --shape 5 5 -o OUT.fits", 5, "x must be"),
        ("cut mef.fits --sky 10 -1 --size 1deg -o OUT.fits", 5, "WCS"),
        ("cut cube.fits --box 1 1 5 5 --planes 3:9 -o OUT.fits", 5, "planes"),
        ("cut a.fit --box 1 1 5 5 --planes 0:1 -o OUT.fits", 5, "planes"),
        ("cut --targets good.csv -o OUT --planes 3:1", 5, "planes"),
        ("cut a.fit --box 1 1 5 5 -o OUT.jpg", 6, "OUT.jpg"),
        ("cut a.fit --box 1 1 5 5 -o OUT/none/c.fits", 6, "c.fits"),
        ("cut --targets good.csv -o OUT.csv", 6, "OUT.csv"),
        ("cut --targets good.csv -o text.fits/out", 6, "text.fits"),
        ("sample text.fits/below", 6, "text.fits"),
    ],
)
def test_exit_code_and_one_line(
    arguments: str,
    code: int,
    said: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = arguments.replace("OUT", str(tmp_path / "OUT")).split()
    # In this process, as each new one takes half a second.
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["swathe", *words, *([] if code == USAGE else ["--json"])])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == code
    assert "Traceback" not in err
    assert said in err
    if code != USAGE:
        assert len(err.splitlines()) == 1
        assert err.startswith("swathe: ")
        error = json.loads(out)
        assert error["exit_code"] == code
        assert f"swathe: {error['error']}\n" == err
        assert hasattr(swathe.errors, error["kind"])
    assert not list(tmp_path.glob("OUT.*"))


@pytest.mark.parametrize(
    ("words", "code"), [("info none.fit", 3), ("info text.fits", 4), ("cut a.fit", USAGE)]
)
def test_installed_command_exits_alike(words: str, code: int, folder: Path) -> None:
    ran = subprocess.run(
        [SWATHE, *words.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr


def test_settings_of_a_portal_are_checked(tmp_path: Path) -> None:
    settings = tmp_path / "portal.toml"
    settings.write_text("[server]\nport = 0\n")
    ran = run("portal", "serve", "--config", settings, "--check", "--json")
    assert json.loads(ran.stdout) == {"settings": str(settings), "in_order": True}
    settings.write_text("[server]\nport = -1\n")
    assert run("portal", "serve", "--config", settings, "--check", "--json").returncode == USAGE


def test_a_fault_of_ours_is_no_target_that_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no such number")

    monkeypatch.setattr("swathe.files.file.open_any", fault)
    monkeypatch.setattr(sys, "argv", ["swathe", "info", str(folder / "a.fit"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == json.loads(out)["exit_code"] == 70
    assert "Traceback" in err
    assert err.endswith("swathe: internal error: ZeroDivisionError: no such number\n")


def test_debug_shows_the_traceback(folder: Path) -> None:
    ran = swathe_command("info", folder / "none.fit", env={"SWATHE_DEBUG": "1"})
    assert ran.returncode not in (0, 3)
    assert "Traceback" in ran.stderr
    assert "NotFoundError" in ran.stderr


@pytest.mark.parametrize("option", [[], pytest.param(["--json"], marks=pytest.mark.more)])
def test_reader_that_has_had_enough(option: list[str], tmp_path: Path) -> None:
    hdus = [fits.ImageHDU(np.zeros((2, 2)), name=f"EXTENSION-NUMBER-{n}") for n in range(600)]
    (tmp_path / "many.fits").write_bytes(fits_bytes(fits.PrimaryHDU(), *hdus))
    command = f"{SWATHE} info many.fits {' '.join(option)} | head -c 100"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert len(ran.stdout) == 100
    assert ran.returncode in (0, 1, 141)


@pytest.mark.more
@pytest.mark.parametrize("words", [["info", "a.fit"], ["info", "a.fit", "--json"], ["--version"]])
def test_full_output_pipe_to_full_device(words: list[str], folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [SWATHE, *words],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "swathe: cannot write to standard output: No space left on device\n"
    assert (ran.stderr, ran.returncode) == (said, 6)


def test_output_that_is_closed() -> None:
    ran = subprocess.run(["bash", "-c", f"{SWATHE} --version >&-"], capture_output=True, text=True)
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_version_and_help() -> None:
    assert run("--version").stdout == f"swathe {swathe.__version__}\n"
    shown = run("--help")
    assert shown.returncode == 0
    text = " ".join(shown.stdout.split())
    for said in (
        "Exit codes: 0 done",
        "7 catalogue or sandbox not usable",
        "130 interrupted",
        "cut",
        "info",
        "sample",
        "store",
    ):
        assert said in text
    for command, options in {
        "cut": "--box --center --shape --sky --size --frame --file --section --targets "
        "--output --hdu --mode --fill --planes --format --threads --resume --quiet --json",
        "info": "--json",
        "sample": "--frames --seed --targets --quiet --json",
    }.items():
        shown = run(command, "--help")
        assert shown.returncode == 0
        assert not [option for option in options.split() if option not in shown.stdout]
    assert run().returncode == USAGE


def interrupt(
    command: list[str], ready: Callable[[], bool], env: dict[str, str]
) -> tuple[int, str]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    limit = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


@pytest.mark.more
def test_ctrl_c_exits_130_and_resume_completes(tmp_path: Path) -> None:
    content = contents(noise(5, (900, 1000)), "fit.bz2")
    lines = "file,x0,y0,width,height\n"
    for number in range(96):
        (tmp_path / f"{number}.fit.bz2").write_bytes(content)
        lines += f"{number}.fit.bz2,5,{9 * number},7,8\n"
    (tmp_path / "t.csv").write_text(lines)
    out = tmp_path / "out"
    command = [str(SWATHE), "cut", "-q", "--targets", str(tmp_path / "t.csv"), "-o", str(out)]
    env = {**os.environ, "SWATHE_INDEX_DIR": str(tmp_path / "index")}
    code, said = interrupt(command, lambda: (out / "0.fits").exists(), env)
    found = Table.read(out / "manifest.ecsv")
    assert set(found["status"]) == {"ok", "error"}
    done = sum(found["status"] == "ok")
    told = f"{out}: {done} of 96 targets are done; --resume continues with the others\n"
    assert (code, said) == (130, f"{told}swathe: interrupted\n")
    assert subprocess.run([*command, "--resume"], check=False, env=env).returncode == 0
    command.remove("-q")
    again = subprocess.run(
        [*command, "--resume"], check=True, env=env, capture_output=True, text=True
    )
    assert again.stderr == ""
    assert f"{out}: 96 ok (96 already done), in " in again.stdout
    assert "predicted" not in again.stdout
    assert set(Table.read(out / "manifest.ecsv")["status"]) == {"ok"}


def test_user_sees_control_characters_of_names_as_text(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    for number in range(22):
        (folder / f"a\x1b[31m{number}.fits").write_bytes(b"junk")
    run.ran("store", "add", "disk", folder)
    run.ran("dataset", "add", "all", "disk:")
    shown = run.ran("dataset", "show", "all").out
    assert "disk:a\\x1b[31m0.fits: damaged" in shown
    assert "and 2 more: swathe dataset show all --json" in shown
    table = tmp_path / "t.csv"
    table.write_text(f"file,x0,y0,width,height\n{folder}/a\x1b[31m0.fits,0,0,1,1\n")
    assert "a\\x1b[31m0.fits" in run.ran("cut", "--targets", table, "-o", tmp_path / "o").err
    assert "a\\x1b[31m0.fits" in run.ran("predict", "--targets", table).err


def test_warnings_are_one_message_without_a_line_of_python(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["map"] = np.zeros((6, 8), "f4")
        file["map"].attrs.update({"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRPIX1": np.nan})
    words = ("cut", tmp_path / "a.h5", "--box", 1, 1, 3, 2, "-o", tmp_path / "cut.nc")
    command = [sys.executable, "-m", "swathe.cli", *map(str, words)]  # here warnings are errors
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = ran.stderr.splitlines()
    assert lines and all(line.startswith(("swathe: warning: ", "  ")) for line in lines), lines
    assert "the cut has no WCS" in ran.stderr and "warnings.warn" not in ran.stderr
