"""The parser of `StructMetadata`."""

from __future__ import annotations

import pytest

from swathe.arrays.struct_metadata import field_axes, integer_of, structures_of


@pytest.mark.parametrize(
    "text",
    [
        "GROUP=GRID_1 " * 70_000,
        "GROUP=GRID_1\n" * 70_000,
        "GROUP=GRID_1\n" + "\n" * 900_000 + "!\nEND_GROUP=GRID_1\n",
        "GROUP=GRID_1\nXDim=" + " " * 900_000 + "!\nEND_GROUP=GRID_1\n",
    ],
    ids=["line", "lines", "empty", "blanks"],
)
def test_long_structures_take_linear_time(text: str) -> None:
    grid = 'GROUP=GRID_2\n GridName="g"\n XDim=3\n XDim=4\nEND_GROUP=GRID_2\n'
    structure = structures_of(grid + text)[0]
    assert structure.name == "g"
    assert structure.entries == {"GridName": '"g"', "XDim": "3"}


@pytest.mark.parametrize("text", ["", "+-1", "1.5", "12345678901234", None, "\u00b2"])
def test_other_texts_are_no_whole_number(text: str | None) -> None:
    assert integer_of(text) is None
    assert integer_of("-17") == -17


@pytest.mark.parametrize("text", [7, None, "GROUP=GRID_1", "END_GROUP=GRID_1\nXDim=3"])
def test_other_texts_describe_no_fields(text: object) -> None:
    assert field_axes(text) == {}
