"""SODA of cubes whose axes come in any order, at once and by jobs; astropy is the judge."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import astropy.units as u
import httpx
import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS
from numpy.typing import NDArray
from pyvo.dal.adhoc import SodaQuery

from tests.conftest import assert_same
from tests.support.fits_frames import contents, fits_bytes
from tests.support.vo_archive import Visitor, create, did, ended, results, visited

C = 299_792_458.0
LENGTHS = {"RA": 50, "DEC": 40, "FREQ": 6, "STOKES": 4}
CARDS: dict[str, tuple[str, float, float, float, str]] = {
    "RA": ("RA---TAN", 150.0, -1e-4, 25.0, "deg"),
    "DEC": ("DEC--TAN", 2.0, 1e-4, 20.0, "deg"),
    "FREQ": ("FREQ", 100e9, 1e9, 1.0, "Hz"),
    "STOKES": ("STOKES", 1.0, 1.0, 1.0, ""),
}
ORDERS = {
    "usual": ("RA", "DEC", "FREQ", "STOKES"),
    "other": ("RA", "DEC", "STOKES", "FREQ"),
    "packed": ("RA", "DEC", "FREQ", "STOKES"),
    "last": ("FREQ", "STOKES", "RA", "DEC"),
    "between": ("STOKES", "DEC", "FREQ", "RA"),
}
WANTED = {"RA": (17, 24), "DEC": (7, 14), "FREQ": (2, 4), "STOKES": (1, 2)}
"""What of each axis shows any of CIRCLE, BAND and POL."""
BAND = f"{C / 103e9!r} {C / 102e9!r}"


def pixels_of(name: str) -> NDArray[np.int16]:
    shape = [LENGTHS[axis] for axis in ORDERS[name][::-1]]
    return np.random.default_rng(len(name)).normal(0, 50, shape).astype(np.int16)


def header_of(name: str) -> fits.Header:
    header = fits.Header({"RADESYS": "ICRS"})
    for number, axis in enumerate(ORDERS[name], 1):
        words = ("CTYPE", "CRVAL", "CDELT", "CRPIX", "CUNIT")
        for word, value in zip(words, CARDS[axis], strict=True):
            header[f"{word}{number}"] = value
    return header


def file_of(name: str) -> bytes:
    if name == "packed":
        return contents(pixels_of(name), "fit.fz", header_of(name))
    return fits_bytes(fits.PrimaryHDU(pixels_of(name), header_of(name)))


def line() -> bytes:
    """A spectrum, and no plane."""
    return fits_bytes(fits.PrimaryHDU(np.arange(50, dtype="i2"), fits.Header({"CTYPE1": "FREQ"})))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    files = {f"{name}.fits": file_of(name) for name in ORDERS}
    folder = tmp_path_factory.mktemp("cubes")
    with visited(folder, real=False, more={**files, "line.fits": line()}) as found:
        yield found


def did_of(name: str) -> str:
    return did("more", f"{name}.fits", int(name == "packed"))


def circle() -> str:
    ra, dec = WCS(header_of("usual")).celestial.wcs_pix2world([[20, 10]], 0)[0].tolist()
    return f"{ra!r} {dec!r} 3e-4"


def check(content: bytes, name: str, *narrowed: str, **spans: tuple[int, int]) -> None:
    """Compare a cut, its pixels and all axes of its WCS, with the image that was made."""
    order = ORDERS[name]
    wanted = {axis: (0, length) for axis, length in LENGTHS.items()}
    wanted |= {axis: WANTED[axis] for axis in narrowed} | spans
    with fits.open(BytesIO(content)) as hdus:
        found = next(hdu for hdu in hdus if hdu.data is not None)
        expected = pixels_of(name)[tuple(slice(*wanted[axis]) for axis in order[::-1])]
        assert_same(np.array(found.data), expected.astype(found.data.dtype))
        here, there = WCS(found.header), WCS(header_of(name))
        ends = np.array([[first, last - 1] for first, last in (wanted[axis] for axis in order)]).T
        at = here.all_pix2world(ends - ends[0], 0)
        assert np.allclose(at, there.all_pix2world(ends, 0), rtol=1e-12, atol=0)
        starts = [wanted[axis][0] for axis in order]
        crpix = [CARDS[axis][3] - first for axis, first in zip(order, starts, strict=True)]
        assert here.wcs.crpix.tolist() == crpix


@pytest.mark.parametrize("name", ORDERS)
def test_at_once(visitor: Visitor, name: str) -> None:
    identifier = did_of(name)

    def cut(**given: Any) -> bytes:
        answer = visitor.sync(identifier, **given)
        assert answer.status_code == 200, answer.text
        return answer.content

    check(cut(POL="Q"), name, "STOKES")
    check(cut(POL=["U", "Q"]), name, STOKES=(1, 3))
    check(cut(BAND=BAND, POL="Q"), name, "FREQ", "STOKES")
    check(cut(CIRCLE=circle()), name, "RA", "DEC")
    check(cut(CIRCLE=circle(), BAND=BAND, POL="Q"), name, *WANTED)
    assert visitor.sync(identifier, POL="RR").status_code == 204
    query = SodaQuery(f"{visitor.base}/sync", id=identifier)
    query.band = [102, 103] * u.GHz
    query.pol.add("Q")
    check(query.execute_stream(post=True).read(), name, "FREQ", "STOKES")


@pytest.mark.parametrize("name", ORDERS)
def test_by_jobs(visitor: Visitor, name: str) -> None:
    identifier = did_of(name)

    def cut(**given: Any) -> dict[str, bytes]:
        found = results(ended(create(visitor, ID=identifier, PHASE="RUN", **given)))
        return {part: httpx.get(url).content for part, (url, _) in found.items()}

    check(cut(POL="Q")["result"], name, "STOKES")
    check(cut(BAND=BAND, POL=["U", "Q"])["result"], name, "FREQ", STOKES=(1, 3))
    found = cut(CIRCLE=circle(), BAND=[BAND, "1e-7 1e-6", f"{C / 100e9!r}"], POL="Q")
    check(found["cutout-00001"], name, *WANTED)
    assert found["cutout-00002"].startswith(b"UsageError: ")
    check(found["cutout-00003"], name, "RA", "DEC", "STOKES", FREQ=(0, 1))
    assert cut(POL="RR")["result"].startswith(b"UsageError: ")


def test_all_orders_are_found_alike(visitor: Visitor) -> None:
    """Wherever the axes of the sky are."""
    answer = visitor.client.get("query", params={"COLLECTION": "more", "POS": f"CIRCLE {circle()}"})
    assert answer.text.count("<TR>") == len(ORDERS)
    away = visitor.client.get("query", params={"COLLECTION": "more", "POS": "CIRCLE 150.01 2 1e-4"})
    assert away.text.count("<TR>") == 0


def test_tables_name_planes_of_all_axes(visitor: Visitor) -> None:
    rows = "file,x0,y0,width,height,planes\nmore:usual.fits,17,7,7,7,"
    for planes, spans in (
        ('"2:4,1:2"', {"FREQ": (2, 4), "STOKES": (1, 2)}),
        ("2:4", {"FREQ": (2, 4)}),
        ('"0:6,1:2"', {"STOKES": (1, 2)}),
    ):
        url = create(visitor, TARGETS=f"{rows}{planes}\n", PHASE="RUN")
        found = httpx.get(results(ended(url))["result"][0]).content
        check(found, "usual", "RA", "DEC", **spans)
    for planes in ('"2:4,2:1"', '"2:4,"', '"2:4,1"'):
        url = create(visitor, TARGETS=f"{rows}{planes}\n", PHASE="RUN")
        assert "option planes" in httpx.get(results(ended(url))["result"][0]).text


def test_targets_in_the_sky_need_its_axes_first(visitor: Visitor) -> None:
    """Boxes are of NAXIS1 and NAXIS2: of another axis they would be wrong pixels."""
    url = create(visitor, TARGETS="file,ra,dec,size_deg\nmore:last.fits,150,2,1e-3\n", PHASE="RUN")
    told = httpx.get(results(ended(url))["result"][0]).text
    assert told.startswith("Error: ") and "its sky is on axes 3 and 4" in told


def test_what_is_no_plane(visitor: Visitor) -> None:
    assert visitor.pixels(did("more", "line.fits")).tolist() == list(range(50))
    refused = visitor.client.post("async", data={"ID": did("more", "line.fits")})
    assert refused.status_code == 400 and "expected two axes or more" in refused.text
