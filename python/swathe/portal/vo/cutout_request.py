"""What one cut is to be, as its parameters say."""

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
"""Each says which pixels; one of them may be given."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted of an image; what is not said is all of it."""

    region: Region | None = None
    box: Box | None = None
    hdu: HduKey | None = None
    band: Interval | None = None
    time: Interval | None = None
    states: frozenset[str] = field(default_factory=frozenset)


def read_place(name: str, value: str) -> Wanted:
    """Read a value of one of `PLACES`."""
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
    """Read what one cut is to be: one value of each parameter, but of POL.

    Raises:
        VoError: where a value makes no sense, or there are several.
    """
    place = Wanted()
    named = [name for name in PLACES if name in given]
    if len(named) > 1:
        raise VoError(
            "MultiValuedParamNotSupported",
            f"{' and '.join(named)} are places each; one may be given here",
            400,
        )
    for name in named:
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
