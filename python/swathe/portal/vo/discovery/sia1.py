"""`/vo/sia1`: SIA 1.0, search for images around a position, for clients that know no SIA 2.0.

With a size, links are cutouts of the region; without, images as a whole. Errors are reported in the
table, with status 200, as the standard of 2009 has it.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from urllib.parse import quote

from starlette.responses import Response

from swathe.core.errors import SwatheError
from swathe.files.pyramid import overview_step
from swathe.portal.vo import parameters
from swathe.portal.vo.discovery.query import each_image, most_rows
from swathe.portal.vo.discovery.votable import (
    Field,
    document,
    info,
    param,
    results,
    table,
)
from swathe.portal.vo.errors import to_vo_error, usage
from swathe.portal.vo.geometry.overlap import is_covered_by, is_within, shows
from swathe.portal.vo.geometry.regions import Circle, Range
from swathe.portal.vo.identifiers import did_of
from swathe.portal.vo.parameters import RequestParameters
from swathe.portal.vo.soda.sync import LARGEST
from swathe.portal.whole_file import is_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.requests import Request

    from swathe.catalog import Match
    from swathe.portal.vo.geometry.regions import SkyRegion
    from swathe.portal.vo.service import Service

MEDIA_TYPE = "text/xml;content=x-votable"
FITS, PNG = "image/fits", "image/png"
FORMATS = {FITS: FITS, "application/fits": FITS, PNG: PNG}
Intersect = Literal["OVERLAPS", "COVERS", "ENCLOSED", "CENTER"]
MOST_VERBOSE = 3
PIXEL_BYTES = 8
"""Size of the largest pixels, as the catalogue does not know it."""
ARCSEC = 1 / 3600
LEAST_COLUMNS = 8
"""Number of columns that SIA 1.0 demands: the first."""
FIELDS = (
    Field("title", ucd="VOX:Image_Title"),
    Field("ra", "double", None, "deg", "POS_EQ_RA_MAIN"),
    Field("dec", "double", None, "deg", "POS_EQ_DEC_MAIN"),
    Field("naxes", "int", ucd="VOX:Image_Naxes"),
    Field("naxis", "int", "*", "pix", "VOX:Image_Naxis", about="of cutouts an estimate"),
    Field("scale", "double", "*", "deg/pix", "VOX:Image_Scale"),
    Field("format", ucd="VOX:Image_Format"),
    Field("access_url", ucd="VOX:Image_AccessReference"),
    Field("instrument", ucd="INST_ID"),
    Field("mjd", "double", None, "d", "VOX:Image_MJDateObs", about="middle of the exposure"),
    Field("frame", ucd="VOX:STC_CoordRefFrame"),
    Field("band", ucd="VOX:BandPass_ID"),
    Field("band_unit", ucd="VOX:BandPass_Unit"),
    Field("band_reference", "double", None, "m", "VOX:BandPass_RefValue"),
    Field("band_high", "double", None, "m", "VOX:BandPass_HiLimit"),
    Field("band_low", "double", None, "m", "VOX:BandPass_LoLimit"),
    Field("pixels", ucd="VOX:Image_PixFlags", about="C: as in the archive; V: for the eye"),
    Field("size", "long", None, "byte", "VOX:Image_FileSize"),
    Field("publisher_did", ucd="meta.ref.ivoid"),
)
INPUTS = (
    (Field("INPUT:POS", unit="deg", about="right ascension, declination (ICRS): 10.5,-1.2"), ""),
    (Field("INPUT:SIZE", unit="deg", about="width and height of the region, or one for both"), "0"),
    (Field("INPUT:INTERSECT", about=", ".join(get_args(Intersect))), "OVERLAPS"),
    (Field("INPUT:FORMAT", about="ALL, METADATA, GRAPHIC, image/fits, image/png"), "ALL"),
    (Field("INPUT:COLLECTION", about="name of a dataset"), ""),
    (Field("INPUT:VERB", "int", about="0: the columns that the standard demands; else all"), "1"),
    (Field("INPUT:MAXREC", "int", about="largest number of images"), "1000"),
)


class SearchBox(NamedTuple):
    """The region of a search, a point if its sizes are 0."""

    ra_deg: float
    dec_deg: float
    width_deg: float
    height_deg: float

    @property
    def is_point(self) -> bool:
        """Return whether it has no size."""
        return not (self.width_deg and self.height_deg)

    @property
    def region(self) -> SkyRegion:
        """Return it as a range of right ascension and declination, or a point."""
        if self.is_point:
            return Circle(self.ra_deg, self.dec_deg, 0.0)
        low = max(self.dec_deg - self.height_deg / 2, -90.0)
        high = min(self.dec_deg + self.height_deg / 2, 90.0)
        across = math.cos(math.radians(self.dec_deg))
        # Across a pole the region has all right ascensions.
        if low <= -90 or high >= 90 or self.width_deg >= 360 * across:
            return Range(0.0, 360.0, low, high)
        half = self.width_deg / across / 2
        return Range((self.ra_deg - half) % 360, (self.ra_deg + half) % 360, low, high)


async def query(service: Service, request: Request) -> Response:
    """Return a table of images."""
    try:
        query_parameters = await parameters.read_parameters(request)
        content = await service.workers.run(lambda: _document(service, request, query_parameters))
    except SwatheError as error:
        fault = to_vo_error(error)
        refusal = document(results(info("QUERY_STATUS", "ERROR", fault.line)))
        status = 200 if fault.status == 400 else fault.status
        return Response(refusal, status, dict(fault.headers), MEDIA_TYPE)
    return Response(content, 200, media_type=MEDIA_TYPE)


def _document(service: Service, request: Request, query_parameters: RequestParameters) -> bytes:
    fields = FIELDS if _verbosity(query_parameters) else FIELDS[:LEAST_COLUMNS]
    text = query_parameters.one("FORMAT") or "ALL"
    if text.strip().upper() == "METADATA":
        inputs = [param(field, value) for field, value in INPUTS]
        return document(results(info("QUERY_STATUS", "OK"), *inputs, table(fields, ())))
    box, formats, most = _box(query_parameters), _formats(text), most_rows(query_parameters)
    test = _test(query_parameters, box)
    matches = []
    if formats:
        # One more shows whether there are more.
        images = _images(service, query_parameters, box, test)
        matches = list(islice(images, most + 1))
    status = "OVERFLOW" if formats and (len(matches) > most or not most) else "OK"
    rows = [
        _row(service, request, match, box, form)[: len(fields)]
        for match in matches[:most]
        for form in formats
    ]
    return document(results(info("QUERY_STATUS", status), table(fields, rows)))


def _images(
    service: Service,
    query_parameters: RequestParameters,
    box: SearchBox,
    test: Callable[[Match], bool],
) -> Iterator[Match]:
    """Yield the images of a search that are pictures of the sky."""
    # Other parameters mean something else in SIA 2.0.
    collections = [("COLLECTION", value) for value in query_parameters.all("COLLECTION")]

    def fits(match: Match) -> bool:
        return match.granule.footprint is not None and len(match.granule.shape) > 1 and test(match)

    yield from each_image(service, RequestParameters(collections), [box.region], [fits])


def _verbosity(query_parameters: RequestParameters) -> int:
    text = query_parameters.one("VERB")
    if text is None:
        return 1
    if text.strip() not in map(str, range(MOST_VERBOSE + 1)):
        word = parameters.quote_value(text)
        raise usage(f"VERB: expected 0 to {MOST_VERBOSE}, found {word}")
    return int(text)


def _box(query_parameters: RequestParameters) -> SearchBox:
    """Parse POS and SIZE."""
    place, size = query_parameters.one("POS"), query_parameters.one("SIZE")
    if place is None or size is None:
        missing = "POS" if place is None else "SIZE"
        raise usage(f"{missing}: expected numbers in degrees with a ',' between, found none")
    numbers, _, frame = place.partition(";")
    if frame.strip().upper() not in ("", "ICRS"):
        raise usage(f"POS: expected ICRS, found {parameters.quote_value(frame)}")
    ra, dec = _degrees("POS", numbers, (2,))
    sizes = _degrees("SIZE", size, (1, 2))
    width, height = sizes[0], sizes[-1]
    if not (-360 <= ra <= 720 and -90 <= dec <= 90):
        raise usage(f"POS: expected 0 to 360 and -90 to 90 degrees, found {ra:g},{dec:g}")
    if not (0 <= width <= 360 and 0 <= height <= 180):
        raise usage(f"SIZE: expected 0 to 360 and 0 to 180 degrees, found {width:g},{height:g}")
    return SearchBox(ra % 360, dec, width, height)


def _degrees(name: str, text: str, counts: Sequence[int]) -> list[float]:
    values = parameters.numbers(name, text.replace(",", " "))
    if len(values) not in counts or not all(map(math.isfinite, values)):
        count = " or ".join(map(str, counts))
        raise usage(f"{name}: expected {count} numbers, found {parameters.quote_value(text)}")
    return values


def _formats(text: str) -> list[str]:
    """Return the media types that are asked for and there are, FITS first."""
    formats: set[str] = set()
    words = [word.strip().lower() for word in text.split(",")]
    if words[0].startswith("graphic"):
        # GRAPHIC, GRAPHIC-ALL, or GRAPHIC-png,jpeg,...
        kinds = [words[0].partition("-")[2], *words[1:]]
        if {"", "all", "png"} & set(kinds):
            formats.add(PNG)
        return sorted(formats)
    for word in words:
        if word == "all":
            formats |= {FITS, PNG}
        elif word in FORMATS:
            formats.add(FORMATS[word])
    return sorted(formats)


def _test(query_parameters: RequestParameters, box: SearchBox) -> Callable[[Match], bool]:
    """Return the test of INTERSECT."""
    text = query_parameters.one("INTERSECT") or "OVERLAPS"
    word = text.strip().upper()
    if word not in get_args(Intersect):
        names = ", ".join(get_args(Intersect))
        raise usage(f"INTERSECT: expected {names}, found {parameters.quote_value(text)}")
    region, centre = box.region, Circle(box.ra_deg, box.dec_deg, 0.0)
    if word == "COVERS":
        return lambda match: is_covered_by(region, match)
    if word == "ENCLOSED":
        return lambda match: is_within(match, region)
    if word == "CENTER":
        return lambda match: shows(match, centre)
    return lambda _match: True  # what overlaps is all that is searched


def _row(
    service: Service, request: Request, match: Match, box: SearchBox, form: str
) -> tuple[Any, ...]:
    granule, place = match.granule, match.granule.footprint
    assert place is not None
    did = did_of(service.authority, match.dataset, granule)
    lengths = list(granule.shape[::-1])
    scale_deg = place.s_pixel_scale * ARCSEC
    is_cut = not box.is_point
    if is_cut:
        sizes = (box.width_deg, box.height_deg)
        lengths[:2] = [
            min(length, math.ceil(size / scale_deg) + 1)
            for length, size in zip(lengths, sizes, strict=False)
        ]
    if form == PNG:
        lengths = lengths[:2]
        if not is_cut:
            step = overview_step(*lengths)
            lengths = [-(-length // step) for length in lengths]
            scale_deg *= step
    centre = Circle(box.ra_deg, box.dec_deg, 0.0)
    is_around = is_cut and shows(match, centre)
    middle_d = (
        None if None in (granule.t_min, granule.t_max) else _middle(granule.t_min, granule.t_max)
    )
    band_m = (
        None
        if None in (granule.em_min, granule.em_max)
        else _middle(granule.em_min, granule.em_max)
    )
    name = granule.path if granule.name is None else f"{granule.path}, {granule.name}"
    return (
        f"{name} (cutout)" if is_cut else name,
        box.ra_deg if is_around else place.s_ra,
        box.dec_deg if is_around else place.s_dec,
        len(lengths),
        " ".join(map(str, lengths)),
        f"{scale_deg:.10g} {scale_deg:.10g}",
        form,
        _link(service, request, match, did, box, form),
        granule.instrument,
        middle_d,
        "ICRS",
        granule.band,
        None if band_m is None else "m",
        band_m,
        granule.em_max,
        granule.em_min,
        "V" if form == PNG else "C",
        None if is_cut or form == PNG else granule.size,
        did,
    )


def _middle(low: float | None, high: float | None) -> float:
    assert low is not None and high is not None
    return (low + high) / 2


def _link(
    service: Service, request: Request, match: Match, did: str, box: SearchBox, form: str
) -> str:
    """Return the URL of a cutout, of the image, or of its file if the image is too large."""
    if box.is_point:
        if form == PNG:
            return service.url(request, "preview", did)
        is_large = math.prod(match.granule.shape) * PIXEL_BYTES > LARGEST
        path = "file" if is_large and is_served(match.file) else "sync"
        return service.url(request, path, did)
    url = f"{service.url(request, 'sync', did)}&POS={quote(box.region.text)}"
    return url if form == FITS else f"{url}&RESPONSEFORMAT={quote(form, safe='')}"
