"""ADQL: what is refused and how, and what no query can do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from swathe.catalog import Catalog
from swathe.catalog.read_only import ReadLimit
from swathe.core.errors import QueryError
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.tap.adql.parser import LONGEST_QUERY, parse_query
from swathe.portal.vo.tap.adql.syntax import MOST_DEPTH, Select
from tests.support.catalogs import new_catalog
from tests.support.tap_catalog import fill, images, rows

SELECT = "SELECT obs_id FROM ivoa.obscore WHERE "


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("few")
    with Catalog.open(new_catalog(folder / "c.sqlite")) as catalog:
        fill(catalog, str(folder), images(20))
        yield catalog


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected one of (, SELECT, WITH, found its end"),
        ("DROP TABLE granules", "line 1, column 1: expected one of (, SELECT, WITH, found 'DROP'"),
        ("SELECT a FROM t; DELETE FROM t", "line 1, column 18: expected its end"),
        ("SELECT select FROM t", "found the reserved word 'select'; write it in double quotes"),
        ("SELECT a AS from FROM t", "found the reserved word 'from'"),
        ("SELECT é FROM t", "line 1, column 8: expected ADQL, found 'é'"),
        ("SELECT 'a FROM t", 'expected ADQL, found "\'"'),
        ('SELECT "" FROM t', "expected ADQL, found '\"'"),
        ("SELECT a FROM t WHERE a = \x00", "expected ADQL, found '\\x00'"),
        ("SELECT 1e999 FROM t", "expected a finite number, found 1e999"),
        (f"SELECT {'9' * 200} FROM t", "expected numbers of at most 100 characters"),
        ("SELECT TOP 1.5 a FROM t", "TOP: expected a number of rows, found 1.5"),
        ("SELECT TOP -1 a FROM t", "expected a number, found '-'"),
        ("SELECT a FROM t JOIN u", "JOIN: expected one of NATURAL, ON and USING"),
        (f"SELECT {'abs(' * 100}1{')' * 100} FROM t", f"at most {MOST_DEPTH} deep"),
        (f"SELECT {'1 + ' * 100}1 FROM t", f"at most {MOST_DEPTH} deep"),
        (f"SELECT a FROM t WHERE {'NOT ' * 100}a = 1", f"at most {MOST_DEPTH} deep"),
        (f"SELECT {'a' * 300} FROM t", "names of at most 200 characters"),
        (" " * (LONGEST_QUERY + 1), f"at most {LONGEST_QUERY} characters"),
    ],
)
def test_what_is_not_adql_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(VoError) as caught:
        parse_query(text)
    assert why in caught.value.line, caught.value.line
    assert caught.value.status == 400


def test_depth_of_parentheses_does_not_matter() -> None:
    begin = time.monotonic()
    query = parse_query(f"SELECT a FROM t WHERE {'(' * 10_000}a = 1{')' * 10_000}")
    assert isinstance(query.body, Select)
    parse_query(f"SELECT a FROM t WHERE {' OR '.join(['a = 1'] * 3000)}")
    parse_query("SELECT a FROM t WHERE" + "(" * 40 + "a=1" + ")" * 40 + " -- and ' \" this")
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT x FROM ivoa.obscore", "expected a column of the tables, found x"),
        ("SELECT obs_id FROM granules", "expected one of the tables ivoa.obscore"),
        ("SELECT obs_id FROM sqlite_master", "found sqlite_master"),
        ("SELECT _row FROM ivoa.obscore", "found '_'"),
        ('SELECT "_row" FROM ivoa.obscore', "expected a column of the tables, found _row"),
        ('SELECT "OBS_ID" FROM ivoa.obscore', "expected a column of the tables, found OBS_ID"),
        ("SELECT o.obs_id FROM ivoa.obscore", "found o.obs_id"),
        (
            "SELECT obs_id FROM ivoa.obscore a, ivoa.obscore b",
            "obs_id: expected a column of one table",
        ),
        ("SELECT 1 FROM ivoa.obscore, ivoa.obscore", "tables of different names"),
        (SELECT + "obs_id", "expected a condition, as a = 1, found a value"),
        (SELECT + "obs_id = 1", "expected values of one type, found a number and a text"),
        (SELECT + "s_region = 'POLYGON'", "found a region and a text"),
        (SELECT + "s_region = s_region", "found a region; use INTERSECTS"),
        (SELECT + "obs_id + 1 = 2", "+: expected a number, found a text"),
        (SELECT + "load_extension('x') = 1", "functions of ADQL, found LOAD_EXTENSION"),
        (SELECT + "SIN(1, 2) = 1", "SIN: expected another number of arguments, found 2"),
        (SELECT + "COUNT(*) > 1", "COUNT: expected it in SELECT, HAVING or ORDER BY"),
        ("SELECT SUM(MAX(t_min)) FROM ivoa.obscore", "MAX: expected it in SELECT"),
        ("SELECT obs_id, COUNT(*) FROM ivoa.obscore", "obs_id: expected a column of GROUP BY"),
        (SELECT + "1 = CONTAINS(POINT(1, 91), s_region)", "declination from -90 to 90"),
        (SELECT + "1 = CONTAINS(POINT(1, 1), CIRCLE(1, 1, -1))", "radius from 0 to 180"),
        (SELECT + "1 = CONTAINS(POINT('GALACTIC', 1, 1), s_region)", "expected the frame ICRS"),
        (SELECT + "1 = INTERSECTS(POLYGON(1, 2, 3, 4), s_region)", "three corners or more"),
        (SELECT + "1 = INTERSECTS(POLYGON(1,1,1,1,1,1), s_region)", "different corners"),
        (SELECT + "1 = CONTAINS(s_region, s_region)", "expected one s_region, found two"),
        (SELECT + "1 = CONTAINS(s_region, POINT(1, 2))", "a shape with an area second"),
        (SELECT + "1 = CONTAINS(POINT(1, 2))", "expected two shapes, found 1"),
        (SELECT + "1 = CONTAINS(POINT('NaN', 2), s_region)", "expected the frame ICRS"),
        (
            SELECT + "1 = CONTAINS(POINT(CAST('NaN' AS REAL), 2), s_region)",
            "expected a shape of numbers",
        ),
        (
            SELECT + "1 = INTERSECTS(CIRCLE(s_ra, s_dec, 1), s_region)",
            "expected a shape of numbers, or of columns of one upload",
        ),
        (
            "SELECT 1 FROM " + ", ".join(f"ivoa.obscore o{number}" for number in range(13)),
            "expected at most 12 tables",
        ),
        ("SELECT obs_id, t_min FROM ivoa.obscore UNION SELECT obs_id FROM ivoa.obscore", "2 and 1"),
        ("SELECT t_min FROM ivoa.obscore UNION SELECT obs_id FROM ivoa.obscore", "of one type"),
        (SELECT + "obs_id IN (SELECT obs_id, t_min FROM ivoa.obscore)", "one column, found 2"),
        ("SELECT obs_id FROM ivoa.obscore ORDER BY 2", "a column from 1 to 1, found 2"),
        (
            SELECT + f"s_xel1 IN ({', '.join(map(str, range(10_001)))})",
            "at most 10000 constants",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(few: Catalog, text: str, why: str) -> None:
    with pytest.raises(VoError) as caught:
        rows(few, text)
    assert why in caught.value.line, caught.value.line
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "text",
    [
        SELECT + "obs_id = ''' OR ''1''=''1'",
        SELECT + "obs_id = '; DROP TABLE granules; --'",
        SELECT + "obs_id = '%(v0)s' OR obs_id = ':v0' OR obs_id = '?'",
        'SELECT obs_id AS "a"";DROP TABLE granules" FROM ivoa.obscore WHERE 1 = 2',
    ],
)
def test_texts_of_users_stay_texts(few: Catalog, text: str) -> None:
    assert rows(few, text) == []
    assert rows(few, "SELECT COUNT(*) FROM ivoa.obscore") == [("20",)]


def test_names_in_quotes_and_comments(few: Catalog) -> None:
    text = (
        'SELECT "obs_id" AS "SELECT", size."size" FROM ivoa.obscore, -- a comment with \' in it\n'
    )
    text += "tap_schema.columns AS size WHERE size.column_name = '\"size\"'"
    assert len(rows(few, text)) == 20


def test_a_query_that_takes_forever_ends(few: Catalog) -> None:
    tables = ", ".join(f"ivoa.obscore o{number}" for number in range(10))
    text = f"SELECT COUNT(*) FROM {tables} WHERE SIN(o1.s_ra) = SIN(o2.s_dec) + 7"
    begin = time.monotonic()
    with pytest.raises(QueryError, match=r"expected an answer within 0\.5 s, found none"):
        rows(few, text, seconds=0.5)
    assert time.monotonic() - begin < 20


def test_a_query_can_be_stopped(few: Catalog) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    limit = ReadLimit.of(60, stop.is_set)
    while not limit.is_over:
        time.sleep(0.01)
    with pytest.raises(QueryError, match="the query was stopped"):
        limit.check()
    assert time.monotonic() < limit.end_s


def test_conditions_list_a_limited_number_of_images(
    few: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.portal.vo.tap.footprints.MOST_IMAGES", 30)
    sky = "1 = INTERSECTS(s_region, CIRCLE(0, 0, 180))"
    assert len(rows(few, SELECT + sky)) > 15
    with pytest.raises(QueryError, match="expected at most 30 images"):
        rows(few, SELECT + f"{sky} OR {sky}")


def test_common_tables_may_use_each_other(few: Catalog) -> None:
    tables = ["t0 AS (SELECT 1 AS n FROM tap_schema.schemas WHERE schema_name = 'ivoa')"]
    tables += [
        f"t{number} AS (SELECT a.n FROM t{number - 1} AS a, t{number - 1} AS b)"
        for number in range(1, 30)
    ]
    begin = time.monotonic()
    query = f"WITH {', '.join(tables)} SELECT COUNT(*) FROM "
    assert rows(few, query + "t5") == [("1",)]
    # Whoever makes a billion tables of it has an error, and soon.
    with pytest.raises(VoError, match="expected tables to be read at most 256 times"):
        rows(few, query + "t29")
    assert time.monotonic() - begin < 20


def test_what_one_comparison_may_take(few: Catalog) -> None:
    """A comparison cannot be stopped while it runs, so texts and patterns have limits."""
    tables = ["t0 AS (SELECT 'aaaaaaaaaa' AS x FROM tap_schema.schemas WHERE utype IS NULL)"]
    tables += [f"t{at} AS (SELECT x || x AS x FROM t{at - 1})" for at in range(1, 20)]
    begin = time.monotonic()
    with pytest.raises(QueryError):
        rows(few, f"WITH {', '.join(tables)} SELECT COUNT(*) FROM t19 WHERE x LIKE '%b'")
    with pytest.raises(QueryError):
        rows(few, f"SELECT COUNT(*) FROM ivoa.obscore WHERE obs_id LIKE '%{'a' * 19_000}b'")
    assert time.monotonic() - begin < 20


def test_an_image_by_its_identifier(few: Catalog) -> None:
    select = "SELECT COUNT(*) FROM ivoa.obscore WHERE "
    dids = [did for (did,) in rows(few, "SELECT obs_publisher_did FROM ivoa.obscore")]
    for did in dids[:5]:
        assert rows(few, f"{select} obs_publisher_did = '{did}'") == [("1",)]
        assert rows(few, f"{select} NOT '{did}' = obs_publisher_did") == [("19",)]
        # Another way to write the same path is another text.
        other = did.replace("night", "%6eight")
        assert rows(few, f"{select} obs_publisher_did = '{other}'") == [("0",)]
    for text in ("", "ivo://x", "ivo://archive.example/deep?cube.h5,0", dids[0].upper()):
        assert rows(few, f"{select} obs_publisher_did = '{text}'") == [("0",)]


def test_a_subquery_as_a_value_has_one_row(few: Catalog) -> None:
    outer = "SELECT COUNT(*) FROM ivoa.obscore WHERE s_xel1 = "
    one = "(SELECT s_xel1 FROM ivoa.obscore AS o WHERE o.obs_publisher_did = '{}')"
    (did,) = rows(few, "SELECT TOP 1 obs_publisher_did FROM ivoa.obscore")[0]
    assert rows(few, outer + one.format(did)) == [("1",)]
    assert rows(few, outer + one.format("none")) == [("0",)]
    correlated = "(SELECT o.s_xel1 FROM ivoa.obscore o WHERE o.obs_id = obscore.obs_id)"
    assert rows(few, outer + correlated) == [("20",)]
    with pytest.raises(QueryError):
        rows(few, outer + "(SELECT s_xel1 FROM ivoa.obscore)")
    with pytest.raises(VoError, match="expected an aggregate, TOP 1"):
        rows(few, outer + "(SELECT DISTINCT s_xel1 FROM ivoa.obscore)")


def test_values_out_of_range_are_refused(few: Catalog) -> None:
    for text in ("9223372036854775807 + s_xel1", "1e300 * 1e300 * s_xel1", "CAST('1e999' AS REAL)"):
        with pytest.raises(QueryError, match=r"out of range|cannot be answered"):
            rows(few, f"SELECT {text} FROM ivoa.obscore")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("7 / 2.0", "3.5"),
        ("2 - 3 - 4", "-5"),
        ("2 - (3 - 4)", "3"),
        ("12 / (2 * 3)", "2"),
        ("1 / COT(1) * 2", str(2 * 1.5574077246549023)),
        ("SQRT(-1)", ""),
        ("LOG(0)", ""),
        ("MOD(7, 0)", ""),
        ("POWER(-8, 0.5)", ""),
        ("ROUND(2.5)", "3.0"),
        ("ROUND(-1.25, 1)", "-1.3"),
        ("TRUNCATE(-1.29, 1)", "-1.2"),
        ("PI()", "3.141592653589793"),
        ("CAST(2.9 AS INTEGER)", "2"),
        ("CAST(0.1 AS VARCHAR)", "0.1"),
        ("CAST(1e20 AS VARCHAR)", "1e+20"),
        ("CAST('x' AS REAL)", ""),
        ("DISTANCE(POINT(0, 0), POINT(0, 90))", "90.0"),
        ("COORD2(POINT('ICRS', 1, 2))", "2"),
        ("CONTAINS(POINT(1, 1), CIRCLE('ICRS GEOCENTER', 1, 1.5, 0.6))", "1"),
        ("CONTAINS(POINT(1, 1), BOX(5, 1, 2, 2))", "0"),
        ("CONTAINS(POINT(5.5, 1), POLYGON(POINT(5, 0), POINT(6, 0), POINT(5.5, 4)))", "1"),
        ("INTERSECTS(CIRCLE(0, 0, 1), CIRCLE(3, 0, 1))", "0"),
        ("POINT(1.5, 2)", "1.5 2.0"),
    ],
)
def test_values(few: Catalog, expression: str, value: str) -> None:
    (row,) = rows(
        few, f"SELECT {expression} AS x FROM tap_schema.schemas WHERE schema_name = 'ivoa'"
    )
    assert row == (value,)


def test_area_is_that_of_the_sphere(few: Catalog) -> None:
    text = "SELECT AREA(CIRCLE(5, 5, 90)), AREA(POLYGON(0, 0, 90, 0, 0, 90)), AREA(POINT(1, 2)) "
    (row,) = rows(few, text + "FROM tap_schema.schemas WHERE schema_name = 'ivoa'")
    assert [float(each) for each in row] == pytest.approx([20626.48, 41252.96 / 8, 0], abs=0.01)
