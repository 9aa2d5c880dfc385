"""Functions of ADQL on numbers and texts, equal on SQLite and PostgreSQL.

Outside of its domain a function is null. SQLite calls functions of Python: its own differ between
builds. PostgreSQL has conditions around its functions, whose errors would end the query.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import wraps
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.sql.elements import Grouping

HIGHEST_EXPONENT = 709.0
"""Largest number whose exponential is a float."""
MOST_DIGITS = 30
TEXT_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_TEXT_NUMBER = re.compile(TEXT_NUMBER)
DIGITS = Context(prec=400)


def _sqrt(x: float) -> float | None:
    return math.sqrt(x) if x >= 0 else None


def _log(x: float) -> float | None:
    return math.log(x) if x > 0 else None


def _log10(x: float) -> float | None:
    return math.log10(x) if x > 0 else None


def _exp(x: float) -> float | None:
    if x > HIGHEST_EXPONENT:
        return None
    return math.exp(x) if x >= -HIGHEST_EXPONENT + 1 else 0.0


def _power(x: float, y: float) -> float | None:
    if (x < 0 and y != math.floor(y)) or (x == 0 and y < 0):
        return None
    return math.pow(x, y)


def _cot(x: float) -> float | None:
    tangent = math.tan(x)
    return 1 / tangent if tangent else None


def _asin(x: float) -> float | None:
    return math.asin(x) if -1 <= x <= 1 else None


def _acos(x: float) -> float | None:
    return math.acos(x) if -1 <= x <= 1 else None


def _mod(x: float, y: float) -> float | None:
    return x - y * math.trunc(x / y) if y else None


def _decimal(x: float, digits: int, rounding: str) -> float | None:
    if not -MOST_DIGITS <= digits <= MOST_DIGITS:
        return None
    # PostgreSQL, too, sees the first 15 digits of a float.
    number = Decimal(f"{x:.15g}")
    try:
        return float(number.quantize(Decimal(1).scaleb(-int(digits)), rounding, DIGITS))
    except InvalidOperation:
        return x


def _round(x: float, digits: int) -> float | None:
    return _decimal(x, digits, ROUND_HALF_UP)


def _truncate(x: float, digits: int) -> float | None:
    return _decimal(x, digits, ROUND_DOWN)


def _double(text: str) -> float | None:
    if not _TEXT_NUMBER.match(text.strip(" ")):
        return None
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


def _as_text(x: float | int) -> str:
    """Return a number as PostgreSQL writes it."""
    if isinstance(x, int):
        return str(x)
    text = repr(x)
    mantissa, _, exponent = text.partition("e")
    if exponent:
        return text
    if abs(x) >= 1e15:
        text = f"{Decimal(mantissa):e}"
        mantissa, _, exponent = text.partition("e")
        digits = mantissa.rstrip("0").rstrip(".")
        return f"{digits}e+{int(exponent):02}"
    return mantissa.removesuffix(".0")


def _distance(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Return the angle between two positions, degrees: the formula of Vincenty."""
    turn = math.radians(lon2 - lon1)
    a, b = math.radians(lat1), math.radians(lat2)
    east = math.cos(b) * math.sin(turn)
    north = math.cos(a) * math.sin(b) - math.sin(a) * math.cos(b) * math.cos(turn)
    along = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(turn)
    return math.degrees(math.atan2(math.sqrt(east * east + north * north), along))


def distance(on_sqlite: bool, lon1: Any, lat1: Any, lon2: Any, lat2: Any) -> Any:
    """Return the angle between two positions in SQL, degrees."""
    if on_sqlite:
        return sa.func.swathe_distance(lon1, lat1, lon2, lat2, type_=sa.Double())
    f = sa.func
    turn, a, b = f.radians(lon2 - lon1), f.radians(lat1), f.radians(lat2)
    east = f.cos(b) * f.sin(turn)
    north = f.cos(a) * f.sin(b) - f.sin(a) * f.cos(b) * f.cos(turn)
    along = f.sin(a) * f.sin(b) + f.cos(a) * f.cos(b) * f.cos(turn)
    away = f.sqrt(east * east + north * north)
    return f.degrees(f.atan2(away, along), type_=sa.Double())


def _null_safe(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*values: Any) -> Any:
        return None if None in values else function(*values)

    return call


SQLITE: dict[str, tuple[int, Callable[..., Any]]] = {
    "sqrt": (1, _sqrt),
    "log": (1, _log),
    "log10": (1, _log10),
    "exp": (1, _exp),
    "power": (2, _power),
    "sin": (1, math.sin),
    "cos": (1, math.cos),
    "tan": (1, math.tan),
    "cot": (1, _cot),
    "asin": (1, _asin),
    "acos": (1, _acos),
    "atan": (1, math.atan),
    "atan2": (2, math.atan2),
    "degrees": (1, math.degrees),
    "radians": (1, math.radians),
    "ceiling": (1, lambda x: float(math.ceil(x))),
    "floor": (1, lambda x: float(math.floor(x))),
    "mod": (2, _mod),
    "round": (2, _round),
    "truncate": (2, _truncate),
    "double": (1, _double),
    "text": (1, _as_text),
    "distance": (4, _distance),
    "quote": (1, quote),
}
"""Functions for SQLite, by their names without `swathe_`, with the number of arguments."""


class _Single:
    """An aggregate of SQLite: the value of the one row of a subquery."""

    def __init__(self) -> None:
        self._value: Any = None
        self._count = 0

    def step(self, value: Any, _row: Any) -> None:
        """Take the value of a row.

        By the second argument SQLite knows whose rows they are, if the value is of an outer query.

        Raises:
            ValueError: If there was one before.
        """
        self._count += 1
        if self._count > 1:
            raise ValueError("a subquery as a value has several rows")
        self._value = value

    def finalize(self) -> Any:
        """Return the value; null if there is no row."""
        return self._value


def register(connection: Any) -> None:
    """Register the functions in a connection of SQLite."""
    for name, (count, function) in SQLITE.items():
        safe = _null_safe(function)
        connection.create_function(f"swathe_{name}", count, safe, deterministic=True)
    connection.create_function("swathe_random", 0, random.random)
    connection.create_aggregate("swathe_single", 2, _Single)


def _where(condition: Any, value: Any) -> Any:
    return sa.case((condition, value), else_=sa.null())


def _number(text: str) -> Any:
    """Return a number of ours as SQL.

    As a parameter it would be another one at each place, and PostgreSQL would not see that what is
    selected is what a query groups by.
    """
    return sa.literal_column(text, sa.Double())


ZERO, ONE = _number("0.0"), _number("1.0")
NUMBER_PATTERN: Any = sa.literal_column(f"'{TEXT_NUMBER}'", sa.Text())


def _in_domain(x: Any, y: Any) -> Any:
    return sa.not_(((x < ZERO) & (y != sa.func.floor(y))) | ((x == ZERO) & (y < ZERO)))


def _with_digits(function: str) -> Callable[[Any, Any], Any]:
    def build(x: Any, digits: Any) -> Any:
        number = sa.cast(x, sa.Numeric())
        value = getattr(sa.func, function)(number, sa.cast(digits, sa.Integer()))
        is_near = digits.between(_number(f"{-MOST_DIGITS}"), _number(f"{MOST_DIGITS}"))
        return _where(is_near, sa.cast(value, sa.Double()))

    return build


POSTGRES: dict[str, Callable[..., Any]] = {
    "sqrt": lambda x: _where(x >= ZERO, sa.func.sqrt(x)),
    "log": lambda x: _where(x > ZERO, sa.func.ln(x)),
    "log10": lambda x: _where(x > ZERO, sa.func.log(x)),
    "exp": lambda x: sa.case(
        (x > _number(f"{HIGHEST_EXPONENT}"), sa.null()),
        (x < _number(f"{1 - HIGHEST_EXPONENT}"), sa.cast(ZERO, sa.Double())),
        else_=sa.func.exp(x),
    ),
    "power": lambda x, y: _where(_in_domain(x, y), sa.func.power(x, y)),
    "cot": lambda x: ONE.op("/")(sa.func.nullif(sa.func.tan(x), ZERO)),
    "asin": lambda x: _where(x.between(-ONE, ONE), sa.func.asin(x)),
    "acos": lambda x: _where(x.between(-ONE, ONE), sa.func.acos(x)),
    "mod": lambda x, y: x - y * sa.func.trunc(x / sa.func.nullif(y, ZERO)),
    "round": _with_digits("round"),
    "truncate": _with_digits("trunc"),
    "random": lambda: sa.func.random(),
    "double": lambda x: _where(
        sa.func.btrim(x).op("~")(NUMBER_PATTERN), sa.cast(sa.func.btrim(x), sa.Double())
    ),
    "text": lambda x: sa.cast(x, sa.Text()),
}
"""Functions of PostgreSQL that differ from those of the same name there."""


def build(on_sqlite: bool, name: str, *arguments: Any) -> Any:
    """Return a function in SQL, by its name in lower case: of numbers, or of one text."""
    values = list(arguments)
    if name not in ("double", "text"):
        values = [sa.type_coerce(each, sa.Double()) for each in arguments]
    if on_sqlite:
        sql = getattr(sa.func, f"swathe_{name}")(*values)
    elif name in POSTGRES:
        sql = POSTGRES[name](*values)
    else:
        sql = getattr(sa.func, name)(*values)
    # In parentheses: SQLAlchemy does not know how strongly the operators of a query bind.
    return sa.type_coerce(Grouping(sql), sa.Text() if name == "text" else sa.Double())
