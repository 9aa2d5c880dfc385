"""Rows by columns: the same rows, and what is asked of all at once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import NoOverlapError, NotFoundError, RegionError, SwatheError
from swathe.core.row_record import STATUSES, RowRecord, fault_of
from swathe.core.row_table import DictColumn, RowTable
from swathe.files.file import sky_of
from swathe.files.targets.target_list import read_targets
from tests.support.row_records import RECORDS, TEXT


@given(st.lists(RECORDS, max_size=20))
def test_rows_by_columns_are_the_same_rows(kept: list[RowRecord]) -> None:
    rows = RowTable.of(kept)
    assert list(rows) == kept
    assert [rows[at] for at in range(len(kept))] == kept
    assert rows == pickle.loads(pickle.dumps(rows))
    half = len(kept) // 2
    assert list(rows[half:]) == kept[half:]
    assert list(RowTable.concatenate([rows[half:], rows[:half]])) == kept[half:] + kept[:half]
    assert list(rows.take(rows.has("ok", "error"))) == [
        row for row in kept if row.status in ("ok", "error")
    ]


def test_columns_of_one_value_take_no_memory_in_any_part() -> None:
    box = {"file": ["a"] * 9, "x0": [1] * 9, "y0": [1] * 9, "width": [5] * 9, "height": [5] * 9}
    rows = read_targets(box, sky_of)
    for part in (rows, rows[2:7], rows.take([1, 3, 5]), rows.take(rows.number > 3)):
        for column in (part.result, part.bytes, part.sky, part.sha256):
            assert column.strides[0] == 0 and len(column) == len(part)
        assert [row.sky for row in part] == [None] * len(part)
        assert [row.result for row in part] == [None] * len(part)
        assert [row.sha256 for row in part] == [""] * len(part)
    assert len(rows.take([])) == 0
    assert rows.to_predict() is rows


@given(st.lists(TEXT, min_size=1, max_size=20), st.integers(0, 20))
def test_some_rows_have_no_more_values_than_rows(texts: list[str], count: int) -> None:
    column = DictColumn.of(texts)
    for some in (slice(count), np.arange(len(texts))[:count]):
        taken = column.take(some)
        assert taken.list() == texts[:count]
        assert len(taken.values) <= len(taken)


def test_a_function_of_a_column_is_called_once_for_each_value() -> None:
    calls: list[str] = []

    def lower(text: str) -> str:
        calls.append(text)
        return text.lower()

    column = DictColumn.of(["A", "b", "a", "A", "B"]).map(lower)
    assert column.list() == ["a", "b", "a", "a", "b"]
    assert column.values == ["a", "b"]
    assert calls == ["A", "b", "a", "B"]


@given(st.lists(TEXT, min_size=1, max_size=20), st.data())
def test_values_are_put_into_a_column(texts: list[str], data: st.DataObject) -> None:
    column = DictColumn.of(texts)
    changes = data.draw(st.dictionaries(st.integers(0, len(texts) - 1), TEXT))
    changed = column.put(list(changes), list(changes.values()))
    assert changed.list() == [changes.get(row, text) for row, text in enumerate(texts)]
    assert column.list() == texts


@given(st.lists(RECORDS, min_size=1, max_size=20), st.data())
def test_faults_are_those_of_the_rows(records: list[RowRecord], data: st.DataObject) -> None:
    rows = RowTable.of(records)
    changes = data.draw(
        st.dictionaries(
            st.integers(0, len(records) - 1), st.tuples(st.sampled_from(STATUSES), TEXT)
        )
    )
    changed = rows.with_status(changes)
    expected = [
        row._replace(status=changes[at][0], reason=changes[at][1], box=None)
        if at in changes
        else row
        for at, row in enumerate(records)
    ]
    assert list(changed) == expected
    assert list(rows) == records
    assert changed.faults() == {
        at: (row.status, row.reason)
        for at, row in enumerate(expected)
        if row.status not in ("waiting", "ok")
    }
    assert changed.lacks_box.tolist() == [
        row.box is None and row.sky is not None and row.status in ("waiting", "ok")
        for row in expected
    ]


def test_groups_and_bands_stay_with_their_rows() -> None:
    record = RowRecord(0, 0, None, "a", "a", "a.fits", None, None, None, None)
    rows = RowTable.of([record] * 3)
    assert rows.take([1]).group is None
    rows.group = DictColumn.of(["m31", "m33", "m31"])
    both = RowTable.concatenate([rows.take([2, 1]), rows[:1]])
    assert both.group is not None
    assert both.group.list() == ["m31", "m33", "m31"]
    assert both.band is None
    nothing = RowTable.concatenate([rows[:0], rows[:0]])
    assert nothing.group is not None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NoOverlapError("away"), "no-overlap"),
        (NotFoundError("away"), "missing"),
        (RegionError("away"), "error"),
    ],
)
def test_an_error_is_the_fault_of_its_row(error: SwatheError, status: str) -> None:
    assert fault_of(error) == (status, "away")
