"""A batch goes where it ends first, by what is held, waited for and fetched."""

from __future__ import annotations

import random
from collections import Counter
from math import inf

import pytest

from swathe.workers.placement.decide import BatchWork, Placement, PlacementDecision
from swathe.workers.placement.queue import LEAST_S

MB = 1_000_000


class Prices:
    """A store and peers of these latencies and bandwidths."""

    def __init__(self, store_s: float = 1.0, peer_s: float = 0.01, rate: float = 100 * MB) -> None:
        self.latency_s, self.near_s, self.rate = store_s, peer_s, rate

    def store_s(self, source: str, size: int) -> float:
        return self.latency_s + size / self.rate

    def peer_s(self, size: int) -> float:
        return self.near_s + size / self.rate


def pool(workers: int, *, threads: int = 1, ahead: int = 2, store_s: float = 1.0) -> Placement:
    made = Placement(Prices(store_s), ahead=ahead)
    for number in range(workers):
        made.join(f"w{number}", threads, 100 * MB)
    return made


def work(*objects: str, seconds: float = 1.0, size: int = MB) -> BatchWork:
    return BatchWork(dict.fromkeys(objects, size), seconds)


def placed(found: PlacementDecision | None) -> PlacementDecision:
    assert found is not None
    return found


def test_batch_goes_to_the_holder() -> None:
    placement = pool(20)
    placement.hold("w13", "a", MB)
    found = placed(placement.place(1, work("a"), 0.0))
    assert found == PlacementDecision("w13", {}, 0.0, 0.0)


def test_batch_waits_for_the_holder_while_that_is_cheaper_than_fetching() -> None:
    placement = pool(5)
    placement.hold("w3", "a", MB)
    fetching = Prices().peer_s(MB)
    short, long = 0.5 * fetching, 2 * fetching
    assert placed(placement.place(1, work("a", seconds=short), 0.0)).worker == "w3"
    found = placed(placement.place(2, work("a", seconds=long), 0.0))
    assert found.worker == "w3"
    assert found.start_s == pytest.approx(short)


def test_batch_goes_elsewhere_when_waiting_costs_more() -> None:
    placement = pool(5)
    placement.hold("w3", "a", MB)
    assert placed(placement.place(1, work("a"), 0.0)).worker == "w3"
    found = placed(placement.place(2, work("a"), 0.0))
    assert found.worker != "w3"
    assert found.fetch == {"a": "w3"}
    assert found.start_s == found.fetch_s == pytest.approx(Prices().peer_s(MB))


def test_store_is_asked_where_peers_are_dearer() -> None:
    placement = pool(2, store_s=0.001)
    placement.hold("w0", "a", MB)
    placement.place(1, work("a"), 0.0)
    assert placed(placement.place(2, work("a"), 0.0)).fetch == {"a": None}


def test_peer_with_too_little_is_not_asked() -> None:
    placement = pool(3)
    placement.hold("w0", "a", MB // 2)
    placement.hold("w1", "a", MB)
    placement.place(1, work("b"), 0.0)
    for batch in (2, 3, 4):
        found = placed(placement.place(batch, work("a"), 0.0))
        assert found.fetch.get("a", "w1") == "w1"


def test_what_is_held_in_part_costs_the_rest() -> None:
    placement = pool(2, store_s=0.0)
    placement.hold("w1", "a", 75 * MB)
    found = placed(placement.place(1, work("a", size=100 * MB), 0.0))
    assert (found.worker, found.fetch) == ("w1", {"a": None})
    assert found.fetch_s == pytest.approx(0.25)


def test_peer_that_is_still_fetching_is_asked_where_that_is_cheaper_than_the_store() -> None:
    placement = pool(3, ahead=1)
    placement.place(1, work("a"), 0.0)
    late = placed(placement.place(2, work("a"), 1.0))
    assert (late.worker, late.fetch) == ("w1", {"a": "w0"})
    assert late.fetch_s == pytest.approx(0.01 + Prices().peer_s(MB))


def test_second_batch_of_an_object_on_its_way_fetches_nothing() -> None:
    placement = pool(2, threads=2)
    first = placed(placement.place(1, work("a", seconds=5.0), 0.0))
    second = placed(placement.place(2, work("a", seconds=5.0), 0.0))
    assert second.worker == first.worker
    assert second.fetch == {}
    assert second.start_s == pytest.approx(first.start_s)


def test_what_was_on_its_way_to_a_batch_that_ended_must_be_held_to_count() -> None:
    placement = pool(1)
    placement.place(1, work("a"), 0.0)
    placement.end(1, 3.0)
    assert placed(placement.place(2, work("a"), 3.0)).fetch == {"a": None}


def test_hot_object_spreads_as_its_queue_grows() -> None:
    placement = pool(50)
    spread = []
    for batch in range(60):
        placed(placement.place(batch, work("a", seconds=5.0), 0.0))
        spread.append(sum(placement.in_flight(f"w{number}") > 0 for number in range(50)))
    assert spread[9] <= 10
    assert spread[0] < spread[20] < spread[59] == 50


def test_copies_are_wanted_when_waiting_has_cost_as_much() -> None:
    placement = pool(4, ahead=100)
    placement.hold("w0", "a", MB)
    fetching = Prices().peer_s(MB)
    batches = work("a", seconds=fetching / 4)
    found = [placed(placement.place(batch, batches, 0.0)) for batch in range(4)]
    assert [each.worker for each in found] == ["w0"] * 4
    # 0, 1/4, 2/4 and 3/4 of a copy were waited for.
    assert [each.copies for each in found[:3]] == [(), (), ()]
    ((object, worker),) = found[3].copies
    assert (object, worker != "w0") == ("a", True)
    # It counts as there when it should be.
    placement.leave("w0")
    after = placed(placement.place(4, batches, 1.5 * fetching))
    assert (after.worker, after.fetch, after.start_s) == (worker, {}, 0.0)


def test_copy_that_never_came_is_not_waited_for() -> None:
    placement = pool(4, ahead=100)
    placement.hold("w0", "a", MB)
    batches = work("a", seconds=Prices().peer_s(MB) / 4)
    found = [placed(placement.place(batch, batches, 0.0)) for batch in range(4)]
    for batch in range(4):
        placement.end(batch, 10.0)
    placement.leave("w0")
    assert len(found[3].copies) == 1
    assert placed(placement.place(4, batches, 10.0)).fetch == {"a": None}


def test_batch_of_several_objects_goes_where_most_of_it_is() -> None:
    placement = pool(10, store_s=0.0)
    placement.hold("w4", "a", MB)
    for object in ("b", "c"):
        placement.hold("w7", object, 50 * MB)
    sizes = {"a": MB, "b": 50 * MB, "c": 50 * MB, "d": MB}
    found = placed(placement.place(1, BatchWork(sizes, 1.0), 0.0))
    assert found.worker == "w7"
    assert set(found.fetch) == {"a", "d"}
    assert found.fetch_s == pytest.approx(0.02)


def test_batch_without_objects_goes_to_whoever_is_free() -> None:
    placement = pool(3)
    found = [placed(placement.place(batch, BatchWork({}, 1.0), 0.0)).worker for batch in range(6)]
    assert Counter(found) == {"w0": 2, "w1": 2, "w2": 2}


def test_none_is_given_when_enough_is_placed() -> None:
    placement = pool(3, threads=2, ahead=3)
    for batch in range(36):
        placed(placement.place(batch, work("a"), 0.0))
    assert placement.place(36, work("a"), 0.0) is None
    placement.end(5, 1.0)
    placed(placement.place(36, work("a"), 1.0))
    assert placement.place(37, work("a"), 1.0) is None


def test_batches_beyond_those_in_flight_are_parked_until_others_end() -> None:
    placement = pool(1, ahead=2)
    found = [placed(placement.place(batch, work("a"), 0.0)) for batch in range(4)]
    assert [each.is_parked for each in found] == [False, False, True, True]
    assert placement.in_flight("w0") == 2
    assert placement.load("w0", 0.0) == pytest.approx(4.0 + found[0].fetch_s)
    assert placement.end(1, 1.0) == [2]
    assert placement.end(3, 1.5) == []
    assert placement.end(0, 2.0) == []
    assert placement.end(2, 3.0) == []
    assert placement.in_flight("w0") == 0


@pytest.mark.parametrize("seed", range(20))
def test_no_worker_is_sent_more_than_it_may_have_in_flight_whatever_happens(seed: int) -> None:
    """What is placed beyond that is parked, also where workers come, leave and come back."""
    rng, ahead = random.Random(seed), 2
    placement = Placement(Prices(), ahead=ahead)
    threads: dict[str, int] = {}
    sent: dict[str, set[int]] = {}
    parked: dict[str, set[int]] = {}
    waiting, most, now = list(range(2_000)), 0, 0.0

    def join() -> None:
        name = f"w{rng.randrange(8)}"
        if name not in threads:
            threads[name] = rng.choice([1, 1, 2, 3])
            sent[name], parked[name] = set(), set()
            placement.join(name, threads[name], 100 * MB)

    def leave() -> None:
        if threads:
            name = rng.choice(sorted(threads))
            del threads[name]
            placement.leave(name)
            # First in the queue, as batches that are lost.
            waiting[:0] = sorted(sent.pop(name) | parked.pop(name))

    def place() -> None:
        """Place all there is room for, as at one look."""
        while waiting:
            seconds = rng.choice([0.001, 0.05, 3.0])
            wanted = work(*rng.sample("abcdef", rng.randrange(3)), seconds=seconds)
            found = placement.place(waiting[0], wanted, now)
            if found is None:
                return
            (parked if found.is_parked else sent)[found.worker].add(waiting.pop(0))

    def end() -> None:
        flying = [(name, batch) for name in sorted(sent) for batch in sorted(sent[name])]
        if flying:
            # Also one that is parked may be called off.
            name, batch = rng.choice(flying)
            if parked[name] and rng.random() < 0.1:
                batch = min(parked[name])
            due = set(placement.end(batch, now))
            sent[name].discard(batch)
            parked[name].discard(batch)
            assert due <= parked[name]
            sent[name] |= parked[name] & due
            parked[name] -= due

    def begin() -> None:
        for name in sent:
            for batch in sorted(sent[name])[: threads[name]]:
                placement.begin(batch, now)

    for _ in range(1_500):
        rng.choices([join, leave, place, end, begin], [2, 1, 10, 20, 5])[0]()
        now += rng.random()
        for name, batches in sent.items():
            assert len(batches) == placement.in_flight(name) <= ahead * threads[name]
            assert len(batches) == ahead * threads[name] or not parked[name]
            most = max(most, len(batches) + len(parked[name]))
    assert most > 2 * ahead


def test_more_is_placed_of_what_is_quick() -> None:
    placement = pool(2)
    count = 0
    while placement.place(count, work("a", seconds=0.2), 0.0) is not None:
        count += 1
    # Eight seconds of work, and a second and more of them are for fetching.
    assert 30 <= count <= 40
    assert -1 < placement.room <= 0
    for batch in range(count):
        placement.end(batch, 1.0)
    assert placement.room == pytest.approx(8)
    placement.leave(placed(placement.place("last", work("a"), 1.0)).worker)
    assert placement.room == pytest.approx(4)


def test_holder_gets_its_batches_although_another_has_just_become_free() -> None:
    placement = pool(2, ahead=1)
    batches = {f"{side}{number}": work(side, seconds=0.005) for number in range(2) for side in "ab"}
    placement.hold("w0", "a", MB)
    placement.hold("w1", "b", MB)
    for name, wanted in batches.items():
        assert placed(placement.place(name, wanted, 0.0)).fetch == {}
    placement.end("a0", 0.005)
    found = placed(placement.place("b2", work("b", seconds=0.005), 0.005))
    assert (found.worker, found.is_parked) == ("w1", True)


def test_fetching_costs_more_where_others_wait_behind() -> None:
    batches = work("a", seconds=1.5 * Prices().peer_s(MB))

    def spread(others: int) -> str:
        placement = pool(2, ahead=10)
        placement.hold("w0", "a", MB)
        for batch in range(others):
            placed(placement.place(batch, BatchWork({}, 1.0), 0.0))
        placed(placement.place("first", batches, 0.0))
        return placed(placement.place("second", batches, 0.0)).worker

    assert (spread(0), spread(6)) == ("w1", "w0")


def test_what_goes_for_a_copy_costs_more_where_others_wait_behind() -> None:
    """It will be fetched again, and keep a thread as long as any fetching does."""

    def spread(others: int) -> str:
        placement = pool(2, ahead=10)
        placement.hold("w0", "a", MB)
        placement.hold("w1", "other", 100 * MB)
        for batch in range(others):
            placed(placement.place(batch, BatchWork({}, 1.0), 0.0))
        placed(placement.place("first", work("a", seconds=1.5), 0.0))
        return placed(placement.place("second", work("a", seconds=1.5), 0.0)).worker

    assert (spread(0), spread(6)) == ("w1", "w0")


def test_ties_are_broken_evenly() -> None:
    placement = pool(40, threads=2)
    counts = Counter(
        placed(placement.place(batch, work(f"o{batch}"), 0.0)).worker for batch in range(80)
    )
    assert set(counts.values()) == {2}


def test_holders_share_evenly() -> None:
    placement = pool(200, ahead=1)
    for number in range(0, 200, 2):
        placement.hold(f"w{number}", "a", MB)
    counts = Counter(placed(placement.place(batch, work("a"), 0.0)).worker for batch in range(100))
    assert counts == {f"w{number}": 1 for number in range(0, 200, 2)}


def test_peers_are_asked_in_turn() -> None:
    placement = pool(8, ahead=1)
    for worker in ("w0", "w1", "w2"):
        placement.hold(worker, "a", MB)
        placement.place(worker, work("a"), 0.0)
    asked = Counter(placed(placement.place(batch, work("a"), 0.0)).fetch["a"] for batch in range(3))
    assert asked == {"w0": 1, "w1": 1, "w2": 1}


def test_free_workers_with_room_come_before_full_ones() -> None:
    placement = pool(3)
    for worker in ("w0", "w2"):
        placement.hold(worker, "other", 100 * MB)
    assert placed(placement.place(1, work("a"), 0.0)).worker == "w1"


def test_what_a_full_cache_loses_costs_what_its_store_asks() -> None:
    for held, chosen in ((100 * MB, "w0"), (0, "w1")):
        placement = pool(2)
        placement.hold("w0", "a", MB)
        placement.hold("w1", "other", held)
        for batch in range(2):
            assert placed(placement.place(batch, work("a", seconds=0.2), 0.0)).worker == (
                "w0" if batch == 0 else chosen
            )


def test_caches_are_filled_evenly_by_what_is_on_its_way() -> None:
    placement = pool(4, ahead=8)
    at = Counter(
        placed(placement.place(batch, work(f"o{batch}", size=30 * MB), 0.0)).worker
        for batch in range(12)
    )
    assert set(at.values()) == {3}
    # Who has room comes before who is free sooner.
    placement = pool(2, ahead=8)
    for batch in range(3):
        placement.place(batch, work(f"o{batch}", size=40 * MB, seconds=0.1), 0.0)
    placement.end(0, 1.0)
    placement.hold("w0", "o0", 40 * MB)
    assert placed(placement.place(3, work("o3", size=40 * MB), 1.0)).worker == "w1"


def test_worker_that_is_late_is_expected_to_be_later() -> None:
    placement = pool(2)
    placement.hold("w0", "a", MB)
    placement.place(1, work("a", seconds=10.0), 0.0)
    placement.begin(1, 0.0)
    assert placement.load("w0", 4.0) == pytest.approx(6.0)
    assert placement.load("w0", 25.0) == pytest.approx(15.0)
    assert placed(placement.place(2, work("a"), 25.0)).worker == "w1"


def test_late_workers_do_not_hide_the_others() -> None:
    placement = pool(40)
    for batch in range(40):
        seconds = 1.0 if batch < 30 else 50.0
        placement.place(batch, work(seconds=seconds), 0.0)
        placement.begin(batch, 0.0)
    # 30 hang; the others will be free in a second.
    found = placed(placement.place(40, work(), 49.0))
    assert int(found.worker[1:]) >= 30
    assert found.start_s == pytest.approx(1.0)


def test_begin_and_end_correct_what_was_predicted() -> None:
    placement = pool(1)
    placement.place(1, work(seconds=10.0), 0.0)
    placement.begin(1, 5.0)
    assert placement.load("w0", 5.0) == pytest.approx(10.0)
    placement.place(2, work(seconds=1.0), 5.0)
    assert placement.load("w0", 5.0) == pytest.approx(11.0)
    placement.end(1, 6.0)
    placement.begin(2, 6.0)
    assert placement.load("w0", 6.0) == 0.0 or placement.in_flight("w0") == 1
    placement.end(2, 7.0)
    assert placement.in_flight("w0") == 0


def test_what_was_predicted_far_too_long_misleads_nobody_when_it_is_done() -> None:
    """Of two workers alike, each does half of what neither holds."""
    placement = pool(2)
    counts = Counter[str]()
    batches = iter(range(1000))
    at: dict[str, list[int]] = {"w0": [], "w1": []}

    def fill(now: float) -> None:
        while True:
            batch = next(batches)
            found = placement.place(batch, work(f"o{batch}", seconds=10.0), now)
            if found is None:
                return
            counts[found.worker] += 1
            at[found.worker].append(batch)

    fill(0.0)
    # All take a second, and one worker is always a tenth of a second earlier.
    for turn in range(100):
        for name, now in (("w0", turn + 0.9), ("w1", turn + 1.0)):
            placement.end(at[name].pop(0), now)
            fill(now)
            assert placement.in_flight(name) == 2
            placement.begin(at[name][0], now)
    assert abs(counts["w0"] - counts["w1"]) <= 2


def test_one_who_joins_gets_work_at_once() -> None:
    placement = pool(1)
    placement.hold("w0", "a", MB)
    placement.place(1, work("a"), 0.0)
    placement.join("new", 1, 100 * MB)
    found = placed(placement.place(2, work("a"), 0.0))
    assert (found.worker, found.fetch) == ("new", {"a": "w0"})


def test_one_who_leaves_is_forgotten_and_its_batches_go_elsewhere() -> None:
    placement = pool(2)
    placement.hold("w0", "a", MB)
    assert placed(placement.place(1, work("a", "b"), 0.0)).worker == "w0"
    placement.leave("w0")
    assert placement.holders("a") == {}
    found = placed(placement.place(1, work("a", "b"), 0.0))
    assert (found.worker, found.fetch) == ("w1", {"a": None, "b": None})
    # Late words of it change nothing.
    placement.hold("w0", "a", MB)
    placement.drop("w0", "a")
    placement.leave("w0")
    assert placement.holders("a") == {}
    # It may come back, with nothing.
    placement.join("w0", 1, 100 * MB)
    assert placement.in_flight("w0") == 0


def test_what_is_dropped_is_not_held() -> None:
    placement = pool(3)
    placement.hold("w1", "a", MB)
    placement.hold("w1", "a", 2 * MB)
    assert placement.holders("a") == {"w1": 2 * MB}
    placement.drop("w1", "a")
    placement.drop("w1", "never")
    assert placement.holders("a") == {}


def test_no_batch_goes_where_it_would_not_end_in_time() -> None:
    placement = Placement(Prices())
    placement.join("short", 1, 100 * MB, ends=10.0)
    placement.hold("short", "a", MB)
    placement.join("long", 1, 100 * MB)
    assert placed(placement.place(1, work("a", seconds=9.0), 0.0)).worker == "short"
    assert placed(placement.place(2, work("a", seconds=9.0), 2.0)).worker == "long"


def test_workers_that_end_soon_do_not_hide_the_others() -> None:
    placement = Placement(Prices())
    for number in range(100):
        placement.join(f"w{number}", 1, 100 * MB, ends=1.0)
    placement.join("long", 1, 100 * MB)
    tries = [placement.place(1, work("a", seconds=9.0), 0.0) for _ in range(4)]
    assert [each.worker for each in tries if each is not None] == ["long"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda placement: placement.join("w0", 1, 0), "w0: already in the pool"),
        (lambda placement: placement.join("x", 0, 0), "x: threads: expected at least 1, found 0"),
        (lambda placement: placement.place(1, work("a"), 0.0), "1: already placed"),
        (lambda _: Placement(Prices(), ahead=0), "ahead: expected at least 1, found 0"),
    ],
)
def test_mistakes_are_told(call: object, message: str) -> None:
    placement = pool(1)
    placement.place(1, work("a"), 0.0)
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call(placement)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_decided_counts_hold(seed: int) -> None:
    rng = random.Random(seed)
    ahead = rng.choice([1, 2, 3])
    placement = Placement(Prices(rng.choice([0.0, 0.1, 5.0])), ahead=ahead)
    threads: dict[str, int] = {}
    held: dict[tuple[str, str], int] = {}
    flights: dict[int, str] = {}
    parked: dict[int, str] = {}
    now, joined = 0.0, 0
    for batch in range(2_000):
        now += rng.expovariate(2.0)
        doing = rng.random()
        if doing < 0.05 or not threads:
            name = f"w{joined}"
            joined += 1
            threads[name] = rng.randint(1, 4)
            ends = rng.choice([inf, now + 50 * rng.random()])
            placement.join(name, threads[name], rng.choice([0, 10 * MB]), ends=ends)
        elif doing < 0.08:
            name = rng.choice(list(threads))
            del threads[name]
            placement.leave(name)
            held = {key: size for key, size in held.items() if key[0] != name}
            flights = {number: worker for number, worker in flights.items() if worker != name}
            parked = {number: worker for number, worker in parked.items() if worker != name}
        elif doing < 0.25:
            key = rng.choice(list(threads)), f"o{rng.randrange(12)}"
            held[key] = rng.randint(1, 3 * MB)
            placement.hold(*key, held[key])
        elif doing < 0.35 and held:
            key = rng.choice(list(held))
            del held[key]
            placement.drop(*key)
        elif doing < 0.55 and flights:
            placement.begin(rng.choice(list(flights)), now)
        elif doing < 0.75 and flights:
            number = rng.choice(list(flights))
            worker = flights.pop(number)
            for due in placement.end(number, now):
                assert isinstance(due, int)
                flights[due] = parked.pop(due)
                assert flights[due] == worker
        else:
            objects = {f"o{rng.randrange(12)}": rng.randint(1, 3 * MB) for _ in range(3)}
            found = placement.place(batch, BatchWork(objects, rng.random()), now)
            counts = Counter(flights.values())
            if found is None:
                continue
            assert found.is_parked == (counts[found.worker] >= ahead * threads[found.worker])
            assert found.start_s >= found.fetch_s >= 0
            for object, peer in found.fetch.items():
                assert held.get((found.worker, object), 0) < objects[object]
                assert peer is None or (peer in threads and peer != found.worker)
            for object, worker in found.copies:
                assert (worker, object) not in held and worker in threads
            (parked if found.is_parked else flights)[batch] = found.worker
        counts = Counter(flights.values())
        for name in threads:
            assert placement.in_flight(name) == counts[name] <= ahead * threads[name]
            waiting = sum(worker == name for worker in parked.values())
            assert waiting <= 4 * ahead * threads[name] / LEAST_S
            assert placement.load(name, now) >= 0
        for object in {object for _, object in held}:
            expected = {name: size for (name, of), size in held.items() if of == object}
            assert placement.holders(object) == expected


def test_nobody_is_left_without_work_while_there_is_some() -> None:
    placement = pool(300, ahead=2)
    for number in range(100):
        placement.hold(f"w{number}", "a", MB)
    batch = 0
    while placement.place(batch, work("a", f"o{batch % 7}"), 0.0) is not None:
        batch += 1
    assert batch >= 1200
    assert all(placement.in_flight(f"w{number}") > 0 for number in range(300))
