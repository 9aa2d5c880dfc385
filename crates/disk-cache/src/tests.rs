use super::eviction::MOST_GAIN_S;
use super::*;
use proptest::prelude::*;
use std::io::Write;

fn cache(limit: u64) -> (tempfile::TempDir, DiskCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("index"), limit);
    (folder, cache)
}

fn file_of(cache: &DiskCache, key: &str) -> PathBuf {
    cache.path(key)
}

#[test]
fn files_of_others_stay_whatever_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("cache"), 1 << 20);
    cache.put("key", b"value").unwrap();
    let (value_folder, target) = (folder.path().join("cache/ab"), folder.path().join("mine"));
    std::fs::create_dir_all(&value_folder).unwrap();
    std::fs::create_dir(&target).unwrap();
    let name = "0123456789abcdef0123456789abcdef";
    for of in [&value_folder, &target] {
        std::fs::write(of.join(name), "a thesis").unwrap();
    }
    std::os::unix::fs::symlink(&target, folder.path().join("cache/cd")).unwrap();
    cache.clear().unwrap();
    assert_eq!(cache.get("key"), None);
    for of in [&value_folder, &target] {
        assert_eq!(std::fs::read(of.join(name)).unwrap(), b"a thesis");
    }
}

#[test]
fn values_come_back_and_are_replaced() {
    let (_folder, cache) = cache(1 << 20);
    assert_eq!(cache.get("a"), None);
    cache.put("a", b"one").unwrap();
    cache.put("b", b"").unwrap();
    cache.put("a", b"two").unwrap();
    assert_eq!(cache.get("a").unwrap(), "two");
    assert_eq!(cache.get("b").unwrap(), "");
    assert_eq!(cache.usage().unwrap().values, 2);
    cache.clear().unwrap();
    assert_eq!(cache.get("a"), None);
    assert_eq!(cache.usage().unwrap().bytes, 0);
}

#[test]
fn a_file_damaged_at_any_byte_or_cut_anywhere_counts_as_absent_and_is_removed() {
    let (_folder, cache) = cache(1 << 20);
    cache.put("key", b"some value").unwrap();
    let path = file_of(&cache, "key");
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        for bad in [&bad, &good[..at]] {
            fs::write(&path, bad).unwrap();
            assert_eq!(cache.get("key"), None, "byte {at} flipped or cut off");
            assert!(!path.exists());
        }
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(cache.get("key").unwrap(), "some value");
}

#[test]
fn a_clash_of_hashes_is_no_hit() {
    let (_folder, cache) = cache(1 << 20);
    cache.put("key", b"value").unwrap();
    fs::create_dir_all(file_of(&cache, "other").parent().unwrap()).unwrap();
    fs::copy(file_of(&cache, "key"), file_of(&cache, "other")).unwrap();
    assert_eq!(cache.get("other"), None);
}

#[test]
fn the_limit_holds_and_the_longest_unused_goes_first() {
    let limit = 20 * 4096;
    let (_folder, cache) = cache(limit);
    let value = vec![7; 1000];
    for i in 0..100 {
        cache.put(&format!("{i}"), &value).unwrap();
        let age = Duration::from_secs(1000 - i);
        let file = File::options().write(true).open(file_of(&cache, &format!("{i}"))).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        assert!(cache.usage().unwrap().bytes <= limit);
    }
    assert_eq!(cache.get("0"), None);
    assert_eq!(cache.get("99").unwrap(), value);
    assert_eq!(cache.usage().unwrap().values, 20, "no more goes than must");
    cache.put("huge", &[0; 100_000]).unwrap();
    assert_eq!(cache.get("huge"), None);
    assert_eq!(cache.get("99").unwrap(), value);
}

#[test]
fn replacing_a_value_takes_no_more_room() {
    let (_folder, cache) = cache(10 * 4096);
    cache.put("kept", b"kept").unwrap();
    for i in 0..100 {
        cache.put("key", format!("{i}").as_bytes()).unwrap();
    }
    assert_eq!(cache.usage().unwrap(), Usage { values: 2, bytes: 2 * 4096, limit: 10 * 4096 });
    assert_eq!(cache.ledger().unwrap().bytes, 2 * 4096);
    assert_eq!(cache.get("kept").unwrap(), "kept");
}

#[test]
fn what_a_killed_writer_left_is_counted_and_then_removed() {
    let (_folder, cache) = cache(4 * 4096);
    cache.put("key", b"value").unwrap();
    let part_file = file_of(&cache, "other").with_extension("new");
    fs::create_dir_all(part_file.parent().unwrap()).unwrap();
    fs::write(&part_file, [MAGIC.as_slice(), &[1; 4992]].concat()).unwrap();
    cache.ledger().unwrap().set(3 * 4096).unwrap();
    assert_eq!(cache.usage().unwrap().values, 1);
    cache.put("one", b"1").unwrap();
    assert!(part_file.exists());
    cache.put("two", b"2").unwrap();
    assert!(!part_file.exists());
    assert_eq!(cache.get("two").unwrap(), "2");
}

#[test]
fn without_its_number_the_folder_is_counted() {
    let (_folder, cache) = cache(1 << 20);
    cache.put("key", b"value").unwrap();
    for wrong in [&b""[..], b"short", &[7; 16]] {
        fs::write(cache.folder.join(USAGE_FILE), wrong).unwrap();
        assert_eq!(cache.ledger().unwrap().bytes, 4096);
    }
    fs::remove_dir_all(&cache.folder).unwrap();
    cache.put("key", b"value").unwrap();
    assert_eq!(cache.ledger().unwrap().bytes, 4096);
}

#[test]
fn files_of_others_stay() {
    let (_folder, cache) = cache(2 * 4096);
    let others = ["night1/a.fits", "night1/a.new", "00/a.fits", "00/b.new", "00/0123"];
    for other in others {
        let path = cache.folder.join(other);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, [1; 3 * 4096]).unwrap();
    }
    for number in 0..4 {
        cache.put(&format!("{number}"), b"value").unwrap();
    }
    assert_eq!(cache.usage().unwrap().values, 2);
    cache.clear().unwrap();
    assert_eq!(cache.usage().unwrap().values, 0);
    for other in others {
        assert_eq!(fs::read(cache.folder.join(other)).unwrap(), [1; 3 * 4096], "{other}");
    }
}

#[test]
fn another_file_is_not_taken_for_the_number() {
    let (folder, cache) = cache(1 << 20);
    let (usage, image) = (cache.folder.join(USAGE_FILE), folder.path().join("image"));
    fs::create_dir_all(&cache.folder).unwrap();
    fs::write(&image, b"short").unwrap();
    let place: [&dyn Fn(); 3] = [
        &|| fs::write(&usage, [7; 100]).unwrap(),
        &|| fs::hard_link(&image, &usage).unwrap(),
        &|| std::os::unix::fs::symlink(&image, &usage).unwrap(),
    ];
    for make in place {
        make();
        let before = fs::read(&usage).unwrap();
        let error = cache.put("key", b"value").unwrap_err();
        assert!(error.to_string().contains(USAGE_FILE), "{error}");
        cache.clear().unwrap_err();
        assert_eq!(fs::read(&usage).unwrap(), before);
        fs::remove_file(&usage).unwrap();
    }
    assert_eq!(fs::read(&image).unwrap(), b"short");
}

#[test]
fn a_writer_that_was_stopped_holds_nobody_up_for_long() {
    let (_folder, cache) = cache(1 << 20);
    cache.put("key", b"value").unwrap();
    let _lock = cache.ledger().unwrap();
    let began = Instant::now();
    let error = cache.put("key", b"other").unwrap_err();
    assert!(error.to_string().contains(USAGE_FILE), "{error}");
    assert!(began.elapsed() < 2 * LONGEST_WAIT);
    assert_eq!(cache.get("key").unwrap(), "value");
}

#[test]
fn an_unwritable_folder_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = DiskCache::at(file.join("index"), 1 << 20).put("key", b"value").unwrap_err();
    assert!(error.to_string().contains("file/index"), "{error}");
}

#[test]
fn many_writers_and_readers_see_whole_values_and_the_limit_holds() {
    let (_folder, cache) = cache(200_000);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u8)
            .map(|writer| {
                // Each as if in a process of its own.
                let cache = DiskCache::at(cache.folder(), 200_000);
                scope.spawn(move || {
                    let mut count = 0;
                    for i in 0..300 {
                        let value = vec![writer; 500 + 40 * i];
                        let seconds = |_| f64::from(writer) * 0.01 * (i % 7) as f64;
                        let key = format!("{}", i % 70);
                        match cache.put_with_weight(&key, &value, Some(&seconds)) {
                            Ok(()) => count += 1,
                            // A writer that waited long for the others gives up, and for nothing else.
                            Err(StoreError::Io { source, .. })
                                if source.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(error) => panic!("{error}"),
                        }
                        if i % 3 == 0 {
                            cache.get_with_weight(&key, Some(&seconds));
                        }
                    }
                    count
                })
            })
            .collect();
        let (cache, stop) = (&cache, &stop);
        let reader = scope.spawn(move || {
            let mut reads = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for i in 0..70 {
                    if let Some(value) = cache.get(&format!("{i}")) {
                        assert!(value.iter().all(|byte| *byte == value[0]));
                        reads += 1;
                    }
                }
                assert!(cache.usage().unwrap().bytes <= 200_000);
            }
            reads
        });
        let results: Vec<std::thread::Result<u64>> =
            writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(results.into_iter().map(|results| results.unwrap()).sum::<u64>() > 0);
        assert!(reader.join().unwrap() > 0);
    });
    let usage = cache.usage().unwrap();
    assert_eq!(cache.ledger().unwrap().bytes, usage.bytes);
}

const DAY: f64 = 86_400.0;

/// A cache on which each use counts.
fn weighing(limit: u64) -> (tempfile::TempDir, DiskCache) {
    let (folder, mut cache) = cache(limit);
    cache.mark_every = Duration::ZERO;
    (folder, cache)
}

/// Put a value of one block of the disk, with the seconds to fetch it again.
fn put(cache: &DiskCache, key: &str, seconds: f64) {
    cache.put_with_weight(key, &[1; 1000], Some(&|_| seconds)).unwrap();
}

fn has(cache: &DiskCache, keys: &[&str]) -> Vec<bool> {
    keys.iter().map(|key| cache.has(key)).collect()
}

#[test]
fn what_is_cheap_to_fetch_again_goes_first() {
    let (_folder, cache) = weighing(10 * 4096);
    for number in 0..5 {
        put(&cache, &format!("wan {number}"), 0.07);
        put(&cache, &format!("lan {number}"), 0.003);
    }
    for number in 0..4 {
        put(&cache, &format!("more {number}"), 0.07);
    }
    assert_eq!(has(&cache, &["wan 0", "wan 1", "wan 2", "wan 3", "wan 4"]), [true; 5]);
    let lan = (0..5).filter(|number| cache.has(&format!("lan {number}")));
    assert_eq!(lan.count(), 1);
    assert_eq!(has(&cache, &["more 0", "more 3"]), [true; 2]);
}

#[test]
fn of_equal_worth_what_came_before_the_last_goes() {
    let (_folder, cache) = weighing(20 * 4096);
    for number in 0..30 {
        put(&cache, &format!("{number}"), 0.01);
        tick();
    }
    assert_eq!(cache.usage().unwrap().values, 20);
    // The last ones are stored, and the first ones.
    assert_eq!(has(&cache, &["29", "28", "27"]), [true; 3]);
    assert_eq!(has(&cache, &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]), [true; 10]);
}

/// Wait for a tick of the clock of the file system, which is coarse.
fn tick() {
    let mark_time = || {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1").unwrap();
        file.metadata().unwrap().modified().unwrap()
    };
    let before = mark_time();
    while mark_time() == before {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Read values in a loop again and again, and store missing ones; returns how
/// many were cached, the last time.
fn found_in_loops(limit: u64, values: usize, rounds: usize) -> usize {
    let (_folder, cache) = weighing(limit * 4096);
    let mut hits = 0;
    for _ in 0..rounds {
        hits = 0;
        for number in 0..values {
            let key = number.to_string();
            match cache.get_with_weight(&key, Some(&|_| 0.01)) {
                Some(_) => hits += 1,
                None => put(&cache, &key, 0.01),
            }
            tick();
        }
    }
    hits
}

#[test]
fn who_goes_round_through_more_than_fits_finds_a_part() {
    assert_eq!(found_in_loops(40, 40, 3), 40);
    assert!(found_in_loops(40, 44, 6) >= 31);
    assert!(found_in_loops(40, 80, 6) >= 24);
}

#[test]
fn a_shelf_of_numbers_keeps_what_one_on_disk_does() {
    let limit = 40 * 4096;
    let (_folder, cache) = weighing(limit);
    let mut numbers = SimulatedCache::new(limit);
    let (mut present_names, mut evictions) = (std::collections::BTreeSet::new(), 0);
    for step in 0..400u64 {
        // Loops, and some that are used more often.
        let number = if step % 3 == 0 { step * step % 9 } else { step * 2 / 3 % 60 };
        let (name, seconds) = (number.to_string(), [0.1, 0.1, 0.02][number as usize % 3]);
        if cache.get_with_weight(&name, Some(&|_| seconds)).is_none() {
            put(&cache, &name, seconds);
        }
        present_names.insert(name.clone());
        for (name, blocks) in numbers.note(&name, 1, 4033, seconds, 100.0 * step as f64) {
            assert_eq!(blocks, 1);
            assert!(present_names.remove(&name));
            evictions += 1;
        }
        tick();
        let present = (0..60).map(|number| number.to_string()).filter(|name| cache.has(name));
        assert_eq!(
            present.collect::<std::collections::BTreeSet<_>>(),
            present_names,
            "step {step}"
        );
        assert_eq!(numbers.bytes(), cache.usage().unwrap().bytes);
    }
    assert!(evictions > 40);
}

#[test]
fn a_copy_does_not_drive_out_what_is_dear() {
    let (_folder, cache) = weighing(40 * 4096);
    for number in 0..40 {
        put(&cache, &format!("store {number}"), 0.1);
        tick();
    }
    for number in 0..400 {
        put(&cache, &format!("peer {number}"), 0.002);
        tick();
    }
    let dear = (0..40).filter(|number| cache.has(&format!("store {number}"))).count();
    assert!(dear >= 28, "{dear}"); // all but as much as is young, and was looked for at once
}

#[test]
fn what_is_used_often_stays_and_goes_in_the_end() {
    let (_folder, cache) = weighing(10 * 4096);
    put(&cache, "often", 0.01);
    for _ in 0..100 {
        cache.get_with_weight("often", Some(&|_| 0.01)).unwrap();
    }
    for number in 0..50 {
        put(&cache, &format!("{number}"), 0.01);
    }
    assert!(cache.has("often"));
    for number in 0..500 {
        put(&cache, &format!("{number}"), 0.01);
    }
    assert!(!cache.has("often"), "uses of long ago count for ever");
}

#[test]
fn what_was_dear_long_ago_goes_in_the_end() {
    let (_folder, cache) = weighing(10 * 4096);
    put(&cache, "dear", 0.1);
    for number in 0..40 {
        put(&cache, &format!("{number}"), 0.01);
    }
    assert!(cache.has("dear"));
    for number in 0..400 {
        put(&cache, &format!("{number}"), 0.01);
    }
    assert!(!cache.has("dear"));
}

#[test]
fn the_level_is_that_of_all_processes_and_survives_its_file() {
    let (_folder, cache) = weighing(10 * 4096);
    for number in 0..40 {
        put(&cache, &format!("{number}"), 0.05);
    }
    let level = cache.level().unwrap();
    let other = DiskCache::at(cache.folder(), 10 * 4096);
    assert!(level.at > SystemTime::UNIX_EPOCH && level.evicted_bytes > 0);
    assert_eq!(other.level(), Some(level));
    assert_eq!(other.ledger().unwrap().level, level);
    // As older versions wrote it, and nothing at all: no value has a higher priority than new ones.
    let usage = fs::read(cache.folder.join(USAGE_FILE)).unwrap();
    for text in [&usage[..16], &usage[..32], &[]] {
        fs::write(cache.folder.join(USAGE_FILE), text).unwrap();
        put(&cache, "new", 0.0);
        let highest = list(&cache.folder).unwrap().iter().map(|value| value.rank.priority).max();
        assert_eq!(highest, cache.level().map(|level| level.at));
        assert!(cache.level().unwrap().at >= level.at);
        assert!(cache.usage().unwrap().bytes <= 10 * 4096);
    }
}

#[test]
fn weights_that_make_no_sense_harm_nothing() {
    let (_folder, cache) = weighing(10 * 4096);
    for (number, seconds) in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0].into_iter().enumerate() {
        put(&cache, &format!("{number}"), seconds);
        assert!(cache.get_with_weight(&format!("{number}"), Some(&|_| seconds)).is_some());
    }
    let most = SystemTime::now() + Duration::from_secs_f64(DAY + 2.0 * MOST_GAIN_S);
    assert!(list(&cache.folder).unwrap().iter().all(|value| value.rank.priority < most));
    // Marks of another clock.
    for at in [SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(1 << 31)] {
        File::options().write(true).open(file_of(&cache, "0")).unwrap().set_modified(at).unwrap();
        assert!(cache.get_with_weight("0", Some(&|_| 0.01)).is_some());
        assert!(list(&cache.folder).unwrap().iter().all(|value| value.rank.priority < most));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_limit_holds_the_level_never_falls_and_no_more_goes_than_must(
        steps in prop::collection::vec((0..25u8, 0..60_000usize, 0.0..0.5f64, any::<bool>()), 1..80)
    ) {
        let limit = 40 * 4096;
        let (_folder, cache) = weighing(limit);
        let mut level = SystemTime::UNIX_EPOCH;
        for (key, size, seconds, reads) in steps {
            let (key, weight) = (key.to_string(), |_| seconds);
            if reads {
                cache.get_with_weight(&key, Some(&weight));
                continue;
            }
            let before = cache.ledger().unwrap().bytes;
            cache.put_with_weight(&key, &vec![key.len() as u8; size], Some(&weight)).unwrap();
            prop_assert!(cache.has(&key));
            let after_use = cache.usage().unwrap().bytes;
            prop_assert!(after_use <= limit);
            prop_assert_eq!(cache.ledger().unwrap().bytes, after_use);
            let most = 60_000u64.next_multiple_of(4096) + 4096;
            // The earlier value, and one that was larger than necessary.
            prop_assert!(after_use + 2 * most >= before);
            let now = cache.level().unwrap().at;
            prop_assert!(now >= level);
            level = now;
        }
    }
}
