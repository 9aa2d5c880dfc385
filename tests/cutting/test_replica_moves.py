"""Targets move between stores with replicas when one slows, fails or does not answer."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe import trace
from swathe.cutting import cut_run
from swathe.files.manifest import read_manifest
from swathe.trace import CodedColumn
from tests.support.fits_frames import Runner
from tests.support.replica_counts import counts_given, counts_read
from tests.support.servers import NGINX, FileServer, Proxy, free_port, nginx, proxy

FILES = 60
SIDE = 400
RATE = 6_000_000
"""Bytes per second of each link: 60 images of 320 kB are read in 3 s."""


class Mirrors(NamedTuple):
    """Two servers with the same images, each behind a link of its own."""

    one: Proxy
    two: Proxy
    folders: tuple[Path, Path]


@pytest.fixture
def mirrors(run: Runner, tmp_path: Path) -> Iterator[Mirrors]:
    """Serve images, each of another value, as the stores `one` and `two`."""
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with nginx(tmp_path / "a") as first, nginx(tmp_path / "b") as second:
        for number in range(FILES):
            fits.writeto(first.folder / f"{number}.fits", np.full((SIDE, SIDE), number, "i2"))
            shutil.copy(first.folder / f"{number}.fits", second.folder)
        with link(first) as one, link(second) as two:
            swathe.stores.add("one", one.url)
            swathe.stores.add("two", two.url)
            yield Mirrors(one, two, (first.folder, second.folder))


def link(server: FileServer) -> Any:
    return proxy(server.url, rtt_ms=5, shared_bytes_per_s=RATE)


def table() -> dict[str, Any]:
    """All but the border of each image."""
    values = {"x0": 5, "y0": 5, "width": SIDE - 10, "height": SIDE - 10}
    return {
        "file": [f"{number}.fits" for number in range(FILES)],
        **{name: [value] * FILES for name, value in values.items()},
    }


def check(manifest: Any, folder: Path) -> None:
    """Check that all is cut, and that the manifest counts the stores that were read."""
    assert Counter(manifest["status"]) == {"ok": FILES}, set(manifest["reason"])
    counts = counts_read(manifest)
    assert manifest.meta["stores"] == {name: counts[name] for name in ("one", "two")}
    for number in range(FILES):
        assert (fits.getdata(folder / f"{number}.fits") == number).all()


def when_read(link: Proxy, images: int, act: Callable[[], object]) -> threading.Thread:
    """Call `act` once the link has carried the pixels of `images` images."""
    swathe.predict(table(), stores=["one", "two"])
    return link.act_after(images * 2 * SIDE * SIDE, act)


def test_steady_links_keep_their_shares(mirrors: Mirrors, tmp_path: Path) -> None:
    manifest = swathe.cut_many(table(), tmp_path / "out", stores=["one", "two"], progress=False)
    check(manifest, tmp_path / "out")
    planned = swathe.predict(table(), stores=["one", "two"]).shares
    assert abs(counts_given(manifest)["one"] / FILES - planned["one"]) < 0.2


def test_a_store_that_slows_loses_what_it_has_not_begun(mirrors: Mirrors, tmp_path: Path) -> None:
    out = tmp_path / "out"
    watch = when_read(mirrors.one, 6, lambda: mirrors.one.set(shared_bytes_per_s=RATE // 20))
    with trace.recording(tmp_path / "run.ulm"):
        manifest = swathe.cut_many(table(), out, stores=["one", "two"], progress=False)
    watch.join()
    check(manifest, out)
    counts = counts_read(manifest)
    assert counts["two"] > 1.3 * counts["one"]
    moved = [note for note in manifest.meta["notes"] if "were read from two: one took" in note]
    assert len(moved) == 1, manifest.meta["notes"]
    events = trace.read(tmp_path / "run.ulm")
    words = events.event.words
    moves = np.flatnonzero(events.event.codes == words.index("UNIT_MOVED"))
    assert len(moves) == int(moved[0].split()[0])
    to, why = events.fields["TO_STORE"], events.fields["WHY"]
    assert isinstance(to, CodedColumn) and isinstance(why, CodedColumn)
    assert {to.words[to.codes[at]] for at in moves} == {"two"}
    assert all(why.words[why.codes[at]].startswith("behind: ") for at in moves)

    # What is kept names the store it was read from.
    (out / "3.fits").unlink()
    mirrors.one.set(shared_bytes_per_s=RATE)
    before = list(manifest["source"])
    again = swathe.cut_many(table(), out, stores=["one", "two"], resume=True, progress=False)
    check(again, out)
    assert again.meta["done_before"] == FILES - 1
    sources = list(again["source"])
    assert sources[:3] + sources[4:] == before[:3] + before[4:]


def test_a_store_that_dies_is_replaced_by_the_other(mirrors: Mirrors, tmp_path: Path) -> None:
    out = tmp_path / "out"
    watch = when_read(mirrors.one, 6, mirrors.one.process.kill)
    manifest = swathe.cut_many(table(), out, stores=["one", "two"], progress=False)
    watch.join()
    check(manifest, out)
    assert counts_read(manifest)["two"] > FILES / 2
    assert any("were read from two: one failed: " in note for note in manifest.meta["notes"])


def test_a_store_that_does_not_answer_is_not_used(mirrors: Mirrors, tmp_path: Path) -> None:
    swathe.stores.add("dead", f"http://127.0.0.1:{free_port()}")
    names = ["dead", "two"]
    manifest = swathe.cut_many(table(), tmp_path / "out", stores=names, progress=False)
    assert Counter(manifest["status"]) == {"ok": FILES}
    assert manifest.meta["stores"] == {"dead": 0, "two": FILES}
    assert counts_read(manifest) == {"two": FILES}
    [note] = [note for note in manifest.meta["notes"] if note.startswith("store dead was not used")]
    assert "127.0.0.1" in note or "dead:" in note


def test_an_object_gone_from_one_store_is_read_from_the_other(
    mirrors: Mirrors, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def remove() -> None:
        for number in range(50, FILES):
            (mirrors.folders[0] / f"{number}.fits").unlink()

    watch = when_read(mirrors.one, 2, remove)
    manifest = swathe.cut_many(table(), out, stores=["one", "two"], progress=False)
    watch.join()
    check(manifest, out)
    assert not set(range(54, FILES)).intersection(
        row for row, source in enumerate(manifest["source"]) if str(source).startswith("one:")
    )


def test_an_interrupt_leaves_what_was_read_from_both(
    mirrors: Mirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(cut_run, "REPORT_S", 0.02)
    watch = when_read(mirrors.one, 6, lambda: mirrors.one.set(shared_bytes_per_s=RATE // 30))

    def interrupt(progress: Any) -> None:
        if progress.done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swathe.cut_many(table(), out, stores=["one", "two"], progress=interrupt)
    watch.join()
    manifest: Any = read_manifest(out / "manifest.ecsv")
    statuses = Counter[str](manifest["status"])
    assert statuses["ok"] >= 10 and statuses["ok"] + statuses["error"] == FILES
    done = manifest[manifest["status"] == "ok"]
    assert counts_read(done)["two"] > counts_read(done)["one"]
