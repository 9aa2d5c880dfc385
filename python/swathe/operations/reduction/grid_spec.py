"""Grids of resolution reduction, and their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

GLOBE = (-180.0, -90.0, 180.0, 90.0)
NUMBER = r"(\d{1,6}(?:\.\d{1,12})?|\.\d{1,12})"
REGULAR = re.compile(rf"{NUMBER}(?:x{NUMBER})?deg")
GAUSSIAN = re.compile(r"N(\d{1,6})")
HEALPIX = re.compile(r"healpix(\d{1,6})(-ring)?")
EXPECTATION = "0.25deg, 0.5x0.25deg (latitude x longitude), N80, healpix64 or healpix64-ring"


@dataclass(frozen=True)
class GridSpec:
    """A grid of the globe or a part of it.

    A cell holds [south, north) x [west, east) in degrees; the last row holds the pole, too.

    Attributes:
        kind: `regular`, `gaussian`, `healpix` (nested order) or `healpix-ring`.
        steps: degrees of latitude and longitude of a regular grid; else its number, twice.
        bounds: west, south, east and north in degrees, of a regular grid.
    """

    kind: str
    steps: tuple[float, float]
    bounds: tuple[float, float, float, float] = GLOBE

    @classmethod
    def of(cls, grid: str | GridSpec) -> GridSpec:
        """Return a grid, or that of a name.

        Raises:
            OptionError: If it is neither.
        """
        if isinstance(grid, GridSpec):
            return grid
        if not isinstance(grid, str):
            raise OptionError(f"grid: expected {EXPECTATION}, found {grid!r:.40}")
        return cls.parse(grid)

    @classmethod
    def parse(cls, text: str, bounds: Sequence[float] | None = None) -> GridSpec:
        """Return the grid of a name, such as `0.25deg`.

        Args:
            text: name of the grid.
            bounds: west, south, east and north in degrees; the globe by default.

        Raises:
            OptionError: If it is no name of a grid, or bounds are given for another than a regular
                one.
        """
        if match := REGULAR.fullmatch(text):
            lat = float(match[1])
            box = GLOBE if bounds is None else _box(bounds)
            return cls("regular", (lat, float(match[2] or lat)), box)
        if bounds is not None:
            raise OptionError(f"bounds: expected a regular grid such as 1deg, found {text!r:.40}")
        if match := GAUSSIAN.fullmatch(text):
            return cls("gaussian", (float(match[1]),) * 2)
        if match := HEALPIX.fullmatch(text):
            return cls(f"healpix{match[2] or ''}", (float(match[1]),) * 2)
        raise OptionError(f"grid: expected {EXPECTATION}, found {text!r:.40}")

    @property
    def cells(self) -> int:
        """Return the number of its cells."""
        lat, lon = self.steps
        if self.kind == "regular":
            west, south, east, north = self.bounds
            return round((north - south) / lat) * round((east - west) / lon)
        return round(8 * lat * lat if self.kind == "gaussian" else 12 * lat * lat)

    def __str__(self) -> str:
        """Return its name."""
        lat, lon = self.steps
        if self.kind == "regular":
            return f"{lat:.12g}x{lon:.12g}deg"
        if self.kind == "gaussian":
            return f"N{lat:.0f}"
        return f"healpix{lat:.0f}{self.kind.removeprefix('healpix')}"


def _box(bounds: Sequence[float]) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = map(float, bounds)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"bounds: expected west, south, east, north in degrees, found {bounds!r:.60}"
        ) from error
    return west, south, east, north
