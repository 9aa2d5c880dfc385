"""Whatever `/vo` is asked, it answers as the standards say: Hypothesis asks, astropy reads.

What is asked is near to what makes sense: names of the contract in any case, values that are good,
nearly good or hostile, once or more often, in a query, a form or as several parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import pytest
from astropy.io import fits
from astropy.io.votable import parse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.portal.test_vo_cubes import file_of, line
from tests.support.fits_frames import fits_bytes
from tests.support.portals import put_database
from tests.support.vo_archive import UWS, Visitor, create, did, ended, visited

LABELS = (
    "Error",
    "AuthenticationError",
    "AuthorizationError",
    "ServiceUnavailable",
    "UsageError",
    "MultiValuedParamNotSupported",
)
"""Of SODA 1.0 and DALI 1.1."""
TOLD = re.compile(rf"({'|'.join(LABELS)}): \S[^\n]*\n")
Given = list[tuple[str, str]]

IDS = [
    *(did("made", f"{name}.fits") for name in ("plain", "zero", "pole", "cube", "film", "nowhere")),
    *(did("made", f"packed.{kind}", int(kind == "fit.fz")) for kind in ("fit.gz", "fit.fz")),
    *(did("more", f"{name}.fits") for name in ("other", "last", "line", "gone", "broken")),
    did("made", "two.fits", 2),
]
GOOD: dict[str, tuple[str, ...]] = {
    "ID": tuple(IDS),
    "POS": (
        "CIRCLE 10 -1 0.001",
        "RANGE 9.99 10.01 -1.01 -0.99",
        "RANGE -Inf +Inf 29 90",
        "POLYGON 10 -1 10.001 -1 10 -0.999",
        "CIRCLE 0 0 180",
        "RANGE 0 360 -90 90",
        "CIRCLE 0 90 0",
    ),
    "CIRCLE": ("10 -1 0.001", "150 2 0.01", "0 30 0", "45 89.99 1", "200 -1 180"),
    "POLYGON": ("10 -1 10.001 -1 10 -0.999", "149 1 151 1 151 3 149 3", "0 29 1 30 359 30"),
    "BAND": ("6e-7 7e-7", "0.0029 0.0031", "-Inf +Inf", "0.003", "0 0"),
    "TIME": ("53633.18 53633.19", "-Inf 60000", "53602.5", "53602.5 53604.5"),
    "POL": ("I", "Q", "V", "XX", "POLI"),
    "SUB": ("[1:9,1:9]", "[0]", "[0][1:2,1:2]", "[SCI]", "[ERR,1][3:4,5:6]", "[400:500,300:300]"),
    "RESPONSEFORMAT": (
        "application/fits",
        "image/png",
        "votable",
        "application/x-votable+xml;content=datalink",
    ),
    "RUNID": ("mine", "ü"),
    "MAXREC": ("0", "3", "99999999999999999999"),
    "FOV": ("0.001 0.02", "1"),
    "SPATRES": ("0 1",),
    "SPECRP": ("1 2",),
    "EXPTIME": ("50 60", "-Inf +Inf"),
    "TIMERES": ("1 2",),
    "FACILITY": ("2.5M",),
    "COLLECTION": ("made", "more"),
    "INSTRUMENT": ("camera",),
    "DPTYPE": ("image", "cube"),
    "CALIB": ("2", "0"),
    "TARGET": ("NGC 99",),
    "FORMAT": ("application/x-votable+xml;content=datalink",),
    "PHASE": ("RUN", "PENDING", "COMPLETED", "ABORT"),
    "AFTER": ("2026-11-21T12:00:00Z", "2026-11-21"),
    "LAST": ("2", "0"),
    "WAIT": ("0",),
    "ACTION": ("DELETE",),
    "TARGETS": (
        "file,x0,y0,width,height\nmade:plain.fits,0,0,2,2\n",
        "ra,dec,size_deg\n10,-1,0.001\n",
        f'did,x0,y0,width,height\n"{IDS[0]}",0,0,2,2\n',
        '<?xml version="1.0"?><VOTABLE/>',
    ),
    "UPLOAD": ("targets,param:mine", "targets,http://127.0.0.1/"),
    "MINE": ("file,x0,y0,width,height\nmade:plain.fits,0,0,2,2\n",),
    "DESTRUCTION": ("2030-01-01T00:00:00Z",),
    "EXECUTIONDURATION": ("100",),
}
ALL_VALUES = [value for values in GOOD.values() for value in values]
HOSTILE = (
    "",
    " ",
    "\x00",
    "\x0b\x1f\ufffe",
    "'; DROP TABLE jobs; --",
    "<![CDATA[ ]]></VOTABLE>&x;",
    "../../etc/passwd",
    "ivo://archive.example/made?../plain.fits,0",
    "ivo://archive.example/made?plain.fits,999999999",
    "ivo://archive.example/made?plain.fits,99999999999999999999",
    "%s%n%00",
    "nan nan nan",
    "inf inf inf",
    "1e999 -1e999",
    "1e308 1e308 1e308",
    "-0 -0 0",
    "360 90 1e-300",
    "1_0 1_0 1",
    "\u0661\u0662 0 1",
    "9" * 5000,
    "1 " * 3000,
    "[" * 200 + "]" * 200,
    "POLYGON " + "10 -1 " * 400,
    "RANGE 10 10 -1 -1",
    "RANGE 350 10 -90 -90",
    "POLYGON 0 90 120 89 240 89",
    "POLYGON 10 -1 11 -1 12 -1",
    "POLYGON 10 -1 10.1 -0.9 10.1 -1 10 -0.9",
)
WORDS = st.sampled_from([word for value in ALL_VALUES for word in value.split()])


@st.composite
def near(draw: st.DrawFn, value: str) -> str:
    """A value of which something is otherwise."""
    words = value.split()
    at = draw(st.integers(0, len(words) - 1))
    match draw(st.sampled_from(("drop", "add", "other", "case", "comma", "number", "blanks"))):
        case "drop":
            words.pop(at)
        case "add":
            words.insert(at, draw(WORDS))
        case "other":
            words[at] = draw(st.text(max_size=20))
        case "case":
            words[at] = words[at].swapcase()
        case "comma":
            return ",".join(words)
        case "number":
            words[at] = repr(draw(st.floats()))
        case _:
            return f"\t {value} \n"
    return " ".join(words)


def values(name: str) -> st.SearchStrategy[str]:
    good = st.sampled_from(GOOD.get(name, ("x",)))
    others = st.sampled_from(ALL_VALUES) | st.sampled_from(HOSTILE) | st.text(max_size=60)
    return st.one_of(good, good, good, good.flatmap(near), others)


@st.composite
def asked(draw: st.DrawFn, *needed: str, usual: tuple[str, ...] = tuple(GOOD)) -> Given:
    """Parameters: those needed nearly always, and some of the others."""
    names = [name for name in needed if draw(st.integers(0, 9))]
    names += draw(st.lists(st.sampled_from(usual), max_size=3))
    names += draw(st.lists(st.sampled_from(names), max_size=2)) if names else []
    if not draw(st.integers(0, 9)):
        names.append(draw(st.text(max_size=10)))
    cased = [draw(st.sampled_from((name, name.lower(), name.title()))) for name in names]
    return [(of, draw(values(name))) for name, of in zip(names, cased, strict=True)]


SODA = ("POS", "CIRCLE", "POLYGON", "BAND", "TIME", "POL", "SUB", "RESPONSEFORMAT", "RUNID")
SIA = ("POS", "BAND", "TIME", "POL", "FOV", "SPATRES", "SPECRP", "EXPTIME", "TIMERES", "ID",
       "FACILITY", "COLLECTION", "INSTRUMENT", "DPTYPE", "CALIB", "TARGET", "FORMAT", "MAXREC",
       "RESPONSEFORMAT")  # fmt: skip
HOW = st.sampled_from(("get", "get", "get", "form", "parts", "raw", "odd"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def visitor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Visitor]:
    more = {f"{name}.fits": file_of(name) for name in ("other", "last")}
    empty = fits_bytes(fits.PrimaryHDU())
    files = {**more, "line.fits": line(), "gone.fits": file_of("usual"), "empty.fits": empty}
    files["broken.fits"] = file_of("usual")
    folder = tmp_path_factory.mktemp("fuzz")
    with (
        put_database(folder, request),
        visited(folder, "[limits]\njobs = 1000\n", real=False, more=files) as found,
    ):
        (folder / "more" / "gone.fits").unlink()
        path = folder / "more" / "broken.fits"
        path.write_bytes(path.read_bytes()[:3000])
        yield found


def ask(visitor: Visitor, path: str, how: str, given: Given) -> httpx.Response:
    """Ask in one of many ways; an answer that takes half a minute fails."""
    client = visitor.client
    # As bytes, for some are no text of UTF-8.
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given)
    form = {"content-type": "application/x-www-form-urlencoded"}
    match how:
        case "get" if len(query) < 30_000:
            return client.get(f"{path}?{query}")
        case "form" | "get":
            return client.post(path, content=query.encode(), headers=form)
        case "parts":
            fields = [
                (name, (None, value.encode("utf-8", "surrogatepass"))) for name, value in given
            ]
            return client.post(path, files=fields) if fields else client.post(path)
        case "raw":
            broken = query.replace("%2", "%z").replace("=", ";", 1)
            return client.post(
                f"{path}?{broken[:20_000]}", content=b"\xff\xfe=%ff&" + query.encode()
            )
        case _:
            kind = "multipart/form-data; boundary=x"
            content = f"--x\r\n\r\n{query}\r\n--x".encode()
            return client.post(path, content=content, headers={"content-type": kind})


def assert_told(answer: httpx.Response) -> None:
    """An error as SODA has it: a label and why, in one line of text."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert answer.headers["content-type"].startswith("text/plain"), answer.text
    assert TOLD.fullmatch(answer.text), answer.text
    assert "Traceback" not in answer.text


def read_table(answer: httpx.Response) -> Any:
    """A document of the Virtual Observatory; whatever astropy warns of is an error here."""
    assert answer.headers["content-type"].startswith("application/x-votable+xml")
    return parse(BytesIO(answer.content), verify="exception")


def facts(table: Any) -> dict[str, str]:
    (found,) = [each for each in table.resources if each.type == "results"]
    return {each.name: each.value for each in found.infos}


def fuzz(examples: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


def test_sync(visitor: Visitor) -> None:
    @given(HOW, asked("ID", usual=SODA) | asked("ID"))
    @fuzz(400)
    def check(how: str, sent: Given) -> None:
        answer = ask(visitor, "sync", how, sent)
        if answer.status_code == 204:
            assert answer.content == b""
        elif answer.status_code == 200 and answer.headers["content-type"] == "image/png":
            with Image.open(BytesIO(answer.content)) as picture:
                picture.load()
        elif answer.status_code == 200:
            assert answer.headers["content-type"] == "application/fits"
            with fits.open(BytesIO(answer.content)) as hdus:
                assert any(hdu.data is not None for hdu in hdus)
        else:
            assert_told(answer)

    check()


def test_query(visitor: Visitor) -> None:
    @given(HOW, asked(usual=SIA) | asked("POS", "COLLECTION") | asked())
    @fuzz(250)
    def check(how: str, sent: Given) -> None:
        answer = ask(visitor, "query", how, sent)
        told = facts(read_table(answer))["QUERY_STATUS"]
        if answer.status_code == 200:
            assert told in ("OK", "OVERFLOW")
        else:
            assert 400 <= answer.status_code < 500
            assert told == "ERROR"

    check()


def test_links(visitor: Visitor) -> None:
    @given(HOW, asked("ID", "ID", usual=("ID", "RESPONSEFORMAT", "RUNID")) | asked("ID"))
    @fuzz(150)
    def check(how: str, sent: Given) -> None:
        answer = ask(visitor, "links", how, sent)
        if answer.status_code != 200:
            assert_told(answer)
            return
        table = read_table(answer)
        assert facts(table)["standardID"] == "ivo://ivoa.net/std/DataLink#links-1.1"
        for row in table.get_first_table().array:
            given = [bool(row[name]) for name in ("access_url", "service_def", "error_message")]
            assert sum(given) == 1

    check()


def test_async(visitor: Visitor) -> None:
    names = (*SODA, "PHASE", "TARGETS", "UPLOAD", "MINE")

    @given(HOW.filter(lambda how: how != "get"), asked("ID", usual=names) | asked("TARGETS"))
    @fuzz(250)
    def check(how: str, sent: Given) -> None:
        answer = ask(visitor, "async", how, sent)
        if answer.status_code != 303:
            assert_told(answer)
            return
        url = answer.headers["location"]
        for child in ("", "/parameters", "/results"):
            ElementTree.fromstring(httpx.get(f"{url}{child}").content)
        assert httpx.delete(url).status_code == 303

    check()


def test_jobs_come_to_an_end_with_a_result_of_every_row(visitor: Visitor) -> None:
    @given(asked("ID", "ID", usual=SODA[:-2]))
    @fuzz(40)
    def check(sent: Given) -> None:
        answer = ask(visitor, "async", "form", [*sent, ("PHASE", "RUN")])
        if answer.status_code != 303:
            assert_told(answer)
            return
        url = answer.headers["location"]
        tree = ended(url)
        cut = 0
        for each in tree.iterfind(".//uws:result", UWS):
            found = httpx.get(str(each.get("{http://www.w3.org/1999/xlink}href")))
            assert found.status_code == 200
            if found.headers["content-type"] == "application/fits":
                fits.open(BytesIO(found.content)).close()
                cut += 1
            elif each.get("id") not in ("manifest", "result"):
                assert TOLD.fullmatch(found.text), found.text
        phase = tree.findtext("uws:phase", "", UWS)
        assert phase == "COMPLETED" or (phase, cut) == ("ERROR", 0)
        assert httpx.delete(url).status_code == 303

    check()


def test_jobs_are_listed_and_changed(visitor: Visitor) -> None:
    job = create(visitor, ID=IDS[0], SUB="[1:2,1:2]").rpartition("/")[2]
    children = ("phase", "executionduration", "destruction", "error", "quote", "results", "owner",
                "parameters", "results/result", "results/cutout-1", "x")  # fmt: skip
    paths = st.sampled_from(["async", f"async/{job}", *(f"async/{job}/{of}" for of in children)])
    names = ("PHASE", "AFTER", "LAST", "ACTION", "EXECUTIONDURATION")

    @given(paths, HOW, asked(usual=names))
    @fuzz(200)
    def check(path: str, how: str, sent: Given) -> None:
        # What ends the job, or waits for it, is of other tests.
        words = {word.upper() for _, value in sent for word in value.split()}
        if path != "async" and words & {"DELETE", "RUN", "ABORT"}:
            return
        answer = ask(visitor, path, how if path != "async" else "get", sent)
        if answer.status_code >= 400:
            if answer.status_code != 405:
                assert_told(answer)
        elif "xml" in answer.headers.get("content-type", ""):
            ElementTree.fromstring(answer.content)
        else:
            assert answer.status_code in (200, 303)

    check()
    assert httpx.get(f"{visitor.base}/async/{job}/phase").text == "PENDING"


def test_jobs_are_kept_as_long_as_is_asked(visitor: Visitor) -> None:
    """Also for no time at all: then they are gone."""

    @given(values("DESTRUCTION"))
    @fuzz(60)
    def check(until: str) -> None:
        url = create(visitor, ID=IDS[0], SUB="[1:2,1:2]")
        answer = ask(visitor, f"{url}/destruction", "form", [("DESTRUCTION", until)])
        if answer.status_code != 303:
            assert_told(answer)
        assert httpx.get(url).status_code in (200, 404)
        assert httpx.delete(url).status_code in (303, 404)

    check()


def test_files_and_previews(visitor: Visitor) -> None:
    @given(st.sampled_from(("file", "preview")), asked("ID", usual=("ID", "RUNID")))
    @fuzz(60)
    def check(path: str, sent: Given) -> None:
        answer = ask(visitor, path, "get", sent)
        if answer.status_code != 200 and answer.status_code != 405:
            assert_told(answer)

    check()


@pytest.mark.parametrize("path", ["capabilities", "availability", "examples", ""])
def test_documents_whatever_is_added(visitor: Visitor, path: str) -> None:
    @given(asked())
    @fuzz(15)
    def check(sent: Given) -> None:
        url = f"{visitor.base}/{path}".rstrip("/")
        answer = ask(visitor, url, "get", [each for each in sent if len(each[1]) < 3000])
        assert answer.status_code == 200
        ElementTree.fromstring(answer.content)

    check()
