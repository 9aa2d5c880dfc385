"""Named stores, from the catalogue to the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

import swathe
from swathe import _swathe
from swathe.catalog import Catalog, Store, this_host
from swathe.catalog.revisions import VERSION_TABLE
from swathe.core.errors import AccessError, CatalogError, NotFoundError
from swathe.costs.engine_job import to_engine_job
from swathe.costs.fit.from_real_reads import feed_back
from swathe.costs.probing.resolve_target import find_place
from swathe.costs.probing.save import keep_probe
from swathe.costs.probing.store_probe import measure_store
from swathe.files.file import sky_of
from swathe.files.targets.target_list import read_targets
from swathe.stores import registry
from swathe.stores.registry import (
    bounds_of,
    compute_costs,
    is_named,
    known_stores,
    storages,
    stores_for,
    with_store_names,
)
from tests.support import servers
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import contents, noise


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    return Catalog.open()


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    folder = tmp_path / "a survey"
    folder.mkdir()
    (folder / "a b%20.fit").write_bytes(contents(noise(3, (50, 60)), "fit"))
    return folder


def test_without_a_catalogue_there_are_no_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/none.sqlite")
    assert known_stores() is None
    assert not is_named("survey:a.fit")
    assert not (tmp_path / "none.sqlite").exists()


def test_objects_of_a_folder_are_named(catalog: Catalog, frame: Path, tmp_path: Path) -> None:
    catalog.add_store("survey", str(frame))
    assert is_named("survey:a.fit")
    assert not is_named("other:a.fit")
    assert stores_for(["/plain/path.fit"]) is None
    image = noise(3, (50, 60))
    cut = swathe.cut("survey:a b%20.fit", box=(1, 2, 5, 4))
    np.testing.assert_array_equal(cut.data, image[2:6, 1:6])
    assert cut.url == str(frame / "a b%20.fit")
    with pytest.raises(NotFoundError, match=r"a survey/none\.fit"):
        swathe.cut("survey:none.fit", box=(1, 2, 5, 4))
    table = tmp_path / "targets.csv"
    table.write_text("file,x0,y0,width,height\nsurvey:a b%20.fit,1,2,5,4\n")
    found = swathe.cut_many(table, tmp_path / "out", progress=False)
    assert list(found["status"]) == ["ok"]


def test_texts_name_files_of_stores_and_no_others(catalog: Catalog) -> None:
    roots = {"all": "/", "data": "/data", "inner": "/data/x", "web": "http://h/d"}
    for name, root in roots.items():
        catalog.add_store(name, root)
    assert with_store_names("/data/a.fit, HDU 1: gone") == "data:a.fit, HDU 1: gone"
    assert (
        with_store_names("'/data/x/a.fit' and (http://h/d/b.fit)")
        == "'inner:a.fit' and (web:b.fit)"
    )
    for other in ("/mnt/data/a.fit", "http://h/e/data/a.fit", "1/2 of it"):
        assert with_store_names(other) == other


def test_a_store_added_later_is_seen(catalog: Catalog, frame: Path) -> None:
    assert not is_named("survey:a.fit")
    catalog.add_store("survey", str(frame))
    assert is_named("survey:a.fit")
    catalog.remove_store("survey")
    assert not is_named("survey:a.fit")


@pytest.mark.more
def test_a_measured_profile_changes_the_plan(catalog: Catalog, tmp_path: Path) -> None:
    with servers.nginx(_made(tmp_path / "nginx")) as server:
        (server.folder / "a.fit").write_bytes(contents(noise(5, (1489, 2048)), "fit"))
        catalog.add_store("web", server.url)
        made = []
        for latency_s, streams in [(0.5, 1), (1e-4, 8)]:
            costs = {
                "connect_s": 0.0,
                "open_s": 0.0,
                "request": [[0, latency_s], [1_000_000, latency_s + 0.01]],
                "total_bytes_per_s": 1e9,
                "requests_per_s": 1e4,
                "streams": streams,
            }
            catalog.put_profile(server.url, this_host(), costs, {}, datetime.now(UTC))
            swathe.cut("web:a.fit", box=(100, 700, 100, 100))
            server.requests()
            swathe.cut("web:a.fit", box=(100, 700, 100, 100))
            made.append(server.requests())
    assert len(made[0]) == 1, "another request would cost half a second"
    assert len(made[1]) > 4


def local_costs(latency_s: float) -> dict[str, object]:
    return {
        "connect_s": 0.0,
        "open_s": 0.0,
        "request": [[0, latency_s], [1_000_000, latency_s + 1e-4]],
        "total_bytes_per_s": 1.01e10,
        "requests_per_s": 1.01 / latency_s,
        "streams": 1,
    }


def test_what_was_measured_of_local_files_is_of_all_plain_paths(
    catalog: Catalog, frame: Path
) -> None:
    (frame / "b.fit").write_bytes(contents(noise(3, (1489, 2048)), "fit"))
    paths = [str(frame / "b.fit"), (frame / "b.fit").as_uri()]
    assert stores_for(paths[:1]) is None
    requests = []
    for latency_s in (1e-7, 1e-2):
        # Reads of 200 bytes, 4 kB apart: worth two requests, or one.
        costs = local_costs(latency_s)
        catalog.put_profile("file:///", this_host(), costs, {"model": 0.1}, datetime.now(UTC))
        for path in paths:
            stores = stores_for([path])
            assert stores is not None and stores.locate(path) == ("file://", path)
            rows = {"file": [path], "x0": [1], "y0": [1], "width": [100], "height": [50]}
            found = swathe.predict(rows)
            requests.append(found.requests)
    assert requests[0] == requests[1] > requests[2] == requests[3]
    assert bounds_of("file://") == (0.1, 0.1)
    # Real reads change the scatter; what the probe has not seen stays unseen.
    for model, bounds in ((0.3, (0.5, 0.3)), (0.0, (0.4, 0.0))):
        spread = {"model": model, "unseen_faster": 0.4, "unseen_slower": 0.0}
        catalog.put_profile("file:///", this_host(), costs, spread, datetime.now(UTC))
        assert bounds_of("file://") == pytest.approx(bounds)
    catalog.put_profile("file:///", "another-host", local_costs(1), {}, datetime.now(UTC))
    swathe.cut(paths[0], box=(1, 2, 5, 4))


def test_a_catalogue_that_is_none_does_not_keep_from_plain_files(
    frame: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "c.sqlite").write_bytes(b"no database" * 100)
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    assert stores_for([str(frame / "a b%20.fit")]) is None


def test_a_catalogue_file_is_read_as_the_catalogue_reads_it(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        catalog.add_store(name, str(tmp_path / name), options={"probe_object": "a é"})
    catalog.add_store("wide", "striped:", over=["two:parts", str(tmp_path / "three")])
    catalog.add_store("near", "cache:", of="wide", over=["one"], limit_bytes=10**6)
    for host, latency_s in (("b", 1.0), (this_host(), 2.0), (this_host(), 3.0)):
        spread = {"model": latency_s, "unseen_slower": 0.5}
        catalog.put_profile("dav://a", host, local_costs(latency_s), spread, datetime.now(UTC))
    for host in ("b", "c"):
        catalog.put_compute(host, {"cut_s": 1e-4}, datetime.now(UTC))
    quick = storages()
    assert [store["name"] for store in quick.stores] == ["near", "one", "two", "wide"]
    assert quick.bounds[this_host()]["dav://a"] == pytest.approx((3.0, 9.25**0.5))
    assert list(quick.compute) == ["b"]
    with monkeypatch.context() as patch:
        patch.setattr(registry, "read_stores", lambda path: None)
        assert storages() == quick
    with catalog._writing() as session:
        session.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = 'v9999'"))
    with pytest.raises(CatalogError, match="newer Swathe"):
        storages()


def test_what_computing_costs_is_known(catalog: Catalog) -> None:
    assert compute_costs() is None
    catalog.put_compute(this_host(), {"cut_s": 1e-4}, datetime.now(UTC))
    assert json.loads(compute_costs() or "") == {"cut_s": 1e-4}


def test_streams_are_decoded_by_what_that_costs_here(catalog: Catalog, tmp_path: Path) -> None:
    path = str(tmp_path / "a.fit.gz")
    Path(path).write_bytes(contents(noise(3, (1489, 2048)), "fit.gz"))
    swathe.cut(path, box=(0, 0, 1, 1))
    # Boxes of one row, 40 kB apart: a seek point lies between some.
    rows = range(0, 1480, 10)
    boxes = {"file": [path] * len(rows), "x0": [0] * len(rows), "y0": list(rows)}
    targets = {**boxes, "width": [2048] * len(rows), "height": [1] * len(rows)}
    decoded = []
    for restart_s in (1e-9, 1.0):
        catalog.put_compute(this_host(), {"restart_s": restart_s}, datetime.now(UTC))
        [how] = swathe.predict(targets).explained
        assert how["method"] == "from seek points"
        decoded.append(how["unpacked_bytes"])
        cut = swathe.cut(path, box=(0, 1000, 2048, 1))
        assert np.array_equal(cut.data, noise(3, (1489, 2048))[1000:1001])
    assert decoded[0] < decoded[1]


@pytest.mark.more
def test_what_is_kept_of_servers_is_read_as_files_are(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_CACHE_BYTES", str(1 << 26))
    with servers.nginx(_made(tmp_path / "nginx")) as server:
        (server.folder / "a.fit").write_bytes(contents(noise(5, (1489, 2048)), "fit"))
        catalog.add_store("web", server.url)
        swathe.cut("web:a.fit", box=(0, 0, 2048, 1489))
        pieces = []
        for latency_s in (1e-7, 1e-2):
            # Reads of 200 bytes, 4 kB apart: worth a piece each, or one of all.
            catalog.put_profile(
                "file:///", this_host(), local_costs(latency_s), {}, datetime.now(UTC)
            )
            rows = {"file": ["web:a.fit"], "x0": [1], "y0": [1], "width": [100], "height": [50]}
            read = read_targets(rows, sky_of)
            batch = to_engine_job(read, names=["a"], output=str(tmp_path)).start()
            while batch.poll(0.1) is not None:
                pass
            pieces.append(batch.finish()["from_cache"][1])
    assert pieces[0] >= 50 > 5 >= pieces[1] > 0


BUCKET = "s3://frames"


@pytest.fixture
def twins(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[servers.S3, servers.S3]]:
    """Two servers with a bucket of the same name, and the stores `near` and `far`."""
    with ExitStack() as stack:
        both = []
        for name in ("near", "far"):
            served = stack.enter_context(servers.s3s_fs(_made(tmp_path / name)))
            served.put("frames", "a.fit", contents(noise(5, (600, 700)), "fit"))
            catalog.add_store(name, BUCKET, options={"endpoint": served.url})
            both.append(served)
        for name, value in both[0].environment.items():
            monkeypatch.setenv(name, value)
        # The option of a store goes before it.
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", both[0].url)
        yield both[0], both[1]


def keyed(served: servers.S3) -> str:
    return f"s3://{served.url.removeprefix('http://')}/frames"


def test_what_was_measured_of_a_bucket_is_not_of_its_namesake(
    twins: tuple[servers.S3, servers.S3], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = map(keyed, twins)
    assert [catalog.store(name).key for name in ("near", "far")] == [near, far]
    found = measure_store(find_place("near", ["a.fit"]), quick=True, max_time_s=0.5)
    assert found.root == near
    keep_probe(catalog, found)
    assert [kept.root for kept in catalog.profiles()] == [near]
    rows = {"file": ["near:a.fit", "far:a.fit"], "x0": [1, 1], "y0": [1, 1]}
    job = {**rows, "width": [9, 9], "height": [9, 9]}
    told = swathe.predict(job).per_store
    assert {key: cost.measured for key, cost in told.items()} == {near: True, far: False}
    assert told[far].interval_s[1] == pytest.approx(2 * told[far].median_s)

    _swathe.take_timings()
    swathe.cut("far:a.fit", box=(300, 400, 30, 30))
    swathe.cut("near:a.fit", box=(300, 400, 30, 30))
    timings = _swathe.take_timings()
    assert list(dict.fromkeys(timing[0] for timing in timings)) == [far, near]
    feed_back(catalog, timings)
    of = {key: {each.source for each in catalog.samples(key, this_host())} for key in (near, far)}
    assert of == {near: {"probe", "read"}, far: {"read"}}

    # Of a bucket that is no store the environment says where it is.
    catalog.remove_store("near")
    catalog.remove_store("far")
    for url, key, measured in ((twins[0].url, near, True), (twins[1].url, far, False)):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        rows["file"] = [f"{BUCKET}/a.fit"] * 2
        [(root, cost)] = swathe.predict({**job, **rows}).per_store.items()
        assert (root, cost.measured) == (key, measured)
        assert find_place(f"{BUCKET}/a.fit").root == key


def test_what_is_kept_of_an_object_is_not_of_its_namesake(
    twins: tuple[servers.S3, servers.S3], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bucket, key, size and ETag, another image: s3s-fs does not see the change."""
    monkeypatch.setenv("SWATHE_CACHE_BYTES", "100000000")
    other = noise(6, (700, 600))
    (twins[1].folder / "frames/a.fit").write_bytes(contents(other, "fit"))
    for _ in range(2):
        for name, image in (("near", noise(5, (600, 700))), ("far", other)):
            cut = swathe.cut(f"{name}:a.fit", box=(300, 400, 30, 30))
            np.testing.assert_array_equal(cut.data, image[400:430, 300:330])


def test_a_token_goes_to_its_store_alone(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "t0ken-for-the-door"
    (tmp_path / "token").write_text(f"{token}\n")
    with servers.xrootd(_made(tmp_path / "xrootd"), token) as door:
        (door.folder / "a.fit").write_bytes(contents(noise(5, (50, 60)), "fit"))
        options = {"door": door.url, "token_file": str(tmp_path / "token")}
        catalog.add_store("door", "root://archive.example/", options=options)
        cut = swathe.cut("door:a.fit", box=(1, 2, 5, 4))
        np.testing.assert_array_equal(cut.data, noise(5, (50, 60))[2:6, 1:6])
        with pytest.raises(AccessError) as refused:
            swathe.cut(f"{door.url}/a.fit", box=(1, 2, 5, 4))
        monkeypatch.setenv("BEARER_TOKEN", "another-token-entirely")
        catalog.add_store("wrong", "root://other.example/", options={"door": door.url})
        with pytest.raises(AccessError) as wrong:
            swathe.cut("wrong:a.fit", box=(1, 2, 5, 4))
    for error in (refused, wrong):
        assert "token" not in str(error.value)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("root", "is_local", "is_bucket", "is_webdav", "is_writable"),
    [
        ("file:///data/a b", True, False, False, True),
        ("s3://bucket", False, True, False, True),
        ("gs://bucket/part", False, True, False, True),
        ("az://container", False, True, False, True),
        ("dav://127.0.0.1/d", False, False, True, True),
        ("root://127.0.0.1/d", False, False, True, True),
        ("https://127.0.0.1/d", False, False, False, False),
    ],
)
def test_a_store_says_what_kind_it_is(
    root: str, is_local: bool, is_bucket: bool, is_webdav: bool, is_writable: bool
) -> None:
    kind = Store("named", root, "lan").kind
    assert (kind.is_local, kind.is_bucket, kind.is_webdav) == (is_local, is_bucket, is_webdav)
    stores = _swathe.Stores(json.dumps([{"name": "named", "root": root}]))
    assert kind.is_writable == stores.is_writable("named:x.fits") == is_writable
    assert stores.local_path("named:x.fits") == (Path("/data/a b/x.fits") if is_local else None)
    assert kind.local_path == (Path("/data/a b") if is_local else None)


def test_paths_of_files_in_no_store_are_their_own() -> None:
    stores = _swathe.Stores("[]")
    assert stores.local_path("a b/x.fits") == Path("a b/x.fits")
    assert stores.local_path("file:///a%20b/x.fits") == Path("/a b/x.fits")
    assert stores.local_path("https://host/x.fits") is None


def test_a_store_that_is_added_while_others_are_loaded_is_known(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.add_store("near", "https://archive.example/near")
    load = registry.storages

    def slow_load() -> registry.StoreSnapshot:
        content = load()
        if len(catalog.stores()) == 1:
            catalog.add_store("far", "https://archive.example/far")
        return content

    monkeypatch.setattr(registry, "storages", slow_load)
    known_stores()
    assert with_store_names("https://archive.example/far/a.fits") == "far:a.fits"
