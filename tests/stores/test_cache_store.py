"""A cache in front of another store: whole objects near, within a limit, of the present version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe.catalog import Catalog
from swathe.catalog.records.caches import NearObject
from swathe.core.errors import NotFoundError, OutputError, StoreSettingsError
from swathe.stores.front import cache_store, readers
from swathe.stores.front.room import in_eviction_order
from swathe.stores.registry import native_stores
from tests.support.cache_stores import (
    SIZE,
    add_cache,
    content,
    near_files,
    new_slow_store,
    usage,
)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the store `slow`, with three objects; `hot` is a cache of it of 2.5 objects."""
    monkeypatch.setattr(cache_store, "ROOM_WAIT_S", 1.0)
    return new_slow_store(tmp_path, monkeypatch)


def test_objects_are_kept_within_the_limit(slow: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "c"):
        assert content(f"hot:{name}") == name.encode() * SIZE
    assert usage() == (2, 2 * SIZE, 1)
    assert len(near_files(tmp_path)) == 2 and "c" in near_files(tmp_path)
    (slow / "c").rename(slow / "gone")
    with pytest.raises(NotFoundError):
        content("hot:c")


def test_a_changed_source_is_fetched_anew(slow: Path) -> None:
    assert content("hot:a") == b"a" * SIZE
    (slow / "a").write_bytes(b"A" * SIZE)
    assert content("hot:a") == b"A" * SIZE
    assert swathe.stores.stat_object("hot:a")[1:] == swathe.stores.stat_object("slow:a")[1:]


def test_objects_that_are_read_or_pinned_stay(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = native_stores().open("hot:a")
    with Catalog.open() as catalog:
        content("hot:b")
        assert catalog.pin_near_objects("hot", ["b", "none"], "somebody", 60.0) == ["b"]
    with pytest.warns(UserWarning, match="hot:c: read from slow:c: all objects .* are pinned"):
        assert content("hot:c") == b"c" * SIZE
    assert source.read(0, 2) == b"aa"
    del source
    assert content("hot:c") == b"c" * SIZE
    assert usage() == (2, 2 * SIZE, 1)
    monkeypatch.setattr(readers, "GRACE_S", -1.0)  # nobody is about to take an opened object
    assert swathe.stores.clear("hot").left == 1


def test_an_object_larger_than_the_limit_is_read_and_written_past_the_cache(
    slow: Path, tmp_path: Path
) -> None:
    (slow / "large").write_bytes(b"l" * 2501)
    with pytest.warns(UserWarning, match=r"it has 2.442 KiB, the cache at most"):
        assert len(content("hot:large")) == 2501
    with pytest.warns(UserWarning, match=r"hot:new/large: read from"):
        swathe.stores.copy_objects(str(slow / "large"), "hot:new/large", progress=False)
    assert (slow / "new" / "large").stat().st_size == 2501
    assert usage() == (0, 0, 0) and near_files(tmp_path) == []


def test_a_near_store_that_fails_is_passed_with_a_warning(slow: Path, tmp_path: Path) -> None:
    (tmp_path / "near").write_text("no folder")
    with pytest.warns(UserWarning, match="hot:a: read from slow:a: it could not be copied near"):
        assert content("hot:a") == b"a" * SIZE
    (tmp_path / "near").unlink()
    content("hot:a")
    (near,) = (tmp_path / "near").rglob("a")
    near.unlink()
    assert content("hot:a") == b"a" * SIZE  # a copy that is lost is fetched again


def test_writes_go_through_and_are_listed_and_removed(slow: Path, tmp_path: Path) -> None:
    name = "odd é %20#?:x/$(x) 'y'"
    for letter in (b"1", b"2"):
        (tmp_path / "new").write_bytes(letter * SIZE)
        target = f"hot:{name}"
        swathe.stores.copy_objects(
            str(tmp_path / "new"), target, overwrite=letter == b"2", progress=False
        )
        assert (slow / name).read_bytes() == content(target) == letter * SIZE
    report = swathe.stores.copy_objects(str(tmp_path / "new"), f"hot:{name}", progress=False)
    assert [fault.kind for fault in report.faults] == ["OutputExistsError"]
    listing = {entry.path for entry in swathe.stores.list_objects("hot:")}
    assert listing == {"hot:a", "hot:b", "hot:c", f"hot:{name}"}
    assert swathe.stores.remove_objects(f"hot:{name}") == 1
    assert not (slow / name).exists() and near_files(tmp_path) == []
    with pytest.raises(NotFoundError):
        content(f"hot:{name}")


def test_writes_that_wait_are_never_evicted(slow: Path, tmp_path: Path) -> None:
    add_cache(tmp_path, "back", "back")
    (tmp_path / "new").write_bytes(b"n" * SIZE)
    swathe.stores.copy_objects(str(tmp_path / "new"), "back:one", progress=False)
    assert not (slow / "one").exists()
    assert content("back:one") == b"n" * SIZE
    assert "back:one" in {entry.path for entry in swathe.stores.list_objects("back:")}
    assert swathe.stores.clear("back").left == 1
    with pytest.raises(StoreSettingsError, match="first: swathe store clear back"):
        swathe.stores.remove("back")
    for name in ("a", "b", "c"):
        content(f"back:{name}")
    assert (slow / "one").exists() or content("back:one") == b"n" * SIZE
    assert swathe.stores.flush("back").faults == {}
    assert (slow / "one").read_bytes() == b"n" * SIZE


def test_a_claim_of_another_process_is_waited_for(slow: Path) -> None:
    with Catalog.open() as catalog:
        other = "process elsewhere 1"
        claim = catalog.claim_room("hot", "a", "t1", "fetching", SIZE, "1", other, 2500)
        assert claim.id is not None
        again = catalog.claim_room("hot", "a", "t3", "fetching", SIZE, "1", "me", 2500)
        assert again.has_rival
        assert catalog.claim_room("hot", "b", "t2", "fetching", 2000, "1", "me", 2500) == (
            type(claim)(lacking_bytes=500)
        )
        assert catalog.begin_removal([claim.id], "me", force=True) == []
        # Who looked before it was whole, and claims afterwards, finds it.
        assert catalog.finish_near_object(claim.id, other, "cached", "1", "n", 0.1)
        late = catalog.claim_room("hot", "a", "t4", "fetching", SIZE, "1", "me", 2500)
        assert late.has_rival
        assert catalog.claim_room("hot", "a", "t5", "fetching", SIZE, "2", "me", 2500).id


def near_object(number: int, **changes: object) -> NearObject:
    values: dict[str, Any] = {
        "id": number,
        "path": str(number),
        "token": "t",
        "state": "cached",
        "bytes": 1000,
        "version": "v",
        "near_version": "n",
        "owner": None,
        "used_at": datetime(2026, 1, 1, tzinfo=UTC),
        "uses": 1,
        "fetch_s": 10.0,
        "checked_at": None,
        "pins": 0,
    }
    return NearObject(**(values | changes))


def test_what_is_cheap_to_fetch_and_long_unused_is_evicted_first() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    copies = [
        near_object(1),
        near_object(2, fetch_s=1.0),
        near_object(3, used_at=now - timedelta(hours=1)),
        near_object(4, bytes=100_000),
        near_object(5, uses=50),
        near_object(6, state="stale", fetch_s=1e6),
    ]
    order = in_eviction_order(copies, lambda copy: copy.fetch_s or 0.0, now)
    assert [copy.id for copy in order] == [6, 4, 2, 1, 3, 5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"of": None}, "expected the store that it is of"),
        ({"of": "hot"}, "expected a store that is no cache"),
        ({"of": "s3://bucket/x"}, "first: swathe store add NAME URL"),
        ({"over": ["slow:sub"]}, "one lies in the other"),
        ({"over": ["https://host/x"]}, "or a folder"),
        ({"over": []}, "expected one near store"),
        ({"limit_bytes": 0}, "limit: expected bytes"),
        ({"write": "both"}, "write: expected through or back"),
        ({"check_s": -1.0}, "check: expected 0 to"),
        ({"options": {"region": "x"}}, "expected none, found region"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    slow: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    settings: dict[str, Any] = {
        "of": "slow",
        "over": [str(tmp_path / "n")],
        "limit_bytes": 10,
    } | changes
    with Catalog.open() as catalog:
        with pytest.raises(StoreSettingsError, match=message):
            catalog.add_store("new", "cache:", **settings)
        with pytest.raises(StoreSettingsError, match="the cache 'hot' is of or over"):
            catalog.remove_store("slow")


def test_a_cache_of_a_store_that_is_read_only_takes_no_writes(slow: Path, tmp_path: Path) -> None:
    swathe.stores.add("web", "http://127.0.0.1:9/x")
    swathe.stores.add("of_web", "cache:", of="web", over=str(tmp_path / "w"), limit_bytes=5000)
    report = swathe.stores.copy_objects(str(slow / "a"), "of_web:a", overwrite=True, progress=False)
    assert "the store of the cache is read only" in report.faults[0].reason
    assert issubclass(getattr(swathe.errors, report.faults[0].kind), (OutputError, OSError))
