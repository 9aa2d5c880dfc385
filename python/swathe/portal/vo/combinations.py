"""What a job is asked for: every combination of the values of SODA's parameters, or a table."""

from __future__ import annotations

import io
from itertools import product
from typing import TYPE_CHECKING, Any

from swathe.portal.uploads import table_of_file
from swathe.portal.vo import parameters
from swathe.portal.vo.faults import usage
from swathe.portal.vo.selection import select
from swathe.portal.vo.wanted import PLACES, Wanted, read_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astropy.table import Table

    from swathe.portal.vo.images import Held, Images
    from swathe.portal.vo.parameters import Interval, Parameters, Part

MOST_COMBINATIONS = 1000
"""Of one job: each is looked for when the job is made. A table may have more rows."""
DID_COLUMNS = ("obs_publisher_did", "did")
MOST_DIDS = 5000
"""Of a table: each is looked up."""
OUTSIDE = (-2, -2, 1, 1)
"""A box beside every image: what a combination gets that shows nothing."""
SNIFFED = ((b"PAR1", ".parquet"), (b"# %ECSV", ".ecsv"), (b"<", ".xml"))


def rows_of(images: Images, given: Parameters) -> dict[str, list[Any]]:
    """Give a row for each combination of ID, place, BAND and TIME, as jobs take them.

    Raises:
        VoError: where a value makes no sense, an ID names nothing, or there are too many.
    """
    ids = given.all("ID")
    if not ids:
        raise usage("ID is missing: which images? (Or TARGETS, a table)")
    places = [read_place(name, value) for name in PLACES for value in given.all(name)]
    bands: list[Interval | None] = [
        parameters.wavelengths("BAND", value) for value in given.all("BAND")
    ]
    times: list[Interval | None] = [
        parameters.interval("TIME", value) for value in given.all("TIME")
    ]
    states = frozenset(parameters.state("POL", value) for value in given.all("POL"))
    count = len(ids) * max(1, len(places)) * max(1, len(bands)) * max(1, len(times))
    if count > MOST_COMBINATIONS:
        raise usage(
            f"the values make {count} combinations; at most {MOST_COMBINATIONS} are taken, more as "
            "a table: TARGETS",
            413,
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("file", "hdu", "x0", "y0", "width", "height", "planes")
    }
    for did, place, band, time in product(
        ids, places or [Wanted()], bands or [None], times or [None]
    ):
        wanted = Wanted(place.region, place.box, place.hdu, band, time, states)
        for name, value in zip(columns, _row(images.get(did), wanted), strict=True):
            columns[name].append(value)
    if not any(columns["planes"]):
        del columns["planes"]
    return columns


def _row(held: Held, wanted: Wanted) -> tuple[Any, ...]:
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


def table_of(images: Images, parts: Sequence[Part], most_rows: int) -> Table | None:
    """Give the table that was sent, if one was: as TARGETS, or by UPLOAD as one named `targets`.

    A column of DIDs stands for `file` and `hdu`.

    Raises:
        TargetsError: where it cannot be read.
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
    table = table_of_file(io.BytesIO(content), f"TARGETS{suffix}", most_rows)
    return _without_dids(images, table)


def _without_dids(images: Images, table: Table) -> Table:
    columns = {name.lower(): name for name in table.colnames}
    column = next((columns[name] for name in DID_COLUMNS if name in columns), None)
    if column is None or "file" in columns:
        return table
    names = dict.fromkeys(map(str, table[column]))
    if len(names) > MOST_DIDS:
        raise usage(f"TARGETS: at most {MOST_DIDS} DIDs are taken at once, found {len(names)}", 413)
    matches = {did: images.match(did) for did in names}
    found = [matches[str(did)] for did in table[column]]
    table.remove_column(column)
    table["file"] = [match.file for match in found]
    if "hdu" not in columns:
        table["hdu"] = [match.granule.hdu for match in found]
    return table
