"""Conditions on granules, written in CQL2 (OGC 21-065), as conditions of SQL.

What is understood: comparisons, `like`, `between`, `in` and `isNull` of a property with literals,
joined by `and`, `or` and `not`. A granule without a value fulfils no comparison of it, as in SQL,
and none has a value of a property that is not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import and_, not_, null, or_, select

from swathe.catalog.datasets.object_ids import path_of
from swathe.catalog.tables import DatasetRow, GranuleRow
from swathe.core.errors import DatasetError
from swathe.core.times import mjd_of, read_moment
from swathe.core.value_errors import short_text

DEEPEST = 20
"""Levels of a condition."""
MOST_PARTS = 200
"""Operators of a condition."""
MOST_VALUES = 1000
"""Literals of a condition."""
LONGEST_TEXT = 1000
"""Characters of a literal."""
LARGEST = 1 << 62
"""Numbers beyond it no property has, and databases cannot compare."""
Kind = Literal["text", "number", "time", "id", "any"]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Property(NamedTuple):
    """A property of objects."""

    kind: Kind
    column: Any
    description: str


_NAME_OF_DATASET = (
    select(DatasetRow.name)
    .where(DatasetRow.id == GranuleRow.dataset_id)
    .correlate(GranuleRow)
    .scalar_subquery()
)
PROPERTIES: Mapping[str, Property] = {
    "id": Property("id", GranuleRow.path, "path of the object, as an identifier"),
    "collection": Property("text", _NAME_OF_DATASET, "name of the dataset"),
    "datetime": Property("time", GranuleRow.t_min, "start of the observation"),
    "start_datetime": Property("time", GranuleRow.t_min, "start of the observation"),
    "end_datetime": Property("time", GranuleRow.t_max, "end of the observation"),
    "platform": Property("text", GranuleRow.facility, "telescope or spacecraft"),
    "swathe:instrument": Property("text", GranuleRow.instrument, "instrument"),
    "swathe:target": Property("text", GranuleRow.target, "target of the observation"),
    "swathe:band": Property("text", GranuleRow.band, "filter"),
    "swathe:array": Property("text", GranuleRow.array, "path of an array in the file"),
    "swathe:bytes": Property("number", GranuleRow.size, "size of the file, bytes"),
}

UNKNOWN = Property("any", null(), "a property that no object has")


def condition_of(cql2: Any) -> Any:
    """Return a condition on `GranuleRow` from the JSON form of CQL2.

    Raises:
        DatasetError: If it is not CQL2, is too long or deep, or uses what is not understood.
    """
    return _Translation().condition(cql2, 1)


class _Translation:
    def __init__(self) -> None:
        self._parts = 0
        self._values = 0

    def condition(self, cql2: Any, depth: int) -> Any:
        self._parts += 1
        if depth > DEEPEST or self._parts > MOST_PARTS:
            raise _wrong(f"at most {DEEPEST} levels and {MOST_PARTS} operators", "more")
        if not isinstance(cql2, Mapping):
            raise _wrong('a condition {"op": ..., "args": [...]}', cql2)
        if unknown := cql2.keys() - {"op", "args"}:
            raise _wrong('a condition {"op": ..., "args": [...]}', min(map(str, unknown)))
        name, args = cql2.get("op"), cql2.get("args")
        if not isinstance(name, str) or not isinstance(args, list) or not args:
            raise _wrong('a condition {"op": ..., "args": [...]}', cql2)
        if name in ("and", "or"):
            if len(args) < 2:
                raise _wrong(f"two conditions or more for {name!r}", len(args))
            parts = [self.condition(each, depth + 1) for each in args]
            return and_(*parts) if name == "and" else or_(*parts)
        if name == "not":
            _check_count(name, args, 1)
            return not_(self.condition(args[0], depth + 1))
        self._values += sum(len(each) for each in args if isinstance(each, list))
        if self._values > MOST_VALUES:
            raise _wrong(f"at most {MOST_VALUES} values for 'in'", "more")
        return _comparison(name, args)


def _comparison(name: str, args: list[Any]) -> Any:
    if name in COMPARISONS:
        _check_count(name, args, 2)
        if not _is_property(args[0]) and _is_property(args[1]):
            name, args = MIRROR[name], args[::-1]
        of = _property(args[0])
        return COMPARISONS[name](of.column, _literal(args[1], of.kind))
    if name == "isNull":
        _check_count(name, args, 1)
        return _property(args[0]).column.is_(None)
    if name == "like":
        _check_count(name, args, 2)
        of = _property(args[0])
        if of.kind in ("number", "time"):
            raise _wrong("a property that is text for 'like'", args[0])
        pattern = _literal(args[1], "text")
        if len(str(pattern)) - len(str(pattern).rstrip("\\")) & 1:
            raise _wrong("a pattern without an escape at its end", pattern)
        return of.column.like(pattern, escape="\\")
    if name == "between":
        if len(args) == 2 and isinstance(args[1], list):  # as in drafts
            args = [args[0], *args[1]]
        _check_count(name, args, 3)
        of = _property(args[0])
        return of.column.between(*(_literal(each, of.kind) for each in args[1:]))
    if name == "in":
        _check_count(name, args, 2)
        of = _property(args[0])
        if not isinstance(args[1], list):
            raise _wrong("a list of values for 'in'", args[1])
        return of.column.in_([_literal(each, of.kind) for each in args[1]])
    raise _wrong("and, or, not, isNull, like, between, in or a comparison", name)


def _is_property(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"property"}


def _property(value: Any) -> Property:
    if not _is_property(value) or not isinstance(value["property"], str):
        raise _wrong("a property to compare with literals", value)
    return PROPERTIES.get(value["property"].removeprefix("properties."), UNKNOWN)


def _literal(value: Any, kind: Kind) -> float | str:
    if isinstance(value, str) and not _is_plain(value):
        raise _wrong(f"text of at most {LONGEST_TEXT} characters of Unicode, without NUL", value)
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise _wrong(f"a number up to {LARGEST:g}", value)
    match kind, value:
        case "text", str():
            return value
        case "id", str():
            return path_of(value)
        case "any", str() | int() | float():
            return value
        case "any", {"timestamp": str()} | {"date": str()}:
            return _literal(value, "time")
        case "number", int() | float() if not isinstance(value, bool):
            return value
        case "time", {"timestamp": str() as moment} if len(value) == 1:
            return mjd_of(read_moment(moment))
        case "time", {"date": str() as day} if len(value) == 1:
            return _mjd_of_day(day)
        case "time", str():
            return mjd_of(read_moment(value))
    names = {
        "text": "text",
        "number": "a number",
        "id": "text",
        "any": "a literal",
        "time": "TIMESTAMP('...') or DATE('...')",
    }
    raise _wrong(names[kind], value)


def _is_plain(text: str) -> bool:
    """Check that a database can compare a text."""
    has_surrogates = any("\ud800" <= letter <= "\udfff" for letter in text[: LONGEST_TEXT + 1])
    return len(text) <= LONGEST_TEXT and not has_surrogates and "\0" not in text


def _mjd_of_day(day: str) -> float:
    try:
        start = date.fromisoformat(day)
    except ValueError:
        raise _wrong("a date as 2005-05-01", day) from None
    return mjd_of(datetime(start.year, start.month, start.day, tzinfo=UTC))


def _check_count(name: str, args: list[Any], count: int) -> None:
    if len(args) != count:
        raise _wrong(f"{count} arguments of {name!r}", len(args))


def _wrong(form: str, value: Any) -> DatasetError:
    return DatasetError(f"filter: expected {form}, found {short_text(value)}")
