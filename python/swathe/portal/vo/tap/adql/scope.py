"""The tables and columns that the names in a query may mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.portal.vo.errors import usage
from swathe.portal.vo.tap.adql.values import Source, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.portal.vo.tap.adql.syntax import Identifier, Name

LONGEST_QUOTE = 80


@dataclass
class Scope:
    """The tables of one SELECT, within those of the SELECT around it.

    Attributes:
        merges: Columns that a join has once, for both tables.
        order: Columns of `SELECT *`.
        outer_columns: Columns of SELECTs around it that it uses.
        groups: Texts in SQL of what it groups by; None if it does not group.
        has_aggregates: Whether aggregates may be used in what is read now.
    """

    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merges: dict[str, Value] = field(default_factory=dict)
    order: list[Value] = field(default_factory=list)
    outer_columns: set[tuple[int, str]] = field(default_factory=set)
    groups: set[str] | None = None
    has_aggregates: bool = False

    def column(self, name: Name) -> Value:
        """Return the column of a name.

        Raises:
            VoError: If there is none, or several.
        """
        inner: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            values = scope._matches(name)
            if len(values) > 1:
                raise usage(
                    f"QUERY: {text_of(name)}: expected a column of one table, found it in several; "
                    "write the name of the table before it"
                )
            if values:
                for each in inner:
                    each.outer_columns |= values[0].columns
                return values[0]
            inner.append(scope)
            scope = scope.parent
        raise usage(f"QUERY: expected a column of the tables, found {text_of(name)}")

    def _matches(self, name: Name) -> list[Value]:
        *table, column = name
        if not table:
            for own, value in self.merges.items():
                if column.matches(own):
                    return [value]
        return [
            source.value(place)
            for source in self.sources
            if not table or source.matches(tuple(table))
            for place, each in enumerate(source.columns)
            if column.matches(each.name)
        ]

    def columns_of(self, table: Name) -> list[Value]:
        """Return the columns of a table, or of all tables.

        Raises:
            VoError: If there is no such table.
        """
        if not table:
            return self.order
        sources = [source for source in self.sources if source.matches(table)]
        if len(sources) != 1:
            raise usage(f"QUERY: expected a table of FROM, found {text_of(table)}.*")
        return [sources[0].value(place) for place in range(len(sources[0].columns))]

    def outer_clauses(self) -> Iterator[Any]:
        """Yield the tables of the SELECTs around this one."""
        scope = self.parent
        while scope is not None:
            for source in scope.sources:
                yield source.clause
            scope = scope.parent


def text_of(name: tuple[Identifier, ...]) -> str:
    """Return a name as text, for an error message."""
    return ".".join(part.text for part in name)[:LONGEST_QUOTE]
