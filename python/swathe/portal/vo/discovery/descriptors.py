"""Service descriptors, which clients read from a table (DataLink 1.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from swathe.portal.vo.discovery.votable import Field, param, service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Match

SODA = "ivo://ivoa.net/std/SODA#sync-1.0"
SODA_ASYNC = "ivo://ivoa.net/std/SODA#async-1.0"
DATALINK = "ivo://ivoa.net/std/DataLink#links-1.1"
DATALINK_TYPE = "application/x-votable+xml;content=datalink"
MOST_CORNERS = 64
"""Maximum number of corners of an outline given as a polygon; else only the circle is given."""

ID = Field("ID", ucd="meta.id;meta.main", about="publisher DID of the image")
POS = Field("POS", ucd="pos.outline;obs", about="CIRCLE, RANGE or POLYGON, degrees, ICRS")
CIRCLE = Field(
    "CIRCLE",
    "double",
    "3",
    "deg",
    "pos.outline;obs",
    xtype="circle",
    about="ra, dec, radius (ICRS) of the region to cut",
)
POLYGON = replace(
    CIRCLE, name="POLYGON", size="*", xtype="polygon", about="ra, dec of corners (ICRS)"
)
BAND = Field(
    "BAND",
    "double",
    "2",
    "m",
    "em.wl;stat.interval",
    xtype="interval",
    about="wavelengths in vacuum, from and to",
)
TIME = Field(
    "TIME", "double", "2", "d", "time.interval;obs.exposure", xtype="interval", about="MJD, UTC"
)
POL = Field(
    "POL", ucd="meta.code;phys.polarization", about="states of polarization; may be repeated"
)
SUB = Field("SUB", about="[ext][x1:x2,y1:y2], one-based pixels, both ends included")
RESPONSEFORMAT = Field("RESPONSEFORMAT", ucd="meta.code.mime", about="media type of the result")


def soda(
    identifier: str, url: str, column: str, match: Match | None = None, states: Sequence[str] = ()
) -> str:
    """Describe the cutout service: for any image, or for one, with its coverage.

    Args:
        identifier: XML ID of the description.
        url: URL of the service.
        column: Column of the table with the DIDs.
        match: The image, or None for any image.
        states: States of polarization of the image.
    """
    inputs = [param(ID, ref=column), param(POS)]
    bounds = _bounds(match)
    for field in (CIRCLE, POLYGON, BAND, TIME):
        if match is None or field.name in bounds:
            least, most = bounds.get(field.name, (None, None))
            inputs.append(param(field, least=least, most=most))
    if match is None or states:
        inputs.append(param(POL, options=[state for state in states if state]))
    inputs += [
        param(SUB),
        param(RESPONSEFORMAT, options=["application/fits", "image/png"]),
    ]
    about = "cut a region out of the image" if match else "cut a region out of an image"
    return service(identifier, url, SODA, inputs, about)


def links(identifier: str, url: str, column: str) -> str:
    """Describe the service that lists the links of an image."""
    about = "links of an image: its file, a preview, cutouts"
    content = param(Field("contentType"), DATALINK_TYPE)
    return service(identifier, url, DATALINK, [param(ID, ref=column)], about, content)


def _bounds(match: Match | None) -> dict[str, tuple[str | None, str | None]]:
    """Return the coverage of an image, as MIN and MAX of each parameter."""
    if match is None:
        return {}
    granule = match.granule
    bounds: dict[str, tuple[str | None, str | None]] = {}
    footprint = granule.footprint
    if footprint is not None:
        around = f"{footprint.s_ra:.8f} {footprint.s_dec:.8f} {footprint.s_fov / 2:.8f}"
        bounds["CIRCLE"] = None, around
        outline = footprint.outline or []
        few = 0 < len(outline) <= 2 * MOST_CORNERS
        bounds["POLYGON"] = None, " ".join(f"{at:.8f}" for at in outline) if few else None
    for name, ends in (
        ("BAND", (granule.em_min, granule.em_max)),
        ("TIME", (granule.t_min, granule.t_max)),
    ):
        if ends != (None, None):
            low, high = ends
            bounds[name] = (
                None if low is None else repr(low),
                None if high is None else repr(high),
            )
    return bounds
