"""TAP: queries as jobs, tables that are sent with queries, and the user's own jobs as tables."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import httpx
import numpy as np
import pytest
from astropy.table import Table
from pyvo.dal import AsyncTAPJob, TAPService
from pyvo.dal.exceptions import DALQueryError

from swathe.catalog import Catalog
from tests.support.portals import database_in
from tests.support.vo_archive import Visitor, create, did, ended, results, visited

# pyvo leaves it to Python to close the connection of a job's answer.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
COUNT = "SELECT COUNT(*) AS n FROM ivoa.obscore"
FOREVER = (
    "SELECT COUNT(*) FROM ivoa.obscore a, ivoa.obscore b, ivoa.obscore c, ivoa.obscore d, "
    "ivoa.obscore e, ivoa.obscore f, ivoa.obscore g, ivoa.obscore h "
    "WHERE SIN(a.s_xel1) + b.s_xel1 + c.s_xel1 + d.s_xel1 + e.s_xel1 + f.s_xel1 + g.s_xel1 > "
    "h.s_xel1 + 1e9"
)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("tap-jobs"), real=False) as made:
        yield made


@pytest.fixture(scope="module")
def service(visitor: Visitor) -> TAPService:
    return TAPService(f"{visitor.base}/tap")


def new_job(visitor: Visitor, query: str, **more: Any) -> str:
    answer = visitor.client.post("tap/async", data={"LANG": "ADQL", "QUERY": query, **more})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def asked(visitor: Visitor, query: str, headers: Any = None, **files: Any) -> httpx.Response:
    """Ask with tables, each sent with the name that it has in the query."""
    uploads = ";".join(f"{name},param:{name}" for name in files)
    data = {"LANG": "ADQL", "QUERY": query, "RESPONSEFORMAT": "csv", "UPLOAD": uploads}
    parts = {name: (f"{name}.vot", content) for name, content in files.items()}
    return visitor.client.post("tap/sync", data=data, files=parts, headers=headers)


def votable(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    Table(columns).write(buffer, format="votable")
    return buffer.getvalue()


# ---- Jobs


def test_pyvo_runs_a_job(service: TAPService) -> None:
    assert service.run_async(COUNT).to_table()["n"][0] == 12
    job = service.submit_job(COUNT, maxrec=5)
    assert job.phase == "PENDING"
    job.run().wait(phases=["COMPLETED"], timeout=60)
    assert job.fetch_result().to_table()["n"][0] == 12
    assert job.query == COUNT
    url = job.url
    job.delete()
    assert httpx.get(url).status_code == 404


def test_pyvo_tells_why_a_job_failed(service: TAPService) -> None:
    job: AsyncTAPJob = service.submit_job("SELECT nothing FROM ivoa.obscore").run()
    job.wait(timeout=60)
    assert job.phase == "ERROR"
    with pytest.raises(DALQueryError, match="found nothing"):
        job.raise_if_error()


def test_the_life_of_a_job(visitor: Visitor) -> None:
    url = new_job(visitor, COUNT, RESPONSEFORMAT="csv", RUNID="mine")
    get = visitor.client.get
    assert get(f"{url}/phase").text == "PENDING"
    assert get(f"{url}/executionduration").text == "600"
    visitor.client.post(f"{url}/executionduration", data={"EXECUTIONDURATION": "99999"})
    assert get(f"{url}/executionduration").text == "3600"
    visitor.client.post(f"{url}/destruction", data={"DESTRUCTION": "2126-01-01T00:00:00Z"})
    assert get(f"{url}/destruction").text < "2100"
    visitor.client.post(f"{url}/parameters", data={"QUERY": f"{COUNT} WHERE 1 = 2"})
    assert visitor.client.post(f"{url}/phase", data={"PHASE": "RUN"}).status_code == 303
    tree = ended(url)
    ((name, (place, kind)),) = results(tree).items()
    assert (name, kind) == ("result", "text/csv;header=present")
    assert place == f"{url}/results/result"
    assert get(place).text.split() == ["n", "0"]
    assert get(place, headers={"Range": "bytes=0-0"}).content == b"n"
    again = visitor.client.post(f"{url}/parameters", data={"QUERY": COUNT})
    assert again.status_code == 400
    assert url.rpartition("/")[2] in get("tap/async", params={"PHASE": "COMPLETED"}).text
    assert url.rpartition("/")[2] not in get("async").text
    assert visitor.client.delete(url).status_code == 303
    assert get(url).status_code == 404


def test_a_job_may_be_stopped(visitor: Visitor) -> None:
    url = new_job(visitor, FOREVER, PHASE="RUN")
    while visitor.client.get(f"{url}/phase").text == "QUEUED":
        time.sleep(0.1)
    begin = time.monotonic()
    visitor.client.post(f"{url}/phase", data={"PHASE": "ABORT"})
    assert visitor.client.get(f"{url}/phase").text == "ABORTED"
    # The next job of this thread begins when the query has ended.
    for other in [new_job(visitor, COUNT, PHASE="RUN") for _ in range(3)]:
        assert ended(other).findtext("{*}phase") == "COMPLETED"
    assert time.monotonic() - begin < 30


def test_a_job_ends_at_its_duration(visitor: Visitor) -> None:
    url = new_job(visitor, FOREVER)
    visitor.client.post(f"{url}/executionduration", data={"EXECUTIONDURATION": "1"})
    visitor.client.post(f"{url}/phase", data={"PHASE": "RUN"})
    assert ended(url).findtext("{*}phase") == "ERROR"
    assert "expected an answer within 1 s" in visitor.client.get(f"{url}/error").text


def test_jobs_are_those_of_their_user(tmp_path: Path) -> None:
    with visited(tmp_path, '[access]\ntokens = "required"\n', real=False) as guarded:
        with Catalog.open(database_in(tmp_path)) as catalog:
            tokens = {
                name: catalog.add_token(name, ["read", "submit"])[0] for name in ("ann", "bob")
            }
        headers = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
        data = {"LANG": "ADQL", "QUERY": COUNT}
        post, get = guarded.client.post, guarded.client.get
        url = post("tap/async", data=data, headers=headers["ann"]).headers["location"]
        assert get(url).status_code == 401
        assert get(url, headers=headers["ann"]).status_code == 200
        for path in ("", "/phase", "/results/result"):
            assert get(url + path, headers=headers["bob"]).status_code == 404
        assert url.rpartition("/")[2] not in get("tap/async", headers=headers["bob"]).text
        cut = post("async", data={"ID": did("made", "plain.fits")}, headers=headers["ann"])
        own = cut.headers["location"].rpartition("/")[2]
        for table in ("jobs.job", "jobs.row"):
            for where in ("", f" WHERE job_id = '{own}'", f" WHERE job_id = '{own}' OR 1 = 1"):
                query = f"SELECT job_id FROM {table}{where}"
                answers = {
                    name: asked(guarded, query, headers[name]).text.split() for name in headers
                }
                assert answers == {"ann": ["job_id", own], "bob": ["job_id"]}, query


# ---- Uploads


def test_pyvo_uploads_a_table(service: TAPService) -> None:
    targets = Table({"name": ["a", "b"], "ra": [10.0, 200.0], "dec": [-1.0, 5.0]})
    result = service.search(
        "SELECT t.name, o.obs_id FROM ivoa.obscore AS o JOIN TAP_UPLOAD.t AS t "
        "ON 1 = CONTAINS(POINT(o.s_ra, o.s_dec), CIRCLE(t.ra, t.dec, 0.5))",
        uploads={"t": targets},
    )
    assert [tuple(row) for row in result.to_table()] == [("a", "plain.fits")]
    job = service.run_async("SELECT COUNT(*) AS n FROM TAP_UPLOAD.t", uploads={"t": targets})
    assert job.to_table()["n"][0] == 2


def test_positions_of_an_upload_are_compared_with_outlines(visitor: Visitor) -> None:
    table = votable(n=[1, 2, 3], ra=[10.0, 11.0, 90.0], dec=[-1.0, -1.0, 0.0])
    query = (
        "SELECT t.n, o.obs_id FROM tap_upload.t, ivoa.obscore o "
        "WHERE CONTAINS(POINT(t.ra, t.dec), o.s_region) = {is_in} AND o.obs_id LIKE 'p%' "
        "ORDER BY 1, 2"
    )
    inside = rows_of(asked(visitor, query.format(is_in=1), t=table).text)
    assert [(row["n"], row["obs_id"]) for row in inside] == [
        ("1", "plain.fits"),
        *(("2", f"packed.fit.{kind}") for kind in ("bz2", "fz", "gz")),
    ]
    outside = rows_of(asked(visitor, query.format(is_in=0), t=table).text)
    assert len(outside) == 3 * 5 - 4
    polygon = query.replace("o.s_region", "BOX(10, -1, 1, 1)").format(is_in=1)
    assert {row["n"] for row in rows_of(asked(visitor, polygon, t=table).text)} == {"1"}


def test_columns_of_an_upload_are_as_they_were(visitor: Visitor) -> None:
    columns = {
        "select": ("short", "1", "2"),
        'a"; DROP TABLE granules; --': ("double", "0.5", "NaN"),
        "é %(x)s": ("char", "it's", "b"),
        "big": ("long", str(2**62), "-5"),
    }
    many = 'arraysize="*"'
    fields = "".join(
        f'<FIELD name={quoteattr(name)} datatype="{kind}" {many if kind == "char" else ""}/>'
        for name, (kind, *_) in columns.items()
    )
    cells = ["".join(f"<TD>{column[row]}</TD>" for column in columns.values()) for row in (1, 2)]
    content = (
        '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE><TABLE>'
        f"{fields}<DATA><TABLEDATA><TR>{'</TR><TR>'.join(cells)}</TR></TABLEDATA></DATA>"
        "</TABLE></RESOURCE></VOTABLE>"
    ).encode()
    answer = asked(visitor, "SELECT * FROM TAP_UPLOAD.t ORDER BY 1", t=content)
    assert answer.status_code == 200, answer.text
    header, *rows = csv.reader(io.StringIO(answer.text))
    assert header == list(columns)
    assert rows == [["1", "0.5", "it's", str(2**62)], ["2", "", "b", "-5"]]
    assert csv_count(visitor) == "12"


def csv_count(visitor: Visitor) -> str:
    data = {"LANG": "ADQL", "QUERY": COUNT, "FORMAT": "csv"}
    return visitor.client.post("tap/sync", data=data).text.split()[1]


BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<VOTABLE><RESOURCE><TABLE><FIELD name="x" datatype="char" arraysize="*"/>
<DATA><TABLEDATA><TR><TD>&b;</TD></TR></TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (BOMB, "expected no document type, found one"),
        (b"<VOTABLE>", "cannot be read"),
        (b"not a table", "cannot be read"),
        (b"", "cannot be read"),
        (b"\x1f\x8b\x08" + b"\x00" * 50, "expected no compression"),
        (votable(x=np.array([np.inf])), "expected finite numbers"),
        (votable(x=np.zeros((2, 3))), "expected columns of numbers or texts, found none"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(visitor: Visitor, content: bytes, why: str) -> None:
    answer = asked(visitor, "SELECT * FROM TAP_UPLOAD.t", t=content)
    assert answer.status_code == 400
    assert why in answer.text, answer.text


@pytest.mark.parametrize(
    ("upload", "status", "why"),
    [
        ("t,http://169.254.169.254/latest/meta-data", 403, "may not be read by URL here"),
        ("t,http://127.0.0.1:1/t.vot", 403, "may not be read by URL here"),
        ("t,http://user@example.org/t.vot", 403, "without a user"),
        ("t,file:///etc/passwd", 400, "expected param:NAME"),
        ("t,vos://example.org/t", 400, "expected param:NAME"),
        ("t", 400, "expected param:NAME"),
        ("t,param:u", 400, "expected one part 'u' of the form, found 0"),
        ("a b,param:u", 400, "expected a name of letters and digits"),
        (";".join(f"t{number},param:u" for number in range(6)), 400, "at most 5 tables"),
        ("t,param:u;T,param:u", 400, "found T twice"),
    ],
)
def test_uploads_from_elsewhere_are_refused(
    visitor: Visitor, upload: str, status: int, why: str
) -> None:
    for path in ("tap/sync", "tap/async"):
        data = {"LANG": "ADQL", "QUERY": "SELECT * FROM TAP_UPLOAD.t", "UPLOAD": upload}
        answer = visitor.client.post(path, data=data)
        assert answer.status_code == status
        assert why in answer.text, answer.text


# ---- The user's own jobs


def test_own_jobs_are_tables(visitor: Visitor) -> None:
    url = create(visitor, ID=[did("made", "plain.fits")], CIRCLE=["10 -1 0.01", "50 50 0.01"])
    visitor.client.post(f"{url}/phase", data={"PHASE": "RUN"})
    ended(url)
    job_id = url.rpartition("/")[2]
    query = (
        "SELECT j.phase, j.operation, r.row_number, r.status, r.name, r.result_size "
        f"FROM jobs.job AS j JOIN jobs.row AS r ON j.job_id = r.job_id WHERE j.job_id = '{job_id}' "
        "ORDER BY r.row_number"
    )
    rows = rows_of(asked(visitor, query).text)
    assert [row["status"] for row in rows] == ["ok", "no-overlap"]
    assert {row["phase"] for row in rows} == {"COMPLETED"}
    assert {row["operation"] for row in rows} == {"cut"}
    assert int(rows[0]["result_size"]) > 1000
    (row,) = rows_of(
        asked(visitor, f"SELECT created, ok_count FROM jobs.job WHERE job_id = '{job_id}'").text
    )
    assert row["created"].startswith("20")
    assert row["created"].endswith("Z")
    assert row["ok_count"] == "1"
