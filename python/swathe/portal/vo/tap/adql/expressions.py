"""Values of ADQL as SQL: fixed constructs, with the user's constants as parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import Grouping

from swathe.portal.vo.errors import usage
from swathe.portal.vo.tap.adql import functions, syntax
from swathe.portal.vo.tap.adql.scope import Scope
from swathe.portal.vo.tap.adql.shapes import BUILDERS, PREDICATES, Shapes
from swathe.portal.vo.tap.adql.values import (
    Footprint,
    Point,
    Shape,
    Value,
    join,
    unite,
    without_columns,
)
from swathe.portal.vo.tap.sources import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.portal.vo.tap.adql.shapes import Pair
    from swathe.portal.vo.tap.adql.syntax import Call, Node, Query
    from swathe.portal.vo.tap.sources import Sources
    from swathe.portal.vo.tap.tables import Kind

MOST_VALUES = 10_000
"""Maximum number of constants of a query: databases limit the number of parameters."""
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
MATH = {
    **dict.fromkeys(("SQRT", "LOG", "LOG10", "EXP", "SIN", "COS", "TAN", "COT"), 1),
    **dict.fromkeys(("ASIN", "ACOS", "ATAN", "DEGREES", "RADIANS", "CEILING", "FLOOR"), 1),
    **dict.fromkeys(("POWER", "ATAN2", "MOD"), 2),
}
"""Functions of numbers, with the number of arguments."""
CASTS: dict[str, Kind] = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "INT", "BIGINT"), "long"),
    **dict.fromkeys(("REAL", "FLOAT", "DOUBLE PRECISION", "DOUBLE"), "double"),
    **dict.fromkeys(("CHAR", "VARCHAR", "TIMESTAMP"), "text"),
}


class Expressions:
    """Values of one query."""

    def __init__(
        self,
        sources: Sources,
        shapes_of: Callable[[Callable[[float], Value]], Shapes],
        subquery: Callable[[Query, Scope], tuple[Any, list[Value]]],
    ) -> None:
        """Set the tables, what makes shapes, and what translates subqueries."""
        self._on_sqlite = sources.on_sqlite
        self._subquery = subquery
        self._constants: dict[tuple[type, Any], Value] = {}
        module: Any = sqlite if self._on_sqlite else postgresql
        self._dialect = module.dialect()
        self.shapes = shapes_of(self.constant)

    def constant(self, value: float | int | str) -> Value:
        """Return a constant as a parameter; equal ones are the same parameter."""
        key = type(value), value
        if key not in self._constants:
            if len(self._constants) == MOST_VALUES:
                raise usage(f"QUERY: expected at most {MOST_VALUES} constants, found more")
            kind: Kind = "long" if isinstance(value, int) else "double"
            kind = "text" if isinstance(value, str) else kind
            name = f"v{len(self._constants)}"
            if isinstance(value, str) and "\x00" in value:
                raise usage("QUERY: expected text without NUL, found one")
            number = None if isinstance(value, str) else float(value)
            parameter = sa.bindparam(name, value, TYPES[kind])
            self._constants[key] = Value(parameter, kind, constant=number)
        return self._constants[key]

    # ---- Values

    def value(self, node: Node, scope: Scope) -> Value:
        """Return the value of an expression.

        Raises:
            VoError: If it has none: it is a condition or a shape, or names do not exist.
        """
        result = self.evaluate(node, scope)
        if isinstance(result, Footprint):
            return result.value
        if not isinstance(result, Value):
            raise usage(f"QUERY: expected a number or text, found {type(result).__name__.upper()}")
        return result

    def evaluate(self, node: Node, scope: Scope) -> Value | Shape:
        """Return the value or shape of an expression."""
        result = self._evaluate(node, scope)
        if not (scope.groups and isinstance(result, Value) and result.columns):
            return result
        return without_columns(result) if self.text_of(result) in scope.groups else result

    def text_of(self, value: Value) -> str:
        """Return an expression as text: that of equal expressions is equal."""
        return str(value.sql.compile(dialect=self._dialect))

    def _evaluate(self, node: Node, scope: Scope) -> Value | Shape:
        match node:
            case syntax.Number(value=value) | syntax.Text(value=value):
                return self.constant(value)
            case syntax.Column(name=name):
                column = scope.column(name)
                return Footprint(column) if column.kind == "region" else column
            case syntax.Operation():
                return self._operation(node, scope)
            case syntax.Negative(value=inner):
                number = self.value(inner, scope).number("-")
                if number.constant is not None:
                    return self.constant(-number.constant)
                return join(Grouping(-number.sql), number.kind, number)
            case syntax.Call():
                return self._call(node, scope)
            case syntax.Cast():
                return self._cast(node, scope)
            case syntax.Scalar(query=query):
                inner_scope = Scope(scope)
                select, outputs = self._subquery(query, inner_scope)
                if len(outputs) != 1:
                    raise usage(
                        f"QUERY: a subquery as a value: expected one column, found {len(outputs)}"
                    )
                if not outputs[0].is_aggregate:
                    select = self._one_row(query, select, outputs[0], inner_scope)
                sql = sa.type_coerce(select.scalar_subquery(), TYPES[outputs[0].kind])
                return Value(sql, outputs[0].kind, columns=own_columns(inner_scope, scope))
        raise usage("QUERY: expected a value, found a condition")

    def _one_row(self, query: Query, select: Any, output: Value, scope: Scope) -> Any:
        """Return a SELECT that is an error if it has several rows, as PostgreSQL has it."""
        body = query.body
        if isinstance(body, syntax.Select) and body.top in (0, 1):
            return select
        is_plain = isinstance(body, syntax.Select) and not (
            body.is_distinct or body.top or body.groups or query.order or query.offset
        )
        if not is_plain:
            raise usage(
                "QUERY: a subquery as a value: expected an aggregate, TOP 1, or a SELECT without "
                "DISTINCT, TOP, GROUP BY, ORDER BY and OFFSET, found another"
            )
        if not self._on_sqlite:
            return select
        row = scope.sources[0].value(0).sql
        single = sa.func.swathe_single(output.sql, row, type_=TYPES[output.kind])
        return select.with_only_columns(single.label("c0"), maintain_column_froms=True)

    def _operation(self, node: syntax.Operation, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        operator = node.operator
        if operator == "||":
            left, right = left.text("||"), right.text("||")
            return join(Grouping(left.sql.op("||")(right.sql)), "text", left, right)
        left, right = left.number(operator), right.number(operator)
        kind = unite(operator, left, right)
        kind = "long" if kind == "int" else kind
        if left.constant is not None and right.constant is not None and kind == "double":
            constant = _fold(operator, left.constant, right.constant)
            if constant is not None:
                return self.constant(constant)
        one, other = left.sql, right.sql
        if operator == "/":
            other = sa.func.nullif(other, self.constant(0).sql, type_=TYPES[kind])
        if kind == "double":
            one, other = (sa.cast(each, TYPES["double"]) for each in (one, other))
        sql = Grouping(one.op(operator, return_type=TYPES[kind])(other))
        return join(sql, kind, left, right)

    def _call(self, node: Call, scope: Scope) -> Value | Shape:
        name = node.function
        if name in AGGREGATES:
            return self._aggregate(node, scope)
        if node.is_distinct or node.is_of_all:
            raise usage(f"QUERY: {name}: expected plain arguments, found DISTINCT or *")
        if name in BUILDERS:
            return self.shapes.build(node, lambda each: self.evaluate(each, scope))
        if name in PREDICATES:
            when_true, when_false, parts = self._predicate(node, scope)
            zero, one = self.constant(0).sql, self.constant(1).sql
            return join(sa.case((when_true, one), (when_false, zero)), "int", *parts)
        if name in SHAPE_FUNCTIONS:
            return self._shape_function(node, scope)
        arguments = [self.value(each, scope) for each in node.arguments]
        return self._plain_function(name, arguments)

    def _plain_function(self, name: str, arguments: list[Value]) -> Value:
        count = len(arguments)
        match name:
            case "PI" if count == 0:
                return self.constant(math.pi)
            case "RAND" if count == 0:
                sql = functions.build(self._on_sqlite, "random")
                return Value(sql, "double")
            case "LOWER" | "UPPER" if count == 1:
                text = arguments[0].text(name)
                sql = text.sql if self._on_sqlite else sa.collate(text.sql, "C")
                return join(getattr(sa.func, name.lower())(sql, type_=sa.Text()), "text", text)
            case "COALESCE" if count >= 1:
                kind = unite(name, *arguments)
                sql = sa.func.coalesce(*(each.sql for each in arguments), type_=TYPES[kind])
                return join(sql, kind, *arguments)
            case "ABS" if count == 1:
                number = arguments[0].number(name)
                return join(sa.func.abs(number.sql, type_=TYPES[number.kind]), number.kind, number)
            case "ROUND" | "TRUNCATE" if count in (1, 2):
                digits = arguments[1] if count == 2 else self.constant(0)
                return self._math(name, [arguments[0], digits])
            case _ if MATH.get(name) == count:
                return self._math(name, arguments)
        if name in MATH or name in OTHER_FUNCTIONS:
            raise usage(f"QUERY: {name}: expected another number of arguments, found {count}")
        raise usage(
            f"QUERY: expected one of the functions of ADQL, found {name[:40]}; the capabilities of "
            "the service list them"
        )

    def _math(self, name: str, arguments: list[Value]) -> Value:
        numbers = [each.number(name) for each in arguments]
        parts = [
            each.sql
            if each.kind == "double" or (name in ("ROUND", "TRUNCATE") and place == 1)
            else sa.cast(each.sql, TYPES["double"])
            for place, each in enumerate(numbers)
        ]
        return join(functions.build(self._on_sqlite, name.lower(), *parts), "double", *numbers)

    def _shape_function(self, node: Call, scope: Scope) -> Value:
        name = node.function
        shapes = [self.evaluate(each, scope) for each in node.arguments]
        if name == "DISTANCE" and len(shapes) == 4:
            lon1, lat1, lon2, lat2 = (self.value(each, scope) for each in node.arguments)
            shapes = [Point(lon1.number(name), lat1.number(name))]
            shapes.append(Point(lon2.number(name), lat2.number(name)))
        if name == "DISTANCE" and len(shapes) == 2:
            one, other = shapes
            if isinstance(one, Point) and isinstance(other, Point):
                sql = self.shapes.distance(one, other)
                return join(sql, "double", *one.parts, *other.parts)
            raise usage("QUERY: DISTANCE: expected two positions, found others")
        shape = shapes[0] if len(shapes) == 1 else None
        if shape is not None and not isinstance(shape, Value):
            if name == "AREA":
                return self.constant(self.shapes.area(shape))
            if name == "COORDSYS":
                return self.constant("ICRS")
            if isinstance(shape, Point):
                return shape.lon if name == "COORD1" else shape.lat
        raise usage(f"QUERY: {name}: expected a shape, as POINT(s_ra, s_dec), found another value")

    def _aggregate(self, node: Call, scope: Scope) -> Value:
        name = node.function
        if not scope.has_aggregates:
            raise usage(
                f"QUERY: {name}: expected it in SELECT, HAVING or ORDER BY, found it elsewhere"
            )
        if node.is_of_all:
            if name != "COUNT":
                raise usage(f"QUERY: {name}: expected a value, found *")
            return Value(sa.func.count(sa.text("*")), "long", is_aggregate=True)
        if len(node.arguments) != 1:
            raise usage(f"QUERY: {name}: expected one argument, found {len(node.arguments)}")
        groups, scope.groups, scope.has_aggregates = scope.groups, None, False
        try:
            value = self.value(node.arguments[0], scope)
        finally:
            scope.groups, scope.has_aggregates = groups, True
        argument = sa.distinct(value.sql) if node.is_distinct else value.sql
        if name == "COUNT":
            return Value(sa.func.count(argument), "long", is_aggregate=True)
        kind = value.kind
        if name in ("SUM", "AVG"):
            value.number(name)
            kind = "double" if name == "AVG" or kind == "double" else "long"
        elif kind == "region":
            raise usage(f"QUERY: {name}: expected a number or text, found a region")
        sql = sa.cast(getattr(sa.func, name.lower())(argument), TYPES[kind])
        return Value(sql, kind, is_aggregate=True)

    def _cast(self, node: syntax.Cast, scope: Scope) -> Value:
        value = self.value(node.value, scope)
        kind = CASTS.get(node.type_name)
        if kind is None or value.kind == "region":
            raise usage(
                f"QUERY: CAST: expected one of {', '.join(CASTS)}, found {node.type_name[:40]}"
            )
        if kind == "text":
            if value.kind == "text":
                return value
            return join(functions.build(self._on_sqlite, "text", value.sql), "text", value)
        sql = value.sql
        if value.kind == "text":
            sql = functions.build(self._on_sqlite, "double", sql)
        if kind == "long" and (value.kind == "text" or value.kind == "double"):
            sql = sql if self._on_sqlite else sa.func.trunc(sql)
        return join(sa.cast(sql, TYPES[kind]), kind, value)

    def _predicate(self, node: Call, scope: Scope) -> tuple[Any, Any, list[Value]]:
        shapes = [self.evaluate(each, scope) for each in node.arguments]
        if len(shapes) != 2:
            raise usage(f"QUERY: {node.function}: expected two shapes, found {len(shapes)}")
        one, other = shapes
        if isinstance(one, Value) or isinstance(other, Value):
            raise usage(f"QUERY: {node.function}: expected two shapes, found another value")
        pair: Pair = self.shapes.predicate(node.function, one, other)
        return *pair, [*one.parts, *other.parts]


SHAPE_FUNCTIONS = ("DISTANCE", "AREA", "COORD1", "COORD2", "COORDSYS")
OTHER_FUNCTIONS = ("PI", "RAND", "LOWER", "UPPER", "COALESCE", "ABS", "ROUND", "TRUNCATE")


def _fold(operator: str, left: float, right: float) -> float | None:
    match operator:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case _:
            result = left / right if right else math.nan
    return result if math.isfinite(result) else None


def own_columns(inner: Scope, scope: Scope) -> frozenset[tuple[int, str]]:
    """Return the columns of a SELECT that a subquery uses; pass on those of SELECTs around it."""
    numbers = {source.number for source in scope.sources}
    columns = frozenset(each for each in inner.outer_columns if each[0] in numbers)
    scope.outer_columns |= inner.outer_columns - columns
    return columns
