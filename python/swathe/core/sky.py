"""Places in the sky on one image: its WCS, and boxes around them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from swathe.core.angles import Size
from swathe.core.box import LIMIT, Box, box_around, height_width
from swathe.core.errors import NoOverlapError, RegionError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.wcs import WCS
    from numpy.typing import NDArray


def read_wcs(header: bytes, tables: bytes = b"") -> WCS:
    """Give the WCS of a header, with the lookup tables it names from a FITS file in memory."""
    import warnings
    from io import BytesIO

    from astropy.io import fits
    from astropy.wcs import WCS, FITSFixedWarning

    with warnings.catch_warnings():
        # Old headers need many small repairs of no concern to a cut.
        warnings.simplefilter("ignore", FITSFixedWarning)
        cards = fits.Header.fromstring(header)
        if not tables:
            return WCS(cards)
        with fits.open(BytesIO(tables), memmap=False) as hdus:
            return WCS(cards, hdus)


class SkyMapping:
    """Places in the sky on one image."""

    def __init__(self, wcs: Callable[[], WCS], label: str) -> None:
        """Take what reads the WCS; `label` names the image in errors."""
        from astropy.wcs.utils import proj_plane_pixel_scales

        self.label = label
        try:
            full = wcs()
        except Exception as error:  # wcslib's own classes share no base
            raise RegionError(f"{label}: its WCS cannot be used: {error}") from error
        if not full.has_celestial:
            raise RegionError(f"{label}: its WCS has no celestial axes")
        self.wcs = full if full.naxis == 2 else full.celestial
        # 0 is NAXIS1.
        self.axes: tuple[int, int] = (
            min(full.wcs.lng, full.wcs.lat),
            max(full.wcs.lng, full.wcs.lat),
        )
        # Degrees per pixel along NAXIS1 and NAXIS2.
        self.scales = [float(scale) for scale in proj_plane_pixel_scales(self.wcs)]
        units = [str(unit) for unit in self.wcs.wcs.cunit]
        if any(unit not in ("deg", "") for unit in units) or not all(
            math.isfinite(scale) and scale > 0 for scale in self.scales
        ):
            raise RegionError(
                f"{label}: its WCS has pixel scales of {self.scales} {units}, "
                "expected positive degrees"
            )

    def axes_among(self, count: int) -> tuple[int, int]:
        """Give the two axes of the sky of an image that has so many; 0 is NAXIS1.

        Raises:
            RegionError: where one of them is none of the image's.
        """
        if self.axes[1] >= count:
            raise RegionError(f"{self.label}: its sky has no pixels")
        return self.axes

    def pixels(self, coordinates: SkyCoord) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the zero-based pixel positions of coordinates in any frame; NaN where there is none.

        All distortions count, as for `Cutout2D`.
        """
        import numpy as np
        from astropy.coordinates import ConvertError
        from astropy.wcs import NoConvergence
        from astropy.wcs.utils import wcs_to_celestial_frame

        try:
            frame = wcs_to_celestial_frame(self.wcs)
        except ValueError as error:
            kinds = ", ".join(self.wcs.wcs.ctype)
            raise RegionError(
                f"{self.label}: expected a WCS in a frame of the sky, found axes {kinds}; cut it "
                "by pixels"
            ) from error
        try:
            there = coordinates.transform_to(frame).spherical
        except (ValueError, ConvertError) as error:  # such as frames of the Sun
            raise RegionError(f"{self.label}: {error}") from error
        world = np.column_stack([there.lon.deg, there.lat.deg])
        if self.wcs.wcs.lng == 1:
            world = world[:, ::-1]
        try:
            found = self.wcs.all_world2pix(world, 0)
        except NoConvergence as error:
            found = np.array(error.best_solution)
            lost = [rows for rows in (error.divergent, error.slow_conv) if rows is not None]
            for rows in lost:
                found[rows] = np.nan
        return found[:, 0], found[:, 1]

    def directions(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give where zero-based pixel positions are: ICRS unit vectors `(n, 3)`, NaN where nowhere.

        Raises:
            RegionError: where the frame is not one of the stars.
        """
        import numpy as np
        from astropy.coordinates import SkyCoord
        from astropy.wcs.utils import wcs_to_celestial_frame

        lng, lat = self.wcs.wcs.lng, self.wcs.wcs.lat
        try:
            found = self.wcs.all_pix2world(np.column_stack([x, y]), 0)
            # Some projections give numbers for what is no place.
            found[~(np.abs(found[:, lat]) <= 90)] = np.nan
            frame = wcs_to_celestial_frame(self.wcs)
            there = SkyCoord(found[:, lng], found[:, lat], unit="deg", frame=frame)
            vectors: NDArray[np.float64] = np.array(there.icrs.cartesian.xyz.value.T)
        except Exception as error:  # wcslib's own classes share no base
            raise RegionError(f"{self.label}: its pixels have no place: {error}") from error
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def shape(self, height_deg: float, width_deg: float) -> tuple[int, int]:
        """Give height and width in pixels, rounded as `Cutout2D` does.

        Raises:
            RegionError: where an angle is not finite, or below half a pixel.
        """
        pixels = []
        for angle, scale in ((height_deg, self.scales[1]), (width_deg, self.scales[0])):
            if not math.isfinite(angle) or not 0.5 <= angle / scale <= LIMIT:
                raise RegionError(
                    f"{self.label}: size_deg must be an angle of at least half a pixel "
                    f"({scale / 2:.3g} degrees), not {angle}"
                )
            pixels.append(round(angle / scale))
        return pixels[0], pixels[1]

    def box(self, coordinate: SkyCoord, size: float | tuple[float, float] | Size) -> Box:
        """Give the box around one coordinate; `size` is as for `box_at`."""
        x, y = (float(values[0]) for values in self.pixels(coordinate))
        return self.box_at(x, y, size)

    def box_at(self, x: float, y: float, size: float | tuple[float, float] | Size) -> Box:
        """Give the box around a position that `pixels` gave.

        Args:
            x: along NAXIS1.
            y: along NAXIS2.
            size: one side, or height and width, in degrees; or these with their unit.

        Raises:
            NoOverlapError: where the coordinate has no place in the image's projection.
            RegionError: where the size is no angle, or the sky is not on the axes of boxes.
        """
        if self.axes != (0, 1):
            raise RegionError(
                f"{self.label}: its sky is on axes {self.axes[0] + 1} and {self.axes[1] + 1}; "
                "boxes are of axes 1 and 2"
            )
        height, width = self._sides(size)
        if not (math.isfinite(x) and math.isfinite(y)):
            raise NoOverlapError(f"{self.label}: the position has no place in its projection")
        if max(abs(x), abs(y)) > LIMIT / 2:
            raise NoOverlapError(f"{self.label}: the position lies far outside the image")
        return box_around(x, y, height, width)

    def _sides(self, size: float | tuple[float, float] | Size) -> tuple[float, float]:
        """Give height and width in pixels."""
        if not isinstance(size, Size):
            return self.shape(*height_width(size))
        if size.unit == "deg":
            return self.shape(size.height, size.width)
        return size.height, size.width


def coordinates(ra_deg: Any, dec_deg: Any) -> SkyCoord:
    """Give ICRS coordinates of degrees, as an array of at least one.

    Raises:
        RegionError: where one is not finite, or a declination beyond a pole.
    """
    import numpy as np
    from astropy.coordinates import SkyCoord

    ra, dec = np.atleast_1d(np.asarray(ra_deg, float)), np.atleast_1d(np.asarray(dec_deg, float))
    wrong = ~(np.isfinite(ra) & np.isfinite(dec) & (np.abs(dec) <= 90))
    if wrong.any():
        raise RegionError(
            "a sky position is a right ascension and a declination from -90 to 90 degrees, "
            f"not {ra[wrong][0]}, {dec[wrong][0]}"
        )
    return SkyCoord(ra, dec, unit="deg", frame="icrs")
