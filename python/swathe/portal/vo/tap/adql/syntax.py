"""The syntax tree of a query in ADQL, as plain values.

Every node knows its depth, and a tree deeper than `MOST_DEPTH` cannot be built: what walks the tree
may call itself.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from swathe.portal.vo.errors import usage

MOST_DEPTH = 60
"""Maximum depth of a query: of functions, sums and subqueries in each other. Parentheses are free,
and so are conditions joined by one AND or OR."""


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the tree."""

    def __post_init__(self) -> None:
        """Compute the depth."""
        depth = 0
        for each in fields(self):
            value = getattr(self, each.name)
            for child in value if isinstance(value, tuple | list) else (value,):
                depth = max(depth, getattr(child, "depth", 0))
        if depth >= MOST_DEPTH:
            raise usage(
                f"QUERY: expected expressions at most {MOST_DEPTH} deep, found more; write a long "
                "sum as a function, and subqueries as tables of WITH"
            )
        object.__setattr__(self, "depth", depth + 1)


@dataclass(frozen=True, eq=False)
class Identifier(Node):
    """A name. One in double quotes is compared by case."""

    text: str
    is_exact: bool = False

    def matches(self, name: str) -> bool:
        """Check whether this is the name of something."""
        return name == self.text if self.is_exact else name.lower() == self.text.lower()


Name = tuple[Identifier, ...]


@dataclass(frozen=True, eq=False)
class Number(Node):
    """A number: an integer of 64 bits, else a float."""

    value: int | float


@dataclass(frozen=True, eq=False)
class Text(Node):
    """A character string."""

    value: str


@dataclass(frozen=True, eq=False)
class Column(Node):
    """A column, with or without the name of its table."""

    name: Name


@dataclass(frozen=True, eq=False)
class Operation(Node):
    """A sum, difference, product or quotient, or two texts joined."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Negative(Node):
    """A number with a minus before it."""

    value: Node


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A function; `is_of_all` if its argument is a star."""

    function: str
    arguments: tuple[Node, ...]
    is_distinct: bool = False
    is_of_all: bool = False


@dataclass(frozen=True, eq=False)
class Cast(Node):
    """A value as another type."""

    value: Node
    type_name: str


@dataclass(frozen=True, eq=False)
class Scalar(Node):
    """A subquery as a value."""

    query: Query


@dataclass(frozen=True, eq=False)
class Combination(Node):
    """Conditions that are joined by `AND` or `OR`. The parser adds to the list."""

    word: Literal["AND", "OR"]
    conditions: list[Node]


@dataclass(frozen=True, eq=False)
class Not(Node):
    """The opposite of a condition."""

    condition: Node


@dataclass(frozen=True, eq=False)
class Comparison(Node):
    """Two values compared."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Between(Node):
    """A value between two others."""

    is_not: bool
    value: Node
    low: Node
    high: Node


@dataclass(frozen=True, eq=False)
class InList(Node):
    """A value among others."""

    is_not: bool
    value: Node
    others: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class InQuery(Node):
    """A value among those of a subquery."""

    is_not: bool
    value: Node
    query: Query


@dataclass(frozen=True, eq=False)
class Like(Node):
    """A text that matches a pattern; `is_any_case` for ILIKE."""

    is_not: bool
    is_any_case: bool
    value: Node
    pattern: Node


@dataclass(frozen=True, eq=False)
class IsNull(Node):
    """A value that is missing."""

    is_not: bool
    value: Node


@dataclass(frozen=True, eq=False)
class Exists(Node):
    """A subquery that has a row."""

    query: Query


@dataclass(frozen=True, eq=False)
class Item(Node):
    """A column of the answer: a value with a name."""

    value: Node
    name: Identifier | None


@dataclass(frozen=True, eq=False)
class Star(Node):
    """All columns, of all tables or of one."""

    table: Name


@dataclass(frozen=True, eq=False)
class PlainTable(Node):
    """A table by its name."""

    name: Name
    alias: Identifier | None


@dataclass(frozen=True, eq=False)
class DerivedTable(Node):
    """A subquery as a table."""

    query: Query
    alias: Identifier


JoinKind = Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Two tables joined: by a condition, by columns of the same names, or all rows with all."""

    kind: JoinKind
    left: Node
    right: Node
    is_natural: bool = False
    condition: Node | None = None
    columns: tuple[Identifier, ...] = ()


@dataclass(frozen=True, eq=False)
class Order(Node):
    """A value to sort by."""

    value: Node
    is_descending: bool


@dataclass(frozen=True, eq=False)
class Select(Node):
    """A SELECT."""

    is_distinct: bool
    top: int | None
    items: tuple[Node, ...]
    tables: tuple[Node, ...]
    where: Node | None
    groups: tuple[Node, ...]
    having: Node | None


@dataclass(frozen=True, eq=False)
class SetOperation(Node):
    """Rows of two queries: UNION, EXCEPT or INTERSECT."""

    word: Literal["UNION", "EXCEPT", "INTERSECT"]
    is_all: bool
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Common(Node):
    """A query that has a name: WITH."""

    name: Identifier
    query: Query


@dataclass(frozen=True, eq=False)
class Query(Node):
    """A query with its order."""

    common: tuple[Common, ...]
    body: Node
    order: tuple[Order, ...]
    offset: int | None
