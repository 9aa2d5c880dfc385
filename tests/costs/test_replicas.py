"""Targets are distributed over stores with replicas: `cut_many(stores=...)`."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

import swathe
from swathe import _swathe
from swathe.core.errors import NoSuchStoreError
from swathe.core.row_table import RowTable
from swathe.costs.replica_stores import ReplicaStores
from swathe.costs.replicas import choose_stores
from swathe.files.file import sky_of
from swathe.files.targets.target_list import read_targets
from tests.support.fits_frames import Runner
from tests.support.replica_counts import counts_given, counts_read
from tests.support.servers import NGINX, FileServer, nginx, proxy

FILES = 12
ONE_BOX = {"x0": [5], "y0": [5], "width": [9], "height": [9]}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Twelve images of 100 x 100 pixels, each of another value."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(FILES):
        fits.writeto(folder / f"{number}.fits", np.full((100, 100), number, "i2"))
    return folder


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed")
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.fixture
def table() -> dict[str, Any]:
    """Two targets in each."""
    files = [f"{number}.fits" for number in range(FILES) for _ in range(2)]
    values = {"x0": 5, "y0": 5, "width": 9, "height": 9}
    return {"file": files, **{name: [value] * len(files) for name, value in values.items()}}


def copy_to(folder: Path, images: Path, numbers: range) -> None:
    folder.mkdir()
    for number in numbers:
        shutil.copy(images / f"{number}.fits", folder)


def engine_job(rows: RowTable, replicas: Any) -> _swathe.Job:
    source, hdu = rows.source, rows.hdu
    return _swathe.Job(
        source.values,
        source.codes,
        [None],
        hdu.codes,
        [[]],
        hdu.codes,
        rows.box,
        ["1.fits"],
        output="",
        kind="folder",
        replicas=replicas,
    )


def stores_of(sources: object) -> list[str]:
    return [str(source).partition(":")[0] for source in sources]  # type: ignore[attr-defined]


def check_pixels(folder: Path) -> None:
    for row in range(2 * FILES):
        assert (fits.getdata(folder / f"{row}.fits") == row // 2).all()


def test_files_go_to_stores_by_their_shares() -> None:
    files = {name: [f"{name}:{n}" for n in range(40)] for name in ("a", "b", "c")}
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    counts = Counter(choose_stores(files, shares, dict.fromkeys(files, ())))
    assert counts == {"a": 20, "b": 12, "c": 8}
    # Every part of the list has these shares, so that all stores work at once.
    assert Counter(choose_stores(files, shares, dict.fromkeys(files, ()))[:10])["a"] == 5
    lacking = {"a": range(10), "b": range(40), "c": range(5)}
    chosen = choose_stores(files, shares, lacking)
    assert chosen[:5] == ["a"] * 5 and chosen[5:10] == ["c"] * 5 and "b" not in chosen
    again = choose_stores(files, shares, dict.fromkeys(files, ()), {"c:0", "b:1"})
    assert again[:2] == ["c", "b"]


def test_copies_are_at_the_same_path_in_stores_that_have_them() -> None:
    stores = ReplicaStores({"a": 1.0, "b": 2.0, "c": 0.0}, frozenset({"b:x.fits"}), frozenset("c"))
    assert stores.copies("a:x.fits") == [(0, "a:x.fits")]
    assert stores.copies("b:d/y.fits") == [(1, "b:d/y.fits"), (0, "a:d/y.fits")]
    assert stores.in_store("b:d/y.fits", 2) == "c:d/y.fits"
    assert stores.are_copies("a:x", "c:x") and stores.are_copies("other:x", "other:x")
    assert not stores.are_copies("a:x", "a:y") and not stores.are_copies("a:x", "other:x")


def test_the_engine_refuses_replicas_that_do_not_fit(images: Path) -> None:
    rows = read_targets({"file": [str(images / "1.fits")], **ONE_BOX}, sky_of)
    file = str(images / "1.fits")
    good: tuple[Any, Any] = ([("one", 1.0), ("two", 1.0)], [[(0, file), (1, file)]])
    for stores, copies in (
        (good[0], []),
        (good[0], [[]]),
        (good[0], [[(0, "another.fits")]]),
        (good[0], [[(0, file), (2, file)]]),
        ([("one", math.nan), ("two", 1.0)], good[1]),
    ):
        with pytest.raises(ValueError, match="replicas: expected"):
            engine_job(rows, (stores, copies))
    engine_job(rows, good)


def test_two_local_stores_share_the_work(
    run: Runner, images: Path, table: dict[str, Any], tmp_path: Path
) -> None:
    copy_to(tmp_path / "copy", images, range(FILES))
    swathe.stores.add("one", str(images))
    swathe.stores.add("two", str(tmp_path / "copy"))
    shares = swathe.predict(table, stores=["one", "two"]).shares
    manifest = swathe.cut_many(table, tmp_path / "out", stores=["one", "two"], progress=False)
    assert set(manifest["status"]) == {"ok"}
    check_pixels(tmp_path / "out")
    counts = counts_read(manifest)
    assert manifest.meta["stores"] == {name: counts[name] for name in ("one", "two")}
    given = counts_given(manifest)
    for name, share in shares.items():
        assert abs(given[name] / 2 - share * FILES) <= 2.5
    assert swathe.predict(table, stores="two").shares.keys() == {"two"}
    one = swathe.cut_many(table, tmp_path / "one", stores="two", progress=False)
    assert set(stores_of(one["source"])) == {"two"}
    with pytest.raises(NoSuchStoreError, match="'three'; see: swathe store list"):
        swathe.cut_many(table, tmp_path / "other", stores=["one", "three"])
    # No result replaces a replica, whichever store the file is read from.
    with pytest.raises(OSError, match="it is the source"):
        swathe.cut_many(
            table, tmp_path / "copy", stores=["one", "two"], overwrite=True, progress=False
        )


def test_a_store_that_lacks_files_gets_none_of_them(
    run: Runner, images: Path, table: dict[str, Any], tmp_path: Path
) -> None:
    copy_to(tmp_path / "first", images, range(8))
    copy_to(tmp_path / "last", images, range(4, FILES - 1))
    swathe.stores.add("first", str(tmp_path / "first"))
    swathe.stores.add("last", str(tmp_path / "last"))
    manifest = swathe.cut_many(table, tmp_path / "out", stores=["first", "last"], progress=False)
    assert Counter(manifest["status"]) == {"ok": 2 * FILES - 2, "missing": 2}
    stores = stores_of(manifest["source"])
    assert set(stores[:8]) == {"first"} and set(stores[16:22]) == {"last"}


def test_a_server_far_away_gets_little_and_a_resumed_run_keeps_its_stores(
    run: Runner,
    images: Path,
    table: dict[str, Any],
    tmp_path: Path,
    server: FileServer,
) -> None:
    shutil.copytree(images, server.folder / "images")
    shutil.copytree(images, tmp_path / "copy")
    names = ["one", "two", "web"]
    with proxy(server.url, rtt_ms=60) as between:
        swathe.stores.add("one", str(images))
        swathe.stores.add("two", str(tmp_path / "copy"))
        swathe.stores.add("web", f"{between.url}/images")
        rows = tmp_path / "targets.ecsv"
        Table(table).write(rows)
        shares = swathe.predict(rows, stores=names).shares
        assert shares["web"] < 0.2
        arguments = ["cut", "--targets", str(rows), "-o", str(tmp_path / "out"), "--quiet"]
        stores = [word for name in names for word in ("--store", name)]
        ran = run.ran(*arguments, *stores, "--json")
        assert (ran.code, ran.json["ok"]) == (0, 2 * FILES)
        assert sum(ran.json["stores"].values()) == 2 * FILES
        assert ran.json["stores"]["web"] / 2 <= shares["web"] * FILES + 1
        check_pixels(tmp_path / "out")
        (tmp_path / "out" / "3.fits").unlink()
        again = json.loads(run.ran(*arguments, *stores[:4], "--resume", "--json").out)
        assert (again["ok"], again["done_before"]) == (2 * FILES, 2 * FILES - 1)
        only_web = tmp_path / "web"
        manifest = swathe.cut_many(rows, only_web, stores=["web"], progress=False)
        assert manifest.meta["stores"] == {"web": 2 * FILES}
        check_pixels(only_web)
