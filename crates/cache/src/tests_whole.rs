//! Single cuts one after another, and the fetch of the whole object that they lead to.

use crate::CachedSource;
use crate::tests::{
    CountingSource, LIMIT, SIZE, assert_right, blocks, cached_source, object, of_server, read,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swathe_plan::{Costs, Curve};
use swathe_store_api::Source;

/// A request takes 50 ms and the whole object 120 ms.
fn slow_object() -> CountingSource {
    let costs =
        Costs { request: Curve::affine(0.05, 10e6), total_bytes_per_s: 10e6, ..Costs::remote() };
    let mut slow = object(1);
    slow.costs = costs;
    slow
}

/// The `number`th cut of 1000 bytes.
fn cut(source: &CachedSource, number: u64) {
    source.begin_cut();
    let range = number * 6000..number * 6000 + 1000;
    let pieces = read(source, std::slice::from_ref(&range));
    assert_right(1, &[range], &pieces);
}

/// Wait until no fetch of the whole object is on its way.
fn wait_for_whole(source: &CachedSource) {
    let until = Instant::now() + Duration::from_secs(20);
    while source.is_fetched_whole() {
        assert!(Instant::now() < until, "the fetch does not end");
        std::thread::yield_now();
    }
}

#[test]
fn cuts_that_come_one_after_another_lead_to_the_whole_object() {
    let folder = tempfile::tempdir().unwrap();
    let source = cached_source(slow_object(), &blocks(&folder, LIMIT));
    cut(&source, 0);
    wait_for_whole(&source);
    assert_eq!(of_server(&source).bytes, 1000, "one cut alone");
    cut(&source, 1);
    wait_for_whole(&source);
    let bytes = of_server(&source).bytes;
    // What was read before is not read again.
    assert!((SIZE as u64 - 1000..=SIZE as u64).contains(&bytes), "{bytes}");
    (2..100).for_each(|number| cut(&source, number));
    assert_eq!(of_server(&source).requests, 0);
}

#[test]
fn reads_without_cuts_never_lead_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = cached_source(slow_object(), &blocks(&folder, LIMIT));
    for number in 0..50 {
        read(&source, &[number * 6000..number * 6000 + 1000]);
        wait_for_whole(&source);
    }
    assert_eq!(of_server(&source).bytes, 50_000);
}

#[test]
fn it_is_not_fetched_if_it_would_fill_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let source = cached_source(slow_object(), &blocks(&folder, 7 * SIZE as u64));
    for number in 0..50 {
        cut(&source, number);
        wait_for_whole(&source);
    }
    assert_eq!(of_server(&source).bytes, 50_000);
}

#[test]
fn cuts_go_on_if_it_cannot_be_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let mut slow = slow_object();
    slow.most_bytes = 5000;
    let source = cached_source(slow, &blocks(&folder, LIMIT));
    (0..50).for_each(|number| cut(&source, number));
    wait_for_whole(&source);
    assert_eq!(of_server(&source).bytes, 50_000);
}

#[test]
fn threads_and_other_opened_sources_share_one_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    let inner = Arc::new(slow_object());
    let sources: Vec<CachedSource> =
        (0..4).map(|_| CachedSource::new(inner.clone(), "store:a", blocks.clone(), true)).collect();
    std::thread::scope(|scope| {
        for (thread, source) in (0..).zip(&sources) {
            scope.spawn(move || (0..25).for_each(|number| cut(source, thread * 25 + number)));
        }
    });
    wait_for_whole(&sources[0]);
    let bytes = of_server(&sources[0]).bytes;
    // Each cut before the end may have moved its own bytes, too.
    assert!((SIZE as u64..SIZE as u64 + 100_000).contains(&bytes), "{bytes}");
}
