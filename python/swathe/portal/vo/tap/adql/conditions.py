"""Conditions of ADQL as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from swathe.portal.vo.errors import usage
from swathe.portal.vo.tap.adql import syntax
from swathe.portal.vo.tap.adql.expressions import Expressions, own_columns
from swathe.portal.vo.tap.adql.scope import Scope
from swathe.portal.vo.tap.adql.shapes import PREDICATES
from swathe.portal.vo.tap.adql.values import Value, join, unite

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.portal.vo.tap.adql.syntax import Node

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


class Conditions(Expressions):
    """Values and conditions of one query."""

    def condition(self, node: Node, scope: Scope) -> Value:
        """Return a condition. Its `kind` has no meaning.

        Raises:
            VoError: If it is a value, or names do not exist.
        """
        match node:
            case syntax.Combination(word=word, conditions=conditions):
                parts = [self.condition(each, scope) for each in conditions]
                combine = sa.and_ if word == "AND" else sa.or_
                return join(combine(*(each.sql for each in parts)), "int", *parts)
            case syntax.Not(condition=inner):
                part = self.condition(inner, scope)
                return join(sa.not_(part.sql), "int", part)
            case syntax.Comparison():
                return self._comparison(node, scope)
            case syntax.Between(value=value, low=low, high=high):
                parts = [self.value(each, scope) for each in (value, low, high)]
                _comparable("BETWEEN", *parts)
                sql = parts[0].sql.between(parts[1].sql, parts[2].sql)
                return _perhaps_not(node.is_not, sql, *parts)
            case syntax.InList(value=value, others=others):
                parts = [self.value(each, scope) for each in (value, *others)]
                _comparable("IN", *parts)
                return _perhaps_not(
                    node.is_not, parts[0].sql.in_([each.sql for each in parts[1:]]), *parts
                )
            case syntax.InQuery(value=value, query=query):
                part, own = self.value(value, scope), Scope(scope)
                select, outputs = self._subquery(query, own)
                if len(outputs) != 1:
                    raise usage(f"QUERY: IN: expected a query of one column, found {len(outputs)}")
                _comparable("IN", part, outputs[0])
                outer = Value(None, "int", columns=own_columns(own, scope))
                return _perhaps_not(node.is_not, part.sql.in_(select), part, outer)
            case syntax.Like():
                return self._like(node, scope)
            case syntax.IsNull(value=value):
                part = self.value(value, scope)
                sql = part.sql.is_not(None) if node.is_not else part.sql.is_(None)
                return join(sql, "int", part)
            case syntax.Exists(query=query):
                own = Scope(scope)
                select, _ = self._subquery(query, own)
                return Value(select.exists(), "int", columns=own_columns(own, scope))
        raise usage("QUERY: expected a condition, as a = 1, found a value")

    def _comparison(self, node: syntax.Comparison, scope: Scope) -> Value:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if (
                isinstance(one, syntax.Call)
                and one.function in PREDICATES
                and isinstance(other, syntax.Number)
                and node.operator in ("=", "<>")
                and other.value in (0, 1)
            ):
                when_true, when_false, parts = self._predicate(one, scope)
                is_true = (other.value == 1) == (node.operator == "=")
                return join(when_true if is_true else when_false, "int", *parts)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        _comparable(node.operator, left, right)
        sql = COMPARISONS[node.operator](left.sql, right.sql)
        if node.operator == "=":
            for column, constant in ((left, node.right), (right, node.left)):
                sql = self._with_number(sql, column, constant)
        return join(sql, "int", left, right)

    def _with_number(self, condition: Any, column: Value, constant: Node) -> Any:
        """Return the condition on an identifier of images, so that an index finds the image."""
        source = column.source
        if (
            source is None
            or not source.is_images
            or column.column is None
            or column.column.name != "obs_publisher_did"
            or not isinstance(constant, syntax.Text)
        ):
            return condition
        return sa.and_(self.shapes.is_image(source, constant.value), condition)

    def _like(self, node: syntax.Like, scope: Scope) -> Value:
        word = "ILIKE" if node.is_any_case else "LIKE"
        value = self.value(node.value, scope).text(word)
        pattern = self.value(node.pattern, scope).text(word)
        one, other = value.sql, pattern.sql
        if node.is_any_case:
            lower = self._plain_function("LOWER", [value]), self._plain_function("LOWER", [pattern])
            one, other = (each.sql for each in lower)
        sql = one.like(other) if self._on_sqlite else one.like(other, escape="")
        return _perhaps_not(node.is_not, sql, value, pattern)


def _comparable(what: str, *parts: Value) -> None:
    if unite(what, *parts) == "region":
        raise usage(f"QUERY: {what}: expected numbers or texts, found a region; use INTERSECTS")


def _perhaps_not(is_not: bool, sql: Any, *parts: Value) -> Value:
    return join(sa.not_(sql) if is_not else sql, "int", *parts)
