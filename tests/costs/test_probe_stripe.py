"""`swathe probe` of a striped store: what its servers give, and what bounds their sum."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.costs.probing.probe_result import ServerRate
from swathe.costs.probing.probe_stripe import bound_of, name_bound
from swathe.stores.block_server import BlockServerMetrics, read_metrics
from swathe.stores.registry import known_stores
from tests.support import servers
from tests.support.block_servers import BlockServer, block_server
from tests.support.fits_frames import Runner
from tests.support.stripes import add_stripe

MB = 1_000_000
IDLE = BlockServerMetrics(100.0, 5.0, 2.0, 1.0, 0.5, {"/data1": 1.0, "/data2": 7.0})


def after(seconds: float, *times: float, **disks: float) -> BlockServerMetrics:
    """Return metrics some time after IDLE; times are request, disk wait, send wait, late."""
    names = ("request_s", "disk_wait_s", "send_wait_s", "late_s")
    own = {name: getattr(IDLE, name) + each for name, each in zip(names, times, strict=True)}
    work = {f"/{disk}": IDLE.disk_work_s[f"/{disk}"] + each for disk, each in disks.items()}
    return replace(IDLE, elapsed_s=IDLE.elapsed_s + seconds, **own, disk_work_s=work)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (after(2, 7, 6, 0.5, 0, data1=5.9, data2=0.1), ("disk", "/data1")),
        (after(2, 1, 0.2, 0.5, 0, data1=0.1, data2=0.1), ("link", "")),
        # A client that takes no more is behind the link, too.
        (after(2, 8, 0.2, 7.5, 0, data1=0.1, data2=0.1), ("link", "")),
        (after(2, 7.5, 0.2, 0.5, 0, data1=0.1, data2=0.1), ("server", "")),
        (after(2, 1, 0.2, 0.5, 1.8, data1=0.1, data2=0.1), ("server", "")),
    ],
)
def test_most_of_the_time_is_the_bound(
    metrics: BlockServerMetrics, expected: tuple[str, str]
) -> None:
    assert bound_of(8.0, IDLE, metrics) == expected


def test_without_metrics_it_is_the_server() -> None:
    assert bound_of(8.0, None, None) == ("server", "")


def rates(*mb_s: tuple[float, float]) -> list[ServerRate]:
    """Return servers with these rates alone and together."""
    return [
        ServerRate(f"host{number}:", 4, alone * MB, together * MB, "link")
        for number, (alone, together) in enumerate(mb_s)
    ]


def test_what_bounds_the_sum() -> None:
    alike = rates((14, 14), (14, 13.8), (14.2, 14))
    assert name_bound(alike, 0.2)[:2] == ("link", "")
    assert name_bound(alike, 0.9)[0] == "cpu"
    bound, server, text = name_bound(rates((14, 14), (14, 14), (5, 5)), 0.2)
    assert (bound, server) == ("link", "host2:") and "5 MB/s" in text
    disk = [*alike, ServerRate("host3:", 4, 3 * MB, 3 * MB, "disk", "/data2")]
    assert name_bound(disk, 0.2) == (
        "disk",
        "host3:",
        "disk /data2 of host3: 3 MB/s, the median is 14 MB/s",
    )
    assert name_bound(rates((14, 7), (14, 7), (14, 7)), 0.2)[0] == "client_line"


def test_what_bounds_the_sum_in_words() -> None:
    alike = rates((14, 14), (14, 13.8), (14.2, 14))
    others = [replace(each, bound="server") for each in alike]
    assert name_bound(alike, 0.2)[2] == "the links of all servers"
    assert name_bound(others, 0.2)[2] == "unknown (no block servers)"
    known = [replace(each, is_block_server=True) for each in others]
    assert name_bound(known, 0.2)[2] == "the processors of all servers"
    slow = replace(others[0], server="ng0:", alone_bytes_per_s=5 * MB, together_bytes_per_s=5 * MB)
    text = "5 MB/s, the median is 14 MB/s"
    assert name_bound([slow, *others], 0.2) == ("server", "ng0:", f"server ng0: {text}")
    slow = replace(slow, server="lake:parts/", bound="link")
    assert name_bound([slow, *others], 0.2)[2] == f"link of lake:parts/: {text}"
    empty = [replace(each, alone_bytes_per_s=0, why="lists no object") for each in alike]
    text = "unknown (no server was measured)"
    assert name_bound(empty, 0.0) == ("server", "", text)
    dead = [replace(each, why="no answer", is_reachable=False) for each in alike]
    assert name_bound(dead, 0.0) == ("server", "", "no server answers")


@pytest.fixture
def wide(run: Runner, tmp_path: Path) -> list[Path]:
    """Folders of the striped store `wide`, with an object."""
    folders = add_stripe(tmp_path, servers=4)
    path = tmp_path / "object"
    path.write_bytes(np.random.default_rng(1).bytes(3 * MB))
    swathe.stores.copy_objects([str(path)], "wide:", progress=False)
    return folders


def test_all_servers_are_measured_within_the_limits(wide: list[Path]) -> None:
    plans: list[str] = []
    probe = swathe.probe("wide", quick=True, max_time_s=1.0, max_bytes=30 * MB, tell=plans.append)
    stripe = probe.stripe
    assert stripe is not None
    assert [each.server for each in stripe.servers] == [f"disk-{letter}:" for letter in "abcd"]
    for each in stripe.servers:
        assert each.why is None
        assert each.alone_bytes_per_s > 0 < each.together_bytes_per_s
    alone = [each.alone_bytes_per_s for each in stripe.servers]
    assert stripe.sum_bytes_per_s == pytest.approx(sum(alone))
    assert 0 < stripe.expected_bytes_per_s <= 1.001 * stripe.sum_bytes_per_s
    assert stripe.stripe_bytes_per_s is not None and stripe.stripe_bytes_per_s > 0
    assert probe.bytes_moved <= 30 * MB
    assert stripe.bytes_moved <= 10 * MB
    assert probe.parameters.max_bytes == 30 * MB
    assert plans[0].startswith("the servers: at most ")


def test_a_dead_server_is_named_and_the_others_are_measured(wide: list[Path], run: Runner) -> None:
    shutil.rmtree(wide[1])
    probe = swathe.probe("wide", quick=True, max_time_s=1.0, max_bytes=30 * MB)
    assert probe.stripe is not None
    servers_by_name = {each.server: each for each in probe.stripe.servers}
    assert "disk-b" in (servers_by_name["disk-b:"].why or "")
    assert not servers_by_name["disk-b:"].is_reachable
    live = [each for name, each in servers_by_name.items() if name != "disk-b:"]
    assert all(each.why is None and each.alone_bytes_per_s > 0 for each in live)
    assert probe.stripe.expected_bytes_per_s > 0
    stripe = swathe.probe("wide", quick=True, max_time_s=1.0, max_bytes=200_000).stripe
    assert stripe is not None and stripe.stripe_bytes_per_s is None
    text = run("probe", "wide", "--quick", "--max-time", "1s", "--max-bytes", "30MB")
    assert "no answer" in text and "bound: " in text


def test_a_server_without_objects_answers_but_is_not_measured(
    wide: list[Path], run: Runner
) -> None:
    for path in wide[1].iterdir():
        path.unlink()
    limits = ("--quick", "--max-time", "1s", "--max-bytes", "30MB")
    text = run("probe", "wide", *limits)
    (row,) = (each for each in text.splitlines() if each.startswith("disk-b:"))
    assert "not measured" in row and "no answer" not in text
    answer = run.json("probe", "wide", *limits)["stripe"]["servers"]
    assert all(each["is_reachable"] for each in answer)
    assert "lists no object" in answer[1]["why"]


def test_other_stores_have_no_servers(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "object").write_bytes(bytes(MB))
    probe = swathe.probe(str(folder), quick=True, max_time_s=0.3, max_bytes=10 * MB)
    assert probe.stripe is None and probe.as_dict()["stripe"] is None


def test_metrics_of_a_block_server_and_of_another(run: Runner, tmp_path: Path) -> None:
    disks = [tmp_path / "data1", tmp_path / "data2"]
    for disk in disks:
        disk.mkdir()
    with block_server(*disks) as server:
        swathe.stores.add("lab", server.url.replace("http", "dav", 1) + "/")
        store = next(each for each in swathe.stores.list() if each.name == "lab")
        stores = known_stores()
        assert stores is not None
        before = read_metrics(stores, store)
        path = tmp_path / "object"
        path.write_bytes(bytes(5 * MB))
        swathe.stores.copy_objects([str(path)], "lab:", progress=False)
        then = read_metrics(stores, store)
        assert before is not None and then is not None
        change = then - before
        assert change.request_s > 0 and set(change.disk_work_s) == set(map(str, disks))
        assert server.end() == 0
    swathe.stores.add("disk", str(tmp_path))
    store = next(each for each in swathe.stores.list() if each.name == "disk")
    assert read_metrics(stores, store) is None


# Real servers ---------------------------------------------------------------------------------


@dataclass
class Lab:
    """Four block servers behind links of 12 MB/s."""

    running: list[BlockServer] = field(default_factory=list)
    proxies: list[servers.Proxy] = field(default_factory=list)


@pytest.fixture
def lab(run: Runner, tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        there = Lab()
        for number in range(4):
            disks = [tmp_path / f"host{number}-disk{disk}" for disk in (1, 2)]
            for disk in disks:
                disk.mkdir()
            there.running.append(stack.enter_context(block_server(*disks)))
            link = stack.enter_context(servers.proxy(there.running[number].url, rtt_ms=1))
            there.proxies.append(link)
            swathe.stores.add(f"host{number}", link.url.replace("http", "dav", 1) + "/")
        names = [f"host{number}" for number in range(4)]
        swathe.stores.add("wide", "striped:", over=names, parity=1)
        path = tmp_path / "object"
        path.write_bytes(np.random.default_rng(1).bytes(30 * MB))
        swathe.stores.copy_objects([str(path)], "wide:", progress=False)
        for link in there.proxies:
            link.set(shared_bytes_per_s=12_000_000)
        yield there


@pytest.mark.more
def test_links_bound_real_servers_and_a_slow_one_is_named(lab: Lab) -> None:
    probe = swathe.probe("wide", max_time_s=20)
    assert probe.stripe is not None
    assert (probe.stripe.bound, probe.stripe.bound_server) == ("link", ""), probe.stripe
    assert probe.stripe.together_bytes_per_s > 0.8 * probe.stripe.sum_bytes_per_s
    lab.proxies[2].set(shared_bytes_per_s=4_000_000)
    lab.running[0].end(signal.SIGKILL)
    stripe = swathe.probe("wide", max_time_s=20).stripe
    assert stripe is not None
    assert (stripe.bound, stripe.bound_server) == ("link", "host2:"), stripe
    assert [each.why is None for each in stripe.servers] == [False, True, True, True]
