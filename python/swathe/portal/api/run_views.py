"""Endpoints on what a run looks like: pictures of its superfiles, volumes and slices of arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from swathe.core.errors import RegionError
from swathe.portal.access import downloads_of
from swathe.portal.api.results import NO_CHANGE
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.long_responses import while_there
from swathe.portal.http.ranges import is_unchanged
from swathe.portal.pictures import room
from swathe.portal.readable_run import ReadStoredRun, readable_dump, run_stores
from swathe.portal.run_pictures import PictureSet
from swathe.portal.run_slices import ColourMap, slice_picture
from swathe.runs.definition.run_settings import MOST_ITERATIONS
from swathe.runs.reading.stored_run import StoredRun
from swathe.runs.reading.volume import (
    BLANK,
    MOST_PLANE_SIZE,
    MOST_SIZE,
    SECTION_CELLS,
    Region,
    Volume,
    parse_region,
    read_volume,
)
from swathe.runs.superfiles.run_pictures import list_pictures

router = APIRouter(tags=["runs"])

T = TypeVar("T")
LONGEST_LIST = 1000
BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FORMAT = 1
"""Number of the form of volumes, in their ETags."""
# The client asks each time whether its version is the newest.
CACHE_CONTROL = "private, no-cache"
# A picture at a URL with the version of its superfile does not change.
FOR_GOOD = "private, max-age=31536000, immutable"
Name = Annotated[str, Path(max_length=130, description="`NAME@NUMBER`, or `NAME` for the newest.")]
SuperfileName = Annotated[str, Query(max_length=4000, description="`STORE:path` of a superfile.")]
Iteration = Annotated[int, Path(ge=0, le=MOST_ITERATIONS)]
RegionText = Annotated[
    str,
    Query(max_length=200, description="Cells of each axis, as `0:64,:,16:`; all by default."),
]


class PictureModel(BaseModel):
    """A picture of a superfile."""

    number: int
    name: str
    bytes: int


class PictureList(BaseModel):
    """Pictures of a superfile, in the order of the numbers in their names."""

    superfile: str
    superfiles: list[str]
    version: str
    count: int
    others: int
    pictures: list[PictureModel]
    next: int | None


async def _in_turn(request: Request, work: Callable[[Callable[[], bool]], T]) -> T:
    """Return the result of work that reads stores; it holds a slot for downloads."""
    downloads = downloads_of(request)
    with downloads.place():
        return await while_there(request, downloads.wait_for(work))


def superfiles_of(portal: Portal, run: StoredRun) -> list[str]:
    """Return the superfiles of pictures of a run in all its stores.

    Raises:
        AccessError, SourceError: If a store cannot be listed.
    """
    stores = {store.name for store in portal.catalog.stores()}
    own = [store for store in run_stores(run) if store in stores]
    return [name for store in own for name in list_pictures(run.record, store)]


def pictures_of(portal: Portal, name: str) -> PictureSet:
    """Return the pictures of a superfile that users may read.

    Raises:
        NotFoundError, AccessError, SourceError, FormatError, LimitError: If it cannot be read.
    """
    portal.sources.check(name)
    return portal.superfiles.pictures(name)


@router.get("/runs/{name}/pictures", response_model=PictureList)
async def pictures(
    request: Request,
    run: ReadStoredRun,
    superfile: SuperfileName = "",
    start: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = LONGEST_LIST,
) -> PictureList:
    """Return the pictures of a superfile from number `start` on.

    Without `superfile` it is the first of the run; `superfiles` names all of them then.
    """
    portal = portal_of(request)

    def work(_cancelled: Callable[[], bool]) -> PictureList:
        names = [superfile] if superfile else superfiles_of(portal, run)
        if not names:
            return PictureList(
                superfile="", superfiles=[], version="", count=0, others=0, pictures=[], next=None
            )
        picture_set = pictures_of(portal, names[0])
        entries = picture_set.entries[start : start + limit]
        end = start + len(entries)
        return PictureList(
            superfile=names[0],
            superfiles=names,
            version=picture_set.tag,
            count=len(picture_set.entries),
            others=picture_set.others,
            pictures=[
                PictureModel(number=number, name=each.name, bytes=each.size)
                for number, each in enumerate(entries, start)
            ],
            next=end if end < len(picture_set.entries) else None,
        )

    return await _in_turn(request, work)


@router.get(
    "/runs/{name}/pictures/{number}",
    response_class=Response,
    responses={
        200: {
            "description": "A picture.",
            "content": {"image/png": BYTES, "image/jpeg": BYTES},
        },
        **NO_CHANGE,
    },
)
async def picture(
    request: Request,
    _run: ReadStoredRun,
    number: Annotated[int, Path(ge=0, le=1 << 31)],
    superfile: Annotated[str, Query(max_length=4000, min_length=1)],
    v: Annotated[str, Query(max_length=32, description="Version; it is cached for good.")] = "",
) -> Response:
    """Return a picture of a superfile by its number in the list. It is PNG or JPEG."""
    portal = portal_of(request)

    def work(_cancelled: Callable[[], bool]) -> Response:
        picture_set = pictures_of(portal, superfile)
        headers = _picture_headers(picture_set, number, v)
        if is_unchanged(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        picture_set, content = portal.superfiles.picture(superfile, number)
        return Response(
            content.content, 200, _picture_headers(picture_set, number, v), content.media_type
        )

    return await _in_turn(request, work)


def _picture_headers(pictures: PictureSet, number: int, version: str) -> dict[str, str]:
    return {
        "ETag": f'"{pictures.tag}-{number}"',
        "Cache-Control": FOR_GOOD if version == pictures.tag else CACHE_CONTROL,
        "X-Content-Type-Options": "nosniff",
    }


@router.get(
    "/runs/{name}/{array}/{iteration}/volume",
    response_class=Response,
    responses={
        200: {
            "description": "Bytes, the last axis fastest; headers say what they mean.",
            "content": {"application/octet-stream": BYTES},
        },
        **NO_CHANGE,
    },
)
async def volume(
    request: Request,
    run: ReadStoredRun,
    array: str,
    iteration: Iteration,
    size: Annotated[int, Query(ge=8, le=MOST_SIZE)] = MOST_SIZE,
    region: RegionText = "",
) -> Response:
    """Return an array at an iteration as bytes, at most `size` along each of its three axes.

    Each byte is the mean of a block of cells (`Volume-Block`). Its value is `Volume-Offset` +
    `Volume-Scale` * byte; the byte `Volume-Blank` has none. Bytes of type u1 stay as they are, if
    a block is one cell. `Volume-Units` is percent-encoded.
    """
    headers = {"ETag": _tag(run, array, iteration, region, size), "Cache-Control": CACHE_CONTROL}
    if is_unchanged(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    read = partial(_read, portal_of(request), run, array, iteration, region, size)
    result = await _in_turn(request, read)
    content = result.voxels.tobytes()
    return Response(content, 200, headers | volume_headers(result), "application/octet-stream")


@router.get(
    "/runs/{name}/{array}/{iteration}/slice.png",
    response_class=Response,
    responses={200: {"description": "A picture.", "content": {"image/png": BYTES}}, **NO_CHANGE},
)
async def slice_of_array(
    request: Request,
    run: ReadStoredRun,
    array: str,
    iteration: Iteration,
    axis: Annotated[int, Query(ge=0, le=2)] = 0,
    at: Annotated[int | None, Query(ge=0, description="Cell; by default in the middle.")] = None,
    colours: ColourMap = "thermal",
    low: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    high: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    size: Annotated[int, Query(ge=8, le=MOST_PLANE_SIZE)] = 512,
    region: RegionText = "",
) -> Response:
    """Return a plane of an array of three axes at an iteration as a picture.

    The colours are those of the values from `low` to `high`, by default all of the plane.
    """
    what = f"{axis} {at} {colours} {low} {high}"
    tag = _tag(run, array, iteration, region, size, what)
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL}
    if is_unchanged(request, tag):
        return Response(status_code=304, headers=headers)
    read = partial(_read, portal_of(request), run, array, iteration, region, size, plane=(axis, at))
    result = await _in_turn(request, read)
    content = slice_picture(result, axis, colours, low, high)
    return Response(content, 200, headers | volume_headers(result), "image/png")


def _tag(run: StoredRun, array: str, iteration: int, region: str, size: int, what: str = "") -> str:
    """Return the ETag of what is made of a dump, which is never written again.

    Raises:
        NoSuchRunError: If there is no such dump.
    """
    run[array][iteration]
    at = run[array].dumps[iteration].at
    parts = (FORMAT, run.record.folder, array, iteration, at.isoformat(), region, size, what)
    return f'"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"'


def _read(
    portal: Portal,
    run: StoredRun,
    array: str,
    iteration: int,
    region: str,
    size: int,
    is_cancelled: Callable[[], bool],
    plane: tuple[int, int | None] | None = None,
) -> Volume:
    """Read a volume, or with `plane` that cell of that axis of it."""
    dump = readable_dump(portal, run, array, iteration)
    ranges = parse_region(region, dump.shape)
    if plane is not None and len(ranges) > plane[0]:
        ranges = plane_of(ranges, *plane)
    # The elements of a section, as stored and as numbers of 64 bits.
    with room.reserve(2 * SECTION_CELLS, f"{run.record.label}, {array}"):
        return read_volume(dump, ranges, size, is_cancelled)


def plane_of(region: Region, axis: int, at: int | None) -> Region:
    """Return the plane of a region at a cell of an axis, by default in the middle.

    Raises:
        RegionError: If the cell is outside.
    """
    whole = region[axis]
    cell = (whole.start + whole.stop) // 2 if at is None else at
    if not whole.start <= cell < whole.stop:
        raise RegionError(
            f"at: expected a cell from {whole.start} to {whole.stop - 1}, found {cell}"
        )
    return (*region[:axis], slice(cell, cell + 1), *region[axis + 1 :])


def volume_headers(volume: Volume) -> dict[str, str]:
    """Return the headers that say what the bytes of a volume mean."""
    ranges = ",".join(f"{each.start}:{each.stop}" for each in volume.region)
    headers = {
        "Volume-Shape": " ".join(map(str, volume.voxels.shape)),
        "Volume-Region": ranges,
        "Volume-Block": " ".join(map(str, volume.block)),
        "Volume-Dims": " ".join(quote(each) for each in volume.dims),
        "Volume-Offset": repr(volume.offset),
        "Volume-Scale": repr(volume.scale),
        "Volume-Low": repr(volume.low),
        "Volume-High": repr(volume.high),
        "Volume-Units": quote(volume.units),
        "X-Content-Type-Options": "nosniff",
    }
    return headers | ({"Volume-Blank": str(BLANK)} if volume.has_blank else {})
