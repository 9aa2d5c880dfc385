"""Queries made up at random: each has an answer or an error of the user's, and ends in time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from swathe.catalog import Catalog
from swathe.core.errors import QueryError
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.tap.tables import ALL_TABLES, OBSCORE, TapColumn, TapTable
from tests.support.catalogs import new_catalog
from tests.support.postgres_server import new_database
from tests.support.tap_catalog import fill, images, rows
from tests.support.vo_archive import visited

pytestmark = pytest.mark.more

QUERIES = 1000
LONGEST_S = 1.0
SLACK_S = 15.0
"""One step of a database, as a sort, may end late on a busy machine."""
MATH = {
    "ABS": 1, "SQRT": 1, "LOG": 1, "LOG10": 1, "EXP": 1, "POWER": 2, "MOD": 2, "ROUND": 2,
    "TRUNCATE": 1, "SIN": 1, "COT": 1, "ASIN": 1, "ATAN2": 2, "FLOOR": 1, "RADIANS": 1,
    "COALESCE": 2, "PI": 0,
}  # fmt: skip
SHAPES = (
    *("s_region", "POINT(s_ra, s_dec)", "POINT({lon}, {lat})", "BOX({lon}, {lat}, 5, 5)"),
    *("CIRCLE('ICRS', {lon}, {lat}, {radius})", "CIRCLE(s_ra, s_dec, {small})"),
    "POLYGON({lon}, {lat}, {east}, {lat}, {lon}, {north})",
)
OTHERS = ("COUNT", "SUM", "MAX", "AREA", "COORD1", "CENTROID", "NONE", "POINT", "CIRCLE")
NUMBERS = ("0", "1", "-1", "2.5", "1e308", "1e-320", "9223372036854775807", "90", "180", "1e999")
TEXTS = ("''", "'%'", "'it''s'", "'é'", "'1e5'", "'NaN'", "'_%_'", "'\\'", "'Infinity'")
TEXT_KINDS = ("text", "region")
TYPES = ("INTEGER", "DOUBLE PRECISION", "VARCHAR(10)", "TIMESTAMP", "POINT", "REAL")
TOKENS = ("SELECT", "FROM", "(", ")", ",", "'", '"', "--", ";", "*", "NULL", "\x00", "é", "UNION")


class Writer:
    """Writes queries that are nearly right, or not at all."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.columns: list[TapColumn] = []

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def value(self, depth: int) -> str:
        return self.number(depth) if self.rng.random() < 0.7 else self.text(depth)

    def number(self, depth: int) -> str:
        kind = self.rng.random()
        if kind < 0.02:
            return self.text(depth)
        if depth <= 0 or kind < 0.4:
            names = [each.name_in_queries for each in self.columns if each.kind not in TEXT_KINDS]
            if names and self.rng.random() < 0.6:
                return str(self.rng.choice(names))
            return str(self.one(*NUMBERS))
        if kind < 0.65:
            return f"({self.number(depth - 1)} {self.one(*'+-*/')} {self.number(depth - 1)})"
        if kind < 0.85:
            name = self.one(*MATH)
            count = MATH[name] + (self.rng.random() < 0.02)
            return f"{name}({', '.join(self.number(depth - 1) for _ in range(count))})"
        if kind < 0.9:
            name = self.one("CONTAINS", "INTERSECTS")
            return f"{name}({self.shape()}, {self.shape()})"
        if kind < 0.93:
            return f"CAST({self.value(depth - 1)} AS {self.one(*TYPES)})"
        if kind < 0.96:
            return f"{self.one(*OTHERS)}({self.number(depth - 1)})"
        return f"({self.select(depth - 2, self.number(0))})"

    def text(self, depth: int) -> str:
        kind = self.rng.random()
        names = [each.name_in_queries for each in self.columns if each.kind == "text"]
        if depth <= 0 or kind < 0.6:
            return str(self.one(*names, *TEXTS))
        if kind < 0.8:
            return f"{self.one('LOWER', 'UPPER')}({self.text(depth - 1)})"
        if kind < 0.9:
            return f"CAST({self.number(depth - 1)} AS VARCHAR)"
        return f"({self.text(depth - 1)} || {self.text(depth - 1)})"

    def shape(self) -> str:
        lon, lat = self.rng.uniform(-10, 370), self.rng.uniform(-92, 92)
        return self.rng.choice(SHAPES).format(
            lon=lon,
            lat=lat,
            east=lon + 3,
            north=lat + 2,
            radius=self.rng.uniform(-1, 181),
            small=self.rng.uniform(0, 5),
        )

    def condition(self, depth: int) -> str:
        new = self.one(self.number, self.number, self.text)
        one, other, third = (new(depth - 1) for _ in range(3))
        if depth <= 0:
            return f"{one} {self.one('=', '<', '>=', '<>')} {other}"
        form: Callable[[], str] = self.one(
            lambda: f"{one} {self.one('=', '<', '>=', '!=')} {other}",
            lambda: f"{one} BETWEEN {other} AND {third}",
            lambda: f"{one} {self.one('', 'NOT ')}IN ({other}, {third})",
            lambda: f"{self.text(1)} {self.one('LIKE', 'ILIKE', 'NOT LIKE')} {self.one(*TEXTS)}",
            lambda: f"{one} IS {self.one('', 'NOT ')}NULL",
            lambda: (
                f"{self.one(0, 1)} = {self.one('CONTAINS', 'INTERSECTS')}"
                f"({self.shape()}, {self.shape()})"
            ),
            lambda: f"({self.condition(depth - 1)} AND {self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})",
            lambda: f"NOT {self.condition(depth - 1)}",
            lambda: f"EXISTS ({self.select(depth - 2)})",
            lambda: f"{one} IN ({self.select(depth - 2, other)})",
        )
        return form()

    def select(self, depth: int, item: str = "") -> str:
        outer = self.columns
        table: TapTable = self.one(OBSCORE, OBSCORE, OBSCORE, *ALL_TABLES)
        self.columns = list(table.columns)
        text = self.one("", "", "", "DISTINCT ") + self.one("", f"TOP {self.rng.randint(0, 9)} ")
        items = item or ", ".join(self.value(depth) for _ in range(self.rng.randint(1, 3)))
        if not item and self.rng.random() < 0.3:
            items = "*"
        source = table.full_name
        if self.rng.random() < 0.15:
            source = self.one(
                f"{source} AS a, {source} AS b",
                f"{source} AS a NATURAL JOIN {source} AS b",
                f"{source} AS a LEFT JOIN {source} AS b ON {self.condition(1)}",
                f"{source} AS a FULL JOIN {source} AS b USING ({table.columns[0].name})",
                f"{source} a, {source} b, {source} c, {source} d, {source} e, {source} f",
            )
        text = f"SELECT {text}{items} FROM {source}"
        if self.rng.random() < 0.7:
            text += f" WHERE {self.condition(depth)}"
        if not item and self.rng.random() < 0.15:
            key = self.value(1)
            text = f"SELECT COUNT(*), {key} FROM {source} GROUP BY {key} HAVING COUNT(*) > 1"
        if not item and self.rng.random() < 0.05:
            text += f" {self.one('UNION', 'EXCEPT', 'INTERSECT', 'UNION ALL')} {self.select(0)}"
        self.columns = outer
        return text

    def query(self) -> str:
        text = self.select(3)
        if self.rng.random() < 0.2:
            text += f" ORDER BY {self.one('1', '2', 's_ra DESC', 'obs_id')} OFFSET 1"
        if self.rng.random() < 0.2:
            words = text.split(" ")
            for _ in range(self.rng.randint(1, 3)):
                place = self.rng.randrange(len(words))
                words[place : place + self.rng.randint(0, 2)] = [self.one(*TOKENS)]
            text = " ".join(words)
        return text


@pytest.fixture(scope="module")
def catalogs(
    tmp_path_factory: pytest.TempPathFactory, postgres: sqlalchemy.URL
) -> Iterator[list[Catalog]]:
    folder = tmp_path_factory.mktemp("fuzz")
    with (
        new_database(postgres) as url,
        Catalog.open(new_catalog(folder / "c.sqlite")) as one,
        Catalog.open(url) as other,
    ):
        for catalog in (one, other):
            fill(catalog, str(folder), images(60))
        yield [one, other]


def outcome(catalog: Catalog, text: str) -> str:
    """Whether there is an answer, an error of the query, or one of its values and time."""
    begin = time.monotonic()
    try:
        rows(catalog, text, most=100, seconds=LONGEST_S)
    except VoError as error:
        assert error.status in (400, 413), text
        return "invalid"
    except QueryError:
        return "not answered"
    finally:
        assert time.monotonic() - begin < LONGEST_S + SLACK_S, text
    return "answer"


@pytest.mark.parametrize("part", range(10))
def test_every_query_ends_well(catalogs: list[Catalog], part: int) -> None:
    counts: dict[str, int] = {}
    for number in range(QUERIES // 10):
        text = Writer(1000 * part + number).query()
        results = [outcome(catalog, text) for catalog in catalogs]
        # What is valid does not depend on the database.
        assert (results[0] == "invalid") == (results[1] == "invalid"), text
        counts[results[0]] = counts.get(results[0], 0) + 1
    assert counts["answer"] >= 10, counts
    assert counts["invalid"] >= 10, counts


def test_a_portal_has_no_internal_errors(tmp_path: Path) -> None:
    with visited(tmp_path, real=False) as visitor:
        for number in range(100):
            data = {"LANG": "ADQL", "QUERY": Writer(number).query(), "MAXREC": "5"}
            answer = visitor.client.post("tap/sync", data=data)
            assert answer.status_code in (200, 400), (data, answer.text)
