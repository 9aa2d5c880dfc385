"""Targets of a SODA job: every combination of its parameter values, or a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from swathe.core.errors import CatalogError, NotFoundError, SwatheError
from swathe.portal.vo import parameters
from swathe.portal.vo.cutout_request import PLACES, CutoutRequest, read_region
from swathe.portal.vo.errors import VoError, to_vo_error, usage
from swathe.portal.vo.soda.selection import select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astropy.table import Table

    from swathe.catalog import Match
    from swathe.core.row_record import Fault
    from swathe.portal.vo.images import Images, OpenImage
    from swathe.portal.vo.parameters import Part, RequestParameters

MOST_COMBINATIONS = 1000
"""Maximum number of combinations, as each is resolved on submission. A table may have more rows."""
DID_COLUMNS = ("obs_publisher_did", "did")
MOST_DIDS = 5000
"""Maximum number of DIDs in a table, as each is looked up."""
OUTSIDE = (-2, -2, 1, 1)
"""A box outside every image, for a combination without pixels."""
SUFFIXES_BY_START = ((b"PAR1", ".parquet"), (b"# %ECSV", ".ecsv"), (b"<", ".xml"))


@dataclass(frozen=True)
class SodaJob:
    """The targets of a job.

    Attributes:
        targets: Targets in the form of jobs.
        faults: Status and reason of invalid rows, by row number.
    """

    targets: dict[str, list[Any]] | Table
    faults: dict[int, Fault]


def rows_of(images: Images, query: RequestParameters) -> SodaJob:
    """Return a row for each combination of ID, region, BAND and TIME.

    An invalid combination is a row with its reason, as SODA requires a result for every
    combination.

    Raises:
        VoError: If all combinations are invalid, or there are too many.
    """
    ids = query.all("ID")
    if not ids:
        raise usage("ID: expected images, found none; or send a table as TARGETS")
    places: list[tuple[str, str] | None] = [
        (name, value) for name in PLACES for value in query.all(name)
    ] or [None]
    bands: list[str | None] = [*query.all("BAND")] or [None]
    times: list[str | None] = [*query.all("TIME")] or [None]
    states = frozenset(parameters.state("POL", value) for value in query.all("POL"))
    count = len(ids) * len(places) * len(bands) * len(times)
    if count > MOST_COMBINATIONS:
        raise usage(
            f"expected at most {MOST_COMBINATIONS} combinations of values, found {count}; "
            "for more, send a table as TARGETS",
            413,
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("file", "hdu", "x0", "y0", "width", "height", "planes")
    }
    faults: dict[int, SwatheError] = {}
    for row, (did, place, band, time) in enumerate(product(ids, places, bands, times)):
        try:
            cutout_request = replace(
                CutoutRequest() if place is None else read_region(*place),
                band=None if band is None else parameters.wavelengths("BAND", band),
                time=None if time is None else parameters.interval("TIME", time),
                states=states,
            )
            values = _row(images.get(did), cutout_request)
        except CatalogError:
            raise  # it affects all rows
        except SwatheError as error:
            faults[row] = error
            values = "", "", *OUTSIDE, ""
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    if not any(columns["planes"]):
        del columns["planes"]
    return SodaJob(columns, _fault_rows(faults, count))


def _fault_rows(faults: Mapping[int, SwatheError], count: int) -> dict[int, Fault]:
    """Return status and reason of invalid rows.

    Raises:
        SwatheError: If all rows are invalid.
    """
    if len(faults) == count > 0:
        raise faults[0]
    return {
        row: ("missing" if isinstance(error, NotFoundError) else "error", to_vo_error(error).line)
        for row, error in faults.items()
    }


def _row(image: OpenImage, cutout_request: CutoutRequest) -> tuple[Any, ...]:
    pixels = select(image, cutout_request)
    file = image.match.file
    if pixels is None:
        return file, str(image.image.index), *OUTSIDE, ""
    lengths = list(pixels.image.shape[::-1])
    if len(lengths) < 2:
        raise usage(
            f"ID: {image.did}: expected two axes or more for a job, found {len(lengths)}; use sync"
        )
    (x0, x1), (y0, y1), *behind = zip(pixels.start, pixels.stop, strict=True)
    while behind and behind[-1] == (0, lengths.pop()):
        behind.pop()
    planes = ",".join(f"{first}:{last}" for first, last in behind)
    return file, str(pixels.image.index), x0, y0, x1 - x0, y1 - y0, planes


def table_part(parts: Sequence[Part]) -> tuple[bytes, str] | None:
    """Return the table of a request: sent as TARGETS, or by UPLOAD with the name `targets`.

    Returns:
        The content, and a name with the suffix of its format; None if there is no table.

    Raises:
        VoError: If there are several tables, or one must be fetched from a URL.
    """
    tables = [part for part in parts if part.name.upper() == "TARGETS"]
    for upload in (part.text for part in parts if part.name.upper() == "UPLOAD" and part.text):
        for each in upload.split(";"):
            name, _, place = each.partition(",")
            if name.strip().lower() != "targets" or not place.strip().startswith("param:"):
                raise usage("UPLOAD: expected targets,param:NAME with the table sent as NAME")
            source = place.strip().removeprefix("param:")
            matching = [part for part in parts if part.name == source]
            if not matching:
                raise usage(f"UPLOAD: expected a part {source[:80]!r}, found none")
            tables += matching
    if not tables:
        return None
    if len(tables) > 1:
        raise parameters.multi_value_error("TARGETS")
    content = tables[0].content if tables[0].content is not None else tables[0].text.encode()
    suffix = next(
        (end for start, end in SUFFIXES_BY_START if content.lstrip().startswith(start)), ".csv"
    )
    return content, f"TARGETS{suffix}"


def read_table_job(images: Images, table: Table) -> SodaJob:
    """Return the targets of a table.

    A column of DIDs replaces `file` and `hdu`. DIDs that name no image are rows with an error.
    """
    columns = {name.lower(): name for name in table.colnames}
    column = next((columns[name] for name in DID_COLUMNS if name in columns), None)
    if column is None or "file" in columns:
        return SodaJob(table, {})
    dids = list(map(str, table[column]))
    matches: dict[str, Match | VoError] = {}
    for did in dids:
        if did not in matches:
            if len(matches) == MOST_DIDS:
                raise usage(
                    f"TARGETS: expected at most {MOST_DIDS} different DIDs, found more", 413
                )
            try:
                matches[did] = images.match(did)
            except VoError as error:
                matches[did] = error
    outcomes = [matches[did] for did in dids]
    faults = {row: each for row, each in enumerate(outcomes) if isinstance(each, VoError)}
    table.remove_column(column)
    table["file"] = ["" if isinstance(each, VoError) else each.file for each in outcomes]
    if "hdu" not in columns:
        table["hdu"] = [0 if isinstance(each, VoError) else each.granule.hdu for each in outcomes]
    return SodaJob(table, _fault_rows(faults, len(table)))
