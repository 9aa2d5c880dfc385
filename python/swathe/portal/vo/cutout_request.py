"""One cutout request, parsed from its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.portal.vo import parameters
from swathe.portal.vo.errors import VoError

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.core.box import Box
    from swathe.portal.vo.geometry.regions import Region
    from swathe.portal.vo.parameters import Interval, Parameters

PLACES = ("POS", "CIRCLE", "POLYGON", "SUB")
"""Parameters that select pixels. A request may have one of them."""


@dataclass(frozen=True)
class Wanted:
    """The requested part of an image. A missing criterion selects everything."""

    region: Region | None = None
    box: Box | None = None
    hdu: HduKey | None = None
    band: Interval | None = None
    time: Interval | None = None
    states: frozenset[str] = field(default_factory=frozenset)


def read_place(name: str, value: str) -> Wanted:
    """Parse a value of one of `PLACES`."""
    match name:
        case "POS":
            return Wanted(region=parameters.position(name, value))
        case "CIRCLE":
            return Wanted(region=parameters.circle(name, value))
        case "POLYGON":
            return Wanted(region=parameters.polygon(name, value))
        case _:
            hdu, box = parameters.sub(name, value)
            return Wanted(box=box, hdu=hdu)


def read_wanted(given: Parameters) -> Wanted:
    """Parse the parameters of one cut. Only POL may have several values.

    Raises:
        VoError: If a value is invalid, or a parameter has several.
    """
    place = Wanted()
    region_names = [name for name in PLACES if name in given]
    if len(region_names) > 1:
        raise VoError(
            "MultiValuedParamNotSupported",
            f"expected one of {', '.join(PLACES)}, found {' and '.join(region_names)}",
            400,
        )
    for name in region_names:
        value = given.one(name)
        assert value is not None
        place = read_place(name, value)
    band, time = given.one("BAND"), given.one("TIME")
    return Wanted(
        place.region,
        place.box,
        place.hdu,
        None if band is None else parameters.wavelengths("BAND", band),
        None if time is None else parameters.interval("TIME", time),
        frozenset(parameters.state("POL", value) for value in given.all("POL")),
    )
