"""Lists of targets: every form of table, every way to say where, and rows that make no sense."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
import pytest
from astropy.table import MaskedColumn, QTable, Table
from astropy.wcs import WCS
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.box import box_around, validated_box
from swathe.core.errors import NotFoundError, RegionError, SwatheError, TargetsError
from swathe.core.row_table import RowTable
from swathe.core.sky import SkyMapping
from swathe.files.targets import target_list
from swathe.files.targets.columns import standard_columns
from swathe.files.targets.hdus import hdu_key, parse_hdu
from swathe.files.targets.result_names import NAME_BYTES, unique_names
from swathe.files.targets.table_files import read_listing
from swathe.files.targets.target_list import (
    BOX,
    ListOptions,
    read_targets,
)
from tests.support.fits_frames import noise, sky_header

CENTER = {
    "id": ["one", "two"],
    "file": ["a.fits", "sub/b.fits.gz"],
    "hdu": ["SCI", "2"],
    "x": [10.25, 20.5],
    "y": [30.0, 40.75],
    "height": [5, 8],
    "width": [6, 7],
}
CENTER_BOXES = [[8, 28, 6, 5], [17, 37, 7, 8]]


def no_sky(file: str, hdu: object) -> SkyMapping:
    raise AssertionError(f"the sky of {file} is not needed")


def read(given: Any) -> RowTable:
    return read_targets(given, no_sky)


def boxed(**columns: Any) -> RowTable:
    """Targets of one column each, the rest of a sound box."""
    count = max(len(value) for value in columns.values() if isinstance(value, list | np.ndarray))
    sound: dict[str, Any] = {"file": ["a.fits"] * count}
    if not {"x", "ra"} & columns.keys():
        sound |= {name: [5] * count for name in ("x0", "y0", "width", "height")}
    return read(sound | columns)


def as_parquet(table: Table, path: Path) -> None:
    table.to_pandas().to_parquet(path)


FORMS = {
    "t.csv": lambda table, path: table.write(path, format="ascii.csv"),
    "t.ecsv": lambda table, path: table.write(path, format="ascii.ecsv"),
    "t.xml": lambda table, path: table.write(path, format="votable"),
    "t.vot": lambda table, path: table.write(path, format="votable"),
    "T.VOTABLE": lambda table, path: table.write(path, format="votable"),
    "t.parquet": as_parquet,
    "t.parq": as_parquet,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_table_file_is_read_and_files_are_beside_it(name: str, tmp_path: Path) -> None:
    FORMS[name](Table(CENTER), tmp_path / name)
    for path in (tmp_path / name, str(tmp_path / name)):
        found = read(path)
        assert found.id == ["one", "two"]
        assert found.source.values == [str(tmp_path / "a.fits"), str(tmp_path / "sub/b.fits.gz")]
        assert found.hdu.values == ["SCI", "2"]
        assert found.box.tolist() == CENTER_BOXES
        assert not found.faults()


@pytest.mark.parametrize("make", [Table, QTable, pd.DataFrame, dict])
def test_every_table_in_memory_is_read_and_files_are_as_given(make: Any) -> None:
    found = read(make(CENTER))
    assert found.id == ["one", "two"]
    assert found.source.values == ["a.fits", "sub/b.fits.gz"]
    assert found.box.tolist() == CENTER_BOXES
    assert not found.faults()


def test_urls_and_absolute_paths_are_not_beside_the_table(tmp_path: Path) -> None:
    names = ["http://host/a.fits", "s3://bucket/b.fits", "/data/c.fits", "../d.fits"]
    table = Table({"file": names} | {name: [1] * 4 for name in ("x0", "y0", "width", "height")})
    table.write(tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").source.values == [*names[:3], str(tmp_path / "../d.fits")]


def test_box_columns() -> None:
    found = boxed(x0=[0, -3], y0=[7, 8], width=[1, 10], height=[2, 20])
    assert found.box.tolist() == [[0, 7, 1, 2], [-3, 8, 10, 20]]


def test_column_names_in_any_case_and_other_columns() -> None:
    found = read({"FILE": ["a"], " X0": [1], "Y0 ": [2], "Width": [3], "HEIGHT": [4], "mag": [9]})
    assert found.box.tolist() == [[1, 2, 3, 4]]


def test_each_file_and_hdu_is_numbered_once() -> None:
    found = boxed(file=["a", "b", "a"], hdu=["SCI", "SCI", "SCI,2"])
    assert (found.source.values, found.source.codes.tolist()) == (["a", "b"], [0, 1, 0])
    assert (found.hdu.values, found.hdu.codes.tolist()) == (["SCI", "SCI,2"], [0, 0, 1])


def test_without_ids_rows_are_numbered() -> None:
    assert boxed(file=["a", "b"]).id == ["0", "1"]
    assert boxed(id=["", "x"]).id == ["0", "x"]
    assert boxed(id=[7, 8]).id == ["7", "8"]
    assert boxed(id=MaskedColumn(["p", "q"], mask=[True, False])).id == ["0", "q"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("2", 2),
        (" SCI ", "SCI"),
        ("SCI,2", ("SCI", 2)),
        ("A,B, 3", ("A,B", 3)),
        ("A,B", "A,B"),
        (",", ","),
        ("9" * 30, "9" * 30),
        ("SCI," + "9" * 30, "SCI," + "9" * 30),
    ],
)
def test_hdu_text(text: str, key: object) -> None:
    assert parse_hdu(text) == key


@pytest.mark.parametrize(
    ("column", "hdus"),
    [
        ([0, 3], [0, 3]),
        ([1.0, math.nan], [1, None]),
        (["", "SCI"], [None, "SCI"]),
        (np.array([b"SCI", b"1"]), ["SCI", 1]),
        (MaskedColumn([1, 2], mask=[False, True]), [1, None]),
        (np.array([1.0, np.nan], np.float32), [1, None]),
    ],
)
def test_hdu_columns(column: Any, hdus: list[object]) -> None:
    found = boxed(hdu=column, file=["a", "b"])
    assert list(map(hdu_key, found.hdu.list())) == hdus
    assert not found.faults()


@pytest.mark.parametrize("bad", [-1, 1.5, math.inf, 2**70])
def test_bad_hdu_is_a_fault_of_its_row(bad: Any) -> None:
    found = boxed(hdu=[0, bad])
    assert found.faults().keys() == {1}
    status, reason = found.faults()[1]
    assert (status, "hdu" in reason) == ("error", True)


def test_masked_and_missing_values_are_faults_of_their_rows() -> None:
    count = 5
    table = Table({"file": ["a.fits"] * count}, masked=True)
    for name in ("x", "y", "height", "width"):
        table[name] = np.ma.array([5.0] * count)
    table["x"].mask[1] = True
    table["width"][2] = np.nan
    table["file"].mask[3] = True
    found = read(table)
    assert found.faults() == {
        1: ("error", "x is missing"),
        2: ("error", "width is missing"),
        3: ("error", "file is missing"),
    }
    assert found.box[[0, 4]].tolist() == [[3, 3, 5, 5]] * 2


def test_masked_rows_of_table_files(tmp_path: Path) -> None:
    text = "file,x0,y0,width,height\na.fits,1,,3,4\nb.fits,1,2,3,4\n,1,2,3,4\n"
    (tmp_path / "t.csv").write_text(text)
    found = read(tmp_path / "t.csv")
    assert found.faults() == {0: ("error", "y0 is missing"), 2: ("error", "file is missing")}
    assert found.box[1].tolist() == [1, 2, 3, 4]


def test_pandas_missing_values() -> None:
    frame = pd.DataFrame({"file": ["a", None], "x0": [1, 2], "y0": [1, 2], "height": [5, 5]})
    frame["width"] = pd.array([None, 5], dtype="Int64")
    found = read(frame)
    assert found.faults() == {0: ("error", "width is missing"), 1: ("error", "file is missing")}


@pytest.mark.parametrize("form", ["parquet", "parquet.votable"])
def test_units_of_parquet(form: str, tmp_path: Path) -> None:
    table = Table({"file": ["a.fits"], "lon": [np.pi], "lat": [60.0], "size_deg": [3.0]})
    about = {
        "file": ("", ""),
        "lon": ("rad", "pos.eq.ra;meta.main"),
        "lat": ("arcmin", "pos.eq.dec;meta.main"),
        "size_deg": ("arcmin", ""),
    }
    for name, (unit, ucd) in about.items():
        table[name].unit = unit or None
        table[name].info.meta = {"ucd": ucd}
    names = ("unit", "ucd", "description")
    columns = {name: dict(zip(names, (*said, ""), strict=True)) for name, said in about.items()}
    more = {"metadata": columns} if form == "parquet.votable" else {}
    table.write(tmp_path / "t.parquet", format=form, **more)
    found = standard_columns(read_listing(tmp_path / "t.parquet").table)
    assert (found["ra"][0], found["dec"][0]) == pytest.approx((180.0, 1.0))
    assert found["size_deg"][0] == pytest.approx(0.05)
    table["size_deg"].unit = "Jy"
    table.write(tmp_path / "bad.parquet")
    with pytest.raises(TargetsError, match="column size_deg: expected an angle, found unit 'Jy'"):
        read(tmp_path / "bad.parquet")


def test_empty_cells_of_parquet(tmp_path: Path) -> None:
    columns = {"id": ["p", None], "file": [None, "b.fits"], "hdu": [None, "SCI"]}
    frame = pd.DataFrame(columns | {"y0": [1, 2], "width": [3.0, None], "height": [4, 4]})
    frame["x0"] = pd.array([1, None], dtype="Int64")
    frame.to_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet")
    assert found.id == ["p", "1"]
    assert found.hdu.list() == [None, "SCI"]
    assert found.faults() == {0: ("error", "file is missing"), 1: ("error", "x0 is missing")}


@pytest.mark.parametrize(
    ("way", "name", "value", "said"),
    [
        ("center", "x", math.inf, "x must be"),
        ("center", "y", -math.inf, "y must be"),
        ("center", "height", math.inf, "height must be"),
        ("center", "width", 2.5, "width must be"),
        ("center", "width", 0, "width must be"),
        ("center", "x", 1e300, "x must be"),
        ("center", "x", "abc", "x must be a number, not 'abc'"),
        ("box", "x0", 0.5, "x0 must be a whole number"),
        ("box", "height", -1, "height must be"),
        ("box", "y0", 2**60, "y0 must be"),
        ("box", "y0", 10**400, "y0 must be"),
        ("sky", "ra", math.inf, "inf"),
        ("sky", "dec", 90.1, "90.1"),
        ("sky", "size_deg", 0, "size must be a positive angle, not 0"),
        ("sky", "size_deg", math.inf, "size must be"),
        ("sky", "size_deg", math.nan, "size is missing"),
    ],
)
def test_bad_value_is_a_fault_of_its_row(way: str, name: str, value: Any, said: str) -> None:
    ways = {
        "center": ("x", "y", "height", "width"),
        "box": ("x0", "y0", "width", "height"),
        "sky": ("ra", "dec", "size_deg"),
    }
    columns: dict[str, list[Any]] = {column: [5, 5, 5] for column in ways[way]}
    columns[name] = [5, value, 5]
    if way == "sky":
        columns["size_deg"] = [value if name == "size_deg" and n == 1 else 0.001 for n in range(3)]
    sky = SkyMapping(lambda: WCS(sky_header(5, 5)), "a.fits")
    found = read_targets({"file": ["a.fits"] * 3} | columns, lambda *_: sky)
    assert found.faults().keys() == {1}
    status, reason = found.faults()[1]
    assert status == "error"
    assert said in reason


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["x0", "y0", "width", "height"], "need a column 'file'; found: x0, y0, width, height"),
        (["file"], r"need the columns .*; found: file"),
        (["file", "x", "y", "width"], r"need the columns .*; found: file, x, y, width"),
        (["file", "ra", "dec"], r"need the columns .*\(ra, dec, size\)"),
        (
            ["file", "x", "y", "x0", "y0", "width", "height"],
            r"more than one of \(x, y, height, width\) or \(x0, y0, width, height\); found",
        ),
        (["file", "x0", "y0", "width", "height", "ra", "dec", "size_deg"], "more than one of"),
        (["file", "x0", "X0", "y0", "width", "height"], "one column 'x0', found 'x0' and 'X0'"),
        (["GROUP", "group", *BOX], "the targets: expected one column 'group', found 'GROUP' and"),
    ],
)
def test_wrong_columns_raise_and_say_what_was_found(columns: list[str], said: str) -> None:
    with pytest.raises(TargetsError, match=said):
        read({name: [1] for name in columns})


def test_a_missing_size_can_be_given_where_options_can() -> None:
    columns = {"file": ["a.fits"], "ra": [1], "dec": [1]}
    with pytest.raises(TargetsError, match="found: file, ra, dec; or give one size for all"):
        read_targets(columns, no_sky, choices=ListOptions())
    with pytest.raises(TargetsError, match=r"found: file, ra, dec$"):
        read_targets(columns, no_sky)


@pytest.mark.parametrize("given", [None, 5, ["a.fits"], {"file": ["a", "b"], "x0": [1]}])
def test_what_is_no_table_raises(given: Any) -> None:
    with pytest.raises(TargetsError):
        read(given)


def test_unreadable_table_files_raise_and_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.csv"):
        read(tmp_path / "none.csv")
    with pytest.raises(TargetsError, match=r"t\.doc: a table ends in one of \.csv"):
        read(tmp_path / "t.doc")
    for suffix in ("csv", "ecsv", "xml", "parquet"):
        path = tmp_path / f"bad.{suffix}"
        path.write_bytes(b"\xff\xfe\0 no table")
        with pytest.raises(TargetsError, match=f"bad.{suffix}"):
            read(path)


def test_no_rows_are_no_targets() -> None:
    names = ("file", "x", "y", "height", "width")
    assert len(read({name: [] for name in names})) == 0
    assert len(read(Table({name: np.zeros(0) for name in names}))) == 0


@given(st.lists(st.text(max_size=90) | st.sampled_from(["a", "A", "a-2", "a-3", "..", "/", ""])))
def test_names_are_unique_and_harmless(ids: list[str]) -> None:
    names = unique_names(ids)
    assert len({name.lower() for name in names}) == len(ids)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*", name)
        assert len(name) <= NAME_BYTES + 8


@given(
    st.lists(
        st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,50}", fullmatch=True), unique_by=str.lower
    )
)
def test_harmless_ids_are_names(ids: list[str]) -> None:
    assert unique_names(ids) == ids


def test_many_equal_ids_cost_little() -> None:
    assert unique_names(["star"] * 100_000)[-1] == "star-100000"


values = st.one_of(
    st.integers(-3, 60),
    st.floats(-1e4, 1e4),
    st.integers(-200, 200).map(lambda n: n / 4),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e17, 2.0**53, -(2.0**53), 0.5, -0.0, 1e308]),
)
sides = st.one_of(st.integers(1, 50), values)


@pytest.mark.parametrize("way", ["center", "box"])
@given(data=st.data())
def test_placing_at_once_equals_one_by_one(way: str, data: st.DataObject) -> None:
    a, b, c, d = (
        data.draw(st.lists(kind, min_size=6, max_size=6)) for kind in (values, values, sides, sides)
    )
    names = ("x", "y", "height", "width") if way == "center" else ("x0", "y0", "width", "height")
    make = box_around if way == "center" else validated_box
    found = read({"file": ["f"] * 6} | dict(zip(names, (a, b, c, d), strict=True)))
    for row, numbers in enumerate(zip(a, b, c, d, strict=True)):
        try:
            box = make(*map(float, numbers))
        except (SwatheError, ValueError, OverflowError):
            assert row in found.faults()
        else:
            assert row not in found.faults()
            assert tuple(found.box[row].tolist()) == box


def test_whole_columns_equal_columns_of_objects() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-50, 500, (2, 300))
    height, width = rng.integers(1, 90, (2, 300))
    columns = {"file": ["f"] * 300, "x": x, "y": y, "height": height, "width": width}
    slow = {**columns, "x": x.astype(object)}
    assert read(columns).box.tolist() == read(slow).box.tolist()


def test_sky_targets_are_placed_as_by_cutout2d() -> None:
    from astropy import units
    from astropy.coordinates import SkyCoord
    from astropy.nddata import Cutout2D

    wcs = WCS(sky_header())
    sky = SkyMapping(lambda: wcs, "a.fits")
    ra, dec = [10.0, 10.005, 9.995], [-1.0, -1.005, -0.995]
    asked: list[tuple[str, object]] = []

    def sky_of(file: str, hdu: object) -> SkyMapping:
        asked.append((file, hdu))
        return sky

    found = read_targets(
        {"file": ["a", "a", "b"], "ra": ra, "dec": dec, "size_deg": [0.002] * 3},
        sky_of,
    )
    assert asked == [("a", None), ("b", None)]
    image = noise(1)
    for row, (x0, y0, width, height) in enumerate(found.box.tolist()):
        place = SkyCoord(ra[row], dec[row], unit="deg")
        cut = Cutout2D(image, place, 0.002 * units.deg, wcs=wcs)
        assert (x0, y0) == cut.origin_original
        assert (height, width) == cut.shape


def test_sky_targets_without_a_place_do_not_overlap() -> None:
    sky = SkyMapping(lambda: WCS(sky_header()), "a.fits")
    table = {"file": ["a"] * 2, "ra": [10.0, 190.0], "dec": [-1.0, 1.0], "size_deg": [0.002] * 2}
    found = read_targets(table, lambda *_: sky)
    assert found.faults().keys() == {1}
    assert found.faults()[1][0] == "no-overlap"


@pytest.mark.parametrize(
    ("error", "status"), [(NotFoundError("gone"), "missing"), (RegionError("no WCS"), "error")]
)
def test_image_without_a_sky_fails_its_rows_only(error: SwatheError, status: str) -> None:
    sky = SkyMapping(lambda: WCS(sky_header()), "a.fits")

    def sky_of(file: str, hdu: object) -> SkyMapping:
        if file == "bad":
            raise error
        return sky

    table = {
        "file": ["bad", "a", "bad"],
        "ra": [10.0] * 3,
        "dec": [-1.0] * 3,
        "size_deg": [0.002] * 3,
    }
    found = read_targets(table, sky_of)
    assert found.faults() == {0: (status, str(error)), 2: (status, str(error))}


def test_files_are_looked_for_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(name: str) -> bool:
        asked.append(name)
        return name.startswith("dr17:")

    monkeypatch.setattr(target_list, "is_named", note)
    rows = {"file": ["a.fits", "dr17:b.fits", "a.fits", " a.fits", "dr17:b.fits"]}
    table = Table({**rows, **{name: [5] * 5 for name in BOX}})
    table.write(tmp_path / "t.ecsv")
    found = read_targets(tmp_path / "t.ecsv", no_sky)
    assert found.source.values == [str(tmp_path / "a.fits"), "dr17:b.fits"]
    assert found.source.codes.tolist() == [0, 1, 0, 0, 1]
    assert asked == ["a.fits", "dr17:b.fits"]
    asked.clear()
    found = read_targets(table, no_sky, store="mirror")
    assert found.source.values == ["mirror:a.fits", "mirror:b.fits"]
    assert asked == ["a.fits", "dr17:b.fits"]
