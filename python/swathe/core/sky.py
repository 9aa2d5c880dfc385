"""Map sky positions to pixels of one image by its WCS, and make boxes around them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

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
    """Return the WCS of a header, with its lookup tables read from a FITS file in memory."""
    import warnings
    from io import BytesIO

    from astropy.io import fits
    from astropy.wcs import WCS, FITSFixedWarning

    with warnings.catch_warnings():
        # Old headers need many small repairs that do not matter for a cut.
        warnings.simplefilter("ignore", FITSFixedWarning)
        cards = fits.Header.fromstring(header)
        if not tables:
            return WCS(cards)
        with fits.open(BytesIO(tables), memmap=False) as hdus:
            return WCS(cards, hdus)


class SkyBoxes(Protocol):
    """What makes boxes around positions: a `SkyMapping`, or the GWCS of an array."""

    def boxes(self, coordinates: SkyCoord) -> Callable[[int, float | Size], Box]:
        """Return the function that makes the box around one of some coordinates, by its number."""


class SkyScales:
    """Boxes of pixels around positions, by the size of a pixel on the sky.

    Attributes:
        label: name of the image in errors.
        axes: numbers of its two sky axes; 0 is NAXIS1.
        scales: degrees per pixel along each of them.
    """

    def __init__(self, label: str, axes: tuple[int, int], scales: list[float]) -> None:
        self.label, self.axes, self.scales = label, axes, scales

    def shape(self, height_deg: float, width_deg: float) -> tuple[int, int]:
        """Return height and width in pixels, rounded as in `Cutout2D`.

        Raises:
            RegionError: If an angle is not finite, or below half a pixel.
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

    def box_at(self, x: float, y: float, size: float | tuple[float, float] | Size) -> Box:
        """Return the box around a position that `pixels` returned.

        Args:
            x: along NAXIS1.
            y: along NAXIS2.
            size: side, or height and width, in degrees; or a `Size` with its unit.

        Raises:
            NoOverlapError: If the coordinate has no position in the image's projection.
            RegionError: If the size is not an angle, or the sky is not on axes 1 and 2.
        """
        if self.axes != (0, 1):
            raise RegionError(
                f"{self.label}: its sky is on axes {self.axes[0] + 1} and {self.axes[1] + 1}; "
                "boxes are of axes 1 and 2"
            )
        height, width = self._sides(size)
        if not (math.isfinite(x) and math.isfinite(y)):
            raise NoOverlapError(f"{self.label}: its projection shows no such position")
        if max(abs(x), abs(y)) > LIMIT / 2:
            raise NoOverlapError(f"{self.label}: the position lies far outside the image")
        return box_around(x, y, height, width)

    def _sides(self, size: float | tuple[float, float] | Size) -> tuple[float, float]:
        """Return height and width in pixels."""
        if not isinstance(size, Size):
            return self.shape(*height_width(size))
        if size.unit == "deg":
            return self.shape(size.height, size.width)
        return size.height, size.width


class SkyMapping(SkyScales):
    """Mapping between sky positions and pixels of one image."""

    def __init__(self, wcs: Callable[[], WCS], label: str) -> None:
        """Read the WCS by calling `wcs`; `label` names the image in errors."""
        from astropy.wcs.utils import proj_plane_pixel_scales

        try:
            full = wcs()
        except Exception as error:  # wcslib's own classes share no base
            raise RegionError(f"{label}: its WCS cannot be used: {error}") from error
        if not full.has_celestial:
            raise RegionError(f"{label}: its WCS has no celestial axes")
        self.wcs = full if full.naxis == 2 else full.celestial
        super().__init__(
            label,
            (min(full.wcs.lng, full.wcs.lat), max(full.wcs.lng, full.wcs.lat)),
            [float(scale) for scale in proj_plane_pixel_scales(self.wcs)],
        )
        units = [str(unit) for unit in self.wcs.wcs.cunit]
        if any(unit not in ("deg", "") for unit in units) or not all(
            math.isfinite(scale) and scale > 0 for scale in self.scales
        ):
            raise RegionError(
                f"{label}: its WCS has pixel scales of {self.scales} {units}, "
                "expected positive degrees"
            )

    def axes_among(self, count: int) -> tuple[int, int]:
        """Return the two sky axes, checked against the image's number of axes; 0 is NAXIS1.

        Raises:
            RegionError: If one of them is not an axis of the image.
        """
        if self.axes[1] >= count:
            raise RegionError(f"{self.label}: its sky axes have no pixels")
        return self.axes

    def world_to_pixel(
        self, coordinates: SkyCoord
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return zero-based pixel positions of coordinates in any frame; NaN if there is none.

        All distortions are applied, as in `Cutout2D`.
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
            position = coordinates.transform_to(frame).spherical
        except (ValueError, ConvertError) as error:  # such as frames of the Sun
            raise RegionError(f"{self.label}: {error}") from error
        world = np.column_stack([position.lon.deg, position.lat.deg])
        if self.wcs.wcs.lng == 1:
            world = world[:, ::-1]
        try:
            xy = self.wcs.all_world2pix(world, 0)
        except NoConvergence as error:
            xy = np.array(error.best_solution)
            failures = [rows for rows in (error.divergent, error.slow_conv) if rows is not None]
            for rows in failures:
                xy[rows] = np.nan
        return xy[:, 0], xy[:, 1]

    def pixel_to_vector(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return ICRS unit vectors `(n, 3)` of zero-based pixel positions; NaN if off the sky.

        Raises:
            RegionError: If the frame cannot be converted to ICRS.
        """
        import numpy as np
        from astropy.coordinates import SkyCoord
        from astropy.wcs.utils import wcs_to_celestial_frame

        lng, lat = self.wcs.wcs.lng, self.wcs.wcs.lat
        try:
            world = self.wcs.all_pix2world(np.column_stack([x, y]), 0)
            # Some projections return numbers for positions off the sky.
            world[~(np.abs(world[:, lat]) <= 90)] = np.nan
            frame = wcs_to_celestial_frame(self.wcs)
            coordinates = SkyCoord(world[:, lng], world[:, lat], unit="deg", frame=frame)
            vectors: NDArray[np.float64] = np.array(coordinates.icrs.cartesian.xyz.value.T)
        except Exception as error:  # wcslib's own classes share no base
            raise RegionError(f"{self.label}: its WCS cannot be used: {error}") from error
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def boxes(self, coordinates: SkyCoord) -> Callable[[int, float | Size], Box]:
        """Return the function that makes the box around one of some coordinates, by its number.

        It raises as `box_at` does.

        Raises:
            RegionError: If the frame of the image cannot be reached.
        """
        x, y = (values.tolist() for values in self.world_to_pixel(coordinates))
        return lambda number, size: self.box_at(x[number], y[number], size)

    def box(self, coordinate: SkyCoord, size: float | tuple[float, float] | Size) -> Box:
        """Return the box around one coordinate; `size` is as in `box_at`."""
        x, y = (float(values[0]) for values in self.world_to_pixel(coordinate))
        return self.box_at(x, y, size)


def coordinates(ra_deg: Any, dec_deg: Any) -> SkyCoord:
    """Return ICRS coordinates from degrees, as an array of at least one.

    Raises:
        RegionError: If a number is not finite, or a declination is beyond a pole.
    """
    import numpy as np
    from astropy.coordinates import SkyCoord

    ra, dec = np.atleast_1d(np.asarray(ra_deg, float)), np.atleast_1d(np.asarray(dec_deg, float))
    invalid = ~(np.isfinite(ra) & np.isfinite(dec) & (np.abs(dec) <= 90))
    if invalid.any():
        raise RegionError(
            "a sky position is a right ascension and a declination from -90 to 90 degrees, "
            f"not {ra[invalid][0]}, {dec[invalid][0]}"
        )
    return SkyCoord(ra, dec, unit="deg", frame="icrs")
