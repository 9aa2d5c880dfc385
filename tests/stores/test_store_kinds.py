"""Kinds of stores that packages add: found by entry points, called by the engine's threads."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe import _swathe
from swathe.core.errors import (
    AccessError,
    ChangedError,
    NotFoundError,
    OutputExistsError,
    SourceError,
    StoreSettingsError,
    SwatheError,
)
from swathe.stores import ObjectStore, ObjectWriter, StoredObject, store_kinds
from tests.support.fits_frames import Runner
from tests.support.memory_store import MemoryStore, MemoryWriter, write_package

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package that adds a scheme."""

    def write(
        scheme: str = "memory",
        value: str = "tests.support.memory_store:MemoryStore",
        name: str = "example-stores",
    ) -> None:
        folder = tmp_path / name
        write_package(folder, scheme, value, name)
        monkeypatch.syspath_prepend(folder)

    return write


@pytest.fixture
def offer(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[object], _swathe.Stores]]:
    """Makes an object the store `own`."""
    module = ModuleType("own_stores")

    def stores(store: object) -> _swathe.Stores:
        module.__dict__["make"] = lambda url, options: store
        store_kinds._stores.clear()
        return _swathe.Stores(json.dumps([{"name": "own", "root": "own://x", "options": {}}]))

    monkeypatch.setitem(sys.modules, "own_stores", module)
    install("own", "own_stores:make")
    yield stores
    store_kinds._stores.clear()


def filled() -> MemoryStore:
    """A store with one object."""
    store = MemoryStore("own://x", {})
    writer = store.create("a")
    writer.write(CONTENT)
    writer.finish(False)
    return store


def test_the_example_is_a_store() -> None:
    store = filled()
    assert isinstance(store, ObjectStore)
    assert isinstance(store.create("b"), ObjectWriter)


def test_commands_work_on_a_store_that_a_package_adds(
    install: Callable[..., None], run: Runner, tmp_path: Path
) -> None:
    install()
    image = np.arange(60_000, dtype="i2").reshape(200, 300)
    fits.writeto(tmp_path / "a.fits", image)
    text = run("store", "add", "mine", f"memory://{tmp_path.name}", "--option", "site=north")
    assert text == f"mine: memory://{tmp_path.name} (lan)\n"
    assert swathe.stores.show("mine").store.options == {"site": "north"}
    run("put", tmp_path / "a.fits", "mine:dr1/a b.fits")
    assert [each.path for each in swathe.stores.list_objects("mine:")] == ["mine:dr1/a b.fits"]
    assert "a b.fits" in run("ls", "-r", "mine:dr1")
    assert (
        swathe.stores.stat_object("mine:dr1/a b.fits").size == (tmp_path / "a.fits").stat().st_size
    )
    cut = swathe.cut("mine:dr1/a b.fits", box=(10, 20, 30, 40))
    np.testing.assert_array_equal(cut.data, image[20:60, 10:40])
    run("get", "mine:dr1/a b.fits", tmp_path / "back.fits")
    assert (tmp_path / "back.fits").read_bytes() == (tmp_path / "a.fits").read_bytes()
    assert "exists" in run.told("put", tmp_path / "a.fits", "mine:dr1/a b.fits", code=1)[1]
    run("rm", "mine:dr1/a b.fits")
    assert list(swathe.stores.list_objects("mine:")) == []


@pytest.mark.more
def test_such_a_store_is_probed(install: Callable[..., None], run: Runner, tmp_path: Path) -> None:
    install()
    run("store", "add", "mine", f"memory://{tmp_path.name}")
    (tmp_path / "object").write_bytes(CONTENT * 400)
    run("put", tmp_path / "object", "mine:object")
    swathe.probe("mine", quick=True, max_time_s=0.5)
    profile = swathe.stores.show("mine").profile
    assert profile is not None and profile.costs["request"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_package.stores:Store", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("tests.support.memory_store:Nothing", "AttributeError"),
        ("tests.support.memory_store:SCHEME", "a class or a function, found str"),
        ("tests.support.memory_store:write_package", "TypeError"),
        ("tests.support.memory_store:MemoryWriter", "expected a store with the methods of"),
    ],
)
def test_a_package_that_does_not_work_is_named_when_it_is_used(
    install: Callable[..., None], run: Runner, tmp_path: Path, value: str, why: str
) -> None:
    install("broken", value)
    url = f"broken://{tmp_path.name}"
    swathe.stores.add("bad", url)
    swathe.stores.add("disk", str(tmp_path))
    (tmp_path / "a").write_bytes(b"1")
    assert swathe.stores.stat_object("disk:a").size == 1
    with pytest.raises(SourceError) as caught:
        swathe.stores.stat_object("bad:a")
    assert why in str(caught.value)
    if "TypeError" not in why:
        assert "example-stores" in str(caught.value)


def test_a_scheme_that_two_packages_add_is_refused(
    install: Callable[..., None], run: Runner
) -> None:
    install(name="one")
    install(name="two", value="tests.support.memory_store:MemoryWriter")
    with pytest.raises(StoreSettingsError, match=r"expected one package .* found one, two"):
        swathe.stores.add("mine", "memory://x")


def test_no_package_is_looked_for_where_schemes_are_built_in(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: asked.append(1))
    monkeypatch.setattr("swathe.core.store_schemes.entry_points", lambda **_: asked.append(1))
    fits.writeto(tmp_path / "a.fits", np.ones((20, 30), "i2"))
    for name, url in (
        ("disk", str(tmp_path)),
        ("web", "https://127.0.0.1:1/x"),
        ("lake", "s3://bucket/x"),
        ("rows", f"db:sqlite://{tmp_path}/objects.db"),
    ):
        swathe.stores.add(name, url)
    swathe.cut("disk:a.fits", box=(0, 0, 5, 5))
    run("put", tmp_path / "a.fits", "rows:a.fits")
    assert asked == []


def test_a_scheme_of_no_package_is_refused(run: Runner) -> None:
    with pytest.raises(StoreSettingsError, match="ftp:// is not a known scheme"):
        swathe.stores.add("mine", "ftp://x")
    with pytest.raises(SourceError, match="cannot read ftp:// URLs"):
        swathe.cut("ftp://x/a.fits", box=(0, 0, 1, 1))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"password": "x"}, "looks like a credential"),
        ({"site": "AKIAIOSFODNN7EXAMPLE"}, "what looks like a credential"),
        ({"Site!": "x"}, "an option is one of"),
        ({"site": "x\n"}, "printable"),
    ],
)
def test_options_without_credentials(
    install: Callable[..., None], run: Runner, options: dict[str, str], why: str
) -> None:
    install()
    with pytest.raises(StoreSettingsError, match=why):
        swathe.stores.add("mine", "memory://x", options=options)


@pytest.mark.parametrize("url", ["memory://", "memory://a b", "memory://u:p@h", "memory://x?a=1"])
def test_urls_that_are_refused(install: Callable[..., None], run: Runner, url: str) -> None:
    install()
    with pytest.raises(StoreSettingsError):
        swathe.stores.add("mine", url)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (FileNotFoundError("gone"), NotFoundError, "own://x/a: not found; gone"),
        (NotFoundError(""), NotFoundError, "own://x/a: not found"),
        (PermissionError(errno.EACCES, "no"), AccessError, "access denied"),
        (ChangedError("new"), ChangedError, "changed while it was read"),
        (OSError(errno.EIO, "broken"), SourceError, "Input/output error"),
        (ConnectionResetError("bye"), SourceError, "ConnectionResetError: bye"),
        (SourceError("odd"), SourceError, "own://x/a: odd"),
        (KeyError("k"), SourceError, "KeyError: 'k'"),
        (NotImplementedError("not yet"), SourceError, "own://x/a: not yet"),
        (RuntimeError("x" * 10_000), SourceError, "RuntimeError: xxx"),
    ],
)
def test_exceptions_are_errors_of_stores(
    offer: Callable[[object], _swathe.Stores],
    error: Exception,
    kind: type[SwatheError],
    text: str,
) -> None:
    store = filled()
    stores = offer(store)
    source = stores.open("own:a")

    def fail(*_: Any) -> Any:
        raise error

    for method in ("stat", "read", "remove"):
        setattr(store, method, fail)
    calls: list[Callable[[], object]] = [
        lambda: stores.open("own:a"),
        lambda: source.read(0, 5),
        lambda: source.read_ranges([(0, 5), (3000, 3100), (9000, 9100)]),
    ]
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
        assert text in str(caught.value)
        assert len(str(caught.value)) < 3000


def test_an_interrupt_in_a_store_is_no_error_of_it(
    offer: Callable[[object], _swathe.Stores],
) -> None:
    store = filled()
    stores = offer(store)
    source = stores.open("own:a")

    def fail(*_: Any) -> Any:
        raise reason

    for method in ("stat", "read"):
        setattr(store, method, fail)
    for call in (lambda: stores.open("own:a"), lambda: source.read(0, 5)):
        reason: BaseException = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            call()
        reason = SystemExit(3)
        with pytest.raises(SwatheError, match="interrupted") as caught:
            call()
        assert type(caught.value) is SwatheError


@pytest.mark.parametrize("answer", [b"", b"123", CONTENT, "text", None, 5])
def test_a_read_of_another_length_is_an_error(
    offer: Callable[[object], _swathe.Stores], answer: object
) -> None:
    store = filled()
    source = offer(store).open("own:a")
    store.read = lambda *_: answer  # type: ignore[method-assign, assignment]
    with pytest.raises(SourceError, match="own://x/a"):
        source.read(0, 10)


@pytest.mark.parametrize("status", [None, 5, StoredObject("a", -1), StoredObject("a", 2**80)])
def test_a_status_that_is_none_is_an_error(
    offer: Callable[[object], _swathe.Stores], status: Any
) -> None:
    store = filled()
    store.stat = lambda path: status  # type: ignore[method-assign]
    with pytest.raises(SourceError, match="own://x/a"):
        offer(store).open("own:a")


def test_an_impossible_size_takes_no_memory(offer: Callable[[object], _swathe.Stores]) -> None:
    store = filled()
    store.stat = lambda path: StoredObject("a", 2**62, "number 1")  # type: ignore[method-assign]
    source = offer(store).open("own:a")
    with pytest.raises(SourceError, match="expected 10 bytes from byte 4611686018427387000"):
        source.read(2**62 - 904, 2**62 - 894)


def test_other_threads_go_on_while_a_store_waits(
    offer: Callable[[object], _swathe.Stores],
) -> None:
    store, both = filled(), threading.Barrier(2, timeout=20)
    source = offer(store).open("own:a")
    read = store.read

    def wait(*arguments: Any) -> bytes:
        both.wait()  # until another thread of Python is in a read, too
        return read(*arguments)

    store.read = wait  # type: ignore[method-assign, assignment]
    results: list[bytes] = []
    other = threading.Thread(target=lambda: results.append(source.read(5, 9)))
    other.start()
    assert source.read(0, 4) == CONTENT[:4]
    other.join()
    assert results == [CONTENT[5:9]]


def test_notes_of_a_listing_do_not_wait_for_its_page(
    offer: Callable[[object], _swathe.Stores],
) -> None:
    """The thread that lists has the lock of the listing and wants the GIL."""
    store, listed = filled(), threading.Event()

    def slow(prefix: str) -> Iterator[StoredObject]:
        listed.set()
        time.sleep(0.2)
        yield store.stat("a")

    store.list = slow  # type: ignore[method-assign]
    listing = offer(store).list("own:")
    pages: list[Any] = []
    other = threading.Thread(target=lambda: pages.append(listing.next_page()))
    other.start()
    listed.wait(20)
    assert listing.take_notes() == []
    other.join()
    assert [path for path, *_ in pages[0]] == ["a"]


def test_a_listing_is_read_by_pages_and_has_only_what_is_asked_for(
    offer: Callable[[object], _swathe.Stores],
) -> None:
    store, count = filled(), 0

    def endless(prefix: str) -> Iterator[StoredObject]:
        nonlocal count
        yield StoredObject("elsewhere", 1)
        yield StoredObject("x/.hidden", 1)
        while True:
            count += 1
            yield StoredObject(f"x/{count}", 1)

    store.list = endless  # type: ignore[method-assign]
    page = offer(store).list("own:x").next_page()
    assert page is not None and page[0][0] == "x/1"
    assert len(page) == 998 and count == 998


def test_what_is_not_finished_is_aborted(
    offer: Callable[[object], _swathe.Stores], tmp_path: Path
) -> None:
    store, calls = filled(), []

    class Writer(MemoryWriter):
        def write(self, part: bytes) -> None:
            raise OSError(errno.ENOSPC, "full")

        def abort(self) -> None:
            calls.append("abort")

    store.create = lambda path: Writer(store, path)  # type: ignore[method-assign]
    stores = offer(store)
    (tmp_path / "b").write_bytes(CONTENT)
    copies = _swathe.Copies([(str(tmp_path / "b"), None, "own:b", False)], 1, stores)
    faults = []
    while (done := copies.poll(1.0)) is not None:
        faults += [each.reason for each in done]
    assert ["No space left" in reason for reason in faults] == [True]
    assert calls == ["abort"]


def test_a_broken_connection_is_tried_again(
    offer: Callable[[object], _swathe.Stores], tmp_path: Path
) -> None:
    store, tries = filled(), 0

    class Writer(MemoryWriter):
        def finish(self, replace: bool) -> None:
            nonlocal tries
            tries += 1
            if tries < 2:
                raise ConnectionError("lost")
            super().finish(replace)

    store.create = lambda path: Writer(store, path)  # type: ignore[method-assign]
    stores = offer(store)
    (tmp_path / "b").write_bytes(CONTENT)
    copies = _swathe.Copies([(str(tmp_path / "b"), None, "own:b", False)], 1, stores)
    while copies.poll(1.0) is not None:
        pass
    assert tries == 2
    assert stores.open("own:b").read(0, len(CONTENT)) == CONTENT


def test_an_object_exists_error_has_its_class(
    offer: Callable[[object], _swathe.Stores], tmp_path: Path
) -> None:
    stores = offer(filled())
    (tmp_path / "b").write_bytes(b"other")
    copies = _swathe.Copies([(str(tmp_path / "b"), None, "own:a", False)], 1, stores)
    kinds = []
    while (done := copies.poll(1.0)) is not None:
        kinds += [each.kind for each in done]
    assert kinds == [OutputExistsError.__name__]
