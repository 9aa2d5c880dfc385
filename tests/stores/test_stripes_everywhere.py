"""Datasets, mirrors, probes, predictions, results and portals work on a striped store."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import NoSuchResultError
from swathe.jobs import result_store_by_name
from swathe.portal.sources import Sources
from swathe.stores.folders import store_folders
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner, frame
from tests.support.stripes import add_stripe


@pytest.fixture
def sample(run: Runner, tmp_path: Path) -> list[Path]:
    """Three frames, put into `wide:dr17/`; their files."""
    add_stripe(tmp_path)
    (tmp_path / "sample").mkdir()
    files = [tmp_path / "sample" / f"frame-{number}.fits" for number in range(3)]
    for number, path in enumerate(files):
        path.write_bytes(frame(10.0 + 10 * number))
    run("put", *files, "wide:dr17/")
    return files


def test_a_dataset_is_searched_cut_and_mirrored(
    sample: list[Path], run: Runner, tmp_path: Path
) -> None:
    added = run.json("dataset", "add", "dr17", "wide:dr17")
    assert added["read"] == len(sample)
    assert run.json("dataset", "sync", "dr17")["read"] == 0
    (tmp_path / "copy").mkdir()
    run("store", "add", "copy", tmp_path / "copy")
    run("dataset", "mirror", "dr17", "copy:")
    for path in sample:
        assert (tmp_path / "copy" / path.name).read_bytes() == path.read_bytes()
    assert f"{len(sample)} already there" in run("dataset", "mirror", "dr17", "copy:")
    assert "first: swathe dataset remove dr17" in run("store", "remove", "wide", code=2)


def test_a_dataset_is_mirrored_to_a_stripe(sample: list[Path], run: Runner, tmp_path: Path) -> None:
    run("store", "add", "disk", tmp_path / "sample")
    run("dataset", "add", "local", "disk:")
    run("dataset", "mirror", "local", "wide:mirror")
    assert f"{len(sample)} already there" in run("dataset", "mirror", "local", "wide:mirror")
    listed = {each.path for each in swathe.stores.list_objects("wide:mirror")}
    assert len(listed) == len(sample)


def test_many_cuts_are_those_of_the_files(sample: list[Path], tmp_path: Path) -> None:
    rows = [(f"wide:dr17/{path.name}", 10, 20, 30, 40) for path in sample]
    names = ("file", "x0", "y0", "width", "height")
    table = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    prediction = swathe.predict(table)
    assert prediction.median_s > 0
    done = swathe.cut_many(table, tmp_path / "out", progress=False)
    assert set(done["status"]) == {"ok"}
    local = {**table, "file": [str(path) for path in sample]}
    same = swathe.cut_many(local, tmp_path / "same", progress=False)
    for one, other in zip(done["path"], same["path"], strict=True):
        with fits.open(tmp_path / "out" / one) as ours, fits.open(tmp_path / "same" / other) as it:
            np.testing.assert_array_equal(ours[0].data, it[0].data)


@pytest.mark.more
def test_a_probe_measures_the_whole_store(sample: list[Path], run: Runner) -> None:
    probe = swathe.probe("wide", quick=True, max_time_s=1.0, write=True)
    assert probe.root == "striped://wide"
    shown = swathe.stores.show("wide")
    assert shown.profile is not None and shown.probed_at is not None
    assert "striped://wide" in run("store", "show", "wide")
    assert swathe.stores.check_stripes("wide").objects == len(sample)  # what it wrote is gone


def test_results_of_jobs_go_into_a_stripe(sample: list[Path], tmp_path: Path) -> None:
    with Catalog.open() as catalog:
        place = result_store_by_name(catalog, "wide:results", tmp_path / "scratch")
        assert str(place) == "wide:results"
        scratch = place.scratch("job")
        scratch.mkdir()
        (scratch / "a.fits").write_bytes(b"result")
        files = [(str(scratch / "a.fits"), "a.fits")]
        assert list(place.put("job", files, lambda: False)) == [0]
        with place.find("job", "a.fits").open() as file:
            assert file.read() == b"result"
        assert place.remove("job", lambda: False)
        with pytest.raises(NoSuchResultError):
            place.find("job", "a.fits")


@pytest.mark.more
def test_a_stripe_over_block_servers(run: Runner, tmp_path: Path) -> None:
    """Each given straight by its URL, with two disks; one is killed."""
    content = frame(10.0)
    (tmp_path / "frame.fits").write_bytes(content)
    with ExitStack() as stack:
        running = []
        for number in range(3):
            disks = [tmp_path / f"disk-{number}-{which}" for which in "xy"]
            for disk in disks:
                disk.mkdir()
            running.append(stack.enter_context(block_server(*disks)))
        over = [server.url for server in running]
        swathe.stores.add("wide", "striped:", over=over, block_bytes=4096)
        run("put", tmp_path / "frame.fits", "wide:dr17/")
        assert swathe.stores.check_stripes("wide", deep=True).is_whole
        status = swathe.stores.stripe_status("wide")
        assert [(each.parts, each.records) for each in status.servers] == [(1, 1)] * 3
        running[1].end(signal.SIGKILL)
        with fits.open(tmp_path / "frame.fits") as hdus:
            expected = hdus[0].data[20:60, 10:40]
        cut = swathe.cut("wide:dr17/frame.fits", box=(10, 20, 30, 40))
        np.testing.assert_array_equal(cut.data, expected)
        run("stripe", "check", "wide", code=1)


@pytest.mark.more
def test_damage_on_disks_of_block_servers_is_read_around_and_repaired(
    run: Runner, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4096
    (tmp_path / "object").write_bytes(content)
    with ExitStack() as stack:
        disks = [tmp_path / f"disk-{number}" for number in range(3)]
        for disk in disks:
            disk.mkdir()
        over = [stack.enter_context(block_server(disk)).url for disk in disks]
        swathe.stores.add("wide", "striped:", over=over, parity=1, block_bytes=65_536)
        run("put", tmp_path / "object", "wide:")
        # One of each of two parts, not in the same row.
        for disk, at in ((disks[0], 70_000), (disks[1], 300_000)):
            (part,) = [path for path in disk.glob("object.stripe.*") if path.is_file()]
            status = part.stat()
            with part.open("r+b") as file:
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 1]))
            os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert swathe.fs().cat_file("wide/object") == content
        (check,) = swathe.stores.check_stripes("wide", deep=True).checks
        assert check.is_readable
        damages = [(each.state, each.damage_starts) for each in check.parts]
        size = 512
        blocks = [at // 4096 * 4096 for at in (70_000, 300_000)]
        first, second = (list(range(block, block + 4096, size)) for block in blocks)
        assert damages == [("damaged", first), ("damaged", second), ("whole", [])]
        repaired = run.json("stripe", "repair", "wide", "--deep")
        assert (repaired["parts"], repaired["failed"]) == (2, 0)
        assert swathe.stores.check_stripes("wide", deep=True).is_whole
        assert swathe.fs().cat_file("wide/object") == content


def test_a_portal_reads_from_it(sample: list[Path], tmp_path: Path) -> None:
    with Catalog.open() as catalog:
        Sources(catalog).check(f"wide:dr17/{sample[0].name}")
        with pytest.raises(PermissionError, match="expected a path in the store"):
            Sources(catalog).check("wide:../x")
        folders = store_folders(catalog.stores())
    assert folders[str(tmp_path / "disk-a")] == "the store 'disk-a'"
    assert not [folder for folder in folders if "striped" in folder]


def test_a_zarr_of_version_2_is_put_on_block_servers(run: Runner, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    pixels = np.arange(24, dtype="f4").reshape(4, 6)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("lst", data=pixels, chunks=(2, 3))
    with ExitStack() as stack:
        for number in range(3):
            (tmp_path / f"disk-{number}").mkdir()
            server = stack.enter_context(block_server(tmp_path / f"disk-{number}"))
            run("store", "add", f"host{number}", server.url.replace("http", "dav", 1))
        places = [word for number in range(3) for word in ("--over", f"host{number}")]
        run("store", "add", "lab", "striped:", *places, "--parity", "1")
        files = [path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()]
        assert {".zgroup", ".zarray"} <= {path.name for path in files}
        assert run.json("put", "-r", tmp_path / "a.zarr", "lab:a.zarr")["copied"] == len(files)
        cut = swathe.cut("lab:a.zarr", array="/lst", index={"axis_0": slice(1, 3)})
        np.testing.assert_array_equal(cut.data, pixels[1:3])
        run("get", "-r", "lab:a.zarr", tmp_path / "back")
        assert swathe.stores.check_stripes("lab", progress=False).is_whole
    back = zarr.open_array(tmp_path / "back" / "lst", mode="r")
    np.testing.assert_array_equal(back[:], pixels)
