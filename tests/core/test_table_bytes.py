"""Tables as bytes, from a confined process."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Column, Table
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import TargetsError
from swathe.core.table_bytes import LONGEST_TEXT, pack_table, unpack_table

VALUES = st.sampled_from(["", "a", "survey:a.fits", "é", None, 1, 1.0, True, "1"])


@given(st.lists(VALUES, min_size=1, max_size=40))
def test_texts_come_back(values: list[object]) -> None:
    column = np.empty(len(values), object)
    column[:] = values
    unpacked = unpack_table(pack_table(Table({"file": Column(column)})))
    assert [(type(each), each) for each in unpacked["file"]] == [
        (type(each), each) for each in values
    ]


def test_equal_texts_are_one_object_and_few_bytes() -> None:
    names = [f"survey:{number % 3}.fits" for number in range(3000)]
    packed = pack_table(Table({"file": np.array(names, object)}))
    assert len(packed) < 5 * len(names)
    column = unpack_table(packed)["file"].tolist()
    assert column == names and len({id(name) for name in column}) == 3


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(TargetsError, match="row 1, column 'file': expected up to 10,000"):
        pack_table(Table({"file": np.array(["a", "b" * (LONGEST_TEXT + 1)], object)}))
