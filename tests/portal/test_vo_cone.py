"""Simple Cone Search: pyvo finds images around a position."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from astropy.coordinates import SkyCoord
from astropy.io.votable import parse
from pyvo.dal import SCSService
from pyvo.dal.exceptions import DALQueryError

from tests.portal.test_tap import stilts
from tests.support.vo_archive import Visitor, visited


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visited(tmp_path_factory.mktemp("cone"), real=False) as made:
        yield made


def table_of(visitor: Visitor, **parameters: Any) -> Any:
    answer = visitor.client.get("conesearch", params=parameters)
    assert answer.status_code == 200
    (table,) = parse(BytesIO(answer.content)).iter_tables()
    return table


def test_pyvo_searches(visitor: Visitor) -> None:
    service = SCSService(f"{visitor.base}/conesearch")
    rows = service.search(pos=SkyCoord(10.5, -1, unit="deg"), radius=1.0)
    names = {row.id.rpartition("?")[2] for row in rows}
    assert names == {"plain.fits,0", *(f"packed.fit.{kind}" for kind in ("gz,0", "bz2,0", "fz,1"))}
    assert {round(row.pos.ra.deg) for row in rows} == {10, 11}
    few = service.search(pos=(10.5, -1), radius=0.55, verbosity=1)
    assert len(few.fieldnames) == 4
    assert len(service.search(pos=(100, 60), radius=1.0)) == 0


def test_columns_follow_verbosity(visitor: Visitor) -> None:
    counts = {
        verb: len(table_of(visitor, RA=10, DEC=-1, SR=1, VERB=verb).fields) for verb in (1, 2, 3)
    }
    assert counts[1] == 4 < counts[2] < counts[3] == 30
    for verb in (1, 2, 3):
        fields = table_of(visitor, RA=10, DEC=-1, SR=1, VERB=verb).fields
        for ucd, kind in (
            ("ID_MAIN", "char"),
            ("POS_EQ_RA_MAIN", "double"),
            ("POS_EQ_DEC_MAIN", "double"),
        ):
            (field,) = [each for each in fields if each.ucd == ucd]
            assert field.datatype == kind


def test_a_radius_of_zero_gives_the_columns(visitor: Visitor) -> None:
    table = table_of(visitor, RA=10, DEC=-1, SR=0)
    assert len(table.array) == 0
    assert len(table.fields) > 10


def test_too_many_rows_are_cut(visitor: Visitor) -> None:
    answer = visitor.client.get("conesearch", params={"RA": 0, "DEC": 0, "SR": 180, "MAXREC": 2})
    assert answer.text.count("<TR>") == 2
    assert 'value="OVERFLOW"' in answer.text
    assert len(table_of(visitor, RA=0, DEC=0, SR=180).array) == 11


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"DEC": 1, "SR": 1}, "RA: expected a number of degrees, found none"),
        ({"RA": "ten", "DEC": 1, "SR": 1}, "RA: expected numbers"),
        ({"RA": "1 2", "DEC": 1, "SR": 1}, "RA: expected one number"),
        ({"RA": 10, "DEC": 91, "SR": 1}, "declination from -90 to 90"),
        ({"RA": 10, "DEC": 1, "SR": -1}, "radius from 0 to 180"),
        ({"RA": "inf", "DEC": 1, "SR": 1}, "expected finite numbers"),
        ({"RA": "nan", "DEC": 1, "SR": 1}, "RA: expected numbers"),
        ({"RA": 10, "DEC": 1, "SR": 1, "VERB": 4}, "VERB: expected 1, 2 or 3"),
        ({"RA": 10, "DEC": 1, "SR": 1, "MAXREC": -1}, "MAXREC: expected a number of rows"),
        ({"RA": 10, "DEC": 1, "SR": 1, "RESPONSEFORMAT": "csv"}, "RESPONSEFORMAT: expected"),
    ],
)
def test_errors_are_in_the_table(visitor: Visitor, parameters: dict[str, Any], why: str) -> None:
    answer = visitor.client.get("conesearch", params=parameters)
    assert answer.status_code == 200
    assert '<INFO name="Error"' in answer.text
    assert '<INFO name="QUERY_STATUS" value="ERROR"' in answer.text
    assert why in answer.text, answer.text


def test_pyvo_tells_why(visitor: Visitor) -> None:
    with pytest.raises(DALQueryError, match="radius from 0 to 180"):
        SCSService(f"{visitor.base}/conesearch").search(pos=(10, -1), radius=500)


def test_the_service_is_listed(visitor: Visitor) -> None:
    text = visitor.client.get("capabilities").text
    assert 'standardID="ivo://ivoa.net/std/ConeSearch"' in text
    assert f"{visitor.base}/conesearch</accessURL>" in text


@pytest.mark.more
def test_stilts_has_nothing_to_say(visitor: Visitor, tmp_path: Path) -> None:
    url = f"{visitor.base}/conesearch?RA=10&DEC=-1&SR=5&VERB=3"
    told = stilts("votlint", f"votable={url}")
    assert "ERROR" not in told, told
    targets = tmp_path / "targets.csv"
    targets.write_text("ra,dec\n10,-1\n11,-1\n")
    told = stilts(
        *("coneskymatch", f"in={targets}", "ifmt=csv", "ra=ra", "dec=dec", "sr=0.2", "find=all"),
        *(f"serviceurl={visitor.base}/conesearch", "ofmt=csv", "ocmd=keepcols obs_id"),
    )
    names = [line for line in told.split() if ".fit" in line]
    assert names == ["plain.fits", *(f"packed.fit.{kind}" for kind in ("bz2", "fz", "gz"))]
