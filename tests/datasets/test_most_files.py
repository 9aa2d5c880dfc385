"""A search that may find too much ends as soon as it has found it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.core.errors import DatasetError
from swathe.datasets.search import find
from tests.support.catalogs import new_catalog
from tests.support.subscriptions import new_dataset, put


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(new_catalog(tmp_path / "c.sqlite")) as catalog:
        new_dataset(catalog)
        for number in range(5):
            put(catalog, f"{number}.h5")
        yield catalog


def test_more_files_than_allowed_are_an_error(catalog: Catalog) -> None:
    assert len(find(dataset="swaths", catalog=catalog, most_files=5)) == 5
    with pytest.raises(DatasetError, match="expected 4 matching files at most, found more"):
        find(dataset="swaths", catalog=catalog, most_files=4)


def test_the_search_reads_no_more_than_that(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    whole = catalog.copies_by_parts

    def one_by_one(criteria: object) -> Iterator[object]:
        for part in whole(criteria):  # type: ignore[arg-type]
            for copy in part:
                read.append(copy)
                yield [copy]

    monkeypatch.setattr(catalog, "copies_by_parts", one_by_one)
    with pytest.raises(DatasetError, match="at most"):
        find(dataset="swaths", catalog=catalog, most_files=1)
    assert len(read) == 2
