"""What an image covers, compared with astropy: which places have a pixel, which have none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.wcs.utils import wcs_to_celestial_frame
from numpy.typing import NDArray

from swathe.catalog import Footprint, GranuleCopy
from swathe.catalog.datasets.granules import level_of
from swathe.catalog.records.datasets import LEVELS, ORDER
from swathe.core import errors
from swathe.core.sky import SkyMapping, read_wcs
from swathe.datasets import healpix
from swathe.datasets.footprint import footprint, on_image
from swathe.datasets.search import NEAR, _SearchArea, _that_show
from swathe.datasets.spherical import angle, degrees, directions, distances
from tests.conftest import DATA, real_files
from tests.files.test_wcs import images, quiet

PIXEL = 0.1
"""Part of a pixel by which what is found may be wrong at the rim of an image."""
POINTS = 400


def made(shape: tuple[int, int], **cards: Any) -> SkyMapping:
    """An image that is only a header."""
    header = fits.Header(cards)
    return SkyMapping(lambda: read_wcs(header.tostring().encode("ascii")), f"made {shape}")


def linear(code: str, ra: float, dec: float, shape: tuple[int, int], scale: float) -> SkyMapping:
    return made(
        shape,
        CTYPE1=f"RA---{code}", CTYPE2=f"DEC--{code}", CRVAL1=ra, CRVAL2=dec,
        CRPIX1=(shape[1] + 1) / 2, CRPIX2=(shape[0] + 1) / 2, CDELT1=-scale, CDELT2=scale,
        CUNIT1="deg", CUNIT2="deg", RADESYS="ICRS",
    )  # fmt: skip


def pixels(sky: SkyMapping, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where directions are on an image, by astropy alone."""
    lon, lat = degrees(vectors)
    place = SkyCoord(lon, lat, unit="deg").transform_to(wcs_to_celestial_frame(sky.wcs))
    world = [place.spherical.lon.deg, place.spherical.lat.deg]
    if sky.wcs.wcs.lng == 1:
        world.reverse()
    with quiet(), np.errstate(all="ignore"):
        found: NDArray[np.float64] = sky.wcs.all_world2pix(np.column_stack(world), 0, quiet=True)
    # Far away, distortions are turned back into nonsense: what is found must lead there again.
    again = np.full((len(found), 3), np.nan)
    finite = np.isfinite(found).all(axis=1)
    if finite.any():
        again[finite] = sky.pixel_to_vector(found[finite, 0], found[finite, 1])
    with np.errstate(invalid="ignore"):
        found[~(angle(again, vectors) < math.radians(0.01 * min(sky.scales)))] = np.nan
    return found


def inside(at: NDArray[np.float64], shape: Any, grow: float) -> NDArray[np.bool_]:
    limits = np.array([shape[-1], shape[-2]]) - 0.5 + grow
    with np.errstate(invalid="ignore"):
        return np.asarray(((at >= -0.5 - grow) & (at <= limits)).all(axis=1))


def some_places(sky: SkyMapping, shape: Any, place: Footprint) -> NDArray[np.float64]:
    """Directions all over an image, close to its rim on both sides, around it, and anywhere."""
    rng = np.random.default_rng(5)
    size = np.array([shape[-1], shape[-2]])
    all_over = rng.random((POINTS, 2)) * size - 0.5
    rim = rng.random((POINTS, 2)) * size - 0.5
    axis, end = rng.integers(0, 2, POINTS), rng.integers(0, 2, POINTS)
    off = rng.normal(0, 0.5, POINTS)
    rim[np.arange(POINTS), axis] = end * size[axis] - 0.5 + off
    with quiet():
        of_pixels = sky.pixel_to_vector(*np.concatenate([all_over, rim]).T)
    centre = directions(np.array(place.s_ra), np.array(place.s_dec))
    around = centre + rng.normal(0, 1, (POINTS, 3)) * math.radians(place.s_fov)
    anywhere = rng.normal(0, 1, (POINTS, 3))
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    found = np.concatenate([of_pixels, around, anywhere, poles])
    found = found[np.isfinite(found).all(axis=1)]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found)


def is_candidate(place: Footprint, vectors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the ranges hold directions."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    lon, lat = degrees(vectors)
    at = nested.lonlat_to_healpix(Longitude(lon, u.deg), Latitude(lat, u.deg), ORDER)
    first, last = np.array(place.ranges).T
    behind = np.searchsorted(first, at.astype(np.int64), side="right") - 1
    found: NDArray[np.bool_] = (behind >= 0) & (at.astype(np.int64) <= last[np.maximum(behind, 0)])
    return found


def finds(place: Footprint, shape: Any, vector: NDArray[np.float64], radius_deg: float) -> bool:
    outline = None if place.outline is None else json.dumps(place.outline)
    unknown: dict[str, Any] = dict.fromkeys(GranuleCopy._fields)
    copy = GranuleCopy(**unknown)._replace(outline=outline, wcs=place.wcs, shape=json.dumps(shape))
    ra, dec = degrees(vector)
    circle = _SearchArea(float(ra), float(dec), radius_deg)
    asked = healpix.ranges_around(circle.direction, circle.radius)
    overlaps = any(a <= d and c <= b for a, b in asked for c, d in place.ranges)
    return overlaps and bool(_that_show(circle, [(copy, place.outline)]))


def check(sky: SkyMapping, shape: Any) -> Footprint:
    """Compare what is found with astropy, everywhere."""
    with quiet():
        place = footprint(sky, shape)
    assert place.ranges == sorted(place.ranges)
    assert 0 <= place.s_ra < 360 and abs(place.s_dec) <= 90
    vectors = some_places(sky, shape, place)
    at = pixels(sky, vectors)
    within = inside(at, shape, 0.0)
    missed = within & ~is_candidate(place, vectors)
    assert not missed.any(), degrees(vectors[missed])
    surely, perhaps = inside(at, shape, -PIXEL), inside(at, shape, PIXEL)
    centre = directions(np.array(place.s_ra), np.array(place.s_dec))
    assert (angle(vectors[surely], centre) <= math.radians(place.s_fov / 2) + 1e-12).all()
    if place.outline is not None:
        corners = directions(np.array(place.outline[::2]), np.array(place.outline[1::2]))
        polygons = np.broadcast_to(corners, (len(vectors), *corners.shape))
        found = distances(polygons, vectors) <= NEAR
    else:
        assert place.wcs is not None
        again = SkyMapping(lambda: read_wcs(str(place.wcs).encode("ascii")), "again")
        with quiet():
            found = on_image(again, shape[-1], shape[-2], vectors)
    wrong = (surely & ~found) | (found & ~perhaps)
    assert not wrong.any(), (at[wrong], degrees(vectors[wrong]))
    with quiet():
        for number in np.random.default_rng(1).permutation(len(vectors))[:12]:
            assert finds(place, shape, vectors[number], 0.0) == found[number]
    return place


@pytest.mark.more
@pytest.mark.parametrize("name", real_files("sky", "sdss", "compressed", "odd"))
def test_real_files(name: str, data: Path) -> None:
    for image in images(DATA / name):
        try:
            with quiet():
                sky = image.sky
                footprint(sky, image.shape)
        except errors.RegionError:
            continue
        check(sky, image.shape)


def test_most_real_files_have_outlines(data: Path) -> None:
    found = {}
    for name in real_files("sky", "sdss"):
        for image in images(DATA / name):
            try:
                with quiet():
                    found[name, image.index] = footprint(image.sky, image.shape)
            except errors.RegionError:
                continue
    without = {name for (name, _), place in found.items() if place.outline is None}
    assert without == {"sky/allsky_rosat.fits"}
    assert len(found) > 25


@pytest.mark.parametrize("dec", [-90.0, -89.95, 0.0, 45.0, 89.97, 90.0])
@pytest.mark.parametrize("ra", [0.0, 0.02, 180.0, 359.99])
def test_poles_and_right_ascension_zero(ra: float, dec: float) -> None:
    place = check(linear("TAN", ra, dec, (300, 400), 5e-4), (300, 400))
    assert place.outline is not None and len(place.outline) == 8
    assert math.isclose(place.s_fov, 0.25, rel_tol=0.01)


@pytest.mark.parametrize("code", ["SIN", "ZEA", "ARC", "STG", "CAR", "SFL", "AIT", "MER", "CEA"])
@pytest.mark.parametrize("dec", [0.0, 60.0, -88.0])
def test_curved_sides(code: str, dec: float) -> None:
    shape = (200, 500)
    zenithal = code in ("SIN", "ZEA", "ARC", "STG")
    check(linear(code, 359.5, dec if zenithal else 0.0, shape, 0.01), shape)


@pytest.mark.parametrize(
    ("code", "shape", "scale"),
    [
        ("AIT", (180, 360), 1.0),
        ("MOL", (200, 400), 1.0),
        ("CAR", (180, 360), 1.0),
        ("SIN", (130, 130), 1.0),
        ("ZEA", (240, 240), 1.0),
        ("TAN", (300, 300), 1.0),
        ("HPX", (200, 400), 1.0),
        ("TSC", (300, 400), 1.0),
        ("CAR", (2, 360), 1.0),
    ],
)
def test_much_of_the_sky(code: str, shape: tuple[int, int], scale: float) -> None:
    place = check(linear(code, 0.0, 0.0, shape, scale), shape)
    assert place.outline is None


@pytest.mark.parametrize("shape", [(1, 1), (1, 4000), (3000, 1)])
def test_thin_images(shape: tuple[int, int]) -> None:
    check(linear("TAN", 0.0, 89.9, shape, 1e-4), shape)


def test_strong_distortion() -> None:
    cards = {
        "CTYPE1": "RA---TAN-SIP", "CTYPE2": "DEC--TAN-SIP", "CRVAL1": 0.1, "CRVAL2": -30.0,
        "CRPIX1": 512.0, "CRPIX2": 512.0, "CD1_1": -1e-3, "CD1_2": 2e-4, "CD2_1": 1e-4,
        "CD2_2": 1.1e-3, "A_ORDER": 3, "B_ORDER": 3, "A_2_0": 2e-5, "A_0_3": 1e-8, "B_1_1": -3e-5,
        "B_3_0": 2e-8,
    }  # fmt: skip
    place = check(made((1024, 1024), **cards), (1024, 1024))
    assert place.outline is not None and len(place.outline) > 8


def test_circles_are_found_by_their_distance() -> None:
    shape = (300, 400)
    sky = linear("TAN", 0.0, 89.98, shape, 1e-4)
    place = footprint(sky, shape)
    rng = np.random.default_rng(8)
    for _ in range(300):
        # Along the axes from the middle of a side: the distance is that in pixels.
        x, off = rng.uniform(10, 380), rng.uniform(0.1, 500)
        radius_deg = math.degrees(float(angle(*_pair(sky, (x, 299.5), (x, 299.5 + off)))))
        start = _pair(sky, (x, 299.5 + off), (x, 0))[0]
        assert finds(place, shape, start, radius_deg * (1 + 1e-4))
        assert not finds(place, shape, start, radius_deg * (1 - 1e-4))


def _pair(sky: SkyMapping, *at: tuple[float, float]) -> NDArray[np.float64]:
    return sky.pixel_to_vector(*np.array(at).T)


@pytest.mark.parametrize("radius_deg", [0.5, 5.0, 60.0])
def test_circles_and_images_without_outline(radius_deg: float) -> None:
    shape = (130, 130)
    sky = linear("SIN", 10.0, 20.0, shape, 1.0)
    place = footprint(sky, shape)
    rng = np.random.default_rng(2)
    for vector in rng.normal(0, 1, (40, 3)):
        vector /= np.linalg.norm(vector)
        away = float(angle(vector, _pair(sky, (64.5, 64.5))[0]))
        if away < math.pi / 2 + math.radians(radius_deg) * 0.98:
            assert finds(place, shape, vector, radius_deg)
        elif away > math.pi / 2 + math.radians(radius_deg) * 1.2 + 0.05:
            assert not finds(place, shape, vector, radius_deg)


@pytest.mark.parametrize("code", ["AIT", "CAR"])
def test_the_centre_of_a_map_of_the_sky_is_its_own(code: str) -> None:
    shape = (181, 361)
    place = footprint(linear(code, 266.0, 0.0, shape, 1.0), shape)
    assert (place.s_ra, place.s_dec) == pytest.approx((266.0, 0.0), abs=1e-6)


def test_no_place_in_the_sky_is_told() -> None:
    with pytest.raises(errors.RegionError, match="no pixels"):
        footprint(linear("TAN", 0, 0, (0, 10), 1e-3), (0, 10))
    beyond = made((10, 10), CTYPE1="RA---AIT", CTYPE2="DEC--AIT", CRPIX1=-4000.0, CRPIX2=0.0,
                  CDELT1=1.0, CDELT2=1.0, CRVAL1=0.0, CRVAL2=0.0)  # fmt: skip
    with pytest.raises(errors.RegionError, match="none of its pixels"), quiet():
        footprint(beyond, (10, 10))


def test_cells_are_within_their_radius_and_circles_are_covered() -> None:
    rng = np.random.default_rng(9)
    for order in (0, 1, 3, 5, 6):
        numbers = np.arange(12 * 4**order, dtype=np.uint64)
        middles = healpix.centres(numbers, order)
        points = rng.normal(0, 1, (20_000, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        import astropy.units as u
        from astropy.coordinates import Latitude, Longitude
        from cdshealpix import nested

        lon, lat = degrees(points)
        at = nested.lonlat_to_healpix(Longitude(lon, u.deg), Latitude(lat, u.deg), order)
        assert (angle(points, middles[at.astype(int)]) <= healpix.cell_radius(order)).all()
        for radius in (1e-3, 0.05, 0.6, 2.0, 3.1):
            centre = points[int(rng.integers(len(points)))]
            held = set(healpix.cells_around(centre, radius, order).tolist())
            touched = at[angle(points, centre) <= radius]
            assert set(touched.tolist()) <= held


def test_ranges_join_what_follows_and_know_their_level() -> None:
    found = healpix.ranges(np.array([3, 4, 5, 9], np.uint64), ORDER - 1)
    assert found == [(12, 23), (36, 39)]
    assert healpix.ranges(np.array([], np.uint64), 3) == []
    assert [level_of(0, length - 1) for length in (1, 2, 16, 17)] == [0, 2, 2, 4]
    assert level_of(*healpix.ALL_SKY) == LEVELS[-1]


def test_distances_to_polygons() -> None:
    square = directions(np.array([[359.0, 1.0, 1.0, 359.0]]), np.array([[-1.0, -1.0, 1.0, 1.0]]))
    lon, lat = np.array([0.0, 0.0, 2.0, 180.0, 1.0]), np.array([0.0, 2.0, 0.0, 0.0, 1.0])
    points = directions(lon, lat)
    found = np.degrees(distances(np.broadcast_to(square[0], (5, 4, 3)), points))
    assert np.allclose(found, [0, 2 - 1.000152, 1, 178.585822, 0], atol=1e-5)
