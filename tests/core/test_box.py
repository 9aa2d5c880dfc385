"""Boxes: rounding as Cutout2D does, FITS sections, places in the sky."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.nddata import Cutout2D, NoOverlapError
from astropy.wcs import WCS
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import swathe
from swathe.core import errors
from swathe.core.box import MODES, Mode, box_around, box_from_section, validated_box
from swathe.core.sky import SkyMapping
from tests.conftest import assert_same, fits_bytes
from tests.support.property_examples import examples

PLANE = np.arange(35 * 50, dtype=">i2").reshape(35, 50)
INF, NAN = math.inf, math.nan


@given(
    x=st.floats(-30, 80)
    | st.integers(-30, 80).map(float)
    | st.integers(-30, 80).map(lambda n: n + 0.5),
    y=st.floats(-30, 60)
    | st.integers(-30, 60).map(float)
    | st.integers(-30, 60).map(lambda n: n + 0.5),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
)
@settings(max_examples=examples(150))
def test_around_rounds_as_cutout2d(x: float, y: float, height: int, width: int) -> None:
    x0, y0, found_width, found_height = box_around(x, y, height, width)
    assert (found_height, found_width) == (height, width)
    try:
        expected = Cutout2D(PLANE, (x, y), (height, width), mode="partial", fill_value=0)
    except NoOverlapError:
        assert x0 >= 50 or y0 >= 35 or x0 + width <= 0 or y0 + height <= 0
        return
    inside, within = expected.slices_original, expected.slices_cutout
    assert x0 == inside[1].start - within[1].start
    assert y0 == inside[0].start - within[0].start


@pytest.mark.parametrize(
    ("x", "y", "height", "width"),
    [
        (NAN, 1, 2, 2),
        (1, INF, 2, 2),
        (1, -INF, 2, 2),
        (1, 1, NAN, 2),
        (1, 1, 2, INF),
        (1, 1, 0, 2),
        (1, 1, 2, -3),
        (1, 1, 2.5, 2),
        (1e300, 1, 2, 2),
        (1, 1, 2, 10**400),
    ],
)
def test_around_refuses_what_is_no_box(x: float, y: float, height: float, width: float) -> None:
    with pytest.raises(errors.RegionError) as caught:
        box_around(x, y, height, width)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 0.5, 2**60, -(2**60), 10**400, -(10**400), 1e300])
@pytest.mark.parametrize("place", range(4))
def test_checked_refuses_what_is_no_whole_number(bad: float, place: int) -> None:
    numbers: list[float] = [1, 2, 3, 4]
    numbers[place] = bad
    with pytest.raises(errors.RegionError) as caught:
        validated_box(*numbers)
    assert ("x0", "y0", "width", "height")[place] in str(caught.value)
    assert len(str(caught.value)) < 200


def test_checked_gives_python_ints() -> None:
    found = validated_box(int(np.int16(-1)), 2.0, np.float64(3), 4)
    assert found == (-1, 2, 3, 4)
    assert {type(number) for number in found} == {int}


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 999), st.integers(1, 999))
@settings(max_examples=examples(50))
@example(0, 0, 1, 1)
def test_section_counts_from_one_and_includes_both_ends(x0: int, y0: int, w: int, h: int) -> None:
    text = f"[{x0 + 1}:{x0 + w},{y0 + 1}:{y0 + h}]"
    assert box_from_section(text) == (x0, y0, w, h)
    assert box_from_section(text.strip("[]").replace(":", " : ")) == (x0, y0, w, h)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[1:2]", "[0:5,1:5]", "[1:5,0:5]", "[5:1,1:5]", "[1:5,5:1]", "[-1:5,1:5]",
     "[1:5,1:5,1:5]", "[1.5:2,1:2]", "[*,*]", "[1:2,1:2", "1:2,1:2]x", f"[1:{10**30},1:2]",
     f"[1:{10**400},1:2]"],
)  # fmt: skip
def test_section_refuses_other_text(text: str) -> None:
    if text == "[1:2,1:2":
        assert box_from_section(text) == (0, 0, 2, 2)
        return
    with pytest.raises(errors.RegionError):
        box_from_section(text)


def tan_cards(**other: object) -> list[tuple[str, object]]:
    """A TAN WCS of 1 arcsec per pixel, turned by 30 degrees."""
    angle, scale = math.radians(30), 1 / 3600
    cards: dict[str, object] = {
        "CTYPE1": "RA---TAN",
        "CTYPE2": "DEC--TAN",
        "CRVAL1": 150.0,
        "CRVAL2": 2.0,
        "CRPIX1": 30.5,
        "CRPIX2": 20.25,
        "CD1_1": -scale * math.cos(angle),
        "CD1_2": scale * math.sin(angle),
        "CD2_1": scale * math.sin(angle),
        "CD2_2": scale * math.cos(angle),
    }
    return list((cards | other).items())


@pytest.fixture(scope="module")
def image(new_path: Callable[[str], Path]) -> Path:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(PLANE, tan_cards()))
    return path


@given(
    x=st.floats(-8, 57),
    y=st.floats(-8, 42),
    size=st.tuples(st.floats(0.6, 30), st.floats(0.6, 30)),
    frame=st.sampled_from(["icrs", "fk5", "fk4", "galactic", "barycentrictrueecliptic"]),
)
# Whole and half pixels, which Hypothesis likes, are left out.
@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
def test_sky_boxes_are_those_of_cutout2d(
    image: Path, x: float, y: float, size: tuple[float, float], frame: str
) -> None:
    # On the edge between two pixels the last digit decides, and frames differ in that.
    assume(all(abs(2 * number - round(2 * number)) > 1e-3 for number in (x, y, *size)))
    with fits.open(image) as hdus:
        wcs, plane = WCS(hdus[0].header), hdus[0].data
        place = wcs.pixel_to_world(x, y)
        sizes = [side * u.arcsec for side in size]
        try:
            expected = Cutout2D(plane, place, sizes, wcs=wcs, mode="trim")
        except NoOverlapError:
            with pytest.raises(errors.NoOverlapError):
                swathe.cut(image, sky=place, size_deg=(size[0] / 3600, size[1] / 3600))
            return
        found = swathe.cut(
            image, sky=place.transform_to(frame), size_deg=(size[0] / 3600, size[1] / 3600)
        )
        assert found.box[:2] == tuple(int(number) for number in expected.origin_original)
        assert_same(found.data, expected.data)


def test_degrees_are_icrs_whatever_the_frame_of_the_image(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    galactic = {"CTYPE1": "GLON-TAN", "CTYPE2": "GLAT-TAN", "CRVAL1": 120.0, "CRVAL2": -30.0}
    path.write_bytes(fits_bytes(PLANE, tan_cards(**galactic)))
    place = SkyCoord(120.001, -30.001, unit="deg", frame="galactic")
    found = swathe.cut(path, sky=(place.icrs.ra.deg, place.icrs.dec.deg), size_deg=5 / 3600)
    expected = Cutout2D(PLANE, place, 5 * u.arcsec, wcs=WCS(fits.getheader(path)))
    assert_same(found.data, expected.data)
    assert found.data.shape == (5, 5)


def test_swapped_axes_are_swapped(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    swapped = {"CTYPE1": "DEC--TAN", "CTYPE2": "RA---TAN", "CRVAL1": 2.0, "CRVAL2": 150.0}
    path.write_bytes(fits_bytes(PLANE, tan_cards(**swapped)))
    wcs = WCS(fits.getheader(path))
    place = wcs.pixel_to_world(33.2, 12.9)
    assert swathe.cut(path, sky=place, size_deg=5 / 3600).box == (31, 11, 5, 5)


def test_axes_of_the_sky_are_the_images_own() -> None:
    wcs = WCS(naxis=3)
    wcs.wcs.ctype = ["FREQ", "RA---TAN", "DEC--TAN"]
    wcs.wcs.cdelt = [1e6, -1e-3, 1e-3]
    sky = SkyMapping(lambda: wcs, "a.fits, HDU 0")
    assert sky.axes_among(3) == (1, 2)
    with pytest.raises(errors.RegionError, match=r"^a\.fits, HDU 0: its sky axes have no pixels$"):
        sky.axes_among(2)


@pytest.mark.parametrize(
    ("sky", "size_deg", "kind"),
    [
        ((NAN, 2), 0.01, errors.RegionError),
        ((150, INF), 0.01, errors.RegionError),
        ((150, 95), 0.01, errors.RegionError),
        ((150, 2), NAN, errors.RegionError),
        ((150, 2), 0, errors.RegionError),
        ((150, 2), -0.01, errors.RegionError),
        ((150, 2), (0.01, INF), errors.RegionError),
        ((150, 2), 1e300, errors.RegionError),
        ((150, 2), 1e-5, errors.RegionError),
        ((330, -2), 0.01, errors.NoOverlapError),
        ((239.9999, 2), 0.01, errors.NoOverlapError),
        ((151, 2), 0.01, errors.NoOverlapError),
    ],
)
def test_sky_refuses_what_is_no_place(
    image: Path,
    sky: tuple[float, float],
    size_deg: float | tuple[float, float],
    kind: type[Exception],
) -> None:
    with pytest.raises(kind):
        swathe.cut(image, sky=sky, size_deg=size_deg)


def test_sky_takes_any_pair_and_one_coordinate(image: Path) -> None:
    expected = swathe.cut(image, sky=(150.0, 2.0), size_deg=(0.002, 0.001)).box
    assert swathe.cut(image, sky=np.array([150.0, 2.0]), size_deg=[0.002, 0.001]).box == expected  # type: ignore[arg-type]
    one = SkyCoord([150.0], [2.0], unit="deg")
    assert swathe.cut(image, sky=one, size_deg=(0.002, 0.001)).box == expected
    with pytest.raises(errors.RegionError, match="one position"):
        swathe.cut(image, sky=SkyCoord([1, 2], [3, 4], unit="deg"), size_deg=0.01)


@pytest.mark.parametrize(
    "cards",
    [[], tan_cards(CTYPE1="LINEAR", CTYPE2="LINEAR"), tan_cards(CD1_1=0.0, CD1_2=0.0)],
    ids=["none", "linear", "singular"],
)
def test_sky_needs_a_celestial_wcs(
    cards: list[tuple[str, object]], new_path: Callable[[str], Path]
) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(PLANE, cards))
    with pytest.raises(errors.RegionError, match="HDU 0"):
        swathe.cut(path, sky=(150, 2), size_deg=0.01)


def test_every_mode_has_a_title() -> None:
    assert tuple(MODES) == get_args(Mode)
