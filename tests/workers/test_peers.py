"""Workers that give each other what they hold: never anything but what the store has."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from swathe.workers.dask.tls import certificate_folder, read_address
from tests.support.caching_pools import (
    IMAGES,
    SIDE,
    SIZE,
    Rig,
    at_work,
    notes,
    peer_bytes,
    pool_of,
    rig_of,
)
from tests.support.pools import command, members, ready


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Images on a server."""
    yield from rig_of(tmp_path, monkeypatch)


def test_ten_rounds_read_the_store_once(rig: Rig) -> None:
    for number in range(3):
        rig.worker(f"w{number}")
    with at_work(rig, 3) as work:
        for _ in range(10):
            assert notes(rig.do(work)) == []
        told = pool_of(work).status()
    asked = rig.moved()
    assert SIZE <= asked <= 1.1 * SIZE
    assert told.moved.batches == 10 * IMAGES
    assert SIZE <= told.moved.store_bytes <= 1.1 * SIZE
    assert told.moved.near >= 0.9 * 9 * IMAGES
    held = {each.object for each in told.held}
    assert held == {f"web:{number}.fits" for number in range(IMAGES)}
    assert all(0.9 * 2 * SIDE**2 < each.bytes < 2.2 * SIDE**2 for each in told.held)


def test_a_worker_that_comes_later_asks_the_others(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.moved()
        rig.worker("w1")
        members(pool_of(work), ready(2))
        rig.do(work, 3)
        assert peer_bytes(work) > 0
        assert {each.worker for each in pool_of(work).status().held} == {"w0", "w1"}
        assert rig.moved() < 0.05 * SIZE


def damage(cache: Path) -> None:
    for path in cache.rglob("*"):
        if path.is_file() and path.name != "usage":
            content = bytearray(path.read_bytes())
            content[-100] ^= 1
            path.write_bytes(content)


def test_a_peer_with_damaged_blocks(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        damage(rig.cache("w0"))
        rig.worker("w1")
        members(pool_of(work), ready(2))
        done = rig.do(work, 3)
    assert any("sent blocks that are wrong" in note for note in notes(done))


def test_a_peer_that_is_killed(rig: Rig) -> None:
    first = rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.worker("w1")
        members(pool_of(work), ready(2))
        for number, each in enumerate(given := [*rig.batches(), *rig.batches()]):
            if number == 2:
                first.kill()
            work.give(number, each)
        done = [work.next()[1] for _ in given]
        assert all(each.complete for each in done)
        assert {row.status for each in done for row in each.rows} == {"ok"}
        rig.do(work)


def test_objects_that_change_are_never_mixed(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.put(2)
        # What is there is trusted for a minute, unless nobody knows which version it was.
        shutil.rmtree(rig.folder / "index")
        rig.worker("w1")
        rig.worker("w2")
        members(pool_of(work), ready(3))
        rig.moved()
        old = peer_bytes(work)
        rig.do(work)
        assert rig.moved() >= SIZE
        for sums in rig.sums.values():
            del sums[0]
        rig.do(work, 3)
        assert peer_bytes(work) >= old


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_full_disk_of_a_worker(rig: Rig) -> None:
    small = rig.folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("cannot mount here")
    try:
        rig.worker("w0")
        with at_work(rig, 1) as work:
            rig.do(work)
            rig.worker("w1", small / "cache")
            members(pool_of(work), ready(2))
            rig.do(work, 3)
    finally:
        rig.stack.close()
        subprocess.run(["umount", small], check=True)


def test_strangers_get_nothing(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        [worker] = pool_of(work)._crew.workers.values()
        assert worker.peer is not None
        url, token = worker.peer
        assert urlsplit(url).hostname == "127.0.0.1"
        asked = f"{url}/blocks/{'0' * 32}"
        good = {"Authorization": f"Bearer {token}"}
        with pytest.raises(httpx.TransportError):  # a token, and no certificate
            httpx.get(asked, headers=good, verify=False)
        own = certificate_folder(read_address(rig.scheduler.address), None)
        assert own is not None
        context = ssl.create_default_context(cafile=str(own / "ca.pem"))
        context.check_hostname = False
        context.load_cert_chain(own / "worker.pem", own / "worker.key")
        with httpx.Client(verify=context) as client:
            for sent in ({}, {"Authorization": f"Bearer {token[:-1]}x"}, {"Authorization": token}):
                assert client.get(asked, headers=sent).status_code == 401
            found = client.get(asked, headers=good)
        assert (found.status_code, found.content) == (200, b"\0\0\0\0")
        assert token not in str(pool_of(work).status())


def test_with_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = tmp_path / "certificates"
    made = subprocess.run(command("init", certificates), capture_output=True, timeout=120)
    assert made.returncode == 0
    for rig in rig_of(tmp_path, monkeypatch, ("--certificates", certificates)):
        rig.worker("w0")
        with at_work(rig, 1, certificates=certificates) as work:
            rig.do(work)
            rig.moved()
            [worker] = pool_of(work)._crew.workers.values()
            assert worker.peer is not None
            url, token = worker.peer
            assert url.startswith("https://")
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{url}/blocks/{'0' * 32}", headers={"Authorization": f"Bearer {token}"},
                          verify=False)  # fmt: skip
            rig.worker("w1")
            members(pool_of(work), ready(2))
            rig.do(work, 3)
            assert peer_bytes(work) > 0
            assert rig.moved() < 0.05 * SIZE
