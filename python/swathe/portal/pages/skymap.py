"""Maps of the sky as SVG: the whole sky in cells with counts, and a part of it with outlines.

East is left, as seen from the ground. The whole sky is in Mollweide projection with RA 0 in the
middle. Cells across its edge, at RA 12 h, are drawn on both sides and clipped by the ellipse. The
projection is linear in right ascension, so both halves are at their correct places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape

from swathe.datasets.spherical import degrees, directions, flat, middle
from swathe.portal.pages.words import MINUS, MINUTES, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Cells = NDArray[np.int64]

FINEST = 6
"""HEALPix order of the smallest cells, 0.9 degrees wide: about two pixels of the map."""
MOST_CELLS = 1600
"""Maximum number of drawn cells; else cells of four times the area are drawn."""
WHOLE_SKY = 0.3
"""Images of more than this part of the sky are counted, not drawn, as they would hide others."""
STEPS = 5
"""Number of colours of cells."""
FEW_CELLS, FEW_GROUPS, SMALL_GROUP = 400, 40, 14
"""Small groups of cells get rings to make them visible, if there are few cells and groups."""
WIDTH, HEIGHT, MARGIN = 1000, 500, 16
LARGEST_PART = math.radians(50)
"""Maximum radius of the map of a part of the sky."""
PART_WIDTH = 1000
PART_HEIGHTS = (200, 560)
FOOT = 34
"""Height of the strip with the scale bar, below the outlines."""
GALAXY = ((192.85948, 27.12825), 122.93192)
"""North pole of the galaxy (ICRS, degrees), and the galactic longitude of the celestial pole."""


@dataclass(frozen=True)
class SkyMap:
    """A map of the whole sky.

    Attributes:
        svg: Drawing as SVG.
        most: Largest count of a cell.
        all_sky: Number of images of the whole sky, which are not drawn.
        cell_deg: Side of a square with the area of a cell, degrees.
    """

    svg: Markup
    most: int
    all_sky: int
    cell_deg: float


def counts(coverage: Cells, order: int) -> NDArray[np.int64]:
    """Count the images of each cell; `coverage` is that of the catalogue, in this order."""
    number = np.zeros(12 * 4**order + 1, np.int64)
    image, first, last = coverage.T
    # An image counts once per cell, even if two of its ranges touch the cell.
    same = np.append(False, image[1:] == image[:-1])[: len(image)]
    previous_end = np.append(-1, last[:-1])[: len(image)]
    first = np.where(same, np.maximum(first, previous_end + 1), first)
    some = first <= last
    np.add.at(number, first[some], 1)
    np.add.at(number, last[some] + 1, -1)
    return np.cumsum(number)[:-1]


def _coarser(coverage: Cells) -> Cells:
    """Return the coverage in cells of four times the area."""
    image, first, last = coverage.T
    first, last = first >> 2, last >> 2
    # Ranges of an image that became equal are adjacent.
    again = (image[1:] == image[:-1]) & (first[1:] == first[:-1]) & (last[1:] == last[:-1])
    coarser: Cells = np.column_stack([image, first, last])[np.append(True, ~again)[: len(image)]]
    return coarser


@dataclass(frozen=True)
class SkyCounts:
    """How many images each cell has.

    Attributes:
        by_order: images of each cell, of the orders 0 to FINEST.
        all_sky: number of images of the whole sky, which do not count.
    """

    by_order: Sequence[NDArray[np.int64]]
    all_sky: int


def sky_counts(coverage_rows: Sequence[tuple[int, int, int]]) -> SkyCounts:
    """Count the images of each cell, from their coverage, of order FINEST."""
    coverage, all_sky = _without_whole(np.array(coverage_rows, np.int64).reshape(-1, 3), FINEST)
    from_finest = []
    for order in range(FINEST, -1, -1):
        from_finest.append(counts(coverage, order))
        coverage = _coarser(coverage)
    return SkyCounts(from_finest[::-1], all_sky)


def sky_map(sky: SkyCounts, images: int) -> SkyMap:
    """Draw the whole sky with the cells of a number of images."""
    order = FINEST
    while np.count_nonzero(sky.by_order[order]) > MOST_CELLS:
        order -= 1
    number = sky.by_order[order]
    cells = np.flatnonzero(number)
    most = int(number.max(initial=0))
    side_deg = math.degrees(math.sqrt(4 * math.pi / (12 * 4**order)))
    about = (
        f"Map of the sky with {plural(images, 'image')}, in {plural(len(cells), 'cell')} "
        f"{side_deg:.2g}° wide, of up to {plural(most, 'image')} each"
    )
    parts = [
        _opening(WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN, about),
        f'<defs><clipPath id="sky-edge">{_ellipse("")}</clipPath></defs>{_ellipse("edge")}',
        '<g clip-path="url(#sky-edge)">',
        *_cells(cells, number[cells], order, most),
        "</g>",
        _graticule(),
        _labels(),
        "</svg>",
    ]
    return SkyMap(Markup("".join(parts)), most, sky.all_sky, side_deg)


def _without_whole(coverage: Cells, order: int) -> tuple[Cells, int]:
    """Remove images that cover most of the sky, and count them."""
    image, first, last = coverage.T
    images, of = np.unique(image, return_inverse=True)
    cells = np.bincount(of, weights=last - first + 1, minlength=len(images))
    large = cells > WHOLE_SKY * 12 * 4**order
    return coverage[~large[of]], int(large.sum())


def _opening(width: float, height: float, about: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(about)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _ellipse(kind: str) -> str:
    return (
        f'<ellipse class="{kind}" cx="{MARGIN + WIDTH / 2:g}" cy="{MARGIN + HEIGHT / 2:g}" '
        f'rx="{WIDTH / 2:g}" ry="{HEIGHT / 2:g}"/>'
    )


def mollweide(lon_deg: Array, lat_deg: Array) -> tuple[Array, Array]:
    """Return positions on the map. Longitudes may exceed 180 degrees in both directions."""
    lat = np.radians(np.clip(lat_deg, -90, 90))
    theta = lat.copy()
    for _ in range(40):  # slow convergence only near the poles, with little effect
        slope = 2 + 2 * np.cos(2 * theta)
        off = 2 * theta + np.sin(2 * theta) - math.pi * np.sin(lat)
        theta -= np.where(slope > 1e-9, off / np.maximum(slope, 1e-9), 0)
        theta = np.clip(theta, -math.pi / 2, math.pi / 2)
    x = MARGIN + WIDTH / 2 * (1 - lon_deg / 180 * np.cos(theta))
    return x, MARGIN + HEIGHT / 2 * (1 - np.sin(theta))


def _cells(cells: NDArray[np.int64], number: NDArray[np.int64], order: int, most: int) -> list[str]:
    from cdshealpix import nested

    if not len(cells):
        return []
    middles = nested.healpix_to_lonlat(cells.astype(np.uint64), order)
    ra, dec = middles[0].deg, middles[1].deg
    sides = nested.vertices(cells.astype(np.uint64), order, step=2 if order > 3 else 4)
    # Right ascensions of corners, at most 180 degrees from that of the centre.
    centre = (ra + 180) % 360 - 180
    lon = centre[:, None] + (sides[0].deg - centre[:, None] + 180) % 360 - 180
    x, y = mollweide(lon, sides[1].deg)
    turn = np.where(centre > 0, -360, 360)
    other_x, _ = mollweide(lon + turn[:, None], sides[1].deg)
    twice = np.abs(lon).max(axis=1) > 180
    level = np.full(len(cells), STEPS // 2 + 1)
    if most > 1:
        level = 1 + (np.log(number) / math.log(most) * (STEPS - 1e-6)).astype(int)
    paths = []
    for at in range(len(cells)):
        path = _path(x[at], y[at]) + (_path(other_x[at], y[at]) if twice[at] else "")
        title = f"{plural(int(number[at]), 'image')} near RA {ra[at]:.1f}°, Dec {dec[at]:+.1f}°"
        paths.append(
            f'<path class="cell-{level[at]}" d="{path}">'
            f"<title>{title.replace('-', MINUS)}</title></path>"
        )
    if len(cells) <= FEW_CELLS:
        paths += _rings(*mollweide(centre, dec))
    return paths


def _path(x: Array, y: Array) -> str:
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return f"M{'L'.join(places)}Z"


def _rings(x: Array, y: Array, gap: float = 22) -> list[str]:
    """Draw a ring around each small group of adjacent cells."""
    remaining = set(range(len(x)))
    groups = []
    while remaining:
        group, new = list[int](), {remaining.pop()}
        while new:
            at = new.pop()
            group.append(at)
            near = {
                other for other in remaining if math.hypot(x[at] - x[other], y[at] - y[other]) < gap
            }
            remaining -= near
            new |= near
        groups.append(group)
    if len(groups) > FEW_GROUPS:
        return []
    rings = []
    for group in groups:
        wide, high = float(np.ptp(x[group])), float(np.ptp(y[group]))
        if max(wide, high) < SMALL_GROUP:
            rings.append(
                f'<rect class="halo" x="{x[group].min() - 9:.1f}" y="{y[group].min() - 9:.1f}" '
                f'width="{wide + 18:.1f}" height="{high + 18:.1f}" rx="9"/>'
            )
    return rings


def _graticule() -> str:
    lines = []
    lat = np.linspace(-90, 90, 61)
    for ra in range(-120, 180, 60):
        lines.append(_line("grid", *mollweide(np.full(61, float(ra)), lat)))
    for dec in (-60, -30, 0, 30, 60):
        lines.append(_line("grid", *mollweide(np.array([-180.0, 180.0]), np.full(2, float(dec)))))
    return "".join(lines) + _galaxy()


def _galaxy() -> str:
    """Draw the galactic equator."""
    (pole_ra, pole_dec), _ = GALAXY
    pole = directions(np.array(pole_ra), np.array(pole_dec))
    east = np.cross([0, 0, 1], pole)
    east /= np.linalg.norm(east)
    turn = np.linspace(0, 2 * math.pi, 181)[:, None]
    ra, dec = degrees(np.cos(turn) * east + np.sin(turn) * np.cross(pole, east))
    lon = (ra + 180) % 360 - 180
    parts = np.split(np.arange(len(lon)), np.flatnonzero(np.abs(np.diff(lon)) > 180) + 1)
    return "".join(_line("galaxy", *mollweide(lon[part], dec[part])) for part in parts)


def _line(kind: str, x: Array, y: Array) -> str:
    places = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return f'<polyline class="{kind}" points="{places}"/>'


def _labels() -> str:
    texts = []
    for hours in (8, 4, 0, 20, 16):
        lon = (hours * 15 + 180) % 360 - 180
        (x,), (y,) = mollweide(np.array([float(lon)]), np.array([0.0]))
        texts.append(_text(x + 5, y - 6, f"{hours} h"))
    for dec in (-60, -30, 30, 60):
        (x,), (y,) = mollweide(np.array([0.0]), np.array([float(dec)]))
        texts.append(_text(x + 5, y - 6, f"{dec:+d}°".replace("-", MINUS)))
    return "".join(texts)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def part_map(outlines: Sequence[Sequence[float]], names: Sequence[str]) -> Markup | None:
    """Draw outlines, `ra, dec, ra, dec, ...` in degrees, on a plane around their centre.

    The projection is gnomonic: great circles are straight lines. Return `None` if the
    outlines are too far apart.
    """
    if not outlines:
        return None
    corners = [np.array(outline, float).reshape(-1, 2) for outline in outlines]
    ends = np.cumsum([len(each) for each in corners])[:-1]
    every = np.concatenate(corners)
    vectors = directions(every[:, 0], every[:, 1])
    centre, radius = middle(vectors)
    if not 0 < radius <= LARGEST_PART:
        return None
    plane = np.degrees(flat(vectors, centre))
    low, high = plane.min(axis=0), plane.max(axis=0)
    extent = np.maximum(high - low, 1e-6)
    drawable = PART_WIDTH - 2 * MARGIN
    scale = min(drawable / extent[0], (PART_HEIGHTS[1] - 2 * MARGIN) / extent[1])
    room = max(PART_HEIGHTS[0], extent[1] * scale + 2 * MARGIN)
    height = room + FOOT
    mid = (low + high) / 2

    def place_points(points: Array) -> tuple[Array, Array]:
        return (
            PART_WIDTH / 2 - (points[:, 0] - mid[0]) * scale,
            room / 2 - (points[:, 1] - mid[1]) * scale,
        )

    elements = [
        _opening(PART_WIDTH, height, f"Outlines of {plural(len(outlines), 'image')}"),
        f'<rect class="edge" x="0.5" y="0.5" width="{PART_WIDTH - 1}" height="{height - 1:.1f}" '
        'rx="4"/>',
    ]
    for outline, name in zip(np.split(plane, ends), names, strict=True):
        path = _path(*place_points(outline))
        elements.append(f'<path class="outline" d="{path}"><title>{escape(name)}</title></path>')
    elements.append(_scale_bar(centre, scale, height))
    return Markup("".join([*elements, "</svg>"]))


def _scale_bar(centre: Array, scale: float, height: float) -> str:
    """Draw a scale bar, and label the centre of the map."""
    fitting = [step for step in LENGTHS_DEG if step * scale <= PART_WIDTH / 5]
    length = fitting[-1] if fitting else LENGTHS_DEG[0]
    ra, dec = degrees(centre)
    length_text = f"{length:g}°" if length >= 1 else f"{length * 60:g}{MINUTES}"
    y = height - 14
    bar = f"M14 {y - 4:.1f}v8M14 {y:.1f}h{length * scale:.1f}m0 -4v8"
    where = f"middle: RA {float(ra):.3f}°, Dec {float(dec):+.3f}°".replace("-", MINUS)
    return (
        f'<path class="bar-of-scale" d="{bar}"/>'
        + _text(14 + length * scale + 8, y + 4, length_text)
        + _text(PART_WIDTH - 14, y + 4, where, "end")
    )


LENGTHS_DEG = (1 / 60, 2 / 60, 5 / 60, 10 / 60, 20 / 60, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def scale_svg() -> Markup:
    """Draw the colours of cells, from few to many images."""
    cells = "".join(
        f'<rect class="cell-{step}" x="{20 * (step - 1)}" width="20" height="12"/>'
        for step in range(1, STEPS + 1)
    )
    return Markup(f'<svg viewBox="0 0 {20 * STEPS} 12" aria-hidden="true">{cells}</svg>')
