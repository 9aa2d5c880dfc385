"""Tables that users send to a portal."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import lzma
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any

import pytest
from astropy.table import Table

from swathe.core.confined import ConfinedProcess
from swathe.core.errors import LimitError, TargetsError
from swathe.files.targets import resolver
from swathe.portal import uploads
from swathe.portal.pasted_targets import PastedTargets, read_paste
from swathe.portal.uploads import IMPORTS, SMALL, Uploads, columns_of

CONFINED = ConfinedProcess(imports=IMPORTS)


@pytest.fixture(autouse=True, scope="module")
def confined() -> Iterator[None]:
    yield
    CONFINED.close()


def table_of_file(file: IO[bytes], name: str, most_rows: int) -> Table:
    """Read a table as the portal does."""
    return asyncio.run(Uploads(CONFINED, most_rows, 512).table(file, name))


ROWS = {"file": ["a:b.fits", "a:c.fits"], "x": [1.0, 2.0]}
CSV = b"file,x\na:b.fits,1.0\na:c.fits,2.0\n"


def written(form: str, **how: Any) -> bytes:
    file = io.BytesIO()
    Table(ROWS).write(file, format=form, **how)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", CSV),
        ("T.CSV", CSV),
        ("t.vot", written("votable")),
        ("t.xml", written("votable", tabledata_format="binary2")),
        ("t.parquet", b""),
    ],
)
def test_tables_are_read_by_suffix(name: str, content: bytes) -> None:
    if name.endswith("parquet"):
        import pyarrow
        from pyarrow import parquet

        file = io.BytesIO()
        parquet.write_table(pyarrow.table(ROWS), file)
        content = file.getvalue()
    table = table_of_file(io.BytesIO(content), name, 2)
    assert [str(value) for value in table["file"]] == ROWS["file"]
    assert table["x"].tolist() == ROWS["x"]
    with pytest.raises(LimitError, match="expected at most 1 rows, found 2"):
        table_of_file(io.BytesIO(content), name, 1)


@pytest.mark.parametrize("name", ["t.txt", "t.dat"])
def test_lists_as_text_are_read(name: str) -> None:
    path_and_box = io.BytesIO(b"survey:a.fits 12 34 5 6\n")
    table = table_of_file(path_and_box, name, 2)
    assert (table["file"][0], table["x"][0], table["width"][0]) == ("survey:a.fits", 12, 6)


ELSEWHERE = """<?xml version="1.0"?>
<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE><TABLE>
<FIELD name="x" datatype="double"/><DATA><BINARY><{tag} href="file:///etc/hostname"/></BINARY></DATA>
</TABLE></RESOURCE></VOTABLE>"""
ENTITIES = b"""<?xml version="1.0"?><!DOCTYPE v [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<VOTABLE version="1.4">&a;</VOTABLE>"""


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (ELSEWHERE.format(tag="STREAM").encode(), "expected its data inline"),
        (ELSEWHERE.format(tag="STREAM").encode("utf-16"), "expected its data inline"),
        (ENTITIES, "expected no document type"),
        (b"", "cannot be read"),
        (b"<VOTABLE", "cannot be read"),
        (CSV, "cannot be read"),
    ],
)
def test_tables_that_lead_elsewhere_are_refused(content: bytes, told: str) -> None:
    with pytest.raises(TargetsError, match=told):
        table_of_file(io.BytesIO(content), "t.xml", 100)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["t.csv", "t.ecsv", "t.vot"])
def test_compressed_tables_are_not_inflated(name: str, pack: Any) -> None:
    with pytest.raises(TargetsError, match="expected no compression"):
        table_of_file(io.BytesIO(pack(bytes(100_000))), name, 100)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.fits", b""),
        ("", CSV),
        ("csv", CSV),
        ("../../x", CSV),
        ("t.parquet", b"PAR1"),
        ("t.parquet", CSV),
        ("t.ecsv", CSV),
    ],
)
def test_what_is_no_table_is_told_by_the_name_users_know(name: str, content: bytes) -> None:
    with pytest.raises(TargetsError) as raised:
        table_of_file(io.BytesIO(content), name, 100)
    assert "swathe-upload" not in str(raised.value)


def test_rows_become_columns() -> None:
    given = [{"file": "a:b", "x": 1}, {"x": 2.5, "hdu": None}]
    assert columns_of(given, 2) == {"file": ["a:b", None], "x": [1, 2.5], "hdu": [None, None]}
    with pytest.raises(LimitError, match="expected at most 1 rows, found 2"):
        columns_of(given, 1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a", "found str"),
        (None, "found NoneType"),
        ({"x": 1}, "column 'x': expected a list, found int"),
        ({"x": [1], "y": [1, 2]}, "expected columns of one length"),
        ({"x": [[1]]}, "row 0: column 'x': expected a number or text, found list"),
        ([1], "row 0: expected {name: value}, found int"),
        ([{"x": {}}], "row 0: column 'x': expected a number or text, found dict"),
        ([{str(name): 1 for name in range(300)}], "at most 200 columns"),
    ],
)
def test_targets_that_are_no_table(given: Any, told: str) -> None:
    with pytest.raises(TargetsError) as raised:
        columns_of(given, 100)
    assert told in str(raised.value)


def test_lines_of_text_are_columns() -> None:
    lines = ['10:00:28.6 +02:12:21 30"', "150.1 2.2 0.5arcmin"]
    columns = columns_of(lines, 2)
    assert columns["ra"] == pytest.approx([150.119166666, 150.1])
    assert columns["size_deg"] == pytest.approx([30 / 3600, 0.5 / 60])
    with pytest.raises(LimitError, match="expected at most 1 rows, found 2"):
        columns_of(lines, 1)
    with pytest.raises(TargetsError, match='line 2: "M31 is nice" is not a position'):
        columns_of([lines[0], "M31 is nice"], 2)


def pasted_list(text: str) -> PastedTargets:
    return asyncio.run(Uploads(CONFINED, 100_000, 512).paste(text))


@pytest.mark.parametrize(
    "text",
    [
        '150.1 2.2 30"\n' * 5000 + "150.1 2.2\nhere\n",
        "id,file,x,y,height,width\n" + "a,s:b.fits,1,2.5,30,\u00e9\n" * 5000 + "short,row\n",
        "ra\tdec\tsize\nrad\tdeg\tarcmin\n---\t---\t---\n" + "1.0\t2.0\t3.0\n" * 5000,
    ],
    ids=["lines", "table", "units"],
)
def test_long_pasted_lists_are_read_as_short_ones_elsewhere(text: str) -> None:
    assert len(text) > SMALL
    here, there = read_paste(text), pasted_list(text)
    assert there.columns == here.columns
    assert (there.faults, there.refusals, there.has_line_numbers) == (
        here.faults,
        here.refusals,
        here.has_line_numbers,
    )
    assert here.table is not None
    assert there.table is not None
    for name in here.table.colnames:
        assert there.table[name].unit == here.table[name].unit
        assert there.table[name].dtype == here.table[name].dtype
        assert there.table[name].tolist() == here.table[name].tolist()


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("k l m\n" * 20_000, TargetsError, 'line 1: "k l m" is not a position'),
        ("# nothing\n" * 20_000, TargetsError, "the list of targets is empty"),
        ("1 2 3\n" * 500_000, LimitError, "the list: expected at most 201,000 lines"),
        ("1" * 60_000, LimitError, "expected lines of at most 20000 characters, found 60000"),
        ("ra,dec,ra\n" + "1,2,3\n" * 20_000, TargetsError, "there are two columns 'ra'"),
    ],
)
def test_faults_of_long_pasted_lists_are_told_as_those_of_short_ones(
    text: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        pasted_list(text)


def test_names_are_asked_about_in_threads_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(_service: str, name: str) -> tuple[float, float]:
        asked.append(threading.current_thread().name)
        return 10.0, 41.0

    monkeypatch.setenv("SWATHE_RESOLVER", "sesame")
    monkeypatch.setattr(resolver, "_ask", ask)
    columns, _ = asyncio.run(
        Uploads(CONFINED, 100, 512).body(json.dumps({"targets": ["3C 273 30arcsec"]}).encode())
    )
    assert columns["ra"] == [10.0]
    assert pasted_list("3C 273 30arcsec\n3C 48 30arcsec").columns["dec"] == [41.0, 41.0]
    assert len(asked) == 3
    assert all(name.startswith("swathe-names") for name in asked)


def test_names_in_long_lists_are_resolved_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%J 10.684708 +41.268750 = 00:42:44.3 +41:16:07\n")

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever).start()
        for name in ("no_proxy", "NO_PROXY", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("SWATHE_RESOLVER", "http://sesame.invalid")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        text = "3C 273 30arcsec\n" + f"# {'long' * 100}\n" * 200
        assert len(text) > SMALL
        try:
            with closing(ConfinedProcess(imports=IMPORTS)) as fresh:
                pasted = asyncio.run(Uploads(fresh, 100, 512).paste(text))
        finally:
            proxy.shutdown()
    assert pasted.table is not None
    assert pasted.table["ra"].tolist() == [10.684708]
    assert len(asked) == 1
    assert asked[0].startswith("http://sesame.invalid/")


@pytest.mark.more
def test_names_are_not_asked_about_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_service: str, _name: str) -> tuple[float, float]:
        time.sleep(0.02)
        return 10.0, 41.0

    monkeypatch.setenv("SWATHE_RESOLVER", "sesame")
    monkeypatch.setattr(resolver, "_ask", ask)
    monkeypatch.setattr(uploads, "NAMES_S", 0.05)
    text = "\n".join(f"3C {number} 30arcsec" for number in range(1, 100))
    with pytest.raises(LimitError, match=r"3C \d: resolving the names before it took 0.05 s"):
        pasted_list(text)
