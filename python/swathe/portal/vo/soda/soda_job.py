"""What a job is asked for: every combination of the values of SODA's parameters, or a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from swathe.core.errors import CatalogError, NotFoundError, SwatheError
from swathe.portal.vo import parameters
from swathe.portal.vo.cutout_request import PLACES, Wanted, read_place
from swathe.portal.vo.errors import VoError, to_vo_error, usage
from swathe.portal.vo.soda.selection import select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astropy.table import Table

    from swathe.catalog import Match
    from swathe.catalog.records.jobs import RowStatus
    from swathe.portal.vo.images import Images, OpenImage
    from swathe.portal.vo.parameters import Parameters, Part

MOST_COMBINATIONS = 1000
"""Of one job: each is looked for when the job is made. A table may have more rows."""
DID_COLUMNS = ("obs_publisher_did", "did")
MOST_DIDS = 5000
"""Of a table: each is looked up."""
OUTSIDE = (-2, -2, 1, 1)
"""A box beside every image: what a combination gets that shows nothing."""
SNIFFED = ((b"PAR1", ".parquet"), (b"# %ECSV", ".ecsv"), (b"<", ".xml"))


@dataclass(frozen=True)
class Asked:
    """What a job is to do.

    Attributes:
        targets: as jobs take them.
        faults: status and reason of rows that cannot be, whatever their targets say.
    """

    targets: dict[str, list[Any]] | Table
    faults: dict[int, tuple[RowStatus, str]]


def rows_of(images: Images, given: Parameters) -> Asked:
    """Give a row for each combination of ID, place, BAND and TIME.

    What cannot be is a row with its reason, as SODA wants a result of every combination.

    Raises:
        VoError: where none can be, or there are too many.
    """
    ids = given.all("ID")
    if not ids:
        raise usage("ID is missing: which images? (Or TARGETS, a table)")
    places: list[tuple[str, str] | None] = [
        (name, value) for name in PLACES for value in given.all(name)
    ] or [None]
    bands: list[str | None] = [*given.all("BAND")] or [None]
    times: list[str | None] = [*given.all("TIME")] or [None]
    states = frozenset(parameters.state("POL", value) for value in given.all("POL"))
    count = len(ids) * len(places) * len(bands) * len(times)
    if count > MOST_COMBINATIONS:
        raise usage(
            f"the values make {count} combinations; at most {MOST_COMBINATIONS} are taken, more as "
            "a table: TARGETS",
            413,
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("file", "hdu", "x0", "y0", "width", "height", "planes")
    }
    faults: dict[int, SwatheError] = {}
    for row, (did, place, band, time) in enumerate(product(ids, places, bands, times)):
        try:
            wanted = replace(
                Wanted() if place is None else read_place(*place),
                band=None if band is None else parameters.wavelengths("BAND", band),
                time=None if time is None else parameters.interval("TIME", time),
                states=states,
            )
            values = _row(images.get(did), wanted)
        except CatalogError:
            raise  # of one it is of all
        except SwatheError as error:
            faults[row] = error
            values = "", "", *OUTSIDE, ""
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    if not any(columns["planes"]):
        del columns["planes"]
    return Asked(columns, _told(faults, count))


def _told(faults: Mapping[int, SwatheError], count: int) -> dict[int, tuple[RowStatus, str]]:
    """Give what is told of rows that cannot be.

    Raises:
        SwatheError: where those are all rows there are.
    """
    if len(faults) == count > 0:
        raise faults[0]
    return {
        row: ("missing" if isinstance(error, NotFoundError) else "error", to_vo_error(error).line)
        for row, error in faults.items()
    }


def _row(held: OpenImage, wanted: Wanted) -> tuple[Any, ...]:
    pixels = select(held, wanted)
    file = held.match.file
    if pixels is None:
        return file, str(held.image.index), *OUTSIDE, ""
    lengths = list(pixels.image.shape[::-1])
    if len(lengths) < 2:
        raise usage(f"ID: {held.did}: it has no plane for a job to cut from; ask sync for it")
    (x0, x1), (y0, y1), *behind = zip(pixels.start, pixels.stop, strict=True)
    while behind and behind[-1] == (0, lengths.pop()):
        behind.pop()
    planes = ",".join(f"{first}:{last}" for first, last in behind)
    return file, str(pixels.image.index), x0, y0, x1 - x0, y1 - y0, planes


def table_part(parts: Sequence[Part]) -> tuple[bytes, str] | None:
    """Return the table that was sent, if one was: as TARGETS, or by UPLOAD as one named `targets`.

    Returns:
        Its content, and a name with the suffix of its kind.

    Raises:
        VoError: where there are several, or it is to be fetched elsewhere.
    """
    found = [part for part in parts if part.name.upper() == "TARGETS"]
    for upload in (part.text for part in parts if part.name.upper() == "UPLOAD" and part.text):
        for each in upload.split(";"):
            name, _, place = each.partition(",")
            if name.strip().lower() != "targets" or not place.strip().startswith("param:"):
                raise usage("UPLOAD: expected targets,param:NAME, the table being sent as NAME")
            source = place.strip().removeprefix("param:")
            named = [part for part in parts if part.name == source]
            if not named:
                raise usage(f"UPLOAD: nothing was sent as {source[:80]!r}")
            found += named
    if not found:
        return None
    if len(found) > 1:
        raise parameters.multi_valued("TARGETS")
    content = found[0].content if found[0].content is not None else found[0].text.encode()
    suffix = next((end for start, end in SNIFFED if content.lstrip().startswith(start)), ".csv")
    return content, f"TARGETS{suffix}"


def asked_by_table(images: Images, table: Table) -> Asked:
    """Return what a table asks for.

    A column of DIDs stands for `file` and `hdu`; those that name nothing are rows with a fault.
    """
    columns = {name.lower(): name for name in table.colnames}
    column = next((columns[name] for name in DID_COLUMNS if name in columns), None)
    if column is None or "file" in columns:
        return Asked(table, {})
    dids = list(map(str, table[column]))
    matches: dict[str, Match | VoError] = {}
    for did in dids:
        if did not in matches:
            if len(matches) == MOST_DIDS:
                raise usage(f"TARGETS: at most {MOST_DIDS} DIDs are taken at once", 413)
            try:
                matches[did] = images.match(did)
            except VoError as error:
                matches[did] = error
    found = [matches[did] for did in dids]
    faults = {row: each for row, each in enumerate(found) if isinstance(each, VoError)}
    table.remove_column(column)
    table["file"] = ["" if isinstance(each, VoError) else each.file for each in found]
    if "hdu" not in columns:
        table["hdu"] = [0 if isinstance(each, VoError) else each.granule.hdu for each in found]
    return Asked(table, _told(faults, len(table)))
