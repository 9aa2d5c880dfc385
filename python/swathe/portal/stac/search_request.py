"""Requests of a STAC search, by GET or POST, as one value."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from swathe.catalog.datasets.object_ids import path_of
from swathe.catalog.datasets.objects import ObjectKey, ObjectOrder
from swathe.core.errors import DatasetError, RegionError
from swathe.core.times import mjd_of, read_moment
from swathe.core.value_errors import short_text
from swathe.datasets.cql2_text import parse_cql2_text
from swathe.datasets.planar import PlanarArea, Ring, planar_rings
from swathe.files.places.bounds import Bounds

USUAL_LIMIT, MOST_ITEMS = 10, 10_000
MOST_NAMES = 1000
"""Collections or items that a search may name."""
MOST_CORNERS = 1000
"""Corners of the geometry of `intersects`, all together."""
DEEPEST_GEOMETRY = 4
LONGEST_FILTER = 2000
"""Characters of a filter as text."""
LANGUAGES = ("cql2-text", "cql2-json")
ORDERS: Mapping[str, ObjectOrder] = {"id": "name", "datetime": "time", "start_datetime": "time"}
NAMES = (
    *("collections", "ids", "bbox", "intersects", "datetime", "limit", "token", "sortby"),
    *("fields", "filter", "filter-lang", "filter-crs"),
)
LISTS = ("collections", "ids", "bbox", "sortby")
"""Parameters that are lists in a body, and texts with commas in a URL."""
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"


@dataclass(frozen=True)
class Fields:
    """Which members of items to return; empty for all."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SearchRequest:
    """Criteria of a search for items. See the parameters of STAC's item search.

    Attributes:
        collections: names of datasets; `None` for all.
        paths: paths of objects; `None` for all.
        bounds: box of longitude and latitude.
        area: the geometry of `intersects`.
        time: MJD, UTC, from and to.
        limit: number of items of a page.
        condition: the filter, as the JSON form of CQL2.
        order: what items are ordered by.
        is_descending: whether the last comes first.
        after: where the page before ended.
        fields: members to return.
    """

    collections: Sequence[str] | None = None
    paths: Sequence[str] | None = None
    bounds: Bounds | None = None
    area: PlanarArea | None = None
    time: tuple[float, float] | None = None
    limit: int = USUAL_LIMIT
    condition: Mapping[str, Any] | None = None
    order: ObjectOrder = "added"
    is_descending: bool = False
    after: ObjectKey | None = None
    fields: Fields = field(default_factory=Fields)


def search_request(values: Mapping[str, Any], *, is_post: bool = False) -> SearchRequest:
    """Check the parameters of a search: texts of a URL, or values of a JSON body.

    Raises:
        DatasetError: If a parameter is unknown or invalid.
    """
    unknown = sorted(set(values) - set(NAMES))
    if unknown:
        raise DatasetError(
            f"expected parameters among {', '.join(NAMES)}, found {short_text(unknown[0])}"
        )
    values = {name: value for name, value in values.items() if value not in (None, "")}
    for name in LISTS if is_post else ():
        if isinstance(values.get(name), str):
            raise _wrong(name, "a list", values[name])
    if "bbox" in values and "intersects" in values:
        raise DatasetError("expected bbox or intersects, found both")
    ids = _names(values, "ids")
    order, is_descending = _order(values.get("sortby"))
    area = _area(values["intersects"]) if "intersects" in values else None
    return SearchRequest(
        collections=_names(values, "collections"),
        paths=None if ids is None else _paths(ids),
        bounds=_bounds(values["bbox"]) if "bbox" in values else None,
        area=area,
        time=time_range(values["datetime"]) if "datetime" in values else None,
        limit=_limit(values.get("limit", USUAL_LIMIT)),
        condition=_condition(values),
        order=order,
        is_descending=is_descending,
        after=_after(values.get("token"), order),
        fields=_fields(values.get("fields")),
    )


def _paths(ids: list[str]) -> list[str]:
    """Return the paths of items; what is no identifier is the name of none."""
    paths = []
    for each in ids:
        with suppress(DatasetError):
            paths.append(path_of(each))
    return paths


def token_of(key: ObjectKey, order: ObjectOrder) -> str:
    """Return where a page ended, for the request of the next."""
    text = json.dumps([order, *key])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(token: Any, order: ObjectOrder) -> ObjectKey | None:
    if token is None:
        return None
    kind = str if order == "name" else (int, float)
    if isinstance(token, str) and len(token) < 4000:
        try:
            content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            parts = json.loads(content)
        except (ValueError, RecursionError):
            parts = None
        match parts:
            case [str(of), value, int(granule)] if of == order and abs(granule) < 1 << 62:
                is_value = isinstance(value, kind) and not isinstance(value, bool)
                is_value = is_value and (
                    value.isprintable() if kind is str else abs(value) < 1 << 62
                )
                if is_value:
                    return ObjectKey(value, granule)
    raise _wrong("token", "the token of a link 'next' of this search", token)


def _names(values: Mapping[str, Any], name: str) -> list[str] | None:
    if name not in values:
        return None
    value = values[name]
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise _wrong(name, "a list of names", value)
    if len(names) > MOST_NAMES:
        raise _wrong(name, f"at most {MOST_NAMES} names", len(names))
    if any("\0" in each for each in names):
        raise _wrong(name, "names without NUL", value)
    return names or None


def _limit(value: Any) -> int:
    """Return the number of items of a page; more than the most is the most, as OGC has it."""
    try:
        limit = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else 0
    except ValueError:
        limit = 0
    if limit < 1:
        raise _wrong("limit", f"a number from 1 to {MOST_ITEMS}", value)
    return min(limit, MOST_ITEMS)


def _bounds(value: Any) -> Bounds:
    numbers = value.split(",") if isinstance(value, str) else value
    if not isinstance(numbers, list) or len(numbers) not in (4, 6):
        raise _wrong("bbox", "4 or 6 numbers", value)
    if any(isinstance(each, bool) for each in numbers):
        raise _wrong("bbox", "4 or 6 numbers", value)
    if len(numbers) == 6:  # heights are not compared
        numbers = [*numbers[:2], *numbers[3:5]]
    try:
        return Bounds.of(numbers)
    except RegionError as error:
        raise DatasetError(f"bbox: {str(error).removeprefix('bounds: ')}") from error


def time_range(value: Any) -> tuple[float, float]:
    """Return start and end of a time or interval, MJD (UTC); an open end is infinite.

    Raises:
        DatasetError: If the value is neither.
    """
    if not isinstance(value, str) or len(value) > 200:
        raise _wrong("datetime", "a time, or START/END", value)
    ends = value.split("/")
    if len(ends) == 1:
        at = mjd_of(read_moment(value))
        return at, at
    if len(ends) != 2 or all(end in ("", "..") for end in ends):
        raise _wrong("datetime", "a time, or START/END with '..' for an open end", value)
    start, end = (
        open_end if text in ("", "..") else mjd_of(read_moment(text))
        for text, open_end in zip(ends, (-math.inf, math.inf), strict=True)
    )
    if start > end:
        raise _wrong("datetime", "the start before the end", value)
    return start, end


def _order(value: Any) -> tuple[ObjectOrder, bool]:
    """Return what to order by. A second criterion would never count: both are unique or nearly."""
    if value is None:
        return "added", False
    if isinstance(value, str):
        value = [
            {"field": each.lstrip("+- "), "direction": "desc" if each.startswith("-") else "asc"}
            for each in value.split(",")
        ]
    match value:
        case [{"field": str(name), **rest}] if rest.get("direction", "asc") in ("asc", "desc"):
            order = ORDERS.get(name.removeprefix("properties."))
            if order is not None:
                return order, rest.get("direction") == "desc"
    raise _wrong("sortby", f"one of {', '.join(ORDERS)} with a direction", value)


def _fields(value: Any) -> Fields:
    if value is None:
        return Fields()
    if isinstance(value, str):
        names = [each for each in value.split(",") if each]
        value = {
            "include": [each.lstrip("+ ") for each in names if not each.startswith("-")],
            "exclude": [each[1:] for each in names if each.startswith("-")],
        }
    if not isinstance(value, Mapping) or set(value) - {"include", "exclude"}:
        raise _wrong("fields", 'lists "include" and "exclude"', value)
    lists = [value.get(name) or [] for name in ("include", "exclude")]
    for names in lists:
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise _wrong("fields", 'lists "include" and "exclude"', value)
    return Fields(*(frozenset(names[:MOST_NAMES]) for names in lists))


def _condition(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    crs = values.get("filter-crs", CRS84)
    if crs != CRS84:
        raise _wrong("filter-crs", CRS84, crs)
    value = values.get("filter")
    usual = "cql2-text" if isinstance(value, str) else "cql2-json"
    language = values.get("filter-lang", usual)
    if language not in LANGUAGES:
        raise _wrong("filter-lang", " or ".join(LANGUAGES), language)
    if value is None:
        return None
    if language == "cql2-json":
        return cast("Mapping[str, Any]", _json_of("filter", value))
    if not isinstance(value, str) or len(value) > LONGEST_FILTER:
        raise _wrong("filter", f"text of at most {LONGEST_FILTER} characters", value)
    return parse_cql2_text(value)


def _json_of(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _wrong(name, "JSON", value) from error


def _area(value: Any) -> PlanarArea:
    lines: list[Ring] = []
    outlines: list[Ring] = []
    count = 0
    # Polygons are cut at the dateline, which takes time, once it is known that they are few.
    for is_polygon, corners in _shapes(_json_of("intersects", value), 1):
        count += len(corners)
        if count > MOST_CORNERS:
            raise _wrong("intersects", f"at most {MOST_CORNERS} corners", "more")
        (outlines if is_polygon else lines).append(corners)
    rings = [*lines, *(ring for outline in outlines for ring in planar_rings(outline))]
    if not rings:
        raise _wrong("intersects", "a polygon with an area", value)
    return PlanarArea(rings)


def _shapes(geometry: Any, depth: int) -> Iterator[tuple[bool, Ring]]:
    """Yield whether it is a polygon, and the corners, of each part of a geometry of GeoJSON.

    Holes are filled; a line is its sides.
    """
    if not isinstance(geometry, Mapping) or depth > DEEPEST_GEOMETRY:
        raise _wrong("intersects", "a geometry of GeoJSON", geometry)
    kind = geometry.get("type")
    name = "geometries" if kind == "GeometryCollection" else "coordinates"
    parts = geometry.get(name)
    if not isinstance(parts, list) or not parts or len(parts) > MOST_CORNERS:
        raise _wrong("intersects", f"{name} of a geometry", parts)
    match kind:
        case "GeometryCollection":
            for part in parts:
                yield from _shapes(part, depth + 1)
        case "Point":
            yield False, _corners([parts], 1)
        case "MultiPoint":
            yield from ((False, _corners([part], 1)) for part in parts)
        case "LineString":
            yield from _sides(parts)
        case "MultiLineString":
            for part in parts:
                yield from _sides(part)
        case "Polygon":
            yield True, _outline(parts)
        case "MultiPolygon":
            yield from ((True, _outline(part)) for part in parts)
        case _:
            raise _wrong("intersects", "a type of geometry of GeoJSON", kind)


def _sides(line: Any) -> Iterator[tuple[bool, Ring]]:
    corners = _corners(line, 2)
    yield from ((False, corners[at : at + 2]) for at in range(len(corners) - 1))


def _outline(rings: Any) -> Ring:
    outer = _corners(rings[0] if isinstance(rings, list) and rings else None, 4)
    if not (outer[0] == outer[-1]).all():
        raise _wrong("intersects", "a polygon that ends where it begins", outer[-1].tolist())
    return outer[:-1]


def _corners(places: Any, least: int) -> Ring:
    if not isinstance(places, list) or not least <= len(places) <= MOST_CORNERS:
        raise _wrong("intersects", f"{least} to {MOST_CORNERS} places", places)
    rows = []
    for place in places:
        match place:
            case [int() | float() as lon, int() | float() as lat, *_]:
                is_place = -540 <= lon <= 540 and -90 <= lat <= 90
                if is_place and not isinstance(lon, bool) and not isinstance(lat, bool):
                    rows.append((float(lon), float(lat)))
                    continue
        raise _wrong("intersects", "places [longitude, latitude] in degrees", place)
    return np.array(rows)


def _wrong(name: str, form: str, value: Any) -> DatasetError:
    return DatasetError(f"{name}: expected {form}, found {short_text(value)}")
