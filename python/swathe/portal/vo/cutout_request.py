"""One cutout request, parsed from its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.portal.vo import parameters
from swathe.portal.vo.errors import VoError

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.core.box import Box
    from swathe.portal.vo.geometry.regions import SkyRegion
    from swathe.portal.vo.parameters import Interval, RequestParameters

PLACES = ("POS", "CIRCLE", "POLYGON", "SUB")
"""Parameters that select pixels. A request may have one of them."""


@dataclass(frozen=True)
class CutoutRequest:
    """The requested part of an image. A missing criterion selects everything."""

    region: SkyRegion | None = None
    box: Box | None = None
    hdu: HduKey | None = None
    band: Interval | None = None
    time: Interval | None = None
    states: frozenset[str] = field(default_factory=frozenset)


def read_region(name: str, value: str) -> CutoutRequest:
    """Parse a value of one of `PLACES`."""
    match name:
        case "POS":
            return CutoutRequest(region=parameters.position(name, value))
        case "CIRCLE":
            return CutoutRequest(region=parameters.circle(name, value))
        case "POLYGON":
            return CutoutRequest(region=parameters.polygon(name, value))
        case _:
            hdu, box = parameters.sub(name, value)
            return CutoutRequest(box=box, hdu=hdu)


def read_cutout_request(query: RequestParameters) -> CutoutRequest:
    """Parse the parameters of one cut. Only POL may have several values.

    Raises:
        VoError: If a value is invalid, or a parameter has several.
    """
    place = CutoutRequest()
    region_names = [name for name in PLACES if name in query]
    if len(region_names) > 1:
        raise VoError(
            "MultiValuedParamNotSupported",
            f"expected one of {', '.join(PLACES)}, found {' and '.join(region_names)}",
            400,
        )
    for name in region_names:
        value = query.one(name)
        assert value is not None
        place = read_region(name, value)
    band, time = query.one("BAND"), query.one("TIME")
    return CutoutRequest(
        place.region,
        place.box,
        place.hdu,
        None if band is None else parameters.wavelengths("BAND", band),
        None if time is None else parameters.interval("TIME", time),
        frozenset(parameters.state("POL", value) for value in query.all("POL")),
    )
