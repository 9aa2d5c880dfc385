"""Maps of the Earth as SVG: outlines of arrays, longitude to the right, latitude up.

The projection is equirectangular, with longitude 0 in the middle. An outline that crosses the
dateline is drawn on both sides; one around a pole is closed along the edge of the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from swathe.datasets.spherical import degrees, directions
from swathe.portal.pages.words import MINUS, plural

DEGREE = 1000 / 360
"""Units of the drawing for each degree."""
MOST_CORNERS = 20_000
"""Corners of all outlines on a map."""
MOST_CHARACTERS = 1 << 19
"""Characters of all outlines, whose long sides have places between the corners."""
STEP_DEG = 3.0
"""Longest part of a great circle that is drawn as a straight line."""
GRID_DEG = 30


@dataclass(frozen=True)
class EarthMap:
    """A map of outlines.

    Attributes:
        svg: drawing as SVG.
        arrays: number of arrays whose outlines are drawn.
    """

    svg: Markup
    arrays: int


def earth_map(places: Iterable[tuple[str, Sequence[Sequence[float]]]]) -> EarthMap | None:
    """Draw the outlines of arrays; return `None` if there are none.

    Args:
        places: name and outlines of each array, `lon, lat, lon, lat, ...` in degrees. Those after
            20,000 corners, or 500 kB, are left out.
    """
    paths = _paths(places)
    if not paths:
        return None
    about = f"Outlines of {plural(len(paths), 'array')} on the Earth"
    return EarthMap(_svg(paths, about), len(paths))


def box_map(
    places: Iterable[tuple[str, Sequence[Sequence[float]]]],
    bounds: tuple[float, float, float, float] | None,
) -> EarthMap:
    """Draw outlines of granules, and the box of a search.

    Args:
        places: as for `earth_map`; an empty list of outlines is left out.
        bounds: `west, south, east, north` in degrees; west > east crosses the dateline.
    """
    paths = _paths((name, outlines) for name, outlines in places if outlines)
    about = f"Map of the Earth with the outlines of {plural(len(paths), 'granule')}"
    boxes = []
    if bounds is not None:
        west, south, east, north = bounds
        about += " and the box of the search"
        sides = [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]
        boxes = [
            f'<rect class="box" x="{(left + 180) * DEGREE:.1f}" y="{(90 - north) * DEGREE:.1f}" '
            f'width="{(right - left) * DEGREE:.1f}" height="{(north - south) * DEGREE:.1f}"/>'
            for left, right in sides
        ]
    return EarthMap(_svg([*paths, *boxes], about), len(paths))


def _svg(parts: Sequence[str], about: str) -> Markup:
    opening = (
        f'<svg viewBox="0 0 {360 * DEGREE:g} {180 * DEGREE:g}" role="img" '
        f'aria-label="{about}" xmlns="http://www.w3.org/2000/svg">'
    )
    return Markup("".join([opening, _graticule(), *parts, "</svg>"]))


def _paths(places: Iterable[tuple[str, Sequence[Sequence[float]]]]) -> list[str]:
    """Return the drawings of outlines, as many as a map may have."""
    paths: list[str] = []
    corners = characters = 0
    for name, outlines in places:
        corners += sum(map(len, outlines)) // 2
        if corners > MOST_CORNERS:
            break
        drawing = "".join(map(_path, outlines))
        characters += len(drawing)
        if characters > MOST_CHARACTERS:
            break
        paths.append(f'<path class="outline" d="{drawing}"><title>{escape(name)}</title></path>')
    return paths


def _path(outline: Sequence[float]) -> str:
    """Return the path of an outline, once for each turn of longitude that the map shows."""
    lon, lat = _sides(np.array(outline, float).reshape(-1, 2))
    turn = round((lon[-1] - lon[0]) / 360)
    if turn:  # around a pole
        pole = 90.0 if lat.mean() > 0 else -90.0
        lon = np.concatenate([lon, [lon[-1], lon[0]]])
        lat = np.concatenate([lat, [pole, pole]])
    parts = []
    for shift in range(-720, 721, 360):
        if lon.max() + shift > -180 and lon.min() + shift < 180:
            x, y = (lon + shift + 180) * DEGREE, (90 - lat) * DEGREE
            places = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
            parts.append(f"M{'L'.join(places)}Z")
    return "".join(parts)


def _sides(corners: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitudes without jumps, and latitudes, along the great circles between corners.

    The last place is the first one again, perhaps a turn of longitude away.
    """
    vectors = directions(corners[:, 0], corners[:, 1])
    sides = np.roll(vectors, -1, axis=0) - vectors
    lengths_deg = np.degrees(2 * np.arcsin(np.minimum(1, np.linalg.norm(sides, axis=1) / 2)))
    counts = np.maximum(1, np.ceil(lengths_deg / STEP_DEG)).astype(int)
    which = np.repeat(np.arange(len(corners)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = vectors[which] + (number / counts[which])[:, None] * sides[which]
    lon, lat = degrees(np.concatenate([places, vectors[:1]]))
    return np.unwrap(lon, period=360), lat


def _graticule() -> str:
    """Draw meridians and parallels, with the degrees of some."""
    width, height = 360 * DEGREE, 180 * DEGREE
    lines = [f'<rect class="edge" width="{width:g}" height="{height:g}"/>']
    for lon in range(-180 + GRID_DEG, 180, GRID_DEG):
        x = (lon + 180) * DEGREE
        lines.append(f'<polyline class="grid" points="{x:.1f},0 {x:.1f},{height:g}"/>')
        if lon % (2 * GRID_DEG) == 0:
            lines.append(_label(x + 5, height / 2 - 6, f"{lon}°"))
    for lat in range(-90 + GRID_DEG, 90, GRID_DEG):
        y = (90 - lat) * DEGREE
        lines.append(f'<polyline class="grid" points="0,{y:.1f} {width:g},{y:.1f}"/>')
        if lat:
            lines.append(_label(5, y - 6, f"{lat:+d}°"))
    return "".join(lines)


def _label(x: float, y: float, text: str) -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}">{text.replace("-", MINUS)}</text>'
