"""TAP over HTTP: pyvo asks, stilts judges."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from astropy.io.votable import parse
from pyvo.dal import TAPService
from pyvo.dal.exceptions import DALQueryError

from tests.support.postgres_server import new_database
from tests.support.vo_archive import Visitor, visited

STAGES = "TMV TME TMS TMC CPV CAP AVV QGE QPO QAS UWS MDQ OBS UPL EXA"
"""All stages, but that of ObsLocTAP, which is another standard."""
COUNT = "SELECT COUNT(*) AS n FROM ivoa.obscore"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("tap"), real=False) as made:
        yield made


@pytest.fixture(scope="module")
def service(visitor: Visitor) -> TAPService:
    return TAPService(f"{visitor.base}/tap")


def sync(visitor: Visitor, query: str, **more: Any) -> httpx.Response:
    return visitor.client.post("tap/sync", data={"LANG": "ADQL", "QUERY": query, **more})


def csv_rows(visitor: Visitor, query: str, **more: Any) -> list[dict[str, str]]:
    answer = sync(visitor, query, RESPONSEFORMAT="csv", **more)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def status_of(answer: httpx.Response) -> list[tuple[str, str]]:
    """Values and texts of QUERY_STATUS, in their order."""
    assert answer.headers["content-type"] == "application/x-votable+xml"
    tree = ElementTree.fromstring(answer.content)
    return [
        (str(each.get("value")), each.text or "")
        for each in tree.iter("{http://www.ivoa.net/xml/VOTable/v1.3}INFO")
        if each.get("name") == "QUERY_STATUS"
    ]


def test_pyvo_searches(service: TAPService) -> None:
    rows = service.search("SELECT * FROM ivoa.obscore WHERE obs_id LIKE 'plain%'").to_table()
    assert len(rows) == 1
    assert rows["s_ra"].unit == "deg"
    assert rows["s_region"][0].startswith("POLYGON ICRS ")


def test_the_columns_are_those_of_sia(visitor: Visitor, service: TAPService) -> None:
    content = visitor.client.get("query", params={"COLLECTION": "made"}).content
    (table,) = parse(BytesIO(content)).iter_tables()
    images = service.search("SELECT * FROM ivoa.obscore").to_table()
    own = {str(row["obs_publisher_did"]): row for row in images}
    others = table.to_table()
    assert len(others) == len(own) > 10
    assert others.colnames == images.colnames
    for row in others:
        mine = own[str(row["obs_publisher_did"])]
        assert [str(each) for each in row] == [str(each) for each in mine]


def test_pyvo_follows_the_links_of_a_row(service: TAPService) -> None:
    query = "SELECT access_url, access_format, obs_publisher_did FROM ivoa.obscore WHERE s_ra < 11"
    result = service.search(query)
    (links,) = list(result.iter_datalinks())[:1]
    assert {str(each["semantics"]) for each in links} >= {"#this", "#cutout"}


def test_pyvo_reads_tables_and_capabilities(service: TAPService) -> None:
    assert set(service.tables.keys()) >= {"ivoa.obscore", "tap_schema.columns", "jobs.job"}
    obscore = service.tables["ivoa.obscore"]
    assert len(obscore.columns) == 30
    assert service.maxrec == 20_000
    assert service.hardlimit == 200_000
    language = service.get_tap_capability().languages[0]
    assert language.get_feature("ivo://ivoa.net/std/TAPRegExt#features-adqlgeo", "CONTAINS")
    assert len(service.examples) == 3
    for example in service.examples:
        example.execute()


def test_the_list_of_services_has_tap(visitor: Visitor) -> None:
    for path in ("capabilities", "tap/capabilities", "tap"):
        text = visitor.client.get(path).text
        assert 'standardID="ivo://ivoa.net/std/TAP"' in text
        assert f'<accessURL use="base">{visitor.base}/tap</accessURL>' in text


@pytest.mark.parametrize("name", ["schemas", "tables", "columns", "keys", "key_columns"])
def test_the_schema_describes_itself(visitor: Visitor, name: str) -> None:
    rows = csv_rows(visitor, f"SELECT * FROM TAP_SCHEMA.{name}")
    query = f"SELECT column_name FROM TAP_SCHEMA.columns WHERE table_name = 'tap_schema.{name}'"
    names = [row["column_name"].strip('"') for row in csv_rows(visitor, query)]
    assert list(rows[0]) == names


def test_an_answer_that_is_cut_says_so(visitor: Visitor) -> None:
    query = "SELECT obs_id FROM ivoa.obscore"
    assert [each for each, _ in status_of(sync(visitor, query))] == ["OK"]
    for most, statuses in ((3, ["OK", "OVERFLOW"]), (0, ["OK", "OVERFLOW"]), (12, ["OK"])):
        answer = sync(visitor, query, MAXREC=most)
        assert [each for each, _ in status_of(answer)] == statuses, most
        assert answer.text.count("<TR>") == most
    # Whoever asks for three rows of all has what was asked for.
    answer = sync(visitor, query.replace("SELECT", "SELECT TOP 3"), MAXREC=3)
    assert [each for each, _ in status_of(answer)] == ["OK"]
    assert len(csv_rows(visitor, query, MAXREC="9" * 30)) == 12


def test_a_large_answer_is_sent_in_parts(visitor: Visitor) -> None:
    query = "SELECT a.*, b.* FROM tap_schema.columns AS a, tap_schema.columns AS b"
    count = len(csv_rows(visitor, "SELECT column_name FROM tap_schema.columns"))
    answer = sync(visitor, query)
    assert len(answer.content) > 1_000_000
    assert [each for each, _ in status_of(answer)] == ["OK"]
    assert answer.text.count("<TR>") == count**2
    assert len(sync(visitor, query, FORMAT="csv").text.splitlines()) > count**2


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"QUERY": COUNT}, "LANG: expected one of ADQL, ADQL-2.0, ADQL-2.1, found none"),
        ({"QUERY": COUNT, "LANG": "PQL"}, "found 'PQL'"),
        ({"LANG": "ADQL"}, "QUERY: expected a query in ADQL, found none"),
        ({"LANG": "ADQL", "QUERY": [COUNT, COUNT]}, "QUERY: expected one value, found several"),
        ({"LANG": "ADQL", "QUERY": "SELECT"}, "found its end"),
        ({"LANG": "ADQL", "QUERY": COUNT, "MAXREC": "-1"}, "MAXREC: expected a number of rows"),
        ({"LANG": "ADQL", "QUERY": COUNT, "MAXREC": "ten"}, "MAXREC: expected a number of rows"),
        ({"LANG": "ADQL", "QUERY": COUNT, "FORMAT": "fits"}, "RESPONSEFORMAT: expected one of"),
        ({"LANG": "ADQL", "QUERY": COUNT, "REQUEST": "x"}, "REQUEST: expected doQuery, found 'x'"),
        ({"LANG": "ADQL", "QUERY": "SELECT 'a\x00' FROM ivoa.obscore"}, "without NUL"),
    ],
)
def test_errors_are_tables(visitor: Visitor, parameters: dict[str, Any], why: str) -> None:
    for answer in (
        visitor.client.get("tap/sync", params=parameters),
        visitor.client.post("tap/sync", data=parameters),
    ):
        assert answer.status_code == 400
        ((status, text),) = status_of(answer)
        assert status == "ERROR"
        assert why in text, text


def test_pyvo_tells_why(service: TAPService) -> None:
    with pytest.raises(DALQueryError, match="expected a column of the tables, found nothing"):
        service.search("SELECT nothing FROM ivoa.obscore")


def test_tokens_are_asked_for(tmp_path: Path) -> None:
    with visited(tmp_path, '[access]\ntokens = "required"\n', real=False) as guarded:
        answer = sync(guarded, COUNT)
        assert answer.status_code == 401
        assert guarded.client.get("tap/capabilities").status_code == 200
        assert guarded.client.get("tap/tables").status_code == 200


def stilts(task: str, *arguments: str) -> str:
    """Run a task of stilts; gives all that it says."""
    if shutil.which("stilts") is None:
        pytest.skip("stilts is not installed")
    done = subprocess.run(
        ["stilts", task, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.more
def test_stilts_has_no_errors_to_report(visitor: Visitor) -> None:
    told = stilts("taplint", f"tapurl={visitor.base}/tap", f"stages={STAGES}")
    totals = re.search(r"Totals: Errors: (\d+)", told)
    assert totals is not None, told
    errors = [line for line in told.splitlines() if line.startswith(("E-", "W-"))]
    # That the portal does not name its server is a choice.
    assert [line for line in errors if not line.startswith("W-CAP-SVR0")] == [], told


@pytest.mark.more
def test_stilts_queries(visitor: Visitor) -> None:
    told = stilts(
        "tapquery", f"tapurl={visitor.base}/tap", f"adql={COUNT}", "sync=true", "ofmt=csv"
    )
    assert told.split() == ["n", "12"]


@pytest.mark.more
def test_a_portal_on_postgresql_answers_the_same(
    visitor: Visitor, tmp_path: Path, postgres: Any
) -> None:
    query = (
        "SELECT * FROM ivoa.obscore WHERE 1 = INTERSECTS(s_region, CIRCLE(11, -1, 2)) "
        "ORDER BY obs_id"
    )
    with new_database(postgres) as url:
        (tmp_path / "database.url").write_text(url)
        with visited(tmp_path, real=False) as other:
            rows = csv_rows(other, query)
    mine = csv_rows(visitor, query)
    assert [row.pop("access_url").partition("?")[2] for row in rows] == [
        row.pop("access_url").partition("?")[2] for row in mine
    ]
    assert rows == mine
    assert len(rows) == 5
