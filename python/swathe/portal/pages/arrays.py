"""The page that searches the arrays of a dataset by place on the Earth and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import DatasetError
from swathe.datasets.search import find
from swathe.files.targets.bounds import BOUNDS
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.http_errors import status_of, text_of
from swathe.portal.pages.render import PageRoute, page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astropy.table import Table

router = APIRouter(route_class=PageRoute)
MOST_ARRAYS = 200
"""Maximum number of arrays that the page lists."""
PLACE = ("lon", "lat")
TIMES = ("time_from", "time_to")
Text = Annotated[str, Query(max_length=50)]


@router.api_route("/datasets/{name}/arrays", methods=["GET", "HEAD"])
def arrays(
    request: Request,
    _user: Reader,
    name: str,
    west: Text = "",
    south: Text = "",
    east: Text = "",
    north: Text = "",
    lon: Text = "",
    lat: Text = "",
    time_from: Text = "",
    time_to: Text = "",
) -> Response:
    """Show the form, and the arrays that match it; without a criterion the form alone."""
    dataset = portal_of(request).catalog.dataset(name)
    values = (west, south, east, north, lon, lat, time_from, time_to)
    fields = dict(zip((*BOUNDS, *PLACE, *TIMES), map(str.strip, values), strict=True))
    table: Table | None = None
    error, code = "", 200
    try:
        if any(fields.values()):
            catalog = portal_of(request).catalog
            criteria = _criteria(fields)
            table = find(dataset=name, catalog=catalog, limit=MOST_ARRAYS + 1, **criteria)
    except DatasetError as fault:
        error, code = text_of(fault), status_of(fault)
    rows = [] if table is None else _rows(table)
    return page(
        request,
        "arrays.html",
        code=code,
        dataset=dataset,
        fields=fields,
        error=error,
        is_answer=table is not None,
        rows=rows[:MOST_ARRAYS],
        more=len(rows) > MOST_ARRAYS,
    )


def _criteria(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the criteria of a search, without those that are empty.

    Raises:
        DatasetError: If only some fields of one are filled in, or one is no number.
    """
    criteria: dict[str, Any] = {}
    for criterion, names in (("bounds", BOUNDS), ("place", PLACE), ("time", TIMES)):
        texts = [fields[name] for name in names]
        if not any(texts):
            continue
        if not all(texts):
            raise DatasetError(f"{criterion}: expected {', '.join(names)}, found some of them")
        criteria[criterion] = tuple(texts) if names == TIMES else _numbers(criterion, texts)
    return criteria


def _numbers(criterion: str, texts: Sequence[str]) -> tuple[float, ...]:
    try:
        return tuple(map(float, texts))
    except ValueError:
        raise DatasetError(
            f"{criterion}: expected degrees, found {', '.join(texts)[:60]}"
        ) from None


def _rows(table: Table) -> list[dict[str, Any]]:
    """Return file, array, times and shape of each row; `None` if one is not known."""
    names = ("file", "array", "t_min", "t_max", "shape")
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
