"""From regions of the sky to pixel boxes: compared with every pixel of the image."""

from __future__ import annotations

import math

import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import swathe
from swathe.core.box import Box
from swathe.core.errors import RegionError
from swathe.core.sky import SkyMapping
from swathe.datasets.footprint import footprint
from swathe.datasets.spherical import angle, directions
from swathe.portal.vo.geometry.bounding_box import smallest_box
from swathe.portal.vo.geometry.fast_wcs import FastWcs
from swathe.portal.vo.geometry.regions import Circle, Polygon, Range, SkyRegion
from tests.conftest import DATA
from tests.support.fits_frames import sky_header
from tests.support.property_examples import examples

FINE = 4
"""Places along each side of a pixel that are asked whether they lie in a region."""


def places_of(header: fits.Header) -> FastWcs:
    return FastWcs(SkyMapping(lambda: WCS(header), "here"))


def seen(
    region: SkyRegion,
    places: FastWcs,
    width: int,
    height: int,
    fine: int = FINE,
    edges: tuple[float, ...] = (),
) -> Box | None:
    """The box of all pixels that show some of a region, by looking all over them and at edges."""
    offsets = np.concatenate([(np.arange(fine) + 0.5) / fine - 0.5, edges])
    x = (np.arange(width)[:, None] + offsets).ravel()
    y = (np.arange(height)[:, None] + offsets).ravel()
    across, up = np.meshgrid(x, y)
    held = region.holds(places.pixel_to_vector(across.ravel(), up.ravel())).reshape(across.shape)
    if not held.any():
        return None
    columns, rows = (np.flatnonzero(held.any(axis=axis)) // len(offsets) for axis in (0, 1))
    x0, y0 = int(columns[0]), int(rows[0])
    return x0, y0, int(columns[-1]) - x0 + 1, int(rows[-1]) - y0 + 1


def assert_fits(found: Box | None, looked: Box | None, touched: Box | None = None) -> None:
    """The box holds all that was seen, and has at most one more pixel on each side.

    At most one more than is `touched`, if that is given: a large circle that dips into an image by
    less than lies between two places that were looked at shows far along its edge.
    """
    if looked is None:
        assert found is None or (found[2] <= 2 or found[3] <= 2)
        return
    assert found is not None
    for at in (0, 1):
        first, last = found[at], found[at] + found[at + 2]
        assert first <= looked[at], (found, looked)
        assert looked[at] + looked[at + 2] <= last, (found, looked)
        most = looked if touched is None else touched
        assert most[at] - 1 <= first, (found, most)
        assert last <= most[at] + most[at + 2] + 1, (found, most)


def corners_around(ra: float, dec: float, radius: float, turns: list[float]) -> Polygon:
    circle = Circle(ra, dec, radius)
    places = [
        math.cos(circle.radius) * circle.centre
        + math.sin(circle.radius) * (math.cos(turn) * circle._east + math.sin(turn) * circle._north)
        for turn in sorted(turns)
    ]
    x, y, z = np.array(places).T
    lon, lat = np.degrees(np.arctan2(y, x)) % 360, np.degrees(np.arcsin(z))
    return Polygon(np.column_stack([lon, lat]).ravel().tolist())


CENTRES = [(10.0, -1.0), (0.001, 30.0), (359.999, -60.0), (45.0, 89.995), (200.0, -90.0)]


@pytest.mark.more
@pytest.mark.parametrize(("ra", "dec"), CENTRES)
@pytest.mark.parametrize("kind", ["TAN", "SIN", "CAR", "STG"])
@settings(max_examples=examples(8))
@given(
    x=st.floats(-8, 58),
    y=st.floats(-8, 43),
    radius=st.floats(0.3, 40),
    shape=st.sampled_from(["circle", "triangle", "quadrangle", "star"]),
)
def test_box_holds_all_and_no_more(
    ra: float, dec: float, kind: str, x: float, y: float, radius: float, shape: str
) -> None:
    if kind == "CAR" and abs(dec) > 89:
        return
    header = sky_header(ra, dec, 1e-3)
    header["CTYPE1"], header["CTYPE2"] = f"RA---{kind}", f"DEC--{kind}"
    header["CRPIX1"], header["CRPIX2"] = 25.0, 18.0
    places = places_of(header)
    there = places.pixel_to_vector(np.array([x]), np.array([y]))[0]
    lon, lat = math.degrees(math.atan2(there[1], there[0])), math.degrees(math.asin(there[2]))
    region: SkyRegion
    if shape == "circle":
        region = Circle(lon, lat, radius * 1e-3)
    else:
        turns = {"triangle": [0.1, 2.0, 4.0], "quadrangle": [0.0, 1.5, 3.2, 4.8]}.get(
            shape, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        )
        region = corners_around(lon, lat, radius * 1e-3, turns)
    found = smallest_box(region, places, 50, 35, orderly=True)
    touched = seen(region, places, 50, 35, edges=(-0.5, 0.5))
    assert_fits(found, seen(region, places, 50, 35), touched)
    # Looking at pixels, as of images with no order, comes to the same but for half a pixel.
    pixels = smallest_box(region, places, 50, 35, orderly=False)
    if pixels is not None and found is not None:
        assert pixels[0] >= found[0] - 1 and pixels[0] + pixels[2] <= found[0] + found[2] + 1


@given(
    ra1=st.floats(9.97, 10.03),
    width=st.floats(0, 0.06),
    dec1=st.floats(-1.03, -0.97),
    height=st.floats(0, 0.06),
)
@settings(max_examples=examples(30))
def test_ranges(ra1: float, width: float, dec1: float, height: float) -> None:
    header = sky_header(10.0, -1.0, 1e-3)
    header["CRPIX1"], header["CRPIX2"] = 25.0, 18.0
    places = places_of(header)
    region = Range(ra1, ra1 + width, dec1, dec1 + height)
    found = smallest_box(region, places, 50, 35, orderly=True)
    looked = seen(region, places, 50, 35)
    if looked is None and min(width, height) < 5e-4:
        return  # it lies between what was looked at
    assert_fits(found, looked)


@pytest.mark.parametrize(
    ("region", "whole"),
    [
        (Range(0, 360, 89.9, 90), True),
        (Range(0, 360, -90, 90), True),
        (Range(0, 360, 89.99, 90), False),
        (Range(350, 10, 80, 90), False),
        (Circle(0, 90, 0.5), True),
        (Circle(180, -90, 180), True),
        (Circle(0, 90, 0.005), False),
        (Polygon([0, 89.9, 120, 89.9, 240, 89.9]), True),
        (Polygon([0, 89.997, 120, 89.997, 240, 89.997]), False),
    ],
)
def test_around_a_pole(region: SkyRegion, whole: bool) -> None:
    header = sky_header(45.0, 90.0, 4e-4)
    header["CRPIX1"], header["CRPIX2"] = 50.0, 37.5
    places = places_of(header)
    found = smallest_box(region, places, 75, 62, orderly=True)
    assert_fits(found, seen(region, places, 75, 62))
    assert (found == (0, 0, 75, 62)) is whole


def test_circle_in_an_image_is_exact() -> None:
    """As found from a million places along the circle."""
    header = sky_header(10.0, -1.0)
    places = places_of(header)
    rng = np.random.default_rng(8)
    for _ in range(40):
        circle = Circle(10 + rng.uniform(-0.005, 0.005), -1 + rng.uniform(-0.004, 0.004), 0.006)
        curve = circle.curves(0)[0]
        assert len(curve.places) > 10_000
        x, y = places.world_to_pixel(curve.places)
        expected = [math.floor(x.min() + 0.5), math.floor(y.min() + 0.5)]
        ends = [math.ceil(x.max() + 0.5), math.ceil(y.max() + 0.5)]
        found = smallest_box(circle, places, 400, 300, orderly=True)
        assert found is not None
        assert list(found[:2]) == expected
        assert [found[0] + found[2], found[1] + found[3]] == ends


def test_region_beside_a_corner_has_no_box() -> None:
    """Its own box reaches into the image, it does not."""
    header = sky_header(10.0, -1.0)
    places = places_of(header)
    there = places.pixel_to_vector(np.array([-20.0]), np.array([-20.0]))[0]
    lon, lat = math.degrees(math.atan2(there[1], there[0])), math.degrees(math.asin(there[2]))
    assert smallest_box(Circle(lon, lat, 24e-4), places, 400, 300, orderly=True) is None
    touching = smallest_box(Circle(lon, lat, 28.5e-4), places, 400, 300, orderly=True)
    assert touching is not None and touching[:2] == (0, 0) and touching[2] < 3


@pytest.mark.parametrize("frame", ["FK5", "FK4", "GALACTIC", "FK5 1975"])
def test_other_frames_are_turned(frame: str) -> None:
    header = sky_header(10.0, -1.0)
    if frame == "GALACTIC":
        header["CTYPE1"], header["CTYPE2"] = "GLON-TAN", "GLAT-TAN"
        del header["RADESYS"]
    else:
        header["RADESYS"] = frame.partition(" ")[0]
        if " " in frame:
            header["EQUINOX"] = 1975.0
    sky = SkyMapping(lambda: WCS(header), "here")
    places = FastWcs(sky)
    assert places.quick is (frame != "FK4")
    x, y = np.array([0.0, 100.0, 350.0]), np.array([0.0, 250.0, 20.0])
    there = places.pixel_to_vector(x, y)
    assert angle(there, sky.pixel_to_vector(x, y)).max() < 1e-12
    back = places.world_to_pixel(there)
    assert np.allclose(back[0], x, atol=1e-6) and np.allclose(back[1], y, atol=1e-6)


REAL = [
    ("sip-wcs.fits", 0),
    ("hst_wfc3_sample_flt.fits", 1),
    ("dist_lookup.fits.gz", 1),
    ("ukidss_wfcam_zpn.fits", 1),
    ("allsky_rosat.fits", 0),
    ("1904-66_AZP.fits", 0),
    ("magpis_glon_sin.fits", 0),
    ("spitzer_example_image.fits", 0),
]


@pytest.mark.more
@pytest.mark.parametrize(("name", "hdu"), REAL)
def test_real_images(name: str, hdu: int) -> None:
    path = DATA / "sky" / name
    if not path.exists():
        pytest.skip(f"not there: {path}")
    image = swathe.open(path)[hdu]
    places = FastWcs(image.sky)
    height, width = image.shape[-2:]
    covered = footprint(image.sky, image.shape)
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(5):
        x, y = rng.uniform(-0.1, 1.1) * width, rng.uniform(-0.1, 1.1) * height
        there = places.pixel_to_vector(np.array([x]), np.array([y]))
        if not np.isfinite(there).all():
            continue
        (lon,), (lat,) = (
            np.degrees(np.arctan2(there[:, 1], there[:, 0])),
            np.degrees(np.arcsin(np.clip(there[:, 2], -1, 1))),
        )
        side = math.degrees(places.scale)
        region = Circle(
            float(lon), float(lat), float(rng.uniform(2, 0.2 * min(width, height))) * side
        )
        found = smallest_box(region, places, width, height, covered.outline is not None)
        looked = seen(region, places, width, height, 1)
        if looked is not None:
            compared += 1
            assert found is not None
            # Pixels are looked at in the middle only.
            slack = 2 if covered.outline is not None else 1
            for at in (0, 1):
                assert looked[at] - slack <= found[at] <= looked[at]
                assert looked[at] + looked[at + 2] <= found[at] + found[at + 2]
                assert found[at] + found[at + 2] <= looked[at] + looked[at + 2] + slack
    assert compared >= 1


def test_polygon_on_either_way_round_is_the_same() -> None:
    there = directions(np.array([10.0, 12.0, 10.5]), np.array([1.0, 1.0, 1.2]))
    for corners in ([10, 0, 11, 0, 11, 2, 10, 2], [10, 2, 11, 2, 11, 0, 10, 0]):
        assert Polygon(corners).holds(there[2:]).tolist() == [True]
        assert Polygon(corners).holds(there[1:2]).tolist() == [False]


@pytest.mark.parametrize("corners", [[0, 0, 0, 0, 1, 1], [0, 0, 120, 0, 240, 0]])
def test_polygons_that_are_none(corners: list[float]) -> None:
    with pytest.raises(RegionError):
        Polygon(corners)


def test_places_that_are_none_are_in_no_region() -> None:
    nowhere: NDArray[np.float64] = np.full((1, 3), np.nan)
    for region in (Circle(0, 0, 180), Range(0, 360, -90, 90), Polygon([0, 0, 1, 0, 0, 1])):
        assert not region.holds(nowhere).any()


def test_texts() -> None:
    assert Circle(10, -1.5, 0.25).text == "CIRCLE 10 -1.5 0.25"
    assert Range(350, 10, -90, 0).text == "RANGE 350 10 -90 0"
    assert Polygon([0, 0, 1, 0, 0, 1]).text == "POLYGON 0 0 1 0 0 1"
