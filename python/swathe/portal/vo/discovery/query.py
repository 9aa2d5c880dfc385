"""`/vo/query`: SIA 2.0, search for images by position, time, band and other properties.

An image matches a parameter if it matches any of its values, and must match all parameters. Images
whose header lacks a value never match a search on it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from swathe.catalog import GranuleQuery
from swathe.core.errors import NoSuchDatasetError, SwatheError
from swathe.datasets.healpix import ranges_around
from swathe.datasets.search import NEAR
from swathe.portal.vo import parameters
from swathe.portal.vo.discovery import descriptors
from swathe.portal.vo.discovery.votable import MEDIA_TYPE, Field, document, info, results, table
from swathe.portal.vo.errors import VoError, busy, to_vo_error, usage
from swathe.portal.vo.geometry.overlap import shows
from swathe.portal.vo.identifiers import did_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from swathe.catalog import Match
    from swathe.portal.vo.geometry.regions import SkyRegion
    from swathe.portal.vo.parameters import Interval, RequestParameters
    from swathe.portal.vo.service import Service

DEFAULT_ROWS = 1000
MOST_ROWS = 50_000
MOST_REGIONS = 100
MOST_IDS = 1000
LONGEST_S = 60.0
"""Time limit of a search."""
DAY_S = 86_400
FORMATS = (MEDIA_TYPE, "text/xml", "votable", "application/x-votable+xml;serialization=tabledata")
_AXIS = "obscore:Char."
FIELDS = (
    Field("dataproduct_type", ucd="meta.code.class", utype="obscore:ObsDataset.dataProductType"),
    Field("calib_level", "int", ucd="meta.code;obs.calib", utype="obscore:ObsDataset.calibLevel"),
    Field("obs_collection", ucd="meta.id", utype="obscore:DataID.collection"),
    Field("obs_id", ucd="meta.id", utype="obscore:DataID.observationID"),
    Field("obs_publisher_did", ucd="meta.ref.ivoid", utype="obscore:Curation.publisherDID"),
    Field("access_url", ucd="meta.ref.url", utype="obscore:Access.reference"),
    Field("access_format", ucd="meta.code.mime", utype="obscore:Access.format"),
    Field("access_estsize", "long", None, "kbyte", "phys.size;meta.file", "obscore:Access.size"),
    Field("target_name", ucd="meta.id;src", utype="obscore:Target.name"),
    Field(
        "s_ra",
        "double",
        None,
        "deg",
        "pos.eq.ra",
        _AXIS + "SpatialAxis.Coverage.Location.Coord.Position2D.Value2.C1",
    ),
    Field(
        "s_dec",
        "double",
        None,
        "deg",
        "pos.eq.dec",
        _AXIS + "SpatialAxis.Coverage.Location.Coord.Position2D.Value2.C2",
    ),
    Field(
        "s_fov",
        "double",
        None,
        "deg",
        "phys.angSize;instr.fov",
        _AXIS + "SpatialAxis.Coverage.Bounds.Extent.diameter",
    ),
    Field(
        "s_region",
        ucd="pos.outline;obs.field",
        utype=_AXIS + "SpatialAxis.Coverage.Support.Area",
        xtype="adql:REGION",
    ),
    Field(
        "s_resolution",
        "double",
        None,
        "arcsec",
        "pos.angResolution",
        _AXIS + "SpatialAxis.Resolution.Refval.value",
    ),
    Field("s_xel1", "long", None, None, "meta.number", _AXIS + "SpatialAxis.numBins1"),
    Field("s_xel2", "long", None, None, "meta.number", _AXIS + "SpatialAxis.numBins2"),
    Field(
        "t_min",
        "double",
        None,
        "d",
        "time.start;obs.exposure",
        _AXIS + "TimeAxis.Coverage.Bounds.Limits.StartTime",
    ),
    Field(
        "t_max",
        "double",
        None,
        "d",
        "time.end;obs.exposure",
        _AXIS + "TimeAxis.Coverage.Bounds.Limits.StopTime",
    ),
    Field(
        "t_exptime",
        "double",
        None,
        "s",
        "time.duration;obs.exposure",
        _AXIS + "TimeAxis.Coverage.Support.Extent",
    ),
    Field(
        "t_resolution",
        "double",
        None,
        "s",
        "time.resolution",
        _AXIS + "TimeAxis.Resolution.Refval.value",
    ),
    Field("t_xel", "long", None, None, "meta.number", _AXIS + "TimeAxis.numBins"),
    Field(
        "em_min",
        "double",
        None,
        "m",
        "em.wl;stat.min",
        _AXIS + "SpectralAxis.Coverage.Bounds.Limits.LoLimit",
    ),
    Field(
        "em_max",
        "double",
        None,
        "m",
        "em.wl;stat.max",
        _AXIS + "SpectralAxis.Coverage.Bounds.Limits.HiLimit",
    ),
    Field(
        "em_res_power",
        "double",
        None,
        None,
        "spect.resolution",
        _AXIS + "SpectralAxis.Resolution.ResolPower.refVal",
    ),
    Field("em_xel", "long", None, None, "meta.number", _AXIS + "SpectralAxis.numBins"),
    Field("o_ucd", ucd="meta.ucd", utype=_AXIS + "ObservableAxis.ucd"),
    Field(
        "pol_states",
        ucd="meta.code;phys.polarization",
        utype=_AXIS + "PolarizationAxis.stateList",
    ),
    Field("pol_xel", "long", None, None, "meta.number", _AXIS + "PolarizationAxis.numBins"),
    Field(
        "facility_name",
        ucd="meta.id;instr.tel",
        utype="obscore:Provenance.ObsConfig.Facility.name",
    ),
    Field(
        "instrument_name",
        ucd="meta.id;instr",
        utype="obscore:Provenance.ObsConfig.Instrument.name",
    ),
)

Test = Callable[["Match"], bool]


async def query(service: Service, request: Request) -> Response:
    """Return a table of images. Errors are reported in the table too."""
    try:
        query_parameters = await parameters.read_parameters(request)
        content = await service.workers.run(lambda: _document(service, request, query_parameters))
    except SwatheError as error:
        wrong = to_vo_error(error)
        refusal = document(results(info("QUERY_STATUS", "ERROR", wrong.line)))
        return Response(refusal, wrong.status, dict(wrong.headers), MEDIA_TYPE)
    return Response(content, 200, media_type=MEDIA_TYPE)


def _document(service: Service, request: Request, query_parameters: RequestParameters) -> bytes:
    form = query_parameters.one("RESPONSEFORMAT")
    if form is not None and form.strip().lower() not in FORMATS:
        raise usage(f"RESPONSEFORMAT: expected {MEDIA_TYPE}, found {parameters.quote_value(form)}")
    most = most_rows(query_parameters)
    # One more row shows whether there are more.
    matches = list(islice(_matches(service, query_parameters), most + 1))
    status = "OVERFLOW" if len(matches) > most or most == 0 else "OK"
    rows = [_row(service, request, match) for match in matches[:most]]
    column = "obs_publisher_did"
    blocks = [descriptors.links("links", service.url(request, "links"), column)]
    if all(_is_cuttable(match) for match in matches[:most]):
        blocks.append(descriptors.soda("soda", service.url(request, "sync"), column))
    notes = [info("QUERY_STATUS", status), info("standardID", "ivo://ivoa.net/std/SIA#query-2.0")]
    return document(results(*notes, table(FIELDS, rows)), *blocks)


def most_rows(query_parameters: RequestParameters) -> int:
    """Parse MAXREC: the largest number of images of a response."""
    text = query_parameters.one("MAXREC")
    if text is None:
        return DEFAULT_ROWS
    if not text.strip().isascii() or not text.strip().isdecimal():
        raise usage(f"MAXREC: expected a number of rows, found {parameters.quote_value(text)}")
    return min(int(text[:20]), MOST_ROWS)


def _matches(service: Service, query_parameters: RequestParameters) -> Iterator[Match]:
    """Yield the images that match the parameters."""
    regions = [parameters.position("POS", value) for value in query_parameters.all("POS")]
    if len(regions) > MOST_REGIONS:
        raise usage(f"POS: expected at most {MOST_REGIONS} regions, found {len(regions)}")
    yield from each_image(service, query_parameters, regions, _tests(query_parameters))


def each_image(
    service: Service,
    query_parameters: RequestParameters,
    regions: Sequence[SkyRegion],
    tests: list[Test],
) -> Iterator[Match]:
    """Yield the images that show any of some regions, and pass all of some tests.

    BAND, TIME, COLLECTION and ID of the parameters are applied, too.
    """
    if regions:
        # First: it is quick, and others need images there.
        tests.insert(0, lambda match: any(shows(match, region) for region in regions))
    ranges = None
    if regions:
        ranges = sorted(
            each
            for region in regions
            for each in ranges_around(region.centre, min(region.radius + NEAR, math.pi))
        )
    bands = [parameters.wavelengths("BAND", value) for value in query_parameters.all("BAND")]
    times = [parameters.interval("TIME", value) for value in query_parameters.all("TIME")]
    tests += [
        _within(intervals, low, high)
        for intervals, low, high in ((bands, "em_min", "em_max"), (times, "t_min", "t_max"))
        if intervals
    ]
    collections = query_parameters.all("COLLECTION")
    if collections:
        tests.append(lambda match: match.dataset in collections)
    if "ID" in query_parameters:
        candidates = _matches_of(service, query_parameters.all("ID"))
    else:
        criteria = GranuleQuery(
            ranges,
            collections[0] if len(collections) == 1 else None,
            _hull(times),
            _hull(bands),
            is_hdu=True,
        )
        candidates = service.portal.catalog.each_granule(criteria)
    until = time.monotonic() + LONGEST_S
    try:
        for match in candidates:
            if time.monotonic() > until:
                raise busy(f"the search took more than {LONGEST_S:.0f} s; narrow it")
            if all(test(match) for test in tests):
                yield match
    except NoSuchDatasetError:
        return


def _matches_of(service: Service, ids: Sequence[str]) -> Iterator[Match]:
    if len(ids) > MOST_IDS:
        raise usage(f"ID: expected at most {MOST_IDS}, found {len(ids)}")
    for did in dict.fromkeys(ids):
        try:
            yield service.images.match(did)
        except VoError:
            continue  # an ID of another archive, or an invalid one, has no row


def _hull(intervals: Sequence[Interval]) -> Interval | None:
    """Return the interval that covers all, for the query of the database."""
    if not intervals:
        return None
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _within(intervals: Sequence[Interval], low: str, high: str) -> Test:
    """Return a test whether an image's own interval overlaps one of these."""

    def test(match: Match) -> bool:
        first, last = getattr(match.granule, low), getattr(match.granule, high)
        if first is None or last is None:
            return False
        return any(first <= end and last >= start for start, end in intervals)

    return test


def _tests(query_parameters: RequestParameters) -> list[Test]:
    """Return tests for the other parameters."""
    tests: list[Test] = []
    for name, value_of in NUMBERS.items():
        intervals = [parameters.interval(name, value) for value in query_parameters.all(name)]
        if intervals:
            tests.append(_number(value_of, intervals))
    for name, words_of in WORDS.items():
        words = {value.strip().lower() for value in query_parameters.all(name)}
        if words:
            tests.append(_word(words_of, words))
    states = {parameters.state("POL", value) for value in query_parameters.all("POL")}
    if states:
        tests.append(lambda match: not states.isdisjoint(match.granule.pol))
    for value in query_parameters.all("CALIB"):
        if value.strip() not in ("0", "1", "2", "3", "4"):
            raise usage(f"CALIB: expected 0, 1, 2, 3 or 4, found {parameters.quote_value(value)}")
    return tests


def _number(value_of: Callable[[Match], float | None], intervals: Sequence[Interval]) -> Test:
    def test(match: Match) -> bool:
        value = value_of(match)
        return value is not None and any(low <= value <= high for low, high in intervals)

    return test


def _word(words_of: Callable[[Match], str | None], words: set[str]) -> Test:
    def test(match: Match) -> bool:
        word = words_of(match)
        return word is not None and word.lower() in words

    return test


def _unknown(_: Match) -> None:
    """Return None, for a property that the catalogue does not have."""


def _field(match: Match) -> float | None:
    place = match.granule.footprint
    return None if place is None else place.s_fov


def _exposure(match: Match) -> float | None:
    granule = match.granule
    if granule.t_min is None or granule.t_max is None:
        return None
    return (granule.t_max - granule.t_min) * DAY_S


def _kind(match: Match) -> str:
    return "cube" if math.prod(match.granule.shape[:-2]) > 1 else "image"


NUMBERS: dict[str, Callable[[Match], float | None]] = {
    "FOV": _field,
    "SPATRES": _unknown,
    "SPECRP": _unknown,
    "EXPTIME": _exposure,
    "TIMERES": _unknown,
}
WORDS: dict[str, Callable[[Match], str | None]] = {
    "DPTYPE": _kind,
    "CALIB": lambda match: str(match.calib_level),
    "FORMAT": lambda _: descriptors.DATALINK_TYPE,
    "FACILITY": lambda match: match.granule.facility,
    "INSTRUMENT": lambda match: match.granule.instrument,
    "TARGET": lambda match: match.granule.target,
}


def _is_cuttable(match: Match) -> bool:
    return match.granule.footprint is not None


def _row(service: Service, request: Request, match: Match) -> tuple[Any, ...]:
    granule, place = match.granule, match.granule.footprint
    did = did_of(service.authority, match.dataset, match.granule)
    sky: tuple[Any, ...] = (None,) * 4
    if place is not None:
        region = None
        if place.outline is not None:
            region = "POLYGON ICRS " + " ".join(f"{value:.8f}" for value in place.outline)
        sky = (place.s_ra, place.s_dec, place.s_fov, region)
    lengths = (*granule.shape[::-1], None, None)[:2]
    return (
        _kind(match),
        match.calib_level,
        match.dataset,
        granule.path if granule.name is None else f"{granule.path}, {granule.name}",
        did,
        service.url(request, "links", did),
        descriptors.DATALINK_TYPE,
        -(-granule.size // 1000),
        granule.target,
        *sky,
        None,
        *lengths,
        granule.t_min,
        granule.t_max,
        _exposure(match),
        None,
        None,
        granule.em_min,
        granule.em_max,
        *(None,) * 3,
        f"/{'/'.join(granule.pol)}/" if granule.pol else None,
        len(granule.pol) or None,
        granule.facility,
        granule.instrument,
    )
