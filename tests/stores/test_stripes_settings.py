"""Settings of striped stores: in the catalogue, in the shell, and as the engine takes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe import _swathe
from swathe.catalog import Catalog, Store
from swathe.catalog.store_settings import MOST_SERVERS, StripeServer
from swathe.core.errors import NoSuchStoreError, StoreSettingsError
from swathe.stores import registry
from tests.support.fits_frames import Runner


@pytest.fixture
def servers(run: Runner, tmp_path: Path) -> dict[str, Store]:
    """Three stores that are folders, and a bucket."""
    names = ("disk-a", "disk-b", "disk-c")
    stores = {name: swathe.stores.add(name, str(tmp_path / name)) for name in names}
    options = {"endpoint": "http://minio:9000"}
    stores["lake"] = swathe.stores.add("lake", "s3://bucket/x", tier="wan", options=options)
    return stores


def test_a_striped_store_comes_out_as_it_went_in(servers: dict[str, Store]) -> None:
    over = ["disk-a", "disk-b:", "lake:dr17/", "http://Host:8430/"]
    added = swathe.stores.add("wide", "striped:", over=over)
    web = Store("host%3A8430", "dav://host:8430", "lan")
    assert added == Store(
        "wide",
        "striped://wide",
        "wan",
        {"parity": "1", "block_bytes": "1048576"},
        [
            StripeServer("disk-a:", "", servers["disk-a"]),
            StripeServer("disk-b:", "", servers["disk-b"]),
            StripeServer("lake:dr17/", "dr17", servers["lake"]),
            StripeServer("dav://host:8430", "", web),
        ],
    )
    assert added.parity == 1
    assert swathe.stores.show("wide").store == added
    assert swathe.stores.list() == [*servers.values(), added]
    assert servers["lake"].over == [] and servers["lake"].parity == 0


def test_folders_and_urls_are_servers(
    servers: dict[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    over: list[str | Path] = ["./one", tmp_path / "a two", "https://host/x", "dav://host/y"]
    store = swathe.stores.add("wide", "striped:", over=over, parity=2, block_bytes=4096)
    assert [server.place for server in store.over] == [
        f"file://{tmp_path}/one",
        f"file://{tmp_path}/a%20two",
        "davs://host/x",
        "dav://host/y",
    ]
    assert store.options == {"parity": "2", "block_bytes": "4096"}
    assert swathe.stores.show("wide").store == store
    single = swathe.stores.add("single", "striped:", over="disk-a", parity=0)
    assert [server.place for server in single.over] == ["disk-a:"]
    assert single.tier == "local"


@pytest.mark.parametrize(
    ("over", "settings", "reason"),
    [
        ([], {}, r"parity 1: expected 2 to 32 servers, found 0"),
        (["disk-a"], {}, r"expected 2 to 32 servers, found 1"),
        (["disk-a", "disk-b", "disk-c"], {"parity": 3}, r"expected 4 to 32 servers, found 3"),
        (["disk-a", "disk-b"], {"parity": -1}, r"parity: expected 0 to 31, found -1"),
        (["disk-a", "disk-b"], {"parity": True}, r"parity: expected 0 to 31, found true"),
        (["disk-a", "disk-b"], {"parity": 32}, r"parity: expected 0 to 31, found 32"),
        (["disk-a", "disk-b"], {"block_bytes": 100}, r"block: expected a multiple of 4,096"),
        (["disk-a", "disk-b"], {"block_bytes": 1 << 40}, r"up to 67,108,864 bytes, found"),
        (["disk-a", "disk-b"], {"block_bytes": 5000}, r"multiple of 4,096 .* found 5000"),
        (["disk-a", "disk-b"], {"options": {"region": "x"}}, r"expected none, found region"),
        (["disk-a", "disk-b"], {"tier": "near"}, r"a tier is one of"),
        (["disk-a", "disk-a:"], {}, r"disk-a: and disk-a:; one lies in the other"),
        (["disk-a", "disk-a:x"], {}, r"disk-a: and disk-a:x/; one lies in the other"),
        (["disk-a:x", "disk-a:x/y"], {}, r"one lies in the other"),
        (["disk-a", "../linked/sub"], {}, r"one lies in the other"),
        (["lake", "lake:dr17"], {}, r"one lies in the other"),
        (["http://host/a", "dav://host/a/b"], {}, r"one lies in the other"),
        (["disk-a", "disk-b:x/../y"], {}, r"expected NAME:prefix, found 'disk-b:x/../y'"),
        (["disk-a", "disk-b:x\ny"], {}, r"expected NAME:prefix"),
        (["disk-a", "ftp://host"], {}, r"ftp:// is not a known scheme"),
        (["disk-a", "http://me:pw@host"], {}, r"contains a user or password"),
    ],
)
def test_wrong_settings_are_refused(
    servers: dict[str, Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    over: Sequence[str],
    settings: dict[str, Any],
    reason: str,
) -> None:
    (tmp_path / "disk-a").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "disk-a")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(StoreSettingsError, match=reason):
        swathe.stores.add("wide", "striped:", over=over, **settings)
    assert [store.name for store in swathe.stores.list()] == sorted(servers)


@pytest.mark.parametrize(
    ("over", "place"),
    [
        (["disk-b:x/y", "disk-c"], "disk-b:x/y/ and disk-b:x/"),
        (["disk-b", "disk-c"], "disk-b: and disk-b:x/"),
        (["lake:dr17", "disk-c"], "lake:dr17/ and lake:"),
        (["http://host/a/b", "disk-c"], "dav://host/a/b and dav://host/a"),
    ],
)
def test_striped_stores_do_not_lie_within_each_other(
    servers: dict[str, Store], over: Sequence[str], place: str
) -> None:
    swathe.stores.add("outer", "striped:", over=["disk-b:x", "lake", "http://host/a"])
    with pytest.raises(
        StoreSettingsError, match=f"those of 'outer', found {place}; one lies in the other"
    ):
        swathe.stores.add("wide", "striped:", over=over)
    # The same places are the same objects.
    swathe.stores.add("wide", "striped:", over=["disk-b:x", "lake", "disk-c"], parity=2)


def test_a_stripe_is_over_stores_that_exist_and_are_plain(servers: dict[str, Store]) -> None:
    with pytest.raises(NoSuchStoreError, match="'nowhere'"):
        swathe.stores.add("wide", "striped:", over=["disk-a", "nowhere"])
    swathe.stores.add("wide", "striped:", over=["disk-a", "disk-b"])
    with pytest.raises(StoreSettingsError, match="over 'wide': expected stores that are not strip"):
        swathe.stores.add("wider", "striped:", over=["wide", "disk-c"])
    with pytest.raises(StoreSettingsError, match="expected stores that are not striped"):
        swathe.stores.add("wider", "striped:", over=["striped://wide", "disk-c"])
    with pytest.raises(StoreSettingsError, match="expected the URL striped:, found striped://wide"):
        swathe.stores.add("wider", "striped://wide")
    with pytest.raises(StoreSettingsError, match="there is a store 'wide' already"):
        swathe.stores.add("wide", "striped:", over=["disk-a", "disk-c"])
    with pytest.raises(StoreSettingsError, match="'striped' is a URL scheme"):
        swathe.stores.add("striped", "/data")
    with pytest.raises(StoreSettingsError, match="only for stores with the URL striped:"):
        swathe.stores.add("other", "/data", over=["disk-a"])
    with pytest.raises(StoreSettingsError, match="only for stores with the URL striped:"):
        swathe.stores.add("other", "/data", parity=0)
    with pytest.raises(StoreSettingsError, match="an option is one of"):
        swathe.stores.add("other", "/data", options={"parity": "1"})


def test_as_many_servers_as_may_be(run: Runner, tmp_path: Path) -> None:
    places = [str(tmp_path / f"{number:02}") for number in range(MOST_SERVERS + 1)]
    with pytest.raises(StoreSettingsError, match="expected 2 to 32 servers, found 33"):
        swathe.stores.add("wide", "striped:", over=places)
    store = swathe.stores.add("wide", "striped:", over=places[:-1], parity=MOST_SERVERS - 1)
    assert len(store.over) == MOST_SERVERS


def test_a_store_below_a_stripe_stays(servers: dict[str, Store]) -> None:
    swathe.stores.add("wide", "striped:", over=["disk-a", "disk-b:x"])
    with pytest.raises(StoreSettingsError, match="the striped store 'wide' has parts in the store"):
        swathe.stores.remove("disk-b")
    assert "disk-b" in {store.name for store in swathe.stores.list()}
    swathe.stores.remove("disk-c")
    swathe.stores.remove("wide")
    swathe.stores.remove("disk-b")


def test_the_engine_takes_the_stores_below(
    servers: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a process without a catalogue."""
    store = swathe.stores.add("wide", "striped:", over=["lake:x", "/data/a b"], block_bytes=8192)
    snapshot = json.loads(json.dumps(asdict(registry.storages())))
    sent: list[list[dict[str, Any]]] = []
    monkeypatch.setattr(_swathe, "Stores", lambda stores, *_: sent.append(json.loads(stores)))
    registry.to_native([store])
    registry._of(registry.StoreSnapshot(**snapshot), "host", None)
    options = {"endpoint": "http://minio:9000"}
    folder = {"name": "/data/a%20b", "root": "file:///data/a b", "options": {}}
    wide = {
        "name": "wide",
        "root": "striped://wide",
        "options": {"parity": "1", "block_bytes": "8192"},
        "over": [
            {"prefix": "x", "store": {"name": "lake", "root": "s3://bucket/x", "options": options}},
            {"prefix": "", "store": folder},
        ],
    }
    assert sent[0] == [wide]
    assert sent[1][-1] == wide
    assert all("over" not in each for each in sent[1][:-1])


@pytest.mark.parametrize(("count", "parity", "most"), [(2, 1, None), (3, 2, 1), (5, 3, 2)])
def test_a_parity_that_does_not_help_is_told(
    run: Runner, tmp_path: Path, count: int, parity: int, most: int | None
) -> None:
    over = [word for number in range(count) for word in ("--over", tmp_path / f"d{number}")]
    _, err = run.told("store", "add", "wide", "striped:", *over, "--parity", parity)
    text = f"  note: parity {parity} over {count} servers: if more than {most} are lost, no object "
    assert err == ("" if most is None else f"{text}can be read, whatever the parity\n")
    assert swathe.stores.show("wide").store.loss_limit == (most or parity)


def test_the_shell_adds_lists_and_shows(servers: dict[str, Store], run: Runner) -> None:
    words = ["store", "add", "wide", "striped:", "--over", "disk-a", "--over", "disk-b:x"]
    out, err = run.told(*words, "--parity", "0", "--block", "64KiB")
    assert out == "wide: striped://wide (local) over disk-a:,disk-b:x/\n"
    assert err == "  note: parity 0 is unsafe: the loss of one server is the loss of all objects\n"
    text = "parity=0 block_bytes=65536 over=disk-a:,disk-b:x/"
    assert text in run("store", "list")
    assert f"  options: {text}\n" in run("store", "show", "wide")
    shown = run.json("store", "show", "wide")
    assert [each["place"] for each in shown["over"]] == ["disk-a:", "disk-b:x/"]
    assert run.json("store", "list")["stores"][-1] == asdict(swathe.stores.show("wide").store)
    err = run("store", "remove", "disk-a", code=2)
    assert "the striped store 'wide' has parts in the store 'disk-a'" in err
    assert "first: swathe store remove wide" in err
    run("store", "remove", "wide")
    run("store", "remove", "disk-a")


def test_the_shell_refuses(servers: dict[str, Store], run: Runner) -> None:
    wide = ["store", "add", "wide", "striped:"]
    assert "expected 2 to 32 servers, found 0" in run(*wide, code=2)
    both = ["--over", "disk-a", "--over", "disk-b"]
    assert "parity" in run(*wide, *both, "--parity", "40", code=2)
    assert "4,096" in run(*wide, *both, "--block", "1kB", code=2)
    assert "disk-x" in run(*wide, *both, "--over", "disk-x", code=2)
    plain = ["store", "add", "other", "/data", "--over", "disk-a"]
    assert "only for stores with the URL striped:" in run(*plain, code=2)


def test_a_catalogue_that_lost_a_server_says_so(servers: dict[str, Store]) -> None:
    """As after an edit by hand."""
    from sqlalchemy import text

    swathe.stores.add("wide", "striped:", over=["disk-a", "disk-b"])
    with Catalog.open() as catalog, catalog._writing() as session:
        session.execute(text("DELETE FROM stores WHERE name = 'disk-b'"))
    with pytest.raises(NoSuchStoreError, match="'disk-b'"):
        swathe.stores.show("wide")
