"""SIA 1.0: pyvo finds images around a position, and gets cutouts of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.io.votable import parse
from astropy.wcs import WCS
from PIL import Image
from pyvo.dal.exceptions import DALQueryError
from pyvo.dal.sia import SIAService

from tests.portal.test_vo_discovery import stilts
from tests.support.vo_archive import Visitor, did, visited

SCALE_DEG = 1e-4
"""Scale of the images: they are 400 by 300 pixels."""


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("sia1"), real=False) as guest:
        yield guest


@pytest.fixture(scope="module")
def service(visitor: Visitor) -> SIAService:
    return SIAService(f"{visitor.base}/sia1")


def rows(visitor: Visitor, **parameters: Any) -> list[Any]:
    """Return the rows of a search."""
    answer = visitor.client.get("sia1", params=parameters)
    assert answer.status_code == 200, answer.text
    assert b'name="QUERY_STATUS" value="OK"' in answer.content, answer.text
    (table,) = parse(BytesIO(answer.content)).iter_tables()
    return list(table.array)


def names(visitor: Visitor, **parameters: Any) -> set[str]:
    """Return the names of the images of a search, as FITS."""
    found = rows(visitor, **{"FORMAT": "image/fits", **parameters})
    return {str(row["title"]).removesuffix(" (cutout)") for row in found}


def test_pyvo_finds_and_cuts(visitor: Visitor, service: SIAService) -> None:
    centre = SkyCoord(10.0, -1.0, unit="deg")
    size = 20.4 * SCALE_DEG * u.deg
    (record,) = service.search(pos=centre, size=size, format="image/fits", intersect="covers")
    assert record.title == "plain.fits (cutout)"
    assert record.format == "image/fits"
    assert record.pos.separation(centre) < 1e-6 * u.deg
    assert record.naxes == 2
    assert record.instr == "Camera"
    assert record.dateobs.mjd == pytest.approx(53633.1875 + 27 / 86400)
    assert np.allclose(u.Quantity(record.scale).to_value(u.deg / u.pix), SCALE_DEG)
    assert record.bandpass_id == "r"
    data = fits.getdata(visitor.folder / "plain.fits")
    with fits.open(BytesIO(record.getdataset().read())) as hdus:
        cut = np.array(hdus[0].data)
    assert cut.shape[0] in (21, 22) and cut.shape[1] in (21, 22)
    naxis = u.Quantity(record.naxis).to_value(u.pix)
    assert np.allclose(naxis[::-1], cut.shape, atol=1)
    middle = data[150 - 10 : 150 + 9, 200 - 10 : 200 + 9]
    assert any(
        (cut[y : y + 19, x : x + 19] == middle).all()
        for y in range(cut.shape[0] - 18)
        for x in range(cut.shape[1] - 18)
    )


def test_without_a_size_images_are_whole(visitor: Visitor) -> None:
    image, picture = rows(visitor, POS="10.0,-1.0", SIZE="0")
    assert (image["title"], image["format"]) == ("plain.fits", "image/fits")
    assert image["naxis"].tolist() == [400, 300]
    assert image["pixels"] == "C" and image["size"] > 400 * 300
    assert image["publisher_did"] == did("made", "plain.fits")
    content = visitor.client.get(str(image["access_url"])).content
    with fits.open(BytesIO(content)) as hdus:
        assert hdus[0].data.shape == (300, 400)
        wcs = WCS(hdus[0].header)
        corner = wcs.pixel_to_world(0, 0)
        assert corner.separation(SkyCoord(image["ra"], image["dec"], unit="deg")) < 0.03 * u.deg
    assert (picture["format"], picture["pixels"]) == ("image/png", "V")
    content = visitor.client.get(str(picture["access_url"])).content
    assert Image.open(BytesIO(content)).size == tuple(picture["naxis"].tolist())


def test_pictures_of_cutouts(visitor: Visitor) -> None:
    (row,) = rows(visitor, POS="10.0,-1.0", SIZE="0.002", FORMAT="GRAPHIC")
    content = visitor.client.get(str(row["access_url"])).content
    size = Image.open(BytesIO(content)).size
    assert np.allclose(size, row["naxis"], atol=1)


@pytest.mark.parametrize(
    ("word", "size", "expected"),
    [
        ("OVERLAPS", "0.001", True),
        ("COVERS", "0.001", True),
        ("CENTER", "0.001", True),
        ("ENCLOSED", "0.001", False),
        ("ENCLOSED", "0.06,0.06", True),
        ("COVERS", "0.06,0.06", False),
        # Wider than the image, and less high.
        ("ENCLOSED", "0.06,0.02", False),
        ("COVERS", "0.06,0.02", False),
        ("OVERLAPS", "0.06,0.02", True),
    ],
)
def test_intersections_at_the_centre(
    visitor: Visitor, word: str, size: str, expected: bool
) -> None:
    found = names(visitor, POS="10.0,-1.0", SIZE=size, INTERSECT=word)
    assert found == ({"plain.fits"} if expected else set())


@pytest.mark.parametrize(
    ("word", "expected"),
    [("OVERLAPS", True), ("COVERS", False), ("CENTER", False), ("ENCLOSED", False)],
)
def test_intersections_beside_the_image(visitor: Visitor, word: str, expected: bool) -> None:
    """The region begins a little to the east of the image, whose half width is 0.02 degrees."""
    found = names(visitor, POS="10.025,-1.0", SIZE="0.02", INTERSECT=word.lower())
    assert found == ({"plain.fits"} if expected else set())


def test_regions_over_the_first_meridian_and_at_the_pole(visitor: Visitor) -> None:
    assert names(visitor, POS="359.999,30", SIZE="0.001") == {"zero.fits"}
    assert names(visitor, POS="-0.001,30", SIZE="0.001") == {"zero.fits"}
    assert names(visitor, POS="225,90", SIZE="0.05", INTERSECT="COVERS") == set()
    assert names(visitor, POS="225,90", SIZE="0.02") == {"pole.fits"}
    assert names(visitor, POS="0,90", SIZE="0") == {"pole.fits"}
    assert names(visitor, POS="0,90", SIZE="0.2", INTERSECT="ENCLOSED") == {"pole.fits"}


def test_a_width_is_an_angle_on_the_sky(visitor: Visitor) -> None:
    """At 60 degrees it is half as wide as in right ascension. Here: 30 degrees, 0.001 of RA."""
    across = math.cos(math.radians(30))
    reach = 0.02 + 0.01 * across
    assert names(visitor, POS=f"{0.001 + 0.98 * reach / across},30", SIZE=f"{0.02 * across},0.001")
    assert not names(
        visitor, POS=f"{0.001 + 1.05 * reach / across},30", SIZE=f"{0.02 * across},0.001"
    )


def test_hdus_and_datasets(visitor: Visitor) -> None:
    found = rows(visitor, POS="20.0,5.0", SIZE="0.001", FORMAT="image/fits")
    assert sorted(str(row["title"]) for row in found) == [
        "two.fits, ERR (cutout)",
        "two.fits, SCI (cutout)",
    ]
    assert len({str(row["access_url"]) for row in found}) == 2
    assert not names(visitor, POS="20.0,5.0", SIZE="0.001", COLLECTION="other")
    (row,) = rows(visitor, POS="150.0,2.0", SIZE="0", FORMAT="image/fits")
    assert (row["naxes"], row["naxis"].tolist()) == (4, [50, 40, 6, 4])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALL", ["image/fits", "image/png"]),
        ("image/fits", ["image/fits"]),
        ("application/fits,image/jpeg", ["image/fits"]),
        ("GRAPHIC", ["image/png"]),
        ("GRAPHIC-ALL", ["image/png"]),
        ("GRAPHIC-jpeg,png", ["image/png"]),
        ("GRAPHIC-jpeg,gif", []),
        ("text/html", []),
    ],
)
def test_formats(visitor: Visitor, text: str, expected: list[str]) -> None:
    found = rows(visitor, POS="10.0,-1.0", SIZE="0.001", FORMAT=text)
    assert [str(row["format"]) for row in found] == expected


def test_metadata_and_verbosity(visitor: Visitor) -> None:
    answer = visitor.client.get("sia1", params={"FORMAT": "METADATA"})
    document = parse(BytesIO(answer.content))
    (table,) = document.iter_tables()
    ucds = {field.ucd for field in table.fields}
    needed = {"Title", "Naxes", "Naxis", "Scale", "Format", "AccessReference"}
    assert {f"VOX:Image_{name}" for name in needed} <= ucds
    assert {"POS_EQ_RA_MAIN", "POS_EQ_DEC_MAIN"} <= ucds
    assert len(table.array) == 0
    inputs = {param.name for param in document.resources[0].params}
    assert {"INPUT:POS", "INPUT:SIZE", "INPUT:INTERSECT", "INPUT:FORMAT"} <= inputs
    (row,) = rows(visitor, POS="10.0,-1.0", SIZE="0.001", FORMAT="image/fits", VERB="0")
    assert len(row.dtype.names) == 8


def test_tables_are_valid(visitor: Visitor) -> None:
    for query in ("FORMAT=METADATA", "POS=10.0,-1.0&SIZE=0.001", "POS=10&SIZE=1"):
        told = stilts("votlint", f"votable={visitor.base}/sia1?{query}")
        assert "ERROR" not in told, told


def test_more_images_than_asked_for(visitor: Visitor) -> None:
    answer = visitor.client.get("sia1", params={"POS": "0,0", "SIZE": "360,180", "MAXREC": 2})
    assert b'name="QUERY_STATUS" value="OVERFLOW"' in answer.content
    (table,) = parse(BytesIO(answer.content)).iter_tables()
    assert len(table.array) == 4


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "POS: expected numbers in degrees"),
        ({"POS": "1,1"}, "SIZE: expected numbers in degrees"),
        ({"POS": "1", "SIZE": "1"}, "POS: expected 2 numbers"),
        ({"POS": "1,1,1", "SIZE": "1"}, "POS: expected 2 numbers"),
        ({"POS": "1,91", "SIZE": "1"}, "POS: expected 0 to 360"),
        ({"POS": "nan,1", "SIZE": "1"}, "POS: expected numbers"),
        ({"POS": "inf,1", "SIZE": "1"}, "POS: expected 2 numbers"),
        ({"POS": "1,1;FK4", "SIZE": "1"}, "POS: expected ICRS"),
        ({"POS": "1,1", "SIZE": "-1"}, "SIZE: expected 0 to 360"),
        ({"POS": "1,1", "SIZE": "1,2,3"}, "SIZE: expected 1 or 2 numbers"),
        ({"POS": "1,1", "SIZE": "1", "INTERSECT": "TOUCHES"}, "INTERSECT: expected OVERLAPS"),
        ({"POS": "1,1", "SIZE": "1", "VERB": "4"}, "VERB: expected 0 to 3"),
        ({"POS": "1,1", "SIZE": "1", "MAXREC": "x"}, "MAXREC: expected a number"),
    ],
)
def test_mistakes_are_told_in_the_table(
    visitor: Visitor, parameters: dict[str, str], text: str
) -> None:
    answer = visitor.client.get("sia1", params=parameters)
    assert answer.status_code == 200
    (info,) = parse(BytesIO(answer.content)).resources[0].infos
    assert (info.name, info.value) == ("QUERY_STATUS", "ERROR")
    assert info.content.startswith(f"UsageError: {text}")


def test_pyvo_tells_a_mistake(service: SIAService) -> None:
    with pytest.raises(DALQueryError, match="SIZE: expected 0 to 360"):
        service.search(pos=(10.0, -1.0), size=(400, 1))


def test_it_is_listed(visitor: Visitor) -> None:
    text = visitor.client.get("capabilities").text
    assert '<capability standardID="ivo://ivoa.net/std/SIA">' in text
    assert f"{visitor.base}/sia1?</accessURL>" in text
