//! The bytes as an object, opened and cut as a user would: a result or a typed error, soon, and in
//! little memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use swathe_array::Region;
use swathe_engine::{Cancel, Cutout, EngineError, Mode, Object, Selector, cut};
use swathe_fits::Hdu;
use swathe_layout::Storage;
use swathe_plan::Objective;
use swathe_store_api::{MemoryStore, StoreSettings, Stores};

/// HDUs that are cut from.
const HDUS: usize = 12;
/// Pixels along each side of a box.
const SIDE: i64 = 7;
/// A tile of PLIO_1 or HCOMPRESS_1 takes a few bytes, however large it is: larger ones are known
/// to take the memory their headers ask for.
const MOST_TILE_PIXELS: u64 = 1 << 22;
/// An input may take this long, then it is cancelled: longer, and the work did not look.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is cut, in the store below.
const OBJECT: &str = "memory:object";

struct Setting {
    store: Arc<MemoryStore>,
    stores: Stores,
    running: Mutex<Option<(Instant, Cancel)>>,
}

static SETTING: LazyLock<Setting> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("swathe-fuzz-{}", std::process::id()));
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe {
        std::env::set_var("SWATHE_INDEX_DIR", folder.join("index"));
        std::env::set_var("SWATHE_INDEX_BYTES", "1000000");
        std::env::set_var("SWATHE_MAX_CUTOUT_BYTES", "16000000");
    }
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(PATIENCE / 4);
            let running = SETTING.running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, cancel)) = running.as_ref().filter(|(at, _)| at.elapsed() > PATIENCE) {
                cancel.cancel();
            }
        }
    });
    let store = Arc::new(MemoryStore::new("memory"));
    // There are no others: what is cut leads to none.
    let none = |store: StoreSettings| panic!("an object of {}", store.root);
    let stores = Stores::new(Vec::new(), none).with(store.clone());
    Setting { store, stores, running: Mutex::default() }
});

fuzz_target!(|bytes: &[u8]| {
    let setting = &*SETTING;
    setting.store.put("object", bytes.to_vec());
    let cancel = Cancel::default();
    let running = || setting.running.lock().unwrap_or_else(PoisonError::into_inner);
    *running() = Some((Instant::now(), cancel.clone()));
    // The second time what the index kept of the first is used.
    let first = cut_all(&setting.stores, &cancel);
    let second = cut_all(&setting.stores, &cancel);
    *running() = None;
    if !cancel.is_cancelled() {
        assert_eq!(first, second, "the second reading gives something else");
    }
    if let Err(error) = first {
        sound(&error);
    }
});

/// Sums of the cuts' pixels; -1 where there is an error.
fn cut_all(stores: &Stores, cancel: &Cancel) -> Result<Vec<i64>, String> {
    let result = Object::open(OBJECT, stores, false, cancel.clone());
    let object = result.map_err(|error| error.to_string())?;
    let hdus = object.hdus().map_err(|error| error.to_string());
    let mut sums = Vec::new();
    for hdu in hdus?.iter().take(HDUS) {
        for (region, mode) in boxes(hdu) {
            let selector = Selector::Index(hdu.index);
            let result = cut(&object, &selector, &region, mode, None, Objective::Auto, cancel);
            sums.push(result.map_or_else(|error| error_sum(&error), |cutout| sum(&cutout)));
        }
    }
    object.take_notes();
    Ok(sums)
}

fn boxes(hdu: &Hdu) -> Vec<(Region, Mode)> {
    let Ok(image) = hdu.image() else { return Vec::new() };
    if image.layout.shape.contains(&0) {
        return Vec::new();
    }
    if let Storage::Chunked(table) = &image.layout.storage {
        let pixels = table.grid().chunk_shape.iter().zip(&image.layout.shape);
        let pixels = pixels.fold(1u64, |n, (&tile, &side)| n.saturating_mul(tile.min(side)));
        let blank = ["PLIO_1", "HCOMPRESS_1"].contains(&table.codec_name());
        if blank && pixels > MOST_TILE_PIXELS {
            return Vec::new();
        }
    }
    let region = |start: &dyn Fn(i64) -> i64, side: i64| {
        let start: Vec<i64> = image.layout.shape.iter().map(|&side| start(side as i64)).collect();
        let stop = start.iter().map(|start| start.saturating_add(side)).collect();
        Region { start, stop }
    };
    vec![
        (region(&|_| -2, SIDE), Mode::Partial),
        (region(&|side| side / 2, SIDE), Mode::Trim),
        (region(&|side| side - 3, 3), Mode::Strict),
        (region(&|_| 0, i64::MAX), Mode::Trim),
    ]
}

fn sum(cutout: &Cutout) -> i64 {
    assert_eq!(cutout.file.len() % 2880, 0);
    cutout.data().iter().map(|&byte| i64::from(byte)).sum()
}

fn error_sum(error: &EngineError) -> i64 {
    sound(&error.to_string());
    -1
}

fn sound(message: &str) {
    assert!(!message.contains("internal error"), "{message}");
}
