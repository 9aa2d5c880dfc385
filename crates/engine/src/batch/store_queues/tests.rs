use super::*;
use std::collections::BTreeMap;

/// Units of one target of an object each; the division gave them to stores in turn, by these counts.
fn units(counts: &[usize], unit_s: &[f64]) -> (Vec<Unit>, Vec<Vec<usize>>) {
    let (mut units, mut copies) = (Vec::new(), Vec::new());
    let mut rest = counts.to_vec();
    while rest.iter().any(|&count| count > 0) {
        for store in 0..rest.len() {
            if rest[store] == 0 {
                continue;
            }
            rest[store] -= 1;
            let number = units.len();
            let seconds = unit_s[store];
            units.push(Unit {
                file: number,
                targets: vec![number],
                number,
                seconds,
                ..Unit::default()
            });
            let others = (0..counts.len()).filter(|&other| other != store);
            copies.push(std::iter::once(store).chain(others).collect());
        }
    }
    (units, copies)
}

/// The result of a simulated run.
struct Run {
    seconds: f64,
    /// Units by the store they were read from.
    read: Vec<usize>,
    moves: usize,
    most_at_once: Vec<usize>,
    failures: usize,
}

/// Run the queues on stores that share their line between the units that are read, at a speed by the
/// store and the time: predicted seconds for each second. `fails`: whether a unit that ends then fails.
fn run(
    mut queues: StoreQueues,
    threads: usize,
    speed: impl Fn(usize, f64, usize) -> f64,
    fails: impl Fn(usize, f64) -> bool,
) -> Run {
    const STEP_S: f64 = 0.01;
    let stores = queues.stores.len();
    let mut run = Run {
        seconds: 0.0,
        read: vec![0; stores],
        moves: 0,
        most_at_once: vec![0; stores],
        failures: 0,
    };
    let mut busy: Vec<(Unit, usize, f64)> = Vec::new();
    for step in 0..1_000_000 {
        let now_s = f64::from(step) * STEP_S;
        let mut is_over = false;
        while busy.len() < threads {
            match queues.next(now_s) {
                Next::Unit(mut unit, parts) => {
                    run.moves += usize::from(unit.last_move.take().is_some());
                    let store = queues.store_of(&unit);
                    assert!(parts as usize <= queues.stores[store].limits.most);
                    let seconds = unit.seconds;
                    busy.push((unit, store, seconds));
                }
                Next::Wait => break,
                Next::End => {
                    is_over = true;
                    break;
                }
            }
        }
        if is_over && busy.is_empty() {
            run.seconds = now_s;
            return run;
        }
        let mut at_once = vec![0; stores];
        busy.iter().for_each(|(_, store, _)| at_once[*store] += 1);
        for (most, &now) in run.most_at_once.iter_mut().zip(&at_once) {
            *most = (*most).max(now);
        }
        for (unit, store, left_s) in &mut busy {
            *left_s -= STEP_S * speed(*store, now_s, unit.number) / at_once[*store] as f64;
        }
        let mut at = 0;
        while at < busy.len() {
            if busy[at].2 > 0.0 {
                at += 1;
                continue;
            }
            let (unit, store, _) = busy.swap_remove(at);
            if fails(store, now_s) {
                let is_store = true;
                queues.end(&unit, Ending::Failed { is_store }, now_s);
                run.failures += usize::from(!queues.retry(unit, now_s));
            } else {
                queues.end(&unit, Ending::Done, now_s);
                run.read[store] += 1;
            }
        }
    }
    panic!("the run does not end");
}

fn limits(target_s: f64, limit: usize) -> StoreLimits {
    StoreLimits { target_s, limit, most: limit }
}

/// Two stores, the first three times as fast as the second.
fn two() -> StoreQueues {
    let (units, copies) = units(&[90, 30], &[0.1, 0.3]);
    StoreQueues::new(units, vec![limits(0.1, 4), limits(0.3, 4)], copies)
}

#[test]
fn one_queue_gives_units_in_their_order_and_then_ends() {
    let (units, _) = units(&[5], &[1.0]);
    let mut queues = StoreQueues::of_one(units, 3);
    for number in 0..5 {
        let Next::Unit(unit, parts) = queues.next(0.0) else { panic!("no unit {number}") };
        assert_eq!(unit.number, number);
        assert_eq!(parts, (5 - number as u32).min(3));
        queues.end(&unit, Ending::Done, 1.0);
    }
    assert!(matches!(queues.next(2.0), Next::End));
}

#[test]
fn few_units_move_on_steady_links() {
    // Both are slower than predicted, and each unit is a little faster or slower than the others.
    let noise = |_, _, number: usize| 0.7 * (0.85 + 0.3 * ((number * 37) % 100) as f64 / 100.0);
    let run = run(two(), 8, noise, |_, _| false);
    assert!(run.moves <= 3, "{} of 120 moved", run.moves);
    assert_eq!(run.read.iter().sum::<usize>(), 120);
    assert!(run.most_at_once.iter().all(|&most| most <= 4), "{:?}", run.most_at_once);
    assert!(run.seconds < 9.0 / 0.7 * 1.1, "{}", run.seconds);
}

#[test]
fn a_store_that_slows_loses_what_it_has_not_begun() {
    for (slow, least_share) in [(0, 2.0), (1, 1.0)] {
        let speed = move |store: usize, now_s: f64, _| {
            if store == slow && now_s > 2.0 { 0.05 } else { 1.0 }
        };
        let run = run(two(), 8, speed, |_, _| false);
        assert!(run.moves > 10, "{} moved", run.moves);
        // Without moves the slow store needs 2 s and 7 s / 0.05 for its share.
        assert!(run.seconds < 45.0, "{} s", run.seconds);
        assert!(run.read[1 - slow] as f64 > least_share * run.read[slow] as f64, "{:?}", run.read);
    }
}

#[test]
fn a_store_that_stalls_is_noticed_before_a_unit_ends() {
    let speed = |store: usize, now_s: f64, _| match store {
        0 if (2.0..60.0).contains(&now_s) => 0.0,
        _ => 1.0,
    };
    let run = run(two(), 8, speed, |_, _| false);
    // The units that it had begun end after the stall; the other store read all others.
    assert!((60.0..62.0).contains(&run.seconds), "{}", run.seconds);
    assert!(run.read[0] <= 30 && run.read[1] >= 90, "{:?}", run.read);
}

#[test]
fn few_milliseconds_are_not_gained_by_moves() {
    let read_from = |scale: f64| {
        let (units, copies) = units(&[12, 12], &[0.01 * scale, 0.01 * scale]);
        let all = vec![limits(0.01 * scale, 1), limits(0.01 * scale, 1)];
        let mut queues = StoreQueues::new(units, all, copies);
        let take = |queues: &mut StoreQueues, now_s: f64| match queues.next(now_s * scale) {
            Next::Unit(unit, _) => unit,
            _ => panic!("no unit"),
        };
        let (first, second) = (take(&mut queues, 0.0), take(&mut queues, 0.0));
        assert_eq!((queues.store_of(&first), queues.store_of(&second)), (0, 1));
        // The second store is done with all of its units; the first is still at its first one.
        queues.end(&second, Ending::Done, 0.002 * scale);
        for number in 1..12 {
            let unit = take(&mut queues, 0.002 * f64::from(number) * scale);
            queues.end(&unit, Ending::Done, 0.002 * f64::from(number + 1) * scale);
        }
        match queues.next(0.1 * scale) {
            Next::Unit(unit, _) => Some(queues.store_of(&unit)),
            _ => None,
        }
    };
    // The others would take a tenth of a second or more, or a hundredth of that.
    assert_eq!((read_from(1.0), read_from(0.01)), (Some(1), None));
}

#[test]
fn units_of_a_store_that_fails_are_read_from_another() {
    let run = run(two(), 8, |_, _, _| 1.0, |store, now_s| store == 0 && now_s > 1.0);
    assert_eq!((run.read.iter().sum::<usize>(), run.failures), (120, 0));
    assert!(run.read[0] < 15, "{:?}", run.read);
}

#[test]
fn units_without_another_copy_stay_and_fail_if_all_do() {
    let (units, mut copies) = units(&[6, 6], &[0.1, 0.1]);
    for (number, copies) in copies.iter_mut().enumerate() {
        if number % 4 == 0 {
            copies.truncate(1);
        }
    }
    let queues = StoreQueues::new(units, vec![limits(0.1, 2), limits(0.1, 2)], copies);
    let run = run(queues, 4, |_, _, _| 1.0, |store, _| store == 0);
    // Numbers 0, 4 and 8 are only in the first store.
    assert_eq!((run.failures, run.read), (3, vec![0, 9]));
    let all_fail = self::run(two(), 8, |_, _, _| 1.0, |_, _| true);
    assert_eq!((all_fail.failures, all_fail.read), (120, vec![0, 0]));
}

#[test]
fn a_store_without_a_share_helps_only_if_another_is_behind() {
    for (speed, least, most) in [(1.0, 0, 0), (0.1, 5, 40)] {
        let (units, copies) = units(&[40, 0], &[0.1, 0.4]);
        let queues = StoreQueues::new(units, vec![limits(0.1, 4), limits(0.4, 2)], copies);
        let run = run(queues, 6, |store, _, _| if store == 0 { speed } else { 1.0 }, |_, _| false);
        assert!((least..=most).contains(&run.read[1]), "{speed}: {:?}", run.read);
    }
}

#[test]
fn every_unit_is_read_once_whatever_happens() {
    for seed in 0..200_u64 {
        let random = |a: u64, b: u64| {
            let bits =
                (seed * 7919 + a * 104_729 + b * 1_299_709).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (bits >> 40) as f64 / (1_u64 << 24) as f64
        };
        let counts: Vec<usize> = (0..3).map(|store| (20.0 * random(store, 1)) as usize).collect();
        let (units, mut copies) = units(&counts, &[0.1, 0.2, 0.3]);
        for (number, copies) in copies.iter_mut().enumerate() {
            copies.truncate(1 + (3.0 * random(number as u64, 2)) as usize);
        }
        let count = units.len();
        let all = [limits(0.1, 2), limits(0.2, 3), limits(0.3, 1)];
        let queues = StoreQueues::new(units, all.into(), copies);
        let speed = |store: usize, now_s: f64, number: usize| {
            0.05 + random(store as u64 + 3 * now_s as u64, number as u64)
        };
        let fails = |store: usize, now_s: f64| random(store as u64, (3.0 * now_s) as u64) < 0.2;
        let run = run(queues, 6, speed, fails);
        assert_eq!(run.read.iter().sum::<usize>() + run.failures, count, "seed {seed}");
    }
    let mut times_read = BTreeMap::new();
    let mut queues = two();
    while let Next::Unit(unit, _) = queues.next(0.0) {
        *times_read.entry(unit.number).or_insert(0) += 1;
        queues.end(&unit, Ending::Done, 0.0);
    }
    assert!(times_read.len() == 120 && times_read.values().all(|&times| times == 1));
}
