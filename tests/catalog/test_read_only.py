"""Queries of users: they cannot write, and they end."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa

from swathe.catalog import Catalog
from swathe.catalog.read_only import ReadLimit
from swathe.catalog.tables import DatasetRow, StoreRow
from swathe.core.errors import CatalogError, QueryError


def nothing(_connection: Any) -> None:
    """Register no functions."""


def forever() -> Any:
    """A statement that counts without end."""
    numbers = sa.select(sa.literal(1).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select((numbers.c.n + 1) % 1000))
    return sa.select(sa.func.count()).select_from(numbers)


def run(catalog: Catalog, statement: Any, limit: ReadLimit) -> list[Any]:
    with catalog.limited_rows(statement, limit, nothing) as rows:
        return list(rows)


def test_rows_are_read(catalog: Catalog) -> None:
    catalog.add_store("disk", "/data")
    assert run(catalog, sa.select(StoreRow.name), ReadLimit.of(10)) == [("disk",)]


@pytest.mark.parametrize(
    "statement",
    [
        sa.delete(StoreRow).returning(StoreRow.name),
        sa.update(StoreRow).values(name="x").returning(StoreRow.name),
        sa.text("CREATE TABLE tap_test (a INTEGER)"),
    ],
)
def test_nothing_is_written(catalog: Catalog, statement: Any) -> None:
    catalog.add_store("disk", "/data")
    with pytest.raises((CatalogError, QueryError)):
        run(catalog, statement, ReadLimit.of(10))
    assert [store.name for store in catalog.stores()] == ["disk"]
    # Other connections still write.
    catalog.add_dataset("deep", "disk", "", None)
    assert run(catalog, sa.select(DatasetRow.name), ReadLimit.of(10)) == [("deep",)]


def test_a_statement_ends_in_time(catalog: Catalog) -> None:
    begin = time.monotonic()
    with pytest.raises(QueryError, match=r"expected an answer within 0\.5 s"):
        run(catalog, forever(), ReadLimit.of(0.5))
    assert time.monotonic() - begin < 20
    assert run(catalog, sa.select(sa.literal(1)), ReadLimit.of(10)) == [(1,)]


def test_a_statement_is_stopped(catalog: Catalog) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(QueryError, match="the query was stopped"):
        run(catalog, forever(), ReadLimit.of(120, stop.is_set))
    timer.join()
    assert time.monotonic() - begin < 30
    assert run(catalog, sa.select(sa.literal(1)), ReadLimit.of(10)) == [(1,)]
