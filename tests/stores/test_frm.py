"""Staging by prepare of XRootD, with a real cluster and its File Residency Manager."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from swathe.core.errors import StagingError
from swathe.stores.staging.xrootd_prepare import XrootdPrepare
from tests.support.frm_tape import FrmCluster, frm_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[FrmCluster]:
    with frm_cluster() as running:
        yield running


@pytest.fixture
def stager(cluster: FrmCluster) -> XrootdPrepare:
    return XrootdPrepare(cluster.url)


def put_on_tape(cluster: FrmCluster, *names: str) -> None:
    """Put objects on tape; each name is used once, since the servers remember."""
    for name in names:
        (cluster.folder / "tape/data" / name).write_bytes(b"0123456789")


def wait_for(stager: XrootdPrepare, token: str, names: list[str], state: str) -> str | None:
    """Poll until all objects have a state; the reason of the last."""
    until = time.monotonic() + 60
    while True:
        states = stager.poll(token, names)
        if {each.state for each in states.values()} == {state}:
            return states[names[-1]].reason
        assert time.monotonic() < until, states
        time.sleep(0.2)


def test_a_whole_cycle(stager: XrootdPrepare, cluster: FrmCluster) -> None:
    put_on_tape(cluster, "a", "b")
    places = stager.locate(["a", "b", "none"])
    localities = {path: place.locality for path, place in places.items()}
    assert localities == {"a": "nearline", "b": "nearline", "none": "lost"}
    assert places["a"].bytes == 10
    token = stager.stage(["a", "b"], 3600)
    # Nobody copies yet: the queue outlives that.
    assert {each.state for each in stager.poll(token, ["a", "b"]).values()} == {"queued"}
    with cluster.transfers():
        wait_for(stager, token, ["a", "b"], "disk")
    assert (cluster.folder / "disk/data/b").read_bytes() == b"0123456789"
    stager.release(token, ["a", "b"])
    cluster.purge()
    assert {place.locality for place in stager.locate(["a", "b"]).values()} == {"nearline"}


def test_a_copy_that_fails_is_told(stager: XrootdPrepare, cluster: FrmCluster) -> None:
    put_on_tape(cluster, "c")
    (cluster.folder / "broken").touch()
    with cluster.transfers():
        token = stager.stage(["c"], 3600)
        reason = wait_for(stager, token, ["c"], "failed")
    assert reason is not None and "/data/c.fail" in reason
    (cluster.folder / "broken").unlink()


def test_nothing_is_evicted_by_request(stager: XrootdPrepare) -> None:
    with pytest.raises(StagingError, match="a plug-in for prepare that evicts, found none"):
        stager.evict(["a"])


def test_a_data_server_alone_would_do_nothing(cluster: FrmCluster) -> None:
    with pytest.raises(StagingError, match="found a data server with neither"):
        XrootdPrepare(cluster.data_url).stage(["a"], 3600)


def test_a_data_server_that_is_down_is_an_error(cluster: FrmCluster) -> None:
    put_on_tape(cluster, "d")
    cluster.stop_data_server()
    with pytest.raises(StagingError, match="expected an answer within 1 s, found none"):
        XrootdPrepare(cluster.url, timeout_s=1).locate(["d"])
