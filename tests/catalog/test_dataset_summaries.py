"""What datasets hold in few numbers, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from fastapi import FastAPI

from swathe.catalog import Catalog, DatasetProblem, DatasetSummary, Footprint, Granule, Replica
from swathe.catalog.records.datasets import ALL_CELLS, ORDER
from swathe.core.errors import NoSuchDatasetError
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import read_config
from swathe.portal.pages.archive_counts import ArchiveCounts

CELL = 4 ** (ORDER - 6)
"""Cells of the finest order in one of order 6."""


def replica(path: str, size: int | None = 100, state: str = "ok", at: str = "") -> Replica:
    reason = None if state in ("ok", "vanished") else f"{path} is {state}"
    return Replica(path, at or path, size, None, "v", state, reason)  # type: ignore[arg-type]


def granule(path: str, *ranges: tuple[int, int], hdu: int = 0, **told: object) -> Granule:
    place = Footprint(10.0, -1.0, 0.1, 0.4, list(ranges)) if ranges else None
    return Granule(path, hdu, None, (10, 20), 100, "v", footprint=place, **told)  # type: ignore[arg-type]


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        opened.add_store("disk", "/data")
        opened.add_store("copy", "/copy")
        opened.add_dataset("one", "disk", "", None)
        opened.add_dataset("two", "disk", "two", None)
        opened.add_dataset("none", "disk", "none", None)
        opened.put_objects(
            "one",
            "disk",
            [
                (
                    replica("a"),
                    [
                        granule("a", (3 * CELL, 5 * CELL - 1), (7 * CELL, 7 * CELL + 5), band="r"),
                        granule("a", hdu=1, band="g", t_min=5.0, t_max=6.0),
                    ],
                ),
                (replica("b", 50), [granule("b", (4 * CELL, 4 * CELL + 1), band="r", t_min=2.5)]),
                (replica("c", 10, "damaged"), []),
                (replica("d", 10), [granule("d", (0, CELL), band="i", t_max=9.5)]),
            ],
        )
        opened.set_states("one", "disk", ["d"], "vanished")
        opened.put_objects("one", "copy", [(replica("a", at="new/a"), None)])
        opened.put_objects("two", "disk", [(replica("e"), [granule("e", (0, ALL_CELLS - 1))])])
        yield opened


def test_summaries(catalog: Catalog) -> None:
    found = catalog.summaries()
    assert found["one"] == DatasetSummary(150, 2.5, 6.0, {"r": 2, "g": 1}, 2)  # d has vanished
    assert list(found["one"].bands) == ["r", "g"]  # the most frequent first
    assert found["two"] == DatasetSummary(100, None, None, {}, 1)
    assert found["none"] == DatasetSummary()


def test_granules_page_by_page(catalog: Catalog) -> None:
    pages = [catalog.granules("one", start, 2) for start in (0, 2, 4)]
    assert [[(each.path, each.hdu) for each in page] for page in pages] == [
        [("a", 0), ("a", 1)],
        [("b", 0)],
        [],
    ]
    first, second = pages[0]
    assert (first.shape, first.band) == ((10, 20), "r")
    assert first.footprint is not None
    assert second.footprint is None


def test_troubles_page_by_page(catalog: Catalog) -> None:
    damaged = DatasetProblem("disk:c", "damaged", "c is damaged")
    vanished = DatasetProblem("disk:d", "vanished", None)
    assert catalog.troubles("one", 0, 10) == [damaged, vanished]
    assert catalog.troubles("one", 1, 10) == [vanished]
    assert catalog.troubles("two", 0, 10) == []


def test_coverage_of_what_can_be_read(catalog: Catalog) -> None:
    ranges = [(first, last) for _, first, last in catalog.coverage(6, "one")]
    assert ranges == [(3, 4), (7, 7), (4, 4)]  # an image has a copy more, and counts once
    images = [image for image, _, _ in catalog.coverage(6)]
    assert images == sorted(images)
    assert [(first, last) for _, first, last in catalog.coverage(0, "two")] == [(0, 11)]


def test_no_such_dataset(catalog: Catalog) -> None:
    for ask in (
        lambda: catalog.granules("other", 0, 1),
        lambda: catalog.troubles("other", 0, 1),
        lambda: catalog.coverage(3, "other"),
    ):
        with pytest.raises(NoSuchDatasetError, match="there is no dataset 'other'"):
            ask()


# ---- What pages tell of it


COUNTED = ("granules", "replicas", "footprints")


@contextmanager
def statements(catalog: Catalog) -> Iterator[list[str]]:
    """What the database is asked meanwhile."""
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    sqlalchemy.event.listen(catalog._engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sqlalchemy.event.remove(catalog._engine, "before_cursor_execute", note)


def counts(asked: list[str]) -> bool:
    """Whether tables are read that have a row for each image or file."""
    return any(name in statement for statement in asked for name in COUNTED)


def test_what_is_counted_holds_until_something_changes(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("swathe.portal.pages.archive_counts.time", clock)
    holdings = ArchiveCounts(catalog)
    holdings.begin()
    for _ in range(3):
        now += 1e6
        with statements(catalog) as asked:
            held, drawn = holdings.all(), holdings.map()
        assert asked and not counts(asked)
    assert [each.dataset for each in held] == catalog.datasets()
    catalog.set_sync_time("none")
    held = holdings.all()
    for change in (
        lambda: catalog.set_states("one", "disk", ["d"], "ok"),
        lambda: catalog.put_objects("two", "disk", [(replica("f"), [granule("f", (0, 9))])]),
        lambda: catalog.set_sync_time("two"),
        lambda: catalog.set_calib_level("two", 3),
        lambda: catalog.add_dataset("more", "disk", "more", None),
        lambda: catalog.remove_dataset("one"),
    ):
        before = held
        change()
        # It rests for a while, however often it changes.
        with statements(catalog) as asked:
            assert holdings.all() == before and not counts(asked)
        now += 1e6
        held = holdings.all()
        assert held != before
        assert [each.dataset for each in held] == catalog.datasets()
    assert holdings.map() != drawn


def test_a_portal_counts_when_it_starts(
    url: str, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", url)
    (tmp_path / "swathe.toml").write_text(
        f'[catalog]\ndatabase = "{url}"\n[results]\nfolder = "{tmp_path}/results"\n'
    )

    async def run(app: FastAPI) -> None:
        async with app.router.lifespan_context(app):
            pass

    with open_portal(read_config(tmp_path / "swathe.toml")) as portal:
        app = make_app(portal)
        asyncio.run(run(app))
        with statements(portal.catalog) as asked:
            assert app.state.holdings.map().svg
        assert asked and not counts(asked)
