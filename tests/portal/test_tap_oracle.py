"""Queries in ADQL: equal rows on SQLite, on PostgreSQL, and by Python over the same images."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import sqlalchemy
from astropy.coordinates import SkyCoord

from swathe.catalog import Catalog
from tests.support.catalogs import new_catalog
from tests.support.postgres_server import new_database
from tests.support.tap_catalog import AUTHORITY, LINKS, Image, fill, images, rows, values

pytestmark = pytest.mark.more
Row = dict[str, Any]
DAY_S = 86_400.0
SELECT = "SELECT obs_id FROM ivoa.obscore WHERE"


def row_of(image: Image) -> Row:
    granule, place = image.granule, image.granule.footprint
    did = f"ivo://{AUTHORITY}/{image.dataset}?{quote(granule.path)},{granule.hdu}"
    shape = granule.shape
    times = (granule.t_min, granule.t_max)
    return {
        "dataproduct_type": "cube" if math.prod(shape[:-2]) > 1 else "image",
        "calib_level": 3 if image.dataset == "deep" else 2,
        "obs_collection": image.dataset,
        "obs_id": granule.path + (f", {granule.name}" if granule.name else ""),
        "obs_publisher_did": did,
        "access_url": f"{LINKS}?ID={quote(did, safe='')}",
        "access_estsize": math.ceil(granule.size / 1000),
        "target_name": granule.target,
        "s_ra": place and place.s_ra,
        "s_dec": place and place.s_dec,
        "s_fov": place and place.s_fov,
        "s_xel1": shape[-1],
        "s_xel2": shape[-2],
        "t_min": times[0],
        "t_max": times[1],
        "t_exptime": None if None in times else (times[1] - times[0]) * DAY_S,  # type: ignore[operator]
        "em_min": granule.em_min,
        "em_max": granule.em_max,
        "pol_states": f"/{'/'.join(granule.pol)}/" if granule.pol else None,
        "pol_xel": len(granule.pol) or None,
        "facility_name": granule.facility,
        "instrument_name": granule.instrument,
        "image": image,
    }


ROWS = [row_of(image) for image in images()]


class Pair:
    """The same images in both databases."""

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self.catalogs = catalogs

    def rows(self, text: str, **more: Any) -> list[tuple[Any, ...]]:
        """The rows, in the order of the answer if it has one."""
        first, second = (values(rows(catalog, text, **more)) for catalog in self.catalogs)
        if "ORDER BY" in text:
            assert first == second, text
        assert Counter(first) == Counter(second), text
        return first


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres: sqlalchemy.URL) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with (
        new_database(postgres) as url,
        Catalog.open(new_catalog(folder / "c.sqlite")) as one,
        Catalog.open(url) as other,
    ):
        for catalog in (one, other):
            fill(catalog, str(folder), images())
        yield Pair((one, other))


def cells(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if row[name] is None else str(row[name]) for name in columns)


def expected(columns: Sequence[str], test: Callable[[Row], Any]) -> Counter[tuple[Any, ...]]:
    return Counter(values([cells(row, columns) for row in ROWS if test(row)]))


def has(row: Row, *names: str) -> bool:
    return all(row[name] is not None for name in names)


def away(row: Row, ra: float, dec: float) -> float:
    """Angle between the centre of an image and a position, by astropy."""
    centre = SkyCoord(row["s_ra"], row["s_dec"], unit="deg")
    return float(centre.separation(SkyCoord(ra, dec, unit="deg")).deg)


RNG = np.random.default_rng(9)
PLACES = [
    (float(RNG.uniform(0, 360)), float(np.degrees(np.arcsin(RNG.uniform(-1, 1)))))
    for _ in range(20)
]
IMAGES = [row for row in ROWS if row["s_ra"] is not None]
NEAR = [(float(row["s_ra"]), float(row["s_dec"])) for row in IMAGES[:: len(IMAGES) // 20][:20]]
CONDITIONS: list[tuple[str, Callable[[Row], Any]]] = [
    ("t_min > 55000", lambda r: has(r, "t_min") and r["t_min"] > 55000),
    ("NOT t_min > 55000", lambda r: has(r, "t_min") and not r["t_min"] > 55000),
    ("t_min IS NULL", lambda r: r["t_min"] is None),
    ("t_min IS NOT NULL AND em_min IS NULL", lambda r: has(r, "t_min") and r["em_min"] is None),
    (
        "t_min BETWEEN 52000 AND 53000.5",
        lambda r: has(r, "t_min") and 52000 <= r["t_min"] <= 53000.5,
    ),
    (
        "t_min NOT BETWEEN 52000 AND 58000",
        lambda r: has(r, "t_min") and not 52000 <= r["t_min"] <= 58000,
    ),
    ("target_name = 'it''s é'", lambda r: r["target_name"] == "it's é"),
    ("target_name <> 'M 31'", lambda r: has(r, "target_name") and r["target_name"] != "M 31"),
    ("target_name LIKE 'M%'", lambda r: has(r, "target_name") and r["target_name"][0] == "M"),
    ("target_name LIKE 'm%'", lambda r: False),
    ("target_name ILIKE 'm%'", lambda r: has(r, "target_name") and r["target_name"][0] == "M"),
    ("target_name LIKE '%\\%'", lambda r: False),
    (
        "target_name NOT LIKE '%9_'",
        lambda r: has(r, "target_name") and "9" not in r["target_name"][:-1],
    ),
    ("UPPER(target_name) = 'NGC 99'", lambda r: r["target_name"] == "NGC 99"),
    ("LOWER(target_name) = 'it''s é'", lambda r: r["target_name"] == "it's é"),
    ("target_name > 'M'", lambda r: has(r, "target_name") and r["target_name"] > "M"),
    ("target_name < 'N'", lambda r: has(r, "target_name") and r["target_name"] < "N"),
    ("obs_collection IN ('deep', 'none')", lambda r: r["obs_collection"] == "deep"),
    ("pol_xel NOT IN (1, 2)", lambda r: r["pol_xel"] in (3, 4)),
    ("pol_states = '/I/Q/'", lambda r: r["pol_states"] == "/I/Q/"),
    ("dataproduct_type = 'cube'", lambda r: r["dataproduct_type"] == "cube"),
    (
        "calib_level = 3 AND s_xel1 > s_xel2",
        lambda r: r["calib_level"] == 3 and r["s_xel1"] > r["s_xel2"],
    ),
    ("s_xel1 + s_xel2 * 2 < 600", lambda r: r["s_xel1"] + r["s_xel2"] * 2 < 600),
    ("s_xel1 / 100 = 2", lambda r: r["s_xel1"] // 100 == 2),
    ("s_xel1 / 0 IS NULL", lambda r: True),
    ("MOD(s_xel1, 7) = 3", lambda r: r["s_xel1"] % 7 == 3),
    ("-s_xel1 < -300", lambda r: r["s_xel1"] > 300),
    ("ABS(s_dec) < 20", lambda r: has(r, "s_dec") and abs(r["s_dec"]) < 20),
    (
        "SIN(RADIANS(s_dec)) > 0.5",
        lambda r: has(r, "s_dec") and math.sin(math.radians(r["s_dec"])) > 0.5,
    ),
    ("SQRT(s_dec) > 5", lambda r: has(r, "s_dec") and r["s_dec"] > 25),
    ("LOG10(access_estsize) > 8.5", lambda r: math.log10(r["access_estsize"]) > 8.5),
    ("POWER(s_fov, 2) > 1", lambda r: has(r, "s_fov") and r["s_fov"] > 1),
    ("FLOOR(s_ra / 30) = 4", lambda r: has(r, "s_ra") and r["s_ra"] // 30 == 4),
    ("ROUND(s_dec, 0) = 12", lambda r: has(r, "s_dec") and 11.5 <= r["s_dec"] < 12.5),
    ("TRUNCATE(s_dec) = -3", lambda r: has(r, "s_dec") and math.trunc(r["s_dec"]) == -3),
    ("CAST(s_ra AS INTEGER) = 100", lambda r: has(r, "s_ra") and int(r["s_ra"]) == 100),
    ("CAST(s_xel1 AS VARCHAR) = '150'", lambda r: r["s_xel1"] == 150),
    ("CAST('1' || '50' AS DOUBLE PRECISION) < s_xel1", lambda r: r["s_xel1"] > 150),
    ("COALESCE(target_name, 'none') = 'none'", lambda r: r["target_name"] is None),
    ("obs_id LIKE '%, CCD%'", lambda r: ", CCD" in r["obs_id"]),
    (
        "facility_name IS NULL OR instrument_name = 'Cam1'",
        lambda r: r["facility_name"] is None or r["instrument_name"] == "Cam1",
    ),
    ("t_exptime > 43200", lambda r: has(r, "t_exptime") and r["t_exptime"] > 43200),
    ("s_ra IS NULL", lambda r: r["s_ra"] is None),
    ("em_max - em_min > 1.4e-7", lambda r: has(r, "em_max") and r["em_max"] - r["em_min"] > 1.4e-7),
    (
        "NOT (calib_level = 3 OR pol_xel IS NULL)",
        lambda r: r["calib_level"] != 3 and has(r, "pol_xel"),
    ),
    ("1 = 2", lambda r: False),
    ("'a' || 'b' = 'ab'", lambda r: True),
    ("2.5e0 > .5", lambda r: True),
    (f"obs_publisher_did = '{ROWS[17]['obs_publisher_did']}'", lambda r: r is ROWS[17]),
    (
        "s_xel1 = (SELECT MAX(s_xel1) FROM ivoa.obscore)",
        lambda r: r["s_xel1"] == max(x["s_xel1"] for x in ROWS),
    ),
    (
        "obs_collection IN (SELECT obs_collection FROM ivoa.obscore WHERE calib_level = 2)",
        lambda r: r["obs_collection"] == "wide",
    ),
    (
        "EXISTS (SELECT 1 FROM ivoa.obscore AS o WHERE o.s_xel1 = obscore.s_xel2)",
        lambda r: r["s_xel2"] in {x["s_xel1"] for x in ROWS},
    ),
]


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_conditions(pair: Pair, number: int) -> None:
    text, test = CONDITIONS[number]
    columns = ("obs_id", "access_url", "s_ra", "t_exptime", "access_estsize")
    query = f"SELECT {', '.join(columns)} FROM ivoa.obscore WHERE {text}"
    assert Counter(pair.rows(query)) == expected(columns, test)


@pytest.mark.parametrize("number", range(20))
def test_centres_in_a_circle(pair: Pair, number: int) -> None:
    ra, dec = PLACES[number]
    radius = float(np.geomspace(2, 150, 20)[number])
    query = (
        f"SELECT obs_id FROM ivoa.obscore AS o WHERE 1 = CONTAINS(POINT('ICRS', o.s_ra, o.s_dec), "
        f"CIRCLE('ICRS', {ra}, {dec}, {radius}))"
    )
    rows = expected(["obs_id"], lambda r: has(r, "s_ra") and away(r, ra, dec) <= radius)
    assert Counter(pair.rows(query)) == rows
    opposite = query.replace("1 = CONTAINS", "0 = CONTAINS")
    rows = expected(["obs_id"], lambda r: has(r, "s_ra") and away(r, ra, dec) > radius)
    assert Counter(pair.rows(opposite)) == rows


def shows(row: Row, ra: Any, dec: Any) -> Any:
    """Whether an image shows positions, by its WCS and shape alone."""
    image: Image = row["image"]
    assert image.wcs is not None
    height, width = image.granule.shape[-2:]
    with np.errstate(invalid="ignore"):
        x, y = image.wcs.world_to_pixel(SkyCoord(ra, dec, unit="deg"))
        far = (
            np.abs(
                SkyCoord(ra, dec, unit="deg")
                .separation(SkyCoord(row["s_ra"], row["s_dec"], unit="deg"))
                .deg
            )
            > row["s_fov"]
        )
        inside = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    return inside & ~far


@pytest.mark.parametrize("number", range(20))
def test_images_that_show_a_position(pair: Pair, number: int) -> None:
    ra, dec = NEAR[number]
    ra, dec = ra + 0.05, dec - 0.05
    query = f"SELECT obs_id FROM ivoa.obscore WHERE CONTAINS(POINT({ra}, {dec}), s_region) = 1"
    rows = expected(["obs_id"], lambda r: has(r, "s_ra") and bool(shows(r, ra, dec)))
    assert Counter(pair.rows(query)) == rows
    assert rows


def edge(row: Row) -> SkyCoord:
    """Positions along the edge of an image, closely spaced."""
    image: Image = row["image"]
    assert image.wcs is not None
    height, width = image.granule.shape[-2:]
    along, across = np.linspace(-0.5, width - 0.5, 2000), np.linspace(-0.5, height - 0.5, 2000)
    low, high = np.full(2000, -0.5), np.full(2000, 1.0)
    x = np.concatenate([along, along, low, high * (width - 0.5)])
    y = np.concatenate([low, high * (height - 0.5), across, across])
    return image.wcs.pixel_to_world(x, y)


EDGES = {id(row): edge(row) for row in IMAGES if row["s_fov"] < 90}


@pytest.mark.parametrize("number", range(20))
def test_images_that_meet_a_circle(pair: Pair, number: int) -> None:
    ra, dec = PLACES[number]
    radius = float(np.geomspace(0.5, 60, 20)[number])
    centre = SkyCoord(ra, dec, unit="deg")
    circle = f"CIRCLE({ra}, {dec}, {radius})"
    query = f"{SELECT} 1 = INTERSECTS(s_region, {circle})"

    def meets(row: Row) -> bool:
        if not has(row, "s_ra"):
            return False
        if row["s_fov"] > 90:
            return True  # that of the whole sky
        return bool(EDGES[id(row)].separation(centre).deg.min() <= radius or shows(row, ra, dec))

    assert Counter(pair.rows(query)) == expected(["obs_id"], meets)

    def is_inside(row: Row) -> bool:
        return (
            has(row, "s_ra")
            and row["s_fov"] < 90
            and bool(EDGES[id(row)].separation(centre).deg.max() <= radius)
        )

    query = f"{SELECT} 1 = CONTAINS(s_region, {circle})"
    assert Counter(pair.rows(query)) == expected(["obs_id"], is_inside)


def crosses(corners: np.ndarray[Any, Any], places: SkyCoord) -> Any:
    """Whether positions are on the left of each side of a convex polygon."""
    x = places.cartesian.xyz.value.T
    sides = np.cross(corners, np.roll(corners, -1, axis=0))
    return (x @ sides.T >= 0).all(axis=1)


@pytest.mark.parametrize("number", range(10))
def test_images_and_a_polygon(pair: Pair, number: int) -> None:
    ra, dec = NEAR[number]
    dec = float(np.clip(dec, -70, 70))
    size = 2.0 + 2 * number
    # In the sky the east is on the left, and this goes round with the clock.
    corners = [(ra - size, dec - 1), (ra + size, dec - 3), (ra + 0.5, dec + size)]
    text = ", ".join(f"{a}, {b}" for a, b in corners)
    vectors = np.array([SkyCoord(a, b, unit="deg").cartesian.xyz.value for a, b in corners])

    def inside(row: Row) -> bool:
        if not has(row, "s_ra"):
            return False
        return bool(crosses(vectors, SkyCoord([row["s_ra"]], [row["s_dec"]], unit="deg"))[0])

    query = f"{SELECT} 1 = CONTAINS(POINT(s_ra, s_dec), POLYGON('ICRS', {text}))"
    assert Counter(pair.rows(query)) == expected(["obs_id"], inside)

    def meets(row: Row) -> bool:
        if not has(row, "s_ra"):
            return False
        if row["s_fov"] > 90:
            return True
        own = [bool(shows(row, a, b)) for a, b in corners]
        return bool(crosses(vectors, EDGES[id(row)]).any()) or any(own)

    query = f"SELECT obs_id FROM ivoa.obscore WHERE 1 = INTERSECTS(POLYGON({text}), s_region)"
    assert Counter(pair.rows(query)) == expected(["obs_id"], meets)

    def is_whole(row: Row) -> bool:
        return (
            has(row, "s_ra") and row["s_fov"] < 90 and bool(crosses(vectors, EDGES[id(row)]).all())
        )

    query = f"SELECT obs_id FROM ivoa.obscore WHERE 1 = CONTAINS(s_region, POLYGON({text}))"
    assert Counter(pair.rows(query)) == expected(["obs_id"], is_whole)


@pytest.mark.parametrize(
    "column", ["obs_collection", "target_name", "pol_xel", "instrument_name", "facility_name"]
)
def test_groups(pair: Pair, column: str) -> None:
    query = (
        f"SELECT {column}, COUNT(*) AS n, COUNT(t_min), COUNT(DISTINCT target_name), SUM(s_xel1), "
        f"AVG(s_fov), MIN(t_min), MAX(obs_id) FROM ivoa.obscore GROUP BY {column} "
        f"HAVING COUNT(*) > 3 ORDER BY n, {column}"
    )
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in ROWS:
        groups[row[column]].append(row)
    made = []
    for key, group in groups.items():
        of = {name: [r[name] for r in group if r[name] is not None] for name in ROWS[0]}
        if len(group) > 3:
            made.append(
                (
                    "" if key is None else str(key),
                    len(group),
                    len(of["t_min"]),
                    len(set(of["target_name"])),
                    sum(of["s_xel1"]),
                    float(np.mean(of["s_fov"])),
                    min(of["t_min"]),
                    max(of["obs_id"]),
                )
            )
    assert Counter(pair.rows(query)) == Counter(values([tuple(map(str, row)) for row in made]))


def key_of(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value


ORDERS = [
    "t_min",
    "s_dec DESC",
    "target_name",
    "3",
    "pol_states DESC",
    "ABS(s_dec)",
    "name",
    "s_ra + s_dec",
]


@pytest.mark.parametrize("order", ORDERS)
def test_orders(pair: Pair, order: str) -> None:
    rows = sorted(ROWS, key=lambda r: str(r["obs_id"]))
    keys: dict[str, Callable[[Row], Any]] = {
        "3": lambda r: r["s_ra"],
        "ABS(s_dec)": lambda r: None if r["s_dec"] is None else abs(r["s_dec"]),
        "name": lambda r: r["obs_id"],
        "s_ra + s_dec": lambda r: None if r["s_dec"] is None else r["s_ra"] + r["s_dec"],
    }
    column, _, word = order.partition(" ") if order not in keys else (order, "", "")
    key: Callable[[Row], Any] = keys.get(column, lambda r: r[column])
    known = sorted((r for r in rows if key(r) is not None), key=key, reverse=word == "DESC")
    rows = known + [r for r in rows if key(r) is None]
    names = ["obs_id", "t_min", "s_ra"]
    query = f"SELECT obs_id AS name, t_min, s_ra FROM ivoa.obscore ORDER BY {order}, obs_id"
    assert pair.rows(query) == values([cells(r, names) for r in rows])
    part = query.replace("SELECT", "SELECT TOP 7") + " OFFSET 5"
    assert pair.rows(part) == values([cells(r, names) for r in rows[5:12]])


def test_joins(pair: Pair) -> None:
    text = (
        "SELECT a.obs_id, b.obs_id FROM ivoa.obscore AS a {join} ivoa.obscore AS b "
        "ON a.s_xel1 = b.s_xel2 AND b.calib_level = 2"
    )
    inner = [
        (a, b) for a in ROWS for b in ROWS if a["s_xel1"] == b["s_xel2"] and b["calib_level"] == 2
    ]
    pairs = [(str(a["obs_id"]), str(b["obs_id"])) for a, b in inner]
    left = [(str(a["obs_id"]), "") for a in ROWS if not any(x is a for x, _ in inner)]
    right = [("", str(b["obs_id"])) for b in ROWS if not any(x is b for _, x in inner)]
    assert Counter(pair.rows(text.format(join="JOIN"))) == Counter(pairs)
    assert Counter(pair.rows(text.format(join="LEFT OUTER JOIN"))) == Counter(pairs + left)
    assert Counter(pair.rows(text.format(join="RIGHT JOIN"))) == Counter(pairs + right)


def test_pairs_by_distance(pair: Pair) -> None:
    query = (
        "SELECT a.obs_id, b.obs_id, DISTANCE(a.s_ra, a.s_dec, b.s_ra, b.s_dec) "
        "FROM ivoa.obscore a, ivoa.obscore b WHERE a.obs_id < b.obs_id "
        "AND 1 = CONTAINS(POINT(a.s_ra, a.s_dec), CIRCLE(b.s_ra, b.s_dec, 4.0))"
    )
    ra, dec = ([r[name] for r in IMAGES] for name in ("s_ra", "s_dec"))
    places = SkyCoord(ra, dec, unit="deg")
    made = []
    for row, place in zip(IMAGES, places, strict=True):
        apart = places.separation(place).deg
        made += [
            (row["obs_id"], other["obs_id"], str(angle))
            for other, angle in zip(IMAGES, apart, strict=True)
            if row["obs_id"] < other["obs_id"] and angle <= 4.0
        ]
    found = {row[:2]: row[2] for row in pair.rows(query)}
    assert found.keys() == {row[:2] for row in made}
    for one, other, angle in made:
        assert found[one, other] == pytest.approx(float(angle), abs=1e-9)


def test_sets_and_common_tables(pair: Pair) -> None:
    deep = "SELECT target_name FROM ivoa.obscore WHERE calib_level = 3"
    wide = "SELECT target_name FROM ivoa.obscore WHERE pol_xel = 2"
    one = {r["target_name"] or "" for r in ROWS if r["calib_level"] == 3}
    other = {r["target_name"] or "" for r in ROWS if r["pol_xel"] == 2}
    for word, result in (
        ("UNION", one | other),
        ("EXCEPT", one - other),
        ("INTERSECT", one & other),
    ):
        assert Counter(pair.rows(f"{deep} {word} {wide}")) == Counter((each,) for each in result)
    count = sum(r["calib_level"] == 3 or 0 for r in ROWS) + sum(r["pol_xel"] == 2 for r in ROWS)
    assert len(pair.rows(f"{deep} UNION ALL ({wide}) ORDER BY 1")) == count
    query = (
        "WITH wide AS (SELECT * FROM ivoa.obscore WHERE calib_level = 2), "
        "n AS (SELECT COUNT(*) AS c FROM wide) "
        "SELECT DISTINCT wide.target_name, n.c FROM wide CROSS JOIN n"
    )
    of = [r for r in ROWS if r["calib_level"] == 2]
    assert Counter(pair.rows(query)) == Counter(
        {(r["target_name"] or "", float(len(of))) for r in of}
    )
