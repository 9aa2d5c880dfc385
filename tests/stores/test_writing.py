"""What every store that is written to promises, kept by each kind."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from swathe.core.errors import ChangedError, NotFoundError, SourceError
from tests.support.writable_stores import BY_HTTP, KINDS, Order, Writable, make_writable

SIZES = (0, 5, 100_000, 3_000_000, pytest.param(20_000_000, marks=pytest.mark.more))
NAMES = (
    "two words",
    "a+b",
    "100%",
    "a%20b",
    "Äther-世界.fit",
    "[x]{y}=;~",
    "a#b",
    'it\'s "x", *',
    "back\\slash",
    f"{'long' * 40}.fit",
    f"{'/'.join(['folder'] * 40)}/deep",
)
NOT_OF = {"s3s-fs": NAMES[-2:], "azurite": ("back\\slash",)}
"""Names that servers refuse, whose own files would have too long ones, or take for others."""
NOT_OF_XROOTD = ('it\'s "x", *', "back\\slash", "a#b")


@pytest.fixture(scope="module", params=KINDS)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writable]:
    kind: str = request.param
    folder, made = tmp_path_factory.mktemp(kind), tmp_path_factory.mktemp("made")
    with contextlib.ExitStack() as stack:
        yield make_writable(kind, folder, made, stack, request)


@pytest.mark.parametrize("size", SIZES)
def test_objects_are_written_replaced_and_removed(size: int, store: Writable) -> None:
    name = f"to:new/folder/{size}"
    for _ in range(2):
        content = os.urandom(size)
        assert store.put(name, content) == []
        assert store.get(name) == content
    if store.folder:
        assert [path.name for path in store.folder.rglob("*") if path.is_file()] == [f"{size}"]
    store.stores.remove(name)
    with pytest.raises(NotFoundError):
        store.stores.open(name)
    store.stores.remove(name)


@pytest.mark.parametrize("stem", NAMES)
def test_any_name_is_written(stem: str, store: Writable) -> None:
    if stem in NOT_OF.get(store.kind, ()):
        pytest.skip("its server has no such names")
    faults = store.put(f"to:{stem}", stem.encode())
    if store.kind.startswith("xrootd") and faults:
        assert stem in NOT_OF_XROOTD
        return
    assert faults == []
    assert store.get(f"to:{stem}") == stem.encode()
    assert store.names() == [stem]
    if store.folder:
        assert (store.folder / stem).read_bytes() == stem.encode()
    store.stores.remove(f"to:{stem}")
    if store.folder:
        assert [path for path in store.folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["../out", "a/../../out", "..", "a/../../../../tmp/out"])
def test_names_do_not_lead_out_of_the_store(name: str, store: Writable) -> None:
    if store.kind in BY_HTTP:
        pytest.skip("in a URL '..' is resolved before it is sent, and the server decides")
    assert store.put(f"to:{name}", b"outside") != []
    with pytest.raises((SourceError, FileNotFoundError, PermissionError)):
        store.stores.open(f"to:{name}")


def test_a_name_that_is_too_long_is_refused(store: Writable) -> None:
    if store.kind == "azurite":
        pytest.skip("its server takes such names")
    (fault,) = store.put(f"to:{'x' * 5000}", b"1")
    assert fault
    with pytest.raises((SourceError, FileNotFoundError)):
        store.stores.open(f"to:{'x' * 5000}")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("of a star ☆", "cannot be told to give it such a name"),
        ("x?1", "would cut the name before the ?"),
        ("x?1/y", "would cut the name before the ?"),
    ],
)
def test_a_name_that_xrootd_would_cut_is_refused(name: str, why: str, store: Writable) -> None:
    faults = store.put(f"to:{name}", b"a star")
    if store.kind.startswith("xrootd"):
        assert why in faults[0]
        assert store.folder and not any(path.is_file() for path in store.folder.rglob("*"))
    else:
        assert faults == []
        store.stores.remove(f"to:{name}")


def test_names_that_xrootd_would_cut_harm_no_other(store: Writable) -> None:
    if not store.kind.startswith("xrootd"):
        pytest.skip("its names are not cut")
    assert store.put("to:x", b"another") == []
    stores = [store]
    if store.kind == "xrootd" and store.door:
        # Known by what it says of itself.
        root, options = store.door.replace("http", "dav"), {"anonymous": "true"}
        stores.append(replace(store, description={"name": "to", "root": root, "options": options}))
    for each in stores:
        with pytest.raises(SourceError, match="would cut the name"):
            each.stores.remove("to:x?1")
        assert "would cut the name" in each.put("to:x?1", b"one")[0]
        assert store.get("to:x") == b"another"
    with pytest.raises(SourceError, match="would cut the name"):
        store.get("to:x?1")
    store.stores.remove("to:x")


def test_folders_are_not_removed(store: Writable) -> None:
    assert store.put("to:folder/inside", b"inside") == []
    # In a bucket there is nothing of that name.
    with contextlib.suppress(SourceError):
        store.stores.remove("to:folder")
    assert store.get("to:folder/inside") == b"inside"
    store.stores.remove("to:folder/inside")


def test_ranges_are_read(store: Writable) -> None:
    content = random.Random(1).randbytes(1_500_000)
    assert store.put("to:ranges", content) == []
    source = store.stores.open("to:ranges")
    size = len(content)
    parts = [(0, 10), (7, 7), (262_143, 262_145), (100_000, 900_000), (size - 3, size), (0, size)]
    for start, stop in parts:
        assert source.read(start, stop) == content[start:stop]
    assert source.read_ranges(parts) == [content[start:stop] for start, stop in parts]
    with pytest.raises(SourceError, match="ranges"):
        source.read(size - 1, size + 1)
    rng = random.Random(2)
    many = [(at, at + rng.randrange(1, 3000)) for at in range(0, size - 3000, 9000)]
    assert source.read_ranges(many) == [content[start:stop] for start, stop in many]
    store.stores.remove("to:ranges")


def test_threads_read_at_the_same_time(store: Writable) -> None:
    content = random.Random(3).randbytes(400_000)
    assert store.put("to:threads", content) == []
    faults: list[object] = []

    def read(seed: int) -> None:
        try:
            source, rng = store.stores.open("to:threads"), random.Random(seed)
            for _ in range(10):
                start = rng.randrange(len(content))
                stop = rng.randrange(start, len(content) + 1)
                assert source.read(start, stop) == content[start:stop]
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    store.stores.remove("to:threads")


def test_a_reader_has_one_version(store: Writable) -> None:
    # What servers of files tell apart is the size and the second.
    old, new = b"o" * 700_000, b"n" * (700_001 if store.kind in BY_HTTP else 700_000)
    assert store.put("to:versions", old) == []
    source = store.stores.open("to:versions")
    assert source.read(0, 10) == old[:10]
    assert store.put("to:versions", new) == []
    try:
        assert source.read(600_000, 700_000) == old[600_000:]
    except ChangedError as error:
        assert "versions" in str(error)
    assert store.get("to:versions") == new
    store.stores.remove("to:versions")


def test_an_object_is_not_replaced_unasked(store: Writable) -> None:
    assert store.put("to:mine", b"first") == []
    faults = store.put_all({"to:mine": b"second"}, replace=False)
    if store.kind.startswith(("s3s-fs", "xrootd")) and faults == []:
        store.stores.remove("to:mine")
        pytest.skip("this server replaces objects unasked")
    assert [kind for kind, _ in faults] == ["OutputExistsError"]
    assert store.get("to:mine") == b"first"
    store.stores.remove("to:mine")


def test_what_is_missing_is_named(store: Writable) -> None:
    with pytest.raises(NotFoundError, match=r"none\.fit"):
        store.stores.open("to:folder/none.fit")
    with pytest.raises(NotFoundError):
        listing = store.stores.list("to:no/such/folder")
        while listing.next_page() is not None:
            pass
    assert store.names("no/such/folder") == []


def test_objects_are_listed_below_a_prefix(store: Writable) -> None:
    paths = ["a", "a.b/c", "a/b", "a/b c/d", "a/é", "a0", "ab/c", "b"]
    if store.folder is not None or store.kind in ("s3s-fs", "block-server"):
        paths.remove("a")  # a name is that of a file or of a folder
    if store.kind.startswith("striped"):
        paths.remove("a")
    if store.kind.startswith("xrootd"):
        paths.remove("a/é")  # it cannot be told to give such a name
    assert store.put_all({f"to:{path}": path.encode() for path in paths}) == []
    assert store.names() == sorted(paths)
    assert store.names("a/") == sorted(path for path in paths if path.startswith("a/"))
    assert store.names("a/b c") == ["a/b c/d"]
    sizes: dict[str, int | None] = {}
    listing = store.stores.list("to:a.b")
    while (page := listing.next_page()) is not None:
        sizes |= {path: size for path, size, *_ in page}
    assert sizes in ({"a.b/c": 5}, {"a.b/c": None})
    for path in paths:
        store.stores.remove(f"to:{path}")
    assert store.names() == []


def test_of_several_writers_one_wins(store: Writable) -> None:
    contents = [bytes([65 + number]) * 300_000 for number in range(4)]
    orders: list[Order] = []
    for number, content in enumerate(contents):
        file = store.made / f"writer-{number}"
        file.write_bytes(content)
        orders.append((str(file), None, "to:race", True))
    faults = store.copy(orders, 4)
    # Whose object was replaced by another before it was compared is told so.
    assert {kind for kind, _ in faults} <= {"ChangedError", "SourceError", "NotFoundError"}
    if store.kind != "folder":
        # A writer that finds the object of another when it reads its own back removes it.
        with contextlib.suppress(NotFoundError):
            assert store.get("to:race") in contents
        store.stores.remove("to:race")
        return
    assert len(faults) < 4
    assert store.get("to:race") in contents
    assert store.names() == ["race"]
    store.stores.remove("to:race")


@pytest.mark.more
def test_thousands_of_objects_are_listed(store: Writable) -> None:
    if store.kind in ("azurite", "xrootd-token", "s3s-fs", "block-server", "striped-databases"):
        pytest.skip("to write so many takes minutes there")
    paths = [f"many/{number // 100}/{number}" for number in range(2000)]
    file = store.made / "small"
    file.write_bytes(b"small")
    orders: list[Order] = [(str(file), None, f"to:{path}", True) for path in paths]
    assert store.copy(orders, 8) == []
    assert store.names("many") == sorted(paths)
    assert len(store.names("many/7")) == 100
    for path in paths[::100]:
        store.stores.remove(f"to:{path}")
    assert len(store.names("many/")) == 1_980


@pytest.mark.more
def test_a_large_object_is_written_and_read(store: Writable) -> None:
    content = random.Random(4).randbytes(70_000_000)
    assert store.put("to:large", content) == []
    digest = hashlib.sha256(store.get("to:large")).hexdigest()
    assert digest == hashlib.sha256(content).hexdigest()
    store.stores.remove("to:large")


KILLED = """
import json, os, signal, sys
from swathe import _swathe

description, file, least_bytes = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
stores = _swathe.Stores(json.dumps([description]))
copies = _swathe.Copies([(file, None, "to:kill/killed", True)], 1, stores)
while copies.bytes < least_bytes and copies.poll(0.001) is not None:
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.more
def test_a_killed_writer_leaves_the_old_object(store: Writable) -> None:
    if store.kind == "memory":
        pytest.skip("its objects end with their process")
    old, new = os.urandom(300_000), os.urandom(40_000_000)
    assert store.put("to:kill/killed", old) == []
    (store.made / "new").write_bytes(new)
    for least_bytes in (0, 10_000_000, 30_000_000):
        command = [sys.executable, "-c", KILLED, json.dumps(store.description)]
        done = subprocess.run(
            [*command, str(store.made / "new"), str(least_bytes)], check=False, timeout=120
        )
        assert done.returncode == -signal.SIGKILL
        whole = store.get("to:kill/killed")
        # The last bytes may be written before the signal comes.
        assert whole == old or (least_bytes and whole == new)
        assert store.names("kill") == ["kill/killed"]
        assert store.put("to:kill/killed", old) == []
    assert store.put("to:kill/killed", new) == []
    assert store.get("to:kill/killed") == new
    store.stores.remove("to:kill/killed")
