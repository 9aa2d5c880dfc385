"""Datasets in the catalogue, on both databases."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy
from astropy.wcs import WCS

from swathe.catalog import Catalog, Footprint, Granule, GranuleQuery, Replica
from swathe.catalog.datasets.granule_table import GranuleCopy
from swathe.catalog.records.datasets import ALL_CELLS, LEVELS, ORDER
from swathe.core import errors
from swathe.datasets import search


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as catalog:
        catalog.add_store("survey", "https://archive.example/dr17")
        catalog.add_store("mirror", "/data/mirror")
        yield catalog


def granule(path: str, *ranges: tuple[int, int], **given: Any) -> Granule:
    place = Footprint(10.0, 20.0, 1.0, 0.4, list(ranges), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    usual: dict[str, Any] = {"hdu": 0, "name": None, "shape": (4, 5), "size": 9, "version": "v"}
    return Granule(path, **(usual | {"footprint": place} | given))


def replica(path: str, **given: Any) -> Replica:
    usual: dict[str, Any] = {"size": 9, "modified": "1", "version": "v", "state": "ok"}
    return Replica(path, path, **(usual | given))


def put(catalog: Catalog, dataset: str, *images: Granule, **of: Any) -> None:
    grouped = itertools.groupby(images, key=lambda image: image.path)
    catalog.put_objects(
        dataset, "survey", [(replica(path, **of), list(of_it)) for path, of_it in grouped]
    )


def found(catalog: Catalog, **wanted: Any) -> list[tuple[str, int]]:
    """What both ways to ask give."""
    asked = GranuleQuery(**wanted)
    matches = catalog.find_granules(asked)
    if asked.limit is None:
        copies = {(copy.id, copy.hdu, copy.dataset) for copy in catalog.granule_copies(asked)}
        assert len(copies) == len(matches)
        assert {(match.granule.hdu, match.dataset) for match in matches} == {
            (hdu, dataset) for _, hdu, dataset in copies
        }
    return [(match.file, match.granule.hdu) for match in matches]


def count(catalog: Catalog, table: str) -> int:
    with catalog._engine.connect() as connection:
        return int(connection.scalar(sqlalchemy.text(f"SELECT count(*) FROM {table}")) or 0)


def test_datasets_are_added_listed_and_removed_with_all_they_hold(catalog: Catalog) -> None:
    made = catalog.add_dataset("dr17", "survey", "stripe82", "*.fits")
    assert (made.store, made.prefix, made.pattern, made.synced_at) == (
        "survey", "stripe82", "*.fits", None,
    )  # fmt: skip
    put(catalog, "dr17", granule("a", (0, 9)), granule("a", (0, 9), hdu=1), granule("b", (5, 7)))
    catalog.set_sync_time("dr17")
    (told,) = catalog.datasets()
    assert told == catalog.dataset("dr17")
    assert (told.objects, told.granules, told.states) == (2, 3, {"survey": {"ok": 2}})
    assert told.synced_at is not None and told.synced_at.tzinfo is not None
    catalog.remove_dataset("dr17")
    assert catalog.datasets() == []
    for table in ("replicas", "granules", "footprints"):
        assert count(catalog, table) == 0


def test_a_name_is_taken_once_its_first_scan_is_done(catalog: Catalog) -> None:
    for _ in range(2):
        catalog.add_dataset("dr17", "survey", "", None)
    for other in (("mirror", "", None), ("survey", "", None, 1)):
        with pytest.raises(errors.DatasetError, match="another place, pattern or calibration"):
            catalog.add_dataset("dr17", *other)
    catalog.set_sync_time("dr17")
    with pytest.raises(errors.DatasetError, match="there is a dataset 'dr17' already"):
        catalog.add_dataset("dr17", "survey", "", None)


@pytest.mark.parametrize("name", ["x", "", "9a", "a/b", "a" * 101, "a:b"])
def test_names_that_are_none(catalog: Catalog, name: str) -> None:
    with pytest.raises(errors.DatasetError, match="a dataset's name is"):
        catalog.add_dataset(name, "survey", "", None)


def test_a_dataset_has_a_calibration_level(catalog: Catalog) -> None:
    assert catalog.add_dataset("dr17", "survey", "", None).calib_level == 2
    assert catalog.add_dataset("raw", "survey", "", None, 0).calib_level == 0
    put(catalog, "raw", granule("a"))
    catalog.set_calib_level("dr17", 3)
    assert [each.calib_level for each in catalog.datasets()] == [3, 0]
    assert [each.calib_level for each in catalog.find_granules(GranuleQuery())] == [0]
    for level in (-1, 5):
        with pytest.raises(errors.DatasetError, match="level is 0, 1, 2, 3 or 4, not"):
            catalog.add_dataset("dr18", "survey", "", None, level)
        with pytest.raises(errors.DatasetError, match="level is 0, 1, 2, 3 or 4, not"):
            catalog.set_calib_level("raw", level)
    with pytest.raises(errors.NoSuchDatasetError):
        catalog.set_calib_level("dr18", 1)


def test_what_is_not_there_is_told(catalog: Catalog) -> None:
    with pytest.raises(errors.NoSuchStoreError, match="'nowhere'"):
        catalog.add_dataset("dr17", "nowhere", "", None)
    for ask in (catalog.dataset, catalog.remove_dataset, catalog.set_sync_time):
        with pytest.raises(errors.NoSuchDatasetError, match="no dataset 'dr18'"):
            ask("dr18")
    with pytest.raises(errors.NoSuchDatasetError):
        catalog.find_granules(GranuleQuery(dataset="dr18"))
    with pytest.raises(errors.NoSuchDatasetError):
        put(catalog, "dr18", granule("a"))


def test_a_store_that_holds_a_dataset_stays(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    with pytest.raises(errors.StoreSettingsError, match="the dataset 'dr17' is in the store"):
        catalog.remove_store("survey")
    catalog.remove_store("mirror")
    catalog.remove_dataset("dr17")
    catalog.remove_store("survey")


def test_one_granule_by_its_name(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a"), granule("a", hdu=2, name="ERR"), granule("b"))
    match = catalog.granule("dr17", "a", 2)
    assert match is not None
    assert (match.dataset, match.file, match.granule.name) == ("dr17", "survey:a", "ERR")
    for nothing in (("dr18", "a", 2), ("dr17", "c", 0), ("dr17", "a", 1), ("dr17", "survey:a", 0)):
        assert catalog.granule(*nothing) is None
    catalog.set_states("dr17", "survey", ["a"], "vanished")
    assert catalog.granule("dr17", "a", 2) is None


def test_granules_one_by_one(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", *(granule(f"a{number:04}", (number, number)) for number in range(1100)))
    given = catalog.each_granule(GranuleQuery())
    assert [next(given).file for _ in range(2)] == ["survey:a0000", "survey:a0001"]
    given.close()  # type: ignore[attr-defined]
    assert len(list(catalog.each_granule(GranuleQuery()))) == 1100
    assert len(list(catalog.each_granule(GranuleQuery(limit=700)))) == 700
    assert len(list(catalog.each_granule(GranuleQuery(ranges=[(0, 899)])))) == 900


def test_what_is_put_in_comes_out(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    full = granule(
        "a", (3, 3), name="SCI", t_min=53_634.1, t_max=53_634.2, band="r", em_min=5e-7,
        em_max=7e-7, hdu=2, shape=(3, 4, 5), note="odd",
    )  # fmt: skip
    bare = Granule("b", 0, None, (7,), 1 << 40, "w")
    put(catalog, "dr17", full, bare)
    one, other = catalog.find_granules(GranuleQuery())
    assert (one.dataset, one.file, other.file) == ("dr17", "survey:a", "survey:b")
    assert other.granule == bare
    assert full.footprint is not None and one.granule.footprint is not None
    # The ranges are for the search alone.
    assert one.granule.footprint.ranges == []
    assert one.granule.footprint.outline == full.footprint.outline
    assert one.granule.t_min == full.t_min and one.granule.shape == full.shape


def test_copies_are_rows_of_what_was_put_in(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    image = granule(
        "a", (3, 3), name="SCI", t_min=53_634.1, t_max=53_634.2, band="r", em_min=5e-7,
        em_max=7e-7, hdu=2, shape=(3, 4, 5),
    )  # fmt: skip
    put(catalog, "dr17", image)
    place = image.footprint
    assert place is not None
    catalog.put_objects("dr17", "mirror", [(replica("a", modified="2"), None)])
    one, other = sorted(catalog.granule_copies(GranuleQuery([(0, 5)])), key=lambda copy: copy.store)
    assert (one.store, one.file, bool(one.is_first)) == ("mirror", "mirror:a", False)
    assert (other.store, other.file, bool(other.is_first)) == ("survey", "survey:a", True)
    assert one[4:] == other[4:]
    assert one.id == other.id and (one.hdu, one.dataset, one.name) == (2, "dr17", "SCI")
    told = (one.t_min, one.t_max, one.band, one.em_min, one.em_max)
    assert told == (53_634.1, 53_634.2, "r", 5e-7, 7e-7)
    assert (one.s_ra, one.s_dec, one.s_fov, one.s_pixel_scale) == (10.0, 20.0, 1.0, 0.4)
    assert one.outline is not None and json.loads(one.outline) == place.outline
    assert json.loads(one.shape) == [3, 4, 5]
    assert (one.wcs, one.size, one.version) == (None, 9, "v")
    # When the object is another, its copies are stale.
    put(catalog, "dr17", image, version="w")
    assert [copy.store for copy in catalog.granule_copies(GranuleQuery())] == ["survey"]
    assert [copy.state for copy in catalog.replicas("dr17", "mirror")] == ["stale"]
    catalog.put_objects("dr17", "survey", [(replica("a", version="w"), None)])
    assert [copy.state for copy in catalog.replicas("dr17", "survey")] == ["ok"]


def test_objects_are_replaced_whole_and_others_stay(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    catalog.add_dataset("dr18", "survey", "", None)
    for name in ("dr17", "dr18"):
        put(catalog, name, granule("a", (0, 9)), granule("a", (0, 9), hdu=1), granule("b", (0, 9)))
    put(catalog, "dr17", granule("a", (100, 200)))
    assert found(catalog, dataset="dr17", ranges=[(0, 9)]) == [("survey:b", 0)]
    assert found(catalog, dataset="dr17", ranges=[(150, 150)]) == [("survey:a", 0)]
    assert len(found(catalog, dataset="dr18", ranges=[(0, 9)])) == 3
    catalog.put_objects("dr17", "survey", [(replica("b", version="w"), None)])
    assert found(catalog, dataset="dr17", ranges=[(0, 9)]) == [("survey:b", 0)]
    assert [each.version for each in catalog.replicas("dr17", "survey")] == ["v", "w"]


def test_only_what_can_be_read_is_found(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a", (0, 9)), granule("b", (0, 9)))
    catalog.set_states("dr17", "survey", ["a"], "vanished")
    assert found(catalog, ranges=[(0, 9)]) == [("survey:b", 0)]
    assert [each.state for each in catalog.replicas("dr17", "survey")] == ["vanished", "ok"]
    catalog.set_states("dr17", "survey", [], "vanished")
    catalog.set_states("dr17", "survey", ["unknown"], "vanished")
    assert found(catalog) == [("survey:b", 0)]
    catalog.set_states("dr17", "survey", ["a"], "ok")
    assert len(found(catalog)) == 2


def test_a_copy_elsewhere_is_found_where_the_first_is_gone(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a", (0, 9)))
    copy = Replica("a", "copies/a", 9, "1", "v", "ok")
    catalog.put_objects("dr17", "mirror", [(copy, None)])
    assert found(catalog) == [("survey:a", 0)]
    catalog.set_states("dr17", "survey", ["a"], "vanished")
    assert found(catalog) == [("mirror:copies/a", 0)]


def test_time_and_band(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(
        catalog,
        "dr17",
        granule("a", t_min=10.0, t_max=11.0, band="r", em_min=5e-7, em_max=7e-7),
        granule("b", t_min=12.0, t_max=13.0, band="R", em_min=6e-7, em_max=8e-7),
        granule("c", t_min=12.0, band="r"),
        granule("d"),
    )
    assert found(catalog, time=(11.0, 11.5)) == [("survey:a", 0)]
    assert found(catalog, time=(11.0, 12.0)) == [("survey:a", 0), ("survey:b", 0)]
    assert found(catalog, time=(13.5, 20.0)) == []
    assert found(catalog, band="r") == [("survey:a", 0), ("survey:c", 0)]
    assert found(catalog, band=(4e-7, 5.5e-7)) == [("survey:a", 0)]
    assert found(catalog, band=(7e-7, 1.0)) == [("survey:a", 0), ("survey:b", 0)]
    assert found(catalog, limit=2, band="r", time=(0, 99)) == [("survey:a", 0)]


def test_ranges_are_found_where_they_touch_at_every_level(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    rng = np.random.default_rng(4)
    end = 12 * 4**ORDER
    images, stored = [], []
    for number in range(300):
        length = min(4 ** int(rng.integers(0, LEVELS[-1])), end)
        first = int(rng.integers(0, end - length + 1))
        if number % 3:
            # Close to one place, so that many touch.
            first = max(0, min(end - length, end // 3 - int(rng.integers(0, 2 * length + 1))))
        stored.append((first, first + int(rng.integers(0, length))))
        images.append(granule(f"{number:03}", stored[-1]))
    put(catalog, "dr17", *images)
    for _ in range(40):
        low = end // 3 + int(rng.integers(-100, 100))
        asked = [(low, low + 4 ** int(rng.integers(0, 20)))]
        if rng.random() < 0.5:
            other = int(rng.integers(0, end))
            asked.append((other, min(end - 1, other + 4**25)))
        expected = [
            (f"survey:{number:03}", 0)
            for number, (first, last) in enumerate(stored)
            if any(first <= high and last >= low for low, high in asked)
        ]
        assert found(catalog, ranges=asked) == expected


def test_many_objects_in_one_batch(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    many = [granule(f"{number:04}", (number * 10, number * 10 + 9)) for number in range(1200)]
    for _ in range(2):
        put(catalog, "dr17", *many)
    assert count(catalog, "granules") == count(catalog, "footprints") == 1200
    assert found(catalog, ranges=[(5005, 5011)]) == [("survey:0500", 0), ("survey:0501", 0)]


def test_text_that_no_database_takes(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a", band="r\0" + "x" * 500, note="\ud800"), reason="n\0o")
    (match,) = catalog.find_granules(GranuleQuery())
    assert match.granule.band == ("r" + "x" * 500)[:100]
    assert match.granule.note == "\\ud800"


def test_a_limited_search_reads_no_more_than_it_needs(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    place = Footprint(10.0, 20.0, 1.0, 0.4, [(0, ALL_CELLS)], [9.0, 19.0, 11.0, 19.0, 10.0, 21.0])
    images = [granule(f"{number:02}", footprint=place) for number in range(30)]
    put(catalog, "dr17", *images)
    copies = [(replica(f"{number:02}", modified="2"), None) for number in range(30)]
    catalog.put_objects("dr17", "mirror", copies)
    monkeypatch.setattr("swathe.catalog.datasets.granule_table.PART", 4)
    read: list[int] = []

    def note(some: list[GranuleCopy]) -> list[Any]:
        read.append(len(some))
        return with_outlines(some)

    with_outlines = search._with_outlines
    monkeypatch.setattr(search, "_with_outlines", note)
    for sky in (None, (10.0, 20.0)):
        every = search.find(sky, catalog=catalog)
        assert read == [4, 4, 4, 4, 4, 4, 4, 2]
        read.clear()
        first = search.find(sky, catalog=catalog, limit=6)
        assert len(first) == 6
        assert first["file"].tolist() == every["file"][:6].tolist()
        assert read == [4, 4]
        read.clear()


def test_the_first_catalogued_are_given_with_and_without_outline(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    cells = [(0, ALL_CELLS)]
    near = Footprint(10.0, 20.0, 1.0, 0.4, cells, [9.0, 19.0, 11.0, 19.0, 10.0, 21.0])
    away = Footprint(50.0, 20.0, 1.0, 0.4, cells, [49.0, 19.0, 51.0, 19.0, 50.0, 21.0])
    wcs = WCS(naxis=2)
    wcs.wcs.ctype, wcs.wcs.cdelt, wcs.wcs.crpix = ["RA---CAR", "DEC--CAR"], [-1, 1], [180.5, 90.5]
    whole = Footprint(0.0, 0.0, 360.0, 3600.0, cells, None, wcs.to_header_string())
    places = [near, away, whole, Footprint(0.0, 0.0, 360.0, 1.0, cells, None, None), near, whole]
    images = [
        granule(str(number), footprint=place, shape=(180, 360))
        for number, place in enumerate(places)
    ]
    put(catalog, "dr17", *images)
    monkeypatch.setattr("swathe.catalog.datasets.granule_table.PART", 4)
    for limit, numbers in ((None, "0245"), (3, "024"), (2, "02"), (1, "0")):
        table = search.find((10.0, 20.0), catalog=catalog, limit=limit)
        assert table["file"].tolist() == [f"survey:{number}" for number in numbers]
        hidden = np.ma.getmaskarray(table["s_region"]).tolist()
        assert hidden == [number in "25" for number in numbers]


@pytest.mark.parametrize("limit", [None, 2])
def test_a_search_takes_one_connection_at_a_time(catalog: Catalog, limit: int | None) -> None:
    """Many at once would wait for each other's second one until they fail."""
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a"), granule("b"))
    catalog.put_objects("dr17", "mirror", [(replica(path), None) for path in "ab"])
    open_now: list[int] = [0]
    sqlalchemy.event.listen(
        catalog._engine, "checkout", lambda *_: open_now.append(open_now[-1] + 1)
    )
    sqlalchemy.event.listen(
        catalog._engine, "checkin", lambda *_: open_now.append(open_now[-1] - 1)
    )
    table = search.find(catalog=catalog, limit=limit)
    assert table["file"].tolist() == ["mirror:a", "mirror:b"]
    assert max(open_now) == 1 and open_now[-1] == 0


def test_many_near_a_place_are_noticed(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    images = [granule(str(number), (number, number), (100, 120)) for number in range(10)]
    put(catalog, "dr17", *images)
    near = GranuleQuery([(0, 4), (100, 101)])
    assert not catalog.has_more_near(near, 10) and catalog.has_more_near(near, 9)
    few = GranuleQuery([(0, 4)])
    assert not catalog.has_more_near(few, 5) and catalog.has_more_near(few, 4)
    assert not catalog.has_more_near(GranuleQuery([]), 0)


def test_copies_of_an_object(catalog: Catalog) -> None:
    catalog.add_dataset("dr17", "survey", "", None)
    put(catalog, "dr17", granule("a", (0, 9)), granule("b", (0, 9)))
    catalog.put_objects("dr17", "mirror", [(replica("a"), [granule("a", (0, 9))])])
    copies = catalog.copies("dr17", "a")
    assert [(store, copy.object_path) for store, copy in copies] == [
        ("mirror", "a"),
        ("survey", "a"),
    ]
    assert catalog.copies("dr17", "none") == []
    with pytest.raises(errors.NoSuchDatasetError):
        catalog.copies("none", "a")
