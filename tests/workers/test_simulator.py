"""Simulated pools: what must come out by arithmetic, and by the rules of placement and growth."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe._swathe import SimulatedCache
from swathe.catalog import Catalog, this_host
from swathe.core.errors import OutputExistsError, SettingsError, TargetsError
from swathe.core.toml_settings import read_toml
from swathe.costs.cost_model import Costs
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.simulate.network import TIERS, SimulatedStore
from swathe.workers.simulate.result import SimulationResult
from swathe.workers.simulate.simulator import SimulatedPool, Simulation, StuckError
from swathe.workers.simulate.workload import (
    BLOCK,
    Crops,
    ListedWorkload,
    SimulatedBatch,
    Workload,
    read_workload,
)

MB = 1_000_000
FAR = SimulatedStore(0.05, 10 * MB, 100 * MB)
POOL = SimulatedPool(1, dispatch_s=0.0)


def listed(
    objects: int, size: int = 5 * MB, compute_s: float = 0.5, times: int = 1
) -> ListedWorkload:
    return ListedWorkload(
        [SimulatedBatch(f"o{n % objects}", 1, size, 1, compute_s) for n in range(objects * times)]
    )


def run(
    workload: Workload,
    pool: SimulatedPool = POOL,
    store: SimulatedStore = FAR,
    clients: int = 0,
    rounds: int = 1,
    seed: int = 1,
) -> SimulationResult:
    return Simulation(pool, store, workload, clients, rounds, seed).run()


def test_one_worker_takes_the_sum_of_all_it_does() -> None:
    found = run(listed(10), rounds=2)
    # The first time, for the header too.
    fetching = 10 * (2 * 0.05 + 5 * MB / FAR.stream_bytes_per_s)
    assert found.elapsed_s == pytest.approx(fetching + 20 * 0.5)
    assert found.fetching_s == pytest.approx(fetching)
    assert found.computing_s == pytest.approx(20 * 0.5)
    assert found.wasted_s == pytest.approx(0.0, abs=1e-6)
    assert (found.store_bytes, found.cache_bytes, found.peer_bytes) == (50 * MB, 50 * MB, 0)
    assert found.hit_rate == 0.5
    assert [each.store_bytes for each in found.rounds] == [50 * MB, 0]


def test_all_workers_share_the_line_of_the_store() -> None:
    found = run(listed(1000, compute_s=0.0), replace(POOL, workers=100))
    assert found.elapsed_s == pytest.approx(5000 * MB / FAR.total_bytes_per_s, rel=0.02)


def test_workers_on_links_of_their_own_scale() -> None:
    wide = replace(FAR, total_bytes_per_s=math.inf)
    times = [
        run(listed(800), replace(POOL, workers=count, cache_bytes=0), wide).elapsed_s
        for count in (2, 4, 8)
    ]
    assert times[0] / times[1] == pytest.approx(2, rel=0.05)
    assert times[0] / times[2] == pytest.approx(4, rel=0.05)


def test_link_of_a_worker_bounds_what_its_threads_fetch() -> None:
    pool = replace(POOL, threads=8, link_bytes_per_s=20 * MB)
    assert run(listed(100, compute_s=0.0), pool).elapsed_s == pytest.approx(500 / 20, rel=0.05)
    near = replace(FAR, remote=False)
    assert run(listed(100, compute_s=0.0), pool, near).elapsed_s < 10


def test_workers_on_one_machine_share_its_cores() -> None:
    pool = replace(POOL, workers=8, cores=2)
    busy = run(listed(80, size=1, compute_s=0.5), pool)
    assert busy.elapsed_s == pytest.approx(80 * 0.5 / 2, rel=0.02)
    less = run(listed(80, size=1, compute_s=0.5), replace(pool, core_s=0.5))
    assert less.elapsed_s == pytest.approx(80 * 0.5 / 4, rel=0.05)
    # Who only waits for the store leaves them to others.
    far = run(listed(80, compute_s=0.01), pool, replace(FAR, total_bytes_per_s=math.inf))
    assert far.elapsed_s == pytest.approx(80 * (2 * 0.05 + 0.5 + 0.01) / 8, rel=0.02)


def test_scheduler_bounds_how_many_batches_are_given_out() -> None:
    found = run(listed(1000, size=1, compute_s=0.0), replace(POOL, workers=50, dispatch_s=0.01))
    assert found.elapsed_s == pytest.approx(10, rel=0.02)


def test_requests_are_bounded() -> None:
    slow = replace(FAR, requests_per_s=10.0)
    assert run(listed(100, size=1, compute_s=0), replace(POOL, workers=50), slow).elapsed_s > 9.9


@pytest.mark.parametrize("kind", ["job", "random", "hot"])
def test_data_that_fit_the_caches_move_from_the_store_once(kind: str) -> None:
    whole = Crops(kind, 200, 200 if kind == "job" else 400, 300, 0.2, 1)
    pool = replace(POOL, workers=8, cache_bytes=400 * MB)
    found = run(whole, pool, rounds=10)
    blocks: dict[str, int] = {}
    for turn in range(10):
        for batch in whole.batches(turn):
            blocks[batch.source] = blocks.get(batch.source, 0) | batch.blocks
    moved = sum(each.bit_count() for each in blocks.values()) * BLOCK
    assert moved <= found.store_bytes <= 1.1 * moved
    assert found.hit_rate > 0.85


def test_later_rounds_over_a_far_line_are_faster() -> None:
    found = run(listed(400, compute_s=0.01), replace(POOL, workers=20), rounds=10)
    first, *later = found.rounds
    assert sum(each.cuts_per_s for each in later) / 9 >= 10 * first.cuts_per_s


def test_batches_run_on_holders() -> None:
    found = run(listed(400, compute_s=0.05), replace(POOL, workers=20), clients=8, rounds=10)
    assert found.on_holder >= 0.95


@dataclass(frozen=True)
class Shuffled:
    """A batch for each object, each round in another order, as long as drawn from a seed."""

    objects: int
    mean_s: float

    @property
    def count(self) -> int:
        return self.objects

    def batches(self, turn: int) -> Iterator[SimulatedBatch]:
        rng = random.Random(turn)
        for n in rng.sample(range(self.objects), self.objects):
            yield SimulatedBatch(f"o{n}", 1, 5 * MB, 1, self.mean_s * rng.uniform(0.3, 1.7))


@pytest.mark.parametrize("predicted", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("workers", "seconds"), [(4, 0.01), (4, 0.05), (16, 0.02)])
def test_batches_run_on_holders_that_have_room_whatever_was_predicted(
    workers: int, seconds: float, predicted: float
) -> None:
    """Of each round less than a second's work is for a holder: it has room for all of it."""
    work = Shuffled(12 * workers, seconds)
    found = run(work, replace(POOL, workers=workers, prediction_ratio=predicted), rounds=6)
    assert found.on_holder >= 0.95
    assert found.store_bytes == work.count * 5 * MB


def test_many_quick_batches_wait_for_their_holders() -> None:
    """Many more than a holder may be sent, but of half a second each round."""
    found = run(Shuffled(200, 0.01), replace(POOL, workers=4), rounds=6)
    assert found.on_holder >= 0.99
    assert sum(each.elapsed_s for each in found.rounds[1:]) <= 1.3 * 5 * 200 * 0.01 / 4


def test_what_batches_take_is_learnt_from_those_that_came_first() -> None:
    pool = replace(POOL, workers=4)
    right = run(listed(40, compute_s=0.05), pool, rounds=3)
    wrong = run(listed(40, compute_s=0.05), replace(pool, prediction_ratio=20.0), rounds=3)
    assert wrong.rounds[1].elapsed_s <= 1.25 * right.rounds[1].elapsed_s
    assert wrong.rounds[2].elapsed_s <= 1.05 * right.rounds[2].elapsed_s


def test_hot_object_is_copied_from_peers_not_from_the_store() -> None:
    slow = replace(FAR, stream_bytes_per_s=MB, total_bytes_per_s=2 * MB)
    found = run(listed(1, compute_s=1.0, times=200), replace(POOL, workers=20), slow)
    assert found.store_bytes <= 2 * 5 * MB
    assert found.peer_bytes >= 15 * 5 * MB
    assert found.elapsed_s < 5 + 200 / 20 * 1.5


def test_no_more_is_asked_of_peers_than_stays_until_it_is_read() -> None:
    """An eighth of the cache, as by the engine; the rest comes from the store."""
    slow = replace(FAR, stream_bytes_per_s=MB, total_bytes_per_s=math.inf)
    large = SimulatedBatch("o", (1 << 20) - 1, MB, 1, 20.0)
    work = ListedWorkload([large, SimulatedBatch("other", 1, MB, 1, 25.0), large])
    wide = run(work, replace(POOL, workers=2), slow, clients=2)
    assert (wide.store_bytes, wide.peer_bytes) == (21 * MB, 20 * MB)
    narrow = run(work, replace(POOL, workers=2, cache_bytes=40 * MB), slow, clients=2)
    assert (narrow.store_bytes, narrow.peer_bytes) == (36 * MB, 5 * MB)


def test_store_is_asked_again_about_what_came_long_ago() -> None:
    found = run(listed(2, compute_s=25.0), rounds=4)
    first, *later = (each.elapsed_s for each in found.rounds)
    assert first == pytest.approx(2 * (25.0 + 2 * 0.05 + 0.5))
    # Each object is 51 s old in the second round.
    assert later == pytest.approx([50.0, 50.1, 50.1])


def test_more_than_fits_is_fetched_again_and_some_of_it_stays() -> None:
    pool = replace(POOL, workers=4, cache_bytes=100 * MB)
    found = run(listed(160, compute_s=0.1), pool, rounds=5)
    # Half of it fits, and nothing is known in the first round.
    assert 0.3 < found.hit_rate < 0.4


def test_no_cache_means_no_hits() -> None:
    found = run(listed(20), replace(POOL, workers=4, cache_bytes=0), rounds=3)
    assert (found.hit_rate, found.cache_bytes) == (0.0, 0)
    assert found.store_bytes == 3 * 20 * 5 * MB


def test_responses_are_those_of_the_clients() -> None:
    one = run(listed(50, compute_s=1.0), clients=1)
    assert one.p50_s == pytest.approx(1.6)
    many = run(listed(50, compute_s=1.0), clients=10)
    assert many.p50_s == pytest.approx(10 * 1.6, rel=0.05)
    assert many.elapsed_s == pytest.approx(one.elapsed_s)


def test_throughput_sums_up_to_what_was_done() -> None:
    found = run(listed(100), replace(POOL, workers=3))
    width = found.throughput[1][0] - found.throughput[0][0]
    assert sum(rate * width for _, rate in found.throughput) == pytest.approx(100)
    assert found.cuts_per_s == pytest.approx(100 / found.elapsed_s)


def test_workers_that_are_lost_lose_no_batch() -> None:
    pool = replace(POOL, workers=10, threads=2, fails_s=20.0, start_s=2.0)
    found = run(listed(500), pool, rounds=3)
    assert (found.batches, found.cuts) == (1500, 1500)
    assert found.lost > 10
    assert found.lost_s > 0
    assert found.elapsed_s > run(listed(500), replace(pool, fails_s=math.inf), rounds=3).elapsed_s


def test_time_of_workers_adds_up() -> None:
    pool = replace(POOL, workers=10, threads=2, fails_s=20.0, start_s=2.0)
    found = run(listed(500), pool)
    used = found.computing_s + found.fetching_s + found.lost_s + found.wasted_s
    assert used == pytest.approx(found.worker_s)
    assert found.worker_s <= 10 * found.elapsed_s


def test_pool_grows_with_the_queue_and_never_beyond_its_maximum() -> None:
    limits = GrowthLimits(maximum=30, idle_s=20.0, soon_s=10.0)
    found = run(listed(600, compute_s=1.0), replace(POOL, workers=30, start_s=5.0, grow=limits))
    assert found.most_workers == 30
    small = run(listed(20, compute_s=1.0), replace(POOL, workers=30, start_s=5.0, grow=limits))
    assert small.most_workers < 8


def test_pool_shrinks_and_hands_over_what_is_worth_it() -> None:
    """A burst, and then one client: its workers must not fetch again from a store that is slow."""
    slow = replace(FAR, stream_bytes_per_s=MB, total_bytes_per_s=50 * MB)
    burst = listed(100, compute_s=0.5)
    tail = ListedWorkload([SimulatedBatch(f"o{n % 100}", 1, 5 * MB, 1, 2.0) for n in range(300)])

    class Both:
        count, mean_s = 400, 1.6

        def batches(self, turn: int) -> Any:
            return iter([*burst.rows, *tail.rows])

    limits = GrowthLimits(maximum=20, idle_s=30.0, soon_s=10.0, hand_over_s=60.0)
    pool = replace(POOL, workers=20, start_s=1.0, grow=limits)
    with_heirs = run(Both(), pool, slow, clients=2)
    without = run(Both(), replace(pool, grow=replace(limits, hand_over_s=0.0)), slow, clients=2)
    assert with_heirs.worker_s < 20 * with_heirs.elapsed_s
    assert with_heirs.store_bytes <= without.store_bytes


def test_walltime_loses_no_work_where_batches_are_short() -> None:
    pool = replace(POOL, workers=10, walltime_s=30.0, start_s=5.0)
    found = run(listed(300), pool, rounds=3)
    assert found.lost >= 10
    assert found.batches == 900
    assert found.lost_s < 0.05 * found.computing_s


def test_workers_that_end_before_a_batch_does_are_told() -> None:
    with pytest.raises(StuckError, match="none of 10 remaining batches has finished"):
        run(listed(10, compute_s=60.0), replace(POOL, walltime_s=30.0))
    with pytest.raises(StuckError, match="workers end before a batch does"):
        run(listed(10, compute_s=1e5), replace(POOL, fails_s=1.0))


def test_same_seed_gives_the_same() -> None:
    pool = replace(POOL, workers=10, fails_s=30.0, start_s=3.0)
    work = Crops("hot", 100, 300, 10, 0.2, 5)
    assert run(work, pool) == run(work, pool)
    assert run(work, pool) != run(work, pool, seed=2)


def test_crops_are_blocks_of_frames() -> None:
    (first, *rest) = Crops("job", 3, 6, 1, 0.5, 1).batches(0)
    assert [first.source, *(each.source for each in rest)] == [
        f"frame-{n}" for n in (0, 0, 1, 1, 2, 2)
    ]
    assert 7 <= first.blocks.bit_count() <= 8
    assert bin(first.blocks)[2:].rstrip("0").count("0") == 0
    assert first.blocks.bit_length() <= 94


BLOCK_ON_DISK = BLOCK + 1024
"""With what it shares of the head of a file, and of what is lost at its end."""


def kept(room: int, uses: Sequence[tuple[str, int, float]]) -> dict[str, int]:
    """Blocks that are left, in a cache with room for so many, of objects of so many blocks each."""
    shelf = SimulatedCache(room * BLOCK_ON_DISK)
    left: dict[str, int] = {}
    for at, (name, blocks, seconds) in enumerate(uses):
        left[name] = blocks
        for least, gone in shelf.note(name, blocks, BLOCK, seconds, 100.0 * at):
            left[least] -= gone
        assert shelf.bytes == sum(left.values()) * BLOCK_ON_DISK <= room * BLOCK_ON_DISK
    return {name: blocks for name, blocks in left.items() if blocks}


def test_what_is_cheap_to_fetch_again_goes_first() -> None:
    uses = [("far", 10, 5.0), ("near", 10, 0.1), ("far too", 10, 5.0)]
    assert kept(20, uses) == {"far": 10, "far too": 10}


def test_no_more_goes_than_must() -> None:
    assert kept(100, [("a", 60, 1.0), ("b", 60, 1.0)]) == {"a": 40, "b": 60}


def test_what_is_used_often_stays() -> None:
    uses = [*[("often", 10, 1.0)] * 3, *((f"o{number}", 10, 1.0) for number in range(8))]
    assert kept(40, uses)["often"] == 10


def test_what_was_dear_long_ago_goes_in_the_end() -> None:
    uses = [("dear", 10, 20.0), *((f"o{number}", 10, 1.0) for number in range(400))]
    assert kept(50, uses[:40])["dear"] == 10
    assert "dear" not in kept(50, uses)


def test_who_goes_round_through_more_than_fits_finds_a_part() -> None:
    found = run(listed(24, compute_s=0.1), replace(POOL, cache_bytes=60 * MB), rounds=6)
    shares = [1 - each.store_bytes / (24 * 5 * MB) for each in found.rounds[1:]]
    assert min(shares) >= 0.25


def test_what_is_larger_than_all_room_takes_no_more() -> None:
    assert kept(100, [("a", 50, 0.1), ("huge", 101, 0.1)]) == {"huge": 100}
    assert kept(0, [("a", 1, 1.0)]) == {}


def test_what_is_dropped_takes_no_room() -> None:
    shelf = SimulatedCache(1000 * BLOCK)
    for number in range(5000):
        shelf.note(f"o{number * number % 97}", number * 37 % 300, BLOCK, number % 7 / 10, number)
        assert shelf.bytes <= 1000 * BLOCK
        if number % 11 == 0:
            shelf.drop(f"o{number % 97}")
    for number in range(97):
        shelf.drop(f"o{number}")
    assert shelf.bytes == 0


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    path.write_text("compute_s,object,bytes\n0.5,survey:a.fits,6000000\n1,b,1\n")
    found = read_workload(path)
    assert (found.count, found.mean_s) == (2, 0.75)
    assert found.rows[0] == SimulatedBatch("survey:a.fits", 1, 6 * MB, 1, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the columns object, bytes, compute_s, found none"),
        ("object,size\na,1\n", "found object, size"),
        ("object,bytes,compute_s\n", "expected at least one row, found none"),
        ("object,bytes,compute_s\na,1,1\na,x,1\n", "line 3: expected .* found 'a', 'x' and '1'"),
        ("object,bytes,compute_s\na,1,nan\n", "line 2"),
        ("object,bytes,compute_s\na,0,1\n", "line 2"),
        ("object,bytes,compute_s\n,1,1\n", "line 2"),
        (
            "object,bytes,compute_s\na,1,1\na,2,1\n",
            "line 3: a: expected 1 bytes as before, found 2",
        ),
        ("object,bytes,compute_s\na,1\n", "line 2"),
        ("object,bytes,compute_s\na,1,-1\n", "line 2"),
        ("\0", "columns|NUL"),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "work.csv"
    path.write_text(text)
    with pytest.raises(TargetsError, match=message):
        read_workload(path)


def cli(*arguments: str, code: int = 0, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "swathe.cli", "simulate", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_command_prints_a_table_and_draws(tmp_path: Path) -> None:
    plot = tmp_path / "out.png"
    told = cli("--workers", "1..30", "--frames", "50", "--rounds", "2", "--plot", str(plot))
    assert [line.split()[0] for line in told.splitlines()[2:5]] == ["1", "10", "30"]
    assert "30 workers, by round" in told
    assert plot.read_bytes()[1:4] == b"PNG"


def test_command_is_the_same_whatever_the_hash_seed() -> None:
    asked = "--workers 7 --frames 40 --workload hot --rounds 3 --json --cut-ms 50 --threads 2"
    asked += " --fails-h 0.001 --start-s 1"
    first, second = (cli(*asked.split(), PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert json.loads(first)["results"][0]["lost"] > 0


def test_a_file_holds_the_options_and_options_override_it(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(
        '[simulate]\nworkers = "7"\nframes = 40\nworkload = "hot"\ncut_ms = 50\ngrow = true\n'
    )
    flags = "--workers 7 --frames 40 --workload hot --cut-ms 50 --grow --json"
    assert cli(str(file), "--json") == cli(*flags.split())
    overridden = json.loads(cli(str(file), "--json", "--workers", "2,3"))
    assert [each["workers"] for each in overridden["results"]] == [2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[simulate]\nworker = 1\n", "unknown key in [simulate]: 'worker'; known are workers, "),
        ("[simulate]\nplot = 'a.png'\n", "unknown key in [simulate]: 'plot'"),
        ("[simulate]\nframes = 10.5\n", "simulate.frames: expected a whole number, found 10.5"),
        ("[simulate]\nframes = '9'\n", "simulate.frames: expected a whole number, found '9'"),
        ("[simulate]\ntier = 'tape'\n", "simulate.tier: expected 'local', 'lan' or 'wan', found"),
        ("[single]\n", "unknown section: 'single'"),
        ("simulate = 1\n", "simulate: expected a section [simulate], found 1"),
        ("[simulate\n", "is not valid TOML"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(text)
    told = cli(str(file), code=2)
    assert told.startswith(f"swathe: {file}: {message}")
    assert told.count(str(file)) == 1


def test_a_file_has_bounds_too(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text("[simulate]\nframes = 0\n")
    assert "'--frames': expected at least 1, found 0" in cli(str(file), code=2, COLUMNS="500")


def test_command_has_workers_share_cores() -> None:
    asked = "--workers 8 --frames 40 --tier local --cut-ms 50 --json"
    own, shared = (
        json.loads(cli(*asked.split(), *more))["results"][0]["elapsed_s"]
        for more in ((), ("--cores", "2"))
    )
    assert shared == pytest.approx(40 * 10 * 0.05 / 2, rel=0.05)
    assert own == pytest.approx(shared / 4, rel=0.1)


def test_command_takes_a_measured_store() -> None:
    with Catalog.open() as catalog:
        catalog.add_store("measured", "https://example.org/survey")
        costs = Costs(0.1, 0.1, ((0, 0.07), (1_000_000, 0.57)), 5e6, 300.0, 4)
        root, now = "https://example.org/survey", datetime.now(UTC)
        catalog.put_profile(root, this_host(), costs.as_dict(), {}, now)
        catalog.add_store("unmeasured", "https://example.org/other")
    found = json.loads(cli("--store", "measured", "--workers", "2", "--frames", "9", "--json"))
    assert found["store"] == {
        "latency_s": 0.07,
        "stream_bytes_per_s": 5e6,
        "total_bytes_per_s": 5e6,
        "requests_per_s": 300.0,
        "remote": True,
        "served_bytes_per_s": None,
    }
    assert "unmeasured: not probed from this host" in cli("--store", "unmeasured", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "0"), "expected 1 to 100000, found 0"),
        (("--workers", "9..3"), "expected an ascending range from 1"),
        (("--workers", "0..9"), "expected an ascending range from 1"),
        (("--cores", "0"), "--cores"),
        (("--latency-ms", "nan"), "--latency-ms"),
        (("--total-mb-s", "inf"), "expected a finite number, found inf"),
        (("--workers", "1,x"), "expected N, N,M or N..M"),
        (("--tier", "tape"), "'tape' is not one of 'local', 'lan', 'wan'"),
        (("--store", "nowhere"), "nowhere: no such store"),
        (("--store", "a", "--tier", "lan"), "store: expected a store or a tier, found both"),
        (("--workload", "dance"), "expected job, random, hot or a file"),
        (("--workload", "none.csv"), "none.csv: "),
        (("--batches", "9000000", "--rounds", "2"), "expected at most 10,000,000"),
        (("--walltime-h", "0.001", "--cut-ms", "1000", "--workers", "3"), "3 workers: after"),
    ],
)
def test_command_refuses_what_makes_no_sense(arguments: tuple[str, ...], message: str) -> None:
    told = cli(*arguments, code=2, COLUMNS="500")
    assert message in " ".join(told.split())


def test_python_simulates_as_the_command_does(tmp_path: Path) -> None:
    plot = tmp_path / "out.svg"
    study = swathe.simulate_pool(
        [2, 3], workload="hot", frames=40, cut_s=0.05, latency_s=0.01, grow=True, plot=plot
    )
    flags = "--workers 2,3 --workload hot --frames 40 --cut-ms 50 --latency-ms 10 --grow --json"
    told = json.loads(cli(*flags.split()))
    assert [result.elapsed_s for result in study.results] == [
        each["elapsed_s"] for each in told["results"]
    ]
    assert study.store == replace(TIERS["lan"], latency_s=0.01)
    assert "<svg" in plot.read_text()
    with pytest.raises(OutputExistsError, match="overwrite"):
        swathe.simulate_pool(2, frames=40, plot=plot)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers: expected 1 to 100000, found 0"),
        ({"threads": 0}, "threads: expected at least 1, found 0"),
        ({"cut_s": -1.0}, "cut_s: expected at least 0, found -1.0"),
        ({"fails_s": math.nan}, "fails_s: expected a finite number, found nan"),
        ({"total_bytes_per_s": 1}, "total_bytes_per_s: expected at least 1000, found 1"),
        ({"tier": "tape"}, "tier: expected one of local, lan, wan, found 'tape'"),
        ({"workload": Path("dance")}, "workload: expected job, random, hot or a file"),
    ],
)
def test_python_refuses_what_makes_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        swathe.simulate_pool(**arguments)
    assert str(raised.value).startswith(message)


def test_pipes_are_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(TargetsError, match="expected a regular file, found another"):
        read_workload(pipe)
    with pytest.raises(SettingsError, match="expected a regular file, found another"):
        read_toml(pipe)
