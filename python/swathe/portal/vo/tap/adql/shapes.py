"""Shapes on the sky in ADQL, and conditions on two of them.

A condition on the outline of images and a shape of numbers becomes a list of images, and one on a
shape in each row of an upload a list of pairs. Positions and circles are compared in SQL.
"""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from swathe.core.errors import RegionError
from swathe.datasets.spherical import directions
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry import regions
from swathe.portal.vo.tap.adql import functions
from swathe.portal.vo.tap.adql.syntax import Call, Node, Text
from swathe.portal.vo.tap.adql.values import (
    Circle,
    Footprint,
    Point,
    Polygon,
    Shape,
    Value,
    is_constant,
)
from swathe.portal.vo.tap.sources import GRANULE_WCS, ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swathe.portal.vo.geometry.regions import SkyRegion
    from swathe.portal.vo.tap.adql.values import Source
    from swathe.portal.vo.tap.footprints import Footprints, Relation
    from swathe.portal.vo.tap.sources import Sources

MOST_CORNERS = 1000
MOST_UPLOAD_ROWS = 10_000
"""Maximum number of rows of an upload that are compared with the outlines of images."""
MOST_PAIRS = 500_000
FRAMES = ("", "ICRS")
BUILDERS = ("POINT", "CIRCLE", "POLYGON", "BOX", "CENTROID")
PREDICATES = ("CONTAINS", "INTERSECTS")
OPPOSITES: dict[str, Relation] = {
    "contains": "inside",
    "inside": "contains",
    "intersects": "intersects",
}
Pair = tuple[Any, Any]
"""When a condition is true, and when it is false; neither if a value is missing."""


class Shapes:
    """Shapes of one query."""

    def __init__(
        self, sources: Sources, footprints: Footprints, number: Callable[[float], Value]
    ) -> None:
        """Set the tables, the images, and what makes a number a value."""
        self._sources, self._footprints, self._number = sources, footprints, number

    def build(self, call: Call, evaluate: Callable[[Node], Value | Shape]) -> Shape:
        """Return the shape that a function makes.

        Raises:
            VoError: If its arguments are not right.
        """
        parts = [evaluate(each) for each in _without_frame(call)]
        name = call.function
        if name == "CENTROID":
            return self._centroid(parts)
        numbers = list(_numbers(name, parts))
        match name, len(numbers):
            case "POINT", 2:
                return self._point(*numbers)
            case "CIRCLE", 3:
                radius = numbers[2]
                if radius.constant is not None and not 0 <= radius.constant <= 180:
                    raise usage(
                        f"QUERY: CIRCLE: expected a radius from 0 to 180 degrees, found "
                        f"{radius.constant:g}"
                    )
                return Circle(self._point(*numbers[:2]), radius)
            case "BOX", 4:
                return self._box(numbers)
            case "POLYGON", count if count >= 6 and count % 2 == 0:
                if count > 2 * MOST_CORNERS:
                    raise usage(f"QUERY: POLYGON: expected at most {MOST_CORNERS} corners")
                pairs = zip(numbers[::2], numbers[1::2], strict=True)
                return Polygon(tuple(self._point(*pair) for pair in pairs))
        raise usage(f"QUERY: {name}: expected {EXPECTATIONS[name]}, found {len(numbers)} numbers")

    def _point(self, lon: Value, lat: Value) -> Point:
        if lat.constant is not None and not -90 <= lat.constant <= 90:
            raise usage(
                f"QUERY: expected a declination from -90 to 90 degrees, found {lat.constant:g}"
            )
        return Point(lon, lat)

    def _box(self, numbers: list[Value]) -> Polygon:
        constants = [each.constant for each in numbers]
        if None in constants:
            raise usage("QUERY: BOX: expected numbers, found columns; use POLYGON")
        lon, lat, width, height = (float(each) for each in constants if each is not None)
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        return Polygon(
            tuple(
                self._point(self._number(lon + x * width / 2), self._number(lat + y * height / 2))
                for x, y in corners
            )
        )

    def _centroid(self, parts: list[Value | Shape]) -> Shape:
        match parts:
            case [Circle(centre=centre)]:
                return centre
            case [Point() as point]:
                return point
            case [Footprint(value=value)] if value.source is not None:
                names = [each.name for each in value.source.columns]
                if {"s_ra", "s_dec"} <= set(names):
                    ra, dec = names.index("s_ra"), names.index("s_dec")
                    return Point(value.source.value(ra), value.source.value(dec))
        raise usage("QUERY: CENTROID: expected CIRCLE or s_region, found something else")

    # ---- Functions of shapes

    def distance(self, one: Point, other: Point) -> Any:
        """Return the angle between two positions in SQL, degrees."""
        numbers = (each.sql for each in (*one.parts, *other.parts))
        return functions.distance(self._sources.on_sqlite, *numbers)

    def area(self, shape: Shape) -> float:
        """Return the area of a shape of numbers, square degrees.

        Raises:
            VoError: If it is not of numbers.
        """
        if isinstance(shape, Footprint) or not is_constant(shape):
            raise usage("QUERY: AREA: expected a shape of numbers, found columns")
        if isinstance(shape, Point):
            return 0.0
        region = region_of(shape)
        square_degrees = math.degrees(1) ** 2
        if isinstance(region, regions.Circle):
            return 2 * math.pi * (1 - math.cos(region.radius)) * square_degrees
        assert isinstance(region, regions.Polygon)
        corners = region.corners
        before, after = np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
        in_, out = np.cross(corners, before), np.cross(corners, after)
        turn = np.arctan2((np.cross(out, in_) * corners).sum(axis=1), (in_ * out).sum(axis=1))
        excess = float((turn % (2 * math.pi)).sum()) - (len(corners) - 2) * math.pi
        return min(abs(excess), 4 * math.pi - abs(excess)) * square_degrees

    # ---- Conditions

    def is_image(self, source: Source, did: str) -> Any:
        """Return whether a row of images may be the one of a DID: fast, by its number."""
        numbers = self._footprints.with_did(self._sources.authority, did)
        return source.clause.c[ROW].in_(self._sources.identifiers(numbers))

    def predicate(self, name: str, one: Shape, other: Shape) -> Pair:
        """Return when one shape is in another, or when they intersect.

        Raises:
            VoError: If this cannot be said of these shapes.
        """
        relation: Relation = "intersects"
        if name == "CONTAINS":
            relation = "inside"
            if isinstance(other, Point):
                raise usage("QUERY: CONTAINS: expected a shape with an area second, found POINT")
        if not isinstance(one, Footprint) and isinstance(other, Footprint):
            one, other, relation = other, one, OPPOSITES[relation]
        if isinstance(one, Footprint):
            if isinstance(other, Footprint):
                raise usage(f"QUERY: {name}: expected one s_region, found two")
            return self._of_images(name, one, relation, other)
        if isinstance(other, Point):
            one, other = other, one
        if isinstance(one, Point) and isinstance(other, Point):
            return _pair(self.distance(one, other) == 0)
        if isinstance(other, Circle) and isinstance(one, Point):
            return self._in_circle(one, other)
        if isinstance(other, Circle) and isinstance(one, Circle):
            away = self.distance(one.centre, other.centre)
            if relation == "intersects":
                return _pair(away <= one.radius.sql + other.radius.sql)
            return _pair(away + one.radius.sql <= other.radius.sql)
        if isinstance(one, Point) and isinstance(other, Polygon) and is_constant(other):
            return self._in_polygon(one, other)
        raise usage(
            f"QUERY: {name}: expected s_region or positions and a circle, or positions and a "
            f"polygon of numbers, found {type(one).__name__.upper()} and "
            f"{type(other).__name__.upper()}"
        )

    def _in_circle(self, point: Point, circle: Circle) -> Pair:
        near = self.distance(point, circle.centre) <= circle.radius.sql
        source = _source_of(point)
        if source is None or not _is_centre(point) or not is_constant(circle):
            return _pair(near)
        numbers = self._footprints.centres_near(region_of(circle))
        if numbers is None:
            return _pair(near)
        is_candidate = source.clause.c[ROW].in_(self._sources.identifiers(numbers))
        return is_candidate & near, sa.not_(near)

    def _in_polygon(self, point: Point, polygon: Polygon) -> Pair:
        region = region_of(polygon)
        if is_constant(point):
            place = directions(*np.array([[part.constant] for part in point.parts], float))
            return _pair(sa.true() if region.holds(place)[0] else sa.false())
        source = _source_of(point)
        if source is not None and _is_centre(point):
            numbers = self._footprints.centres_in(region)
        elif source is not None and source.is_upload:
            rows = np.array(list(self._rows(source, point)), float).reshape(-1, 3)
            inside = region.holds(directions(rows[:, 1], rows[:, 2]))
            numbers = rows[inside, 0].astype(int).tolist()
        else:
            raise usage(
                "QUERY: a position in a polygon: expected POINT(s_ra, s_dec), or two columns of an "
                "upload, found another"
            )
        return self._among(source.clause.c[ROW], numbers, point.lon.sql, point.lat.sql)

    def _among(self, row: Any, numbers: list[int], *parts: Any) -> Pair:
        is_among = row.in_(self._sources.identifiers(numbers))
        has_parts = sa.and_(*(part.is_not(None) for part in parts))
        return is_among, has_parts & sa.not_(is_among)

    def _of_images(self, name: str, footprint: Footprint, relation: Relation, other: Shape) -> Pair:
        images = footprint.value.source
        if images is None or not images.is_images:
            raise usage(f"QUERY: {name}: expected s_region of ivoa.obscore, found another region")
        row, place = images.clause.c[ROW], images.clause.c[GRANULE_WCS]
        if is_constant(other):
            numbers = self._footprints.matching(relation, region_of(other))
            return self._among(row, numbers, place)
        upload = _source_of(other)
        if upload is None or not upload.is_upload:
            raise usage(
                f"QUERY: {name}: s_region: expected a shape of numbers, or of columns of one "
                "upload, found others"
            )
        return self._of_pairs(images, upload, relation, other)

    def _of_pairs(self, images: Source, upload: Source, relation: Relation, other: Shape) -> Pair:
        pairs: list[tuple[int, int]] = []
        for number, *values in self._rows(upload, other):
            shape = _with_numbers(other, [self._number(each) for each in values])
            pairs += [
                (int(number), each)
                for each in self._footprints.matching(relation, region_of(shape))
            ]
            if len(pairs) > MOST_PAIRS:
                raise usage(
                    f"QUERY: expected at most {MOST_PAIRS:,} pairs of images and rows of an "
                    "upload, found more"
                )
        names: Any = [("upload_row", "long"), ("image", "long")]
        rows = self._sources.json_values(json.dumps(pairs), names).cte(f"pairs_{images.number}")
        near = rows.alias()
        is_pair = (
            sa.select(sa.literal(1))
            .select_from(near)
            .where(near.c.upload_row == upload.clause.c[ROW], near.c.image == images.clause.c[ROW])
            .correlate(images.clause, upload.clause)
            .exists()
        )
        return is_pair, images.clause.c[GRANULE_WCS].is_not(None) & sa.not_(is_pair)

    def _rows(self, upload: Source, shape: Shape) -> Iterator[tuple[float, ...]]:
        """Yield the number of each row of an upload, and the numbers of a shape in it."""
        names = [each.name for each in upload.columns]
        places: list[int | None] = []
        for part in shape.parts:
            if part.constant is None and (part.column is None or part.column.name not in names):
                raise usage("QUERY: a shape: expected columns and numbers, found an expression")
            places.append(None if part.column is None else names.index(part.column.name))
        rows = self._sources.rows_of_upload(upload.table_name)
        if len(rows) > MOST_UPLOAD_ROWS:
            raise usage(
                f"QUERY: expected an upload of at most {MOST_UPLOAD_ROWS} rows to compare with the "
                f"outlines of images or with a polygon, found {len(rows)}"
            )
        for number, row in enumerate(rows):
            values = [
                part.constant if place is None else row[place]
                for part, place in zip(shape.parts, places, strict=True)
            ]
            if None not in values:
                yield (float(number), *(float(each) for each in values if each is not None))


EXPECTATIONS = {
    "POINT": "longitude and latitude in degrees",
    "CIRCLE": "longitude, latitude and radius in degrees",
    "BOX": "longitude, latitude, width and height in degrees",
    "POLYGON": "longitudes and latitudes of three corners or more, in degrees",
}


def _without_frame(call: Call) -> tuple[Node, ...]:
    """Return the arguments of a function, without the name of a frame before them."""
    match call.arguments:
        case (Text(value=frame), *rest):
            if (frame.strip().upper().split() or [""])[0] not in FRAMES:
                raise usage(
                    f"QUERY: {call.function}: expected the frame ICRS, found {frame[:40]!r}"
                )
            return tuple(rest)
    return call.arguments


def _numbers(name: str, parts: list[Value | Shape]) -> Iterator[Value]:
    for part in parts:
        if isinstance(part, Point):
            yield from part.parts
        elif isinstance(part, Value):
            yield part.number(name)
        else:
            raise usage(f"QUERY: {name}: expected numbers or POINT, found another shape")


def region_of(shape: Shape) -> SkyRegion:
    """Return a shape of numbers as a region.

    Raises:
        VoError: If it is none: a polygon without three corners, or a large one.
    """
    constants = [part.constant for part in shape.parts if part.constant is not None]
    match shape:
        case Point():
            return regions.Circle(constants[0], constants[1], 0.0)
        case Circle():
            lon, lat, radius = constants
            if not (-90 <= lat <= 90 and 0 <= radius <= 180):
                raise usage(
                    f"QUERY: CIRCLE: expected a declination from -90 to 90 and a radius from 0 to "
                    f"180 degrees, found {lat:g} and {radius:g}"
                )
            return regions.Circle(lon, lat, radius)
        case _:
            try:
                return regions.Polygon(constants)
            except RegionError as error:
                raise usage(f"QUERY: {error}") from None


def _with_numbers(shape: Shape, numbers: list[Value]) -> Shape:
    match shape:
        case Circle():
            return Circle(Point(*numbers[:2]), numbers[2])
        case Polygon():
            pairs = islice(zip(numbers[::2], numbers[1::2], strict=True), MOST_CORNERS)
            return Polygon(tuple(Point(*pair) for pair in pairs))
        case _:
            return Point(*numbers)


def _source_of(shape: Shape) -> Source | None:
    """Return the one table whose columns a shape has, if there is one."""
    sources = {part.source for part in shape.parts if part.constant is None}
    return sources.pop() if len(sources) == 1 else None


def _is_centre(point: Point) -> bool:
    """Check whether a position is the centre of images."""
    source = point.lon.source
    if source is None or not source.is_images:
        return False
    names = [part.column.name if part.column else "" for part in point.parts]
    return names == ["s_ra", "s_dec"]


def _pair(condition: Any) -> Pair:
    return condition, sa.not_(condition)
