"""One grammar for a target, in text, Python, the shell and the portal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import Angle, SkyCoord
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.table import Table
from astropy.wcs import WCS
from hypothesis import example, given
from hypothesis import strategies as st

import swathe
from swathe.cli.app import main
from swathe.core.angles import LONGEST_TEXT, Size, is_angle, parse_angle, parse_size
from swathe.core.box import box_around, box_from_section
from swathe.core.errors import RegionError, SwatheError, TargetsError
from swathe.core.sky import SkyMapping
from swathe.files.file import sky_of
from swathe.files.targets import resolver
from swathe.files.targets.positions import position, size_of
from swathe.files.targets.target_list import choices_of, read_targets
from swathe.files.targets.text_line import LONGEST_LINE, parse_line
from swathe.files.targets.text_list import parse_lines
from tests.support.fits_frames import contents, noise, sky_header

ARCSEC = 1 / 3600
PLACE = SkyCoord("10h00m28.6s +02d12m21s")


@pytest.mark.parametrize(
    "text",
    [
        "10:00:28.6 +02:12:21",
        "10h00m28.6s +02d12m21s",
        "10 00 28.6 +02 12 21",
        "10:00:28.6,+02:12:21",
        "10:00:28.6; 2:12:21",
        "150.11916666666667 2.2058333333333333",
        "150.11916666666667d 2.2058333333333333deg",
        "10.007944444444444h 2.2058333333333333°",
        "10h00m28.6s\t+02°12'21\"",
    ],
)
def test_positions_are_those_of_astropy(text: str) -> None:
    for size, expected in (("", None), (' 30"', Size(30 * ARCSEC, 30 * ARCSEC))):
        joint = "," if "," in text else ";" if ";" in text else "\t" if "\t" in text else " "
        line = parse_line(text + size.replace(" ", joint))
        assert line.sky == pytest.approx((PLACE.ra.deg, PLACE.dec.deg), abs=1e-12)
        assert line.size == expected
    assert position(text)[0].separation(PLACE).arcsec < 1e-6


def test_declinations_just_south_of_the_equator_keep_their_sign() -> None:
    for text in ("0:0:0 -0:00:36", "0 0 0 -00 00 36", "0h0m0s -0d0m36s", "0 \N{MINUS SIGN}0.01"):
        assert parse_line(text).sky == pytest.approx((0, -0.01))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('30"', (30 * ARCSEC, 30 * ARCSEC, "deg")),
        ("30''", (30 * ARCSEC, 30 * ARCSEC, "deg")),
        ("0.5arcmin", (0.5 / 60, 0.5 / 60, "deg")),
        ("30 arcsec", (30 * ARCSEC, 30 * ARCSEC, "deg")),
        ("2'", (2 / 60, 2 / 60, "deg")),
        ("1e-3rad", (0.0572957795, 0.0572957795, "deg")),
        ("100 pix", (100, 100, "pix")),
        ("100x80px", (100, 80, "pix")),
        ('30"x20"', (30 * ARCSEC, 20 * ARCSEC, "deg")),
    ],
)
def test_sizes(text: str, size: tuple[float, float, str]) -> None:
    assert parse_size(text)[:2] == pytest.approx(size[:2])
    assert parse_size(text)[2] == size[2]
    assert parse_size(str(parse_size(text))) == parse_size(text)
    assert parse_line(f"150.1 2.2 {text}").size == parse_size(text)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (3 * u.arcmin, (0.05, 0.05, "deg")),
        (100 * u.pixel, (100, 100, "pix")),
        ((30 * u.arcsec, 1 * u.arcmin), (30 * ARCSEC, 1 / 60, "deg")),
        ([30, 60] * u.arcsec, (30 * ARCSEC, 1 / 60, "deg")),
        (("10pix", "20 pix"), (10, 20, "pix")),
    ],
)
def test_sizes_of_python(value: Any, size: tuple[float, float, str]) -> None:
    assert size_of(value)[:2] == pytest.approx(size[:2])
    assert size_of(value)[2] == size[2]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "expected a unit, found 3; write size=3\\*u.arcsec"),
        ("3", "expected a unit, such as 30"),
        (3 * u.m, "expected an angle, found unit 'm'"),
        (-3 * u.deg, "expected a positive size"),
        ("0deg", "expected a positive size"),
        ("3parsec", "found unit 'parsec'"),
        ((3 * u.deg, 3 * u.pix), "expected one unit"),
        ([1, 2, 3] * u.deg, "expected"),
        (None, "expected an angle or pixels"),
    ],
)
def test_what_is_no_size(value: Any, said: str) -> None:
    with pytest.raises(RegionError, match=said):
        size_of(value)


def test_files_and_pixels() -> None:
    assert parse_line("survey:a.fits 812.4 533.9 100 80").center == (812.4, 533.9, 100, 80)
    line = parse_line("survey:a.fits 10:00:28.6 +02:12:21 30 arcsec")
    assert (line.file, line.size) == ("survey:a.fits", Size(30 * ARCSEC, 30 * ARCSEC))
    assert parse_line("survey:b c.fit,1,2,30,40").file == "survey:b c.fit"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("M31 is nice", '"M31 is nice" is not a position: expected RA Dec'),
        ("150.1", '"150.1" is not a position'),
        ("25:00:00 1:0:0", "ra: expected hours up to 24, found '25:00:00'"),
        ("1:60:00 1:0:0", "ra: expected minutes and seconds below 60"),
        ("1 2 30parsec", "size: expected .*, found unit 'parsec'"),
        ("1 2 three", "size: expected .*, found 'three'"),
        ("1 2 3 4 5", "is not a position"),
        ("1 10h", "dec: expected degrees"),
        ("a.fits one 2 30 40", "x: expected a number of pixels, found 'one'"),
        ("x" * (LONGEST_LINE + 1), f"expected up to {LONGEST_LINE} characters"),
        ("3C 273", "or the name of a star, .*; to ask a service, SWATHE_RESOLVER=sesame"),
        ("Marfak", "Marfak: expected one star of this name, found 2: HIP 5336, HIP 5542"),
    ],
)
def test_what_is_no_target(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(resolver.VARIABLE, raising=False)
    with pytest.raises(RegionError, match=said):
        parse_line(text)
    with pytest.raises(TargetsError, match="line 1: "):
        parse_lines([text])


@example("1,2\r3")
@given(st.text(max_size=300))
def test_any_text_is_a_target_or_an_error(text: str) -> None:
    for parse in (parse_line, lambda text: parse_lines([text]), parse_size, is_angle, position):
        try:
            parse(text)
        except SwatheError:
            continue


@pytest.mark.long
@pytest.mark.parametrize("letter", "1.:+-edhm\"'x ,;\t[]()aé")
def test_no_text_takes_long(letter: str) -> None:
    started = time.perf_counter()
    for text in (letter * 100_000, "1" + letter * 100_000, f"{letter} " * 50_000):
        for parse in (parse_line, parse_size, lambda text: parse_angle(text, "ra", hours=True)):
            with pytest.raises(SwatheError):
                parse(text)
    assert time.perf_counter() - started < 1


def test_cells_longer_than_any_angle_are_refused() -> None:
    with pytest.raises(RegionError, match=f"expected up to {LONGEST_TEXT} characters"):
        parse_angle("1" * (LONGEST_TEXT + 1), "ra")


@pytest.mark.parametrize("frame", ["galactic", "fk4", "ecliptic"])
def test_frame_of_a_position(frame: str) -> None:
    known = {"ecliptic": "barycentricmeanecliptic"}.get(frame, frame)
    there = PLACE.transform_to(known).spherical
    text = f"{there.lon.deg!s} {there.lat.deg!s}"
    for sky in (text, (there.lon, there.lat), (there.lon.deg, there.lat.deg)):
        assert position(sky, frame)[0].separation(PLACE).arcsec < 1e-6


def test_sexagesimal_longitudes_that_are_no_right_ascensions_are_degrees() -> None:
    there = position("10:00:00 2:00:00", "galactic").galactic
    assert there.l.deg[0] == pytest.approx(10)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a.fits"
    path.write_bytes(contents(noise(1), "fit", sky_header()))
    return path


def test_a_text_file_of_lines(image: Path, tmp_path: Path) -> None:
    lines = 'a.fits 10 -1 7.2"\n# a comment\na.fits, 0:40:00, -1:00:00, 20pix\na.fits 10 -1 big\n'
    (tmp_path / "t.txt").write_text(lines)
    read = read_targets(tmp_path / "t.txt", sky_of)
    assert read.id == ["1", "3", "4"]
    assert read.box[0].tolist() == [189, 139, 20, 20]
    assert read.box[1].tolist() == read.box[0].tolist()
    status, reason = read.faults()[2]
    assert status == "error"
    assert reason.startswith('line 4: size: expected 30"')
    of_list = read_targets([f"{tmp_path}/{line}" for line in lines.splitlines()[:1]], sky_of)
    assert of_list.box[0].tolist() == read.box[0].tolist()


def test_semicolons_of_a_csv(image: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("file;x;y;height;width\na.fits;20;30;5;6\n")
    assert read_targets(tmp_path / "t.csv", sky_of).box.tolist() == [[17, 28, 6, 5]]


def test_one_file_and_size_for_a_catalogue_of_positions(image: Path) -> None:
    fills = choices_of(file=image, size='7.2"')
    read = read_targets({"RAJ2000": [10.0], "DEJ2000": [-1.0]}, sky_of, choices=fills)
    assert read.source.values == [str(image)]
    assert read.box.tolist() == [[189, 139, 20, 20]]


class Sesame(BaseHTTPRequestHandler):
    """Answers as the Sesame service of the CDS does."""

    asked: list[str]

    def do_GET(self) -> None:
        name = unquote(self.path.partition("?")[2])
        self.asked.append(name)
        place = "%J 10.6847083 +41.2687500 = 00:42:44.33 +41:16:07.5\n" if name == "3C 273" else ""
        text = f"# {name}\t#Q1\n#=S=Simbad\n{place}\n#====Done====\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sesame(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []
    handler = type("Handler", (Sesame,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv(resolver.VARIABLE, f"http://127.0.0.1:{server.server_port}/")
        resolver._ask.cache_clear()
        yield asked
        server.shutdown()


def test_names_are_resolved_where_a_resolver_is_configured(sesame: list[str]) -> None:
    for text in ("3C 273", "3C  273"):
        assert position(text).ra.deg[0] == pytest.approx(10.6847083)
    assert parse_line('3C 273 30"').size == Size(30 * ARCSEC, 30 * ARCSEC)
    assert parse_lines(['3C 273 30"', '150 2 30"']).columns["frame"] == ["icrs", ""]
    assert position("M 31").ra.deg[0] == pytest.approx(10.6847917)
    assert sesame == ["3C 273"]  # asked once, and not about what the lists have
    with pytest.raises(RegionError, match="M31 is nice: the resolver returned no position"):
        position("M31 is nice")


def test_a_resolver_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resolver.VARIABLE, "http://127.0.0.1:1/")
    resolver._ask.cache_clear()
    monkeypatch.setattr(resolver, "_silent_until", {})
    with pytest.raises(RegionError, match="3C273: the resolver returned no position"):
        position("3C273")
    with pytest.raises(RegionError, match="did not answer"):
        position("3C273")
    monkeypatch.setenv(resolver.VARIABLE, "file:///etc/passwd")
    with pytest.raises(RegionError, match="SWATHE_RESOLVER: expected sesame, none or a URL"):
        position("3C273")
    monkeypatch.setenv(resolver.VARIABLE, "none")
    with pytest.raises(RegionError, match="M31: names of objects are off"):
        position("M31")


def test_cuts_equal_cutout2d(image: Path) -> None:
    place = SkyCoord(10.002, -1.001, unit="deg")
    sexagesimal = f"{place.to_string('hmsdms', precision=9)}"
    with fits.open(image) as hdus:
        expected = Cutout2D(hdus[0].data, place, (5, 9) * u.arcsec, wcs=WCS(hdus[0].header))
    size: Any
    for sky in (place, sexagesimal, (place.ra.hour * u.hourangle, place.dec.radian * u.rad)):
        for size in ((5 * u.arcsec, 9 * u.arcsec), '5"x9"', Angle([5, 9], "arcsec")):
            cutout = swathe.cut(image, sky=sky, size=size)
            assert np.array_equal(cutout.data, expected.data)
    galactic = f"{place.galactic.l.deg} {place.galactic.b.deg}"
    assert swathe.cut(image, sky=galactic, size="20 pix", frame="galactic").shape == (20, 20)
    for wrong in ({"size": 3}, {"size": 3 * u.m}, {"size": "1arcsec", "size_deg": 1}, {}):
        with pytest.raises(RegionError, match="size"):
            swathe.cut(image, sky=place, **wrong)
    with pytest.raises(RegionError, match="frame: expected one of"):
        swathe.cut(image, sky=(1, 2), size="1arcsec", frame="mars")


def test_lists_of_planes_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "cube.fits"
    path.write_bytes(contents(noise(3, (5, 30, 40)), "fit"))
    assert swathe.cut(path, box=(0, 0, 4, 3), planes=[3, 4]).shape == (2, 3, 4)
    with pytest.raises(RegionError, match="planes: expected consecutive numbers"):
        swathe.cut(path, box=(0, 0, 4, 3), planes=[1, 4])


@pytest.mark.parametrize(
    ("text", "said"),
    [("[*,1:10]", "x is '\\*'; whole axes"), ("[1:9,1:10:2]", "steps"), ("[9:1,1:2]", "x is 9:1")],
)
def test_sections_say_what_is_not_supported(text: str, said: str) -> None:
    with pytest.raises(RegionError, match=said):
        box_from_section(text)


def test_pixels_in_errors_are_as_in_the_table() -> None:
    with pytest.raises(RegionError, match=r"height must be at least 1 pixel, not -4$"):
        box_around(1, 1, -4.0, 5.0)


def test_wcs_of_the_sun_is_refused_in_plain_words() -> None:
    header = sky_header()
    header["CTYPE1"], header["CTYPE2"] = "HPLN-TAN", "HPLT-TAN"
    with pytest.raises(
        RegionError, match="expected a WCS in a frame of the sky, found axes HPLN-TAN"
    ):
        SkyMapping(lambda: WCS(header), "sun.fits").box(position((1, 2)), 0.1)


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["swathe", *map(str, words)])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.parametrize(
    "region",
    [
        ["--sky", "10", "-1", "--size", "0.002deg"],
        ["--sky", "0:40:00 -1:00:00", "--size", '7.2"'],
        ["--sky", "0:40:00", "-1:00:00", "--size", "0.12 arcmin"],
        ["--sky=10,-1", "--size", "20pix"],
        ["--center", "199", "149", "--shape", "20"],
    ],
)
def test_cut_in_the_shell(
    region: list[str], image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_cli(monkeypatch, "cut", image, *region, "-o", tmp_path / "c.npy") == 0
    assert np.load(tmp_path / "c.npy").shape == (20, 20)


@pytest.mark.parametrize(
    ("region", "said"),
    [
        (["--sky", "10", "-1", "--size", "30"], "expected a unit"),
        (["--sky", "M31 is nice", "--size", "30arcsec"], "is not a position"),
        (["--box", "a", "1", "2", "3"], "expected X0 Y0 WIDTH HEIGHT, found 'a 1 2 3'"),
        (["--center", "1", "2", "--shape", "big"], "expected HEIGHT WIDTH"),
        (["--sky", "1", "2", "--size", "1deg", "--frame", "mars"], "frame: expected one of"),
    ],
)
def test_options_are_refused_in_plain_words(
    region: list[str],
    said: str,
    image: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run_cli(monkeypatch, "cut", image, *region) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_catalogue_is_cut_from_one_file_in_the_shell(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table({"RAJ2000": [10.0, 10.001], "DEJ2000": [-1.0, -1.0]})
    table.write(tmp_path / "cat.fits")
    words = ["--targets", tmp_path / "cat.fits", "--file", image, "--size", '7.2"', "-q"]
    assert run_cli(monkeypatch, "cut", *words, "-o", tmp_path / "out") == 0
    assert len(list((tmp_path / "out").glob("*.fits"))) == 2
    assert run_cli(monkeypatch, "predict", *words[:-1]) == 0
