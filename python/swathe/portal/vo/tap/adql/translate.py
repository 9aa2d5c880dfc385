"""Translate a query in ADQL to SQL: SELECT over fixed tables, with limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from swathe.portal.vo.errors import usage
from swathe.portal.vo.tap.adql import syntax
from swathe.portal.vo.tap.adql.conditions import Conditions
from swathe.portal.vo.tap.adql.parser import parse_query
from swathe.portal.vo.tap.adql.scope import Scope, text_of
from swathe.portal.vo.tap.adql.shapes import Shapes
from swathe.portal.vo.tap.adql.values import Circle, Point, Polygon, Shape, Source, Value, unite
from swathe.portal.vo.tap.sources import TYPES
from swathe.portal.vo.tap.tables import ALL_TABLES, OBSCORE, ROWS, TapColumn, TapTable

if TYPE_CHECKING:
    from swathe.portal.vo.tap.adql.syntax import Identifier, Node, Query
    from swathe.portal.vo.tap.footprints import Footprints
    from swathe.portal.vo.tap.sources import Sources

MOST_TABLES = 12
"""Maximum number of tables of a query, those of subqueries among them."""
MOST_READS = 256
"""Maximum number of times that a query reads tables, those of WITH for each use."""
SETS: dict[str, Any] = {
    "UNION": sa.union,
    "UNION ALL": sa.union_all,
    "EXCEPT": sa.except_,
    "INTERSECT": sa.intersect,
}
MOST_COLUMNS = 500
"""Maximum number of columns of an answer."""


@dataclass(frozen=True)
class Output:
    """A column of the answer.

    Attributes:
        column: Name and type.
        width: Number of columns of SQL that it is made of: more than one for shapes.
    """

    column: TapColumn
    width: int = 1


@dataclass(frozen=True)
class Translation:
    """A query as SQL."""

    statement: Any
    outputs: list[Output]


@dataclass(frozen=True)
class _CommonTable:
    """A table of WITH, and how often tables are read for it."""

    cte: Any
    columns: tuple[TapColumn, ...]
    reads: int


@dataclass
class _From:
    """Tables of a FROM that are joined, with the columns of `SELECT *`."""

    clause: Any
    sources: list[Source]
    columns: list[Value]
    merges: dict[str, Value]


class Translator:
    """Translates one query."""

    def __init__(self, sources: Sources, footprints: Footprints) -> None:
        """Set the tables, and the images by their places."""
        self._sources = sources
        self._expressions = Conditions(
            sources,
            lambda constant: Shapes(sources, footprints, constant),
            lambda query, scope: self._query(query, scope)[:2],
        )
        self._tables = 0
        self._reads = 0
        self._job_id: str | None = None
        self._common: dict[str, _CommonTable] = {}

    def translate(self, text: str, most: int) -> Translation:
        """Return a query as SQL, of at most `most` rows.

        Raises:
            VoError: If the query is not valid.
        """
        query = parse_query(text)
        statement, _, outputs = self._query(query, Scope(), is_outermost=True, most=most)
        if self._reads > MOST_READS:
            raise usage(
                f"QUERY: expected tables to be read at most {MOST_READS} times, each of WITH at "
                "each use, found more"
            )
        return Translation(statement, outputs)

    # ---- Queries

    def _query(
        self, query: Query, scope: Scope, *, is_outermost: bool = False, most: int | None = None
    ) -> tuple[Any, list[Value], list[Output]]:
        """Return a SELECT with the columns `c0`, `c1`, ..., their values, and the outputs."""
        outer = dict(self._common)
        for common in query.common:
            reads, self._reads = self._reads, 0
            select, values, outputs = self._query(common.query, Scope())
            columns = _columns_of(values, outputs)
            cte = select.cte(f"q{len(self._common)}_{self._tables}")
            self._common[common.name.text.lower()] = _CommonTable(cte, columns, self._reads)
            self._reads = reads
        try:
            if isinstance(query.body, syntax.Select):
                return self._select(query.body, query, scope, is_outermost, most)
            select, values, outputs = self._set_operation(query.body, scope)
            order = [self._output_order(each, values, outputs) for each in query.order]
            return _with_limits(select, order, None, query.offset, most), values, outputs
        finally:
            self._common = outer

    def _set_operation(self, body: Node, scope: Scope) -> tuple[Any, list[Value], list[Output]]:
        if not isinstance(body, syntax.SetOperation):
            query = body if isinstance(body, syntax.Query) else syntax.Query((), body, (), None)
            inner = Scope(scope.parent)
            result = self._query(query, inner)
            scope.outer_columns |= inner.outer_columns
            return result
        sides = [self._set_operation(each, scope) for each in (body.left, body.right)]
        (_, values, outputs), (_, others, _) = sides
        if len(values) != len(others):
            raise usage(
                f"QUERY: {body.word}: expected as many columns in both queries, found "
                f"{len(values)} and {len(others)}"
            )
        if body.is_all and body.word != "UNION":
            raise usage(f"QUERY: {body.word} ALL: expected {body.word} without ALL, found it")
        kinds = [unite(body.word, *pair) for pair in zip(values, others, strict=True)]
        selects = []
        for select, _, _ in sides:
            table = select.subquery(self._name())
            cells = [
                sa.cast(table.c[f"c{at}"], TYPES[kind]).label(f"c{at}")
                for at, kind in enumerate(kinds)
            ]
            selects.append(sa.select(*cells))
        combine = SETS["UNION ALL" if body.is_all else body.word]
        rows = combine(*selects).subquery(self._name())
        cells = [rows.c[f"c{at}"].label(f"c{at}") for at in range(len(kinds))]
        columns = [
            replace(output, column=replace(output.column, kind=kind))
            for output, kind in zip(outputs, kinds, strict=True)
        ]
        results = [Value(rows.c[f"c{at}"], kind) for at, kind in enumerate(kinds)]
        return sa.select(*cells), results, columns

    def _select(
        self,
        select: syntax.Select,
        query: Query,
        scope: Scope,
        is_outermost: bool,
        most: int | None,
    ) -> tuple[Any, list[Value], list[Output]]:
        expressions = self._expressions
        self._job_id = _job_of(select)
        tables = [self._from(each, scope) for each in select.tables]
        scope.order = [column for table in tables for column in table.columns]
        for table in tables:
            scope.merges |= table.merges
        _check_names(scope.sources)
        where = None if select.where is None else expressions.condition(select.where, scope)
        groups = [expressions.value(each, scope) for each in select.groups]
        scope.groups = {expressions.text_of(each) for each in groups}
        scope.has_aggregates = True
        values, outputs = self._outputs(select, scope, is_outermost)
        having = None if select.having is None else expressions.condition(select.having, scope)
        order = [
            self._order(each, scope, values, outputs, is_distinct=select.is_distinct)
            for each in query.order
        ]
        parts = [*values, *([] if having is None else [having]), *(each for each, _ in order)]
        if groups or having is not None or any(each.is_aggregate for each in parts):
            _check_groups(parts, scope)
        labels = [each.sql.label(f"c{at}") for at, each in enumerate(values)]
        result = sa.select(*labels).select_from(*_product(tables))
        if outer := list(scope.outer_clauses()):
            result = result.correlate(*outer)
        if where is not None:
            result = result.where(where.sql)
        if groups:
            result = result.group_by(*(each.sql for each in groups))
        if having is not None:
            result = result.having(having.sql)
        if select.is_distinct:
            result = result.distinct()
        sql_order = [sql for _, sql in order]
        return _with_limits(result, sql_order, select.top, query.offset, most), values, outputs

    # ---- Columns of the answer

    def _outputs(
        self, select: syntax.Select, scope: Scope, is_outermost: bool
    ) -> tuple[list[Value], list[Output]]:
        values: list[Value] = []
        outputs: list[Output] = []
        for item in select.items:
            if isinstance(item, syntax.Star):
                for value in scope.columns_of(item.table):
                    assert value.column is not None
                    values.append(value)
                    outputs.append(Output(value.column))
            else:
                assert isinstance(item, syntax.Item)
                result = self._expressions.evaluate(item.value, scope)
                name = _name_of(item, len(outputs))
                if isinstance(result, Point | Circle | Polygon):
                    if not is_outermost or select.is_distinct:
                        raise usage(
                            "QUERY: a subquery, or DISTINCT: expected numbers and texts, found a "
                            "shape; select its coordinates"
                        )
                    values += result.parts
                    outputs.append(Output(_shape_column(name, result), len(result.parts)))
                    continue
                value = result if isinstance(result, Value) else result.parts[0]
                values.append(value)
                outputs.append(Output(_column_of(value, name)))
            if len(values) > MOST_COLUMNS:
                raise usage(f"QUERY: expected at most {MOST_COLUMNS} columns, found more")
        return values, outputs

    def _order(
        self,
        order: syntax.Order,
        scope: Scope,
        values: list[Value],
        outputs: list[Output],
        *,
        is_distinct: bool,
    ) -> tuple[Value, Any]:
        value = _output_of(order, values, outputs)
        if value is None:
            if is_distinct:
                raise usage("QUERY: ORDER BY with DISTINCT: expected a column of SELECT")
            value = self._expressions.value(order.value, scope)
        return value, _sorting(value, order)

    def _output_order(self, order: syntax.Order, values: list[Value], outputs: list[Output]) -> Any:
        value = _output_of(order, values, outputs)
        if value is None:
            raise usage("QUERY: ORDER BY: expected a column of the answer, or its number")
        return _sorting(value, order)

    # ---- Tables

    def _name(self) -> str:
        self._tables += 1
        return f"t{self._tables}"

    def _from(self, node: Node, scope: Scope) -> _From:
        match node:
            case syntax.PlainTable(name=name, alias=alias):
                source = self._plain_table(name, alias)
            case syntax.DerivedTable(query=query, alias=alias):
                select, values, outputs = self._query(query, Scope())
                columns = _columns_of(values, outputs)
                source = _source(alias.text, select.subquery(self._name()), columns)
            case syntax.Join():
                return self._join(node, scope)
            case _:
                raise usage("QUERY: FROM: expected tables, found something else")
        if self._tables > 10 * MOST_TABLES or len(scope.sources) >= MOST_TABLES:
            raise usage(f"QUERY: expected at most {MOST_TABLES} tables, found more")
        scope.sources.append(source)
        values = [source.value(place) for place in range(len(source.columns))]
        return _From(source.clause, [source], values, {})

    def _plain_table(self, name: tuple[Identifier, ...], alias: Identifier | None) -> Source:
        if len(name) == 1 and (common := self._common.get(name[0].text.lower())):
            # The database reads its tables again at each use.
            self._reads += common.reads
            clause = common.cte.alias(self._name())
            return _source((alias or name[0]).text, clause, common.columns)
        self._reads += 1
        table = self._table(name)
        names = tuple(table.full_name.split(".")) if alias is None else (alias.text,)
        is_upload = self._sources.is_upload(table)
        labels = {place: f"c{place}" for place in range(len(table.columns))} if is_upload else {}
        job_id = self._job_id if table is ROWS else None
        return Source(
            names,
            self._sources.clause(table, self._name(), job_id),
            table.columns,
            labels,
            is_images=table is OBSCORE,
            is_upload=is_upload,
            table_name=table.full_name,
        )

    def _table(self, name: tuple[Identifier, ...]) -> TapTable:
        uploads = [each.table for each in self._sources.uploads]
        for table in (*ALL_TABLES, *uploads):
            names = table.full_name.split(".")
            if len(name) == len(names) and all(
                part.matches(own) for part, own in zip(name, names, strict=True)
            ):
                return table
        choices = ", ".join(each.full_name for each in (*ALL_TABLES, *uploads))
        raise usage(f"QUERY: expected one of the tables {choices}, found {text_of(name)}")

    def _join(self, join: syntax.Join, scope: Scope) -> _From:
        left, right = self._from(join.left, scope), self._from(join.right, scope)
        sources = [*left.sources, *right.sources]
        merges = {**left.merges, **right.merges}
        columns = [*left.columns, *right.columns]
        condition: Any = sa.true()
        if join.condition is not None:
            inner = Scope(scope.parent, sources, merges, columns)
            condition = self._expressions.condition(join.condition, inner).sql
            scope.outer_columns |= inner.outer_columns
        elif join.kind != "CROSS":
            condition, own = _merge(join, left, right)
            merges |= own
            rest = [
                each
                for each in columns
                if each.column is not None and each.column.name.lower() not in own
            ]
            columns = [*own.values(), *rest]
        if join.kind == "RIGHT":
            clause = right.clause.outerjoin(left.clause, condition)
        else:
            is_outer, is_full = join.kind in ("LEFT", "FULL"), join.kind == "FULL"
            clause = left.clause.join(right.clause, condition, isouter=is_outer, full=is_full)
        return _From(clause, sources, columns, merges)


def _job_of(select: syntax.Select) -> str | None:
    """Return the one job that a SELECT from one table asks for by `job_id`; else None."""
    if len(select.tables) != 1 or not isinstance(select.tables[0], syntax.PlainTable):
        return None
    where = select.where
    is_and = isinstance(where, syntax.Combination) and where.word == "AND"
    conditions = where.conditions if is_and else [where]  # type: ignore[union-attr]
    for condition in conditions:
        match condition:
            case syntax.Comparison("=", syntax.Column(name=(*_, name)), syntax.Text(value=value)):
                if name.matches("job_id"):
                    return value
    return None


def _merge(join: syntax.Join, left: _From, right: _From) -> tuple[Any, dict[str, Value]]:
    """Return the condition of a join by columns of the same names, and these columns."""
    own = {each.column.name.lower(): each for each in left.columns if each.column is not None}
    others = {each.column.name.lower(): each for each in right.columns if each.column is not None}
    names = [each.text.lower() for each in join.columns] or [each for each in own if each in others]
    conditions, merges = [], {}
    for name in names:
        if name not in own or name not in others:
            raise usage(f"QUERY: USING: expected a column of both tables, found {name[:80]}")
        one, other = own[name], others[name]
        kind = unite("USING", one, other)
        conditions.append(one.sql == other.sql)
        value = other if join.kind == "RIGHT" else one
        if join.kind == "FULL":
            sql = sa.func.coalesce(one.sql, other.sql, type_=TYPES[kind])
            value = replace(one, sql=sql, columns=one.columns | other.columns, source=None)
        merges[name] = value
    return sa.and_(sa.true(), *conditions), merges


def _product(tables: list[_From]) -> list[Any]:
    """Return tables that no condition joins as one, so that SQLAlchemy does not warn of them."""
    clause = tables[0].clause
    for table in tables[1:]:
        clause = clause.join(table.clause, sa.true())
    return [clause]


def _source(name: str, clause: Any, columns: tuple[TapColumn, ...]) -> Source:
    labels = {place: f"c{place}" for place in range(len(columns))}
    return Source((name,), clause, columns, labels)


def _check_names(sources: list[Source]) -> None:
    names = [source.names for source in sources]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise usage(
                f"QUERY: FROM: expected tables of different names, found {'.'.join(name)} twice"
            )


def _check_groups(parts: list[Value], scope: Scope) -> None:
    numbers = {source.number for source in scope.sources}
    for part in parts:
        for number, name in part.columns:
            if number in numbers:
                raise usage(
                    f"QUERY: {name}: expected a column of GROUP BY, or one in an aggregate, found "
                    "another"
                )


def _output_of(order: syntax.Order, values: list[Value], outputs: list[Output]) -> Value | None:
    """Return the column of the answer that an ORDER BY names, by number or name."""
    match order.value:
        case syntax.Number(value=int(number)):
            if not 1 <= number <= len(outputs):
                raise usage(
                    f"QUERY: ORDER BY: expected a column from 1 to {len(outputs)}, found {number}"
                )
            place = sum(each.width for each in outputs[: number - 1])
            return values[place]
        case syntax.Column(name=(name,)):
            at = 0
            for output in outputs:
                if name.matches(output.column.name):
                    return values[at]
                at += output.width
    return None


def _sorting(value: Value, order: syntax.Order) -> Any:
    """Return what to sort by. Values that are missing come last, in both directions."""
    if value.kind == "region":
        raise usage("QUERY: ORDER BY: expected a number or text, found a region")
    return (value.sql.desc() if order.is_descending else value.sql.asc()).nulls_last()


def _with_limits(
    select: Any, order: list[Any], top: int | None, offset: int | None, most: int | None
) -> Any:
    if order:
        select = select.order_by(*order)
    limits = [each for each in (top, most) if each is not None]
    if limits:
        select = select.limit(min(limits))
    return select.offset(offset) if offset else select


def _columns_of(values: list[Value], outputs: list[Output]) -> tuple[TapColumn, ...]:
    return tuple(
        replace(output.column, kind=value.kind)
        for value, output in zip(values, outputs, strict=True)
    )


def _name_of(item: syntax.Item, place: int) -> str:
    if item.name is not None:
        return item.name.text if item.name.is_exact else item.name.text.lower()
    match item.value:
        case syntax.Column(name=name):
            return name[-1].text if name[-1].is_exact else name[-1].text.lower()
        case syntax.Call(function=function):
            return function.lower()
    return f"column_{place + 1}"


def _column_of(value: Value, name: str) -> TapColumn:
    if value.column is not None:
        return replace(value.column, name=name)
    return TapColumn(name, value.kind, "")


def _shape_column(name: str, shape: Shape) -> TapColumn:
    kind = type(shape).__name__.lower()
    return TapColumn(name, "double", "", "deg", "pos", None, kind)
