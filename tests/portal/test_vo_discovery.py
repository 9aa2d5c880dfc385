"""SIA2, DataLink and VOSI: pyvo finds images and cuts them, stilts has nothing to say."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import astropy.units as u
import numpy as np
import pytest
from astropy.io import fits
from astropy.io.votable import parse
from astropy.wcs import WCS
from PIL import Image
from pyvo.dal import DALQuery
from pyvo.dal.adhoc import DatalinkResults, DatalinkService
from pyvo.dal.exceptions import DALQueryError, DALServiceError
from pyvo.dal.sia2 import SIA2Service

from swathe.catalog import Catalog
from tests.support.portals import database_in
from tests.support.vo_archive import AUTHORITY, BEGIN_MJD, Visitor, did, visited

PLAIN = did("made", "plain.fits")
CUBE = did("made", "cube.fits")
TWO = [did("made", "two.fits", hdu) for hdu in (1, 2)]
MADE = 12


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("discovery")) as found:
        yield found


@pytest.fixture(scope="module")
def service(visitor: Visitor) -> SIA2Service:
    return SIA2Service(visitor.base)


def stilts(task: str, *arguments: str) -> str:
    """Run a task of stilts; gives all that it says."""
    if shutil.which("stilts") is None:
        pytest.skip("stilts is not installed")
    done = subprocess.run(
        ["stilts", task, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def assert_no_errors(told: str) -> None:
    """By the sums that lints end with."""
    totals = re.search(r"Totals:.*", told)
    assert totals is not None, told
    assert re.search(r"Errors: 0; .*Failures: 0", totals[0]), told


def found(visitor: Visitor, **given: Any) -> set[str]:
    """DIDs of the dataset `made` that a query gives."""
    answer = visitor.client.get("query", params={"COLLECTION": "made", **given})
    assert answer.status_code == 200, answer.text
    (table,) = parse(BytesIO(answer.content)).iter_tables()
    dids = {str(each) for each in table.array["obs_publisher_did"]}
    return {each.partition("?")[2].partition(".fits")[0].partition(".fit.")[0] for each in dids}


# ---- pyvo: from a place to pixels


def test_search_links_cut(visitor: Visitor, service: SIA2Service) -> None:
    """What the tutorial of every archive does, in one round trip less."""
    results = service.search(pos=(10.0, -1.0, 0.001), collection="made")
    assert [str(each) for each in results["obs_publisher_did"]] == [PLAIN]
    record = results[0]
    assert record.access_format == "application/x-votable+xml;content=datalink"
    assert record.dataproduct_type == "image" and record.s_xel1 == 400
    assert record.t_exptime.to_value(u.s) == pytest.approx(54)
    data = fits.getdata(visitor.folder / "plain.fits")
    circle = (10.0, -1.0, 10.2e-4) * u.deg
    with fits.open(BytesIO(record.processed(circle=circle).read())) as hdus:
        assert (np.array(hdus[0].data) == data[139:160, 189:210]).all()
    (links,) = results.iter_datalinks()
    assert links.original_row["obs_publisher_did"] == PLAIN
    assert {row.semantics for row in links} == {"#this", "#cutout", "#preview"}
    cutout = next(links.bysemantics("#cutout", include_narrower=False))
    with fits.open(BytesIO(cutout.process(circle=circle).read())) as hdus:
        assert hdus[0].data.shape == (21, 21)
    with fits.open(BytesIO(cutout.processed(circle=circle).read())) as hdus:
        assert hdus[0].data.shape == (21, 21)
    whole = next(links.bysemantics("#this", include_narrower=False))
    answer = visitor.client.get(whole.access_url)
    assert answer.content == (visitor.folder / "plain.fits").read_bytes()


def test_cuts_of_records_without_a_description(visitor: Visitor, service: SIA2Service) -> None:
    """pyvo then follows access_url."""
    results = service.search(pos=(150.0, 2.0, 0.001), collection="made")
    (links,) = results.iter_datalinks()
    direct = DatalinkResults.from_result_url(results[0].access_url)
    assert {row.semantics for row in direct} == {row.semantics for row in links}
    cutout = next(links.bysemantics("#cutout", include_narrower=False))
    band = (299_792_458 / 103e9, 299_792_458 / 102e9) * u.m
    content = cutout.process(circle=(150, 2, 3e-4) * u.deg, band=band, pol=["I", "Q"]).read()
    with fits.open(BytesIO(content)) as hdus:
        assert hdus[0].data.shape[:2] == (2, 2)
        assert WCS(hdus[0].header).naxis == 4


def test_links_of_many_records_are_their_own(visitor: Visitor, service: SIA2Service) -> None:
    """Each record is cut from itself, whichever description the client takes."""
    results = service.search(collection="made")
    assert len(results) == MADE
    seen = {}
    for links in results.iter_datalinks():
        identifier = links.original_row["obs_publisher_did"]
        cutout = next(links.bysemantics("#cutout", include_narrower=False))
        content = cutout.process(sub="[1:1,1:1]").read()
        with fits.open(BytesIO(content)) as hdus:
            image = next(hdu for hdu in hdus if hdu.data is not None)
            seen[identifier] = np.ravel(image.data)[0]
    assert len(seen) == MADE
    for name in ("plain.fits", "zero.fits", "pole.fits"):
        assert seen[did("made", name)] == fits.getdata(visitor.folder / name)[0, 0]
    for hdu, identifier in enumerate(TWO, 1):
        assert seen[identifier] == fits.getdata(visitor.folder / "two.fits", hdu)[0, 0]


def test_more_ids_than_are_answered_at_once(visitor: Visitor) -> None:
    """pyvo asks again for the rest."""
    ids = [f"ivo://{AUTHORITY}/made?nothing{number}.fits,0" for number in range(130)]
    answer = visitor.client.post("links", data={"ID": [*ids, PLAIN]})
    assert answer.status_code == 200
    assert b'name="QUERY_STATUS" value="OVERFLOW"' in answer.content
    (table,) = parse(BytesIO(answer.content)).iter_tables()
    assert [str(each) for each in table.array["ID"]] == ids[:100]
    assert all(str(each).startswith("NotFoundFault: ") for each in table.array["error_message"])


def test_links_service(visitor: Visitor) -> None:
    links = DatalinkService(f"{visitor.base}/links").run_sync([*TWO, PLAIN, "nothing", PLAIN])
    ids = [row.id for row in links]
    assert ids == [TWO[0]] * 3 + [TWO[1]] * 3 + [PLAIN] * 3 + ["nothing"]
    for row in links:
        told = [bool(each) for each in (row["access_url"], row.service_def, row.error_message)]
        assert sum(told) == 1
    assert links[9].error_message.startswith("NotFoundFault: ")
    assert links[0].content_length == (visitor.folder / "two.fits").stat().st_size
    assert visitor.client.get("links").status_code == 200
    wrong = visitor.client.get("links", params={"ID": PLAIN, "RESPONSEFORMAT": "text/csv"})
    assert wrong.status_code == 400 and wrong.text.startswith("UsageError: RESPONSEFORMAT")


def test_descriptions_tell_what_an_image_covers(visitor: Visitor) -> None:
    answer = visitor.client.get("links", params={"ID": CUBE})
    assert answer.headers["content-type"] == "application/x-votable+xml;content=datalink"
    tree = ElementTree.fromstring(answer.content)
    space = {"v": "http://www.ivoa.net/xml/VOTable/v1.3"}

    def param(name: str) -> ElementTree.Element:
        found = tree.find(f".//v:GROUP[@name='inputParams']/v:PARAM[@name='{name}']", space)
        assert found is not None
        return found

    circle = param("CIRCLE")
    assert circle.get("arraysize") == "3" and circle.get("unit") == "deg"
    coverage = circle.find("v:VALUES/v:MAX", space)
    assert coverage is not None
    ra, dec, radius = map(float, str(coverage.get("value")).split())
    assert ra == pytest.approx(150, abs=1e-3) and dec == pytest.approx(2, abs=1e-3)
    assert 0.003 < radius < 0.0035
    least, most = (param("BAND").find(f"v:VALUES/v:{word}", space) for word in ("MIN", "MAX"))
    assert least is not None and most is not None
    assert float(str(least.get("value"))) == pytest.approx(299_792_458 / 105.5e9)
    assert float(str(most.get("value"))) == pytest.approx(299_792_458 / 99.5e9)
    options = param("POL").findall("v:VALUES/v:OPTION", space)
    assert [option.get("value") for option in options] == ["I", "Q", "U", "V"]
    assert param("ID").get("ref") == "ID" and param("ID").get("value") == ""


# ---- What a search finds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"POS": "CIRCLE 10 -1 0.001"}, {"plain"}),
        ({"POS": ["CIRCLE 10 -1 0.001", "CIRCLE 150 2 0.001"]}, {"plain", "cube"}),
        ({"POS": "RANGE 9.5 11.5 -1.5 -0.5"}, {"plain", "packed"}),
        ({"POS": "POLYGON 9 -2 10.5 -2 10.5 0 9 0"}, {"plain"}),
        ({"POS": "RANGE 350 1 29 31"}, {"zero"}),
        ({"POS": "RANGE 0 360 89 +Inf"}, {"pole"}),
        ({"POS": "CIRCLE 0 90 0.01"}, {"pole"}),
        ({"POS": "CIRCLE 180 89.999 0"}, {"pole"}),
        ({"POS": "CIRCLE 0 0 180", "DPTYPE": "cube"}, {"cube", "film"}),
        ({"DPTYPE": "image", "POS": "CIRCLE 150 2 1"}, set()),
        ({"BAND": "6e-7"}, {"plain"}),
        ({"BAND": "2.9e-3 3.1e-3"}, {"cube"}),
        ({"BAND": ["6e-7 7e-7", "1e-3 +Inf"]}, {"plain", "cube"}),
        ({"TIME": "53633.18 53633.19"}, {"plain"}),
        ({"TIME": "53633.3 53633.4"}, set()),
        ({"ID": PLAIN}, {"plain"}),
        ({"ID": [PLAIN, CUBE, "nothing"], "BAND": "6e-7"}, {"plain"}),
        ({"EXPTIME": "50 60"}, {"plain"}),
        ({"FOV": "0.001 0.02"}, {"cube", "film"}),
        ({"CALIB": "1"}, set()),
        ({"FACILITY": "2.5M"}, {"plain"}),
        ({"FACILITY": "HST"}, set()),
        ({"INSTRUMENT": ["WFC3", "camera"]}, {"plain"}),
        ({"TARGET": "ngc 99"}, {"plain"}),
        ({"TARGET": "M31"}, set()),
        ({"POL": "I"}, {"cube"}),
        ({"POL": ["V", "XX"]}, {"cube"}),
        ({"POL": "XX"}, set()),
        ({"SPATRES": "0 1"}, set()),
        ({"FORMAT": "application/x-votable+xml;content=datalink", "BAND": "6e-7"}, {"plain"}),
        ({"FORMAT": "image/jpeg"}, set()),
        ({"maxrec": "0"}, set()),
    ],
)
def test_what_is_found(visitor: Visitor, given: dict[str, Any], expected: set[str]) -> None:
    assert found(visitor, **given) == expected


def test_what_headers_tell_is_in_the_table(service: SIA2Service) -> None:
    (plain,) = service.search(collection="made", target_name="NGC 99")
    told = [str(plain[name]) for name in ("target_name", "facility_name", "instrument_name")]
    assert told == ["NGC 99", "2.5m", "Camera"]
    (cube,) = service.search(collection="made", pol="Q")
    assert (cube["pol_states"], cube["pol_xel"]) == ("/I/Q/U/V/", 4)


def test_calibration_is_what_the_dataset_was_said_to_be(
    visitor: Visitor, service: SIA2Service
) -> None:
    with Catalog.open(database_in(visitor.portal.folder)) as catalog:
        catalog.set_calib_level("made", 0)
        try:
            raw = service.search(collection="made", calib_level=0)
            assert len(raw) == MADE and set(raw["calib_level"]) == {0}
            assert len(service.search(collection="made", calib_level=2)) == 0
            assert found(visitor, CALIB=["0", "3"]) == found(visitor)
        finally:
            catalog.set_calib_level("made", 2)
    assert len(service.search(collection="made", calib_level=2)) == MADE


def test_images_of_all_the_sky_are_found_by_what_they_show(visitor: Visitor) -> None:
    def names(**given: Any) -> set[str]:
        answer = visitor.client.get("query", params={"COLLECTION": "sky", **given})
        (table,) = parse(BytesIO(answer.content)).iter_tables()
        return {str(each).partition("?")[2] for each in table.array["obs_publisher_did"]}

    everything = names()
    if not everything:
        pytest.skip("the real files are not there")
    assert "allsky_rosat.fits,0" in names(POS="POLYGON 200 10 201 10 201 11")
    assert "M51.fits,0" in everything
    # Beside the ellipse of the map, and on it.
    assert "1904-66_AZP.fits,0" not in names(POS="CIRCLE 10 80 1")


def test_collections_that_are_not_there(visitor: Visitor) -> None:
    answer = visitor.client.get("query", params={"COLLECTION": "nothing"})
    assert answer.status_code == 200 and b"<TR>" not in answer.content
    two = visitor.client.get("query", params={"COLLECTION": ["made", "nothing"], "MAXREC": 2})
    assert two.content.count(b"<TR>") == 2


def test_too_many_rows_are_told(visitor: Visitor, service: SIA2Service) -> None:
    answer = visitor.client.get("query", params={"COLLECTION": "made", "MAXREC": MADE})
    assert b'name="QUERY_STATUS" value="OK"' in answer.content
    answer = visitor.client.get("query", params={"COLLECTION": "made", "MAXREC": MADE - 1})
    assert b'name="QUERY_STATUS" value="OVERFLOW"' in answer.content
    assert len(service.search(collection="made", maxrec=3)) == 3


def test_description_of_cuts_is_inline_where_all_can_be_cut(visitor: Visitor) -> None:
    answer = visitor.client.get("query", params={"COLLECTION": "made", "ID": PLAIN})
    assert b"SODA#sync-1.0" in answer.content
    answer = visitor.client.get("query", params={"ID": did("made", "nowhere.fits")})
    assert b"SODA#sync-1.0" not in answer.content and b"<TR>" in answer.content


@pytest.mark.parametrize(
    "given",
    [
        {"POS": "BOX 1 2 3 4"},
        {"BAND": "x"},
        {"TIME": "2 1"},
        {"FOV": "a b"},
        {"MAXREC": "-1"},
        {"MAXREC": "1e3"},
        {"CALIB": "9"},
        {"POL": "X"},
        {"RESPONSEFORMAT": "text/csv"},
        {"MAXREC": ["1", "2"]},
        {"POS": ["CIRCLE 1 1 1"] * 101},
        {"ID": ["x"] * 1001},
    ],
)
def test_bad_values_are_told(visitor: Visitor, given: dict[str, Any]) -> None:
    answer = visitor.client.post("query", data=given)
    assert answer.status_code == 400
    (told,) = parse(BytesIO(answer.content)).resources[0].infos
    assert (told.name, told.value) == ("QUERY_STATUS", "ERROR")
    name = next(iter(given))
    assert name in told.content
    assert told.content.startswith(("UsageError: ", "MultiValuedParamNotSupported: "))


def test_pyvo_raises_what_is_told(visitor: Visitor) -> None:
    wrong = DALQuery(f"{visitor.base}/query", BAND="2 1")
    with pytest.raises((DALQueryError, DALServiceError), match="smaller number first"):
        wrong.execute()


# ---- Files


def test_files_by_ranges(visitor: Visitor) -> None:
    whole = (visitor.folder / "plain.fits").read_bytes()
    answer = visitor.client.get("file", params={"ID": PLAIN}, headers={"range": "bytes=10-19"})
    assert answer.status_code == 206 and answer.content == whole[10:20]
    assert answer.headers["content-range"] == f"bytes 10-19/{len(whole)}"
    head = visitor.client.head("file", params={"ID": PLAIN})
    assert int(head.headers["content-length"]) == len(whole)
    assert head.headers["content-type"] == "application/fits"
    packed = visitor.client.get("file", params={"ID": did("made", "packed.fit.gz")})
    assert packed.content == (visitor.folder / "packed.fit.gz").read_bytes()
    assert "content-encoding" not in packed.headers


def test_no_other_file_is_given(visitor: Visitor) -> None:
    for identifier in ("/etc/passwd", "made:plain.fits", did("made", "../portal.sqlite")):
        answer = visitor.client.get("file", params={"ID": identifier})
        assert answer.status_code == 404 and answer.text.startswith("UsageError: ")
    assert visitor.client.get("file").status_code == 400
    secret = visitor.folder.parent / "secret.fits"
    path = visitor.folder / "pole.fits"
    kept = path.read_bytes()
    secret.write_bytes(kept)
    path.unlink()
    path.symlink_to(secret)
    try:
        for interface in ("file", "preview", "sync"):
            answer = visitor.client.get(interface, params={"ID": did("made", "pole.fits")})
            assert answer.status_code == 403, interface
            assert answer.text.startswith("AuthorizationError: ")
    finally:
        path.unlink()
        path.write_bytes(kept)
    path.unlink()
    try:
        assert (
            visitor.client.get("file", params={"ID": did("made", "pole.fits")}).status_code == 404
        )
    finally:
        path.write_bytes(kept)


def test_previews(visitor: Visitor) -> None:
    for identifier, size in ((PLAIN, (400, 300)), (CUBE, (50, 40))):
        answer = visitor.client.get("preview", params={"ID": identifier})
        assert answer.headers["content-type"] == "image/png"
        with Image.open(BytesIO(answer.content)) as picture:
            assert picture.size == size


# ---- Validators


def test_capabilities(visitor: Visitor) -> None:
    assert_no_errors(stilts("taplint", f"tapurl={visitor.base}", "stages=CPV"))
    tree = ElementTree.fromstring(visitor.client.get("capabilities").content)
    found = {each.get("standardID") for each in tree}
    assert "ivo://ivoa.net/std/SIA#query-2.0" in found and None not in found


def test_availability(visitor: Visitor) -> None:
    assert_no_errors(stilts("taplint", f"tapurl={visitor.base}", "stages=AVV"))
    assert b"<vosi:available>true</vosi:available>" in visitor.client.get("availability").content


def test_links_are_valid(visitor: Visitor) -> None:
    for ids in ([PLAIN], [CUBE, "nothing", *TWO]):
        url = visitor.client.build_request("GET", "links", params={"ID": ids}).url
        assert_no_errors(stilts("datalinklint", f"votable={url}"))
        told = stilts("votlint", f"votable={url}")
        assert not told.strip(), told


def test_results_are_valid(visitor: Visitor) -> None:
    for query in ("", "?ID=nothing", "?BAND=x", "?COLLECTION=made"):
        told = stilts("votlint", f"votable={visitor.base}/query{query}")
        if query != "?BAND=x":
            assert not told.strip(), told


def test_pages(visitor: Visitor) -> None:
    for path in ("examples", ""):
        url = f"{visitor.base}/{path}".rstrip("/")
        answer = visitor.client.get(url)
        assert answer.status_code == 200
        ElementTree.fromstring(answer.content)
    links = ElementTree.fromstring(visitor.client.get("examples").content).iter(
        "{http://www.w3.org/1999/xhtml}a"
    )
    for link in links:
        assert visitor.client.get(str(link.get("href"))).status_code == 200


def test_times_of_films(visitor: Visitor) -> None:
    """An axis of time is told by its cuts; the catalogue knows none of it."""
    answer = visitor.sync(did("made", "film.fits"), TIME=f"{BEGIN_MJD + 0.2} {BEGIN_MJD + 0.3}")
    with fits.open(BytesIO(answer.content)) as hdus:
        assert hdus[0].data.shape[0] == 1


def test_all_but_what_is_told_of_the_service_needs_a_token(tmp_path: Any) -> None:
    with visited(tmp_path, '[access]\ntokens = "required"\n', real=False) as closed:
        for path in ("capabilities", "availability"):
            assert closed.client.get(path).status_code == 200
        for path in ("query", "links", "sync", "file", "preview", "examples"):
            answer = closed.client.get(path, params={"ID": PLAIN})
            assert answer.status_code == 401
            assert answer.text.startswith("AuthenticationError: ")
