"""The pages that show a run: its pictures one after another, and an array as a volume."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import RegionError, SwatheError
from swathe.portal.api.run_views import (
    RegionText,
    SuperfileName,
    pictures_of,
    plane_of,
    superfiles_of,
)
from swathe.portal.context import portal_of
from swathe.portal.http_errors import status_of, text_of
from swathe.portal.pages.render import PageRoute, page
from swathe.portal.readable_run import ReadStoredRun, readable_dump
from swathe.portal.run_slices import COLOUR_MAPS, ColourMap
from swathe.runs.reading.stored_array import StoredArray
from swathe.runs.reading.volume import check_volume, parse_region

router = APIRouter(route_class=PageRoute)
MOST_LINKS = 200
"""Superfiles, or arrays, that a page lists."""
MOST_SPANS = 1000
"""Spans of iterations in a page; of a run with regular dumps there is one."""
Number = Annotated[str, Query(max_length=30)]


@router.api_route("/runs/{name}/view", methods=["GET", "HEAD"])
def run_pictures(
    request: Request,
    run: ReadStoredRun,
    superfile: SuperfileName = "",
    picture: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
) -> Response:
    """Show a picture of a superfile, with links to the others, and the arrays of the run."""
    portal = portal_of(request)
    error, code, own, pictures = "", 200, list[str](), None
    try:
        own = superfiles_of(portal, run)
    except SwatheError as fault:
        error = text_of(fault)  # a superfile that is named is shown all the same
    try:
        if name := superfile.strip() or next(iter(own), ""):
            pictures = pictures_of(portal, name)
    except SwatheError as fault:
        error, code = text_of(fault), status_of(fault)
    entries = pictures.entries if pictures else []
    number = min(picture, max(len(entries) - 1, 0))
    api = f"/api/runs/{quote(run.record.label)}/pictures"
    query = urlencode({"superfile": pictures.name, "v": pictures.tag} if pictures else {})
    return page(
        request,
        "run_pictures.html",
        code=code,
        run=run.record,
        error=error,
        superfile=superfile.strip() or (pictures.name if pictures else ""),
        superfiles=own[:MOST_LINKS],
        others=pictures.others if pictures else 0,
        count=len(entries),
        number=number,
        entry=entries[number] if entries else None,
        api=api,
        query=query,
        arrays=_arrays(run),
    )


def _arrays(run: Mapping[str, StoredArray]) -> list[dict[str, Any]]:
    """Return the arrays that can be shown as volumes: name, shape, type and number of dumps."""
    return [
        {
            "name": name,
            "shape": array.settings.shape,
            "dtype": array.settings.dtype.strip("<|"),
            "dumps": len(array.dumps),
        }
        for name, array in run.items()
        if array.dumps and array.settings.mode != "append" and len(array.settings.shape) == 3
    ][:MOST_LINKS]


@router.api_route("/runs/{name}/view/{array}", methods=["GET", "HEAD"])
def run_volume(
    request: Request,
    run: ReadStoredRun,
    array: str,
    iteration: Annotated[int | None, Query(ge=0)] = None,
    colours: ColourMap = "thermal",
    low: Number = "",
    high: Number = "",
    region: RegionText = "",
    z: Number = "",
    y: Number = "",
    x: Number = "",
    plain: bool = False,
) -> Response:
    """Show an array at an iteration: as a volume by a script, else three slices as pictures."""
    portal = portal_of(request)
    iterations = sorted(run[array].dumps)
    number = iteration if iteration is not None else iterations[-1] if iterations else 0
    dump = readable_dump(portal, run, array, number)
    check_volume(dump.shape, dump.dtype)
    fields = {"low": low.strip(), "high": high.strip(), "region": region.strip()}
    cells = [each.strip() for each in (z, y, x)]
    dims = dump.dims or tuple(f"axis {axis}" for axis in range(3))
    error, code, slices = "", 200, []
    api = f"/api/runs/{quote(run.record.label)}/{quote(array)}"
    settings = {key: value for key, value in fields.items() if value} | {"colours": colours}
    try:
        slices = _slices(fields, cells, dump.shape)
    except RegionError as fault:
        error, code = text_of(fault), status_of(fault)
    at = bisect_left(iterations, number)
    spans = list(iteration_spans(iterations))
    return page(
        request,
        "run_volume.html",
        code=code,
        run=run.record,
        array=array,
        error=error,
        iteration=number,
        before=iterations[at - 1] if at else None,
        after=iterations[at + 1] if at + 1 < len(iterations) else None,
        iterations=json.dumps(spans[:MOST_SPANS]),
        omitted=len(spans) > MOST_SPANS,
        shape=dump.shape,
        dtype=dump.dtype.name,
        dims=dims,
        api=api,
        colours=colours,
        maps=COLOUR_MAPS,
        fields=fields,
        plain=plain,
        slices=[
            {
                "axis": dims[axis],
                "name": "zyx"[axis],
                "at": cell,
                "last": length - 1,
                "up": dims[1 if axis == 0 else 0],
                "right": dims[1 if axis == 2 else 2],
                "url": f"{api}/{number}/slice.png?"
                + urlencode({"axis": axis, "at": cell, **settings}),
            }
            for axis, cell, length in slices
        ],
    )


def _slices(
    fields: Mapping[str, str], cells: Sequence[str], shape: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return axis, cell and length of the axis of three slices, by default through the middle.

    Raises:
        RegionError: If a field is invalid.
    """
    for key in ("low", "high"):
        if fields[key]:
            _number(fields[key], key, float)
    region = parse_region(fields["region"], shape)
    slices = []
    for axis, text in enumerate(cells):
        cell = int(_number(text, "zyx"[axis], int)) if text else None
        slices.append((axis, plane_of(region, axis, cell)[axis].start, shape[axis]))
    return slices


def _number(text: str, what: str, kind: type[float]) -> float:
    """Return the number of a field.

    Raises:
        RegionError: If it is none.
    """
    try:
        return kind(text)
    except ValueError:
        raise RegionError(f"{what}: expected a number, found {text!r:.40}") from None


def iteration_spans(iterations: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield first, last and step of iterations that lie at equal distances."""
    at = 0
    while at < len(iterations):
        first = last = iterations[at]
        step = iterations[at + 1] - first if at + 1 < len(iterations) else 1
        while at + 1 < len(iterations) and iterations[at + 1] == last + step:
            at += 1
            last = iterations[at]
        yield first, last, step
        at += 1
