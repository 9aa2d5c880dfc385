"""Objects of datasets, page by page: the same as all at once, in the order that is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cql2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swathe.catalog import Catalog
from swathe.catalog.datasets.objects import DatasetObject, ObjectOrder, ObjectQuery
from swathe.catalog.records.datasets import EarthFootprint, Granule, Replica
from swathe.core.errors import DatasetError
from swathe.datasets.earth_outline import earth_footprint
from swathe.datasets.earth_search import EarthArea
from swathe.files.places.bounds import Bounds
from tests.support.catalogs import new_catalog

START = 53_000.0


def place(lon: float, lat: float) -> EarthFootprint:
    """A square of two degrees."""
    latitude, longitude = np.meshgrid(lat + np.array([-1, 0, 1.0]), lon + np.array([-1, 0, 1.0]))
    return earth_footprint(latitude, longitude, (1.0, 1.0))


def granule(path: str, number: int, **told: Any) -> Granule:
    return Granule(path, number, None, (4, 5), 100 + len(path), "v", array=f"/a{number}", **told)


@cache
def contents() -> dict[str, list[tuple[str, list[Granule]]]]:
    """Two datasets; of some objects the first granule has no time, or none of them has."""
    of: dict[str, list[tuple[str, list[Granule]]]] = {"one": [], "two": []}
    for number in range(24):
        path = f"day {(number * 7) % 24}/g{number}.hdf"
        begin = START + (number * 5) % 24
        times = {} if number % 6 == 0 else {"t_min": begin, "t_max": begin + 0.5}
        platform = ["Aqua", "Terra", None][number % 3]
        first = granule(path, 0, facility=platform)
        others = [
            granule(path, at, facility=platform, place=place(number * 15.0, 40.0), **times)
            for at in range(1, 1 + number % 4)
        ]
        of["two" if number % 5 == 0 else "one"].append((path, [first, *others]))
    return of


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder: Path = tmp_path_factory.mktemp("objects")
    new_catalog(folder / "catalog.sqlite")
    with Catalog.open(f"sqlite:///{folder}/catalog.sqlite") as catalog:
        fill(catalog)
        yield catalog


def fill(catalog: Catalog) -> None:
    catalog.add_store("survey", "https://archive.example/dr17")
    for dataset, objects in contents().items():
        catalog.add_dataset(dataset, "survey", "", None)
        catalog.put_objects(
            dataset,
            "survey",
            [(Replica(path, path, 9, "1", "v", "ok"), granules) for path, granules in objects],
        )
        lost = Replica("lost.hdf", "lost.hdf", 9, "1", "v", "ok")
        catalog.put_objects(dataset, "survey", [(lost, [granule("lost.hdf", 0)])])
        gone = Replica("lost.hdf", "lost.hdf", 9, "1", "v", "vanished")
        catalog.put_objects(dataset, "survey", [(gone, None)])


@cache
def everything() -> dict[str, tuple[str, list[Granule]]]:
    return {
        path: (dataset, granules)
        for dataset, objects in contents().items()
        for path, granules in objects
    }


def by_pages(catalog: Catalog, limit: int, **asked: Any) -> list[DatasetObject]:
    pages, after = [], None
    for _ in range(100):
        page = catalog.find_objects(ObjectQuery(after=after, **asked), limit)
        pages += page
        if len(page) < limit:
            return pages
        after = page[-1].key
    raise AssertionError("the pages do not end")


def start_of(of: DatasetObject) -> float:
    return min(each.t_min for each in of.granules if each.t_min is not None)


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("order", ["added", "time", "name"])
@pytest.mark.parametrize("limit", [1, 5, 1000])
def test_pages_are_all_objects_in_order(
    catalog: Catalog, limit: int, order: ObjectOrder, is_descending: bool
) -> None:
    found = by_pages(catalog, limit, order=order, is_descending=is_descending)
    assert sorted(of.path for of in found) == sorted(everything())
    for of in found:
        dataset, granules = everything()[of.path]
        assert (of.dataset, of.file) == (dataset, f"survey:{of.path}")
        assert [each.array for each in of.granules] == [each.array for each in granules]
    if order == "name":
        assert [of.path for of in found] == sorted(everything(), reverse=is_descending)
    if order == "time":
        is_timed = [any(each.t_min is not None for each in of.granules) for of in found]
        count = sum(is_timed)
        assert is_timed == [True] * count + [False] * (len(found) - count)
        starts = [start_of(of) for of in found[:count]]
        assert starts == sorted(starts, reverse=is_descending)


@pytest.mark.parametrize("limit", [1, 4, 1000])
@pytest.mark.parametrize("box", [(100, 35, 140, 45), (350, 30, 20, 41.5), (-180, -90, 180, 90)])
def test_what_touches_a_box_at_a_time(
    catalog: Catalog, box: tuple[float, float, float, float], limit: int
) -> None:
    area = EarthArea(Bounds.of(box))
    time = (START + 3, START + 20)
    of_area: dict[str, Any] = {"ranges": area.ranges, "touches": area.touches, "time": time}
    found = by_pages(catalog, limit, latitudes=area.latitudes, **of_area)
    assert found == by_pages(catalog, limit, **of_area)
    expected = {
        path
        for path, (_, granules) in everything().items()
        if any(
            each.place is not None
            and each.t_min is not None
            and each.t_max is not None
            and each.t_min <= time[1]
            and each.t_max >= time[0]
            and area.touches([each.place.outlines])[0]
            for each in granules
        )
    }
    assert expected
    assert sorted(of.path for of in found) == sorted(expected)


def test_datasets_paths_and_counts(catalog: Catalog) -> None:
    two = [path for path, (dataset, _) in everything().items() if dataset == "two"]
    assert [of.path for of in by_pages(catalog, 2, datasets=["two"])] == two
    assert catalog.count_objects(ObjectQuery(datasets=["two"]), 100) == len(two)
    assert catalog.count_objects(ObjectQuery(), 3) is None
    assert catalog.find_objects(ObjectQuery(datasets=["one"], paths=two), 9) == []
    assert [of.path for of in by_pages(catalog, 9, paths=two[:1])] == two[:1]


LITERALS = st.sampled_from(["'Aqua'", "'Terra'", "'A%'", "'x'"])
COMPARISON = st.one_of(
    st.tuples(st.just("platform"), st.sampled_from(["=", "<>", "<", ">="]), LITERALS).map(" ".join),
    st.tuples(st.just("platform LIKE"), LITERALS).map(" ".join),
    st.just("platform IS NULL"),
    st.just("platform IN ('Aqua', 'y')"),
    st.tuples(
        st.just('"swathe:bytes"'),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.integers(108, 114).map(str),
    ).map(" ".join),
    st.just('"swathe:bytes" BETWEEN 109 AND 111'),
    st.just("collection = 'two'"),
)
CONDITIONS = st.recursive(
    COMPARISON,
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(
            lambda parts: f"({parts[0]}){parts[1]}({parts[2]})"
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=30)
@given(CONDITIONS)
def test_conditions_choose_what_they_say(catalog: Catalog, text: str) -> None:
    """Compared with the evaluation of another program, where all values are known."""
    condition = cql2.parse_text(text).to_json()
    found = by_pages(catalog, 50, condition=condition)
    told = {of.path for of in found}
    for path, (dataset, granules) in everything().items():
        if granules[0].facility is None:
            continue
        properties = {"platform": granules[0].facility, "swathe:bytes": granules[0].size}
        item = {**properties, "collection": dataset, "properties": properties}
        if "IS NULL" not in text:
            assert (path in told) == cql2.Expr(condition).matches(item), (text, item)


def nested(depth: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"op": "isNull", "args": [{"property": "platform"}]}
    for _ in range(depth):
        condition = {"op": "not", "args": [condition]}
    return condition


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([], "a condition"),
        ({"op": "and", "args": []}, "a condition"),
        ({**nested(0), "junk": "A" * 1000}, "found 'junk'"),
        ({"op": "and", "args": [nested(0)]}, "two conditions"),
        ({"op": "s_intersects", "args": [{"property": "geometry"}, {}]}, "comparison"),
        ({"op": "=", "args": [{"property": "platform"}, 3]}, "text"),
        ({"op": "=", "args": [{"property": "swathe:bytes"}, True]}, "a number"),
        ({"op": "=", "args": [{"property": "datetime"}, {"date": "2005-13-01"}]}, "a date"),
        ({"op": "=", "args": [3, 4]}, "a property"),
        ({"op": "in", "args": [{"property": "platform"}, ["x"] * 1001]}, "at most 1000"),
        ({"op": "in", "args": [{"property": "platform"}, "x"]}, "a list of values"),
        ({"op": "=", "args": [{"property": "swathe:bytes"}, 10**30]}, "a number up to"),
        ({"op": "=", "args": [{"property": "none"}, float("nan")]}, "a number up to"),
        ({"op": "=", "args": [{"property": "platform"}, "\ud800"]}, "Unicode"),
        ({"op": "like", "args": [{"property": "platform"}, "%" * 5000]}, "at most 1000"),
        ({"op": "like", "args": [{"property": "platform"}, "a\\"]}, "an escape at its end"),
        ({"op": "like", "args": [{"property": "datetime"}, "2005%"]}, "property that is text"),
        (nested(30), "20 levels"),
        ({"op": "or", "args": [nested(0)] * 300}, "200 operators"),
    ],
)
def test_conditions_that_are_refused(catalog: Catalog, condition: Any, expected: str) -> None:
    with pytest.raises(DatasetError, match=expected):
        catalog.find_objects(ObjectQuery(condition=condition), 1)


def test_nothing_has_a_property_that_is_not_known(catalog: Catalog) -> None:
    unknown = {"op": "<", "args": [{"property": "eo:cloud_cover"}, 10]}
    assert catalog.find_objects(ObjectQuery(condition=unknown), 9) == []
    assert catalog.find_objects(ObjectQuery(condition={"op": "not", "args": [unknown]}), 9) == []


def test_the_same_in_postgresql(url: str, catalog: Catalog) -> None:
    if url.startswith("sqlite:"):
        pytest.skip("compared with SQLite")
    text = "platform LIKE 'A%' AND datetime > TIMESTAMP('2003-12-30T00:00:00Z')"
    condition = cql2.parse_text(text).to_json()
    area = EarthArea(Bounds.of((0, 0, 180, 90)))
    of_area: dict[str, Any] = {
        "ranges": area.ranges,
        "touches": area.touches,
        "latitudes": area.latitudes,
    }
    with Catalog.open(url) as other:
        fill(other)
        for order, last_first, more in itertools.product(
            ("added", "time", "name"), (False, True), ({}, {"condition": condition}, of_area)
        ):
            asked = {"order": order, "is_descending": last_first, **more}
            expected, found = (by_pages(each, 3, **asked) for each in (catalog, other))
            assert expected
            assert [of.path for of in found] == [of.path for of in expected]
