"""Rows by columns: the same rows, and what is asked of all at once."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.row_record import RowRecord
from swathe.core.row_table import DictColumn, RowTable
from tests.support.row_records import RECORDS, TEXT


@given(st.lists(RECORDS, max_size=20))
def test_rows_by_columns_are_the_same_rows(kept: list[RowRecord]) -> None:
    rows = RowTable.of(kept)
    assert list(rows) == kept
    assert [rows[at] for at in range(len(kept))] == kept
    assert rows == pickle.loads(pickle.dumps(rows))
    half = len(kept) // 2
    assert list(rows[half:]) == kept[half:]
    assert list(RowTable.joined([rows[half:], rows[:half]])) == kept[half:] + kept[:half]
    assert list(rows.take(rows.has("ok", "error"))) == [
        row for row in kept if row.status in ("ok", "error")
    ]


@given(st.lists(TEXT, min_size=1, max_size=20), st.integers(0, 20))
def test_some_rows_have_no_more_values_than_rows(texts: list[str], count: int) -> None:
    column = DictColumn.of(texts)
    for some in (slice(count), np.arange(len(texts))[:count]):
        taken = column.take(some)
        assert taken.list() == texts[:count]
        assert len(taken.values) <= len(taken)
