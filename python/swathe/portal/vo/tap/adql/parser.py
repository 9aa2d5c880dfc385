"""Parse a query in ADQL into its syntax tree.

The parser is that of Lark with the grammar of `adql.lark`: a table of states, without recursion.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.portal.vo.errors import VoError, usage
from swathe.portal.vo.tap.adql import syntax
from swathe.portal.vo.tap.adql.syntax import Identifier, Node, Query

if TYPE_CHECKING:
    from lark import Lark, Token

LONGEST_QUERY = 100_000
"""Maximum number of characters of a query."""
LARGEST_INTEGER = 2**63 - 1
LONGEST_NUMBER = 100
LONGEST_NAME = 200


def parse_query(text: str) -> Query:
    """Parse a query.

    Raises:
        VoError: If it is not ADQL, too long or too deep; says where.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, VisitError

    if len(text) > LONGEST_QUERY:
        raise usage(f"QUERY: expected at most {LONGEST_QUERY} characters, found {len(text)}")
    try:
        tree: Any = _parser().parse(text)
    except UnexpectedCharacters as error:
        raise usage(
            f"QUERY: {_place(error)}: expected ADQL, found {text[error.pos_in_stream or 0]!r}"
        ) from None
    except UnexpectedInput as error:
        raise usage(f"QUERY: {_place(error)}: {_expectation(error)}") from None
    except VisitError as error:
        if isinstance(error.orig_exc, VoError):
            raise error.orig_exc from None
        raise
    assert isinstance(tree, Query)
    return tree


@cache
def _parser() -> Lark:
    from lark import Lark, Transformer

    class Builder(_Builder, Transformer):  # type: ignore[type-arg]
        """The builder as Lark wants it."""

    grammar = Path(__file__).with_name("adql.lark").read_text()
    return Lark(
        grammar, parser="lalr", lexer="basic", maybe_placeholders=True, transformer=Builder()
    )


def _place(error: Any) -> str:
    line, column = error.line, error.column
    return f"line {line}, column {column}" if isinstance(line, int) and line > 0 else "at its end"


def _expectation(error: Any) -> str:
    token = getattr(error, "token", None)
    names = sorted(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    if "IDENTIFIER" in names and token is not None and token.type == token.upper():
        return (
            f"expected a name, found the reserved word {str(token)!r}; write it in double quotes "
            "to use it as a name"
        )
    words = ", ".join(WORDS.get(name, name) for name in names[:12])
    last = "its end" if token is None or token.type == "$END" else repr(str(token)[:40])
    return f"expected {'one of ' if len(names) > 1 else ''}{words}, found {last}"


WORDS = {
    "IDENTIFIER": "a name",
    "DELIMITED": "a name in double quotes",
    "NUMBER": "a number",
    "TEXT": "a text in quotes",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "DOT": ".",
    "STAR": "*",
    "SLASH": "/",
    "PLUS": "+",
    "MINUS": "-",
    "CONCAT": "||",
    "COMPARISON": "a comparison",
    "SEMICOLON": ";",
    "$END": "its end",
}


def _number(token: str) -> int | float:
    text = str(token)
    if len(text) > LONGEST_NUMBER:
        raise usage(
            f"QUERY: expected numbers of at most {LONGEST_NUMBER} characters, found {text[:20]}..."
        )
    if text.isdecimal() and int(text) <= LARGEST_INTEGER:
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise usage(f"QUERY: expected a finite number, found {text}")
    return value


def _count(what: str, token: str) -> int:
    value = _number(token)
    if not isinstance(value, int):
        raise usage(f"QUERY: {what}: expected a number of rows, found {str(token)[:40]}")
    return value


def _chain(word: Any, left: Node, right: Node) -> Node:
    """Return conditions that are joined, in one list if the first are joined by the same word."""
    if isinstance(left, syntax.Combination) and left.word == word:
        left.conditions.append(right)
        object.__setattr__(left, "depth", max(left.depth, right.depth + 1))  # type: ignore[attr-defined]
        return left
    return syntax.Combination(word, [left, right])


class _Builder:
    """A node for each rule of the grammar. Lark calls the method of the rule's name."""

    def start(self, children: list[Any]) -> Query:
        query: Query = children[0]
        return query

    def query(self, children: list[Any]) -> Query:
        common, body, order, offset = children
        return Query(common or (), body, order or (), offset)

    def with_clause(self, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def common(self, children: list[Any]) -> syntax.Common:
        return syntax.Common(*children)

    def union(self, children: list[Any]) -> syntax.SetOperation:
        left, word, is_all, right = children
        return syntax.SetOperation(word.upper(), is_all is not None, left, right)

    intersect = union

    def subquery(self, children: list[Any]) -> Query:
        query: Query = children[0]
        return query

    def select(self, children: list[Any]) -> syntax.Select:
        quantifier, top, items, tables, where, groups, having = children
        is_distinct = quantifier is not None and quantifier.upper() == "DISTINCT"
        return syntax.Select(is_distinct, top, items, tables, where, groups or (), having)

    def top(self, children: list[Any]) -> int:
        return _count("TOP", children[0])

    def offset(self, children: list[Any]) -> int:
        return _count("OFFSET", children[0])

    def items(self, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    tables = arguments = group_by = order_by = items

    def every_column(self, _children: list[Any]) -> syntax.Star:
        return syntax.Star(())

    def columns_of_table(self, children: list[Any]) -> syntax.Star:
        return syntax.Star(tuple(each for each in children if isinstance(each, Identifier)))

    def item(self, children: list[Any]) -> syntax.Item:
        return syntax.Item(*children)

    def where(self, children: list[Any]) -> Any:
        return children[0]

    having = on = where

    def order(self, children: list[Any]) -> syntax.Order:
        value, word = children
        return syntax.Order(value, word is not None and word.upper() == "DESC")

    def plain_table(self, children: list[Any]) -> syntax.PlainTable:
        return syntax.PlainTable(*children)

    def derived_table(self, children: list[Any]) -> syntax.DerivedTable:
        return syntax.DerivedTable(*children)

    def join(self, children: list[Any]) -> syntax.Join:
        left, natural, kind, right, criterion = children
        condition = criterion if isinstance(criterion, Node) else None
        columns = criterion if isinstance(criterion, tuple) else ()
        if (natural is None) == (criterion is None):
            raise usage("QUERY: JOIN: expected one of NATURAL, ON and USING, found none or several")
        return syntax.Join(kind or "INNER", left, right, natural is not None, condition, columns)

    def cross_join(self, children: list[Any]) -> syntax.Join:
        return syntax.Join("CROSS", children[0], children[-1])

    def join_kind(self, children: list[Any]) -> Any:
        return children[0].upper()

    def using(self, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def or_(self, children: list[Any]) -> Node:
        return _chain("OR", *children)

    def and_(self, children: list[Any]) -> Node:
        return _chain("AND", *children)

    def not_(self, children: list[Any]) -> Node:
        return syntax.Not(children[0])

    def comparison(self, children: list[Any]) -> Node:
        left, operator, right = children
        return syntax.Comparison(str(operator).replace("!=", "<>"), left, right)

    def between(self, children: list[Any]) -> Node:
        value, negation, low, high = children
        return syntax.Between(negation is not None, value, low, high)

    def in_list(self, children: list[Any]) -> Node:
        value, negation, *others = children
        return syntax.InList(negation is not None, value, tuple(others))

    def in_query(self, children: list[Any]) -> Node:
        value, negation, query = children
        return syntax.InQuery(negation is not None, value, query)

    def like(self, children: list[Any]) -> Node:
        value, negation, word, pattern = children
        return syntax.Like(negation is not None, word.upper() == "ILIKE", value, pattern)

    def is_null(self, children: list[Any]) -> Node:
        value, negation = children
        return syntax.IsNull(negation is not None, value)

    def exists(self, children: list[Any]) -> Node:
        return syntax.Exists(children[0])

    def operation(self, children: list[Any]) -> Node:
        left, operator, right = children
        return syntax.Operation(str(operator), left, right)

    def sign(self, children: list[Any]) -> Any:
        word, value = children
        if word == "+":
            return value
        if isinstance(value, syntax.Number):
            return syntax.Number(-value.value)
        return syntax.Negative(value)

    def number(self, children: list[Any]) -> Node:
        return syntax.Number(_number(children[0]))

    def text(self, children: list[Any]) -> Node:
        return syntax.Text(str(children[0])[1:-1].replace("''", "'"))

    def column(self, children: list[Any]) -> Node:
        return syntax.Column(children[0])

    def scalar(self, children: list[Any]) -> Node:
        return syntax.Scalar(children[0])

    def call(self, children: list[Any]) -> Node:
        function, quantifier, arguments = children
        is_distinct = quantifier is not None and quantifier.upper() == "DISTINCT"
        return syntax.Call(str(function).upper(), arguments or (), is_distinct)

    def count_all(self, children: list[Any]) -> Node:
        return syntax.Call(str(children[0]).upper(), (), is_of_all=True)

    def cast(self, children: list[Any]) -> Node:
        return syntax.Cast(*children)

    def type_name(self, children: list[Any]) -> str:
        return " ".join(each.text.upper() for each in children if isinstance(each, Identifier))

    def name(self, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def identifier(self, children: list[Token]) -> Identifier:
        text = str(children[0])
        if len(text) > LONGEST_NAME:
            raise usage(
                f"QUERY: expected names of at most {LONGEST_NAME} characters, found {text[:20]}..."
            )
        if text.startswith('"'):
            return Identifier(text[1:-1].replace('""', '"'), is_exact=True)
        return Identifier(text)
