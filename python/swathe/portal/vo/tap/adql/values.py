"""What parts of a query are: values with their types, and shapes on the sky."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from swathe.portal.vo.errors import usage

if TYPE_CHECKING:
    from swathe.portal.vo.tap.adql.syntax import Name
    from swathe.portal.vo.tap.tables import Kind, TapColumn

NUMBERS = ("int", "long", "double")
_COUNTER = count()
WORDS = {
    "int": "a number",
    "long": "a number",
    "double": "a number",
    "text": "a text",
    "region": "a region",
}


@dataclass(eq=False)
class Source:
    """A table of a FROM.

    Attributes:
        names: Its name, with that of its schema if it has no alias.
        clause: The table in SQL.
        columns: Its columns.
        labels: Names of the columns in SQL, if these are others.
        is_images: Whether its rows are images.
        is_upload: Whether its rows are those of a table that the user sent, `table_name`.
        number: A number that no other has.
    """

    names: tuple[str, ...]
    clause: Any
    columns: tuple[TapColumn, ...]
    labels: dict[int, str] = field(default_factory=dict)
    is_images: bool = False
    is_upload: bool = False
    table_name: str = ""
    number: int = field(default_factory=lambda: next(_COUNTER))

    def value(self, place: int) -> Value:
        """Return a column by its place."""
        column = self.columns[place]
        sql = self.clause.c[self.labels.get(place, column.name)]
        key = frozenset({(self.number, column.name)})
        return Value(sql, column.kind, column, columns=key, source=self)

    def matches(self, name: Name) -> bool:
        """Check whether a name, with or without schema, is that of this table."""
        return len(name) <= len(self.names) and all(
            part.matches(own)
            for part, own in zip(reversed(name), reversed(self.names), strict=False)
        )


@dataclass(frozen=True)
class Value:
    """A value in SQL.

    Attributes:
        sql: The expression.
        kind: Its type.
        column: The column that it is, if it is one.
        constant: The number that it is, if it is one.
        columns: Columns that it has outside of aggregates.
        is_aggregate: Whether an aggregate is in it.
        source: The table of the column.
    """

    sql: Any
    kind: Kind
    column: TapColumn | None = None
    constant: float | None = None
    columns: frozenset[tuple[int, str]] = field(default_factory=frozenset)
    is_aggregate: bool = False
    source: Source | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.kind in NUMBERS

    def number(self, what: str) -> Value:
        """Return the value, which has to be a number.

        Raises:
            VoError: If it is not.
        """
        if not self.is_number:
            raise usage(f"QUERY: {what}: expected a number, found {WORDS[self.kind]}")
        return self

    def text(self, what: str) -> Value:
        """Return the value, which has to be a text.

        Raises:
            VoError: If it is not.
        """
        if self.kind != "text":
            raise usage(f"QUERY: {what}: expected a text, found {WORDS[self.kind]}")
        return self


def join(sql: Any, kind: Kind, *parts: Value) -> Value:
    """Return a value that is made from others."""
    columns = frozenset[tuple[int, str]]().union(*(each.columns for each in parts))
    return Value(sql, kind, columns=columns, is_aggregate=any(each.is_aggregate for each in parts))


def unite(what: str, *parts: Value) -> Kind:
    """Return the type that fits all values.

    Raises:
        VoError: If there is none.
    """
    kinds = {each.kind for each in parts}
    if len(kinds) == 1:
        return parts[0].kind
    if kinds <= set(NUMBERS):
        return "double" if "double" in kinds else "long"
    words = " and ".join(sorted({WORDS[kind] for kind in kinds}))
    raise usage(f"QUERY: {what}: expected values of one type, found {words}")


@dataclass(frozen=True)
class Point:
    """A position. `centre_of` is the table of images whose centres it is."""

    lon: Value
    lat: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        return self.lon, self.lat


@dataclass(frozen=True)
class Circle:
    """A circle."""

    centre: Point
    radius: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        return *self.centre.parts, self.radius


@dataclass(frozen=True)
class Polygon:
    """A polygon of great circles."""

    corners: tuple[Point, ...]

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        return tuple(part for corner in self.corners for part in corner.parts)


@dataclass(frozen=True)
class Footprint:
    """The outlines of images: the column `s_region` of a table."""

    value: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        return (self.value,)


Shape = Point | Circle | Polygon | Footprint


def is_constant(shape: Shape) -> bool:
    """Check whether a shape is made of numbers alone."""
    return all(part.constant is not None for part in shape.parts)


def without_columns(value: Value) -> Value:
    """Return a value that a query groups by: it is the same in each row of a group."""
    return replace(value, columns=frozenset())
