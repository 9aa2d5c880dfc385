//! The memory that a large index takes.

mod server;

use server::{Server, reply};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use swathe_store_api::{ListOptions, StoreSettings};

/// Counts the bytes in use, and the most since the last reset.
struct Counting;

static MEMORY: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = MEMORY.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(bytes, Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        MEMORY.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_json_index_takes_a_few_times_its_size() {
    let mut index = String::from("[");
    for number in 0..100_000 {
        let comma = if number == 0 { "" } else { "," };
        let time = "Wed, 25 Nov 2026 01:02:03 GMT";
        write!(
            index,
            "{comma}\n{{ \"name\":\"frame-r-{number:06}.fits.fz\", \"type\":\"file\", \
             \"mtime\":\"{time}\", \"size\":{number} }}"
        )
        .unwrap();
    }
    index.push(']');
    let bytes = index.len();
    let server = Server::start(move |_, _| {
        reply("200 OK\nContent-Type: application/json", index.as_bytes())
    });
    let settings = StoreSettings::new("here".into(), server.url("data"), BTreeMap::new());
    let stores = swathe_store::stores(vec![settings]);
    let mut listing = stores.list("here:", ListOptions::default()).unwrap();
    let before = MEMORY.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut objects = 0;
    while let Some(page) = listing.next_page().unwrap() {
        objects += page.len();
    }
    assert_eq!(objects, 100_000);
    let most = MOST.load(Ordering::Relaxed) - before;
    let times = most as f64 / bytes as f64;
    println!("{times:.2} times the {bytes} bytes of the index");
    assert!(times < 5.0, "{most} bytes of memory for an index of {bytes} bytes");
}
