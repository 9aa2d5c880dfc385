"""Columns of targets: units, frames, names and UCDs, as astropy's SkyCoord has them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import astropy.units as u
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
import pytest
from astropy.coordinates import FK4, FK5, Angle, Latitude, Longitude, SkyCoord
from astropy.io import fits
from astropy.io.votable import from_table, writeto
from astropy.io.votable.tree import CooSys
from astropy.table import Column, MaskedColumn, QTable, Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from swathe.core.angles import Size
from swathe.core.errors import TargetsError
from swathe.files.targets.cells import InvalidCell
from swathe.files.targets.columns import ListOptions, standard_columns
from swathe.files.targets.list_tables import read_list
from tests.support.property_examples import examples

RA, DEC = np.array([150.119166, 10.25, 359.9]), np.array([2.205833, -41.5, -0.001])
PLACES = SkyCoord(RA, DEC, unit="deg")
ARCSEC = 1 / 3600


def standard(given: Any, **choices: Any) -> dict[str, Any]:
    return standard_columns(read_list(given, ListOptions(**choices)).table, ListOptions(**choices))


def assert_places(columns: dict[str, Any], expected: SkyCoord = PLACES) -> None:
    read = SkyCoord(np.array(columns["ra"], float), np.array(columns["dec"], float), unit="deg")
    assert read.separation(expected.icrs).arcsec.max() < 1e-6


def in_units(ra_unit: str, dec_unit: str, size_unit: str) -> Table:
    table = Table({"ra": PLACES.ra.to_value(ra_unit), "dec": PLACES.dec.to_value(dec_unit)})
    table["size"] = (np.array([30, 60, 90]) * u.arcsec).to_value(size_unit)
    for name, unit in (("ra", ra_unit), ("dec", dec_unit), ("size", size_unit)):
        table[name].unit = unit
    return table


@pytest.mark.parametrize("kind", [Table, QTable])
@pytest.mark.parametrize(
    "units", [("hourangle", "deg", "arcmin"), ("rad", "rad", "rad"), ("deg", "arcmin", "arcsec")]
)
def test_units_of_columns_are_honoured(kind: Any, units: tuple[str, str, str]) -> None:
    columns = standard(kind(in_units(*units)))
    assert_places(columns)
    assert columns["size_deg"] == pytest.approx(np.array([30, 60, 90]) * ARCSEC)


@pytest.mark.parametrize("name", ["t.ecsv", "t.vot", "t.fits", "t.fits.gz", "t.vot.gz"])
def test_units_of_table_files_are_honoured(name: str, tmp_path: Path) -> None:
    table = in_units("rad", "arcmin", "arcmin")
    plain = tmp_path / name.removesuffix(".gz")
    form = {".ecsv": "ascii.ecsv", ".vot": "votable", ".fits": "fits"}[plain.suffix]
    table.write(plain, format=form)
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    columns = standard(path)
    assert_places(columns)
    assert columns["size_deg"] == pytest.approx(np.array([30, 60, 90]) * ARCSEC)


def test_the_unit_of_size_deg_is_not_taken_for_degrees() -> None:
    table = Table({"ra": RA, "dec": DEC, "size_deg": [3.0, 6.0, 9.0]})
    table["size_deg"].unit = u.arcmin
    assert standard(table)["size_deg"] == pytest.approx([0.05, 0.1, 0.15])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"ra": RA * u.m, "dec": DEC}, "column ra: expected an angle, found unit 'm'"),
        ({"ra": RA, "dec": DEC * u.mag}, "column dec: expected an angle, found unit 'mag'"),
        ({"ra": RA, "dec": DEC, "size": RA * u.s}, "column size: expected an angle, found unit"),
        ({"ra": RA, "dec": DEC, "size": [1.0, 2.0, 3.0]}, "column size: expected a unit"),
        ({"x": RA * u.deg, "y": DEC, "size_pix": [5.0] * 3}, "column x: expected pixels"),
        ({"ra": RA, "dec": DEC, "height": [3.0] * 3, "width": [4.0] * 3}, "column height"),
        (
            {"ra": RA, "dec": DEC, "size_deg": RA, "size_pix": RA},
            "several sizes: size_deg, size_pix",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(TargetsError, match=said):
        standard(QTable(columns))


def test_boxes_in_other_units_than_pixels_are_refused() -> None:
    table = Table({name: [5.0] for name in ("x0", "y0", "width", "height")})
    table["width"].unit = "arcsec"
    with pytest.raises(TargetsError, match="column width: expected pixels, found unit 'arcsec'"):
        standard(table)
    table["width"].unit = "pix"
    assert standard(QTable(table))["width"].tolist() == [5.0]


@pytest.mark.parametrize(
    "given",
    [
        {"sky": PLACES},
        {"other": PLACES.galactic},
        {"position": PLACES.fk5, "parallax": SkyCoord(DEC, DEC, unit="deg")},
        QTable({"coord": PLACES}),
        PLACES,
        {"ra": Longitude(PLACES.ra, u.hourangle), "dec": Latitude(PLACES.dec)},
        {"ra": Angle(RA, "deg"), "dec": list(PLACES.dec)},
        {"ra": RA, "dec": DEC, "frame": ["icrs"] * 3},
        pd.DataFrame({"RA": RA, "Dec": DEC}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_coordinates_and_angles(given: Any) -> None:
    assert_places(standard(given))


def test_several_columns_of_coordinates_are_ambiguous() -> None:
    with pytest.raises(TargetsError, match="several columns of coordinates: a, b"):
        standard({"a": PLACES, "b": PLACES})


@pytest.mark.parametrize(
    ("lon", "lat"),
    [
        ("RAJ2000", "DEJ2000"),
        ("_RAJ2000", "_DEJ2000"),
        ("_RA", "_DE"),
        ("RA_ICRS", "DE_ICRS"),
        ("ra_deg", "dec_deg"),
        ("s_ra", "s_dec"),
        ("ALPHA_J2000", "DELTA_J2000"),
        ("raMean", "decMean"),
        ("RA", "Dec"),
    ],
)
def test_known_names(lon: str, lat: str) -> None:
    assert_places(standard({lon: RA, lat: DEC}))


@pytest.mark.parametrize(
    ("lon", "lat", "frame"),
    [
        ("l", "b", "galactic"),
        ("GLON", "GLAT", "galactic"),
        ("RAB1950", "DEB1950", FK4()),
        ("ecl_lon", "ecl_lat", "barycentricmeanecliptic"),
    ],
)
def test_names_that_tell_a_frame(lon: str, lat: str, frame: Any) -> None:
    there = PLACES.transform_to(frame).spherical
    assert_places(standard({lon: there.lon.deg, lat: there.lat.deg}))


@pytest.mark.parametrize("frame", ["galactic", "fk5", "FK4", "ecliptic", "supergalactic"])
def test_frames_of_columns_and_of_choice(frame: str) -> None:
    known = {"ecliptic": "barycentricmeanecliptic"}.get(frame, frame.lower())
    there = PLACES.transform_to(known).spherical
    columns = {"lon": there.lon.deg, "lat": there.lat.deg}
    assert_places(standard(columns, frame=frame))
    assert_places(standard({**columns, "frame": [frame] * 3}))
    assert_places(standard({"ra": columns["lon"], "dec": columns["lat"]}, frame=frame))


def test_rows_of_several_frames_and_one_of_none() -> None:
    galactic = PLACES.galactic
    columns = standard(
        {
            "ra": [RA[0], galactic.l.deg[1], RA[2]],
            "dec": [DEC[0], galactic.b.deg[1], DEC[2]],
            "frame": ["", "galactic", "mars"],
        }
    )
    assert columns["ra"][:2].tolist() == pytest.approx(RA[:2].tolist())
    assert isinstance(columns["ra"][2], InvalidCell)
    assert "expected one of icrs, fk5" in columns["ra"][2].fault


def test_unknown_frames_and_positions_without_one_are_errors() -> None:
    with pytest.raises(TargetsError, match=r"frame: expected one of icrs.*found 'mars'"):
        standard({"ra": RA, "dec": DEC}, frame="mars")
    with pytest.raises(TargetsError, match=r"altaz.*cannot be converted to ICRS"):
        standard({"ra": RA, "dec": DEC}, frame="altaz")
    with pytest.raises(TargetsError, match="columns lon, lat: expected a frame"):
        standard({"lon": RA, "lat": DEC})


def with_ucds(**ucds: str) -> Table:
    table = Table()
    for name, ucd in ucds.items():
        values = RA if "ra" in ucd or "RA" in ucd else DEC
        table[name] = Column(values if "main" in ucd.lower() else values + 1, unit="deg")
        table[name].meta["ucd"] = ucd
    return table


def test_main_position_by_ucd_wins() -> None:
    table = with_ucds(
        a="pos.eq.ra;meta.main", b="pos.eq.dec;meta.main", RAJ2000="pos.eq.ra", DEJ2000="pos.eq.dec"
    )
    assert_places(standard(table))
    assert_places(standard(with_ucds(one="POS_EQ_RA_MAIN", two="POS_EQ_DEC_MAIN")))


def test_one_position_by_ucd_is_enough_and_errors_of_it_are_none() -> None:
    table = with_ucds(p="pos.eq.ra", q="pos.eq.dec", e="stat.error;pos.eq.ra")
    table["p"], table["q"] = RA, DEC
    table["p"].meta["ucd"], table["q"].meta["ucd"] = "pos.eq.ra", "pos.eq.dec"
    assert_places(standard(table))


def test_several_positions_are_an_error_that_lists_them_and_the_user_chooses() -> None:
    table = {"RAJ2000": RA + 1, "DEJ2000": DEC, "RA_ICRS": RA, "DE_ICRS": DEC}
    said = "RA_ICRS/DE_ICRS, RAJ2000/DEJ2000; choose one: --ra RA_ICRS --dec DE_ICRS"
    with pytest.raises(TargetsError, match=said):
        standard(table)
    assert_places(standard(table, ra="RA_ICRS", dec="DE_ICRS"))
    assert_places(standard({**table, "ra": RA, "dec": DEC}))
    with pytest.raises(TargetsError, match="ra: there is no column 'x'; there are RAJ2000"):
        standard(table, ra="x", dec="DE_ICRS")


def test_galactic_columns_beside_equatorial_ones_are_not_ambiguous() -> None:
    columns = {"GLON": RA, "GLAT": DEC, "RAJ2000": RA, "DEJ2000": DEC}
    assert_places(standard(columns))


def gaia(path: Path) -> None:
    """Write a VOTable like those of Gaia, with galactic and ecliptic columns."""
    table = Table({"source_id": [1, 2, 3], "ra": RA, "dec": DEC, "l": DEC, "b": DEC})
    for name, ucd in {
        "ra": "pos.eq.ra;meta.main",
        "dec": "pos.eq.dec;meta.main",
        "l": "pos.galactic.lon",
        "b": "pos.galactic.lat",
    }.items():
        table[name].unit, table[name].meta["ucd"] = "deg", ucd
    table.write(path, format="votable")


def test_gaia_table(tmp_path: Path) -> None:
    gaia(tmp_path / "gaia.vot")
    columns = standard(tmp_path / "gaia.vot", size=Size(30 * ARCSEC, 30 * ARCSEC))
    assert_places(columns)
    assert columns["size_deg"].tolist() == [30 * ARCSEC] * 3


@pytest.mark.parametrize(
    ("system", "equinox", "frame"),
    [
        ("eq_FK5", "J1975", FK5(equinox="J1975")),
        ("eq_FK4", "B1950", FK4()),
        ("galactic", None, "galactic"),
        ("ICRS", None, "icrs"),
    ],
)
def test_frame_of_a_votable(system: str, equinox: str | None, frame: Any, tmp_path: Path) -> None:
    there = PLACES.transform_to(frame).spherical
    table = Table({"RAJ2000": there.lon.deg, "DEJ2000": there.lat.deg})
    votable = from_table(table)
    resource = votable.resources[0]
    resource.coordinate_systems.append(CooSys(ID="sys", system=system, equinox=equinox))
    for one in resource.tables[0].fields:
        one.ref = "sys"
    writeto(votable, str(tmp_path / "t.vot"))
    assert_places(standard(tmp_path / "t.vot"))


def test_ucds_of_fits_tables(tmp_path: Path) -> None:
    hdu = fits.BinTableHDU.from_columns(
        [
            fits.Column("P", "D", unit="rad", array=np.radians(RA)),
            fits.Column("Q", "D", unit="deg", array=DEC),
            fits.Column("NAME", "4A", array=["a", "b", "c"]),
        ]
    )
    hdu.header["TUCD1"], hdu.header["TUCD2"] = "pos.eq.ra;meta.main", "pos.eq.dec;meta.main"
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(tmp_path / "t.fits")
    columns = standard(tmp_path / "t.fits")
    assert_places(columns)
    assert list(columns["name"]) == ["a", "b", "c"]


VIZIER = """#
#   VizieR Astronomical Server
#Name: II/246/out
RAJ2000\tDEJ2000\t2MASS\tJmag
deg\tdeg\t\tmag
----------\t----------\t----------------\t------
150.119166\t+2.205833\t10002860+0212210\t10.1
010.250000\t-41.500000\t00410000-4130000\t
359.900000\t-00.001000\t23593600-0000036\t12.0
"""
SEXAGESIMAL = """RAJ2000\tDEJ2000
"h:m:s"\t"d:m:s"
-----\t-----
10:00:28.6\t+02:12:21
"""


def test_tsv_of_vizier(tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text(VIZIER)
    assert_places(standard(tmp_path / "v.tsv"))
    (tmp_path / "s.tsv.gz").write_bytes(gzip.compress(SEXAGESIMAL.encode()))
    assert_places(standard(tmp_path / "s.tsv.gz"), SkyCoord(["10h00m28.6s +2d12m21s"]))


def test_sexagesimal_text_and_sizes_of_text(tmp_path: Path) -> None:
    rows = [
        ("10:00:28.6", "+02:12:21", '30"'),
        ("10h00m28.6s", "+02d12m21s", "0.5 arcmin"),
        ("150.1191666666667", "2.2058333333333", "100pix"),
        ("25:00:00", "+02:12:21", "30arcsec"),
        ("10:00:28.6", "+02:12:21", "big"),
    ]
    table = Table(rows=rows, names=("ra", "dec", "size"))
    columns = standard(table)
    expected = SkyCoord("10h00m28.6s +2d12m21s")
    assert_places({name: columns[name][:3] for name in ("ra", "dec")}, expected)
    assert columns["ra"][3].fault == "ra: expected hours up to 24, found '25:00:00'"
    assert columns["size"][:3].tolist() == [
        Size(30 * ARCSEC, 30 * ARCSEC),
        Size(0.5 / 60, 0.5 / 60),
        Size(100, 100, "pix"),
    ]
    assert columns["size"][4].fault.startswith('size: expected 30"')
    table.write(tmp_path / "t.csv")
    assert standard(tmp_path / "t.csv")["ra"][0] == pytest.approx(expected.ra.deg)


@pytest.mark.parametrize(
    ("column", "name", "expected"),
    [
        ([3 * u.arcmin, 30 * u.arcsec], "size", [0.05, 30 * ARCSEC]),
        ([2.0, 3.0], "size_arcmin", [2 / 60, 3 / 60]),
        ([2.0, 3.0], "size_arcsec", [2 * ARCSEC, 3 * ARCSEC]),
        ([2.0, np.nan], "size_pix", [Size(2, 2, "pix"), np.nan]),
        ([2.0, 3.0] * u.pix, "size", [Size(2, 2, "pix"), Size(3, 3, "pix")]),
        (['30"x20"', ""], "size", [Size(30 * ARCSEC, 20 * ARCSEC), np.nan]),
        (MaskedColumn([2.0, 3.0], mask=[False, True], unit="arcsec"), "size", [2 * ARCSEC, np.nan]),
    ],
)
def test_columns_of_sizes(column: Any, name: str, expected: list[Any]) -> None:
    columns = standard(QTable({"ra": [1.0, 2.0], "dec": [1.0, 2.0], name: column}))
    sizes: NDArray[Any] = columns["size_deg"] if "size_deg" in columns else columns["size"]
    for size, wanted in zip(sizes.tolist(), expected, strict=True):
        if isinstance(wanted, Size):
            assert size[:2] == pytest.approx(wanted[:2]) and size.unit == wanted.unit
        else:
            assert size == pytest.approx(wanted, nan_ok=True)


def test_heights_and_widths_with_units_beside_a_position() -> None:
    table = QTable(
        {"ra": RA, "dec": DEC, "height": [30] * 3 * u.arcsec, "width": [1] * 3 * u.arcmin}
    )
    columns = standard(table)
    assert columns["size"][0] == pytest.approx((30 * ARCSEC, 1 / 60, "deg"))
    assert "height" not in columns


def test_standard_columns_stay_as_they_are() -> None:
    table = Table({"l": RA, "b": DEC, "size": ['30"', "bad", "100pix"], "frame": ["galactic"] * 3})
    once = standard(table)
    twice = standard(once)
    assert twice["ra"].tolist() == once["ra"].tolist()
    assert twice["size"].tolist() == once["size"].tolist()


# Whatever the form of a table: what it says is what SkyCoord computes by hand, or an error.

UNITS = ("deg", "rad", "arcmin", "arcsec", "hourangle")
ALIEN = ("Jy", "m", "s", "mag")
NAMES = [("ra", "dec"), ("RAJ2000", "DEJ2000"), ("_RA", "_DE"), ("RA_ICRS", "DE_ICRS")]
NAMES += [("ra_deg", "dec_deg"), ("first", "second")]
MAIN = ("pos.eq.ra;meta.main", "pos.eq.dec;meta.main")
FORMS = {"t.ecsv": "ascii.ecsv", "t.vot": "votable", "t.fits": "fits"}


def taken(table: Table, form: str, folder: Path) -> dict[str, Any]:
    """Give the standard columns of a table in memory or of a file."""
    if form not in FORMS:
        return standard({"Table": Table, "QTable": QTable}[form](table))
    table.write(folder / form, format=FORMS[form], overwrite=True)
    return standard(folder / form)


@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_tables_mean_what_skycoord_makes_of_them(data: st.DataObject, tmp_path: Path) -> None:
    # What a FITS table calls an hour angle is no unit of the standard.
    form = data.draw(st.sampled_from(["Table", "QTable", *FORMS]))
    units = [unit for unit in UNITS if form != "t.fits" or unit != "hourangle"]
    aliens = data.draw(st.sets(st.sampled_from(["lon", "lat", "size"]), max_size=1))
    rows = data.draw(st.integers(1, 4))
    lons = data.draw(st.lists(st.floats(0, 359.999), min_size=rows, max_size=rows))
    lats = data.draw(st.lists(st.floats(-90, 90), min_size=rows, max_size=rows))
    sizes = data.draw(st.lists(st.floats(1e-4, 2), min_size=rows, max_size=rows))
    lon, lat = data.draw(st.sampled_from(NAMES))
    table = Table()
    for name, kind, values in ((lon, "lon", lons), (lat, "lat", lats), ("size", "size", sizes)):
        unit = data.draw(st.sampled_from(units))
        table[name] = (np.array(values) * u.deg).to_value(unit)
        table[name].unit = data.draw(st.sampled_from(ALIEN)) if kind in aliens else unit
    if lon == "first":  # astropy keeps UCDs in a FITS table, too: in its COMMENT cards
        for name, ucd in zip((lon, lat), MAIN, strict=True):
            table[name].meta["ucd"] = ucd
    if aliens:
        with pytest.raises(TargetsError, match=r"expected|found|columns|position"):
            taken(table, form, tmp_path)
        return
    columns = taken(table, form, tmp_path)
    by_hand = SkyCoord(
        np.array(table[lon]) * table[lon].unit, np.array(table[lat]) * table[lat].unit
    )
    assert_places(columns, by_hand)
    expected = (np.array(table["size"]) * table["size"].unit).to_value("deg")
    assert np.asarray(columns["size_deg"], float) == pytest.approx(expected, rel=1e-9)
