"""Lists of targets as people paste them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import TargetsError
from swathe.files.targets.columns import standard_columns
from swathe.portal.pasted_targets import FAULTS, read_paste


def test_table_with_names() -> None:
    pasted = read_paste("ID, File,x,y,height,width\nM51,survey:a.fit,1,2.5,30,40\n")
    assert pasted.columns == {
        "id": ["M51"],
        "file": ["survey:a.fit"],
        "x": [1.0],
        "y": [2.5],
        "height": [30.0],
        "width": [40.0],
    }
    assert not pasted.refusals


@pytest.mark.parametrize("mark", [",", "\t", ";", "  "])
def test_table_with_other_marks(mark: str) -> None:
    pasted = read_paste(mark.join(["ra", "dec", "size_deg"]) + "\n" + mark.join(["1", "2", "3"]))
    assert pasted.columns == {"ra": [1.0], "dec": [2.0], "size_deg": [3.0], "id": ["2"]}


def test_quoted_values_may_hold_the_mark() -> None:
    pasted = read_paste('file,ra,dec,size_deg\n"survey:a,b.fit",1,2,3\n')
    assert pasted.columns["file"] == ["survey:a,b.fit"]


def test_places_in_the_sky() -> None:
    pasted = read_paste("# RA Dec size\n\n10.5 -1.25 0.01\n10:30:00 -1:15:00 30\"\n1,2,3'\n")
    assert pasted.columns["ra"] == pytest.approx([10.5, 157.5, 1])
    assert pasted.columns["dec"] == pytest.approx([-1.25, -1.25, 2])
    assert pasted.columns["size_deg"] == pytest.approx([0.01, 30 / 3600, 0.05])
    assert pasted.columns["id"] == ["3", "4", "5"]  # numbers of lines


def test_declination_just_south_of_the_equator_keeps_its_sign() -> None:
    assert read_paste("0:0:0 -0:00:36 1").columns["dec"] == pytest.approx([-0.01])


def test_files_with_boxes() -> None:
    pasted = read_paste("survey:a.fit, 1, 2, 30, 40\nsurvey:b c.fit,1,2,30,40")
    assert pasted.columns["file"] == ["survey:a.fit", "survey:b c.fit"]
    assert pasted.columns["width"] == [40.0, 40.0]


def test_one_bad_line_stops_no_other() -> None:
    pasted = read_paste("1 2 3\n1 2\n1 2 three\n1 2 inf\n4 5 6\n")
    assert pasted.columns["ra"] == [1.0, 4.0]
    assert [line for line, _ in pasted.faults] == [2, 3, 4]
    assert pasted.faults[0][1] == "expected RA Dec size, as in the lines before, found RA Dec"
    assert "expected 30\", 0.5arcmin, 0.01deg or 100pix, found 'three'" in pasted.faults[1][1]


def test_what_is_no_number_in_a_table_is_left_to_its_row() -> None:
    pasted = read_paste("file,x,y,height,width\na,1,2,3,4\nb,one,2,3,4\n")
    assert pasted.columns["x"] == ["1", "one"]
    assert pasted.columns["y"] == [2.0, 2.0]


def test_faults_told_are_bounded() -> None:
    pasted = read_paste("1 2 3\n" + "x y z\n" * 1000)
    assert (len(pasted.faults), pasted.refusals) == (FAULTS, 1000)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        (" \n# nothing\n", "is empty"),
        ("hello world", 'line 1: "hello world" is not a position: expected RA Dec'),
        ("\n\na,b,c\n", "line 3"),
        ("ra,dec,ra\n1,2,3", "two columns 'ra'"),
        ("1,2,3,4,5,6,7", "is not a position"),
        ("M31 is nice", 'line 1: "M31 is nice" is not a position: expected RA Dec'),
        ("3C273", '"3C273" is not a position: expected RA Dec .size., or the name of a star'),
    ],
)
def test_no_list(text: str, told: str) -> None:
    with pytest.raises(TargetsError, match=told):
        read_paste(text)


@given(st.text(max_size=200))
def test_any_text_is_a_list_or_an_error(text: str) -> None:
    try:
        pasted = read_paste(text)
    except TargetsError:
        return
    assert len({len(column) for column in pasted.columns.values()}) == 1


def test_units_below_the_names_are_honoured() -> None:
    pasted = read_paste("ra\tdec\tsize\nrad\tdeg\tarcmin\n---\t---\t---\n1.0\t2.0\t3.0\n")
    assert pasted.table is not None
    columns = standard_columns(pasted.table)
    assert columns["ra"][0] == pytest.approx(57.29577951)
    assert columns["size_deg"][0] == pytest.approx(0.05)
