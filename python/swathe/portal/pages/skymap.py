"""Maps of the sky as SVG: all of it in cells with counts, and a part of it with outlines.

East is left, as seen from the ground. The whole sky is in Mollweide's projection with RA 0 in the
middle; cells across its edge, at RA 12 h, are drawn at both sides, and the ellipse cuts them off:
the projection is linear in right ascension, so both halves are where they belong.
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
"""HEALPix order of the smallest cells, 0.9 degrees wide: some two pixels of the map."""
MOST_CELLS = 1600
"""Else cells four times as large are drawn."""
WHOLE_SKY = 0.3
"""Images of more than this part of the sky are told of, not drawn: they would hide all others."""
STEPS = 5
"""Colours of cells."""
FEW_CELLS, FEW_GROUPS, SMALL_GROUP = 400, 40, 14
"""Groups of cells that are hard to see have rings around them, where there are few."""
WIDTH, HEIGHT, MARGIN = 1000, 500, 16
LARGEST_PART = math.radians(50)
"""Radius of what is shown on a map of a part of the sky."""
PART_WIDTH = 1000
PART_HEIGHTS = (200, 560)
FOOT = 34
"""Below the outlines, for the bar of scale."""
GALAXY = ((192.85948, 27.12825), 122.93192)
"""North pole of the galaxy (ICRS, degrees), and the galactic longitude of the celestial pole."""


@dataclass(frozen=True)
class SkyMap:
    """A drawing and what there is to say about it.

    Attributes:
        svg: the drawing.
        most: the largest count of a cell.
        whole: how many images of the whole sky are not drawn.
        cell_deg: side of a square as large as a cell, degrees.
    """

    svg: Markup
    most: int
    whole: int
    cell_deg: float


def counts(coverage: Cells, order: int) -> NDArray[np.int64]:
    """Count the images of each cell; `coverage` as the catalogue gives it, of this order."""
    number = np.zeros(12 * 4**order + 1, np.int64)
    image, first, last = coverage.T
    # An image counts once in a cell, also where two of its ranges touch it.
    same = np.append(False, image[1:] == image[:-1])[: len(image)]
    before = np.append(-1, last[:-1])[: len(image)]
    first = np.where(same, np.maximum(first, before + 1), first)
    some = first <= last
    np.add.at(number, first[some], 1)
    np.add.at(number, last[some] + 1, -1)
    return np.cumsum(number)[:-1]


def _coarser(coverage: Cells) -> Cells:
    """Give the same in cells four times as large."""
    image, first, last = coverage.T
    first, last = first >> 2, last >> 2
    # Ranges of an image that fell together follow each other.
    again = (image[1:] == image[:-1]) & (first[1:] == first[:-1]) & (last[1:] == last[:-1])
    found: Cells = np.column_stack([image, first, last])[np.append(True, ~again)[: len(image)]]
    return found


def sky_map(given: Sequence[tuple[int, int, int]], images: int) -> SkyMap:
    """Draw the whole sky with the coverage, of order FINEST, of so many images."""
    order = FINEST
    coverage, whole = _without_whole(np.array(given, np.int64).reshape(-1, 3), order)
    number = counts(coverage, order)
    while np.count_nonzero(number) > MOST_CELLS:
        order -= 1
        coverage = _coarser(coverage)
        number = counts(coverage, order)
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
    return SkyMap(Markup("".join(parts)), most, whole, side_deg)


def _without_whole(coverage: Cells, order: int) -> tuple[Cells, int]:
    """Leave out images of most of the sky, and count them."""
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
    """Give places on the map; longitudes may go beyond 180 degrees either way."""
    lat = np.radians(np.clip(lat_deg, -90, 90))
    theta = lat.copy()
    for _ in range(40):  # slow only next to the poles, where it hardly matters
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
    # Right ascensions of corners as they lie beside the middle, that at most 180 degrees off.
    centre = (ra + 180) % 360 - 180
    lon = centre[:, None] + (sides[0].deg - centre[:, None] + 180) % 360 - 180
    x, y = mollweide(lon, sides[1].deg)
    turn = np.where(centre > 0, -360, 360)
    other_x, _ = mollweide(lon + turn[:, None], sides[1].deg)
    twice = np.abs(lon).max(axis=1) > 180
    level = np.full(len(cells), STEPS // 2 + 1)
    if most > 1:
        level = 1 + (np.log(number) / math.log(most) * (STEPS - 1e-6)).astype(int)
    drawn = []
    for at in range(len(cells)):
        path = _path(x[at], y[at]) + (_path(other_x[at], y[at]) if twice[at] else "")
        title = f"{plural(int(number[at]), 'image')} near RA {ra[at]:.1f}°, Dec {dec[at]:+.1f}°"
        drawn.append(
            f'<path class="cell-{level[at]}" d="{path}">'
            f"<title>{title.replace('-', MINUS)}</title></path>"
        )
    if len(cells) <= FEW_CELLS:
        drawn += _rings(*mollweide(centre, dec))
    return drawn


def _path(x: Array, y: Array) -> str:
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return f"M{'L'.join(places)}Z"


def _rings(x: Array, y: Array, gap: float = 22) -> list[str]:
    """Draw a ring around each small group of cells that lie close together."""
    left = set(range(len(x)))
    groups = []
    while left:
        group, new = list[int](), {left.pop()}
        while new:
            at = new.pop()
            group.append(at)
            near = {other for other in left if math.hypot(x[at] - x[other], y[at] - y[other]) < gap}
            left -= near
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
    drawn = []
    lat = np.linspace(-90, 90, 61)
    for ra in range(-120, 180, 60):
        drawn.append(_line("grid", *mollweide(np.full(61, float(ra)), lat)))
    for dec in (-60, -30, 0, 30, 60):
        drawn.append(_line("grid", *mollweide(np.array([-180.0, 180.0]), np.full(2, float(dec)))))
    return "".join(drawn) + _galaxy()


def _galaxy() -> str:
    """Draw the middle of the Milky Way, where the galactic latitude is 0."""
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
    drawn = []
    for hours in (8, 4, 0, 20, 16):
        lon = (hours * 15 + 180) % 360 - 180
        (x,), (y,) = mollweide(np.array([float(lon)]), np.array([0.0]))
        drawn.append(_text(x + 5, y - 6, f"{hours} h"))
    for dec in (-60, -30, 30, 60):
        (x,), (y,) = mollweide(np.array([0.0]), np.array([float(dec)]))
        drawn.append(_text(x + 5, y - 6, f"{dec:+d}°".replace("-", MINUS)))
    return "".join(drawn)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def part_map(outlines: Sequence[Sequence[float]], names: Sequence[str]) -> Markup | None:
    """Draw outlines, `ra, dec, ra, dec, ...` in degrees, on the plane that touches their middle.

    There great circles are lines. `None` where they lie too far apart for such a map.
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

    def placed(points: Array) -> tuple[Array, Array]:
        return (
            PART_WIDTH / 2 - (points[:, 0] - mid[0]) * scale,
            room / 2 - (points[:, 1] - mid[1]) * scale,
        )

    drawn = [
        _opening(PART_WIDTH, height, f"Outlines of {plural(len(outlines), 'image')}"),
        f'<rect class="edge" x="0.5" y="0.5" width="{PART_WIDTH - 1}" height="{height - 1:.1f}" '
        'rx="4"/>',
    ]
    for outline, name in zip(np.split(plane, ends), names, strict=True):
        path = _path(*placed(outline))
        drawn.append(f'<path class="outline" d="{path}"><title>{escape(name)}</title></path>')
    drawn.append(_scale_bar(centre, scale, height))
    return Markup("".join([*drawn, "</svg>"]))


def _scale_bar(centre: Array, scale: float, height: float) -> str:
    """Draw a bar of known length, and say where the middle is."""
    fitting = [step for step in LENGTHS_DEG if step * scale <= PART_WIDTH / 5]
    length = fitting[-1] if fitting else LENGTHS_DEG[0]
    ra, dec = degrees(centre)
    told = f"{length:g}°" if length >= 1 else f"{length * 60:g}{MINUTES}"
    y = height - 14
    bar = f"M14 {y - 4:.1f}v8M14 {y:.1f}h{length * scale:.1f}m0 -4v8"
    where = f"middle: RA {float(ra):.3f}°, Dec {float(dec):+.3f}°".replace("-", MINUS)
    return (
        f'<path class="bar-of-scale" d="{bar}"/>'
        + _text(14 + length * scale + 8, y + 4, told)
        + _text(PART_WIDTH - 14, y + 4, where, "end")
    )


LENGTHS_DEG = (1 / 60, 2 / 60, 5 / 60, 10 / 60, 20 / 60, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def scale_svg() -> Markup:
    """Draw the colours of cells, from few to many."""
    cells = "".join(
        f'<rect class="cell-{step}" x="{20 * (step - 1)}" width="20" height="12"/>'
        for step in range(1, STEPS + 1)
    )
    return Markup(f'<svg viewBox="0 0 {20 * STEPS} 12" aria-hidden="true">{cells}</svg>')
