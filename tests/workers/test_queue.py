"""When a worker is free, by what it has to do and what was really begun and done."""

from __future__ import annotations

import random

import pytest

from swathe.workers.placement.queue import Queue


def queue(count: int, *, threads: int = 1, ahead: int = 2, seconds: float = 1.0) -> Queue:
    """One that has been given so many batches at the same time."""
    made = Queue(threads, ahead)
    for batch in range(count):
        made.put(batch, seconds, 0.0)
    return made


@pytest.mark.parametrize("took_s", [0.1, 7.0])
def test_batches_that_end_early_or_late_move_each_one_behind_once(took_s: float) -> None:
    made, now = queue(6), 0.0
    for batch in range(5):
        made.begin(batch, now)
        now += took_s
        made.remove(batch, now)
        assert made.wait_s(now) == pytest.approx(5 - batch)


def test_one_that_is_begun_late_puts_off_those_behind() -> None:
    made = queue(3)
    made.begin(0, 5.0)
    assert made.wait_s(5.0) == pytest.approx(3.0)


def test_one_that_is_late_is_expected_to_be_late_by_as_much_again() -> None:
    made = queue(3)
    assert made.wait_s(0.5) == pytest.approx(2.5)
    assert made.wait_s(5.0) == pytest.approx(4.0 + 2.0)


def test_threads_share_what_is_behind() -> None:
    made = Queue(2, 4)
    made.put("long", 10.0, 0.0)
    assert made.wait_s(0.0) == 0.0
    for batch in range(3):
        made.put(batch, 1.0, 0.0)
    # Three of a second, one after the other, by the thread that has not the long one.
    assert made.wait_s(0.0) == pytest.approx(3.0)
    for batch in range(3, 23):
        made.put(batch, 1.0, 0.0)
    assert made.wait_s(0.0) == pytest.approx((10 + 23) / 2)


def test_batches_begun_in_another_order_count_once() -> None:
    made = queue(4, ahead=4)
    made.begin(2, 0.0)
    assert made.behind_s == pytest.approx(2.0)
    assert made.remove(0, 0.5) == []
    assert made.wait_s(0.5) == pytest.approx(2.5)


def test_parked_ones_are_sent_in_their_order() -> None:
    made = Queue(1, 2)
    assert [made.put(batch, 1.0, 0.0) for batch in range(5)] == [False, False, True, True, True]
    assert made.remove(3, 0.0) == []
    assert made.remove(1, 0.0) == [2]
    assert made.remove(0, 1.0) == [4]
    assert made.remove(2, 2.0) == []
    assert made.sent_count == 1


def test_batches_count_for_what_they_take_within_bounds() -> None:
    made = Queue(1, 2)
    for batch, (seconds, placed) in enumerate([(0.3, 0.3), (7.0, 1.3), (0.001, 1.35)]):
        made.put(batch, seconds, 0.0)
        assert made.sum_s == pytest.approx(placed)
    made.remove(1, 0.0)
    assert made.sum_s == pytest.approx(0.35)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_nothing_is_left_when_all_is_done(seed: int) -> None:
    rng = random.Random(seed)
    made, now, given, sent = Queue(rng.randint(1, 3), rng.randint(3, 6)), 0.0, 0, list[int]()
    for _ in range(3_000):
        now += rng.random()
        doing = rng.random()
        if doing < 0.4:
            if not made.put(given, rng.random(), now):
                sent.append(given)
            given += 1
        elif doing < 0.6 and sent:
            made.begin(rng.choice(sent), now)
        elif made.batches:
            batch = rng.choice(list(made.batches))
            if batch in sent:
                sent.remove(batch)
            due = made.remove(batch, now)
            assert all(isinstance(each, int) for each in due)
            sent += due  # type: ignore[arg-type]  # just asserted
        assert made.sent_count == len(sent)
        assert len(made.running) >= min(len(made.batches), made.threads)
        assert made.wait_s(now) >= 0
        waiting = [each for each in made.batches if each not in made.running]
        assert made.behind_s == pytest.approx(sum(made.batches[each] for each in waiting))
    for batch in list(made.batches):
        made.remove(batch, now)
    assert (made.behind_s, made.running, made.wait_s(now), made.sum_s) == (0.0, {}, 0.0, 0.0)
