"""The manifest that `cut_many` returns is used as an astropy table; its head is YAML."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from swathe.core.row_table import DictColumn
from swathe.files.manifest import read_manifest
from swathe.files.manifest_columns import Manifest
from swathe.files.manifest_head import head_of
from swathe.files.manifest_table import ManifestTable
from tests.support.property_examples import examples

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
VALUES = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(NAMES, PLAIN, max_size=3)


def manifest() -> Manifest:
    source = DictColumn.of(["x.fits", "y.fits"])
    made = Manifest(["a", "b"], source, {"ok": 1}, ["a.fits", "b.fits"])
    made.enter(0, "ok", size=2880)
    return made


def test_it_is_used_as_a_table() -> None:
    table = ManifestTable(manifest())
    assert (len(table), table.meta) == (2, {"ok": 1})
    table.meta["mine"] = 5
    assert table["status"].tolist() == ["ok", "error"]
    assert [row["id"] for row in table[table["status"] != "ok"]] == ["b"]
    assert table.failed["id"].tolist() == ["b"]
    assert [row["bytes"] for row in table] == [2880, 0]
    assert table.colnames == table.table.colnames
    table["more"] = [1, 2]
    assert "more" in table.colnames
    assert table.meta == {"ok": 1, "mine": 5}
    assert repr(table) == repr(table.table)
    assert str(table) == str(table.table)
    assert "x.fits" in table._repr_html_()
    assert isinstance(table.table, Table)
    assert Table(table).colnames == table.colnames
    with pytest.raises(AttributeError, match="nothing"):
        _ = table.nothing


@pytest.mark.parametrize("is_used", [False, True])
def test_it_is_copied_and_pickled(is_used: bool) -> None:
    table = ManifestTable(manifest())
    if is_used:
        assert table["id"][1] == "b"
    for other in (pickle.loads(pickle.dumps(table)), copy.copy(table), copy.deepcopy(table)):
        assert other["source"].tolist() == ["x.fits", "y.fits"]
        assert other.meta == {"ok": 1}


@settings(max_examples=examples(30))
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_the_head_is_read_back_by_astropy(meta: dict[str, Any]) -> None:
    made = Manifest(["a"], DictColumn.of(["x"]), meta, ["a.fits"])
    content = b"".join([head_of(meta), *made.rows()]).decode()
    table = Table.read(content.splitlines(), format="ascii.ecsv")
    assert dict(table.meta) == meta
    assert list(table.meta) == list(meta)


@pytest.mark.parametrize("number", [1e-7, 1e300, -2.5, 1e16, math.inf, -math.inf])
def test_numbers_of_the_head_stay_numbers(number: float, tmp_path: Path) -> None:
    meta = {"fill": np.float64(number), "nan": math.nan}
    made = Manifest(["a"], DictColumn.of(["x"]), meta, ["a.fits"])
    made.write(tmp_path / "manifest.ecsv")
    table = read_manifest(tmp_path / "manifest.ecsv")
    assert table is not None
    assert (table.meta["fill"], type(table.meta["fill"])) == (number, float)
    assert math.isnan(table.meta["nan"])


def test_an_object_in_the_head_is_an_error() -> None:
    with pytest.raises(TypeError, match="expected text, number or list"):
        head_of({"what": object()})
